"""Worked example 10: the same column twice doubles its log-odds, and the class can flip."""

import numpy as np
import pytest

import softcount as sc

YES = {"G": (29, 17), "D": (6, 18), "M": (27, 3)}
LIVES = [1] * 32 + [0] * 48
PRINTED = {1: 0.1245, 2: 0.2667, 3: 0.4821, 4: 0.7043}


def model_with(copies):
    """Example 8 with `copies` columns that all hold G, and the one row (G, D, M) = (1, 1, 0)."""
    columns = {
        name: [int(i < hill) for i in range(32)] + [int(i < rest) for i in range(48)]
        for name, (hill, rest) in YES.items()
    }
    table = {f"G{i}": columns["G"] for i in range(copies)} | {"D": columns["D"], "M": columns["M"]}
    row = {name: [0 if name == "M" else 1] for name in table}
    return sc.NaiveBayes(estimate="ml", kinds="bernoulli").fit(table, LIVES), row


@pytest.mark.parametrize("copies", PRINTED)
def test_each_copy_makes_the_row_likelier(copies):
    model, row = model_with(copies)
    assert model.predict_proba(row)[0, 1] == pytest.approx(PRINTED[copies], abs=5e-5)


def test_the_class_flips_at_the_fourth_copy():
    predicted = [model.predict(row)[0] for model, row in map(model_with, PRINTED)]
    assert predicted == [0, 0, 0, 1]


def test_each_copy_adds_the_same_log_odds():
    odds = []
    for copies in PRINTED:
        model, row = model_with(copies)
        no, yes = model.predict_log_proba(row)[0]
        odds.append(yes - no)
    one = np.log((29 / 32) / (17 / 48))
    np.testing.assert_allclose(np.diff(odds), one, rtol=1e-12)
