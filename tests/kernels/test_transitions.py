"""Pairs of neighbours as compiled loops count them, against loops over every sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.kernels import transitions


def plain(codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    alone, pairs = np.zeros(base), np.zeros((base, base))
    for at, weight in enumerate(weights):
        steps = codes[starts[at] : starts[at + 1]].tolist()
        for place, code in enumerate(steps):
            alone[code] += weight * (code > 0)
            if place and code and steps[place - 1]:
                pairs[steps[place - 1], code] += weight
    return alone, pairs


@settings(max_examples=40)
@given(st.integers(16, 70), st.integers(1, 200), st.sampled_from([np.uint8, np.int32]), st.booleans(), st.data())
def test_every_way_counts_the_same_pairs(n: int, symbols: int, kind: type, weighed: bool, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    codes = rng.integers(0, symbols + 1, n).astype(kind)
    inner = np.sort(rng.integers(0, n + 1, data.draw(st.integers(0, 5))))  # some sequences may be empty
    starts = np.concatenate([[0], inner, [n]])
    weights = rng.integers(1, 4, len(starts) - 1).astype(float) if weighed else None
    base = symbols + 2
    right = plain(codes, starts, np.ones(len(starts) - 1) if weights is None else weights, base)
    with pytest.MonkeyPatch.context() as patched:
        for least in (0, 1 << 40):
            patched.setattr(transitions, "WORTH_COMPILING", least)
            found = transitions.count_pairs(codes, starts, weights, base)
            assert all(np.array_equal(a, b) for a, b in zip(found, right, strict=True))
