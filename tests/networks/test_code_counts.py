"""Counts of any few nodes, against plain loops over the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks.plain_structures import drawn_codes, plain_counts
from softcount.errors import ResourceError
from softcount.networks import network, scores
from softcount.networks.scores import CodeCounts

WEIGHTS = (None, "whole", "parts")


def weighed(kind, rows, seed=0):
    rng = np.random.default_rng(seed)
    return {None: None, "whole": rng.integers(0, 4, rows) * 1.0, "parts": rng.random(rows)}[kind]


def as_table(found, shape):
    table = np.zeros(shape)
    for key, weight in found.items():
        table[key] = weight
    return table


@given(st.integers(0, 10_000), st.sampled_from(WEIGHTS), st.sampled_from([0.0, 0.2]), st.data())
def test_counts_are_those_of_a_loop_over_rows(seed, kind, holes, data):
    codes, sizes = drawn_codes(seed, 5, 60, holes)
    axes = data.draw(st.lists(st.integers(0, 4), unique=True))
    weights = weighed(kind, 60, seed)
    each = [1.0] * 60 if weights is None else weights
    found = CodeCounts(codes, sizes, weights).counts(axes)
    np.testing.assert_allclose(found, as_table(plain_counts(codes, each, axes), [sizes[a] for a in axes]), rtol=1e-13)


@given(st.integers(0, 10_000), st.sampled_from(WEIGHTS), st.sampled_from([0.0, 0.2]), st.data())
def test_several_at_once_are_the_same_as_one_after_the_other(seed, kind, holes, data):
    codes, sizes = drawn_codes(seed, 6, 50, holes)
    nodes = data.draw(st.permutations(range(6)))
    cut, end = data.draw(st.integers(0, 3)), data.draw(st.integers(4, 6))
    rows = CodeCounts(codes, sizes, weighed(kind, 50, seed))
    axes, others = nodes[:cut], nodes[cut:end]
    cells = int(np.prod([sizes[axis] for axis in axes]))
    one_by_one = [rows.counts((*axes, other)).reshape(cells, -1) for other in others]
    np.testing.assert_allclose(rows.with_each(axes, others), np.concatenate(one_by_one, axis=1), rtol=1e-13)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_many_rows_are_multiplied_as_few_are(kind, monkeypatch):
    codes, sizes = drawn_codes(5, 6, 200, 0.1)
    few = CodeCounts(codes, sizes, weighed(kind, 200)).with_each([2, 4], [0, 1, 5])
    monkeypatch.setattr(scores, "SMALL", 0)
    many = CodeCounts(codes, sizes, weighed(kind, 200)).with_each([2, 4], [0, 1, 5])
    np.testing.assert_allclose(few, many, rtol=1e-13)


@pytest.mark.parametrize("block", [1, 40, 1000])
def test_portions_of_rows_add_up(block, monkeypatch):
    codes, sizes = drawn_codes(3, 6, 300, 0.1)
    whole = CodeCounts(codes, sizes)
    expected = whole.with_each([2], [0, 5]), whole.with_each([], [4])
    monkeypatch.setattr(scores, "BLOCK", block)
    parted = CodeCounts(codes, sizes)
    assert np.array_equal(parted.with_each([2], [0, 5]), expected[0])
    assert np.array_equal(parted.with_each([], [4]), expected[1])


def test_nodes_of_many_levels_are_counted_one_after_the_other():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 500, 200), rng.integers(-1, 2, 200)], axis=1)
    rows = CodeCounts(codes, (500, 2))
    expected = as_table(plain_counts(codes, np.ones(200), [1, 0]), (2, 500))
    assert np.array_equal(rows.with_each([1], [0]), expected)


@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_weight_two_is_the_row_twice(kind):
    codes, sizes = drawn_codes(1, 4, 80, 0.1)
    weights = weighed(kind, 80)
    twice = CodeCounts(np.concatenate([codes, codes]), sizes, np.concatenate([weights, weights]))
    doubled = CodeCounts(codes, sizes, 2 * weights)
    for axes in [(), (2,), (3, 0), (0, 1, 2, 3)]:
        np.testing.assert_allclose(twice.counts(axes), doubled.counts(axes), rtol=1e-14)


def test_two_halves_add_to_the_whole():
    codes, sizes = drawn_codes(2, 4, 90, 0.2)
    parts = [CodeCounts(half, sizes).counts((1, 3)) for half in (codes[:31], codes[31:])]
    assert np.array_equal(parts[0] + parts[1], CodeCounts(codes, sizes).counts((1, 3)))


def test_the_order_of_rows_changes_nothing():
    codes, sizes = drawn_codes(4, 5, 200, 0.1)
    one, other = CodeCounts(codes, sizes), CodeCounts(codes[::-1], sizes)
    assert all(map(np.array_equal, one.distinct, other.distinct))


def test_equal_rows_are_kept_once():
    rows = CodeCounts(np.array([[0, -1], [1, 1], [0, -1]]), (2, 2), np.array([0.5, 1.0, 2.0]))
    codes, weights = rows.distinct
    assert sorted(zip(codes.tolist(), weights.tolist(), strict=True)) == [([0, -1], 2.5), ([1, 1], 1.0)]


def test_tables_are_the_same_before_and_after_rows_are_put_together():
    codes, sizes = drawn_codes(8, 5, 200, 0.1)
    before, after = CodeCounts(codes, sizes), CodeCounts(codes, sizes)
    assert len(after.distinct[0]) < 200
    for axes in [(0,), (1, 2), (4, 3, 0), (2,), (3, 1), (0, 1, 2, 3, 4), (4, 2), (1, 4)]:
        assert np.array_equal(before.counts(axes), after.counts(axes))


def test_rows_of_one_mark_are_not_mixed_up(monkeypatch):
    codes, sizes = drawn_codes(5, 4, 50, 0.1)
    expected = CodeCounts(codes, sizes).counts((0, 1, 2))
    monkeypatch.setattr(network, "_hash_rows", lambda rows: np.zeros(len(rows)))
    rows = CodeCounts(codes, sizes)
    assert len(rows.distinct[0]) == len({tuple(row) for row in codes.tolist()})
    assert np.array_equal(rows.counts((0, 1, 2)), expected)


def test_whole_numbers_beyond_single_floats_stay_exact():
    rows = CodeCounts(np.array([[0, 0], [0, 1], [1, 1]]), (2, 2), np.array([2.0**24, 1.0, 2.0**25 + 1]))
    assert rows.with_each([0], [1]).tolist() == [[2.0**24, 1.0], [0.0, 2.0**25 + 1]]
    assert rows.with_each([0, 1], [1]).max() == 2.0**25 + 1
    assert rows.with_each([], [0]).tolist() == [[2.0**24 + 1, 2.0**25 + 1]]


def test_other_weights_are_of_the_distinct_rows():
    codes, sizes = drawn_codes(6, 4, 100, 0.1)
    rows = CodeCounts(codes, sizes)
    distinct, _ = rows.distinct
    weights = weighed("whole", len(distinct))
    again = rows.reweighted(weights)
    expected = CodeCounts(distinct, sizes, weights)
    assert np.array_equal(again.counts((0, 2)), expected.counts((0, 2)))
    assert np.array_equal(again.with_each([1, 2], [3]), expected.with_each([1, 2], [3]))
    assert float(rows.counts(())) == 100


def test_tables_are_kept_up_to_a_bound(monkeypatch):
    codes, sizes = drawn_codes(7, 6, 40)
    monkeypatch.setattr(scores, "KEPT", 40)
    rows = CodeCounts(codes, sizes)
    for axes in [(0, 1), (1, 0), (2, 3, 4), (0, 5), (0, 1)]:
        expected = as_table(plain_counts(codes, np.ones(40), axes), [sizes[axis] for axis in axes])
        assert np.array_equal(rows.counts(axes), expected)
        assert sum(table.size for table in rows._kept.values()) <= 40


def test_a_kept_table_cannot_be_spoiled():
    rows = CodeCounts(np.array([[0], [1]]), (2,))
    with pytest.raises(ValueError, match="read-only"):
        rows.counts([0])[0] = 7


def test_no_rows_and_a_column_of_holes_count_nothing():
    none = CodeCounts(np.zeros((0, 2), dtype=int), (2, 3))
    assert none.counts((0, 1)).tolist() == [[0.0] * 3] * 2
    assert none.with_each([0], [1]).tolist() == [[0.0] * 3] * 2
    holes = CodeCounts(np.array([[0, -1], [1, -1]]), (2, 1))
    assert holes.counts((0, 1)).tolist() == [[0.0], [0.0]]
    assert holes.counts([0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_any_whole_numbers_are_codes(kind):
    assert CodeCounts(np.array([[1], [2]], dtype=kind), (3,)).counts([0]).tolist() == [0.0, 1.0, 1.0]


def test_a_table_too_large_is_refused_before_it_is_made():
    rows = CodeCounts(np.zeros((3, 8), dtype=int), (100,) * 8)
    with pytest.raises(ResourceError, match="nodes 0, 1, 2, 3, 4 would have 10,000,000,000 cells"):
        rows.counts(range(5))
