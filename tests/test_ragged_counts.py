"""Counts of coded columns: every column has room for its own codes, whatever the others have met."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import softcount as sc
from softcount.core.counts import Counts
from softcount.models.stacks import Ragged


def _of(columns: list[np.ndarray]) -> Ragged:
    """Counts from (groups x codes) of every column."""
    hi = np.concatenate(columns, axis=1)
    return Ragged(hi, np.zeros_like(hi), tuple(column.shape[1] for column in columns))


def _columns(counts: Ragged) -> list[np.ndarray]:
    return np.split(counts.value, np.cumsum(counts.sizes)[:-1], axis=1)


def _padded(column: np.ndarray, groups: int, codes: int) -> np.ndarray:
    return np.pad(column, ((0, groups - column.shape[0]), (0, codes - column.shape[1])))


@pytest.mark.parametrize("seed", range(8))
def test_what_only_one_part_has_met_makes_room(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(1, 5, 2)
    sizes = rng.integers(1, 7, (2, 4))
    parts = [[rng.random((g, size)) for size in own] for g, own in zip(groups, sizes, strict=True)]
    both = Counts({"codes": _of(parts[0])}) + Counts({"codes": _of(parts[1])})
    found = both.arrays["codes"]
    assert isinstance(found, Ragged)
    assert found.sizes == tuple(sizes.max(axis=0))
    for own, left, right in zip(_columns(found), *parts, strict=True):
        np.testing.assert_array_equal(own, _padded(left, *own.shape) + _padded(right, *own.shape))


@pytest.mark.parametrize("seed", range(8))
def test_codes_move_within_their_own_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 3)
    parts = [rng.random((2, size)) for size in sizes]
    moves = [rng.permutation(size + 2)[: size + int(rng.integers(0, 2))] for size in sizes]
    found = _of(parts).recoded([moves[0], None, moves[2]])
    for own, old, move in zip(_columns(found), parts, (moves[0], np.arange(sizes[1]), moves[2]), strict=True):
        expected = np.zeros_like(own)
        for code in range(old.shape[1]):
            expected[:, move[code]] = old[:, code]
        np.testing.assert_array_equal(own, expected)


def test_columns_side_by_side_have_zeros_beyond_what_was_met() -> None:
    counts = _of([np.array([[9.0, 1.0, 2.0]]), np.array([[9.0, 3.0]]), np.array([[9.0, 4.0, 5.0, 6.0]])])
    found = counts.side_by_side(np.array([0, 1]), 1, 3)
    np.testing.assert_array_equal(found.value, [[[1, 2, 0], [3, 0, 0]]])
    np.testing.assert_array_equal(counts.side_by_side(np.array([2]), 1, 3).value, [[[4, 5, 6]]])


def test_counts_travel_with_their_sizes() -> None:
    sent = pickle.loads(pickle.dumps(_of([np.ones((1, 2)), np.ones((1, 3))])))
    assert sent.sizes == (2, 3)


def test_one_wide_column_takes_no_room_in_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    held: list[int] = []
    joined = Ragged.joined

    def watched(self: Ragged, other: Ragged) -> Ragged:
        found = joined(self, other)
        held.append(found.hi.size)
        return found

    monkeypatch.setattr(Ragged, "joined", watched)
    table = {f"c{j}": rng.integers(0, 3, 9_000).astype(str) for j in range(40)}
    labels = rng.integers(0, 5, 9_000)
    wide = {**table, "wide": rng.integers(0, 200, 9_000).astype(str)}
    model = sc.NaiveBayes(kinds="categorical").fit(wide, labels)
    assert held
    assert max(held) == 5 * (40 * 4 + 201)
    alone = sc.NaiveBayes(kinds="categorical").fit(table, labels)
    for key in table:
        np.testing.assert_array_equal(model.params_[key]["probability"], alone.params_[key]["probability"])
