"""A CSV of 500 MB, made once in a temporary folder, fitted from the shell: memory and speed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import measured, softcount
from benchmarks.timing import Bound, seconds

BYTES = 500_000_000
BATCH = 200_000
MOST_MEGABYTES = 400
WAYS = {
    "as it comes": ["--folds", "0"],
    "naive Bayes": ["--model", "naive-bayes", "--folds", "0"],
    "naive Bayes with five folds": ["--model", "naive-bayes"],
}


def batch(rng: np.random.Generator) -> Any:
    """Rows of six numbers, a count and three words, some cells missing, and a class."""
    import pyarrow as pa

    labels = rng.integers(0, 3, BATCH)
    columns: dict[str, Any] = {}
    for j in range(6):
        numbers = np.round(rng.normal(size=BATCH) * 10 + labels, 5)
        columns[f"number{j}"] = pa.array(numbers, mask=rng.random(BATCH) < 0.03)
    columns["visits"] = pa.array(rng.poisson(2 + labels))
    for j in range(3):
        names = pa.array([f"level{k}" for k in range(12)])
        codes = pa.array((rng.integers(0, 12, BATCH) + labels) % 12, mask=rng.random(BATCH) < 0.03)
        columns[f"word{j}"] = names.take(codes)
    return pa.table(columns | {"target": pa.array(["low", "middle", "high"]).take(pa.array(labels))})


def write(path: Path) -> None:
    """Batches until the file is large enough, never more than one of them in memory."""
    import pyarrow.csv as csv

    rng = np.random.default_rng(5)
    first = batch(rng)
    with path.open("wb") as out, csv.CSVWriter(out, first.schema) as writer:
        writer.write_table(first)
        while out.tell() < BYTES:
            writer.write_table(batch(rng))


def read(path: Path) -> None:
    """The limit: the file's bytes and nothing else."""
    with path.open("rb", buffering=0) as lines:
        while lines.read(1 << 22):
            pass


def run(rounds: int) -> Iterator[Bound]:
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < 2 * BYTES:
            yield Bound("a CSV of 500 MB: not run, no room in the temporary folder", float("nan"), "GB")
            return
        path = Path(folder) / "large.csv"
        write(path)
        size = path.stat().st_size / 1e6
        best = {}
        for name, more in WAYS.items():
            command = [*softcount(), "fit", str(path), "--target", "target", "-o", "large.sc", *more]
            best[name] = measured(command, folder)
        limit = min(seconds(lambda: read(path)) for _ in range(2))
    for name, found in best.items():
        speed = f"{size / found['seconds']:.0f} MB/s, {found['cpu']:.1f} s of CPU; a read {size / limit:.0f} MB/s"
        yield Bound(
            f"softcount fit, CSV of {size:.0f} MB, {name}: memory", found["megabytes"], "MB", MOST_MEGABYTES, speed
        )
