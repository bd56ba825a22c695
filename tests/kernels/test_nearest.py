"""The nearest centre: the compiled kernel with bounds, the plain one and loops give one label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import kmeans_oracle as oracle
from softcount.kernels import bounded, nearest
from softcount.kernels.nearest import blocks_of, fresh_state, goal_of

SHAPES = [(np.float32, 32, 64), (np.float64, 7, 13), (np.float32, 3, 17), (np.float64, 1, 1), (np.float32, 17, 5)]
KERNELS = {"plain": nearest, "compiled": bounded}


def table(kind, rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(kind)


def goal_for(centres, kind, bounded_=True):
    kind = np.dtype(kind)
    return goal_of(centres, kind, np.zeros(len(centres)), np.zeros(blocks_of(len(centres), kind)), bounded_)


def state_for(rows, clusters, weights=None):
    return fresh_state(len(rows), rows.dtype, blocks_of(clusters, rows.dtype), weights)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind, columns, clusters", SHAPES)
def test_labels_and_sums_match_the_row_by_row_oracle(kernel, kind, columns, clusters):
    rows = table(kind, 90, columns)
    centres = rows[:clusters].astype(float) + 0.01
    weights = np.random.default_rng(1).integers(1, 4, 90).astype(float)
    state = state_for(rows, clusters, weights)
    moved = KERNELS[kernel].advance(rows, state, goal_for(centres, kind))
    labels = [oracle.nearest(row, centres) for row in rows]
    assert state.labels.tolist() == labels
    assert moved.changed == 90
    np.testing.assert_allclose(-moved.fall, oracle.cost(rows, weights, labels, centres), rtol=1e-12)
    np.testing.assert_array_equal(moved.members, np.bincount(labels, minlength=clusters))
    np.testing.assert_allclose(moved.mass, np.bincount(labels, weights, clusters), rtol=1e-14)
    for k in range(clusters):
        mine = np.array(labels) == k
        np.testing.assert_allclose(moved.sums[k], weights[mine] @ rows[mine].astype(float), atol=1e-12)
    apart = KERNELS[kernel].spread(rows, state.labels, centres)
    np.testing.assert_allclose(
        apart, [oracle.square(row, centres[k]) for row, k in zip(rows, labels, strict=True)], rtol=1e-13
    )
    again = KERNELS[kernel].recount(rows, state, centres)
    np.testing.assert_allclose(again.sums, moved.sums, atol=1e-12)


@pytest.mark.parametrize("kind, columns, clusters", SHAPES)
def test_bounds_pass_over_no_row_that_changes(kind, columns, clusters):
    """Centres wander, far and near; the bounded kernel keeps its bounds, the plain one starts from nothing."""
    rows = table(kind, 1500, columns)
    rng = np.random.default_rng(2)
    centres, drift = rows[:clusters].astype(float), np.zeros(clusters)
    blocks = blocks_of(clusters, rows.dtype)
    block_drift, width = np.zeros(blocks), 64 // rows.dtype.itemsize
    kept = state_for(rows, clusters)
    for turn in range(25):
        goal = goal_of(centres, rows.dtype, drift, block_drift, turn > 1)
        bounded.advance(rows, kept, goal)
        np.testing.assert_array_equal(kept.labels, nearest.nearest(rows, goal))
        step = rng.normal(size=centres.shape) * rng.choice([0.3, 0.01, 0.001]) * (rng.random((clusters, 1)) < 0.5)
        moved = np.sqrt((step**2).sum(axis=1)) * (1 + 1e-12)
        centres, drift = centres + step, drift + moved
        padded = np.zeros(blocks * width)
        padded[:clusters] = moved
        block_drift = block_drift + padded.reshape(blocks, width).max(axis=1)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_ties_go_to_the_first_centre(kernel, kind):
    grid = np.array([[x, y] for x in range(-8, 9) for y in range(-8, 9)], dtype=kind)
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, -4.0], [4.0, 0.0]])
    state = state_for(grid, len(centres))
    KERNELS[kernel].advance(grid, state, goal_for(centres, kind))
    assert state.labels.tolist() == [oracle.nearest(row, centres) for row in grid]


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_products_that_cannot_tell_centres_apart_leave_it_to_the_distances(kernel):
    """Clusters 1e-3 wide at a distance of 100 from zero: the products' rounding is a thousand times their gap."""
    rng = np.random.default_rng(0)
    rows = (100 + 1e-3 * rng.normal(size=(500, 4))).astype(np.float32)
    centres = rows[:6].astype(float) + 1e-5
    state = state_for(rows, 6)
    KERNELS[kernel].advance(rows, state, goal_for(centres, np.float32))
    assert state.labels.tolist() == [oracle.nearest(row, centres) for row in rows]


def test_sparse_rows_get_the_labels_and_sums_of_dense_ones():
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.3, (200, 30)).astype(float)
    centres = rows[:7] + 0.01
    dense, thin = state_for(rows, 7), state_for(rows, 7)
    goal = goal_for(centres, np.float64)
    a, b = nearest.advance(rows, dense, goal), nearest.advance(sparse.csr_matrix(rows), thin, goal)
    np.testing.assert_array_equal(dense.labels, thin.labels)
    np.testing.assert_allclose(a.sums, b.sums, atol=1e-12)
    np.testing.assert_allclose(a.fall, b.fall, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rows_have_one_hash_however_it_is_computed_and_however_zeros_are_written(kind: type) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 7)).astype(kind)
    rows[3, 2], rows[4] = 0.0, rows[3]
    rows[4, 2] = -0.0
    plain = nearest.row_hashes(rows)
    assert np.array_equal(bounded.row_hashes(rows), plain)
    assert np.array_equal(nearest.row_hashes(sparse.csr_matrix(rows)), plain)
    assert plain[3] == plain[4] and len(set(plain.tolist())) == 49
