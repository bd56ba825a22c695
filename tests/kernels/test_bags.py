"""Sparse rows scored and counted: plain SciPy, compiled loops and an oracle that looks at every cell."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.kernels import fused, reference
from softcount.models.bag_stack import Labelled, Pending, SparseRows
from softcount.models.stacks import Kernels

both = pytest.mark.parametrize("kernel", [reference, fused], ids=["reference", "fused"])
FEW = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@st.composite
def bags(draw: Any) -> tuple[np.ndarray, np.random.Generator]:
    """A dense table of counts, most of them nothing, with empty rows; and something to draw the rest from."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(0, 12)), draw(st.integers(1, 9))
    return rng.integers(1, 5, (rows, columns)) * (rng.random((rows, columns)) < 0.3), rng


def sparse_rows(table: np.ndarray) -> SparseRows:
    from scipy import sparse

    return SparseRows.of(sparse.csr_matrix(table.astype(np.float64)))


@both
def test_scores_are_counts_times_weights(kernel: ModuleType) -> None:
    @FEW
    @given(bags(), st.integers(1, 5))
    def law(drawn: Any, groups: int) -> None:
        table, rng = drawn
        weights, out = rng.normal(size=(table.shape[1], groups)), rng.normal(size=(len(table), groups))
        right = [[out[i, g] + sum(table[i] * weights[:, g]) for g in range(groups)] for i in range(len(table))]
        kernel.score_bags(*sparse_rows(table).parts, weights, out)
        np.testing.assert_allclose(out, np.reshape(right, out.shape), rtol=1e-13, atol=1e-13)

    law()


@both
def test_soft_counts_share_every_row_out(kernel: ModuleType) -> None:
    @FEW
    @given(bags(), st.integers(1, 5))
    def law(drawn: Any, groups: int) -> None:
        table, rng = drawn
        members = rng.random((len(table), groups))
        found = kernel.count_bags_soft(*sparse_rows(table).parts, members, table.shape[1])
        np.testing.assert_allclose(found, table.T @ members, rtol=1e-13, atol=1e-13)

    law()


@both
def test_labelled_counts_are_exact_and_leave_unknown_rows_out(kernel: ModuleType) -> None:
    @FEW
    @given(bags(), st.integers(1, 4), st.booleans())
    def law(drawn: Any, groups: int, weighted: bool) -> None:
        table, rng = drawn
        labels = rng.integers(-1, groups, len(table)).astype(np.int32)
        weights = rng.integers(0, 4, len(table)) / 4 if weighted else None
        out = np.ones((table.shape[1], groups))
        kernel.count_bags_labelled(*sparse_rows(table).parts, labels, weights, out)
        right = np.ones_like(out)
        for i, label in enumerate(labels):
            if label >= 0:
                right[:, label] += table[i] * (1.0 if weights is None else weights[i])
        assert np.array_equal(out, right)

    law()


@both
def test_a_stretch_of_rows_is_a_view_that_counts_the_same(kernel: ModuleType) -> None:
    rng = np.random.default_rng(3)
    table = rng.poisson(0.4, (40, 6))
    part = sparse_rows(table)[7:19]
    assert part.nbytes == 12 * np.count_nonzero(table[7:19])
    np.testing.assert_array_equal(part.matrix.toarray(), table[7:19])
    members = rng.random((12, 3))
    np.testing.assert_allclose(kernel.count_bags_soft(*part.parts, members, 6), table[7:19].T @ members, rtol=1e-13)
    out = np.zeros((12, 2))
    kernel.score_bags(*part.parts, np.ones((6, 2)), out)
    np.testing.assert_array_equal(out[:, 0], table[7:19].sum(axis=1))


@both
def test_a_label_without_a_group_is_refused_by_row(kernel: ModuleType) -> None:
    with pytest.raises(IndexError, match="row 1 is labelled 2, but groups are 0 to 1"):
        kernel.count_bags_labelled(
            *sparse_rows(np.ones((3, 2))).parts, np.array([0, 2, 1], np.int32), None, np.zeros((2, 2))
        )


def test_cells_outside_the_table_are_refused() -> None:
    from scipy import sparse

    matrix = sparse.csr_matrix(np.ones((2, 3)))
    matrix.indices[1] = 7
    with pytest.raises(DataError, match="3 columns has column indices outside"):
        SparseRows.of(matrix)


def test_rows_joined_are_the_rows_one_after_another() -> None:
    table = np.random.default_rng(4).poisson(0.5, (9, 4))
    whole = SparseRows.joined([sparse_rows(table)[:4], sparse_rows(table)[4:9]])
    np.testing.assert_array_equal(whole.matrix.toarray(), table)


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 3, 50, 70), (10, 20, 30, 40, 50, 60, 70, 80)])
def test_waiting_counts_do_not_depend_on_how_the_rows_came(cuts: tuple[int, ...]) -> None:
    """The very bits, with weights that are no whole numbers, and classes that turn up late."""
    rng = np.random.default_rng(5)
    table, labels = rng.poisson(0.7, (90, 5)), np.sort(rng.integers(0, 4, 90)).astype(np.int32)
    weights = rng.random(90)

    def pending(start: int, stop: int) -> Pending:
        own = labels[start:stop]
        piece = Labelled(sparse_rows(table[start:stop]), own, weights[start:stop])
        return Pending(Kernels(1 << 40), (piece,), (5, int(own.max()) + 1))

    edges = [0, *cuts, 90]
    total = pending(0, edges[1])
    for start, stop in pairwise(edges[1:]):
        total = total.joined(pending(start, stop))
    right = np.zeros((4, 5))
    for i in range(90):
        right[labels[i]] += weights[i] * table[i]
    assert total.shape == (4, 5)
    np.testing.assert_allclose(total.value, right, rtol=1e-13)
    assert np.array_equal(total.hi, pending(0, 90).hi) and not total.lo.any()
    if len(cuts) > 1:
        assert len(total.pieces) < len(cuts)  # counted once there were as many as cells
