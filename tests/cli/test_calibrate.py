"""softcount fit --calibrate: probabilities that mean what they say, and the page that shows it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import softcount
from softcount.cli import main
from softcount.fitted.calibration import Bin, Calibration
from softcount.report.evaluation import add_calibration, calibration_record
from softcount.report.page import Page, render_text


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that says everything four times, so that a model of it is too sure."""
    place = tmp_path_factory.mktemp("loud")
    rng = np.random.default_rng(0)
    ripe = rng.random(600) < 0.5
    size = np.where(ripe, 0.7, -0.7) + rng.normal(size=600)
    with open(place / "loud.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "sort"])
        writer.writerows([*[f"{x:.4f}"] * 4, "ripe" if r else "sour"] for x, r in zip(size, ripe, strict=True))
    return place


def fitted(folder: Path, *options: object) -> Result:
    options = ("--model", "naive-bayes", *options)
    result = run("fit", folder / "loud.csv", "--target", "sort", "-o", folder / "m.sc", *options)
    assert result.exit_code == 0, result.output
    return result


def test_a_model_that_is_too_sure_is_said_to_be_with_a_remedy(folder):
    page = fitted(folder, "--model", "naive-bayes", "--full").stdout
    assert "balanced accuracy" in page
    (line,) = [line for line in page.splitlines() if "overconfident" in line]
    assert "--calibrate temperature" in line and "stated as 0.9" in line
    assert "0.9 to 1.0" in page


def test_what_decides_for_itself_is_not_too_sure(folder):
    page = fitted(folder, "--model", "auto").stdout
    assert "Classifier for sort" in page and "overconfident" not in page


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_the_page_says_what_calibrating_did(folder, method):
    page = fitted(folder, "--calibrate", method).stdout
    assert "overconfident" not in page
    (line,) = [line for line in page.splitlines() if "calibrated (" in line]
    assert method in line and "600 rows held out" in line and " -> " in line
    model = softcount.load(folder / "m.sc")
    assert model.calibration_.method == method
    assert line.strip() in run("show", folder / "m.sc").stdout
    shown = json.loads(run("show", folder / "m.sc", "--json").stdout)
    assert shown["calibration"]["method"] == method


def test_the_document_holds_all_of_it(folder):
    document = json.loads(fitted(folder, "--calibrate", "temperature", "--json").stdout)
    found, tried = document["calibration"], document["evaluation"]
    assert found["method"] == "temperature" and found["temperature"] > 1
    assert found["log_loss"]["after"] < found["log_loss"]["before"]
    assert found["calibration_error"]["after"] < found["calibration_error"]["before"]
    assert sum(part["rows"] for part in found["reliability"]["after"]) == 600
    assert 0.5 < tried["balanced_accuracy"] < 1 and tried["baseline"]["balanced_accuracy"] == 0.5
    assert sum(part["rows"] for part in tried["reliability"]) == 600
    assert tried["calibration_error"] > 0.02
    assert json.loads(fitted(folder, "--json").stdout)["calibration"] is None


def test_predictions_are_the_calibrated_ones(folder):
    fitted(folder, "--folds", 0, "--model", "naive-bayes")
    sure = csv.DictReader(io.StringIO(run("predict", folder / "m.sc", folder / "loud.csv").stdout))
    fitted(folder, "--folds", 0, "--calibrate", "temperature")
    soft = csv.DictReader(io.StringIO(run("predict", folder / "m.sc", folder / "loud.csv").stdout))
    pairs = list(zip(sure, soft, strict=True))
    name = next(iter(pairs[0][0]))
    assert all(a[name] == b[name] for a, b in pairs)
    highest = [[max(float(x) for key, x in row.items() if key != name) for row in pair] for pair in pairs]
    assert sum(b < a for a, b in highest) > 550


def test_without_classes_there_is_nothing_to_calibrate(folder):
    for words, said in ((["--calibrate", "isotonic"], "--calibrate needs --target"),
                        (["--target", "sort", "--calibrate", "platt"], "temperature")):  # fmt: skip
        result = run("fit", folder / "loud.csv", *words)
        assert result.exit_code == 2 and said in result.stderr


def test_figures_near_one_are_not_called_one():
    before = (Bin(0.9, 1.0, 10.0, 0.9999, 1.0),)
    page = Page()
    add_calibration(page, Calibration("temperature", 10, 0.5, 0.25, before, before, temperature=2.0))
    text = render_text(page)
    assert "> 0.999" in text and "1.000" in text and "0.5 -> 0.25" in text
    assert calibration_record(None) is None
