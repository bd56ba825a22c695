"""A column of sequences beside others: it classifies, clusters, and says which transitions moved the decision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import softcount as sc
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.text.count_words import symbols_behind, transitions_of

PAGES = ["home", "shop", "buy"]
HABITS = {
    "buyer": np.array([[0.1, 0.6, 0.3], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]),
    "looker": np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.8, 0.1, 0.1]]),
}
MARKOV = {"clicks": "markov"}


def visits(count: int = 300, least: int = 8) -> tuple[pd.DataFrame, list[str]]:
    rng = np.random.default_rng(0)
    who = [("buyer", "looker")[at % 2] for at in range(count)]
    rows = []
    for name in who:
        steps = [0]
        for _ in range(least + int(rng.integers(0, 6))):
            steps.append(int(rng.choice(3, p=HABITS[name][steps[-1]])))
        rows.append([PAGES[step] for step in steps])
    ages = [float(rng.normal(45 if name == "buyer" else 40, 10)) for name in who]
    return pd.DataFrame({"clicks": rows, "age": ages}), who


def test_shares_are_counts_of_transitions_and_the_beginning_is_one() -> None:
    table = pd.DataFrame({"clicks": [["a", "b", "b"], ["b", None, "a", "b"], None], "size": [1.0, 2.0, 3.0]})
    model = sc.NaiveBayes(kinds=MARKOV, prior=1.0).fit(table, ["x", "x", "y"])
    begin, after_a, after_b = model.params_["clicks"]["probability"][0]
    assert begin.tolist() == [(1 + 1) / 4, (1 + 1) / 4]  # one began with a, one with b
    assert after_a.tolist() == [1 / 4, 3 / 4]  # twice b; nothing is known of what follows a gap
    assert after_b.tolist() == [1 / 3, 2 / 3]  # once b
    assert model.params_["clicks"]["probability"][1].tolist() == [[0.5, 0.5]] * 3


def test_lists_words_and_frames_of_any_kind_are_one_column() -> None:
    table, who = visits(60)
    model = sc.NaiveBayes(kinds=MARKOV).fit(table, who)
    spelt = table.assign(clicks=[" ".join(steps) for steps in table["clicks"]])
    words = sc.NaiveBayes(kinds={"clicks": sc.families.Markov(steps="words")}).fit(spelt, who)
    assert np.array_equal(words.predict_proba(spelt), model.predict_proba(table))
    frame = pl.DataFrame({name: table[name].tolist() for name in table})
    assert np.array_equal(sc.NaiveBayes(kinds=MARKOV).fit(frame, who).predict_proba(frame), model.predict_proba(table))
    letters = {"home": "h", "shop": "s", "buy": "b"}
    short = table.assign(clicks=["".join(letters[step] for step in steps) for steps in table["clicks"]])
    assert sc.NaiveBayes(kinds=MARKOV).fit(short, who).predict_proba(short) == pytest.approx(
        model.predict_proba(table), abs=1e-12
    )


def test_it_classifies_beside_other_columns_and_names_the_transitions() -> None:
    table, who = visits()
    model = sc.NaiveBayes(kinds=MARKOV).fit(table, who)
    assert np.mean(model.predict(table) == who) > 0.95
    moved = arrow(model.explain_words(table, row=0)).to_pydict()
    parts = arrow(model.explain(table.head(1))).to_pydict()
    assert sum(moved["nats"]) == pytest.approx(parts["clicks"][0], rel=1e-10)
    assert {"home → shop", "shop → buy"} & set(moved["word"])
    assert "shop → buy" in arrow(model.characteristic_words("clicks")).to_pydict()["word"]


def test_a_mixture_of_chains_recovers_planted_groups() -> None:
    table, who = visits(240, least=20)
    model = sc.Mixture(2, kinds=MARKOV, random_state=0).fit(table[["clicks"]])
    assert adjusted_rand_score(who, model.predict(table[["clicks"]])) > 0.95
    assert (np.diff(model.trace_) >= -1e-9 * abs(model.trace_[-1])).all()


def test_parts_add_to_the_whole_also_where_steps_are_new(tmp_path: Path) -> None:
    table, who = visits(100)
    table.at[60, "clicks"] = ["home", "help", "buy"]
    whole = sc.NaiveBayes(kinds=MARKOV).fit(table, who)
    parts = sc.NaiveBayes(kinds=MARKOV).fit(table[:50], who[:50]).partial_fit(table[50:], who[50:])
    assert parts.predict_proba(table) == pytest.approx(whole.predict_proba(table), abs=1e-12)
    assert np.array_equal(parts.params_["clicks"]["probability"], whole.params_["clicks"]["probability"])
    merged = sc.NaiveBayes(kinds=MARKOV).fit(table[:50], who[:50])
    merged = merged.merge(sc.NaiveBayes(kinds=MARKOV).fit(table[50:], who[50:]))
    assert merged.predict_proba(table) == pytest.approx(whole.predict_proba(table), abs=1e-12)
    whole.save(tmp_path / "visits.sc")
    assert np.array_equal(sc.load(tmp_path / "visits.sc").predict_proba(table), whole.predict_proba(table))


def test_a_class_is_the_chain_of_its_sequences() -> None:
    lines = ["abab", "aabb", "bbba", "abba"]
    model = sc.NaiveBayes(kinds="markov", prior=0.5).fit(lines, ["x"] * 4)
    chain = sc.MarkovChain(1, prior=0.5, ends=True).fit(lines)
    shares = chain.transitions_[:, :2] + 0.0
    counts = np.zeros((3, 2))
    for line in lines:
        for before, after in zip("^" + line, line, strict=False):
            counts["^ab".index(before), "ab".index(after)] += 1
    right = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 1.0)
    assert model.params_["text"]["probability"][0] == pytest.approx(right, rel=1e-12)
    assert shares.shape == right.shape


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "an arrow": (
        lambda: sc.NaiveBayes(kinds=MARKOV).fit(pd.DataFrame({"clicks": [["a → b"], ["c"]]}), [0, 1]),
        "arrow",
    ),
    "steps as words": (lambda: sc.families.Text(analyzer="steps"), "'steps' is not known"),
    "steps in a bag": (lambda: sc.BagOfWords(analyzer="steps").fit(["ab cd", "ef"]), "'steps' is not known"),
    "half an order": (lambda: sc.families.Markov(order=0), "order=0"),
    "steps of no kind": (lambda: sc.families.Markov(steps="pages"), "'pages' is not known"),
    "lists not declared": (
        lambda: sc.NaiveBayes().fit(pd.DataFrame({"clicks": [["a"], ["b"]]}), [0, 1]),
        "'clicks': 'markov'",
    ),
    "too many transitions": (
        lambda: sc.NaiveBayes(kinds={"clicks": sc.families.Markov(order=3)}).fit(
            pd.DataFrame({"clicks": [list(map(str, range(60)))] * 2}), [0, 1]
        ),
        "60 different steps have",
    ),
    "asked for": (lambda: sc.NaiveBayes(kinds=MARKOV).fit(*visits(10)).query("clicks"), "sequences"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_named(case: str) -> None:
    call, said = BAD[case]
    with pytest.raises(sc.DataError, match=said):
        call()


def test_how_many_steps_are_behind_transitions() -> None:
    for order in (1, 2, 3, 5):
        for symbols in range(1, 12):
            assert symbols_behind(transitions_of(symbols, order), order) == symbols


# -- real sequences


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_promoters_one_left_out(data: Callable[[str], Path]) -> None:
    """106 x 57: by transitions with three letters before each 100 are right (with one 83, and by place 97)."""
    lines = [line.split(",") for line in data("uci_promoters/promoters.data").read_text().splitlines()]
    labels, strands = [line[0] for line in lines], [line[2].strip() for line in lines]
    table = pd.DataFrame({"dna": strands})
    right = 0
    for at, label in enumerate(labels):
        model = sc.NaiveBayes(kinds={"dna": sc.families.Markov(order=3)}).fit(
            table.drop(at), labels[:at] + labels[at + 1 :]
        )
        right += int(model.predict(table.iloc[[at]])[0] == label)
    assert right == 100


def test_texts_are_told_apart_by_200_characters(data: Callable[[str], Path]) -> None:
    """Shakespeare, a list of names, and Onegin in Russian, in small letters alone."""
    folder = data("text_markov")
    texts = {
        "shakespeare": (folder / "tinyshakespeare.txt").read_text()[:200_000],
        "names": " ".join((folder / "names.txt").read_text().split()[:20_000]),
        "onegin": (folder / "onegin_ru.txt").read_text("utf-8")[:100_000],
    }
    table, labels = [], []
    for name, text in texts.items():
        plain = "".join(letter if letter.isalpha() else " " for letter in text.lower())
        pieces = [plain[at : at + 200] for at in range(0, len(plain) - 200, 200)]
        table += pieces
        labels += [name] * len(pieces)
    order = np.random.default_rng(0).permutation(len(table))
    rows, names = pd.DataFrame({"text": [table[at] for at in order]}), [labels[at] for at in order]
    half = len(rows) // 2
    model = sc.NaiveBayes(kinds={"text": "markov"}).fit(rows[:half], names[:half])
    assert np.mean(model.predict(rows[half:]) == names[half:]) > 0.995
