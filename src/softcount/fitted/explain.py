"""Explanations: contributions of columns to predictions, influence, nomograms, and quadratic forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate, combinations
from operator import add, call
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import EncodedColumns
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.special import log_of, log_ratio
from softcount.errors import DataError
from softcount.families import Params
from softcount.families.base import family_title
from softcount.families.setting import average_prior
from softcount.fitted.answers import CLASS, labels_in, name_apart
from softcount.fitted.class_answers import column_range
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Nodes
from softcount.models.nodes import Params as Stacked
from softcount.run.local import Threads
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Kind, apart
from softcount.table.text_columns import Map

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted

PRIOR, AGAINST = "(prior)", "(against)"
LOWEST = np.finfo(float).min


class Explanation(Struct, frozen=True):
    """Contributions to the log-odds of each row's class, or of a node's category, against another one.

    The contribution of the class shares has the key `ROOT`. The contributions add up exactly. Networks also give the
    probability of the chosen category.
    """

    parts: dict[Key, np.ndarray]
    chosen: np.ndarray
    against: np.ndarray
    probability: Any = None

    @classmethod
    def concatenate(cls, pieces: Sequence[Explanation], keys: Iterable[Key]) -> Explanation:
        """Join the explanations of chunks; `keys` are those of the parts if there is no chunk."""
        if not pieces:
            return cls({key: np.zeros(0) for key in keys}, np.zeros(0, int), np.zeros(0, int), np.zeros(0))
        parts = {key: np.concatenate([x.parts[key] for x in pieces]) for key in pieces[0].parts}
        chosen, against = (np.concatenate([getattr(x, name) for x in pieces]) for name in ("chosen", "against"))
        stated = [x.probability for x in pieces if x.probability is not None]
        return cls(parts, chosen, against, np.concatenate(stated) if stated else None)

    def named(self, model: Any) -> dict[str, np.ndarray]:
        """Return the contributions by column name, with that of the class shares first."""
        names, ours = labels_in(model), name_apart(model, PRIOR)
        return {ours if key is ROOT else names[key]: part for key, part in self.parts.items()}

    def columns(self, model: Any, classes: np.ndarray) -> dict[str, Any]:
        """Return the class of each row, the class that it is compared with, and the contributions by column name."""
        parts, pair = self.named(model), {CLASS: classes[self.chosen], AGAINST: classes[self.against]}
        return {apart(name, parts): names for name, names in pair.items()} | parts


def explain_rows(model: Fitted, table: Table, against: Any = None, run: Map = map) -> Explanation:
    """Return each column's contribution in favour of each row's class, against `against` or the runner-up.

    Chunks are read with `run` as the `map`.
    """
    compiled = model.scorer.compile(model)
    pieces = [_explain_chunk(model, chunk, compiled, against) for chunk in run(call, table.tasks())]
    return Explanation.concatenate(pieces, [ROOT, *(x.key for x in model.model.leaves)])


def runner_up(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the index of the largest score of each row except the chosen group; the chosen one if it is alone."""
    rest = scores.copy()
    rest[np.arange(len(rest)), chosen] = -np.inf
    return np.asarray(rest.argmax(axis=1))


def _explain_chunk(model: Fitted, chunk: Chunk, compiled: Any, against: Any) -> Explanation:
    found, prior = model.scorer.score_columns(model, chunk, compiled)
    # Subtract each row's best group: a large common term would cost the other terms their digits.
    best = {key: part.max(axis=1, keepdims=True) for key, part in found.items()}
    scores = {key: part - np.where(np.isfinite(best[key]), best[key], 0.0) for key, part in found.items()}
    joint = prior + sum(scores.values())
    model.refuse_impossible(chunk, np.isfinite(joint).any(axis=1))
    rows = np.arange(chunk.n_rows)
    chosen = joint.argmax(axis=1)
    # A class with probability zero can still be the runner-up; the chosen class cannot.
    other = runner_up(np.maximum(joint, LOWEST), chosen)
    if against is not None:
        other = np.full(len(chosen), model.group_of(against))
    parts = {key: log_ratio(score[rows, chosen], score[rows, other]) for key, score in {ROOT: prior, **scores}.items()}
    return Explanation(parts, chosen, other)


# Influence: how far each column of each group departs from the table taken as one class.


def measure_departures(fitted: Fitted) -> dict[Key, np.ndarray]:
    """Return for every column the divergence of each group's distribution from that of the single class, in nats.

    This is AutoClass's influence value I-jk: sum_l p_jkl log(p_jkl / p_*kl), or its integral. The single class is
    estimated from all counts under the same priors, so both are equally cautious on small tables. It reproduces all
    printed digits of AutoClass's values for small soybean; the average of the groups does not.
    """
    single, found = pool_groups(fitted, fitted.counts.map(sum_groups)), {}
    for leaf in fitted.model.leaves:
        # Append the single class as one more group with share 1, so that it is the average of the groups.
        # Use counting units, in which no value underflows.
        groups = fitted.estimates[leaf.key]
        joined = {name: np.concatenate([part, single[leaf.key][name]]) for name, part in groups.items()}
        shares = np.zeros(len(joined[next(iter(joined))]))
        shares[-1] = 1.0
        found[leaf.key] = np.asarray(np.maximum(leaf.family.density(joined, leaf.setting).divergence(shares)[:-1], 0.0))
    return found


def measure_known_influence(fitted: Fitted) -> list[tuple[Key, float]]:
    """Return columns and how far each lowers the log-loss of the known classes, in nats per row, largest first.

    An ensemble measures this on held-out rows. For other models it is a bound from the counts alone: the divergence of
    the classes from the whole table, averaged over the rows' classes, and at most the entropy of the classes.
    """
    keys, gains = (*EncodedColumns.of(fitted.schema).keys, *fitted.texts), fitted.record.gains
    if gains and len(gains) == len(keys):
        found = dict(zip(keys, gains, strict=True))
        leaves = fitted.model.leaves  # the gain of a block is the sum over its columns
        values = {leaf.key: found.get(leaf.key, sum(found.get(key, 0.0) for key in leaf.columns)) for leaf in leaves}
    else:
        shares = fitted.row_shares
        most = float(-(shares[shares > 0] @ np.log(shares[shares > 0])))
        values = {key: min(most, float(far @ shares)) for key, far in measure_departures(fitted).items()}
    return sorted(values.items(), key=lambda pair: -pair[1])


def influence_meaning(fitted: Fitted) -> str:
    if fitted.classes is None:
        return "how far the classes depart from the whole table, in nats"
    if fitted.record.gains:
        return "how much the column lowers the log-loss of held-out rows, in nats per row"
    return "how much the column can lower the log-loss at most, in nats per row"


def sum_other_groups(fitted: Fitted) -> Iterator[Counts]:
    """Yield for each group the counts of all other groups; a single group yields its own counts."""
    if fitted.n_groups == 1:
        yield fitted.counts.map(sum_groups)
    else:
        # Sums from either end: nothing is subtracted, so the counts of the others keep all their digits if one group
        # holds nearly all rows.
        each = [fitted.counts.map(partial(sum_groups, groups=slice(g, g + 1))) for g in range(fitted.n_groups)]
        before, after = list(accumulate(each, add)), list(accumulate(each[::-1], add))[::-1]
        yield after[1]
        for left, right in zip(before, after[2:], strict=False):
            yield left + right
        yield before[-2]


def pool_params(fitted: Fitted, counts: Counts) -> dict[Key, Params]:
    """Return the parameters of one class with these counts, in the user's units."""
    return fitted.model.public(pool_groups(fitted, counts))


def whole_table(fitted: Fitted) -> dict[Key, Params]:
    """Return the parameters of the table taken as one class, without a prior."""
    return pool_params(replace(fitted, imagined=fitted.imagined.using("ml")), fitted.counts.map(sum_groups))


def sum_groups(array: Twofold, groups: slice = slice(None)) -> Twofold:
    """Sum the statistics of these groups into one class."""
    return array[groups].sum(axis=0, keepdims=True)


def pool_groups(fitted: Fitted, counts: Counts) -> Stacked:
    hypers = {x.key: average_prior(fitted.imagined.hypers[x.key]) for x in fitted.model.leaves}
    leaves = Nodes(fitted.model.leaves, fitted.model.nodes.apart)
    return leaves.estimate(leaves.stacked(counts), Imagined(hypers, fitted.imagined.how))


# Column importance: the Bayes factor of a column that differs between classes against one that does not.


def measure_column_evidence(fitted: Fitted) -> dict[Key, float]:
    """Return for every column or block the log Bayes factor of class-specific against common parameters, in nats.

    Parameters are integrated out, so a column without information has a value below 0. Columns are independent given
    the class, so the best subset consists of the columns above 0.
    """
    return _gains(fitted.model, fitted.imagined, fitted.counts)


def measure_evidence_under(one: Fitted, table: Table, memberships: np.ndarray) -> dict[Key, float]:
    """Compute `measure_column_evidence` for classes found from other columns, given as (rows x groups) memberships.

    `one` is the fit of a single class to all columns.
    """
    groups = memberships.shape[1]
    model = one.model.with_leaves(one.model.leaves, groups)
    parts = [
        model.tally_members(model.prepare(chunk, base=False), memberships[chunk.start : chunk.start + chunk.n_rows])
        for chunk in one.chunks(table)
    ]
    return _gains(model, one.imagined, model.named(reduce(lambda left, right: left + right, parts)))


def _gains(model: ClassModel, imagined: Imagined, counts: Counts) -> dict[Key, float]:
    single, found = counts.map(sum_groups), {}
    for leaf in model.leaves:
        family, hyper = leaf.family, imagined.hypers[leaf.key]
        apart = family.evidence(counts.arrays[leaf.key], family.proper(hyper))
        whole = family.evidence(single.arrays[leaf.key], family.proper(average_prior(hyper)))
        found[leaf.key] = float(apart - whole)
    return found


# Contributions of each value to the log-odds of one class against another, for `explain`.

VALUES = 23
"""Number of values of a numeric column in a nomogram."""


class NomogramColumn(Struct, frozen=True):
    """Some values of a column, and the (values x groups) contributions of each value to the group scores."""

    key: Key
    values: Sequence[Any]
    scores: np.ndarray
    numeric: bool

    def odds(self, first: int, second: int) -> np.ndarray:
        return np.asarray(self.scores[:, first] - self.scores[:, second])


class Nomogram(Struct, frozen=True):
    """Columns whose contributions add up, and the scores of an empty row.

    `left_out` lists the leaves with columns that are not shown.
    """

    start: np.ndarray
    columns: tuple[NomogramColumn, ...]
    left_out: tuple[Key, ...]

    def reach(self, first: int, second: int) -> list[NomogramColumn]:
        """Sort the columns by the range of their log-odds between two groups, largest first."""

        def span(column: NomogramColumn) -> float:
            odds = column.odds(first, second)
            odds = odds[np.isfinite(odds)]
            return float(np.ptp(odds)) if len(odds) else 0.0

        return sorted(self.columns, key=span, reverse=True)


def make_nomogram(fitted: Fitted, values: Mapping[Key, Sequence[Any]] | None = None) -> Nomogram | None:
    """Return the contributions of given or automatically chosen values of the columns.

    None if the ensemble is not a sum over columns, if there is one group, or if no column can be shown.
    """
    if fitted.n_groups < 2 or fitted.scorer.together:
        return None
    fitted = replace(fitted, scorer=fitted.scorer.of_complete_rows())
    leaves, joint = fitted.model.leaves, fitted.scorer.is_naive  # an ensemble scores the columns of a block one by one
    alone = [key for leaf in leaves for key in leaf.columns if len(leaf.columns) == 1 or not joint]
    alone = [key for key in alone if fitted.schema[key].kind.numeric or fitted.schema[key].kind.coded]
    if not alone:
        return None
    chosen = {key: values_of(fitted, key) for key in alone} if values is None else values
    left_out = tuple(leaf.key for leaf in leaves if not set(alone).issuperset(leaf.columns))
    # Score rows of one cell each: the contribution of a value is its difference from an empty row.
    total = sum(map(len, chosen.values()))
    rows: dict[Key, list[Any]] = {spec.key: [None] * (total + 1) for spec in fitted.schema.used}
    places, at = {}, 0
    for key, own in chosen.items():
        places[key] = slice(at, at + len(own))
        rows[key][places[key]] = list(own)
        at += len(own)
    compiled = fitted.scorer.compile(fitted)
    pieces = [fitted.scorer.score_columns(fitted, chunk, compiled) for chunk in fitted.chunks(fitted.table(rows))]
    found = {key: np.concatenate([parts[key] for parts, _ in pieces]) for key in pieces[0][0]}
    start = pieces[-1][1][-1] + np.sum([part[-1] for part in found.values()], axis=0)
    scores = {key: found[key][places[key]] - found[key][-1] for key in chosen}
    columns = tuple(
        NomogramColumn(key, list(chosen[key]), scores[key], fitted.schema[key].kind.numeric) for key in chosen
    )
    return Nomogram(start, columns, left_out)


def values_of(fitted: Fitted, key: Key) -> list[Any]:
    """Return the categories of a column, most frequent first if known, or values over the range of a number."""
    spec = fitted.schema[key]
    if spec.kind.numeric:
        low, high = column_range(fitted, key)
        if spec.kind is Kind.COUNT:
            return sorted(set(np.round(np.linspace(low, high, VALUES)).tolist()))
        whole = all(float(x).is_integer() for x in (low, high)) and high - low < VALUES
        return np.arange(low, high + 1).tolist() if whole else np.linspace(low, high, VALUES).tolist()
    known = None if fitted.record.table is None else fitted.record.table.column(key)
    if known is None:
        return list(spec.levels)
    return [spec.levels[place] for place, _ in known.levels]


# Two columns that separate groups: their normal distributions, and the most probable group on a grid.

LOOKED_AT = 20
"""Number of most influential columns from which pairs are formed."""
AROUND = np.linspace(0.0, 2.0 * np.pi, 49)


class NormalPlane(Struct, frozen=True):
    """Two columns that are normal in every group: (groups x 2) means and (groups x 2 x 2) covariances."""

    columns: tuple[Key, Key]
    means: np.ndarray
    covariances: np.ndarray

    def ellipse(self, group: int, part: float) -> np.ndarray:
        """Return (points x 2) coordinates of the ellipse that contains this part of a group under the model.

        In two dimensions the squared Mahalanobis distance is exponential: a part p lies within -2 log(1 - p).
        """
        factor = np.linalg.cholesky(self.covariances[group])
        around = np.stack([np.cos(AROUND), np.sin(AROUND)], axis=1)
        return np.asarray(self.means[group] + np.sqrt(-2.0 * np.log1p(-part)) * around @ factor.T)


def find_normals(fitted: Fitted) -> dict[Key, tuple[np.ndarray, np.ndarray, Key, int]]:
    """Return the normal columns: means and covariances of the leaf, the leaf's key and the column's position in it."""
    found: dict[Key, tuple[np.ndarray, np.ndarray, Key, int]] = {}
    for leaf in fitted.model.leaves:
        normal = leaf.density(fitted.estimates).as_normal() if leaf.columns else None
        if normal is not None:
            for place, column in enumerate(leaf.columns):
                found[column] = (*normal, leaf.key, place)
    return found


def join_normals(known: Mapping[Key, tuple[np.ndarray, np.ndarray, Key, int]], pair: tuple[Key, Key]) -> NormalPlane:
    """Return the joint normal of two columns of `find_normals`; columns of different leaves are independent."""
    (means, spreads, leaf, i), (others, other_spreads, other_leaf, j) = known[pair[0]], known[pair[1]]
    centre = np.stack([means[:, i], others[:, j]], axis=1)
    spread = np.zeros((len(centre), 2, 2))
    spread[:, 0, 0], spread[:, 1, 1] = spreads[:, i, i], other_spreads[:, j, j]
    if leaf == other_leaf:
        spread[:, 0, 1] = spread[:, 1, 0] = spreads[:, i, j]
    return NormalPlane(pair, centre, spread)


def most_separating(fitted: Fitted) -> NormalPlane | None:
    """Return the two normal columns in which the groups overlap least; None if there are fewer than two."""
    known = find_normals(fitted)
    ranked: list[Key] = [
        column for key, _ in fitted.influence() for column in (key if isinstance(key, tuple) else (key,))
    ]
    columns = [column for column in ranked if column in known][:LOOKED_AT]
    planes = [join_normals(known, pair) for pair in combinations(columns, 2)]
    return max(planes, key=lambda plane: _separation(plane, fitted.row_shares), default=None)


def _separation(plane: NormalPlane, shares: np.ndarray) -> float:
    """Return one minus the Bhattacharyya coefficient, summed over pairs of groups weighted by their shares."""
    total = 0.0
    for a, b in combinations(range(len(shares)), 2):
        middle = (plane.covariances[a] + plane.covariances[b]) / 2
        off = plane.means[a] - plane.means[b]
        sizes = [np.linalg.slogdet(part)[1] for part in (middle, plane.covariances[a], plane.covariances[b])]
        distance = off @ np.linalg.solve(middle, off) / 8 + (sizes[0] - (sizes[1] + sizes[2]) / 2) / 2
        total += float(shares[a] * shares[b] * (1.0 - np.exp(-distance)))
    return total


class DecisionGrid(Struct, frozen=True):
    """The most probable group over the ranges of two numeric columns with all others missing, and its probability."""

    ranges: tuple[tuple[float, float], tuple[float, float]]
    x: np.ndarray
    y: np.ndarray
    likeliest: np.ndarray
    sure: np.ndarray


def make_decision_grid(fitted: Fitted, columns: tuple[Key, Key], steps: tuple[int, int] = (48, 36)) -> DecisionGrid:
    """Evaluate the most probable group at the midpoint of every cell of a (y x x) grid."""
    ranges = (low, high), (below, above) = column_range(fitted, columns[0]), column_range(fitted, columns[1])
    x = low + (np.arange(steps[0]) + 0.5) * (high - low) / steps[0]
    y = below + (np.arange(steps[1]) + 0.5) * (above - below) / steps[1]
    across, up = np.meshgrid(x, y)
    cells: dict[Key, list[Any]] = {spec.key: [None] * across.size for spec in fitted.schema.used}
    for key, values in zip(columns, (across, up), strict=True):
        count = fitted.schema[key].kind is Kind.COUNT
        cells[key] = (np.round(values) if count else values).ravel().tolist()
    with Threads(1) as threads:
        proba = fitted.proba(fitted.table(cells), threads)
    shape = across.shape
    return DecisionGrid(ranges, x, y, proba.argmax(axis=1).reshape(shape), proba.max(axis=1).reshape(shape))


# The boundary between two classes of normal columns: quadratic, or linear if the variances are shared.


class Quadratic(Struct, frozen=True, eq=False):
    """Log-odds of one class against another as a quadratic function: z' square z + slope' z + constant, z = x - centre.

    The centre is the mean of the first class, which avoids cancellation if values are far from 0. If the classes share
    all covariances, `square` is 0 and the function is linear. Call it with rows to compute their log-odds.

    Attributes
    ----------
    classes : tuple
        The class, and the one it is compared with.
    columns : tuple
        Names of the columns.
    centre : ndarray of shape (n_columns,)
        The centre.
    square : ndarray of shape (n_columns, n_columns)
        Quadratic coefficients.
    slope : ndarray of shape (n_columns,)
        Linear coefficients.
    constant : float
        Log-odds at the centre.
    """

    classes: tuple[Any, Any]
    columns: tuple[Key, ...]
    centre: np.ndarray
    square: np.ndarray
    slope: np.ndarray
    constant: float

    def __call__(self, X: Any) -> np.ndarray:
        """Return the log-odds of rows of these columns, in their order."""
        z = np.asarray(X, dtype=float).reshape(-1, len(self.columns)) - self.centre
        return np.asarray(np.einsum("ni,ij,nj->n", z, self.square, z) + z @ self.slope + self.constant)

    @property
    def roots(self) -> tuple[float, ...]:
        """The values of a single column at which both classes are equally probable, ascending: 0, 1 or 2 values.

        >>> one = Quadratic(("a", "b"), ("x",), np.array([10.0]), np.array([[1.0]]), np.array([0.0]), -4.0)
        >>> one.roots
        (8.0, 12.0)
        """
        if len(self.columns) != 1:
            raise DataError(f"roots are of one column, and the boundary is in {len(self.columns)}. Call it with rows.")
        a, b, c = float(self.square[0, 0]), float(self.slope[0]), self.constant
        return tuple(sorted(float(self.centre[0] + z) for z in _roots(a, b, c)))


def _roots(a: float, b: float, c: float) -> list[float]:
    if a == 0:
        return [] if b == 0 else [-c / b]
    under = b * b - 4 * a * c
    if under < 0:
        return []
    # Compute the larger root first: the textbook formula for the other would cancel.
    q = -0.5 * (b + np.copysign(np.sqrt(under), b))
    return [q / a] if q == 0 or under == 0 else [q / a, c / q]


def find_quadratic_form(model: Fitted, first: Any, second: Any) -> Quadratic:
    """Return the log-odds of the first class against the second, for a model whose columns are all normal."""
    from scipy.linalg import block_diag

    one, other = model.group_of(first), model.group_of(second)
    columns = tuple(column for leaf in model.model.leaves for column in leaf.columns)
    means, spreads = [], []
    for leaf in model.model.leaves:
        found = leaf.density(model.estimates).as_normal()
        if found is None:
            raise DataError(
                f"column {leaf.key!r} ({family_title(leaf.family)}) is not normal within the classes, so their "
                "boundary is not quadratic. Use normal or multinormal columns, or to_linear()."
            )
        means.append(found[0][[one, other]])
        spreads.append(found[1][[one, other]])
    mean = np.concatenate(means, axis=1)
    inner = [block_diag(*(np.linalg.inv(spread[side]) for spread in spreads)) for side in (0, 1)]
    logs = [sum(np.linalg.slogdet(spread[side])[1] for spread in spreads) for side in (0, 1)]
    away = mean[0] - mean[1]
    prior = log_of(model.shares[one]) - log_of(model.shares[other])
    constant = prior - 0.5 * (logs[0] - logs[1]) + 0.5 * away @ inner[1] @ away
    return Quadratic((first, second), columns, mean[0], 0.5 * (inner[1] - inner[0]), inner[1] @ away, float(constant))
