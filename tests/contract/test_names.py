"""Names of columns, levels and classes are data: whatever they are called, every answer is the same.

Tables whose columns bear names that we give to things of our own are compared with the same tables under plain names.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.core.counts import ROOT
from softcount.estimators.result_frames import arrow_of as arrow

OURS = [
    "(groups)", "(prior)", "(class)", "(count)", "(row)", "(against)", "(total)", "(file)", "(probability)", "(words)",
    "((prior))", "(other)", "(missing)", "weights", "root", "class", "columns", "places", "params/0", "counts/'a'/hi",
    "a, b", "reals", "codes", "predicted", "p(no)", "anomaly", "unseen", "shares", "(assigned)", "a", "b",
]  # fmt: skip
"""Names of ours: in counts, answers, files and reports; and what a block of the columns "a" and "b" is called."""
PLAIN = [f"c{place}" for place in range(len(OURS))]
CALLED = dict(zip(PLAIN, OURS, strict=True))
BLOCK = (PLAIN[-2], PLAIN[-1])
RESULT = "result"


def table(rows: int = 90) -> pd.DataFrame:
    """Columns of numbers and words, under plain names, with a class and some holes."""
    rng = np.random.default_rng(4)
    sort = rng.integers(0, 2, rows)
    columns: dict[str, Any] = {RESULT: np.where(sort, "yes", "no")}
    for place, name in enumerate(PLAIN):
        if place % 3 == 0 and name not in BLOCK:
            chosen = (rng.random(rows) < 0.3 + 0.3 * sort).astype(int)
            columns[name] = np.array(["(other)", "(groups)"], dtype=object)[chosen]
        else:
            columns[name] = rng.normal(0.1 * place * sort, 1.0)
        columns[name][rng.integers(0, rows, 2)] = None
    return pd.DataFrame(columns)


FRAME = table()
THEIRS = FRAME.rename(columns=CALLED)


def renamed(key: Any) -> Any:
    return tuple(map(renamed, key)) if isinstance(key, tuple) else CALLED.get(key, key)


def naive_bayes(names: dict[str, str], frame: pd.DataFrame) -> Any:
    block = tuple(names.get(name, name) for name in BLOCK)
    return sc.NaiveBayes(kinds={block: "multinormal"}).fit(frame, RESULT)


def mixture(names: dict[str, str], frame: pd.DataFrame) -> Any:
    block = tuple(names.get(name, name) for name in BLOCK)
    rows = frame.drop(columns=RESULT)
    return sc.Mixture(2, kinds={block: "multinormal"}, n_init=2, max_iter=20, random_state=0).fit(rows)


MODELS = {"naive Bayes": naive_bayes, "mixture": mixture}


@pytest.fixture(scope="module", params=MODELS)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """The same model of the same rows, under plain names and under ours."""
    return MODELS[request.param]({}, FRAME), MODELS[request.param](CALLED, THEIRS)


def columns_of(answer: Any) -> list[Any]:
    return [column.to_pylist() for column in answer.columns]


def alike(plain: Any, ours: Any) -> None:
    """The same answers from both, column by column and under names that are each there once."""
    np.testing.assert_array_equal(plain.predict_proba(FRAME), ours.predict_proba(THEIRS))
    for ask in ("explain", "anomalies", "augment"):
        left, right = arrow(getattr(plain, ask)(FRAME)), arrow(getattr(ours, ask)(THEIRS))
        assert len(set(right.column_names)) == len(left.column_names)
        if ask == "anomalies":
            figures = [
                [[r["surprise"] for r in row] for row in answer["reasons"].to_pylist()] for answer in (left, right)
            ]
            assert figures[0] == figures[1]
        else:
            assert columns_of(left) == columns_of(right)
    left, right = (arrow(model.sample(20, random_state=1)) for model in (plain, ours))
    assert len(set(right.column_names)) == len(left.column_names) and columns_of(left) == columns_of(right)
    np.testing.assert_array_equal(plain.counts_[ROOT], ours.counts_[ROOT])
    assert [renamed(key) for key in plain.params_] == list(ours.params_)
    for key, params in plain.params_.items():
        np.testing.assert_array_equal(plain.counts_[key], ours.counts_[renamed(key)])
        for part, value in params.items():
            np.testing.assert_array_equal(value, ours.params_[renamed(key)][part])
    assert list(plain.influence_.values()) == list(ours.influence_.values())
    for name in (PLAIN[0], PLAIN[2], PLAIN[13]):
        answers = plain.query(name, {PLAIN[3]: "(other)"}), ours.query(CALLED[name], {CALLED[PLAIN[3]]: "(other)"})
        assert answers[0] == answers[1] if isinstance(answers[0], dict) else answers[0].mean == answers[1].mean


def test_names_change_no_answer(both: tuple[Any, Any]) -> None:
    alike(*both)


def test_names_change_no_answer_of_a_saved_model(both: tuple[Any, Any], tmp_path: Path) -> None:
    plain, ours = both
    ours.save(tmp_path / "ours.sc")
    alike(plain, sc.load(tmp_path / "ours.sc"))


def test_what_is_ours_stands_back_where_a_column_has_its_name(both: tuple[Any, Any]) -> None:
    names = arrow(both[1].explain(THEIRS)).column_names
    assert names[:3] == ["((class))", "((against))", "(((prior)))"]
    assert {"(prior)", "((prior))", "a, b", "(a, b)"} <= set(names)
    assert set(both[1].query("((class))")) == set(both[0].query("(class)"))
    assert arrow(both[1].augment(THEIRS)).column_names[-2:] == ["((class))", "((count))"]


def test_names_change_no_class_report(both: tuple[Any, Any]) -> None:
    left, right = (arrow(model.summary()).to_pylist() for model in both)
    for one, other in zip(left, right, strict=True):
        assert list(one["typical"].values()) == list(other["typical"].values())
        assert [x["influence"] for x in one["contrasts"]] == [x["influence"] for x in other["contrasts"]]


def test_a_start_and_what_is_held_may_name_a_column_called_weights() -> None:
    rng = np.random.default_rng(0)
    rows = {"weights": np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 40)]), "x": rng.normal(size=80)}
    start = {"mean": [0.0, 6.0], "variance": [1.0, 1.0]}
    how = {"n_init": 1, "max_iter": 3, "accelerate": False}
    fits = []
    for name, shares in (("weights", "(weights)"), ("plain", "weights")):
        table = {name: rows["weights"], "x": rows["x"]}
        init = {shares: [0.3, 0.7], name: start, "x": {"mean": [0.0, 0.0], "variance": [1.0, 1.0]}}
        fixed = {shares: [0.3, 0.7], name: {"variance": [1.0, 1.0]}}
        fits.append(sc.Mixture(2, init=init, fixed=fixed, kinds=dict.fromkeys(table, "normal"), **how).fit(table))
    np.testing.assert_array_equal(fits[0].weights_, [0.3, 0.7])
    np.testing.assert_array_equal(fits[0].params_["weights"]["mean"], fits[1].params_["plain"]["mean"])
    np.testing.assert_array_equal(fits[0].params_["weights"]["variance"], [1.0, 1.0])


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_gaussian_mixture_may_have_columns_called_weights_and_means(kind: str) -> None:
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(5, 1, (40, 2))])
    how = {"means_init": [[0.0, 0.0], [5.0, 5.0]], "weights_init": [0.2, 0.8], "fixed": {"weights": [0.2, 0.8]}}
    plain, ours = (
        sc.GaussianMixture(2, covariance_type=kind, n_init=1, **how).fit(pd.DataFrame(rows, columns=names))
        for names in (["x", "y"], ["weights", "means"])
    )
    np.testing.assert_array_equal(plain.means_, ours.means_)
    np.testing.assert_array_equal(ours.weights_, [0.2, 0.8])


def test_a_word_may_be_called_like_the_words_that_are_not_there() -> None:
    texts = ["(words not there)|win", "(words not there)|lose|win", "lose|draw", "draw"] * 3
    told = []
    for name in ("(words not there)", "(plain)"):
        kinds = {"text": sc.families.Text(model="bernoulli", pattern=r"[^|]+")}
        rows = pd.DataFrame({"text": [text.replace("(words not there)", name) for text in texts]})
        model = sc.NaiveBayes(kinds=kinds).fit(rows, ["a", "a", "b", "b"] * 3)
        found = arrow(model.explain_words(rows, row=0)).to_pylist()
        assert len({line["word"] for line in found}) == len(found)
        told.append(sorted((line["nats"], len(line["spans"])) for line in found))
    assert told[0] == told[1]


# The same from a shell


def run(*words: Any) -> Any:
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def asked(folder: Path, frame: pd.DataFrame, names: dict[str, str], options: list[str]) -> dict[str, Any]:
    """All that the commands say of a table, as data, and in the order of its columns."""
    frame.to_csv(folder / "t.csv", index=False)
    data, model = folder / "t.csv", folder / "m.sc"
    fit = json.loads(run("fit", data, *options, "-o", model, "--json"))
    show = json.loads(run("show", model, data, "--json"))
    lines = list(csv.reader(run("explain", model, data).splitlines()))
    row = json.loads(run("explain", model, data, "--row", 3, "--json"))[0]
    page = run("explain", model, data, "--row", 3)
    query = json.loads(run("query", model, "--of", names.get(PLAIN[1], PLAIN[1]), "--json"))
    assert len(set(lines[0])) == len(lines[0])
    return {
        "typical": [list(card["typical"].values()) for card in fit["classes"]],
        "influence": [entry["value"] for entry in show["influence"]],
        "parameters": [entry["parameters"] for entry in show["fitted"]],
        "reasons": [[part["surprise"] for part in odd["reasons"]] for odd in show["data"]["anomalies"]],
        "predicted": list(csv.reader(run("predict", model, data).splitlines())),
        "explained": lines[1:],
        "row": list(row.values()),
        "page": [line.split()[-1] for line in page.splitlines()[2:]],
        "mean": query["mean"],
        "sample": list(csv.reader(run("sample", model, "-n", 5).splitlines()))[1:],
    }


@pytest.mark.parametrize("options", [["--target", RESULT, "--folds", "3"], ["--classes", "2", "--starts", "1"]])
def test_names_change_nothing_that_the_commands_say(options: list[str], tmp_path: Path) -> None:
    answers = []
    for place, (frame, names) in enumerate([(FRAME, {}), (THEIRS, CALLED)]):
        (tmp_path / str(place)).mkdir()
        said = frame if "--target" in options else frame.drop(columns=RESULT)
        answers.append(asked(tmp_path / str(place), said, names, options))
    for name, answer in answers[0].items():
        assert answer == answers[1][name], name
