"""Counting and scoring coded columns: both kernels against plain loops."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels import plain_loops

from softcount.kernels import fused, reference

KERNELS = pytest.mark.parametrize("kernels", [reference, fused], ids=["reference", "fused"])
NARROW = pytest.mark.parametrize("kind", [np.uint8, np.int32], ids=["one byte", "four bytes"])
ROWS = st.sampled_from([0, 1, 2, 63, 64, 65, 300])
GROUPS = st.sampled_from([1, 2, 5, 8, 9, 17])
SIZES = st.lists(st.integers(1, 9), max_size=7)
WIDE = [120, 3, 200, 90]  # pairs of these are too many cells to tabulate


def make_codes(rng: np.random.Generator, rows: int, sizes: list[int], kind: type) -> tuple[np.ndarray, np.ndarray, int]:
    codes = np.empty((rows, len(sizes)), kind)
    for j, size in enumerate(sizes):
        codes[:, j] = rng.integers(0, size, rows)
    ends = np.cumsum(sizes, dtype=np.int64)
    return codes, ends - np.array(sizes, np.int64), int(ends[-1]) if sizes else 0


@KERNELS
@NARROW
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, sizes=st.one_of(SIZES, st.just(WIDE)), groups=GROUPS, seed=st.integers(0, 99))
def test_scores_match_the_plain_loops(
    kernels: ModuleType, kind: type, rows: int, sizes: list[int], groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, offsets, cells = make_codes(rng, rows, sizes, kind)
    table = rng.normal(size=(cells, groups))
    table[rng.random(table.shape) < 0.1] = -np.inf
    out = rng.normal(size=(rows, groups))
    expected = out + plain_loops.score_codes(codes, offsets, table)
    kernels.score_codes(codes, offsets, table, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(rows=ROWS, sizes=st.one_of(SIZES, st.just(WIDE)), groups=GROUPS, seed=st.integers(0, 99))
def test_memberships_are_those_of_the_scores(rows: int, sizes: list[int], groups: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, offsets, cells = make_codes(rng, rows, sizes, np.uint8)
    table, log_shares = rng.normal(size=(cells, groups)), np.log(rng.dirichlet(np.ones(groups)))
    table[rng.random(table.shape) < 0.1] = -np.inf
    joint = log_shares + plain_loops.score_codes(codes, offsets, table)
    expected = reference.normalise(joint)
    out = np.full((rows, groups), np.nan)
    np.testing.assert_allclose(
        fused.posterior_codes(codes, offsets, table, log_shares, out), expected, rtol=1e-13, atol=1e-13
    )
    np.testing.assert_allclose(out, joint, rtol=1e-12)


@KERNELS
@NARROW
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, sizes=st.one_of(SIZES, st.just(WIDE)), groups=GROUPS, seed=st.integers(0, 99))
def test_labelled_counts_match_the_plain_loops_to_the_last_row(
    kernels: ModuleType, kind: type, rows: int, sizes: list[int], groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, offsets, cells = make_codes(rng, rows, sizes, kind)
    labels = rng.integers(-1, groups, rows).astype(np.int32)
    expected = plain_loops.count_codes(codes, offsets, plain_loops.as_memberships(labels, None, groups), cells)
    counts = kernels.count_codes_labelled(codes, offsets, labels, None, cells, groups)
    assert counts.dtype == np.float64
    assert np.array_equal(counts, expected)


@KERNELS
@NARROW
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, sizes=st.one_of(SIZES, st.just(WIDE)), groups=GROUPS, seed=st.integers(0, 99))
def test_weighted_counts_match_the_plain_loops(
    kernels: ModuleType, kind: type, rows: int, sizes: list[int], groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, offsets, cells = make_codes(rng, rows, sizes, kind)
    labels, weights = rng.integers(-1, groups, rows).astype(np.int32), rng.choice([0.0, 0.1, 1.0, 7.3], rows)
    expected = plain_loops.count_codes(codes, offsets, plain_loops.as_memberships(labels, weights, groups), cells)
    counts = kernels.count_codes_labelled(codes, offsets, labels, weights, cells, groups)
    np.testing.assert_allclose(counts, expected, rtol=1e-13)


@KERNELS
@NARROW
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, sizes=st.one_of(SIZES, st.just(WIDE)), groups=GROUPS, seed=st.integers(0, 99))
def test_soft_counts_match_the_plain_loops(
    kernels: ModuleType, kind: type, rows: int, sizes: list[int], groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, offsets, cells = make_codes(rng, rows, sizes, kind)
    memberships = rng.dirichlet(np.ones(groups), rows)
    expected = plain_loops.count_codes(codes, offsets, memberships, cells)
    counts = kernels.count_codes_soft(codes, offsets, memberships, cells)
    np.testing.assert_allclose(counts, expected, rtol=1e-13)


@KERNELS
@pytest.mark.parametrize("sizes", [[3, 3, 3], WIDE], ids=["paired", "single"])
def test_many_rows_in_one_cell_keep_thirteen_digits(kernels: ModuleType, sizes: list[int]) -> None:
    rows = 32_768
    codes = np.zeros((rows, len(sizes)), np.uint8)
    offsets = np.cumsum([0, *sizes[:-1]])
    share = np.full((rows, 1), 0.1)
    exact = rows * 0.1  # 2**15 times the stored double: no rounding
    soft = kernels.count_codes_soft(codes, offsets, share, sum(sizes))
    hard = kernels.count_codes_labelled(codes, offsets, np.zeros(rows, np.int32), share[:, 0], sum(sizes), 1)
    for counts in (soft, hard):
        np.testing.assert_allclose(counts[offsets, 0], exact, rtol=1e-12)
        assert counts.sum() == pytest.approx(exact * len(sizes), rel=1e-12)


@KERNELS
def test_pairing_columns_changes_no_count(kernels: ModuleType) -> None:
    rng = np.random.default_rng(3)
    codes, offsets, cells = make_codes(rng, 200, [4, 5, 3], np.uint8)
    labels = rng.integers(0, 2, 200).astype(np.int32)
    together = kernels.count_codes_labelled(codes, offsets, labels, None, cells, 2)
    for j, size in enumerate((4, 5, 3)):
        alone = kernels.count_codes_labelled(codes[:, j : j + 1].copy(), offsets[:1], labels, None, size, 2)
        assert np.array_equal(together[offsets[j] : offsets[j] + size], alone)
