"""How long it takes to choose the number of classes of Adult: 48,842 rows, numbers and words, holes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.timing import Bound, seconds

MOST_SECONDS = 60.0
NAMES = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours", "country", "income",
)  # fmt: skip
NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours"}


def adult() -> Any:
    """Both parts of the census table as one Arrow table, or None where it is not here."""
    import pyarrow as pa

    root = Path(os.environ.get("SOFTCOUNT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    rows = []
    for part in ("adult.data.gz", "adult.test.gz"):
        path = root / "uci_adult" / part
        if not path.exists():
            return None
        with gzip.open(path, "rt") as text:
            cells = (line.strip().rstrip(".").split(", ") for line in text)
            rows += [row for row in cells if len(row) == len(NAMES)]
    columns = dict(zip(NAMES, zip(*rows, strict=True), strict=True))
    return pa.table({name: [_cell(name, cell) for cell in cells] for name, cells in columns.items()})


def _cell(name: str, cell: str) -> Any:
    return None if cell == "?" else float(cell) if name in NUMBERS else cell


def run(rounds: int) -> Iterator[Bound]:
    import softcount as sc

    table = adult()
    if table is None:
        return
    model = sc.Mixture(random_state=0, n_jobs=2)
    took = seconds(lambda: model.fit(table))  # once: it takes long enough for that
    tried = ", ".join(map(str, model.selection_["classes"].to_pylist()))
    beside = f"{len(model.weights_)} classes; tried {tried}"
    yield Bound(f"Adult, {table.num_rows:,} rows: how many classes, two threads", took, "s", MOST_SECONDS, beside)
