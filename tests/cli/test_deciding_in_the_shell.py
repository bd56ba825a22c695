"""softcount evaluate, and predict with costs, shares and thresholds: as Python says, and refused in a line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from softcount.cli import main
from softcount.fitted.decisions import Decision, apply_class_prior


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows to learn from and rows kept back, some without a class, one class with a comma and an equals sign."""
    place = tmp_path_factory.mktemp("deciding")
    rng = np.random.default_rng(0)
    ill = rng.random(400) < 0.3
    names = np.where(ill, "ill, a=b", "well").astype(object)
    names[395:] = None
    frame = pd.DataFrame({"heat": rng.normal(37 + ill), "age": rng.normal(50 + 5 * ill, 10), "state": names})
    frame["times"] = rng.integers(1, 4, 400)
    frame[:200].to_csv(place / "learn.csv", index=False)
    frame[200:].to_csv(place / "kept.csv", index=False)
    for options in (("-o", "m.sc"), ("--net", "tan", "-o", "net.sc")):
        words = ["fit", place / "learn.csv", "--target", "state", "--kind", "times=ignore", "--folds", 0]
        assert run(*words, *options[:-1], place / options[-1]).exit_code == 0
    return place


def predicted(folder: Path, *options: object, model: str = "m.sc") -> list[str]:
    result = run("predict", folder / model, folder / "kept.csv", *options)
    assert result.exit_code == 0, result.output
    return [line["predicted"] for line in csv.DictReader(io.StringIO(result.stdout))]


def predicted_in_python(model, rows, costs=None, class_prior=None, threshold=None) -> list[str]:
    if isinstance(model, sc.NaiveBayes):
        return model.predict(rows, costs, class_prior, threshold).tolist()
    names, shares = model.classes_.tolist(), np.array(list(model.query("state").values()))
    logs = np.log(model.predict_proba(rows))
    proba = np.exp(logs if class_prior is None else apply_class_prior(logs, class_prior, names, shares))
    return model.classes_[Decision.of(names, costs, threshold)(proba)].tolist()


@pytest.mark.parametrize("model", ["m.sc", "net.sc"])
def test_predictions_are_those_of_python(folder, model):
    loaded, kept = sc.load(folder / model), pd.read_csv(folder / "kept.csv")
    asked = {
        ("--cost", "ill, a=b,well=5"): {"costs": {("ill, a=b", "well"): 5}},
        ("--class-prior", "ill, a=b=0.05"): {"class_prior": {"ill, a=b": 0.05}},
        ("--class-prior", "estimate"): {"class_prior": "estimate"},
        ("--class-prior", "uniform", "--threshold", "ill, a=b=0.3"): {
            "class_prior": "uniform",
            "threshold": {"ill, a=b": 0.3},
        },
    }
    plain = predicted(folder, model=model)
    for options, settings in asked.items():
        found = predicted(folder, *options, model=model)
        assert found == predicted_in_python(loaded, kept, **settings)
        assert found != plain or options == ("--class-prior", "estimate")  # which may be what they were


def test_an_estimated_class_prior_is_printed(folder):
    result = run("predict", folder / "m.sc", folder / "kept.csv", "--class-prior", "estimate")
    assert "estimated from these rows: ill, a=b 0." in result.stderr


def test_figures_are_those_of_python(folder):
    result = run("evaluate", folder / "m.sc", folder / "kept.csv", "--json", "--weight", "times")
    document = json.loads(result.stdout)
    kept = pd.read_csv(folder / "kept.csv")
    found = sc.load(folder / "m.sc").evaluate(kept, "state", sample_weight=kept["times"])
    told = document["evaluation"]
    for name in ("accuracy", "balanced_accuracy", "log_loss", "brier", "auc", "calibration_error"):
        assert told[name] == pytest.approx(getattr(found, name), rel=1e-12)
    np.testing.assert_allclose(told["confusion"], found.confusion)
    assert document["passed_over"] == 5 and told["rows"] == 195
    assert document["lift"]["of"] == "ill, a=b" and len(document["lift"]["parts"]) == 10


def test_the_page_has_every_figure(folder):
    asked = ("--cost", "ill, a=b,well=5", "--recall", "ill, a=b=0.9")
    page = run("evaluate", folder / "m.sc", folder / "kept.csv", *asked).stdout
    for text in ("195 rows whose class is known", "5 rows without a class", "Brier score", "AUC", "calibration error",
                 "true class", "mean cost of a row", "threshold: 'ill, a=b' if its", "lift so far"):  # fmt: skip
        assert text in page
    lines = {line.split("  ")[1].strip(): line for line in page.splitlines() if line.startswith("  ")}
    assert "precision" in lines and "well" in lines


def test_rows_of_one_class_are_judged_as_far_as_they_tell(folder, tmp_path):
    kept = pd.read_csv(folder / "kept.csv")
    kept[kept["state"] == "well"].to_csv(tmp_path / "well.csv", index=False)
    document = json.loads(run("evaluate", folder / "m.sc", tmp_path / "well.csv", "--json").stdout)
    assert document["evaluation"]["auc"] is None and document["lift"]["of"] == "well"
    assert {part["lift"] for part in document["lift"]["parts"]} == {1.0}
    assert run("evaluate", folder / "m.sc", tmp_path / "well.csv").exit_code == 0
    result = run("evaluate", folder / "m.sc", tmp_path / "well.csv", "--recall", "well=0.9")
    assert result.exit_code == 3 and "every row with a label is of class 'well'" in result.stderr


def test_costs_are_what_decisions_came_to(folder):
    words = ("evaluate", folder / "m.sc", folder / "kept.csv", "--json", "--cost", "ill, a=b,well=5")
    told = json.loads(run(*words).stdout)["costs"]
    kept = pd.read_csv(folder / "kept.csv").dropna(subset="state")
    model, true = sc.load(folder / "m.sc"), kept["state"].to_numpy()
    for name, settings in (("cheapest", {"costs": {("ill, a=b", "well"): 5}}), ("likeliest", {})):
        said = model.predict(kept, **settings)
        paid = np.where(true == said, 0, np.where(true == "ill, a=b", 5, 1)).mean()
        assert told[name] == pytest.approx(paid)
    ill = (true == "ill, a=b").mean()
    assert told["always"] == pytest.approx(min(1 - ill, 5 * ill))


def test_a_network_is_evaluated_by_its_class(folder):
    document = json.loads(run("evaluate", folder / "net.sc", folder / "kept.csv", "--json").stdout)
    assert document["classes"] == ["ill, a=b", "well"] and document["evaluation"]["auc"] > 0.7


BAD = {
    "a class nobody knows in costs": (("--cost", "sick,well=2"), 3, "there is no class 'sick'"),
    "a cost without a pair": (("--cost", "well=2"), 2, "is not TRUE,DECIDED=COST"),
    "a cost that is not a number": (("--cost", "well,ill, a=b=much"), 2, "'much' is not a number"),
    "a class nobody knows in shares": (("--class-prior", "sick=0.2"), 3, "--class-prior: there is no class 'sick'"),
    "shares beyond one": (("--class-prior", "well=1.2"), 3, "from 0 to 1"),
    "a word among shares": (("--class-prior", "uniform", "--class-prior", "well=0.1"), 2, "or one word"),
    "a share without a class": (("--class-prior", "flat"), 2, "is not CLASS=NUMBER"),
}
ONLY = {
    "predict": {
        "costs beside a threshold": (("--cost", "well,ill, a=b=2", "--threshold", "well=0.1"), 2, "give only one"),
        "a threshold beyond one": (("--threshold", "well=3"), 3, "from 0 to 1"),
    },
    "evaluate": {
        "both rates": (("--precision", "well=0.9", "--recall", "well=0.9"), 2, "give only one"),
        "a rate beyond one": (("--recall", "well=90"), 3, "above 0 and up to 1"),
        "a target that is not there": (("--target", "stat"), 3, "Did you mean 'state'?"),
        "weights that are not there": (("--weight", "w"), 3, "has no column 'w'"),
        "lift of no class": (("--lift", "sick"), 3, "no class 'sick'"),
    },
}
CASES = [(command, name) for command, own in ONLY.items() for name in {**BAD, **own}]


@pytest.mark.parametrize(("command", "name"), CASES)
def test_bad_questions_are_refused_in_a_line(folder, command, name):
    options, code, said = {**BAD, **ONLY[command]}[name]
    result = run(command, folder / "m.sc", folder / "kept.csv", *options)
    assert result.exit_code == code and said in result.stderr and "Traceback" not in result.stderr


def test_rows_that_cannot_be_compared_are_refused(folder, tmp_path):
    kept = pd.read_csv(folder / "kept.csv")
    kept.drop(columns="state").to_csv(tmp_path / "bare.csv", index=False)
    kept.assign(state="dead").to_csv(tmp_path / "dead.csv", index=False)
    kept.assign(state=None).to_csv(tmp_path / "none.csv", index=False)
    run("fit", folder / "learn.csv", "--classes", 2, "-o", tmp_path / "mix.sc")
    for model, rows, said in (
        (folder / "m.sc", tmp_path / "bare.csv", "has no column 'state'"),
        (folder / "m.sc", tmp_path / "dead.csv", "row 1: class 'dead' is not one of the model's"),
        (folder / "m.sc", tmp_path / "none.csv", "no row has a label"),
        (tmp_path / "mix.sc", folder / "kept.csv", "no target to evaluate"),
    ):
        result = run("evaluate", model, rows)
        assert result.exit_code == 3 and said in result.stderr
