"""The number of classes, where nobody said: the smallest criterion, and no search without end."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.learn.choose import MOST_CLASSES, best_of, bic


@dataclass
class Tried:
    classes: int
    log_likelihood: float
    n_parameters: int = 0
    n_rows: float = 10.0


def test_parameters_cost_the_logarithm_of_the_rows():
    assert bic(Tried(1, -7.0, 3, 10.0)) == pytest.approx(3 * log(10) + 14)  # type: ignore[arg-type]


@given(st.lists(st.floats(-1e6, 1e6), min_size=MOST_CLASSES, max_size=MOST_CLASSES))
def test_the_best_of_those_tried_is_taken_and_two_more_in_vain_end_the_search(likelihoods):
    best, trials = best_of(lambda classes: Tried(classes, likelihoods[classes - 1]))  # type: ignore[arg-type,return-value]
    assert [trial.classes for trial in trials] == list(range(1, len(trials) + 1))
    smallest = min(trials, key=lambda trial: trial.bic)
    assert best == smallest.classes
    assert len(trials) == min(smallest.classes + 2, MOST_CLASSES)
