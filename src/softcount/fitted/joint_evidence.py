"""What is given to a joint model, as weighted rows of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import log_of, log_sum_exp, ndtr
from softcount.errors import DataError
from softcount.fitted.conditions import Condition, Levels, Piece, condition_of, impossible, number_reader, within
from softcount.sources import wording
from softcount.table.schema import Key
from softcount.tree_mixtures.columns import Categories, Number
from softcount.tree_mixtures.columns import Levels as FewValues
from softcount.tree_mixtures.mixture import NO_SOFT, Parts, TreeMixture

if TYPE_CHECKING:
    from softcount.fitted.joint import FittedJoint

INF = float("inf")
NODES = 512
"""Points at which ranges of numbers in one normal vector are integrated, for all ranges together."""
PER_PANEL = 16


class Evidence(Struct, frozen=True, eq=False, dict=True):
    """Weighted rows that hold what is given, and the range of the transform of every number that is given as one.

    `first` (rows x K) are the log-weights that the densities are added to, and `members` the posterior probabilities of
    rows and components, which sum to one; `log_total` is the log-probability of what is given.
    """

    mixture: TreeMixture
    parts: Parts
    first: np.ndarray
    members: np.ndarray
    ranges: dict[Key, Condition]
    log_total: float

    @cached_property
    def code_shares(self) -> np.ndarray:
        """The posteriors of the codes of all parts."""
        return self.mixture.code_shares(self.parts, self.members)

    def joint_shares(self, wanted: Sequence[int]) -> np.ndarray:
        """Return the joint posterior of the codes of some parts, an axis for each."""
        sizes = [self.mixture.layout.sizes[part] for part in wanted]
        combinations = np.indices(sizes).reshape(len(sizes), -1)
        total = np.zeros(combinations.shape[1])
        for row in range(self.parts.n_rows):
            one = self.parts.take(np.full(len(total), row))
            first = np.repeat(self.first[row : row + 1], len(total), axis=0)
            for part, codes in zip(wanted, combinations, strict=True):
                one.codes[:, part] = codes
                if len(one.soft):
                    first = first + self.parts.soft[row][:, self.mixture.layout.starts[part] + codes].T
            total += np.exp(log_sum_exp(self.mixture.log_joint(one, first), axis=1) - self.log_total)
        return np.asarray((total / total.sum()).reshape(sizes))


class Given(Struct, eq=False):
    """The parts of one row with what is given, before ranges of numbers are expanded."""

    codes: np.ndarray
    numbers: np.ndarray
    soft: np.ndarray
    cases: list[tuple[int, np.ndarray]]
    """Spiked numbers given by ranges that hold numbers and spikes: their part, and the log-evidence of its codes."""
    intervals: dict[int, list[tuple[float, float]]]


def read_evidence(fitted: FittedJoint, known: Mapping[Key, Any]) -> Evidence:
    """Return what is given of the columns as evidence; an error if it is impossible."""
    ranges = {key: found for key, value in known.items() if (found := condition_of(value)) is not None}
    chunk = fitted.single({key: value for key, value in known.items() if key not in ranges})
    codes, numbers, _ = fitted.trees.coding.encode(fitted.columns(chunk))
    mixture = fitted.mixture
    given = Given(codes[0], numbers[0], np.zeros(int(mixture.layout.starts[-1])), [], {})
    for key, condition in ranges.items():
        _add_condition(fitted, given, key, condition)
    parts, first = _expand(fitted, given)
    logs = mixture.log_joint(parts, first)
    total = float(log_sum_exp(logs.ravel()))
    if not np.isfinite(total):
        raise impossible()
    return Evidence(mixture, parts, first, np.exp(logs - total), ranges, total)


def _add_condition(fitted: FittedJoint, given: Given, key: Key, condition: Condition) -> None:
    own = fitted.part_of(key)
    starts = fitted.mixture.layout.starts
    levels = slice(int(starts[own.part]), int(starts[own.part]) + own.size) if own.part >= 0 else slice(0, 0)
    nothing = DataError(f"what is given of column {key!r} ({condition!r}) leaves none of its values possible.")
    if isinstance(own, Categories):
        allowed = condition.allows(Levels(wording.column(key), fitted.schema[key].levels))
        shares = np.bincount(own.codes[1:-1], own.shares * allowed, minlength=own.size)
        if not shares.any():
            raise nothing
        given.soft[levels] += log_of(shares)
        return
    pieces = condition.pieces(number_reader(fitted, key))
    if isinstance(own, FewValues):
        inside = within(pieces, own.values)
        if not inside.any():
            raise nothing
        given.soft[levels] += log_of(inside.astype(float))
        return
    spikes = within(pieces, own.spikes)
    intervals = find_intervals(fitted, own, pieces)
    if intervals == [(-INF, INF)] and spikes.all():
        return
    if not intervals and not spikes.any():
        raise nothing
    if own.part >= 0:
        at_spikes = log_of(np.concatenate([[0.0], spikes.astype(float)]))
        at_numbers = log_of(np.concatenate([[1.0], np.zeros(len(own.spikes))]))
        if not intervals:
            given.soft[levels] += at_spikes
            return
        if spikes.any():
            given.cases.append((own.number, at_spikes))
        else:
            given.soft[levels] += at_numbers
    given.intervals[own.number] = intervals


def find_intervals(fitted: FittedJoint, own: Number, pieces: list[Piece]) -> list[tuple[float, float]]:
    """Return the ranges of the transform that a condition allows; a whole number covers half a unit on both sides."""
    half = 0.5 if fitted.schema[own.key].whole else 0.0
    spread = 1e-9 * float(np.ptp(own.unit.x))
    found = []
    for piece in pieces:
        low = piece.low - half if piece.low_in else piece.low + half
        high = piece.high + half if piece.high_in else piece.high - half
        if low == high:
            if low in own.spikes:
                continue
            low, high = low - spread, high + spread
        if low < high:
            ends = own.unit.forward(np.array([max(low, -1e300), min(high, 1e300)]))[0]
            found.append((-INF if low == -INF else float(ends[0]), INF if high == INF else float(ends[1])))
    return found


def _expand(fitted: FittedJoint, given: Given) -> tuple[Parts, np.ndarray]:
    """Return weighted rows: a case for each way to meet the ranges of spiked numbers, and the nodes of integrals."""
    mixture = fitted.mixture
    part_of = {own.number: own.part for own in fitted.trees.coding.numbers}
    rows: list[tuple[Parts, np.ndarray]] = []
    for choice in product((False, True), repeat=len(given.cases)):
        soft, intervals = given.soft.copy(), dict(given.intervals)
        for at_spike, (number, logs) in zip(choice, given.cases, strict=True):
            start = int(mixture.layout.starts[part_of[number]])
            own = slice(start, start + len(logs))
            if at_spike:
                soft[own] += logs
                del intervals[number]
            else:
                soft[own] += np.concatenate([[0.0], np.full(len(logs) - 1, -INF)])
        one = Parts(given.codes[None], given.numbers[None], np.ones(1), soft[None, None] if soft.any() else NO_SOFT)
        rows.append(_integrate(fitted, one, intervals))
    parts = [part for part, _ in rows]
    softs = [np.broadcast_to(p.soft if len(p.soft) else np.zeros((1, 1, len(given.soft))),
                             (p.n_rows, mixture.n_components, len(given.soft))) for p in parts]  # fmt: skip
    some = any(len(p.soft) for p in parts)
    joined = Parts(
        np.concatenate([p.codes for p in parts]), np.concatenate([p.numbers for p in parts]),
        np.concatenate([p.weights for p in parts]), np.concatenate(softs) if some else NO_SOFT,
    )  # fmt: skip
    return joined, np.concatenate([first for _, first in rows])


def _integrate(
    fitted: FittedJoint, one: Parts, intervals: dict[int, list[tuple[float, float]]]
) -> tuple[Parts, np.ndarray]:
    """Return one row with the probabilities of ranges of single numbers, and nodes for those of joint ones."""
    mixture = fitted.mixture
    layout = mixture.layout
    joint = [r for r in intervals if any(r in block.members and len(block.members) > 1
                                         for shape in layout.shapes for block in shape.blocks)]  # fmt: skip
    first, soft = mixture.log_weights[None].copy(), None
    for r in (r for r in intervals if r not in joint):
        if soft is None:
            base = one.soft if len(one.soft) else np.zeros((1, 1, int(layout.starts[-1])))
            soft = np.repeat(base, mixture.n_components, axis=1)
        _weigh_single(mixture, one, r, intervals[r], first, soft)
    parts = one if soft is None else replace(one, soft=soft)
    if not joint:
        return parts, first
    most = max(PER_PANEL, int(NODES ** (1 / len(joint))))
    grids = [_nodes(fitted, parts, first, r, intervals[r], most // PER_PANEL) for r in joint]
    count = prod(len(nodes) for nodes, _ in grids)
    numbers = np.repeat(parts.numbers, count, axis=0)
    mesh = np.meshgrid(*(nodes for nodes, _ in grids), indexing="ij")
    weights = np.meshgrid(*(np.log(weights) for _, weights in grids), indexing="ij")
    for r, values in zip(joint, mesh, strict=True):
        numbers[:, r] = values.ravel()
    several = Parts(
        np.repeat(parts.codes, count, axis=0), numbers, np.ones(count),
        np.repeat(parts.soft, count, axis=0) if len(parts.soft) else NO_SOFT,
    )  # fmt: skip
    return several, first + sum(own.ravel() for own in weights)[:, None]


def _weigh_single(
    mixture: TreeMixture, one: Parts, r: int, intervals: Any, first: np.ndarray, soft: np.ndarray
) -> None:
    """Add the log-probabilities of ranges of a number that stands alone in every component."""
    layout = mixture.layout
    for k in range(mixture.n_components):
        for b in range(layout.block_starts[k], layout.block_starts[k + 1]):
            if layout.members_of(b)[0] != r:
                continue
            cells, _, square, _, _ = layout.cells(b)
            at = slice(int(layout.blocks[b, 4]), int(layout.blocks[b, 4]) + cells.stop - cells.start)
            logs = log_of(share_within(mixture.means[at], np.sqrt(mixture.covariances[square]), intervals))
            anchor = int(layout.blocks[b, 0])
            if anchor >= 0 and one.codes[0, anchor] < 0:
                start = int(layout.starts[anchor])
                soft[0, k, start : start + len(logs)] += logs
            else:
                first[0, k] += logs[one.codes[0, anchor] if anchor >= 0 else 0]


def share_within(means: np.ndarray, sds: np.ndarray, intervals: list[tuple[float, float]]) -> np.ndarray:
    """Return the probability of disjoint ranges under normals, from the nearer tail."""
    total = np.zeros(len(means))
    for low, high in intervals:
        a, b = (low - means) / sds, (high - means) / sds
        up = a > 0
        total += np.where(up, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
    return np.maximum(total, 0.0)


def _nodes(
    fitted: FittedJoint, parts: Parts, first: np.ndarray, r: int, intervals: list[tuple[float, float]], panels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights in ranges of a number; panels are equally probable as far as known."""
    logs = fitted.mixture.log_joint(parts, first)
    members = np.exp(logs - float(log_sum_exp(logs.ravel())))
    terms = fitted.mixture.number_terms(parts, members, r)
    weights, means, sds = terms[:, 0], terms[:, 1], np.sqrt(terms[:, 2])
    reach = float((means - 9 * sds).min()), float((means + 9 * sds).max())
    points, heights = np.polynomial.legendre.leggauss(PER_PANEL)
    nodes, found = [], []
    for low, high in intervals:
        a, b = max(low, min(reach[0], high - 1.0)), min(high, max(reach[1], low + 1.0))
        grid = np.linspace(a, b, 4097)
        mass = np.zeros(len(grid))
        for w, m, s in zip(weights, means, sds, strict=True):
            mass += w * ndtr((grid - m) / s)
        # Half of the panels follow the probability, the others the length: tails matter under further evidence.
        mass = (mass - mass[0]) / max(mass[-1] - mass[0], 1e-300) + np.linspace(0, 1, len(grid))
        edges = np.interp(np.linspace(0, mass[-1], max(panels // len(intervals), 1) + 1), mass, grid)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        nodes.append((middle[:, None] + half[:, None] * points).ravel())
        found.append((half[:, None] * heights).ravel())
    return np.concatenate(nodes), np.concatenate(found)
