"""Counting inside a database: what one pass over rows of known class adds up, asked for by GROUP BY.

Squares are taken around every class's own mean, which a query within the query finds and has joined in: around one
anchor a class a million deviations away would lose its digits. No cell is ever written into a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.export.database_rows import Database, ReadOut, as_double, quoted
from softcount.export.sql_formulas import number
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.sources.arrow_columns import CellType, cell_type, number_words
from softcount.table.cell_forms import is_plain
from softcount.table.schema import MOST_LEVELS, Key, Kind

SUMS = {"duckdb": "fsum", "postgres": "sum"}
"""What adds up doubles, with their rounding errors where there is such a function."""
MOST_COLUMNS = 100
"""Columns of numbers that one query adds up: Postgres gives at most 1,664 of any kind."""
PARTS = 5
"""What is asked of a column of numbers in every class."""
NUMBERS = (CellType.WHOLE, CellType.FLOAT)
FARTHEST = 1e100
"""The largest and the smallest unit in which numbers differ and are squared as they are."""
CHANGING = "its rows differ from one query to the next"


def countable(model: Fitted, sample: Any) -> None:
    """Refuse what a database cannot count, by the name of the column; `sample` is a table of the first rows."""
    for leaf in model.model.leaves:
        one = np.zeros((model.n_groups, 4))
        known = leaf.family.counts_levels or leaf.family.of_sums(one, one[:, 0], leaf.setting) is not None
        if len(leaf.columns) != 1 or not known:
            raise ReadOut(f"column {leaf.key!r} is {leaf.family.title}, whose counts are no sums")
        if leaf.family.counts_levels:
            continue
        if cell_type(sample.schema.field(leaf.key).type) not in NUMBERS:
            raise ReadOut(f"column {leaf.key!r} has numbers that are no numbers to the database")
        if not is_plain(model.schema[leaf.columns[0]].written):
            raise ReadOut(f"column {leaf.key!r} is written in a form of its own")
        if not 1 / FARTHEST < leaf.setting.scale[0] < FARTHEST:
            raise ReadOut(f"column {leaf.key!r} has numbers that cannot be squared as they are")


@dataclass(frozen=True)
class ClassRows:
    """The classes as the database has them and as text, the rows of each, and what they weigh."""

    names: list[Any]
    texts: list[str]
    rows: list[int]
    weights: list[float]


def class_rows(base: Database, target: str, missing: Sequence[str]) -> ClassRows:
    """The classes; rows without one are a reason to read out, and so are weights that are none."""
    y, weigh = quoted(target), _weight(base)
    found = base.rows(f"SELECT {y}, CAST({y} AS TEXT), count(*), {weigh} FROM {base.source} GROUP BY 1, 2")
    words, numbers = {word.strip() for word in missing}, number_words(tuple(missing))
    if any(name is None or name != name or name in numbers or str(text).strip() in words for name, text, *_ in found):
        raise ReadOut("some rows have no class")
    names, texts, rows, weights = (list(part) for part in zip(*found, strict=True))
    _check_weights(base)
    return ClassRows(names, texts, rows, [float(weight) for weight in weights])


def _weight(base: Database, when: str = "") -> str:
    """What the rows of a group weigh in all; those for which a condition holds."""
    if base.weight is None:
        return f"count(CASE WHEN {when} THEN 1 END)" if when else "count(*)"
    weight = as_double(base.weight)
    cell = f"CASE WHEN {when} THEN {weight} ELSE 0 END" if when else weight
    return f"coalesce({SUMS[base.dialect]}({cell}), 0)"


def _check_weights(base: Database) -> None:
    """Weights below zero, missing ones and infinite ones are for the library to name, which knows their rows."""
    if base.weight is None:
        return
    w = as_double(base.weight)
    low, high, missing = base.rows(f"SELECT min({w}), max({w}), count(*) - count({w}) FROM {base.source}")[0]
    if missing or low is None or low < 0 or not np.isfinite([low, high]).all() or high == 0:
        raise ReadOut("some weights are missing, below zero or no numbers")


@dataclass(frozen=True)
class LevelRows:
    """Class as text, value, rows and their weight, of every pair of a class and a value of a column."""

    texts: list[str]
    values: list[Any]
    rows: list[int]
    weights: list[float]


def level_rows(base: Database, target: str, key: Key, classes: ClassRows) -> LevelRows:
    """The values of a column in every class; more than are kept apart are a reason to read out."""
    y, x, most = quoted(target), quoted(key), len(classes.texts) * (MOST_LEVELS + 1)
    found = base.rows(
        f"SELECT CAST({y} AS TEXT), {x}, count(*), {_weight(base)} FROM {base.source} GROUP BY 1, 2 LIMIT {most + 1}"
    )
    if len(found) > most or len({value for _, value, *_ in found}) > MOST_LEVELS:
        raise ReadOut(f"column {key!r} has more than {MOST_LEVELS:,} levels")
    _check_same(classes, [(text, rows) for text, _, rows, _ in found])
    texts, values, rows, weights = (list(part) for part in zip(*found, strict=True))
    return LevelRows(texts, values, rows, [float(weight) for weight in weights])


def _check_same(classes: ClassRows, found: Sequence[tuple[str, int]]) -> None:
    """Rows of every class are as many as they were, or the query is not the same rows each time."""
    rows = dict.fromkeys(classes.texts, 0)
    for text, count in found:
        rows[text] = rows.get(text, 0) + count
    if rows != dict(zip(classes.texts, classes.rows, strict=True)):
        raise ReadOut(CHANGING)


def database_counts(
    base: Database, model: Fitted, target: str, classes: ClassRows, levels: dict[Key, LevelRows]
) -> tuple[Counts, dict[Key, float]]:
    """Counts by node in the terms of a model that knows all classes and levels, and missing cells by column."""
    place = _places(model, classes)
    sizes = np.zeros(model.n_groups)
    for text, weight in zip(classes.texts, classes.weights, strict=True):
        sizes[place[text]] += weight
    leaves = model.model.leaves
    numeric = [leaf for leaf in leaves if not leaf.family.counts_levels]
    arrays: dict[Any, Twofold] = {}
    for leaf in leaves:
        if leaf.family.counts_levels:
            arrays[leaf.key] = Twofold.of(_levels(model, leaf, levels[leaf.columns[0]], place))
    for start in range(0, len(numeric), MOST_COLUMNS):
        asked = numeric[start : start + MOST_COLUMNS]
        _check_bounds(base, model, asked)
        for leaf, sums, centres in zip(asked, *_sums(base, model, asked, target, (classes, place)), strict=True):
            found = leaf.family.of_sums(sums, centres, leaf.setting)
            assert found is not None
            arrays[leaf.key] = found
    if not all(np.isfinite(array.value).all() for array in arrays.values()):
        raise ReadOut("sums of some column are no numbers")
    whole = float(sizes.sum())
    seen = {leaf.columns[0]: leaf.family.observed(arrays[leaf.key].hi) or 0.0 for leaf in leaves}
    missing = {key: max(0.0, round(whole - observed, 9)) for key, observed in seen.items()}
    counts = {leaf.key: arrays[leaf.key] for leaf in leaves} | {ROOT: Twofold.of(sizes)}
    return Counts(counts, whole), missing


def _places(model: Fitted, classes: ClassRows) -> dict[str, int]:
    """Which class of the model each of the database's is; others than the model's are a reason to read out."""
    known = {name: place for place, name in enumerate(model.names)}
    if any(name not in known for name in classes.names):
        raise ReadOut("classes are written in several ways")
    return {text: known[name] for name, text in zip(classes.names, classes.texts, strict=True)}


def _levels(model: Fitted, leaf: Node, found: LevelRows, place: dict[str, int]) -> np.ndarray:
    """(groups x levels) rows, the library itself saying which level a value is."""
    chunk = next(model.chunks(model.table({leaf.columns[0]: found.values})))
    store, slot = model.schema.places[leaf.columns[0]]
    counts = np.zeros((model.n_groups, len(leaf.setting.levels)))
    codes = getattr(chunk, store)[:, slot].tolist()
    for text, code, weight in zip(found.texts, codes, found.weights, strict=True):
        if code > counts.shape[1]:
            raise ReadOut(f"column {leaf.key!r} has levels that the database writes in several ways")
        if code:
            counts[place[text], code - 1] += weight
    return counts


def _cell(model: Fitted, leaf: Node) -> str:
    """A number as SQL reads it, null where it is missing."""
    cell = f"NULLIF({as_double(leaf.columns[0])}, CAST('NaN' AS DOUBLE PRECISION))"
    for word in number_words(model.schema.missing):
        cell = f"NULLIF({cell}, {_double(word)})"
    return cell


def _double(x: float) -> str:
    return f"CAST({number(x).sql()} AS DOUBLE PRECISION)"


def _sums(
    base: Database, model: Fitted, asked: Sequence[Node], target: str, known: tuple[ClassRows, dict[str, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """(columns x groups x 4) rows, sums, squares and rows at a value that is counted apart; (columns x groups) centres.

    Sums and squares are around the centres, which are the means of the classes.
    """
    (classes, place), add = known, SUMS[base.dialect]
    sums, centres = np.zeros((len(asked), model.n_groups, 4)), np.zeros((len(asked), model.n_groups))
    columns = [f"CAST({quoted(target)} AS TEXT) AS y", f"{_one_weight(base)} AS w"]
    for j, leaf in enumerate(asked):
        columns += [f"{part} AS {name}{j}" for name, part in zip("xs", _parts(model, leaf), strict=True)]
    cells = f"(SELECT {', '.join(columns)} FROM {base.source})"
    means = ", ".join(f"{add}(w * x{j}) / NULLIF({_present(base, f'x{j}')}, 0) AS c{j}" for j in range(len(asked)))
    parts = ", ".join(
        f"max(c{j}), {_present(base, f'x{j}')}, {add}(w * (x{j} - c{j})), {add}(w * ((x{j} - c{j}) * (x{j} - c{j}))), "
        f"{_present(base, f's{j}')}"
        for j in range(len(asked))
    )
    found = base.rows(
        f"SELECT cells.y, count(*), {parts} FROM {cells} AS cells "
        f"JOIN (SELECT y AS k, {means} FROM {cells} AS again GROUP BY y) AS centres ON cells.y = centres.k "
        "GROUP BY cells.y"
    )
    _check_same(classes, [(text, rows) for text, rows, *_ in found])
    for text, _, *rest in found:
        whole = np.array([0.0 if part is None else float(part) for part in rest]).reshape(-1, PARTS)
        centres[:, place[text]], sums[:, place[text]] = whole[:, 0], whole[:, 1:]
    return sums, centres


def _one_weight(base: Database) -> str:
    return "CAST(1 AS DOUBLE PRECISION)" if base.weight is None else as_double(base.weight)


def _present(base: Database, name: str) -> str:
    """What rows weigh whose cell is there."""
    if base.weight is None:
        return f"count({name})"
    return f"coalesce({SUMS[base.dialect]}(CASE WHEN {name} IS NOT NULL THEN w ELSE 0 END), 0)"


def _parts(model: Fitted, leaf: Node) -> tuple[str, str]:
    """A number as its family adds it up, and something where it is the value that is counted apart."""
    cell, at = _cell(model, leaf), leaf.family.counted_apart
    beside = cell if at is None else f"NULLIF({cell}, {_double(at)})"
    apart = "CAST(NULL AS INTEGER)" if at is None else f"CASE WHEN {cell} = {_double(at)} THEN 1 END"
    return (f"ln({beside})" if leaf.family.sums_logarithms else beside), apart


def _check_bounds(base: Database, model: Fitted, asked: Sequence[Node]) -> None:
    """A number outside of what its column may hold is a reason to read out."""
    cells = [_cell(model, leaf) for leaf in asked]
    parts = ", ".join(f"min({x}), max({x}), count(CASE WHEN {x} <> floor({x}) THEN 1 END)" for x in cells)
    found = base.rows(f"SELECT {parts} FROM {base.source}")[0]
    for leaf, low, high, split in zip(asked, found[::3], found[1::3], found[2::3], strict=True):
        if low is None:
            continue
        kind = model.schema[leaf.columns[0]].kind
        odd = {Kind.COUNT: low < 0 or split > 0, Kind.POSITIVE: low <= 0, Kind.AMOUNT: low < 0}.get(kind, False)
        try:
            leaf.family.check(np.array([low, high], dtype=float), leaf.key, 0)
        except ValueError:
            odd = True
        if odd or not np.isfinite([low, high]).all():
            raise ReadOut(f"column {leaf.key!r} holds numbers that a {kind.value} column cannot")
