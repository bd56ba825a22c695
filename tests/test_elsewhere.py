"""What all classes but one are like together, and the words that mark a class: one ranking wherever they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.families.text import evidence, marking
from softcount.fitted.explain import pool_params, sum_other_groups

KINDS = {"note": "text", "colour": "categorical", "length": "normal", "visits": "poisson"}
WORDS = np.array(["call", "claim", "free", "home", "love", "mum", "prize", "the", "they", "when"])


def made_up(groups: int, rows: int = 60) -> tuple[dict[str, Any], list[str]]:
    rng = np.random.default_rng(groups)
    names = [f"c{i % groups}" for i in range(rows)]
    table = {
        "note": [" ".join(rng.choice(WORDS, 6)) for _ in range(rows)],
        "colour": rng.choice(["red", "green", "blue"], rows).tolist(),
        "length": (1e6 + rng.normal(size=rows) + np.arange(rows) % groups).tolist(),
        "visits": rng.poisson(3.0, rows).tolist(),
    }
    return table, names


# -- all others together


@pytest.mark.parametrize("model", ["multinomial", "bernoulli", "complement"])
@pytest.mark.parametrize("groups", [2, 3, 5, 8])
def test_elsewhere_is_the_other_class_of_a_model_of_two(groups: int, model: Any) -> None:
    table, names = made_up(groups)
    kinds = KINDS | {"note": sc.families.Text(model)}
    fitted = sc.NaiveBayes(kinds=kinds).fit(table, names).fitted_
    for name, counts in zip(fitted.names, sum_other_groups(fitted), strict=True):
        found = pool_params(fitted, counts)
        two = sc.NaiveBayes(kinds=kinds).fit(table, [own if own == name else "other" for own in names])
        place = two.fitted_.names.index("other")
        for key, params in found.items():
            chosen = {"probability", "mean", "variance", "rate"} & set(params)
            assert chosen
            for figure in chosen:
                expected = two.params_[key][figure][place : place + 1]
                np.testing.assert_allclose(params[figure], expected, rtol=1e-12, atol=0)


def test_a_class_that_holds_nearly_everything_leaves_the_few_others_their_digits() -> None:
    rng = np.random.default_rng(3)
    table = {"length": [*(1e9 + rng.normal(size=40)), 1.25, 1.5, 1.75]}
    weights = [1e15] * 40 + [1e-6] * 3
    model = sc.NaiveBayes(kinds={"length": "normal"}, estimate="ml")
    fitted = model.fit(table, ["all"] * 40 + ["few"] * 3, sample_weight=weights).fitted_
    others = pool_params(fitted, next(sum_other_groups(fitted)))["length"]
    for figure in ("mean", "variance"):
        np.testing.assert_array_equal(others[figure][0], fitted.params["length"][figure][1])


def test_a_single_class_is_the_same_elsewhere() -> None:
    table, _ = made_up(1)
    (card,) = sc.Mixture(1, kinds=KINDS).fit(table).fitted_.cards()
    assert all(column.here == column.elsewhere for column in card.contrasts)


# -- one ranking of words


@pytest.mark.parametrize("model", ["multinomial", "bernoulli", "complement"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_cards_columns_and_marking_words_name_the_same_words(groups: int, model: Any) -> None:
    table, names = made_up(groups, 200)
    nb = sc.NaiveBayes(kinds=KINDS | {"note": sc.families.Text(model)}).fit(table, names)
    ranked = arrow(nb.characteristic_words(n=5)).to_pylist()
    lines = arrow(nb.summary("class and column")).to_pylist()
    per_class = {line["class"]: line["words"] for line in lines if line["column"] == "note"}
    for card, described in zip(nb.fitted_.cards(), nb.fitted_.describe("note"), strict=True):
        words = [line["word"] for line in ranked if line["class"] == card.name]
        expected = ", ".join(words) or "no characteristic words"
        here = next(column.here for column in card.contrasts if column.key == "note")
        assert here == described == card.typical["note"] == per_class[card.name] == expected


def test_with_two_classes_the_words_elsewhere_are_those_of_the_other() -> None:
    nb = sc.NaiveBayes(kinds={"note": "text"}).fit(
        {"note": ["free prize call", "love mum call", "free claim", "mum home when"] * 5}, list("shsh") * 5
    )
    one, other = (card.contrasts[0] for card in nb.fitted_.cards())
    assert (one.here, one.elsewhere) == (other.elsewhere, other.here)
    assert one.here.startswith("mum") and one.elsewhere.startswith("free")


def test_the_cards_of_spam_name_the_words_one_expects(data: Callable[[str], Path]) -> None:
    path = data("sms_spam") / "SMSSpamCollection"
    rows = [line.split("\t", 1) for line in path.read_text("utf-8").splitlines()]
    nb = sc.NaiveBayes(kinds={"note": "text"}).fit({"note": [text for _, text in rows]}, [label for label, _ in rows])
    ham, spam = (set(card.contrasts[0].here.split(", ")) for card in nb.fitted_.cards())
    assert spam <= {"call", "txt", "free", "claim", "mobile", "prize", "to", "www", "stop", "150p"}
    assert not ham & spam


@settings(max_examples=50)
@given(
    counts=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=12).filter(
        lambda pairs: all(map(sum, zip(*pairs, strict=True)))
    )
)
def test_without_counts_words_are_ranked_as_if_classes_were_of_one_size(counts: list[tuple[int, int]]) -> None:
    table = np.array(counts, dtype=float).T
    rates = table / table.sum(axis=1, keepdims=True)
    expected = evidence(1000 * rates[0], 1000 * rates[1], (1000.0, 1000.0)) / 1000
    np.testing.assert_allclose(marking(rates)[0], np.where(rates[0] > rates[1], expected, 0.0), atol=1e-12)


def test_words_equally_likely_everywhere_set_no_group_apart() -> None:
    leaf = sc.NaiveBayes(kinds={"note": "text"}).fit({"note": ["ink pot pen", "pot pen ink"]}, ["a", "b"])
    setting = leaf.fitted_.model.nodes["note"].setting
    assert (
        sc.families.Text().density({"probability": np.full((3, 3), 1 / 3)}, setting).describe()
        == ["no characteristic words"] * 3
    )
