"""A few documents for the tests of the bag of words, with their counts, and drawn ones."""

from __future__ import annotations

from hypothesis import strategies as st

NOTES = ["Free call, call now!", "I call you", None, "", "now or never: FREE straße"]
TEXTS = [note or "" for note in NOTES]
NAMES = ["call", "free", "never", "now", "or", "straße", "you"]
COUNTS = [[2, 1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 1], [0] * 7, [0] * 7, [0, 1, 1, 1, 1, 1, 0]]

DRINKS = ["tea milk milk rum", "tea tea milk", "tea", "tea tea tea"]
"""Four documents; "tea" is in all, "milk" in two, "rum" in one."""

TREES = st.sampled_from(["oak", "elm", "ash", "fir", "yew", "box", "bay"])
WORDS = st.lists(st.lists(TREES, max_size=9), min_size=1, max_size=12)
"""Documents as lists of their words."""


def same(one, other):
    """Matrices of one shape and type, equal in every cell."""
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    assert (one != other).nnz == 0
