"""What a table far beyond one machine would take: small fits are measured here, and multiplied.

    python scripts/scale_plan.py

Every figure of docs/benchmarks/scale.md comes from this. Times are processor times on one thread, best of several.
"""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import softcount as sc
from softcount.core.counts import Counts, Twofold
from softcount.run.local import limit_blas

ROWS, COLUMNS, CLASSES = 10**11, 10**4, 10**3
LEVELS = 10
PAIR = 16
"""Bytes of a count: two floats, whose sum has twice the digits."""
HOUR = 3600.0
PASSES = 50
"""Iterations of EM that a mixture takes from a good start, about."""


def best(work: Callable[[], object], times: int = 5) -> float:
    """The least seconds of the processor that something takes."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes that counts take for a column and a class: as arrays, and as they are sent."""

    held: float
    sent: float


def counts_of(model: Any) -> Counts:
    found: Counts = model.fitted_.counts
    return found


def held(counts: Counts) -> int:
    return sum(array.hi.nbytes + array.lo.nbytes for array in counts.arrays.values())


def numbers(rows: int, columns: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.integers(0, classes, rows)


def sizes_of(model: Callable[[], Any], cells: Callable[[np.ndarray], Any]) -> Sizes:
    """Bytes for a column and a class, by the difference that more columns make."""
    found = []
    for columns in (20, 60):
        X, y = numbers(2000, columns, 50)
        counts = counts_of(model().fit(cells(X), y))
        found.append((held(counts), len(pickle.dumps(counts))))
    held_more, sent_more = ((after - before) / (40 * 50) for before, after in zip(*found, strict=True))
    return Sizes(held_more, sent_more)


def levels_in(X: np.ndarray) -> np.ndarray:
    return np.char.add("level", (np.abs(X * 1000) % LEVELS).astype(int).astype(str))


def count_seconds(classes: int, rows: int = 200_000, columns: int = 50) -> float:
    """Seconds to count a cell of a table of numbers that is in memory."""
    X, y = numbers(rows, columns, classes)
    model = sc.NaiveBayes(n_jobs=1)
    model.fit(X[:1000], y[:1000])
    return best(lambda: model.fit(X, y)) / X.size


def read_seconds(columns: int = 20) -> tuple[float, float]:
    """Seconds to read and count a cell of a Parquet file, by the difference that more rows make; its bytes on disk."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (200_000, 600_000):
            X, y = numbers(rows, columns, 10)
            path = Path(folder) / f"{rows}.parquet"
            table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y.astype(str)})
            pq.write_table(table, path, row_group_size=65_536)
            found.append((best(partial(sc.NaiveBayes(n_jobs=1).fit, str(path), "y"), 4), path.stat().st_size, X.size))
    (quick, less, few), (long, more, many) = found
    return (long - quick) / (many - few), (more - less) / (many - few)


def wide_seconds(columns: int = 4_000, rows: int = 2_000) -> float:
    """Seconds that a column costs whatever its rows, of a wide table."""
    X, y = numbers(rows, columns, 10)
    model = sc.NaiveBayes(n_jobs=1)
    model.fit(X[:100, :10], y[:100])
    return best(lambda: model.fit(X, y), 2) / columns


def pass_seconds(groups: int, rows: int = 40_000, columns: int = 40) -> float:
    """Seconds that one iteration of EM takes for a cell and a class of a mixture of normals."""
    X, y = numbers(rows, columns, groups)
    X += 3 * np.random.default_rng(1).normal(size=(groups, columns))[y]

    def climb(iterations: int) -> float:
        model = sc.Mixture(groups, kinds="normal", init=y, max_iter=iterations, tol=0, accelerate=False, n_jobs=1)
        return best(lambda: model.fit(X), 3)

    return (climb(6) - climb(2)) / 4 / (X.size * groups)


def add_seconds(sizes: int = 2_000_000) -> float:
    """Seconds to add a byte of counts to others."""
    part = Counts({"x": Twofold.of(np.random.default_rng(0).normal(size=(1000, sizes // 1000)))})
    return best(lambda: part + part) / held(part)


def blocks_agree(parts: int = 64, blocks: int = 8) -> bool:
    """Whether counts reduced block of columns by block, on different machines, have the bits of the whole sum."""
    rng = np.random.default_rng(0)
    each: list[dict[Hashable, Twofold]] = [
        {f"x{j}": Twofold.of(rng.normal(size=(20, 3))) for j in range(40)} for _ in range(parts)
    ]
    whole = reduce(add, [Counts(arrays) for arrays in each])
    for block in range(blocks):
        keys: list[Hashable] = [f"x{j}" for j in range(40) if j % blocks == block]
        own = reduce(add, [Counts({key: arrays[key] for key in keys}) for arrays in each])
        if any((own[key] != whole[key]).any() for key in keys):
            return False
    return True


def fold_error(parts: int = 100_000) -> tuple[float, float]:
    """The relative error of a sum of so many parts, in pairs as counts are kept and in plain floats."""
    values = np.random.default_rng(0).lognormal(8.0, 2.0, parts)
    exact = math.fsum(values)
    total, plain = Twofold.of(np.zeros(1)), 0.0
    for value in values:
        total, plain = total + Twofold.of(np.array([value])), plain + value
    return abs(float(total.value[0]) - exact) / exact, abs(plain - exact) / exact


def spelt(number: float) -> str:
    """A number in few digits.

    >>> spelt(1234567.0), spelt(0.00123)
    ('1,230,000', '0.00123')
    """
    shown = float(f"{number:.3g}")
    return f"{shown:,.0f}" if shown >= 1000 else f"{shown:g}"


def size_of(number: float) -> str:
    """Bytes in the largest unit that leaves a whole one.

    >>> size_of(4.8e8), size_of(1.6e10)
    ('480 MB', '16 GB')
    """
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if number >= factor:
            return f"{spelt(number / factor)} {unit}"
    return f"{spelt(number)} bytes"


CHILD = """
import resource, sys, numpy as np, softcount as sc
rng, columns = np.random.default_rng(0), int(sys.argv[1])
X, y = rng.normal(size=(2000, columns)), np.arange(2000) % 1000
sc.NaiveBayes(n_jobs=1).fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - X.nbytes)
"""


def fit_memory() -> float:
    """Bytes that a fit takes at its peak for a column and a class, besides the rows: by what more columns add."""
    few, many = (
        int(subprocess.run([sys.executable, "-c", CHILD, str(n)], capture_output=True, check=True).stdout)
        for n in (200, 600)
    )
    return (many - few) / (400 * 1000)


def kept_model(columns: int = 1_000, classes: int = 50) -> tuple[float, float, float, float]:
    """Of a model of numbers: bytes of its file for a column and a class, seconds to save and to load it for a column,
    and seconds to predict a cell under a class."""
    X, y = numbers(4_000, columns, classes)
    model = sc.NaiveBayes(n_jobs=1).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sc"
        saving = best(lambda: model.save(path), 2) / columns
        loading = best(lambda: sc.load(path), 2) / columns
        size = path.stat().st_size / (columns * classes)
    return size, saving, loading, best(lambda: model.predict_proba(X), 3) / (X.size * classes)


def print_counts() -> None:
    print("\n| counts of a column and a class | bytes held | bytes sent | 10^4 columns x 10^3 classes, sent |")
    print("|---|---|---|---|")
    kinds = {"normal": lambda X: X, f"categorical, {LEVELS} levels": levels_in}
    for name, cells in kinds.items():
        found = sizes_of(lambda: sc.NaiveBayes(n_jobs=1), cells)
        print(f"| {name} | {spelt(found.held)} | {spelt(found.sent)} | {size_of(found.sent * COLUMNS * CLASSES)} |")
    for levels in (10**5, 10**6):
        own = f"{levels * PAIR:,}"
        print(f"| {levels:,} levels or words | {own} | {own} | {size_of(levels * PAIR * CLASSES)} a column |")


def print_passes() -> None:
    cells = float(ROWS) * COLUMNS
    print("\n| a pass | measured | 10^11 x 10^4 x 10^3, core-hours |")
    print("|---|---|---|")
    few, many = count_seconds(10), count_seconds(1000)
    print(f"| count numbers in memory, 10 classes | {few * 1e9:.2f} ns a cell | {spelt(few * cells / HOUR)} |")
    print(f"| count numbers in memory, 1,000 classes | {many * 1e9:.2f} ns a cell | {spelt(many * cells / HOUR)} |")
    read, disk = read_seconds()
    print(f"| read Parquet and count | {read * 1e9:.1f} ns a cell, {disk:.1f} bytes | {spelt(read * cells / HOUR)} |")
    print(f"| the table on disk | | {size_of(disk * cells)} |")
    small, large = pass_seconds(20), pass_seconds(200)
    for groups, found in ((20, small), (200, large)):
        hours = found * cells * CLASSES / HOUR
        print(
            f"| EM, normals, {groups} classes | {found * 1e9:.3f} ns a cell and class | {spelt(hours)} an iteration |"
        )
    print(f"| {PASSES} iterations of it | | {spelt(PASSES * large * cells * CLASSES / HOUR)} |")
    wide = wide_seconds()
    print(f"| whatever the rows, a column of a wide table | {wide * 1e6:.0f} us | {wide * COLUMNS:.2f} s a fit |")
    adding = add_seconds()
    part = adding * 3 * PAIR * COLUMNS * CLASSES
    print(f"| add counts | {adding * 1e9:.2f} ns a byte | {spelt(part)} s for normals, a part |")


def print_model() -> None:
    size, saving, loading, asking = kept_model()
    print("\n| the model | measured | 10^4 columns x 10^3 classes |")
    print("|---|---|---|")
    peak = fit_memory()
    whole = size_of(peak * COLUMNS * CLASSES)
    print(f"| memory at the peak of a fit | {spelt(peak)} bytes a column and class | {whole} |")
    print(f"| its file | {spelt(size)} bytes a column and class | {size_of(size * COLUMNS * CLASSES)} |")
    print(f"| save, load | {saving * 1e6:.0f}, {loading * 1e6:.0f} us a column | |")
    hours = asking * float(ROWS) * COLUMNS * CLASSES / HOUR
    print(f"| predict | {asking * 1e9:.3f} ns a cell and class | {spelt(hours)} core-hours for 10^11 rows |")


def main() -> None:
    with limit_blas():
        print_counts()
        print_passes()
        print_model()
    pairs, plain = fold_error()
    print(f"\nblocks of columns reduced apart have the bits of the whole sum: {blocks_agree()}")
    print(f"100,000 parts added one after another: relative error {pairs:.1e} in pairs, {plain:.1e} in plain floats")


if __name__ == "__main__":
    main()
