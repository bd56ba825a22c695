"""Expert beliefs about single cells, n of m prior rows: as a prior, and compared with the data."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.special import log_dirichlet_multinomial
from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.priors import Dirichlet, Expert
from softcount.table.schema import Key

FIELDS = ("column", "level", "class", "n", "m")


class ExpertBelief(Struct, frozen=True):
    """n of m prior rows of one class (or of each class if `group` is None) have this category.

    `where` locates the belief in error messages.
    """

    where: str
    column: Any
    level: Any
    group: Any
    n: float
    m: float


class BelievedCells(Struct, frozen=True):
    """One column of a fitted model: its categories with those of the expert, the counts, and the beliefs.

    `believed` holds (classes x levels) prior counts, NaN without a belief. `rows` holds the prior rows of each class.
    """

    levels: list[Any]
    counts: np.ndarray
    believed: np.ndarray
    rows: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Prior counts: rows without a category are shared by the other categories; without any belief, 1 each."""
        silent = np.isnan(self.believed)
        rest = self.rows - np.where(silent, 0.0, self.believed).sum(axis=1)
        share = np.maximum(rest, 0.0) / np.maximum(silent.sum(axis=1), 1)
        filled = np.where(silent, share[:, None], self.believed)
        return np.where(silent.all(axis=1, keepdims=True), 1.0, filled)


def expert_prior(beliefs: Any, model: Any) -> dict[Key, Dirichlet]:
    """Turn an expert's beliefs into the `prior` of a `NaiveBayes` or `Mixture`.

    Prior rows to which the expert gives no category are shared evenly by the other categories; a class without any
    belief gets 1 per category.

    Parameters
    ----------
    beliefs : str, path or dict
        A CSV file with the columns column, level, class, n, m; a dict with these columns; or a dict of (column, level,
        class) to `Expert(n, m)`. A belief without a class applies to every class that has no belief about the column.
    model : estimator
        A fitted estimator with the classes and categories.

    Returns
    -------
    dict
        A `Dirichlet` with a group for each class, by column.

    See Also
    --------
    compare_beliefs : Compares the beliefs with the data.
    Expert : One belief.

    Examples
    --------
    >>> from softcount.estimators.naive_bayes import NaiveBayes
    >>> X, y = {"Sky": ["grey", "blue", "grey", "red"]}, ["rain", "sun", "rain", "sun"]
    >>> prior = expert_prior({("Sky", "grey", "rain"): Expert(8, 10)}, NaiveBayes().fit(X, y))
    >>> prior["Sky"].levels, prior["Sky"].alpha.tolist()
    (('blue', 'grey', 'red'), [[1.0, 8.0, 1.0], [1.0, 1.0, 1.0]])
    >>> NaiveBayes(prior=prior).fit(X, y).params_["Sky"]["probability"][0].round(4).tolist()   # 10 of 12 are grey
    [0.0833, 0.8333, 0.0833]
    """
    return {key: Dirichlet(cells.alpha, tuple(cells.levels)) for key, cells in _cells(beliefs, model).items()}


def compare_beliefs(beliefs: Any, model: Any) -> Any:
    """Compare an expert's share of each cell with the data and with both together.

    Parameters
    ----------
    beliefs : str, path or dict
        The beliefs, as in `expert_prior`.
    model : estimator
        A fitted estimator with the classes and categories.

    Returns
    -------
    Arrow table
        A line for each belief: `expert` is its share, `data` the share in the data (null if the class has no rows), and
        `both` that of the prior with the data. `surprise_bits` refers to the whole column in that class: how many bits
        more its rows take under the expert's prior than under 1 prior row per category. Below 0 the expert's prior is
        better.

    See Also
    --------
    expert_prior : Turns the beliefs into a prior.

    Examples
    --------
    >>> from softcount.estimators.naive_bayes import NaiveBayes
    >>> X, y = {"Sky": ["grey", "blue", "grey", "red"]}, ["rain", "sun", "rain", "sun"]
    >>> found = compare_beliefs({("Sky", "grey", "rain"): Expert(8, 10)}, NaiveBayes().fit(X, y))
    >>> found.select(["class", "expert", "data"]).to_pylist()
    [{'class': 'rain', 'expert': 0.8, 'data': 1.0}]
    """
    import pyarrow as pa

    names, lines = _fitted(model).names, []
    for key, cells in _cells(beliefs, model).items():
        for group, place in np.argwhere(~np.isnan(cells.believed)).tolist():
            counts, alpha, rows = cells.counts[group], cells.alpha[group], float(cells.counts[group].sum())
            n, m = float(cells.believed[group, place]), float(cells.rows[group])
            surprise = float(
                log_dirichlet_multinomial(counts, np.ones(len(counts))) - log_dirichlet_multinomial(counts, alpha)
            )
            lines.append(
                {
                    "column": str(key),
                    "level": str(cells.levels[place]),
                    "class": str(names[group]),
                    "n": n,
                    "m": m,
                    "expert": n / m,
                    "rows": rows,
                    "data": float(counts[place] / rows) if rows else None,
                    "both": float((counts[place] + alpha[place]) / (counts + alpha).sum()),
                    "surprise_bits": surprise / float(np.log(2)),
                }
            )
    return pa.Table.from_pylist(lines)


# From beliefs to cells of the model


def _fitted(model: Any) -> Fitted:
    fitted = getattr(model, "fitted_", model)
    if not isinstance(fitted, Fitted):
        raise DataError("an expert's beliefs refer to the classes of a fitted NaiveBayes or Mixture. Fit one first.")
    return fitted


def _cells(beliefs: Any, model: Any) -> dict[Key, BelievedCells]:
    fitted = _fitted(model)
    by_column: dict[Key, list[ExpertBelief]] = {}
    known = {
        leaf.key: list(leaf.setting.levels)
        for leaf in fitted.model.leaves
        if leaf.family.facts.kind.coded and not isinstance(leaf.key, tuple)
    }
    found = [_checked(*parts) for parts in _read(beliefs)]
    if not found:
        raise DataError("no belief is given: give at least one of column, level, class, n, m.")
    for belief in found:
        key = _among(belief.column, known, f"{belief.where}: the model has no column {belief.column!r} with levels")
        by_column.setdefault(key, []).append(belief)
    return {
        key: _filled(own, known[key], fitted.names, np.maximum(fitted.counts.arrays[key].value, 0.0))
        for key, own in by_column.items()
    }


def _filled(beliefs: list[ExpertBelief], known: list[Any], names: list[Any], counts: np.ndarray) -> BelievedCells:
    """Return the cells of one column; beliefs about every class apply to classes without a separate belief."""
    placed = [(belief, _level(belief, known), _group(belief, names)) for belief in beliefs]
    levels = [*known, *dict.fromkeys(level for _, level, _ in placed if level not in known)]
    believed, rows = np.full((len(names), len(levels)), np.nan), np.zeros(len(names))
    for group in range(len(names)):
        own = [part for part in placed if part[2] == group] or [part for part in placed if part[2] is None]
        for belief, level, _ in own:
            place = levels.index(level)
            if not np.isnan(believed[group, place]):
                raise DataError(f"{belief.where}: this column, level and class have a belief already. Give one.")
            believed[group, place] = belief.n
        for (first, *_), (belief, *_) in pairwise(own):
            if belief.m != first.m:
                raise DataError(
                    f"{belief.where}: m is {belief.m:g}, but {first.where} has {first.m:g} prior rows of the same "
                    f"class. Give every level of column {belief.column!r} in a class the same m."
                )
        rows[group] = own[0][0].m if own else 0.0
    padded = np.concatenate([counts, np.zeros((len(names), len(levels) - len(known)))], axis=1)
    total, full = np.nansum(believed, axis=1), ~np.isnan(believed).any(axis=1)
    for group in np.flatnonzero((total > rows * (1 + 1e-9)) | (full & (total < rows * (1 - 1e-9)))).tolist():
        raise DataError(
            f"column {beliefs[0].column!r}, class {names[group]!r}: the levels' n sum to {total[group]:g}, "
            f"and m is {rows[group]:g}. They must sum to m, or to less if some categories are not named."
        )
    return BelievedCells(levels, padded, believed, rows)


def _level(belief: ExpertBelief, known: Sequence[Any]) -> Any:
    """Return the category that a belief refers to; a new one is converted to the type of the known categories."""
    for level in known:
        if belief.level == level or str(belief.level) == str(level):
            return level
    if all(isinstance(level, str) for level in known):
        return str(belief.level)
    kind = type(known[0])
    try:
        number = float(belief.level)
        if kind in (int, float) and kind(number) == number:
            return kind(number)
    except (TypeError, ValueError, OverflowError):
        pass
    levels = ", ".join(map(str, known))
    raise DataError(f"{belief.where}: {belief.level!r} is not a level of column {belief.column!r}, which has {levels}.")


def _group(belief: ExpertBelief, names: list[Any]) -> int | None:
    """Return the index of the class that a belief refers to; None for every class."""
    if belief.group is None:
        return None
    return names.index(_among(belief.group, names, f"{belief.where}: the model has no class {belief.group!r}"))


def _among(name: Any, known: Iterable[Any], problem: str) -> Any:
    """Return the element of `known` that equals the name, or whose text does."""
    for one in known:
        if one == name or str(one) == str(name):
            return one
    raise DataError(f"{problem}. There are: {', '.join(map(str, known)) or 'none'}.")


# Reading


def _read(beliefs: Any) -> Iterator[tuple[Any, ...]]:
    """Yield for each belief its location, column, category, class, n and m."""
    if isinstance(beliefs, str | Path):
        path = Path(beliefs)
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                lines = csv.DictReader(file)
                missing = [name for name in FIELDS if name != "class" and name not in (lines.fieldnames or ())]
                if missing:
                    raise DataError(f"{path}: there is no column {missing[0]!r}. Beliefs have: {', '.join(FIELDS)}.")
                for line in lines:
                    column, level, group, n, m = (line.get(name) for name in FIELDS)
                    yield f"{path}, line {lines.line_num}", column, level, group or None, n, m
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the beliefs cannot be read: {error}.") from None
    elif isinstance(beliefs, Mapping) and set(FIELDS) - {"class"} <= set(beliefs):
        lists = [list(beliefs.get(name, [None] * len(beliefs["n"]))) for name in FIELDS]
        if len(set(map(len, lists))) > 1:
            raise DataError(f"the columns {', '.join(FIELDS)} of the beliefs have different lengths.")
        for number, cells in enumerate(zip(*lists, strict=True), 1):
            yield f"belief {number}", *cells
    elif isinstance(beliefs, Mapping):
        for cell, own in beliefs.items():
            if not isinstance(cell, tuple) or len(cell) not in (2, 3) or not isinstance(own, Expert) or np.ndim(own.n):
                raise DataError(f"{cell!r}: {own!r} is not a belief. Give (column, level, class): Expert(n, m).")
            yield str(cell), cell[0], cell[1], cell[2] if len(cell) == 3 else None, own.n, own.m
    else:
        raise DataError(f"beliefs are a CSV file or a mapping, not {type(beliefs).__name__}.")


def _checked(where: str, column: Hashable, level: Hashable, group: Hashable, n: Any, m: Any) -> ExpertBelief:
    try:
        n, m = float(n), float(m)
    except (TypeError, ValueError):
        raise DataError(f"{where}: n is {n!r} and m is {m!r}. Both are numbers: n of m prior rows.") from None
    try:
        Expert(n, m)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if m == 0:
        raise DataError(f"{where}: m is 0. Such a belief has no effect: leave it out.")
    return ExpertBelief(where, column, level, group, n, m)
