"""Differences between two models, and classes of k-means centres."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core.counts import ROOT, Counts, Twofold
from softcount.errors import DataError
from softcount.families import Hyper, Normal, Setting
from softcount.fitted.fitted import Fitted, FittedTable, fitted_table
from softcount.models.nodes import Imagined, Node
from softcount.models.stacks import Kernels
from softcount.models.star import Star
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.learn.k_means import Centres

SHARES, PARTS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999), 12
"""Quantiles of either model that divide the number line; each interval between them gets PARTS grid points."""


class ColumnChange(Struct, frozen=True):
    """A column in two models.

    Attributes
    ----------
    column : object
        The column.
    moved : float
        Total variation distance between its two distributions, from 0 to 1.
    before, after : dict or answer
        The distributions, as `query` returns them.
    within : tuple or None
        The class in which the column changed most, and the distance there.
    """

    column: Key
    moved: float
    before: Any
    after: Any
    within: tuple[Any, float] | None = None


class ClassChange(Struct, frozen=True):
    """A class in two models.

    Attributes
    ----------
    name : object
        The class.
    before, after : float or None
        Its share; None if that model does not have the class.
    """

    name: Any
    before: float | None
    after: float | None


class ModelChanges(Struct, frozen=True):
    """Differences between two models.

    Attributes
    ----------
    rows : tuple of float
        Weight of the rows before and after.
    parameters : tuple of int
        Number of parameters before and after.
    schema : tuple of str
        Differences between the columns.
    classes : tuple of ClassChange
        Shares of the classes.
    columns : tuple of ColumnChange
        The columns, those that changed most first.
    nothing : bool
        Whether nothing changed.
    """

    rows: tuple[float, float]
    parameters: tuple[int, int]
    schema: tuple[str, ...]
    classes: tuple[ClassChange, ...]
    columns: tuple[ColumnChange, ...]

    def __repr__(self) -> str:
        moved = ", ".join(f"{line.column} {line.moved:.3g}" for line in self.columns if line.moved) or "no column"
        return f"<{type(self).__name__} from {self.rows[0]:,.6g} to {self.rows[1]:,.6g} rows, moved: {moved}>"

    @property
    def nothing(self) -> bool:
        shares = all(line.before == line.after for line in self.classes)
        alike = self.rows[0] == self.rows[1] and shares and not self.schema
        return alike and not any(line.moved for line in self.columns)


def model_changes(old: Any, new: Any) -> ModelChanges:
    """Compare an old model with a new one of the same columns.

    Use it after a refit to find the columns, categories and classes that changed. A column's change is how much
    probability moved: half the sum of absolute differences of its distributions (the total variation distance).

    Parameters
    ----------
    old, new : estimator
        Fitted models, or `fitted_` of them.

    Returns
    -------
    ModelChanges
        `rows` and `parameters` of both, changes of the `schema`, the shares of `classes`, and `columns` with the
        largest change first, each with `moved`, the answers of both models, and the class in which most moved.

    See Also
    --------
    compare : Compares classifiers by their predictions.

    Examples
    --------
    >>> import softcount as sc
    >>> fruit = [sc.NaiveBayes().fit({"colour": list(c)}, list("aabb")) for c in ("rrgg", "rrgr")]
    >>> [(change.column, round(change.moved, 3)) for change in model_changes(*fruit).columns]
    [('colour', 0.125)]
    """
    before, after = _find_table_model(old), _find_table_model(new)
    answers = []
    for model in (before, after):  # all columns except the class
        columns = {spec.key for spec in model.schema.used} - {model.target}
        answers.append({key: found for key, found in model.query().items() if key in columns})
    both = [key for key in answers[0] if key in answers[1]]
    # The numbers of classes that were found mean nothing in another model.
    known = [[] if model.target is None else model.names for model in (before, after)]
    names = [name for name in known[0] if name in known[1]]
    found = []
    for key in both:
        one, other = (every[key] for every in answers)
        edges, within = _edges(one, other), None
        if names and before.target == after.target:
            moved = []
            for name in names:
                was, now = (model.query(key, {model.target: name}) for model in (before, after))
                moved.append((name, _distance(was, now, edges)))
            within = max(moved, key=lambda pair: pair[1])
        found.append(ColumnChange(key, _distance(one, other, edges), one, other, within))
    classes: list[ClassChange] = []
    if all(known):
        was, now = (dict(zip(x.names, map(float, x.shares), strict=True)) for x in (before, after))
        classes = [ClassChange(name, was.get(name), now.get(name)) for name in dict.fromkeys([*was, *now])]
    return ModelChanges(
        (before.counts.rows, after.counts.rows),
        (before.n_parameters, after.n_parameters),
        tuple(_schema_changes(before, after)),
        tuple(classes),
        tuple(sorted(found, key=lambda change: -change.moved)),
    )


def _find_table_model(model: Any) -> Any:
    found = fitted_table(model)
    if found is None:
        raise DataError(f"changes needs two fitted models of a table, not {type(model).__name__}.")
    return found


def _edges(one: Any, other: Any) -> np.ndarray:
    """Return the grid on which two numeric answers are compared; it is finer where either has more probability."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        return np.zeros(0)
    ends = [[answer.quantile(share) for share in SHARES] for answer in (one, other)]
    cuts = [np.linspace(low, high, PARTS) for own in ends for low, high in pairwise(own)]
    return np.unique(np.concatenate(cuts))


def _distance(one: Any, other: Any, edges: np.ndarray) -> float:
    """Return the total variation distance, over categories or over the intervals between `edges`."""
    levels = [isinstance(answer, Mapping) for answer in (one, other)]
    if all(levels):
        every = dict.fromkeys([*one, *other])
        return float(0.5 * sum(abs(one.get(level, 0.0) - other.get(level, 0.0)) for level in every))
    if any(levels):
        return 1.0  # categories and numbers have nothing in common
    parts = [np.diff([0.0, *(answer.cdf(float(edge)) for edge in edges), 1.0]) for answer in (one, other)]
    return float(0.5 * np.abs(parts[0] - parts[1]).sum())


# -- columns and classes


def _schema_changes(before: FittedTable, after: FittedTable) -> Iterable[str]:
    old, new = ({spec.key: spec for spec in model.schema.fields} for model in (before, after))
    yield from (f"column {key!r} is new ({_describe_field(spec)})" for key, spec in new.items() if key not in old)
    yield from (
        f"column {key!r} is gone (it was {_describe_field(spec)})" for key, spec in old.items() if key not in new
    )
    for key in (key for key in old if key in new):
        if _describe_field(old[key]) != _describe_field(new[key]):
            yield f"column {key!r} was {_describe_field(old[key])} and is {_describe_field(new[key])}"
        if old[key].used and new[key].used and old[key].kind.coded and new[key].kind.coded:
            for one, other, how in ((new[key], old[key], "new"), (old[key], new[key], "gone")):
                levels = [level for level in one.levels if level not in set(other.levels)]
                if levels:
                    more = f" and {len(levels) - 5} more" if len(levels) > 5 else ""
                    shown = ", ".join(map(repr, levels[:5])) + more
                    yield f"column {key!r}: {how} {'level' if len(levels) == 1 else 'levels'} {shown}"
    if before.target != after.target:
        yield f"the class was {before.target!r} and is {after.target!r}"


def _describe_field(spec: Field) -> str:
    return f"{spec.kind}" if spec.used else f"{spec.kind}, left out"


# k-means as a mixture model whose most probable class is the nearest centre.

NOTE = (
    "k-means has no probabilities. These assume clusters of equal share and equal variance in every direction, so "
    "the most probable cluster of a complete row is the nearest one, as in `predict`."
)
NARROWEST = 1e-12
"""The minimum variance as a share of the variance of the centres, for rows that all lie on their centres."""


def make_centre_classes(found: Centres, keys: Sequence[Key]) -> Fitted:
    """Return the clusters of k-means as classes; spherical k-means raises an error."""
    if found.frame.unit:
        raise DataError(
            "spherical k-means compares directions of complete rows, so single columns cannot be queried and there "
            "is no explorer. See its centres: report."
        )
    groups, columns = found.centres.shape
    apart = float(found.centres.var(axis=0).mean())
    width = found.inertia / (float(found.sizes.sum()) * columns)
    variance = np.full(groups, max(width, NARROWEST * apart, 1e-300))
    anchors = found.frame.anchor.tolist()
    schema = Schema(tuple(Field(key, Kind.REAL, "k-means", anchor=a) for key, a in zip(keys, anchors, strict=True)))
    leaves = tuple(
        Node(spec.key, (spec.key,), Normal(), Setting((spec.key,), groups, anchor=np.array([spec.anchor])))
        for spec in schema.fields
    )
    star = Star(schema, leaves, groups, Kernels(groups))
    means = found.centres - found.frame.anchor
    params = {leaf.key: {"mean": own, "variance": variance} for leaf, own in zip(star.leaves, means.T, strict=True)}
    arrays: dict[Hashable, Twofold] = {ROOT: Twofold.of(found.sizes)}
    for leaf, own in zip(star.leaves, means.T, strict=True):
        arrays[leaf.key] = Twofold.of(np.stack([found.sizes, found.sizes * own, found.sizes * (own**2 + variance)], 1))
    shares = np.full(groups, 1.0 / groups)
    counts = Counts(arrays, float(found.sizes.sum()))
    priors = dict.fromkeys([node.key for node in star.nodes], 1.0)
    known: dict[Key, Hyper] = {ROOT: {"alpha": np.full(groups, 1.0 / groups)}}
    imagined = Imagined(star.nodes.hypers(counts, priors, known), "ml")
    return Fitted(star, star.params(shares, params), counts, imagined, estimate="ml", notes=list(found.notes))
