"""Correlated blocks of complete rows: compiled kernels, plain NumPy and loops over cells agree."""

from __future__ import annotations

import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from softcount.kernels import blocks, fused, reference
from softcount.models.block_stack import densities
from softcount.models.stacks import square_form

KERNELS = pytest.mark.parametrize("kernels", [reference, fused], ids=["reference", "fused"])
SHAPES = [(1, 1, 1), (7, 2, 3), (1, 5, 17), (191, 3, 2), (193, 4, 5), (400, 9, 8), (50, 20, 9)]
SIZES = pytest.mark.parametrize(("rows", "columns", "groups"), SHAPES)


class Made:
    """Rows in the user's units and groups in counting ones, `far` deviations from the anchor."""

    def __init__(self, rows: int, columns: int, groups: int, offset: float = 0.0, far: float = 2.0) -> None:
        rng = np.random.default_rng(rows + 31 * columns + 1009 * groups)
        self.units = np.stack([offset + rng.normal(size=columns), 2.0 ** rng.integers(-3, 4, columns)])
        turns = rng.normal(size=(groups, columns, columns)) / (3 * columns**0.5) + np.eye(columns)
        self.mean = rng.normal(size=(groups, columns)) * far
        self.covariance = turns @ turns.swapaxes(1, 2)
        label = rng.integers(0, groups, rows)
        noise = np.einsum("nij,nj->ni", turns[label], rng.normal(size=(rows, columns)))
        self.rows = (self.mean[label] + noise) / self.units[1] + self.units[0]
        self.members = rng.dirichlet(np.ones(groups), rows) * rng.choice([0.0, 1.0, 2.5], (rows, 1))
        self.weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
        self.shares = rng.dirichlet(np.ones(groups))
        self.bells = densities((self.mean, self.covariance, None), self.units)

    def density(self) -> np.ndarray:
        """Every row under every group, cell by cell: a Cholesky root by hand in plain loops."""
        out = np.empty((len(self.rows), len(self.mean)))
        for g, (mean, covariance) in enumerate(zip(self.mean, self.covariance, strict=True)):
            root = rooted(covariance.tolist())
            for i, row in enumerate(self.rows):
                t = [(float(x) - a) * s for x, a, s in zip(row, *self.units, strict=True)]
                z = solved(root, [x - m for x, m in zip(t, mean.tolist(), strict=True)])
                heights = [math.log(s) - math.log(root[j][j]) for j, s in enumerate(self.units[1])]
                out[i, g] = math.fsum(heights) - math.fsum(x * x for x in z) / 2 - len(z) / 2 * math.log(2 * math.pi)
        return out

    def sums(self, members: np.ndarray) -> list[list[Fraction]]:
        """Rows, sums and products per group in exact fractions."""
        anchors, scales = ([Fraction(float(x)) for x in unit] for unit in self.units)
        found = []
        for own in members.T:
            total = [Fraction(0)] * (1 + len(anchors) + len(anchors) ** 2)
            for row, weight in zip(self.rows, own, strict=True):
                t = [(Fraction(float(x)) - a) * s for x, a, s in zip(row, anchors, scales, strict=True)]
                parts = [Fraction(1), *t, *(x * y for x in t for y in t)]
                total = [
                    have + Fraction(float(weight)) * part if weight else have
                    for have, part in zip(total, parts, strict=True)
                ]
            found.append(total)
        return found


def rooted(matrix: list[list[float]]) -> list[list[float]]:
    size = len(matrix)
    root = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            left = matrix[i][j] - math.fsum(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = math.sqrt(left) if i == j else left / root[j][j]
    return root


def solved(root: list[list[float]], values: list[float]) -> list[float]:
    z: list[float] = []
    for i, value in enumerate(values):
        z.append((value - math.fsum(root[i][k] * z[k] for k in range(i))) / root[i][i])
    return z


def check_sums(pair: tuple[np.ndarray, np.ndarray], exact: list[list[Fraction]], close: float) -> None:
    """Against exact sums, relative to the squares of the two columns that a product is of."""
    high, low = pair
    d = round(math.sqrt(high.shape[1] - 0.75) - 0.5)
    for g, sums in enumerate(exact):
        assert float(abs(Fraction(float(high[g, 0])) + Fraction(float(low[g, 0])) - sums[0])) <= close * float(sums[0])
        sizes = [1.0] + [math.sqrt(float(sums[1 + d + j * (d + 1)])) for j in range(d)]
        sizes[0] = math.sqrt(float(sums[0]))
        scale = [sizes[0] ** 2, *(sizes[0] * s for s in sizes[1:]), *(a * b for a in sizes[1:] for b in sizes[1:])]
        for at, right in enumerate(sums):
            got = Fraction(float(high[g, at])) + Fraction(float(low[g, at]))
            assert float(abs(got - right)) <= close * scale[at] + 1e-300


@KERNELS
@SIZES
def test_both_forms_score_as_the_loops_do(kernels: ModuleType, rows: int, columns: int, groups: int) -> None:
    made = Made(rows, columns, groups)
    right = made.density()
    products, centred = np.full((rows, groups), 0.25), np.full((rows, groups), 0.25)
    assert made.bells.eta is not None
    kernels.score_products(made.rows, made.units, made.bells.eta, products)
    constants = np.log(made.units[1]).sum() - made.bells.dets - columns * 0.5 * math.log(2 * math.pi)
    kernels.score_centred(made.rows, made.units[1], made.bells.centres, made.bells.roots, constants, centred)
    np.testing.assert_allclose(products - 0.25, right, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(centred - 0.25, right, rtol=1e-12, atol=1e-12 * columns)


@KERNELS
@SIZES
def test_both_forms_count_exact_sums(kernels: ModuleType, rows: int, columns: int, groups: int) -> None:
    made = Made(min(rows, 60), columns, min(groups, 5))
    exact = made.sums(made.members)
    check_sums(kernels.count_products(made.rows, made.members, made.units), exact, 1e-15 * len(made.rows) ** 0.5)
    centres = np.ascontiguousarray(made.bells.centres[:, 0])
    check_sums(kernels.count_centred(made.rows, made.members, centres, *made.units), exact, 3e-15)


@KERNELS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@SIZES
def test_expecting_is_scoring_sharing_and_counting(
    kernels: ModuleType, weighted: bool, rows: int, columns: int, groups: int
) -> None:
    made = Made(rows, columns, groups)
    weights = made.weights if weighted else None
    joint = made.density() + np.log(made.shares)
    peak = joint.max(axis=1, keepdims=True)
    powers = np.exp(joint - peak)
    evidence = peak[:, 0] + np.log(powers.sum(axis=1))
    heavy = np.ones(rows) if weights is None else weights
    members = powers / powers.sum(axis=1, keepdims=True) * heavy[:, None]
    eta = made.bells.eta.copy()  # type: ignore[union-attr]
    eta[:, 0] += np.log(made.shares)
    high, low, likelihood = kernels.expect_products(made.rows, weights, made.units, eta)
    t = (made.rows - made.units[0]) * made.units[1]
    right = np.concatenate(
        [members.sum(axis=0)[:, None], members.T @ t, np.einsum("ng,ni,nj->gij", members, t, t).reshape(groups, -1)], 1
    )
    np.testing.assert_allclose(high + low, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())
    assert likelihood == pytest.approx(heavy @ evidence, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@SIZES
def test_independent_columns_are_expected_alike(weighted: bool, rows: int, columns: int, groups: int) -> None:
    """The squares' own kernel against scoring, sharing and counting by the kernels of independent columns."""
    made = Made(rows, columns, groups)
    anchors, scales = made.units
    spreads = np.diagonal(made.covariance, axis1=1, axis2=2) ** 0.5 / scales
    compiled = made.mean / scales + anchors, 1 / spreads, -np.log(spreads) - 0.5 * math.log(2 * math.pi)
    eta = square_form(compiled, made.units)
    assert eta is not None
    joint = np.zeros((rows, groups)) + np.log(made.shares)
    reference.score_reals(made.rows, *compiled, joint)
    evidence = reference.normalise(joint)
    heavy = made.weights if weighted else np.ones(rows)
    right = sum(reference.count_reals_soft(made.rows, joint * heavy[:, None], compiled[0], anchors, scales))
    eta[:, 0] += np.log(made.shares)
    high, low, likelihood = fused.expect_squares(made.rows, made.weights if weighted else None, made.units, eta)
    np.testing.assert_allclose(high + low, right, rtol=1e-10, atol=1e-10 * np.abs(right).max())
    assert likelihood == pytest.approx(heavy @ evidence, rel=1e-12, abs=1e-10)


def test_squares_refuse_a_missing_cell_and_far_groups() -> None:
    made = Made(500, 2, 2)
    rows = made.rows.copy()
    rows[450, 1] = np.nan
    compiled = made.mean / made.units[1] + made.units[0], np.ones((2, 2)), np.zeros((2, 2))
    eta = square_form(compiled, made.units)
    assert eta is not None
    assert math.isnan(fused.expect_squares(rows, None, made.units, eta)[2])
    assert square_form((compiled[0] + 1e4, *compiled[1:]), made.units) is None


@KERNELS
def test_a_group_without_a_share_gets_nothing_and_an_impossible_row_is_told(kernels: ModuleType) -> None:
    made = Made(300, 3, 4)
    eta = made.bells.eta.copy()  # type: ignore[union-attr]
    eta[1, 0] = -np.inf
    high, low, likelihood = kernels.expect_products(made.rows, None, made.units, eta)
    assert not high[1].any() and not low[1].any() and np.isfinite(likelihood)
    assert high[:, 0].sum() == pytest.approx(300, rel=1e-14)
    eta[:, 0] = -np.inf
    high, low, likelihood = kernels.expect_products(made.rows, None, made.units, eta)
    assert likelihood == -np.inf and not high.any()


@KERNELS
@pytest.mark.parametrize("offset", [0.0, 1e8, -1e10])
def test_an_offset_changes_nothing(kernels: ModuleType, offset: float) -> None:
    """Rows on a grid of 1/64 are the same numbers at any offset, so anchored results agree to the last digits."""
    made = Made(200, 4, 3)
    grid = np.round(made.rows * 64) / 64
    plain, moved = np.stack([np.zeros(4), made.units[1]]), np.stack([np.full(4, offset), made.units[1]])
    params = (made.mean, made.covariance, None)
    results: list[Any] = []
    for rows, units in ((grid, plain), (grid + offset, moved)):
        bells, out = densities(params, units), np.zeros((200, 3))
        kernels.score_centred(rows, units[1], bells.centres, bells.roots, np.zeros(3), out)
        kernels.score_products(rows, units, bells.eta, out)
        pair = kernels.count_centred(rows, made.members, np.ascontiguousarray(bells.centres[:, 0]), *units)
        results.append((out, pair[0] + pair[1], sum(kernels.count_products(rows, made.members, units))))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@KERNELS
def test_a_group_a_million_deviations_away_keeps_its_covariance(kernels: ModuleType) -> None:
    made = Made(120, 3, 2, far=1e6)
    assert made.bells.eta is None
    members = np.random.default_rng(0).dirichlet(np.ones(2), 120)
    members[:, 0] = made.density().argmax(axis=1) == 0
    members[:, 1] = 1 - members[:, 0]
    centres = np.ascontiguousarray(made.bells.centres[:, 0])
    high, low = kernels.count_centred(made.rows, members, centres, *made.units)
    for g, exact in enumerate(made.sums(members)):
        got = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(high[g], low[g], strict=True)]
        for sums in (got, exact):
            assert sums[0] > 0
        for i in range(3):
            covariances = [s[4 + 4 * i] / s[0] - (s[1 + i] / s[0]) ** 2 for s in (got, exact)]
            assert float(covariances[0]) == pytest.approx(float(covariances[1]), rel=1e-12)


def test_single_precision_and_any_layout_are_read_as_doubles() -> None:
    made = Made(300, 4, 3)
    single = made.rows.astype(np.float32)
    for rows in (single, np.asfortranarray(single), np.repeat(single, 2, axis=1)[:, ::2]):
        mine = blocks.count_products(rows, made.members, made.units)
        np.testing.assert_array_equal(mine[0], blocks.count_products(single.astype(float), made.members, made.units)[0])


def test_bits_depend_on_neither_what_follows_nor_memory() -> None:
    """The first tile's score is the same alone and among others: no row knows its neighbours."""
    made = Made(1000, 16, 16)
    whole, part = np.zeros((1000, 16)), np.zeros((blocks.TILE, 16))
    blocks.score_products(made.rows, made.units, made.bells.eta, whole)  # type: ignore[arg-type]
    blocks.score_products(made.rows[: blocks.TILE].copy(), made.units, made.bells.eta, part)  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole[: blocks.TILE], part)


def test_products_are_used_only_while_they_keep_their_digits() -> None:
    def form(far: float, narrow: float = 1.0) -> Any:
        units = np.stack([np.zeros(2), np.ones(2)])
        return densities((np.full((1, 2), far), np.diag([1.0, narrow])[None], None), units).eta

    assert form(0.0) is not None and form(100.0) is not None
    assert form(1000.0) is None and form(10.0, narrow=1e-4) is None
