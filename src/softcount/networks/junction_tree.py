"""Junction trees and belief propagation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property, reduce
from math import prod
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError
from softcount.networks.elimination import ROOM, Scope, eliminate

Array = np.ndarray
Index = tuple[slice | None, ...]


class Side(Enum):
    """Where a scope lies: among the nodes that only its clique has (OWN), among the other nodes (REST), or in both."""

    OWN = 0
    REST = 1
    BOTH = 2


class Place(NamedTuple):
    """Position of a scope: its clique and side, the order of its axes there (lanes last), the index along the side."""

    clique: int
    side: Side
    turn: tuple[int, ...]
    along: Index


class JunctionTree(Struct, frozen=True, dict=True):
    """Cliques in an order with parents first.

    The cliques that contain a node are connected. There may be several trees.

    The axes of a clique are, in this order: the nodes that no other clique has; nodes of other cliques but not of the
    parent; the nodes shared with the parent, in the parent's order.

    >>> tree = JunctionTree.build([2, 2, 3], [(0,), (0, 1), (1, 2)])
    >>> tree.cliques, tree.above, tree.own, tree.shared, tree.cells
    (((2, 1), (0, 1)), (-1, 0), (1, 1), (0, 1), 10)
    """

    sizes: tuple[int, ...]
    scopes: tuple[Scope, ...]
    cliques: tuple[Scope, ...]
    above: tuple[int, ...]
    own: tuple[int, ...]
    shared: tuple[int, ...]
    homes: tuple[int, ...]
    """The clique of each scope; -1 if the scope is empty."""

    @classmethod
    def build(
        cls,
        sizes: Sequence[int],
        scopes: Sequence[Scope],
        room: int = ROOM,
        names: Sequence[Hashable] = (),
        root: Scope = (),
    ) -> JunctionTree:
        """Build a tree in which every scope lies within a clique.

        The clique of `root` becomes the root of its tree, so that a query of these nodes needs the upward pass only.
        Raise a ResourceError that names the nodes if the tree needs more than `room` cells, before anything is
        allocated.
        """
        sizes, scopes = tuple(map(int, sizes)), tuple(scopes)
        found = eliminate(sizes, [*scopes, root] if root else scopes, room, names)
        cliques, above, clique_of = found.cliques()
        place = {node: at for at, node in enumerate(found.order)}
        within = [clique_of[min(scope, key=place.__getitem__)] if scope else -1 for scope in (*scopes, root)]
        order, upper = _reroot(above, within[-1])
        times = Counter(node for clique in cliques for node in clique)
        axes: list[Scope] = []
        own: list[int] = []
        shared: list[int] = []
        for old, over in zip(order, upper, strict=True):
            common = [node for node in axes[over] if node in cliques[old]] if over >= 0 else []
            rest = sorted(set(cliques[old]).difference(common), key=lambda node: (times[node] > 1, node))
            own.append(sum(times[node] == 1 for node in rest))
            shared.append(len(common))
            axes.append((*rest, *common))
        number = {-1: -1} | {old: new for new, old in enumerate(order)}
        homes = tuple(number[old] for old in within[:-1])
        return cls(sizes, scopes, tuple(axes), tuple(upper), tuple(own), tuple(shared), homes)

    @cached_property
    def cells(self) -> int:
        """Number of cells that one row needs."""
        return sum(map(prod, self.shapes))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.sizes[node] for node in clique) for clique in self.cliques)

    @cached_property
    def rests(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of levels of the nodes of each clique that are also in other cliques."""
        return tuple(shape[own:] for shape, own in zip(self.shapes, self.own, strict=True))

    @cached_property
    def borders(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of levels of the nodes that each clique shares with its parent."""
        return tuple(shape[len(shape) - common :] for shape, common in zip(self.shapes, self.shared, strict=True))

    @cached_property
    def tops(self) -> Mapping[int, int]:
        """The clique of each node that is nearest to the root."""
        return {
            node: number
            for number, (clique, common) in enumerate(zip(self.cliques, self.shared, strict=True))
            for node in clique[: len(clique) - common]
        }

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.cliques]
        for number, over in enumerate(self.above):
            if over >= 0:
                found[over].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def upward(self) -> tuple[Index, ...]:
        """For each clique, the index that aligns its message with the rest of its parent."""
        return tuple(
            _along(clique[len(clique) - common :], self.cliques[over][self.own[over] :]) if over >= 0 else ()
            for clique, common, over in zip(self.cliques, self.shared, self.above, strict=True)
        )

    @cached_property
    def summed(self) -> tuple[tuple[int, ...], ...]:
        """For each clique, the axes of its parent's rest that it does not share."""
        return tuple(tuple(axis for axis, kept in enumerate(index) if kept is None) for index in self.upward)

    @cached_property
    def _places(self) -> dict[Scope, Place]:
        return {}

    def place(self, scope: Scope) -> Place:
        if scope not in self._places:
            home = self.tops.get(scope[0]) if len(scope) == 1 else self._scope_homes.get(scope)
            if home is None:
                home = next((k for k, clique in enumerate(self.cliques) if set(scope).issubset(clique)), None)
            if home is None:
                raise DataError(f"no clique of the tree holds the nodes {scope}: add them to its scopes.")
            nodes, own = self.cliques[home], self.own[home]
            side = Side.BOTH
            if set(scope).issubset(nodes[:own]):
                side, nodes = Side.OWN, nodes[:own]
            elif set(scope).issubset(nodes[own:]):
                side, nodes = Side.REST, nodes[own:]
            turn = tuple(scope.index(node) for node in nodes if node in scope)
            self._places[scope] = Place(home, side, (*turn, len(scope)), _along(scope, nodes))
        return self._places[scope]

    @cached_property
    def _scope_homes(self) -> dict[Scope, int]:
        return dict(zip(self.scopes, self.homes, strict=True))

    def path(self, cliques: Sequence[int]) -> list[int]:
        """Return these cliques and their ancestors, in order."""
        found: set[int] = set()
        for number in cliques:
            while number >= 0 and number not in found:
                found.add(number)
                number = self.above[number]
        return sorted(found)


def _along(scope: Scope, nodes: Scope) -> Index:
    return (*(slice(None) if node in scope else None for node in nodes), slice(None))


def _reroot(above: list[int], root: int) -> tuple[list[int], list[int]]:
    """Re-root the tree of clique `root`. Return the old numbers in the new order, and the new number of each parent."""
    near: list[list[int]] = [[] for _ in above]
    for number, over in enumerate(above):
        if over >= 0:
            near[number].append(over)
            near[over].append(number)
    order: list[int] = []
    upper: list[int] = []
    seen = [False] * len(above)
    for start in ([root] if root >= 0 else []) + [number for number, over in enumerate(above) if over < 0]:
        ahead = [] if seen[start] else [(start, -1)]
        while ahead:
            number, over = ahead.pop()
            seen[number] = True
            ahead.extend((other, len(order)) for other in reversed(near[number]) if not seen[other])
            order.append(number)
            upper.append(over)
    return order, upper


# Arithmetic of messages: sum-product in plain numbers or logarithms, and max-product.


class Arithmetic(Struct, frozen=True):
    """Sum-product or max-product, in plain numbers or logarithms.

    Divisors are at least `least`, so that 0 / 0 is 0.
    """

    times: np.ufunc
    over: np.ufunc
    total: Callable[[Array], Array]
    zero: float
    one: float
    least: float

    def logarithm(self, values: Array) -> Array:
        return np.asarray(np.log(values) if self is PLAIN else values)

    def quotient(self, values: Array, divisor: Array) -> Array:
        return np.asarray(self.over(values, np.maximum(divisor, self.least)))

    def product(self, parts: Sequence[Array]) -> Array:
        """Multiply from small to large, so that the largest array is traversed once."""
        return reduce(self.times, sorted(parts, key=lambda part: part.size)) if len(parts) > 1 else parts[0]

    def mix(self, table: Array, own: Array | None, low: float) -> Array:
        """Multiply a table (own, rest, lanes) by `own` and sum over its own nodes; the result is (rest, lanes).

        `low` is at most the smallest positive number in the table.
        """
        if own is None:
            return self.total(table)
        if self is PLAIN and table.shape[-1] == 1:
            # NumPy does not report an underflow inside a matrix product, so this product provokes it first.
            np.multiply(own, low)
            return np.asarray(table[:, :, 0].T @ own)
        return self.total(self.times(table, own[:, None]))

    def margin(self, values: Array, axes: tuple[int, ...]) -> Array:
        if self is PLAIN:
            return np.asarray(np.add.reduce(values, axis=axes))
        front = np.moveaxis(values, axes, range(len(axes)))
        return self.total(front.reshape(-1, *front.shape[len(axes) :]))


def _log_total(logs: Array) -> Array:
    top = np.maximum(logs.max(axis=0), LEAST_LOG)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=0)) + top)


LEAST_LOG = float(np.finfo(float).min)
PLAIN = Arithmetic(np.multiply, np.divide, np.add.reduce, 0.0, 1.0, float(np.finfo(float).tiny))
LOGS = Arithmetic(np.add, np.subtract, _log_total, -np.inf, 0.0, LEAST_LOG)
MAXIMA = Arithmetic(np.add, np.subtract, np.maximum.reduce, -np.inf, 0.0, LEAST_LOG)

# Messages in a junction tree: up to the root, and down to the cliques of a query.


class LaneInput(NamedTuple):
    """Factors over a scope with shape (levels of each node ..., lanes). A single lane applies to all rows."""

    scope: Scope
    values: Array
    logs: bool = False


def exponentiate(inputs: Sequence[LaneInput]) -> tuple[list[LaneInput], Array | float]:
    """Return the inputs as plain numbers with a maximum of 1 per lane, and the logarithm of the removed scale."""
    found: list[LaneInput] = []
    shift: Array | float = 0.0
    for each in inputs:
        if each.logs:
            top = each.values.reshape(-1, each.values.shape[-1]).max(axis=0)
            top = np.where(top > -np.inf, top, 0.0)
            shift = shift + top
            each = LaneInput(each.scope, np.exp(each.values - top))
        found.append(each)
    return found, shift


LOST = -500.0
"""If the log of the scale is above this, an underflow of 10^-308 in some cells is less than 10^-90 of the total."""


class CliqueState(NamedTuple):
    """A clique after the upward pass. Lanes are the last axis.

    The table is (own, rest, lanes). `seen` is the evidence on the clique's own nodes. `others` is the evidence on the
    rest times the messages from below. `product` is all of it summed over the own nodes. `message` is `product` summed
    to the nodes shared with the parent; the message of a root is its total. The axes of own and rest nodes are
    flattened, except in `others` and `product`.
    """

    table: Array
    seen: Array | None
    others: Array | None
    product: Array
    message: Array


class Collected(NamedTuple):
    """The result of the upward pass. The message of each clique was divided by its entry of `scales`."""

    arithmetic: Arithmetic
    states: list[CliqueState]
    scales: list[Array]
    log_evidence: Array


class Belief(Struct, frozen=True, dict=True):
    """The posterior of a clique: its state times the factor from above."""

    arithmetic: Arithmetic
    state: CliqueState
    factor: Array

    @cached_property
    def rest(self) -> Array:
        """The posterior over the axes of the rest, lanes last, in the arithmetic of the pass (plain or logarithms)."""
        return np.asarray(self.arithmetic.times(self.state.product, self.factor))

    @cached_property
    def own(self) -> Array:
        """The posterior of the own nodes, (own, lanes)."""
        table, seen = self.state.table, self.state.seen
        if self.arithmetic is PLAIN and table.shape[-1] == 1:
            found = table[:, :, 0] @ self._around
        else:
            found = self.arithmetic.margin(self.arithmetic.times(table, self._around), (1,))
        return self.plain(found if seen is None else np.asarray(self.arithmetic.times(found, seen)))

    @cached_property
    def whole(self) -> Array:
        """The posterior of all nodes, (own, rest, lanes)."""
        found, seen = self.arithmetic.times(self.state.table, self._around), self.state.seen
        return self.plain(found if seen is None else np.asarray(self.arithmetic.times(found, seen[:, None])))

    def weighted(self, weights: Array) -> Array:
        """Return the weighted sum over lanes, (own, rest)."""
        table, seen = self.state.table, self.state.seen
        if self.arithmetic is not PLAIN or table.shape[-1] > 1:
            return _over_lanes(self.whole, weights)
        around = self._around
        if seen is None:
            seen = np.ones((1, 1))
        seen = seen * weights
        if around.shape[-1] == 1:
            seen = seen.sum(axis=1, keepdims=True)
        found = table[:, :, 0] * (seen @ around.T)
        # The messages are as large as the table is small; times the weights they may overflow.
        return np.asarray(found) if np.isfinite(found).all() else _over_lanes(self.whole, weights)

    @cached_property
    def _around(self) -> Array:
        """Evidence and messages of all other cliques on the rest, (rest, lanes)."""
        others = self.state.others
        found = self.factor if others is None else np.asarray(self.arithmetic.times(others, self.factor))
        return found.reshape(-1, found.shape[-1])

    def plain(self, values: Array) -> Array:
        return values if self.arithmetic is PLAIN else np.exp(values)


def _over_lanes(values: Array, weights: Array) -> Array:
    return np.asarray(values @ weights if values.shape[-1] > 1 else values[..., 0] * weights.sum())


class Potentials(NamedTuple):
    """Tables multiplied into each clique, (own, rest, one lane), and the logarithm of the tables without nodes.

    `lows` holds the smallest positive number of each clique, at most 1. `highs` bounds its sums over the own nodes and
    is at least 1.
    """

    cliques: list[Array]
    lows: list[float]
    highs: list[float]
    constant: Array


class _Incoming(Struct):
    table: Array
    low: float
    seen: list[Array] = field(default_factory=list)
    others: list[Array] = field(default_factory=list)


class Propagation(Struct, frozen=True, dict=True):
    """Belief propagation in a junction tree."""

    tree: JunctionTree
    tables: Sequence[Array]

    @cached_property
    def plain(self) -> Potentials | None:
        """Potentials in plain numbers, or None if the product of the tables of a clique underflows or overflows."""
        try:
            with np.errstate(under="raise", over="raise", divide="ignore"):
                return self._potentials(PLAIN, self.tables)
        except FloatingPointError:
            return None

    @cached_property
    def logs(self) -> Potentials:
        with np.errstate(divide="ignore"):
            return self._potentials(LOGS, [np.log(table) for table in self.tables])

    def _potentials(self, arithmetic: Arithmetic, tables: Sequence[Array]) -> Potentials:
        tree, constant = self.tree, np.zeros(1)
        found = [np.full((*shape, 1), arithmetic.one) for shape in tree.shapes]
        for table, scope in zip(tables, tree.scopes, strict=False):
            if scope:
                place = tree.place(scope)
                into = found[place.clique]
                arithmetic.times(into, self._laid(place, table[..., None]), out=into)
            else:
                constant = constant + arithmetic.logarithm(table)
        found = [table.reshape(-1, prod(rest), 1) for table, rest in zip(found, tree.rests, strict=True)]
        lows = [float(table[table > 0].min(initial=1.0)) for table in found]
        highs = [len(table) * max(1.0, float(table.max())) for table in found]
        return Potentials(found, lows, highs, constant)

    def _laid(self, place: Place, values: Array) -> Array:
        """Lay out values of a scope along the axes of its clique, or along the axes of its rest."""
        laid = values.transpose(place.turn)[place.along]
        if place.side is Side.OWN:
            return laid.reshape(*laid.shape[:-1], *(1 for _ in self.tree.rests[place.clique]), -1)
        return laid

    def collect(self, inputs: Sequence[LaneInput], most: bool = False) -> Collected:
        """Run the upward pass: sum-product, or max-product if `most` is True."""
        plain = None if most else self.plain
        for under in () if plain is None else ("raise", "ignore"):
            assert plain is not None
            try:
                with np.errstate(under=under, over="raise", divide="ignore"):
                    found = self._up(PLAIN, plain, *exponentiate(inputs))
            except FloatingPointError:
                continue
            if under == "raise" or self._lost_nothing(found, plain.highs):
                return found
        # Plain numbers underflow or overflow: repeat the pass in logarithms.
        with np.errstate(divide="ignore", under="ignore"):
            logs = [each if each.logs else LaneInput(each.scope, np.log(each.values), True) for each in inputs]
            return self._up(MAXIMA if most else LOGS, self.logs, logs, 0.0)

    def _up(
        self, arithmetic: Arithmetic, potentials: Potentials, inputs: Iterable[LaneInput], shift: Array | float
    ) -> Collected:
        tree = self.tree
        log_evidence = potentials.constant + shift
        incoming = [_Incoming(table, low) for table, low in zip(potentials.cliques, potentials.lows, strict=True)]
        for scope, values, _ in inputs:
            if scope:
                self._add(arithmetic, incoming, tree.place(scope), values)
            else:
                log_evidence = log_evidence + arithmetic.logarithm(values)
        states, scales = [], []
        for number in reversed(range(len(tree.cliques))):
            state = self._state(arithmetic, number, incoming[number])
            message = state.message
            scale = np.maximum.reduce(message.reshape(-1, message.shape[-1]))
            log_evidence = log_evidence + arithmetic.logarithm(scale)
            if message.ndim > 1:
                scaled = arithmetic.quotient(message, scale)
                incoming[tree.above[number]].others.append(scaled[tree.upward[number]])
            states.append(state)
            scales.append(scale)
        return Collected(arithmetic, states[::-1], scales[::-1], log_evidence)

    def _lost_nothing(self, collected: Collected, highs: list[float]) -> bool:
        """Return whether everything that underflowed is negligible in every lane.

        A clique loses at most the smallest normal number in each cell. Further up, this loss is multiplied by numbers
        of at most 1 and by tables of at most `highs`. It can grow only in the division of messages by their scale.
        """
        paths: list[Array] = []
        for above, scale, high in zip(self.tree.above, collected.scales, highs, strict=True):
            with np.errstate(divide="ignore", under="ignore"):
                path = np.log(np.minimum(scale / high, 1.0)) + (paths[above] if above >= 0 else 0.0)
            if path.min() < LOST:
                return False
            paths.append(path)
        return True

    def _add(self, arithmetic: Arithmetic, incoming: list[_Incoming], place: Place, values: Array) -> None:
        into, shape, own = incoming[place.clique], self.tree.shapes[place.clique], self.tree.own[place.clique]
        if place.side is Side.REST:
            into.others.append(values.transpose(place.turn)[place.along])
        elif place.side is Side.BOTH:
            table = into.table.reshape(*shape, -1)
            into.table = arithmetic.times(table, self._laid(place, values)).reshape(*into.table.shape[:2], -1)
        elif own == 1:
            into.seen.append(values)
        else:
            laid = np.broadcast_to(values.transpose(place.turn)[place.along], (*shape[:own], values.shape[-1]))
            into.seen.append(laid.reshape(-1, values.shape[-1]))

    def _state(self, arithmetic: Arithmetic, number: int, incoming: _Incoming) -> CliqueState:
        border = self.tree.borders[number]
        seen = arithmetic.product(incoming.seen) if incoming.seen else None
        others = arithmetic.product(incoming.others) if incoming.others else None
        product = arithmetic.mix(incoming.table, seen, incoming.low).reshape(*self.tree.rests[number], -1)
        if others is not None:
            product = np.asarray(arithmetic.times(product, others))
        message = product
        if product.ndim > len(border) + 1:
            message = arithmetic.total(product.reshape(-1, *border, product.shape[-1]))
        return CliqueState(incoming.table, seen, others, product, message)

    def distribute(self, collected: Collected, cliques: Sequence[int]) -> Iterator[tuple[int, Belief]]:
        """Run the downward pass and yield the posteriors of these cliques."""
        tree, (arithmetic, states, _, log_evidence) = self.tree, collected
        possible = np.where(log_evidence > -np.inf, arithmetic.one, arithmetic.zero)
        wanted, needed = set(cliques), tree.path(cliques)
        below = set(needed)
        arriving: dict[int, Array] = {}
        for number in needed:
            margin = arriving.pop(number, possible)
            belief = Belief(arithmetic, states[number], arithmetic.quotient(margin, states[number].message))
            margins: dict[tuple[int, ...], Array] = {}
            for child in below.intersection(tree.children[number]):
                axes = tree.summed[child]
                if axes not in margins:
                    margins[axes] = arithmetic.margin(belief.rest, axes)
                arriving[child] = margins[axes]
            if number in wanted:
                yield number, belief

    def trace(self, collected: Collected, codes: Array) -> None:
        """Write the most probable levels into `codes` (nodes x lanes), after an upward pass with `most=True`."""
        tree, lanes = self.tree, np.arange(codes.shape[1])
        for clique, shape, own, common, state in zip(
            tree.cliques, tree.shapes, tree.own, tree.shared, collected.states, strict=True
        ):
            cut = len(clique) - common
            product = state.product.reshape(prod(shape[own:cut]), prod(shape[cut:]), -1)
            best = product[:, _flat(codes, clique[cut:], shape[cut:]), _lane(product, lanes)].argmax(axis=0)
            _write(codes, clique[own:cut], shape[own:cut], best)
            choices = state.table[:, _flat(codes, clique[own:], shape[own:]), _lane(state.table, lanes)]
            if state.seen is not None:
                choices = choices + state.seen
            _write(codes, clique[:own], shape[:own], choices.argmax(axis=0))


def _lane(values: Array, lanes: Array) -> Array:
    return lanes if values.shape[-1] > 1 else 0 * lanes


def _flat(codes: Array, nodes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return the cell of a flattened table that the codes of its nodes select in each lane."""
    cell = np.zeros(codes.shape[1], dtype=np.intp)
    for node, levels in zip(nodes, shape, strict=True):
        cell = cell * levels + codes[node]
    return cell


def _write(codes: Array, nodes: tuple[int, ...], shape: tuple[int, ...], cell: Array) -> None:
    """Write the levels of a cell of a flattened table into the codes of its nodes, in each lane."""
    for node, levels in zip(reversed(nodes), reversed(shape), strict=True):
        cell, codes[node] = np.divmod(cell, levels)
