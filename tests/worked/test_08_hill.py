"""Worked example 8: who lives on the hill? Eighty people, three yes-or-no questions."""

import numpy as np
import pytest

import softcount as sc
from explained import contributions

# of 32 on the hill and 48 elsewhere, how many say yes
YES = {"G": (29, 17), "D": (6, 18), "M": (27, 3)}
PRINTED = {
    (1, 1, 1): 0.920094, (1, 1, 0): 0.124464, (1, 0, 1): 0.967678, (1, 0, 0): 0.269864,
    (0, 1, 1): 0.395122, (0, 1, 0): 0.008, (0, 0, 1): 0.629408, (0, 0, 0): 0.020537,
}  # fmt: skip


def people():
    """Eighty rows with these counts of yes; how the answers combine within a class does not matter."""
    columns = {
        name: [int(i < hill) for i in range(32)] + [int(i < rest) for i in range(48)]
        for name, (hill, rest) in YES.items()
    }
    return columns, [1] * 32 + [0] * 48


def fitted(**settings):
    table, lives = people()
    return sc.NaiveBayes(estimate="ml", kinds="bernoulli", **settings).fit(table, lives)


def questions():
    return {name: [row[j] for row in PRINTED] for j, name in enumerate("GDM")}


def test_shares_are_the_counted_ones():
    model = fitted()
    np.testing.assert_allclose(model.class_prior_, [48 / 80, 32 / 80], rtol=1e-15)
    for name, (hill, rest) in YES.items():
        np.testing.assert_allclose(model.params_[name]["probability"][:, 1], [rest / 48, hill / 32], rtol=1e-15)


def test_all_eight_rows_have_the_printed_probability():
    chances = fitted().predict_proba(questions())[:, 1]
    np.testing.assert_allclose(chances, list(PRINTED.values()), atol=5e-7)


def test_the_likelier_class_is_predicted():
    assert fitted().predict(questions()).tolist() == [int(p > 0.5) for p in PRINTED.values()]


@pytest.mark.parametrize("row", PRINTED)
def test_the_explanation_adds_up_to_the_log_odds(row):
    table = {name: [row[j]] for j, name in enumerate("GDM")}
    parts = contributions(fitted().explain(table))
    total = sum(parts[name][0].as_py() for name in parts.column_names)
    chance = PRINTED[row]
    assert total == pytest.approx(abs(np.log(chance / (1 - chance))), abs=2e-4)


def test_the_printed_numbers_do_not_change_when_answers_are_words():
    table, lives = people()
    words = {name: ["yes" if x else "no" for x in cells] for name, cells in table.items()}
    asked = {name: ["yes" if x else "no" for x in cells] for name, cells in questions().items()}
    model = sc.NaiveBayes(estimate="ml").fit(words, lives)
    np.testing.assert_allclose(model.predict_proba(asked)[:, 1], list(PRINTED.values()), atol=5e-7)
