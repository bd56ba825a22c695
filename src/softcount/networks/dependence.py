"""How much two nodes say of each other once others are known, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from softcount.errors import DataError
from softcount.networks.code_counts import Counting
from softcount.numerics.chi_squared import chi_squared_tail
from softcount.records import dataclass

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True)
class Dependence(Generic[Node]):
    """What rows say of two nodes given others: I(a; b | given) in nats, and the G2 test that it is zero.

    Levels that a stratum never shows add no degrees of freedom. `weight` is that of the rows that show all of them;
    `copy` says that in those rows one of the two follows from the other.
    """

    a: Node
    b: Node
    given: tuple[Node, ...]
    information: float
    freedom: int
    weight: float
    copy: bool

    @property
    def g2(self) -> float:
        """Twice the weight times the information: chi-squared where a and b are independent."""
        return 2 * self.weight * self.information

    @property
    def p_value(self) -> float:
        """How often chance alone would show as much."""
        return chi_squared_tail(self.freedom, self.g2) if self.freedom else 1.0

    def __str__(self) -> str:
        given = f" given {', '.join(map(repr, self.given))}" if self.given else ""
        return (
            f"{self.a!r} and {self.b!r}{given}: {self.information:.4g} nats, "
            f"G2 {self.g2:.4g} with {self.freedom} degrees of freedom, p {self.p_value:.3g}, {self.weight:g} rows"
        )


def dependence(counting: Counting, a: int, b: int, given: Sequence[int] = ()) -> Dependence[int]:
    """What the rows say of a and b given others."""
    nodes = (*given, a, b)
    if len(set(nodes)) < len(nodes):
        raise DataError(f"nodes {a} and {b} given {list(given)}: a node is named twice.")
    return _with_each(counting, a, [b], tuple(given))[0]


def dependent_pairs(counting: Counting, target: int) -> list[Dependence[int]]:
    """All pairs of other nodes given the target, most dependent first: what naive Bayes takes for two voices."""
    nodes = [node for node in range(len(counting.sizes)) if node != target]
    found: list[Dependence[int]] = []
    for at, node in enumerate(nodes[:-1]):
        found += _with_each(counting, node, nodes[at + 1 :], (target,))
    return sorted(found, key=lambda pair: (-round(pair.information, 12), pair.a, pair.b))


def _with_each(counting: Counting, a: int, others: list[int], given: tuple[int, ...]) -> list[Dependence[int]]:
    """Of a node with several others, each by itself."""
    sizes = [counting.sizes[other] for other in others]
    table = counting.with_each((*given, a), others).reshape(-1, counting.sizes[a], sum(sizes))
    information, weight = informations(table, sizes)
    freedom, copy = _freedom(table > 0, sizes), _copies(table.sum(axis=0) > 0, sizes)
    return [
        Dependence(a, b, given, float(information[at]), int(freedom[at]), float(weight[at]), bool(copy[at]))
        for at, b in enumerate(others)
    ]


def informations(table: np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """I(a; b | stratum) in nats for several b side by side, and the weight each was seen with.

    `table` is (strata x levels of a x levels of all b), and `sizes` are the levels of each b.
    """
    starts = _starts(sizes)
    with_b = table.sum(axis=1, keepdims=True)
    with_a = np.add.reduceat(table, starts, axis=2)
    of_stratum = with_a.sum(axis=1, keepdims=True)
    alone = np.repeat(with_a / np.where(of_stratum > 0, of_stratum, 1.0), sizes, axis=2) * with_b
    shares = np.where(table > 0, table / np.where(alone > 0, alone, 1.0), 1.0)
    nats = (table * np.log(shares)).sum(axis=(0, 1))
    weight = of_stratum.sum(axis=(0, 1))
    found: np.ndarray = np.maximum(np.add.reduceat(nats, starts), 0.0) / np.where(weight > 0, weight, 1.0)
    return found, weight


def _freedom(seen: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Degrees of freedom: in every stratum, the levels seen of a less one times those of b less one."""
    of_a = np.logical_or.reduceat(seen, _starts(sizes), axis=2).sum(axis=1)
    of_b = np.add.reduceat(seen.any(axis=1), _starts(sizes), axis=1, dtype=int)
    found: np.ndarray = (np.maximum(of_a - 1, 0) * np.maximum(of_b - 1, 0)).sum(axis=0)
    return found


def _copies(seen: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Whether one of two nodes that vary follows from the other: every level goes with one of the other's."""
    starts = _starts(sizes)
    of_b = np.add.reduceat(seen, starts, axis=1, dtype=int)
    of_a = np.maximum.reduceat(seen.sum(axis=0), starts)
    levels_of_b = np.add.reduceat(seen.any(axis=0), starts, dtype=int)
    varied = ((of_b > 0).sum(axis=0) > 1) & (levels_of_b > 1)
    found: np.ndarray = varied & ((of_b.max(axis=0) <= 1) | (of_a <= 1))
    return found


def _starts(sizes: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *sizes[:-1]])
