"""Answers of a joint model given some values: conditional distributions and drawn rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import ndtri
from softcount.core.special import ndtr
from softcount.errors import DataError
from softcount.fitted.answers import LEAST_INSIDE, Conditioned, NumberAnswer, as_written, levels_as_written
from softcount.fitted.conditions import number_reader
from softcount.fitted.derived_columns import add_derived, answer_derived, find_derived_fields
from softcount.fitted.joint_evidence import Evidence, find_intervals, read_evidence, share_within
from softcount.table.cell_forms import CellForm
from softcount.table.schema import Key, labels
from softcount.tree_mixtures.columns import Categories, ColumnParts, Levels, Number, Unit
from softcount.tree_mixtures.mixture import Parts

if TYPE_CHECKING:
    from softcount.fitted.joint import FittedJoint

INF = float("inf")
MOST_COMBINATIONS = 200_000
"""Most combinations of categories in a joint distribution."""


class JointAnswer(NumberAnswer, Struct, frozen=True, eq=False, dict=True):
    """The distribution of a number: probabilities of single values, and a mixture of normals of its transform.

    Normals are truncated to the bounds of the column. The density at one of the single values is its probability.
    """

    values: np.ndarray
    shares: np.ndarray
    terms: np.ndarray
    unit: Unit | None = None
    written: CellForm | None = None
    bounds: tuple[float, float] = (-INF, INF)

    @property
    def rest(self) -> float:
        """Probability of all other values."""
        return max(0.0, 1.0 - float(self.shares.sum())) if len(self.terms) else 0.0

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return bounds_in(self.unit, self.bounds)

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mass of every normal within the bounds, which normals are truncated, and the mass below the lower bound."""
        means, sds = self.terms[:, 1], np.sqrt(self.terms[:, 2])
        low, high = self._ends
        mass = share_within(means, sds, [(low, high)])
        cut = mass >= LEAST_INSIDE
        return np.where(cut, mass, 1.0), cut, np.where(cut, ndtr((low - means) / sds), 0.0)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and mean square, less the first of the values or knots."""
        from softcount.kernels.trees import sum_moments

        first: float
        second: float
        first, second, origin = 0.0, 0.0, self._origin
        if len(self.terms) and self.unit is not None:
            first, second = sum_moments(self.terms, self.unit.x - origin, self.unit.z, *self._ends)
        off = self.values - origin
        return float(self.rest * first + self.shares @ off), float(self.rest * second + self.shares @ off**2)

    @property
    def _origin(self) -> float:
        return float(self.values[0] if self.unit is None else self.unit.x[len(self.unit.x) // 2])

    @property
    def mean(self) -> float:
        return float(np.clip(self._moments[0] + self._origin, *self.bounds))

    @property
    def variance(self) -> float:
        first, second = self._moments
        return float(max(second - first**2, 0.0))

    @property
    def sd(self) -> float:
        return float(np.sqrt(self.variance))

    def cdf(self, x: float) -> float:
        """Return the probability of a value at or below x."""
        found = float(self.shares[self.values <= x].sum())
        if self.rest == 0.0 or self.unit is None or x < self.bounds[0]:
            return found
        if x >= self.bounds[1]:
            return found + self.rest
        z = float(self.unit.forward(np.array([float(x)]))[0][0])
        return found + self.rest * float(self.terms[:, 0] @ self._below(np.array([z]))[0])

    def _below(self, z: np.ndarray) -> np.ndarray:
        mass, _, under = self._inside
        below = ndtr((z[:, None] - self.terms[:, 1]) / np.sqrt(self.terms[:, 2]))
        return np.asarray(np.clip((below - under) / mass, 0.0, 1.0))

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(len(values))
        if self.rest > 0 and self.unit is not None:
            z, log = self.unit.forward(values)
            sds = np.sqrt(self.terms[:, 2])
            heights = np.exp(-0.5 * ((z[:, None] - self.terms[:, 1]) / sds) ** 2) / (np.sqrt(2 * np.pi) * sds)
            mass, cut, _ = self._inside
            inside = (values >= self.bounds[0]) & (values <= self.bounds[1])
            heights = np.where(inside[:, None] | ~cut, heights / mass, 0.0)
            found = self.rest * np.exp(log) * (heights @ self.terms[:, 0])
        for value, share in zip(self.values, self.shares, strict=True):
            found = np.where(values == value, share, found)
        return found

    def _quantile(self, q: float) -> float:
        if self.rest == 0.0 or self.unit is None:
            place = int(np.searchsorted(np.cumsum(self.shares), q - 1e-15))
            return float(self.values[min(place, len(self.values) - 1)])
        low, high = (float(self.unit.backward(np.array([end]))[0]) for end in (self._reach[0], self._reach[1]))
        low, high = min([low, *self.values]), max([high, *self.values])
        for _ in range(200):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (low, middle) if self.cdf(middle) >= q else (middle, high)
        return float(np.clip(high, *self.bounds))

    @property
    def _reach(self) -> tuple[float, float]:
        means, sds = self.terms[:, 1], np.sqrt(self.terms[:, 2])
        return float((means - 40 * sds).min()), float((means + 40 * sds).max())


def bounds_in(unit: Unit | None, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds of a number in its unit."""
    if unit is None:
        return -INF, INF
    low, high = (float(unit.forward(np.array([end]))[0][0]) if np.isfinite(end) else end for end in bounds)
    return low, high


class JointGiven(Conditioned, Struct, frozen=True, eq=False, dict=True):
    """A joint model given some values; of derived columns, `known` holds those of their lead columns."""

    model: FittedJoint
    known: Mapping[Key, Any]
    evidence: Evidence

    @classmethod
    def of(cls, model: FittedJoint, known: Mapping[Key, Any]) -> JointGiven:
        return cls(model, known, read_evidence(model, known))

    @property
    def log_probability(self) -> float:
        return self.evidence.log_total

    @property
    def columns(self) -> list[Key]:
        columns = {key for key in self.model.parts_by_key if key not in self.known}
        for spec, rule in find_derived_fields(self.model.schema):
            if rule.lead is None or rule.lead in columns or rule.lead in self.known:
                columns.add(spec.key)
        return [spec.key for spec in self.model.schema.fields if spec.key in columns]

    # -- queries

    def answer(self, of: Any) -> Any:
        """Answer for a column, or for several: jointly if all are discrete, else one by one."""
        several = self.model.several(of)
        if several is None:
            return self._one(of)
        if len(several) > 1 and all(isinstance(self.model.parts_by_key.get(x), Categories | Levels) for x in several):
            return self._joint(several)
        return self.answers(several)

    def _one(self, key: Key) -> Any:
        model = self.model
        spec = model.schema.by_key[key]
        if spec.derived is not None and not spec.used:
            found = answer_derived(model.schema, spec, self._one, self.known)
            if isinstance(found, dict):
                return dict(zip(levels_as_written(model.schema, key, list(found)), found.values(), strict=True))
            return found
        own = model.part_of(key)
        if isinstance(own, Number):
            return self._number(own)
        shares = self._code_shares(own)
        if isinstance(own, Levels):
            return JointAnswer(own.values, shares, np.zeros((0, 3)), written=spec.written)
        each = own.shares * shares[own.codes[1:-1]]
        levels = levels_as_written(model.schema, key, list(spec.levels))
        return dict(zip(levels, map(float, each / each.sum()), strict=True))

    def _code_shares(self, own: ColumnParts) -> np.ndarray:
        start = int(self.model.mixture.layout.starts[own.part])
        return self.evidence.code_shares[start : start + own.size]

    def _number(self, own: Number) -> JointAnswer:
        evidence, spec = self.evidence, self.model.schema[own.key]
        shares = np.zeros(0) if own.part < 0 else self._code_shares(own)[1:]
        terms = self.model.mixture.number_terms(evidence.parts, evidence.members, own.number)
        terms[:, 0] /= terms[:, 0].sum()
        return JointAnswer(own.spikes, shares, terms, own.unit, spec.written, self.model.bounds(own.key))

    def _joint(self, asked: Sequence[Key]) -> dict[Any, float]:
        parts = [self.model.parts_by_key[key] for key in asked]
        count = prod(own.size for own in parts)
        if count > MOST_COMBINATIONS:
            raise DataError(f"{count:,} combinations are more than {MOST_COMBINATIONS:,}. Query fewer columns at once.")
        shares = self.evidence.joint_shares([own.part for own in parts])
        names, places, inner = [], [], []
        for key, own in zip(asked, parts, strict=True):
            if isinstance(own, Levels):
                names.append(own.values.tolist())
                places.append(np.arange(own.size))
                inner.append(np.ones(own.size))
            elif isinstance(own, Categories):
                names.append(levels_as_written(self.model.schema, key, list(self.model.schema[key].levels)))
                places.append(own.codes[1:-1])
                inner.append(own.shares)
        whole = shares[np.ix_(*places)]
        for axis, weights in enumerate(inner):
            whole = whole * weights.reshape([-1 if at == axis else 1 for at in range(len(inner))])
        return dict(zip(product(*names), map(float, whole.ravel()), strict=True))

    # -- draws

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw new rows as columns by name; given values are kept."""
        model, evidence = self.model, self.evidence
        shares = evidence.members.ravel()
        picks = rng.choice(len(shares), size=n, p=shares / shares.sum())
        rows, members = np.unravel_index(picks, evidence.members.shape)
        values = model.decode(*self._parts(rows, members, rng), rng)
        values |= {key: [value] * n for key, value in self.known.items() if key not in evidence.ranges}
        whole = add_derived(model.schema, values, n)
        order = [spec.key for spec in model.schema.fields if spec.key in whole]
        return {name: as_written(model.schema, key, whole[key]) for key, name in labels(order).items()}

    def _parts(self, rows: np.ndarray, members: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw the codes and numbers of rows of the evidence in known components.

        Numbers given by ranges come from truncated normals, one after another given the codes and each other.
        """
        model, evidence = self.model, self.evidence
        mixture, some = model.mixture, evidence.parts.take(rows)
        first = np.full((len(rows), mixture.n_components), -np.inf)
        first[np.arange(len(rows)), members] = 0.0
        codes = mixture.draw(some, rng, first)[0]
        fixed = Parts(codes, some.numbers, some.weights)
        for key, condition in evidence.ranges.items():
            own = model.parts_by_key[key]
            if isinstance(own, Number):
                intervals = find_intervals(model, own, condition.pieces(number_reader(model, key)))
                fixed.numbers[:, own.number] = np.nan
                if intervals:
                    moments = mixture.condition_rows(fixed, members, own.number)
                    fixed.numbers[:, own.number] = draw_within(moments[:, 0], np.sqrt(moments[:, 1]), intervals, rng)
        return codes, model.draw_numbers(fixed, first, rng)


def draw_within(
    means: np.ndarray, sds: np.ndarray, intervals: list[tuple[float, float]], rng: np.random.Generator
) -> np.ndarray:
    """Draw from normals truncated to one of several disjoint ranges."""
    masses = np.stack([share_within(means, sds, [interval]) for interval in intervals])
    ends = np.cumsum(masses, axis=0)
    piece = np.minimum((rng.random(len(means)) * ends[-1] >= ends).sum(axis=0), len(intervals) - 1)
    low, high = np.array(intervals)[piece].T
    a, b = (low - means) / sds, (high - means) / sds
    up = a > 0  # draw in the lower tail, where probabilities keep their digits
    a, b = np.where(up, -b, a), np.where(up, -a, b)
    share = ndtr(a) + rng.random(len(means)) * (ndtr(b) - ndtr(a))
    z = np.clip(ndtri(share), np.maximum(a, -1e3), np.minimum(b, 1e3))
    return np.asarray(np.clip(means + sds * np.where(up, -z, z), low, high))
