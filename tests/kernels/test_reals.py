"""Counting and scoring real columns: both kernels against exact fractions and plain loops."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels import plain_loops

from softcount.kernels import fused, reference

KERNELS = pytest.mark.parametrize("kernels", [reference, fused], ids=["reference", "fused"])
LAYOUTS = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}
ROWS = st.sampled_from([0, 1, 3, 5, 31, 64, 65, 130, 300])
GROUPS = st.sampled_from([1, 2, 8, 9, 17])
COLUMNS = st.sampled_from([0, 1, 2, 7, 8, 9, 16, 19])


def make_reals(rng: np.random.Generator, rows: int, columns: int, holes: float) -> np.ndarray:
    reals = rng.normal(size=(rows, columns)) * rng.uniform(0.5, 20, columns) + rng.normal(size=columns) * 30
    reals[rng.random(reals.shape) < holes] = np.nan
    return reals


def make_labels(rng: np.random.Generator, rows: int, groups: int) -> np.ndarray:
    return rng.integers(-1, groups, rows).astype(np.int32)


def close(pair: tuple[np.ndarray, np.ndarray], exact: list, shifts: np.ndarray, tolerance: float) -> None:
    """Every sum within a tolerance of the exact one, relative to the squares around anchor and centre together.

    `shifts` are the scaled distances between them: a centre far from its rows is the caller's loss.
    """
    for g, columns in enumerate(exact):
        for j, (count, total, square) in enumerate(columns):
            got = summed(pair, g, j)
            reach = square + count * Fraction(float(shifts[g, j])) ** 2
            assert abs(got[0] - count) <= tolerance * count
            assert abs(got[1] - total) <= tolerance * Fraction(float(count * reach) ** 0.5)
            assert abs(got[2] - square) <= tolerance * reach


def summed(pair: tuple[np.ndarray, np.ndarray], g: int, j: int) -> list[Fraction]:
    return [Fraction(float(pair[0][g, j, k])) + Fraction(float(pair[1][g, j, k])) for k in range(3)]


def variance(count: Fraction, total: Fraction, square: Fraction) -> Fraction:
    return square / count - (total / count) ** 2


def variances_close(pair: tuple[np.ndarray, np.ndarray], exact: list, tolerance: float) -> None:
    for g, columns in enumerate(exact):
        for j, sums in enumerate(columns):
            truth = variance(*sums)
            assert abs(variance(*summed(pair, g, j)) - truth) <= tolerance * truth


@KERNELS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@settings(max_examples=25, deadline=None)
@given(
    rows=ROWS, columns=COLUMNS, groups=GROUPS, holes=st.sampled_from([0.0, 0.1, 1.0]),
    layout=st.sampled_from(sorted(LAYOUTS)), seed=st.integers(0, 99),
)  # fmt: skip
def test_labelled_counts_match_exact_fractions(
    kernels: ModuleType, weighted: bool, rows: int, columns: int, groups: int, holes: float, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    reals, labels = make_reals(rng, rows, columns, holes), make_labels(rng, rows, groups)
    weights = rng.choice([0.0, 0.5, 1.0, 2.7], rows) if weighted else None
    centres, anchors = rng.normal(size=(groups, columns)) * 20, rng.normal(size=columns) * 20
    scales = 2.0 ** rng.integers(-4, 5, columns)
    pair = kernels.count_reals_labelled(LAYOUTS[layout](reals), labels, weights, centres, anchors, scales)
    memberships = plain_loops.as_memberships(labels, weights, groups)
    assert pair[0].shape == pair[1].shape == (groups, columns, 3)
    close(pair, plain_loops.count_reals(reals, memberships, anchors, scales), (centres - anchors) * scales, 1e-14)


@KERNELS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_rows_of_each_group_are_counted(kernels: ModuleType, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    labels = make_labels(rng, 500, 7)
    weights = rng.choice([0.0, 0.5, 2.0], 500) if weighted else None
    counted = kernels.count_labels(labels, weights, 9)
    assert counted.dtype == np.float64
    assert counted.tolist() == plain_loops.as_memberships(labels, weights, 9).sum(axis=0).tolist()


@KERNELS
@settings(max_examples=25, deadline=None)
@given(
    rows=ROWS, columns=COLUMNS, groups=GROUPS, holes=st.sampled_from([0.0, 0.1, 1.0]),
    layout=st.sampled_from(sorted(LAYOUTS)), seed=st.integers(0, 99),
)  # fmt: skip
def test_soft_counts_match_exact_fractions(
    kernels: ModuleType, rows: int, columns: int, groups: int, holes: float, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    reals = make_reals(rng, rows, columns, holes)
    memberships = rng.dirichlet(np.ones(groups), rows) * rng.choice([0.0, 1.0, 2.7], (rows, 1))
    centres, anchors = rng.normal(size=(groups, columns)) * 20, rng.normal(size=columns) * 20
    scales = 2.0 ** rng.integers(-4, 5, columns)
    pair = kernels.count_reals_soft(LAYOUTS[layout](reals), memberships, centres, anchors, scales)
    assert pair[0].shape == pair[1].shape == (groups, columns, 3)
    close(pair, plain_loops.count_reals(reals, memberships, anchors, scales), (centres - anchors) * scales, 1e-14)


HARD = {
    "offset 1e8": (1e8, 1.0, 0.0),
    "offset 1e10": (1e10, 1.0, 0.0),
    "a million deviations from the anchor": (0.0, 1.0, 1e6),
    "scale 1e-150": (0.0, 1e-150, 1e6),
    "scale 1e150": (0.0, 1e150, 1e6),
}


@KERNELS
@pytest.mark.parametrize("case", sorted(HARD))
@pytest.mark.parametrize("soft", [False, True], ids=["labelled", "soft"])
def test_hard_cases_keep_the_variance_to_thirteen_digits(kernels: ModuleType, case: str, soft: bool) -> None:
    offset, unit, distance = HARD[case]
    rng = np.random.default_rng(4)
    labels = (np.arange(700) % 2).astype(np.int32)
    reals = ((rng.normal(size=(700, 3)) + distance * labels[:, None]) * unit) + offset
    reals[5, 1] = np.nan
    anchors = np.full(3, offset) + 0.3 * unit
    scales = np.full(3, 2.0 ** -round(np.log2(unit)))
    centres = reals[:2].copy()
    memberships = plain_loops.as_memberships(labels, None, 2)
    if soft:
        memberships = np.clip(memberships, 1e-30, 1.0)
        pair = kernels.count_reals_soft(reals, memberships, centres, anchors, scales)
    else:
        pair = kernels.count_reals_labelled(reals, labels, None, centres, anchors, scales)
    variances_close(pair, plain_loops.count_reals(reals, memberships, anchors, scales), 1e-13)


@KERNELS
def test_a_long_column_sums_as_exactly_as_a_short_one(kernels: ModuleType) -> None:
    # NIST's NumAcc idea: 0.2 steps around a large constant; a plain chain of 20,000 additions errs near 1e-12.
    column = np.where(np.arange(20_001) % 2, 1000000.1, 1000000.3)
    column[0] = 1000000.2
    labels, scales = np.zeros(len(column), np.int32), np.ones(1)
    centres, anchors = np.array([[1000000.2]]), np.array([999999.0])
    pair = kernels.count_reals_labelled(column[:, None], labels, None, centres, anchors, scales)
    exact = plain_loops.count_reals(column[:, None], np.ones((len(column), 1)), anchors, scales)
    close(pair, exact, centres - anchors, 1e-15)
    variances_close(pair, exact, 1e-14)


@KERNELS
def test_a_small_sum_survives_between_two_huge_ones_that_cancel(kernels: ModuleType) -> None:
    column = np.repeat([2.0**60, 1.0, -(2.0**60)], 256)[:, None]
    labels, zeros, ones = np.zeros(len(column), np.int32), np.zeros(1), np.ones(1)
    for high, low in (
        kernels.count_reals_labelled(column, labels, None, zeros[None], zeros, ones),
        kernels.count_reals_soft(column, np.ones((len(column), 1)), zeros[None], zeros, ones),
    ):
        assert high[0, 0, 1] + low[0, 0, 1] == 256.0


@KERNELS
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_an_infinite_cell_shows_in_its_own_sums_and_no_others(kernels: ModuleType, bad: float) -> None:
    reals = np.arange(30.0).reshape(10, 3)
    reals[4, 1] = bad
    labels = (np.arange(10) % 2).astype(np.int32)
    centres, zeros, ones = np.zeros((2, 3)), np.zeros(3), np.ones(3)
    high, low = kernels.count_reals_labelled(reals, labels, None, centres, zeros, ones)
    broken = ~np.isfinite(high + low).all(axis=2)
    assert broken.tolist() == [[False, True, False], [False, False, False]]
    high, low = kernels.count_reals_soft(reals, np.full((10, 2), 0.5), centres, zeros, ones)
    assert (~np.isfinite(high + low).all(axis=2)).tolist() == [[False, True, False], [False, True, False]]


@KERNELS
def test_a_row_of_no_weight_is_not_looked_at(kernels: ModuleType) -> None:
    reals = np.array([[1.0], [np.inf], [3.0]])
    labels, weights = np.zeros(3, np.int32), np.array([1.0, 0.0, 1.0])
    high, _ = kernels.count_reals_labelled(reals, labels, weights, np.zeros((1, 1)), np.zeros(1), np.ones(1))
    assert high[0, 0].tolist() == [2.0, 4.0, 10.0]


@KERNELS
@settings(max_examples=25, deadline=None)
@given(
    rows=ROWS, columns=COLUMNS, groups=GROUPS, holes=st.sampled_from([0.0, 0.1, 1.0]),
    layout=st.sampled_from(sorted(LAYOUTS)), seed=st.integers(0, 99),
)  # fmt: skip
def test_scores_match_the_plain_loops(
    kernels: ModuleType, rows: int, columns: int, groups: int, holes: float, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    reals = make_reals(rng, rows, columns, holes)
    means, inverse = rng.normal(size=(groups, columns)) * 30, rng.uniform(0.05, 2.0, (groups, columns))
    constants = np.log(inverse) - 0.5 * np.log(2 * np.pi)
    out = rng.normal(size=(rows, groups))
    expected = out + plain_loops.score_reals(reals, means, inverse, constants)
    kernels.score_reals(LAYOUTS[layout](reals), means, inverse, constants, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_memberships_are_those_of_the_scores(holes: float, layout: str) -> None:
    rng = np.random.default_rng(5)
    reals = make_reals(rng, 101, 9, holes)
    reals[7] = np.inf
    means, inverse = rng.normal(size=(11, 9)) * 30, rng.uniform(0.05, 2.0, (11, 9))
    constants, log_shares = np.log(inverse), np.log(rng.dirichlet(np.ones(11)))
    joint = np.tile(log_shares, (101, 1))
    fused.score_reals(reals, means, inverse, constants, joint)
    expected = fused.normalise(joint)
    out = np.full((101, 11), np.nan)
    evidence = fused.posterior_reals(LAYOUTS[layout](reals), means, inverse, constants, log_shares, out)
    assert evidence[7] == -np.inf
    assert not out[7].any()
    np.testing.assert_allclose(evidence, expected, rtol=1e-15)
    np.testing.assert_allclose(out, joint, rtol=1e-11, atol=1e-300)


@KERNELS
def test_scores_around_a_far_mean_keep_their_digits(kernels: ModuleType) -> None:
    reals = np.array([[1e8 + 0.5], [1e8 - 2.0]])
    out = np.zeros((2, 1))
    kernels.score_reals(reals, np.array([[1e8]]), np.ones((1, 1)), np.zeros((1, 1)), out)
    assert out.tolist() == [[-0.125], [-2.0]]


@KERNELS
def test_a_distance_too_large_for_a_double_is_impossible_and_not_nan(kernels: ModuleType) -> None:
    reals = np.array([[1e200, np.nan], [-1.7e308, 0.0], [1.0, 1.0]])
    means, inverse = np.array([[0.0, 0.0], [1.7e308, 0.0]]), np.array([[1e200, 1.0], [1.0, 1.0]])
    out = np.zeros((3, 2))
    kernels.score_reals(reals, means, inverse, np.zeros((2, 2)), out)
    assert not np.isnan(out).any()
    assert out[:2].tolist() == [[-np.inf, -np.inf], [-np.inf, -np.inf]]


@KERNELS
def test_a_row_scores_the_same_whatever_rows_stand_beside_it(kernels: ModuleType) -> None:
    rng = np.random.default_rng(1)
    reals = make_reals(rng, 131, 9, 0.2)
    means, inverse = rng.normal(size=(10, 9)), rng.uniform(0.5, 2.0, (10, 9))
    together, alone = np.zeros((131, 10)), np.zeros((131, 10))
    kernels.score_reals(reals, means, inverse, inverse, together)
    for i in range(131):
        kernels.score_reals(reals[i : i + 1], means, inverse, inverse, alone[i : i + 1])
    assert np.array_equal(together, alone)


def test_read_only_cells_are_counted_like_any_others() -> None:
    rng = np.random.default_rng(2)
    reals, labels = make_reals(rng, 50, 4, 0.1), make_labels(rng, 50, 3)
    arguments = (labels, None, np.zeros((3, 4)), np.zeros(4), np.ones(4))
    expected = fused.count_reals_labelled(reals, *arguments)
    reals.setflags(write=False)
    assert all(map(np.array_equal, fused.count_reals_labelled(reals, *arguments), expected))
