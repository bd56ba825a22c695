"""What a fitted model answers: explanations, any column from any others, samples, fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Categorical, Family, Joint, Multinormal, Normal, Params, Setting, Text
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node
from softcount.numerics.logspace import softmax_rows
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Kind

PRIOR = "(prior)"
CLASS = "(class)"
COUNT = "(count)"
LOWEST = np.finfo(float).min


# -- explanations


@dataclass(frozen=True, slots=True)
class Explanation:
    """Log-odds of each row's class against another, column by column; they add up exactly."""

    parts: dict[str, np.ndarray]
    chosen: np.ndarray
    against: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return np.sum(list(self.parts.values()), axis=0)


def explained(model: Fitted, table: Table, against: Any = None) -> Explanation:
    """Why each row is in its class: what every column adds in favour of it and against the runner-up."""
    pieces = [_explained_chunk(model, chunk, against) for chunk in model.chunks(table)]
    if not pieces:
        names = [PRIOR, *(label(x.key) for x in model.star.leaves)]
        return Explanation({name: np.zeros(0) for name in names}, np.zeros(0, int), np.zeros(0, int))
    parts = {name: np.concatenate([piece.parts[name] for piece in pieces]) for name in pieces[0].parts}
    chosen = np.concatenate([piece.chosen for piece in pieces])
    return Explanation(parts, chosen, np.concatenate([piece.against for piece in pieces]))


def _explained_chunk(model: Fitted, chunk: Chunk, against: Any) -> Explanation:
    scores = model.star.leaf_scores(chunk, model.estimates)
    with np.errstate(divide="ignore"):
        prior = np.log(model.shares)
    joint = prior + sum(scores.values())
    model.refuse_impossible(chunk, joint)
    rows = np.arange(chunk.n_rows)
    chosen = joint.argmax(axis=1)
    other = _others(model, joint, chosen, against)
    parts = {PRIOR: prior[chosen] - prior[other]}
    with np.errstate(invalid="ignore"):
        parts |= {label(key): score[rows, chosen] - score[rows, other] for key, score in scores.items()}
    return Explanation(
        {name: np.nan_to_num(part, nan=0.0, posinf=np.inf, neginf=-np.inf) for name, part in parts.items()},
        chosen,
        other,
    )


def _others(model: Fitted, joint: np.ndarray, chosen: np.ndarray, against: Any) -> np.ndarray:
    if against is not None:
        if against not in model.names:
            raise DataError(f"there is no class {against!r}. The classes are: {', '.join(map(str, model.names))}.")
        return np.full(len(chosen), model.names.index(against))
    if joint.shape[1] == 1:
        return chosen
    rest = np.maximum(joint, LOWEST)  # a class ruled out can still be the runner-up; the chosen one never is
    rest[np.arange(len(rest)), chosen] = -np.inf
    return rest.argmax(axis=1)


def label(key: Key) -> str:
    """A column's or block's name as text."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


# -- any column from any others


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a numeric column: a mixture of its groups' distributions."""

    weights: np.ndarray
    family: Family
    params: Params

    @property
    def mean(self) -> float:
        return float(self.weights @ self.family.moments(self.params)[0])

    @property
    def variance(self) -> float:
        means, variances = self.family.moments(self.params)
        return float(self.weights @ (variances + (means - self.weights @ means) ** 2))

    def pdf(self, x: Any) -> Any:
        """Density (or probability, for counts) at x."""
        values = np.atleast_1d(np.asarray(x, dtype=float))
        scored = self.family.score(values, self.params, Setting()) + np.atleast_1d(self.family.base(values))[:, None]
        density = np.exp(scored) @ self.weights
        return float(density[0]) if np.ndim(x) == 0 else density

    def cdf(self, x: float) -> float:
        return float(self.weights @ self.family.cdf(self.params, float(x)))

    def quantile(self, q: float) -> float:
        """The value below which a share q lies."""
        if not 0 < q < 1:
            raise DataError(f"a quantile is asked for a share between 0 and 1, not {q}.")
        means, variances = self.family.moments(self.params)
        wide = self.params.get("spread", means**2 + 1.0) if self.family.kind is Kind.REAL else means**2 + 1.0
        spread = np.sqrt(np.where(np.isfinite(variances), variances, wide))
        low, high = float((means - 4 * spread).min()), float((means + 4 * spread).max())
        while self.cdf(low) > q:
            low -= 2 * (high - low)
        while self.cdf(high) < q:
            high += 2 * (high - low)
        if self.family.kind is Kind.COUNT:
            return _first_whole(self.cdf, max(low, -1.0), high, q)
        from scipy.optimize import brentq

        return float(brentq(lambda x: self.cdf(x) - q, low, high, xtol=1e-14 * max(abs(low), abs(high)), rtol=1e-14))


def _first_whole(cdf: Any, low: float, high: float, q: float) -> float:
    lower, upper = int(np.floor(low)), int(np.ceil(high))
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (lower, middle) if cdf(middle) >= q else (middle, upper)
    return float(upper)


def groups_given(model: Fitted, given: Mapping[Key, Any]) -> tuple[np.ndarray, Chunk]:
    """The probability of each group once some cells are known, and those cells encoded."""
    given = dict(given)
    known = given.pop(model.target, None) if model.target in given else None
    chunk = model.single(given)
    with np.errstate(divide="ignore"):
        joint = np.log(model.shares)[None] + sum(model.star.leaf_scores(chunk, model.estimates).values())
    if known is not None:
        if known not in model.names:
            raise DataError(f"there is no class {known!r}. The classes are: {', '.join(map(str, model.names))}.")
        others = np.arange(model.n_groups) != model.names.index(known)
        joint[:, others] = -np.inf
    weights, evidence = softmax_rows(joint)
    if not np.isfinite(evidence).all():
        raise DataError("what is given has probability zero under this model, so nothing follows from it.")
    return weights[0], chunk


def query(model: Fitted, of: Key, given: Mapping[Key, Any] | None = None) -> Any:
    """Any column from any others: level -> probability, or an `Answer` for a number."""
    given = _mapping(given)
    if of in given:
        raise DataError(f"{of!r} is both asked for and given.")
    weights, chunk = groups_given(model, given)
    if of in (model.target, CLASS) and of is not None:
        return dict(zip(model.names, map(float, weights), strict=True))
    leaf = leaf_with(model, of)
    params = conditional(model, leaf, chunk, of)
    if leaf.family.discrete:
        levels = model.schema[of].levels
        return dict(zip(levels, map(float, weights @ params["probability"]), strict=True))
    if isinstance(leaf.family, Text):
        raise DataError(f"{of!r} is text, which cannot be asked for: sample() draws documents, params_ has its words.")
    if leaf.family.name in ("multinomial", "binomial"):
        raise DataError(
            f"{of!r} is part of a {leaf.family.name} block, whose size is not modelled: it cannot be asked for."
        )
    family = model.star.leaf(leaf.key).family
    return Answer(weights, Normal() if isinstance(family, Multinormal) else family, params)


def _mapping(given: Any) -> dict[Key, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise DataError(f"given is a mapping of columns to what they hold, such as {{'age': 40}}, not {given!r}.")
    return dict(given or {})


def leaf_with(model: Fitted, column: Key) -> Node:
    for leaf in model.star.leaves:
        if leaf.key == column or column in leaf.columns:
            return leaf
    known = [str(c) for leaf in model.star.leaves for c in leaf.columns]
    raise DataError(f"the model has no column {column!r}. It has: {', '.join(known)}.")


def conditional(model: Fitted, leaf: Node, chunk: Chunk, of: Key, row: int = 0) -> Params:
    """One column's parameters in each group, given what the row says of the rest of its block."""
    params = leaf.family.public(model.estimates.leaves[leaf.key], leaf.setting)
    if isinstance(leaf.family, Joint):
        return _conditional_table(leaf, params, _block_row(model, leaf, chunk, row), leaf.columns.index(of))
    if isinstance(leaf.family, Multinormal):
        return _conditional_normal(params, _block_row(model, leaf, chunk, row), leaf.columns.index(of))
    return params


def _block_row(model: Fitted, leaf: Node, chunk: Chunk, row: int) -> np.ndarray:
    places = [model.schema.places[c] for c in leaf.columns]
    return np.array([float(getattr(chunk, place.store)[row, place.slot]) for place in places])


def _conditional_table(leaf: Node, params: Params, codes: np.ndarray, want: int) -> Params:
    assert isinstance(leaf.family, Joint)
    table = params["probability"].reshape(-1, *leaf.family.shape)
    for axis in range(table.ndim - 1, 0, -1):
        code = int(codes[axis - 1])
        if axis - 1 == want:
            continue
        known = 1 <= code <= table.shape[axis]
        table = table.take(code - 1, axis) if known else table.sum(axis=axis)
    total = table.sum(axis=1, keepdims=True)
    return {"probability": np.where(total > 0, table / np.where(total > 0, total, 1.0), 1.0 / table.shape[1])}


def _conditional_normal(params: Params, values: np.ndarray, want: int) -> Params:
    seen = ~np.isnan(values)
    seen[want] = False
    mean, cov = params["mean"], params["covariance"]
    if not seen.any():
        return {"mean": mean[:, want], "variance": cov[:, want, want]}
    gain = np.linalg.solve(cov[:, seen][:, :, seen], cov[:, seen, want][..., None])[..., 0]
    centre = mean[:, want] + ((values[seen] - mean[:, seen]) * gain).sum(axis=1)
    return {"mean": centre, "variance": cov[:, want, want] - (cov[:, want, seen] * gain).sum(axis=1)}


# -- samples


def drawn(
    model: Fitted, n: int, given: Mapping[Key, Any] | None, rng: np.random.Generator
) -> tuple[dict[Key, Any], np.ndarray]:
    """Columns of n new rows, some cells held at what is given, and the group of each row."""
    given = _mapping(given)
    weights, chunk = groups_given(model, given)
    groups = rng.choice(model.n_groups, size=n, p=weights / weights.sum())
    columns: dict[Key, Any] = {}
    for leaf in model.star.leaves:
        columns |= _sampled_leaf(model, leaf, groups, given, chunk, rng)
    return columns, groups


def sampled(model: Fitted, n: int, given: Mapping[Key, Any] | None, rng: np.random.Generator) -> dict[str, Any]:
    """Columns of n new rows under their names as text; the class beside them where classes are known."""
    columns, groups = drawn(model, n, given, rng)
    ordered = {str(spec.key): columns[spec.key] for spec in model.schema.used if spec.key in columns}
    ordered |= {label(key): values for key, values in columns.items() if label(key) not in ordered}
    if model.classes is not None:
        name = CLASS if model.target is None else str(model.target)
        ordered[name] = [model.classes[g] for g in groups]
    return ordered


def _sampled_leaf(
    model: Fitted, leaf: Node, groups: np.ndarray, given: Mapping[Key, Any], chunk: Chunk, rng: np.random.Generator
) -> dict[Key, Any]:
    params = leaf.family.public(model.estimates.leaves[leaf.key], leaf.setting)
    if not leaf.columns:
        return {f"{leaf.key}_{i}": part for i, part in enumerate(leaf.family.draw(params, groups, rng).T)}
    held = {c: [given[c]] * len(groups) for c in leaf.columns if c in given}
    if len(held) == len(leaf.columns):
        return held
    if held and isinstance(leaf.family, (Joint, Multinormal)):
        return held | _drawn_around(model, leaf, groups, chunk, [c for c in leaf.columns if c not in held], rng)
    values = leaf.family.draw(params, groups, rng)
    if isinstance(leaf.family, Text):
        return {leaf.key: _documents(values, leaf, rng)}
    if leaf.family.discrete:
        drawn = [leaf.setting.levels[code - 1] for code in values]
        parts = (
            list(zip(*drawn, strict=True)) if isinstance(leaf.family, Joint) and drawn else [drawn] * len(leaf.columns)
        )
        return dict(zip(leaf.columns, map(list, parts), strict=True)) | held
    table = values if leaf.family.block else values[:, None]
    return {c: _typed(model, c, table[:, i]) for i, c in enumerate(leaf.columns)} | held


def _documents(column: Any, leaf: Node, rng: np.random.Generator) -> list[str]:
    """Drawn words as documents, in any order: a bag of words has none."""
    out = []
    for start, stop in pairwise(column.indptr):
        times = column.data[start + 1 : stop].astype(np.int64)
        ids = rng.permutation(np.repeat(column.indices[start + 1 : stop] - 1, times))
        out.append(" ".join(str(leaf.setting.levels[int(i)]) for i in ids))
    return out


def _drawn_around(
    model: Fitted, leaf: Node, groups: np.ndarray, chunk: Chunk, wanted: list[Key], rng: np.random.Generator
) -> dict[Key, Any]:
    """A block's open columns, one after another, each given those already known."""
    rows = np.arange(len(groups))
    values = np.tile(_block_row(model, leaf, chunk, 0), (len(groups), 1))
    for column in wanted:
        at = leaf.columns.index(column)
        distinct, which = np.unique(np.column_stack([groups, values]), axis=0, return_inverse=True)
        for i, state in enumerate(distinct):
            here = rows[which.ravel() == i]
            params = _given_state(model, leaf, state[1:], at)
            family = _single(leaf)
            values[here, at] = family.draw(params, np.full(len(here), int(state[0])), rng)
    out: dict[Key, Any] = {}
    for column in wanted:
        part = values[:, leaf.columns.index(column)]
        levels = model.schema[column].levels
        out[column] = [levels[int(code) - 1] for code in part] if leaf.family.discrete else _typed(model, column, part)
    return out


def _given_state(model: Fitted, leaf: Node, state: np.ndarray, at: int) -> Params:
    params = leaf.family.public(model.estimates.leaves[leaf.key], leaf.setting)
    if isinstance(leaf.family, Joint):
        return _conditional_table(leaf, params, state, at)
    return _conditional_normal(params, state, at)


def _single(leaf: Node) -> Family:
    return Categorical() if leaf.family.discrete else Normal()


def _typed(model: Fitted, column: Key, values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64) if model.schema[column].kind is Kind.COUNT else values


# -- fills


def fills(model: Fitted, table: Table) -> dict[Key, tuple[np.ndarray, np.ndarray]]:
    """For each column with holes: the rows (from 0) and what to put there, the mean or the likeliest level."""
    found: dict[Key, list[tuple[np.ndarray, np.ndarray]]] = {}
    for chunk in model.chunks(table):
        with np.errstate(divide="ignore"):
            joint = np.log(model.shares) + sum(model.star.leaf_scores(chunk, model.estimates).values())
        weights, _ = softmax_rows(joint)
        for leaf in model.star.leaves:
            for column in leaf.columns if leaf.family.kind is not Kind.TEXT else ():  # a missing text stays missing
                rows = np.flatnonzero(_absent(model, chunk, column))
                if len(rows):
                    model.refuse_impossible(chunk, joint, rows)
                    values = _fill_values(model, leaf, chunk, column, rows, weights[rows])
                    found.setdefault(column, []).append((rows + chunk.start, values))
    return {key: tuple(np.concatenate(x) for x in zip(*parts, strict=True)) for key, parts in found.items()}  # type: ignore[misc]


def _absent(model: Fitted, chunk: Chunk, column: Key) -> np.ndarray:
    place = model.schema.places[column]
    values = getattr(chunk, place.store)[:, place.slot]
    return np.isnan(values) if place.store == "reals" else (values == 0) | (values > len(model.schema[column].levels))


def _fill_values(
    model: Fitted, leaf: Node, chunk: Chunk, column: Key, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    if leaf.family.name in ("multinomial", "binomial"):
        return np.zeros(len(rows))
    if isinstance(leaf.family, (Joint, Multinormal)):
        each = [conditional(model, leaf, chunk, column, int(row)) for row in rows]
        return np.array([_best(model, leaf, column, params, w) for params, w in zip(each, weights, strict=True)])
    params = leaf.family.public(model.estimates.leaves[leaf.key], leaf.setting)
    if leaf.family.discrete:
        best = (weights @ params["probability"]).argmax(axis=1)
        return np.array(leaf.setting.levels, dtype=object)[best]
    return weights @ leaf.family.moments(params)[0]


def _best(model: Fitted, leaf: Node, column: Key, params: Params, weights: np.ndarray) -> Any:
    if leaf.family.discrete:
        return model.schema[column].levels[int((weights @ params["probability"]).argmax())]
    return float(weights @ params["mean"])
