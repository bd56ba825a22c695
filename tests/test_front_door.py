"""The command line and the estimators learn equal models, because both come in by the front door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.core import remedies
from softcount.demo import table_path

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
TABLE = str(table_path("bicycles"))
BEFORE_SAVING = {"provenance", "_compiled"}
"""What is not compared: where a model is from, and what is computed when it is first asked for."""

CLASSES: dict[str, tuple[list[str], Any]] = {
    "naive Bayes": (["--model", "naive-bayes"], sc.NaiveBayes()),
    "a prior": (["--model", "naive-bayes", "--prior", "jeffreys"], sc.NaiveBayes(prior="jeffreys")),
    "densities chosen by the rows": (["--model", "naive-bayes", "--kind", "auto"], sc.NaiveBayes(kinds="auto")),
    "calibrated": (["--model", "naive-bayes", "--calibrate", "isotonic"], sc.NaiveBayes(calibration="isotonic")),
    "semi-supervised": (["--model", "naive-bayes", "--unlabelled-weight", "1"], sc.NaiveBayes(unlabelled_weight=1)),
    "ensemble": ([], sc.Classifier()),
    "ensemble with text": (["--kind", "note=text"], sc.Classifier(kinds={"note": "text"})),
    "AODE": (["--model", "aode"], sc.AODE()),
    "tree-augmented": (["--net", "tan", "--folds", "0"], sc.BayesNet("tan", prior="row", random_state=0)),
    "network by search": (
        ["--net", "search", "--criterion", "bdeu", "--folds", "0"],
        sc.BayesNet("search", criterion="bdeu", random_state=0),
    ),
}
FOUND: dict[str, tuple[list[str], Any]] = {
    "three classes": (["--classes", "3"], sc.Mixture(3, random_state=0)),
    "as many classes as there is evidence for": ([], sc.Mixture(random_state=0, n_init=2)),
    "by BIC": (["--criterion", "bic"], sc.Mixture(criterion="bic", random_state=0, n_init=2)),
    "tree": (["--net", "chow-liu"], sc.BayesNet("chow-liu", random_state=0)),
    "hidden node": (
        ["--net", "Bag>lights, Bag>brakes", "--hidden", "Bag=2"],
        sc.BayesNet("Bag>lights, Bag>brakes", {"Bag": 2}, random_state=0),
    ),
}


def run(*words: str) -> str:
    result = CliRunner().invoke(main, [*words])
    assert result.exit_code == 0, result.output
    return result.stdout


def assert_same(one: Any, other: Any, where: str = "fitted") -> None:
    """Two records are equal field by field, arrays bit for bit."""
    assert type(one) is type(other), where
    names = getattr(one, "__struct_fields__", None) or getattr(one, "__dataclass_fields__", None)
    if names is None and type(one).__eq__ is object.__eq__:
        names = getattr(one, "__slots__", None)
    if names is not None:
        for name in names:
            if name not in BEFORE_SAVING:
                assert_same(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(one, dict):
        assert [*one] == [*other], where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), (where, one, other)
        for place, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{place}]")
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, where)
    elif hasattr(one, "__dict__") and type(one).__eq__ is object.__eq__:
        assert_same(vars(one), vars(other), where)
    else:
        assert one == other or (one != one and other != other), (where, one, other)


def check(options: list[str], model: Any, target: list[Any], tmp_path: Path) -> None:
    fewer = ["--starts", "2"] if getattr(model, "n_init", 10) == 2 else []
    run("fit", TABLE, *options, *fewer, "-o", str(tmp_path / "shell.sc"))
    with remedies.in_shell():  # notes name options
        model.fit(TABLE, *target).save(tmp_path / "python.sc")
    shell, python = (sc.load(tmp_path / name) for name in ("shell.sc", "python.sc"))
    assert_same(shell.fitted_, python.fitted_)


@pytest.mark.parametrize("name", CLASSES)
def test_a_model_of_a_target_is_the_same_from_the_shell_and_from_python(name: str, tmp_path: Path) -> None:
    options, model = CLASSES[name]
    check(["--target", "type", *options], model, ["type"], tmp_path)


@pytest.mark.parametrize("name", FOUND)
def test_a_model_without_a_target_is_the_same_from_the_shell_and_from_python(name: str, tmp_path: Path) -> None:
    options, model = FOUND[name]
    check(options, model, [], tmp_path)


NAMES = "anna\nhanna\nhans\njohanna\nanton\nantonia\nnora\n"
STEPS = "who,at,x,word\n" + "".join(
    f"{who},{at},{5 * (at > 6) + 0.1 * ((3 * at + who) % 7)},{'red' if at > 6 else 'blue'}\n"
    for who in range(4)
    for at in range(12)
)
SEQUENCES: dict[str, tuple[list[str], Any]] = {
    "chain": ([], sc.MarkovChain()),
    "order by evidence": (["--order", "auto"], sc.MarkovChain("auto")),
    "contexts of any length": (["--order", "variable"], sc.MarkovChain("variable")),
    "flat prior": (["--order", "2", "--prior", "0.5"], sc.MarkovChain(2, 0.5)),
    "ends as states": (["--order", "2", "--ends"], sc.MarkovChain(2, ends=True)),
    "hidden states": (["--states", "2"], sc.HiddenMarkov(2, random_state=0)),
    "as many states as there is evidence for": (
        ["--states", "auto", "--starts", "2"],
        sc.HiddenMarkov(random_state=0, n_init=2),
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_model_of_texts_is_the_same_from_the_shell_and_from_python(name: str, tmp_path: Path) -> None:
    options, model = SEQUENCES[name]
    text = tmp_path / "names.txt"
    text.write_text(NAMES)
    run("fit", str(text), "--steps", "characters", *options, "-o", str(tmp_path / "shell.sc"))
    model.fit(sc.read_sequences(str(text), steps="characters")).save(tmp_path / "python.sc")
    assert_same(learned(tmp_path / "shell.sc"), learned(tmp_path / "python.sc"))


@pytest.mark.parametrize("target", [None, "word"])
def test_hidden_states_of_a_table_are_the_same_from_the_shell_and_from_python(
    target: str | None, tmp_path: Path
) -> None:
    table = tmp_path / "steps.csv"
    table.write_text(STEPS)
    known = [] if target is None else ["--target", target]
    layout = ["--sequence", "who", "--sort-by", "at"]
    run("fit", str(table), *layout, *known, "--states", "2", "-o", str(tmp_path / "shell.sc"))
    rows = sc.read_sequences(str(table), sequence="who", sort_by="at")
    sc.HiddenMarkov(2, random_state=0).fit(rows, target).save(tmp_path / "python.sc")
    assert_same(learned(tmp_path / "shell.sc"), learned(tmp_path / "python.sc"))


def learned(path: Path) -> Any:
    """All that a file of a model of sequences holds."""
    model = sc.load(path)
    if isinstance(model, sc.HiddenMarkov):
        return model.fitted_
    return [model.order_, model.evidence_, model.notes_, model.schema_, model.counts_, model.predictions_]


def test_densities_are_ranked_the_same_from_the_shell_and_from_python() -> None:
    shell = json.loads(run("density", TABLE, "--column", "price", "--compare", "--json"))
    table = sc.read(TABLE)
    values = np.concatenate([chunk.reals[:, table.schema.places["price"].slot] for chunk in table.chunks()])
    python = sc.rank_densities(values)
    assert [line["name"] for line in shell["densities"]] == [line.name for line in python.densities]
    assert [line["log_likelihood"] for line in shell["densities"]] == [line.log_likelihood for line in python.densities]
