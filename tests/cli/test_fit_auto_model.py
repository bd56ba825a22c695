"""softcount fit --target: what tells the classes is chosen, said, saved and used."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.fitted.ensemble_scorers import EnsembleScorer


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.choice(["x", "y"], 160), "b": rng.choice(["u", "v"], 160), "c": rng.normal(size=160)}
    )
    frame["same"] = np.where((frame["a"] == "x") == (frame["b"] == "u"), "yes", "no")
    path = tmp_path_factory.mktemp("auto") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_what_was_chosen_is_said_saved_and_used(table, tmp_path):
    told = run("fit", table, "--target", "same", "-o", tmp_path / "model.sc")
    assert told.exit_code == 0, told.output
    assert "Classifier for same: 2 classes" in told.output
    assert "pairwise interactions" in told.output
    model = sc.load(tmp_path / "model.sc")
    assert model.ensemble_.names == ("pairwise interactions",)
    predicted = run("predict", tmp_path / "model.sc", table)
    assert predicted.exit_code == 0
    rows = [line.split(",")[0] for line in predicted.stdout.splitlines()[1:]]
    assert rows == pd.read_csv(table)["same"].tolist()
    page = run("explain", tmp_path / "model.sc", table, "--row", 1)
    assert "(total)" in page.output


def test_the_figures_are_those_of_what_is_saved(table, tmp_path):
    told = run("fit", table, "--target", "same", "--json", "-o", tmp_path / "model.sc")
    figures = json.loads(told.stdout)["evaluation"]
    assert figures["accuracy"] > 0.95
    plain = run("fit", table, "--target", "same", "--model", "naive-bayes", "--json", "-o", tmp_path / "plain.sc")
    assert json.loads(plain.stdout)["evaluation"]["accuracy"] < 0.7


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--model", "auto"], "needs --target"), (["--target", "same", "--model", "magic"], "magic"),
     (["--target", "same", "--model", "auto", "--calibrate", "isotonic"], "is for naive Bayes"),
     (["--target", "same", "--model", "auto", "--net", "tan"], "is for naive Bayes")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(table, words, said):
    told = run("fit", table, *words)
    assert told.exit_code == 2
    assert said in told.output


def test_the_figures_may_be_of_other_folds_or_of_a_share_or_left_out(table, tmp_path):
    def figures(*words):
        told = run("fit", table, "--target", "same", *words, "--json", "-o", tmp_path / "m.sc")
        assert told.exit_code == 0, told.output
        return json.loads(told.stdout)["evaluation"]

    assert figures("--folds", 3)["how"] == "3-fold cross-validation"
    share = figures("--holdout", 0.25)
    assert share["how"] == "25 % held out" and 20 < share["rows"] < 60 and share["accuracy"] > 0.95
    assert figures("--folds", 0) is None


@pytest.mark.parametrize("model", [[], ["--model", "auto"], ["--model", "aode"]])
@pytest.mark.parametrize(
    "words", [["--prior", "2"], ["--estimate", "map"], ["--unlabelled-weight", "0.5"], ["--calibrate", "isotonic"]]
)
def test_an_option_of_naive_bayes_does_not_change_the_model(table, tmp_path, words, model):
    told = run("fit", table, "--target", "same", *words, *model, "-o", tmp_path / "m.sc")
    assert told.exit_code == 2
    assert f"{words[0]} is for naive Bayes: add --model naive-bayes" in told.output
    assert not (tmp_path / "m.sc").exists()
    assert (
        run("fit", table, "--target", "same", *words, "--model", "naive-bayes", "-o", tmp_path / "m.sc").exit_code == 0
    )


def test_merged_models_tell_classes_by_the_counts_of_both_and_say_so(table, tmp_path):
    for name in ("one", "other"):
        run("fit", table, "--target", "same", "-o", tmp_path / f"{name}.sc")
    run("fit", table, "--target", "same", "--model", "naive-bayes", "-o", tmp_path / "plain.sc")
    told = run("merge", tmp_path / "one.sc", tmp_path / "other.sc", "-o", tmp_path / "both.sc")
    assert told.exit_code == 0, told.output
    both, plain = sc.load(tmp_path / "both.sc"), sc.load(tmp_path / "plain.sc")
    assert isinstance(both, sc.Classifier) and both.ensemble_ is None
    assert [note for note in both.notes_ if "nsemble" in note] == [EnsembleScorer.dropped]
    frame = pd.read_csv(table).drop(columns="same")
    np.testing.assert_allclose(both.predict_proba(frame), plain.merge(plain).predict_proba(frame), rtol=1e-12)
