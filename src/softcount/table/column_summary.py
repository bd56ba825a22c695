"""Summaries of columns, and detection of repeated rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.ranges import Amount
from softcount.core.special import mixed
from softcount.pictures.text import nice_ticks
from softcount.table.chunk import Chunk, Repeats, RowUnits, Settled, Split
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.table.table import Table

MOST_KEPT = 50_000
"""Rows whose numbers are kept for quantiles, with up to 80 columns."""
MOST_CELLS, FEWEST_KEPT = 4_000_000, 1_000
"""Most numbers that are kept (32 MB). With more columns fewer rows are kept, but at least `FEWEST_KEPT`."""
MOST_MARKED = 1_000_000
"""Rows up to which identical rows are counted; this takes eight bytes per row."""
MOST_LEVELS_KEPT = 1_000
"""Most frequent categories of a column whose counts are kept."""
MOST_PAIRED = 200
"""Columns up to which rows with two missing cells are counted by pair of columns."""
MOST_PAIRS_KEPT = 20
APART = np.uint64(0x9E3779B97F4A7C15)
"""Added to numbers before hashing, so that the hash of 0 is not 0."""
STEPS = np.linspace(0.0, 1.0, 21)
"""The quantiles that are kept: 0, 0.05, ..., 1."""


class ColumnSummary(Struct, frozen=True):
    """Summary of one column: the number of cells that hold a value, are missing, or hold an unseen category.

    Numeric columns (and the lengths of documents, in words) have 21 quantiles, and `in_bins` counts some rows
    between their distinct values; `in_bars` counts them between the round numbers `bars`, for histograms. Categorical
    columns have the counts of the most frequent categories, by place in the schema.
    """

    key: Key
    there: Amount
    missing: Amount
    unseen: Amount = 0
    quantiles: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    in_bins: tuple[Amount, ...] = ()
    levels: tuple[tuple[int, Amount], ...] = ()
    bars: tuple[float, ...] = ()
    in_bars: tuple[Amount, ...] = ()


class TableSummary(Struct, frozen=True):
    """Summaries of all used columns, and the number of rows.

    `together` has pairs of columns and the rows in which both are missing, most rows first. `copies` is the number of
    rows identical to an earlier one, None if there are too many rows to compare. `unlabelled` is the number of rows
    without a class.
    """

    rows: Amount
    columns: tuple[ColumnSummary, ...]
    together: tuple[tuple[Amount, Amount, Amount], ...] = ()
    copies: Amount | None = None
    unlabelled: Amount = 0

    def column(self, key: Key) -> ColumnSummary | None:
        return next((column for column in self.columns if column.key == key), None)


def summarise(chunks: Iterable[Chunk], schema: Schema, like: TableSummary | None = None) -> TableSummary:
    """Summarise all chunks of a table; if `like` is given, numbers are counted between the edges of that summary."""
    found = _RunningSummary(schema)
    for chunk in chunks:
        found.add(chunk)
    return found.summary(like)


class PassSummary:
    """The summary of a table's last pass, made during that pass because reading the rows again costs more.

    It is passed to a table as `watch`; the order of chunks does not matter. Once `closed`, it ignores further passes.
    """

    def __init__(self) -> None:
        self.closed = False
        self._table: Table | None = None
        self._running: _RunningSummary | None = None

    def __call__(self, table: Table) -> Callable[[Chunk], None] | None:
        if self.closed:
            return None
        self._table, self._running = table, _RunningSummary(table.schema)
        return self._running.add

    def under(self, schema: Schema) -> TableSummary | None:
        """Return the summary in the codes of `schema`; None unless the last pass read all rows under that schema."""
        if self._table is None or self._running is None or self._running.rows != self._table.n_rows:
            return None
        settled = self._table.settle()
        return self._running.settled(settled).summary(None) if settled.schema == schema else None


class _RunningSummary:
    def __init__(self, schema: Schema) -> None:
        self.schema, self.rows, self.unlabelled = schema, 0, 0
        self.fields = schema.used
        self.coded = {x.key: np.zeros(len(x.levels) + 2, dtype=np.int64) for x in self.fields if x.kind.coded}
        self.missing = np.zeros(len(self.fields), dtype=np.int64)
        self.both_missing = np.zeros((len(self.fields),) * 2) if len(self.fields) <= MOST_PAIRED else None
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []
        numbers = sum(not x.kind.coded for x in self.fields)
        self.most = min(MOST_KEPT, max(FEWEST_KEPT, MOST_CELLS // max(1, numbers)))
        self.limit = np.uint64(2**64 - 1)
        self.marks: list[np.ndarray] | None = []

    def add(self, chunk: Chunk) -> None:
        missing = []
        for spec in self.fields:
            store, slot = self.schema.places[spec.key]
            if store == "bags":
                missing.append(chunk.bags[slot][:, :1].toarray()[:, 0] == 0)
            else:
                cells = getattr(chunk, store)[:, slot]
                missing.append(np.isnan(cells) if store == "reals" else cells == 0)
        gone = np.stack(missing, axis=1)
        self.missing += gone.sum(axis=0)
        if self.both_missing is not None and gone.any():
            there = gone.astype(np.float32)
            self.both_missing += there.T @ there
        self.rows += chunk.n_rows
        if chunk.labels is not None:
            self.unlabelled += int((chunk.labels < 0).sum())
        for key, counts in self.coded.items():
            store, slot = self.schema.places[key]
            more = np.bincount(getattr(chunk, store)[:, slot], minlength=len(counts))
            more[: len(counts)] += counts  # chunks may hold categories that the schema does not have yet
            self.coded[key] = more
        # Keep rows with low hashes; halve the limit if there are too many.
        hashes = mixed(np.arange(chunk.start, chunk.start + chunk.n_rows, dtype=np.uint64) + APART)
        rows = np.flatnonzero(hashes <= self.limit)
        lengths = [np.asarray(bag[rows].sum(axis=1), dtype=float) - 1.0 for bag in chunk.bags]  # words of documents
        lengths = [np.where(length < 0, np.nan, length) for length in lengths]
        self.kept.append((hashes[rows], np.concatenate([chunk.reals[rows], *lengths], axis=1)))
        while sum(len(part) for part, _ in self.kept) > self.most:
            self.limit //= np.uint64(2)
            self.kept = [(part[part <= self.limit], cells[part <= self.limit]) for part, cells in self.kept]
        # One hash per row, equal for identical rows.
        self.marks = None if chunk.bags or self.rows > MOST_MARKED else self.marks
        if self.marks is not None:
            labels = [] if chunk.labels is None else [chunk.labels[:, None]]
            self.marks.append(row_keys([chunk.reals, chunk.codes, chunk.wide, *labels]))

    def settled(self, settled: Settled) -> _RunningSummary:
        """Return the summary in settled codes; the remaining counts do not depend on codes."""
        found = copy(self)
        found.schema, found.fields, found.coded = settled.schema, settled.schema.used, {}
        for key, counts in self.coded.items():
            move = settled.remap[key]
            found.coded[key] = np.zeros(len(settled.schema[key].levels) + 2, dtype=np.int64)
            seen = min(len(move), len(counts))
            np.add.at(found.coded[key], move[:seen], counts[:seen])
        return found

    def summary(self, like: TableSummary | None) -> TableSummary:
        width = sum(spec.kind.numeric for spec in self.fields) + len(self.schema.stored("bags"))
        numbers = np.concatenate([cells for _, cells in self.kept]) if self.kept else np.zeros((0, width))
        columns = tuple(self._column(place, spec, numbers, like) for place, spec in enumerate(self.fields))
        marks = None if self.marks is None else np.concatenate(self.marks) if self.marks else np.zeros(0)
        copies = None if marks is None else len(marks) - len(np.unique(marks))
        together = []
        if self.both_missing is not None:
            first, second = np.triu_indices(len(self.fields), 1)
            rows = self.both_missing[first, second]
            ranked = np.argsort(-rows, kind="stable")[:MOST_PAIRS_KEPT]
            together = [(int(first[at]), int(second[at]), int(rows[at])) for at in ranked if rows[at] > 0]
        return TableSummary(self.rows, columns, tuple(together), copies, self.unlabelled)

    def _column(self, place: int, spec: Field, numbers: np.ndarray, like: TableSummary | None) -> ColumnSummary:
        missing = int(self.missing[place])
        if spec.key in self.coded:
            counts = self.coded[spec.key]
            ranked = np.argsort(-counts[1:-1], kind="stable")[:MOST_LEVELS_KEPT]
            kept = tuple((int(at), int(counts[at + 1])) for at in ranked if counts[at + 1])
            unseen = int(counts[-1])
            return ColumnSummary(spec.key, self.rows - missing - unseen, missing, unseen, levels=kept)
        store, slot = self.schema.places[spec.key]
        cells = numbers[:, slot + (0 if store == "reals" else len(self.schema.stored("reals")))]
        cells = cells[np.isfinite(cells)]
        before = None if like is None else like.column(spec.key)
        quantiles = tuple(np.quantile(cells, STEPS).tolist()) if len(cells) else ()
        edges = before.edges if before is not None and before.edges else tuple(np.unique(quantiles).tolist())
        bars = () if before is None else before.bars
        if not bars and len(cells):
            low, middle, high = np.quantile(cells, (0.01, 0.5, 0.99)).tolist()
            # A number that a twentieth of the cells share at the foot, such as 0, has a bar of its own.
            least = np.nextafter(quantiles[0], -np.inf) if quantiles[1] == quantiles[0] else quantiles[0]
            bars = tuple(bar_edges(low, middle, high, spec.kind is Kind.COUNT, (least, quantiles[-1])).tolist())
        return ColumnSummary(
            spec.key, self.rows - missing, missing, 0, quantiles, edges, counted_between(cells, edges),
            bars=bars, in_bars=counted_between(cells, bars) if bars else (),
        )  # fmt: skip


BARS = 24
"""Bars of a number, about."""
WIDE = 60.0
"""Times that a number's 99 % quantile is its 1 % quantile, from where bars may grow with the numbers."""
SKEWED = 0.2
"""The share of the way between these quantiles that the median then has passed at most."""


def bar_edges(
    low: float, middle: float, high: float, whole: bool, ends: tuple[float, float] | None = None
) -> np.ndarray:
    """Choose where the bars of a histogram meet: at round numbers between two quantiles; the outer bars have no end.

    Bars grow with skewed numbers, whose median is near the lower quantile.

    A bar holds its upper edge and not its lower one. Few whole numbers have a bar each. No bar lies outside the least
    and the largest number, if these `ends` are known.

    >>> bar_edges(0.5, 3.0, 8.0, True, (0.0, 9.0))
    array([0., 1., 2., 3., 4., 5., 6., 7., 8.])
    """
    found = None
    if whole:
        low, high = max(np.floor(low) - 1.0, 0.0), np.ceil(high)
        step = max(1.0, np.ceil((high - low) / BARS))
        found = np.arange(low, high + step / 2, step)
    elif low > 0 and high > WIDE * low and middle < low + SKEWED * (high - low):
        found = _growing_edges(low, high)
    if found is None:
        found = np.unique(np.asarray(nice_ticks(low, high, BARS)))
    if ends is not None:
        inside = found[(found >= ends[0]) & (found < ends[1])]
        inside = inside[1:] if len(inside) > 1 and inside[0] == ends[0] and not whole else inside
        found = inside if len(inside) else found[:1]
    return found


def _growing_edges(low: float, high: float) -> np.ndarray | None:
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    if len(powers) > BARS:
        return None
    parts = (1.0, 2.0, 5.0) if len(powers) > 4 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    found = np.array([float(f"{part}e{int(power)}") for power in powers for part in parts])
    return found[np.searchsorted(found, low, "right") - 1 : np.searchsorted(found, high) + 1]


def counted_between(cells: np.ndarray, edges: tuple[float, ...]) -> tuple[int, ...]:
    """Count the cells up to each edge and above the one before; the last count is of cells above all edges.

    >>> counted_between(np.array([1.0, 2.0, 2.0, 3.0, 9.0]), (1.0, 2.0, 4.0))
    (1, 2, 1, 1)
    """
    if not edges:
        return (len(cells),) if len(cells) else ()
    places = np.searchsorted(np.array(edges), cells, side="left")
    return tuple(np.bincount(places, minlength=len(edges) + 1).tolist())


# -- identical rows: copies of one observation, or independent observations that are equal by chance

Weights = Callable[[], Iterable[tuple[int, np.ndarray | None]]]
"""The first row and the weights of each chunk."""

LEAST_SHARE = 0.02
"""Share of repeated rows up to which folds ignore the repeats."""
FEW_VALUES = 12
"""Distinct values up to which a numeric column counts as discrete."""
LEAST_DISAGREEMENT = 0.1
"""Identical rows are independent if their labels disagree at least this often, relative to randomly drawn rows."""
CHANCE = 10.0
"""Identical rows are copies if there are more than this many times the pairs that independent columns predict."""
MOST_COMPARED = 20_000
"""Rows that are compared with each other if folds are assigned by row number."""
FEW_DISTINCT = 10
"""Distinct rows of a class below which a common divisor of their counts may be chance."""


class RepeatedRows(Struct, frozen=True):
    """The number of rows, how many repeat an earlier row, and whether the repeats are copies of one observation."""

    rows: int
    repeats: int
    copies: bool

    def describe(self) -> str | None:
        """Return a line for the user, or None if there are too few repeats to matter."""
        if self.repeats <= LEAST_SHARE * self.rows:
            return None
        line = f"{self.repeats:,} of {self.rows:,} rows repeat an earlier row"
        if self.copies:
            return f"{line}. Cross-validation keeps identical rows in one fold."
        return f"{line}. The columns have few distinct values, so cross-validation treats them as independent rows."


def row_keys(blocks: Sequence[np.ndarray], bags: Sequence[Any] = ()) -> np.ndarray:
    """Return one 64-bit key per row, equal for rows with equal cells; missing numbers are equal.

    `blocks` are matrices of numbers or codes, `bags` are sparse matrices of word counts.
    """
    rows = len(blocks[0]) if blocks else bags[0].shape[0]
    keys = np.zeros(rows, dtype=np.uint64)
    for place, block in enumerate(blocks):
        if block.dtype.kind == "f":
            bits = np.where(np.isnan(block), np.nan, block + 0.0).astype(np.float64).view(np.uint64)
        else:
            bits = block.astype(np.uint64)
        salts = mixed(np.arange(1, 1 + block.shape[1], dtype=np.uint64) + np.uint64(place << 32))
        with np.errstate(over="ignore"):
            keys += mixed(mixed(bits) ^ salts).sum(axis=1, dtype=np.uint64)
    for place, bag in enumerate(bags):
        each = mixed(np.arange(1, 1 + bag.shape[1], dtype=np.uint64)).astype(np.float64) / 2.0**64
        with np.errstate(over="ignore"):
            keys += mixed(np.asarray(bag @ each).view(np.uint64) + np.uint64(place + 1))
    return keys


def find_repeats(
    keys: np.ndarray, labels: np.ndarray, times: np.ndarray, blocks: Sequence[np.ndarray], has_text: bool = False
) -> RepeatedRows:
    """Count repeated rows and decide whether they are copies. The order of the rows does not matter.

    Row i occurs `times[i]` times with class `labels[i]`, 0 or more. Identical rows are independent observations in two
    cases: their labels disagree, or the columns are discrete and identical rows are about as frequent as independent
    columns within each class predict. Otherwise they are copies. With a single class the frequency alone decides.
    """
    _, groups = np.unique(keys, return_inverse=True)
    classes = int(labels.max(initial=0)) + 1
    pairs, cells = np.unique(groups * classes + labels, return_inverse=True)
    same = np.bincount(cells, times)  # rows of each distinct row with its label
    rows, repeats = float(times.sum()), float(times.sum() - (same > 0).sum())
    if repeats <= LEAST_SHARE * rows:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    alike = np.bincount(groups, times)
    if (alike > 0).sum() < 2:  # a single distinct row cannot be both learned from and held out
        return RepeatedRows(round(rows), round(repeats), copies=False)
    others = np.maximum(alike - 1.0, 1.0)
    agreeing = np.bincount(pairs // classes, same * (same - 1.0), len(alike)) / others
    repeated = alike > 1
    disagreement = 1.0 - agreeing[repeated].sum() / alike[repeated].sum()
    shares = np.bincount(labels, times * repeated[groups], classes) / alike[repeated].sum()
    if disagreement >= LEAST_DISAGREEMENT * (1.0 - shares @ shares) and (shares > 0).sum() > 1:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    numbers = (column for block in blocks if block.dtype.kind == "f" for column in block.T)
    fine = (len(np.unique(column[~np.isnan(column)])) > FEW_VALUES for column in numbers)
    copies = has_text or (classes > 1 and any(fine))
    if not copies:
        found = float((same * (same - 1.0)).sum())
        total = 0.0
        for label in np.unique(labels):
            own = labels == label
            size = float(times[own].sum())
            if size <= 0:
                continue
            chance = 1.0
            for block in blocks:
                for column in block[own].T:
                    _, values = np.unique(column, return_inverse=True)  # NaN equals NaN
                    shares = np.bincount(values, times[own]) / size
                    chance *= float(shares @ shares)
            total += size * (size - 1.0) * chance
        copies = found > CHANCE * total
    return RepeatedRows(round(rows), round(repeats), copies)


def units_of(blocks: Sequence[np.ndarray], labels: np.ndarray) -> tuple[RepeatedRows, np.ndarray]:
    """Return the repeats among rows of numbers and codes, and the fold unit of each row."""
    keys = row_keys(blocks)
    found = find_repeats(keys, labels, np.ones(len(keys)), blocks)
    return found, fold_units(keys, labels, found.copies)


def fold_units(keys: np.ndarray, labels: np.ndarray, copies: bool) -> np.ndarray:
    """Return the unit of each row, numbered by first occurrence; rows of one unit belong to one fold.

    Copies of a row are one unit. Independent rows are one unit each, with one exception: the counts of all distinct
    rows of a class have a common divisor, as equal weights within the class give. Then that many identical rows are a
    unit.
    """
    if copies:
        return _by_first(keys)
    marks = mixed(keys ^ mixed(labels.astype(np.uint64)))
    _, cells, sizes = np.unique(marks, return_inverse=True, return_counts=True)
    if sizes.max(initial=0) < 2:
        return np.arange(len(keys))
    order = np.argsort(cells, kind="stable")
    turn = np.empty(len(keys), dtype=np.int64)  # number of equal rows before
    turn[order] = np.arange(len(keys)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    divisors = np.ones(int(labels.max()) + 1, dtype=np.int64)
    own = labels[order[np.cumsum(sizes) - sizes]]
    for label in np.unique(own):
        if (own == label).sum() >= FEW_DISTINCT:
            divisors[label] = np.gcd.reduce(sizes[own == label])
    return _by_first(cells * (1 + int(turn.max())) + turn // divisors[labels])


def deal_repeats(split: Split, chunks: Sequence[Chunk], weights: Weights, complete: bool) -> Split:
    """Return the split with copies of a row in one fold, or with integer weights as independent repetitions of a row.

    The rows of `chunks` decide. Copies share a fold only if the chunks are `complete`; otherwise the split is returned
    unchanged. The `weights` of all chunks are read only if they are repetitions.
    """
    independent = replace(split, repeats=Repeats.of(weights)) if any(x.weights is not None for x in chunks) else split
    if not chunks:
        return independent
    heavy = np.concatenate([np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks])
    classes = np.concatenate([np.zeros(x.n_rows, np.int32) if x.labels is None else x.labels for x in chunks])
    keys = np.concatenate([row_keys((chunk.reals, chunk.codes, chunk.wide), chunk.bags) for chunk in chunks])
    blocks = [np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("reals", "codes", "wide")]
    whole = bool((heavy == np.floor(heavy)).all())
    known = np.flatnonzero((classes >= 0) & (heavy > 0))
    times = heavy[known] if whole else np.ones(len(known))
    found = find_repeats(keys[known], classes[known], times, [block[known] for block in blocks], bool(chunks[0].bags))
    if not found.copies:
        return independent
    if not complete:
        return split
    there = np.flatnonzero(heavy > 0)
    units = np.zeros(len(keys), dtype=np.int64)
    units[there] = fold_units(keys[there], classes[there], copies=True)
    return replace(split, units=RowUnits(units, whole))


def _by_first(marks: np.ndarray) -> np.ndarray:
    """Number distinct marks 0, 1, ... by first occurrence."""
    _, first, found = np.unique(marks, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return np.asarray(ranks[found])
