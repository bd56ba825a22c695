"""How soon the command line answers: its help, and a fit of 150 rows, with compiled modules on disk."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import measured, softcount
from benchmarks.timing import Bound


def small_table(folder: str) -> Path:
    """150 rows of four measurements and a kind."""
    rng = np.random.default_rng(4)
    kinds = np.repeat(["setosa", "versicolor", "virginica"], 50)
    table = np.round(rng.normal(size=(150, 4)) + 3 * np.arange(4) + np.repeat([0, 2, 4], 50)[:, None], 1)
    lines = [",".join([*map(str, row), kind]) for row, kind in zip(table.tolist(), kinds, strict=True)]
    path = Path(folder) / "small.csv"
    path.write_text("\n".join(["a,b,c,d,kind", *lines]) + "\n")
    return path


def best_of(command: list[str], rounds: int, folder: str) -> dict[str, Any]:
    """The least of each measure; the first run, which may compile modules, is not counted."""
    runs = [measured(command, folder) for _ in range(rounds + 1)][1:]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def run(rounds: int) -> Iterator[Bound]:
    with tempfile.TemporaryDirectory() as folder:
        table = small_table(folder)
        bare = best_of([sys.executable, "-c", "pass"], 2 * rounds, folder)
        helped = best_of([*softcount(), "--help"], 2 * rounds, folder)
        fitted = best_of([*softcount(), "fit", str(table), "--target", "kind", "-o", "small.sc"], rounds, folder)
    limit = f"python itself {1e3 * bare['cpu']:.0f} ms"
    yield Bound("softcount --help, CPU", helped["cpu"], "s", 0.15, limit)
    yield Bound("softcount fit, 150 rows", fitted["seconds"], "s", 1.0, f"CPU {fitted['cpu']:.2f} s")
