"""Laws every conjugate pair obeys: order does not matter, halves add up, evidence is a chain of predictions."""

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.priors import Beta, Dirichlet, Gamma, NormalInverseChi2, NormalInverseWishart, NormalKnownVariance


@dataclass
class Pair:
    """A prior, rows it can learn from, and how to hand rows to it."""

    prior: Any
    row: st.SearchStrategy
    see: Callable[[Any, list], Any]
    evidence: Callable[[Any, list], float]
    next_log: Callable[[Any, Any], float]

    @property
    def name(self) -> str:
        return type(self.prior).__name__


def trials(rows):
    return {"successes": sum(rows), "failures": len(rows) - sum(rows)}


def tabulated(rows):
    return [rows.count(level) for level in range(3)]


def as_values(rows):
    return np.array(rows, dtype=float)


def as_block(rows):
    return np.array(rows, dtype=float).reshape(-1, 2)


REALS = st.floats(-100, 100)

PAIRS = [
    Pair(
        Beta(2.5, 0.7),
        st.booleans(),
        lambda d, rows: d.update(**trials(rows)),
        lambda d, rows: d.log_evidence(**trials(rows)),
        lambda d, row: math.log(d.predict() if row else 1 - d.predict()),
    ),
    Pair(
        Dirichlet([0.5, 2.0, 1.0]),
        st.integers(0, 2),
        lambda d, rows: d.update(tabulated(rows)),
        lambda d, rows: d.log_evidence(tabulated(rows)),
        lambda d, row: math.log(d.predict(row)),
    ),
    Pair(
        Gamma(1.5, 0.4),
        st.integers(0, 40),
        lambda d, rows: d.update(values=as_values(rows)),
        lambda d, rows: d.log_evidence(values=as_values(rows)),
        lambda d, row: d.predict_log(row),
    ),
    Pair(
        NormalInverseChi2(1.0, 0.5, 3.0, 2.0),
        REALS,
        lambda d, rows: d.update(values=as_values(rows)),
        lambda d, rows: d.log_evidence(values=as_values(rows)),
        lambda d, row: d.predict_log(row),
    ),
    Pair(
        NormalKnownVariance(1.0, 0.5, 300.0),
        REALS,
        lambda d, rows: d.update(values=as_values(rows)),
        lambda d, rows: d.log_evidence(values=as_values(rows)),
        lambda d, row: d.predict_log(row),
    ),
    Pair(
        NormalInverseWishart([1.0, -1.0], 0.5, 4.0, [[2.0, 0.5], [0.5, 1.0]]),
        st.tuples(REALS, REALS),
        lambda d, rows: d.update(values=as_block(rows)),
        lambda d, rows: d.log_evidence(values=as_block(rows)),
        lambda d, row: d.predict_log(row),
    ),
]

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


def assert_close(one, other, tolerance=1e-9):
    for name in type(one).__match_args__:
        mine, yours = getattr(one, name), getattr(other, name)
        if mine is not None:
            np.testing.assert_allclose(mine, yours, rtol=tolerance, atol=tolerance)


@every_pair
@given(data=st.data())
def test_two_updates_equal_one_joint_update(pair, data):
    first, second = data.draw(st.lists(pair.row, max_size=6)), data.draw(st.lists(pair.row, max_size=6))
    assert_close(pair.see(pair.see(pair.prior, first), second), pair.see(pair.prior, first + second))


@every_pair
@given(data=st.data())
def test_the_order_of_rows_does_not_matter(pair, data):
    rows = data.draw(st.lists(pair.row, max_size=8))
    shuffled = data.draw(st.permutations(rows))
    assert_close(pair.see(pair.prior, rows), pair.see(pair.prior, shuffled))
    assert pair.evidence(pair.prior, rows) == pytest.approx(pair.evidence(pair.prior, shuffled), rel=1e-9, abs=1e-9)


@every_pair
@given(data=st.data())
def test_evidence_is_the_chain_of_predictions(pair, data):
    rows = data.draw(st.lists(pair.row, max_size=6))
    believed, chain = pair.prior, 0.0
    for row in rows:
        chain += pair.next_log(believed, row)
        believed = pair.see(believed, [row])
    assert pair.evidence(pair.prior, rows) == pytest.approx(chain, rel=1e-9, abs=1e-9)


@every_pair
@given(data=st.data())
def test_a_prediction_is_a_ratio_of_evidence(pair, data):
    rows, row = data.draw(st.lists(pair.row, max_size=6)), data.draw(pair.row)
    ratio = pair.evidence(pair.prior, [*rows, row]) - pair.evidence(pair.prior, rows)
    assert pair.next_log(pair.see(pair.prior, rows), row) == pytest.approx(ratio, rel=1e-8, abs=1e-8)


@every_pair
def test_seeing_nothing_changes_nothing(pair):
    assert_close(pair.see(pair.prior, []), pair.prior, 1e-15)
    assert pair.evidence(pair.prior, []) == 0.0


@every_pair
def test_a_copy_is_equal_and_hashes_alike_and_a_change_is_not_equal(pair):
    for twin in (copy.deepcopy(pair.prior), pickle.loads(pickle.dumps(pair.prior))):
        assert twin == pair.prior
        assert hash(twin) == hash(pair.prior)
    row = {"Dirichlet": 1, "NormalInverseWishart": (3.0, 4.0)}.get(pair.name, 1)
    assert pair.see(pair.prior, [row]) != pair.prior
    assert pair.prior != "something else"


@every_pair
def test_parameters_cannot_be_changed_in_place(pair):
    name = type(pair.prior).__match_args__[0]
    with pytest.raises(AttributeError):
        setattr(pair.prior, name, 1.0)
    value = getattr(pair.prior, name)
    if isinstance(value, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 5.0


@every_pair
def test_the_printed_form_and_the_description_are_one_line(pair):
    assert repr(pair.prior).startswith(pair.name + "(")
    for text in (repr(pair.prior), pair.prior.describe()):
        assert text
        assert "\n" not in text


@every_pair
def test_the_printed_form_makes_the_same_object_again(pair):
    again = eval(repr(pair.prior), {type(pair.prior).__name__: type(pair.prior)})
    assert again == pair.prior


@every_pair
def test_draws_repeat_with_the_seed_and_center_on_the_mean(pair):
    drawn, again = pair.prior.sample(4000, random_state=7), pair.prior.sample(4000, random_state=7)
    first = drawn[0] if isinstance(drawn, tuple) else drawn
    assert np.array_equal(first, again[0] if isinstance(again, tuple) else again)
    axis = 0
    error = first.std(axis=axis) / np.sqrt(4000)
    assert np.all(np.abs(first.mean(axis=axis) - pair.prior.mean) < 5 * error)
