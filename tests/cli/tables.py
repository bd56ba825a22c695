"""Small tables written for one test, with the mess of real ones."""

from __future__ import annotations

import csv
import random
from pathlib import Path

HEADER = ("ref", "colour", "weight", "visits", "site", "sort")


def fruit_rows(n: int = 120, seed: int = 1) -> list[tuple[str, ...]]:
    """Two sorts of fruit that differ in colour, weight and visits; some cells are missing, one column is constant."""
    rng = random.Random(seed)
    rows = []
    for place in range(n):
        apple = rng.random() < 0.6
        colour = rng.choices(["red", "green", "yellow"], [6, 3, 1] if apple else [1, 2, 7])[0]
        weight = f"{rng.gauss(150 if apple else 118, 12):.2f}"
        visits = str(sum(rng.random() < (0.2 if apple else 0.5) for _ in range(10)))
        cells = [f"r{place:04d}", colour, weight, visits, "north", "apple" if apple else "banana"]
        for slot in (1, 2, 3):
            if rng.random() < 0.1:
                cells[slot] = rng.choice(["", "NA", "?"])
        rows.append(tuple(cells))
    return rows


def write_table(path: Path, rows: list[tuple[str, ...]], header: tuple[str, ...] | None = HEADER) -> Path:
    with path.open("w", newline="") as handle:
        csv.writer(handle).writerows(rows if header is None else [header, *rows])
    return path
