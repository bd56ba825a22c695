"""Anchors and scales of columns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.table import open_table
from softcount.table.schema import anchor_of, anchors_of, medians

SAMPLE = np.random.default_rng(4).normal(3, 2, 1_000)


def is_power_of_two(scale: float) -> bool:
    return math.frexp(scale)[0] == 0.5


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e300])
def test_a_column_of_any_size_is_scaled_to_about_one(unit: float) -> None:
    values = SAMPLE * unit
    anchor = anchor_of(values)
    assert anchor.at == pytest.approx(float(np.median(SAMPLE)) * unit, rel=1e-12)
    assert is_power_of_two(anchor.scale)
    assert 0.5 <= float(np.median(np.abs(values - anchor.at))) * anchor.scale <= 2.0


def test_the_offset_does_not_change_the_scale() -> None:
    assert anchor_of(SAMPLE + 1e8).scale == anchor_of(SAMPLE).scale


@pytest.mark.parametrize(
    ("values", "typical"), [([5.0, 5.0, 5.0, 9.0], 4.0), ([8.0, 8.0], 8.0), ([0.0, 0.0], 1.0), ([-0.25], 0.25)]
)
def test_columns_that_hardly_vary_fall_back_to_their_range_then_their_size(values: list[float], typical: float) -> None:
    assert anchor_of(np.array(values)).scale == 1 / typical


def test_only_finite_values_count_and_only_the_first() -> None:
    values = np.concatenate([[np.nan, np.inf], np.full(2_000, 4.0), np.full(9_000, 50.0)])
    assert anchor_of(values).at == 4.0
    assert anchor_of(np.array([np.nan])) == (0.0, 1.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_any_finite_numbers_have_a_finite_anchor(values: list[float]) -> None:
    at, scale = anchors_of(np.array(values)[:, None])
    assert np.isfinite(at).all()
    assert is_power_of_two(float(scale[0]))


def test_an_array_and_a_frame_have_the_same_anchors() -> None:
    array = np.column_stack([SAMPLE, SAMPLE * 1e-5 + 7, np.where(SAMPLE > 5, np.nan, SAMPLE)])
    bare = open_table(array).schema
    named = open_table({f"c{place}": array[:, place] for place in range(3)}).schema
    for place in range(3):
        assert (bare[place].anchor, bare[place].scale) == (named[f"c{place}"].anchor, named[f"c{place}"].scale)


def test_positive_columns_are_anchored_in_logarithms_also_when_declared() -> None:
    incomes = np.exp(np.random.default_rng(1).normal(10, 2, 1_001))
    guessed = open_table({"it": incomes}).schema["it"]
    assert guessed.kind == "positive"
    assert guessed.anchor == pytest.approx(float(np.median(np.log(incomes))))
    assert open_table(incomes[:, None], kinds={0: "positive"}).schema[0].anchor == guessed.anchor
    assert open_table({"it": incomes}, kinds={"it": "real"}).schema["it"].anchor == float(np.median(incomes))


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 99))
def test_medians_are_numpys(width: int, rows: int, seed: int) -> None:
    block = np.random.default_rng(seed).normal(size=(rows, width)).round(1)
    assert np.array_equal(medians(block), np.median(block, axis=1))
