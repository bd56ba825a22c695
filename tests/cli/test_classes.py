"""Classes on the command line: choosing their number, reports, members, anomalies, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from cli.stand_in import NASTY
from cli.tables import write_table
from softcount.cli import main
from softcount.cli.read import READING
from softcount.core.counts import ROOT
from softcount.families.setting import Setting
from softcount.fitted.classes import Anomaly
from softcount.learn.record import Trial
from softcount.report.classes import give_reasons
from softcount.report.evaluation import add_selection
from softcount.report.page import Page, render_text
from softcount.run.progress import Tell

HEADER = ("length", "colour", "weight")
ODD = 41
"""The row, counted from 1, that belongs nowhere."""


def run(*arguments: object, code: int = 0, watching: Tell | None = None) -> Result:
    """The command, as if typed; `watching` is told how far it is."""
    result = CliRunner().invoke(main, [str(word) for word in arguments], obj=watching)
    assert result.exit_code == code, result.output
    return result


def colour(kind: int, rng: np.random.Generator) -> str:
    return ["red", "blue"][kind if rng.random() < 0.9 else 1 - kind]


def rows() -> list[tuple[str, ...]]:
    """Two kinds of thing, well apart; one row is of the first kind in everything but its weight."""
    rng = np.random.default_rng(2)
    kinds = [place % 2 for place in range(120)]
    cells = [[f"{rng.normal(10 * k, 1):.3f}", colour(k, rng), f"{rng.normal(5 * k):.3f}"] for k in kinds]
    cells[ODD - 1] = ["0.1", "red", "40.5"]
    return [tuple(line) for line in cells]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("classes")
    write_table(place / "things.csv", [line for place, line in enumerate(rows()) if place != ODD - 1], HEADER)
    write_table(place / "odd.csv", rows(), HEADER)
    run("fit", place / "things.csv", "-o", place / "auto.sc", "--starts", 2)
    return place


# -- the number of classes


def test_the_numbers_of_classes_tried_are_shown_with_every_figure_and_the_chosen_one_marked(folder):
    text = run("show", folder / "auto.sc").stdout
    for heading in ("log-likelihood", "params", "BIC", "MDL bits", "ICL", "evidence"):
        assert heading in text
    assert [line.split()[0] for line in text.splitlines() if line.endswith("chosen")] == ["2"]
    assert " CV" not in text


@pytest.mark.parametrize("criterion", ["evidence", "bic", "icl", "cv"])
def test_the_criterion_chooses_and_is_named(criterion, folder, tmp_path):
    saved = tmp_path / "m.sc"
    result = run("fit", folder / "things.csv", "-o", saved, "--criterion", criterion, "--starts", 1, "--json")
    document = json.loads(result.stdout)
    tried = document["selection"]
    sign = -1 if criterion in ("bic", "icl") else 1
    best = max(tried, key=lambda trial: sign * trial[criterion])
    assert document["criterion"] == criterion and len(document["classes"]) == best["classes"] == 2
    assert [trial["classes"] for trial in tried if trial["chosen"]] == [2]


def test_a_number_that_was_given_has_no_selection(folder, tmp_path):
    result = run("fit", folder / "things.csv", "--classes", 2, "--starts", 1, "-o", tmp_path / "m.sc", "--json")
    assert json.loads(result.stdout)["selection"] is None


@pytest.mark.parametrize("words", [("--classes", "3"), ("--target", "colour")])
def test_a_criterion_needs_a_number_to_choose(words, folder, tmp_path):
    result = run("fit", folder / "things.csv", *words, "--criterion", "bic", "-o", tmp_path / "m.sc", code=2)
    assert "--criterion" in result.stderr


def test_a_class_that_holds_no_rows_and_a_figure_nobody_asked_for_are_said_to_be():
    class Chosen:
        selection = (Trial(1, -20.0, 3, 46.0, 46.0, -25.0, None, 1), Trial(3, -9.0, 11, 42.0, 44.0, -26.0, None, 2))
        n_groups = 1

    page = Page()
    add_selection(page, Chosen(), "evidence")  # type: ignore[arg-type]
    lines = render_text(page).splitlines()
    assert lines[2].endswith("chosen") and lines[3].endswith("2 not empty") and "CV" not in lines[1]
    assert "are not chosen" in lines[4]


# -- reports


def test_every_class_has_a_card_with_here_elsewhere_and_a_typical_row(folder):
    text = run("show", folder / "auto.sc").stdout
    for word in ("How class 0 differs", "How class 1 differs", "in the others", "typical row:", "relative"):
        assert word in text


def test_a_table_is_sorted_into_the_classes_and_the_odd_row_leads_with_its_reason(folder):
    text = run("show", folder / "auto.sc", folder / "odd.csv", "--anomalies", 3).stdout
    part = text[text.index("Rows that fit worst") :].splitlines()
    assert part[2].split()[0] == str(ODD) and "weight 40.5 (+" in part[2]
    assert part[4] and not part[5]  # three of them
    assert "surest rows" in text and "unsure, over all rows" in text


def test_the_document_holds_cards_influence_members_and_anomalies(folder):
    document = json.loads(run("show", folder / "auto.sc", folder / "odd.csv", "--json").stdout)
    model = sc.load(folder / "auto.sc")
    found = document["data"]
    assert found["rows"] == 120 and len(found["anomalies"]) == 10
    worst = found["anomalies"][0]
    assert worst["row"] == ODD and worst["reasons"][0]["column"] == "weight" and worst["reasons"][0]["value"] == 40.5
    assert sum(reason["surprise"] for reason in worst["reasons"]) == pytest.approx(worst["score"])
    assert sum(line["rows"] for line in found["classes"]) == 120
    assert [line["class"] for line in document["classes"]] == [0, 1]
    assert set(document["classes"][0]["typical"]) == set(HEADER)
    influence = {entry["column"]: entry for entry in document["influence"]}
    for key, value in model.influence_.items():
        assert influence[key]["value"] == pytest.approx(value) == pytest.approx(sum(influence[key]["per_class"]))
    assert document["influence"][0]["relative"] == 1.0


def test_without_a_table_its_options_make_no_sense(folder):
    for words in (("--anomalies", 3), ("--missing", "x"), ("--no-header",)):
        assert "DATA" in run("show", folder / "auto.sc", *words, code=2).stderr


def test_a_model_of_columns_without_names_takes_a_file_by_place(tmp_path):
    cells = np.repeat([[0.0, 1.0], [9.0, 8.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    sc.GaussianMixture(2, n_init=1, random_state=0).fit(cells).save(tmp_path / "m.sc")
    write_table(tmp_path / "t.csv", [tuple(map(str, line)) for line in cells], None)
    result = run("show", tmp_path / "m.sc", tmp_path / "t.csv", "--no-header", "--json")
    assert json.loads(result.stdout)["data"]["relative_entropy"] < 0.1
    assert "not in the" not in result.stderr


def test_a_naive_bayes_model_has_members_too(folder, tmp_path):
    run("fit", folder / "things.csv", "--target", "colour", "--folds", 0, "-o", tmp_path / "m.sc")
    text = run("show", tmp_path / "m.sc", folder / "odd.csv").stdout
    assert "How blue differs" in text and "Rows that fit worst" in text


def test_predictions_come_with_anomaly_scores_where_asked(folder):
    plainly = run("predict", folder / "auto.sc", folder / "odd.csv").stdout.splitlines()
    scored = run("predict", folder / "auto.sc", folder / "odd.csv", "--anomaly").stdout.splitlines()
    assert scored[0] == plainly[0] + ",anomaly"
    scores = [float(line.rpartition(",")[2]) for line in scored[1:]]
    assert len(scores) == 120 and np.argmax(scores) == ODD - 1
    assert [line.rpartition(",")[0] for line in scored[1:]] == plainly[1:]


def test_names_and_levels_from_the_data_reach_no_terminal_as_they_are(tmp_path):
    lines = [(NASTY if place % 2 else "blue", f"{5 * (place % 2) + 0.1 * (place % 7)}") for place in range(60)]
    write_table(tmp_path / "t.csv", lines, (f"col{NASTY}", "size"))
    run("fit", tmp_path / "t.csv", "--classes", 2, "--starts", 1, "-o", tmp_path / "m.sc")
    text = run("show", tmp_path / "m.sc", tmp_path / "t.csv").stdout
    assert "\x1b" not in text and "\u202e" not in text and r"\x1b[31m" in text


def test_a_reason_names_column_value_and_nats():
    parts = {"size": 3.25, ROOT: 1.5, "colour": 0.6, "form": 0.55, "age": 0.1}
    cells = {"size": 12.0, "colour": "red", "form": None, "age": 3.0}
    odd = Anomaly(row=3, score=6.0, log_density=-9.0, group=0, probability=1.0, parts=parts, cells=cells)
    assert give_reasons(odd) == "size 12 (+3.2), a rare class (+1.5), colour red (+0.6)"


# -- k-means files


def test_figures_are_those_of_the_rows_and_of_what_they_are_scored_with_on_request(tmp_path):
    cells = [(str(x), "few" if x < 5 else "many") for x in (1.5, 2.5, 3.5, *range(5, 45))]
    write_table(tmp_path / "t.csv", cells, ("x", "y"))
    run("fit", tmp_path / "t.csv", "--target", "y", "--kind", "x=normal", "-o", tmp_path / "m.sc")
    rows, scored = (run("show", tmp_path / "m.sc", *words).stdout for words in ((), ("--parameters",)))
    assert "mean 2.5, sd 0.816" in rows and "parameters that rows are scored with" not in rows
    assert "mean 2.5, sd 0.816" not in scored and "parameters that rows are scored with" in scored
    here = [
        json.loads(run("show", tmp_path / "m.sc", "--json", *words).stdout)["classes"][0]["contrasts"][0]["here"]
        for words in ((), ("--parameters",))
    ]
    assert here[0] == "mean 2.5, sd 0.816" != here[1]


@pytest.mark.parametrize("clusters", [2, 7])
def test_a_k_means_file_shows_its_centres(clusters, tmp_path):
    rng = np.random.default_rng(0)
    rows = np.stack([50.0 * rng.integers(0, 2, 60) + rng.normal(size=60), rng.normal(size=60)], axis=1)
    sc.KMeans(clusters, n_init=2, random_state=0).fit(rows).save(tmp_path / "k.sc")
    model = sc.load(tmp_path / "k.sc")
    text = run("show", tmp_path / "k.sc").stdout
    assert f"K-means: {clusters} clusters" in text and "of 2 initialisations reached the best" in text
    document = json.loads(run("show", tmp_path / "k.sc", "--json").stdout)
    np.testing.assert_allclose(document["centres"], model.cluster_centers_)
    assert document["cost"] == pytest.approx(model.inertia_) and document["columns"] == ["0", "1"]


def test_commands_that_need_probabilities_say_so_of_a_k_means_file(tmp_path):
    sc.KMeans(2, n_init=1, random_state=0).fit(np.arange(8.0).reshape(4, 2)).save(tmp_path / "k.sc")
    write_table(tmp_path / "t.csv", [("1", "2")], ("a", "b"))
    words = [("predict", "t.csv"), ("show", "t.csv"), ("sample",), ("query", "--of", "0")]
    for name, *rest in words:
        arguments = [tmp_path / word if word == "t.csv" else word for word in rest]
        assert "no probabilities" in run(name, tmp_path / "k.sc", *arguments, code=4).stderr


def test_reasons_are_shown_whole_or_not_at_all():
    parts = {f"a column with a long name {n}": 3.0 - n for n in range(3)}
    odd = Anomaly(0, 6.0, -9.0, 0, 1.0, parts, dict.fromkeys(parts, 0.5))
    assert give_reasons(odd) == "a column with a long name 0 0.5 (+3.0)"


def test_an_explanation_calls_found_classes_classes(folder, tmp_path):
    run("fit", folder / "things.csv", "--classes", 2, "-o", tmp_path / "m.sc")
    page = run("explain", tmp_path / "m.sc", folder / "things.csv", "--row", 1).stdout
    assert page.startswith(("Row 1: class 0 rather than class 1", "Row 1: class 1 rather than class 0"))


def test_a_single_class_is_described(folder, tmp_path):
    page = run("fit", folder / "things.csv", "--classes", 1, "-o", tmp_path / "m.sc", "--full").stdout
    assert "What the rows look like" in page and "mean " in page and "start" not in page
    assert "What the rows look like" in run("show", tmp_path / "m.sc").stdout
    page = run("explain", tmp_path / "m.sc", folder / "things.csv", "--row", 1).stdout
    assert page.startswith("Row 1: class 0, compared with no other class")


def test_a_mean_that_is_nothing_beside_its_spread_is_said_to_be_nothing():
    params = {"mean": np.array([1.6e-133, 21387.6, 0.5]), "variance": np.array([38.0, 4e6, 1.0])}
    assert sc.families.Normal().density(params, Setting()).describe() == [
        "mean 0, sd 6.16",
        "mean 21,388, sd 2,000",
        "mean 0.5, sd 1",
    ]


# -- Ctrl-C


@pytest.fixture
def listening():
    """Ctrl-C as a terminal has it: a shell makes what it starts in the background deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(step: int) -> Tell:
    """Presses Ctrl-C at this step of a search."""
    taken = 0

    def tell(what: str, done: float, of: float, detail: str = "") -> None:
        nonlocal taken
        taken += what != READING
        if taken == step and what != READING:
            os.kill(os.getpid(), signal.SIGINT)

    return tell


@pytest.mark.parametrize("classes", ["3", "auto"])
def test_an_interrupted_search_saves_the_best_so_far_and_ends_with_130(classes, folder, tmp_path, listening):
    words = ("fit", folder / "things.csv", "--classes", classes, "--starts", 50, "-o", tmp_path / "m.sc")
    result = run(*words, code=130, watching=interrupting(25))
    assert "the best so far" in result.stdout and "interrupted: the best so far is saved in" in result.stderr
    assert "max_iter" not in result.stdout and "interrupted:" in run("show", tmp_path / "m.sc").stdout
    assert sc.load(tmp_path / "m.sc").fitted_.interrupted
    assert json.loads(run("show", tmp_path / "m.sc", "--json").stdout)["interrupted"] is True


def test_an_interrupted_fit_with_unlabelled_rows_is_kept_too(tmp_path, listening):
    lines = [(*line, "" if place % 3 else line[1]) for place, line in enumerate(rows())]
    write_table(tmp_path / "some.csv", lines, (*HEADER, "kind"))
    words = ("fit", tmp_path / "some.csv", "--target", "kind", "--kind", "colour=ignore")
    words += ("--model", "naive-bayes", "--unlabelled-weight", "1", "-o", tmp_path / "m.sc")
    result = run(*words, code=130, watching=interrupting(3))
    assert (
        "interrupted: the best so far is saved in" in result.stderr
        and "not evaluated on held-out rows" in result.stdout
    )


def test_ctrl_c_twice_ends_at_once_with_nothing_saved(folder, tmp_path, listening):
    def tell(what: str, done: float, of: float, detail: str = "") -> None:
        for _ in range(0 if what == READING else 2):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                signal.sigtimedwait([], 0)
            except KeyboardInterrupt:
                continue

    words = ("fit", folder / "things.csv", "--classes", 3, "-o", tmp_path / "m.sc")
    result = run(*words, code=130, watching=tell)
    assert "interrupted twice" in result.stderr and not (tmp_path / "m.sc").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
