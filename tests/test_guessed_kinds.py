"""Only a declared kind refuses a later row: a number that a guessed one cannot hold is not evidence, and it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.model_selection import cross_val_predict

import softcount as sc
from softcount.cli import main
from softcount.errors import DataError, DataWarning
from softcount.table import open_table

ROWS = 120
ODD = {"size": [0.0, -1.0, 2.0], "visits": [15.0, 2.5, -3.0]}
HOLES = {"size": [None, None, 2.0], "visits": [15.0, None, None]}
SAID = r"4 numbers that the kind guessed for their column cannot hold.*treated as unknown: 'size' \(2\), 'visits' \(2\)"


def drawn() -> tuple[dict[str, list[Any]], list[str]]:
    rng = np.random.default_rng(0)
    size, visits = np.exp(rng.normal(0, 2, ROWS)), rng.poisson(15, ROWS)
    return {"size": size.tolist(), "visits": visits.tolist()}, np.where(size * visits > 15, "big", "small").tolist()


def fitted(mixture: bool = False, **kinds: Any) -> Any:
    X, y = drawn()
    return sc.Mixture(2, kinds or None, random_state=0).fit(X) if mixture else sc.NaiveBayes(kinds or None).fit(X, y)


def answers(model: Any, X: Any) -> list[np.ndarray]:
    """Everything that is asked of rows."""
    worst = model.anomalies(X)
    return [
        model.predict_proba(X), model.predict_log_proba(X), model.score_samples(X), model.anomaly_score(X),
        worst["score"].to_numpy(), worst["row"].to_numpy(), model.membership_entropy(X)["entropy"].to_numpy(),
    ]  # fmt: skip


def test_the_kinds_are_guessed() -> None:
    schema = fitted().fitted_.schema
    assert [(schema[key].kind.value, schema[key].declared) for key in ODD] == [("positive", False), ("count", False)]


@pytest.mark.parametrize("mixture", [False, True])
def test_a_number_that_a_guessed_kind_cannot_hold_is_as_a_hole_and_said(mixture: bool) -> None:
    model = fitted(mixture)
    with pytest.warns(DataWarning, match=SAID):
        found = answers(model, ODD)
    wanted = answers(model, HOLES)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_is_left_as_it_was() -> None:
    array = np.array(list(ODD.values())).T
    with pytest.warns(DataWarning, match="treated as unknown"):
        proba = fitted().predict_proba(array)
    assert np.array_equal(array, np.array(list(ODD.values())).T)
    assert np.array_equal(proba, fitted().predict_proba(HOLES))


@pytest.mark.parametrize(("column", "family"), [("size", "lognormal"), ("size", "gamma"), ("visits", "poisson")])
def test_a_declared_kind_still_refuses(column: str, family: str) -> None:
    model = fitted(**{column: family})
    with pytest.raises(DataError, match=f"column '{column}' is .* row"):
        model.predict_proba({**HOLES, column: ODD[column]})


def test_impute_fills_holes_and_leaves_odd_numbers_alone() -> None:
    with pytest.warns(DataWarning, match="they stay as they are"):
        filled = fitted().impute({"size": [0.0, None, 2.0], "visits": [40, 41, -3]})
    assert filled["size"][0] == 0.0
    assert filled["size"][1] > 0
    assert filled["visits"] == [40, 41, -3]


def test_explain_counts_it_as_nothing_and_says_so() -> None:
    model = fitted()
    with pytest.warns(DataWarning, match=SAID):
        assert model.explain(ODD)["size"].tolist()[0] == 0.0


def test_scikit_learns_cross_validation_goes_through() -> None:
    """One row alone holds a zero: the fold without it guesses that all are above zero."""
    X, y = drawn()
    frame = pd.DataFrame(X).assign(size=[0.0, *X["size"][1:]])
    with pytest.warns(DataWarning, match=r"1 numbers that the kind guessed.*'size' \(1\)"):
        found = cross_val_predict(sc.NaiveBayes(), frame, y, cv=4)
    assert np.mean(found == np.array(y)) > 0.8


@pytest.mark.parametrize("verb", ["partial_fit", "forget"])
def test_rows_that_are_added_or_taken_away_count_without_it(verb: str) -> None:
    X, y = drawn()
    plain, odd = (sc.NaiveBayes().partial_fit(X, y) for _ in range(2))
    if verb == "forget":
        plain.partial_fit(HOLES, ["big", "small", "big"])
        with pytest.warns(DataWarning):
            odd.partial_fit(ODD, ["big", "small", "big"])
    getattr(plain, verb)(HOLES, ["big", "small", "big"])
    with pytest.warns(DataWarning, match=SAID):
        getattr(odd, verb)(ODD, ["big", "small", "big"])
    for key in ODD:
        for name, values in plain.params_[key].items():
            assert np.array_equal(values, odd.params_[key][name])


def test_a_saved_model_remembers_that_nobody_declared_it(tmp_path: Path) -> None:
    fitted().save(tmp_path / "m.sc")
    with pytest.warns(DataWarning, match=SAID):
        sc.load(tmp_path / "m.sc").predict(ODD)


def test_query_takes_it_as_not_given_and_says_so() -> None:
    model = fitted()
    with pytest.warns(DataWarning, match=r"column 'visits' is count .* 2\.5 is not evidence"):
        assert model.query("size", {"visits": 2.5}).mean == model.query("size").mean


def test_the_command_line_answers_and_says_it_in_one_line(tmp_path: Path) -> None:
    fitted().save(tmp_path / "m.sc")
    pd.DataFrame(ODD).to_csv(tmp_path / "odd.csv", index=False)
    for command in (["predict", "--anomaly"], ["show"], ["explain"]):
        words = [command[0], str(tmp_path / "m.sc"), str(tmp_path / "odd.csv"), *command[1:]]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.stderr
        assert done.stderr.count("4 numbers that the kind guessed") == 1
    done = CliRunner().invoke(main, ["query", str(tmp_path / "m.sc"), "--of", "size", "--given", "visits=-1"])
    assert done.exit_code == 0
    assert "note: column 'visits' is count" in done.stderr


# -- repeated rows are no new evidence of what a column is


def guessed(data: Any, **sides: Any) -> list[str]:
    return [spec.kind.value for spec in open_table(data, **sides).schema.fields]


def wide() -> pd.DataFrame:
    rng, n = np.random.default_rng(0), 240
    return pd.DataFrame({
        "size": rng.normal(size=n).round(2), "visits": rng.poisson(6, n), "step": rng.integers(0, 14, n),
        "name": [f"n{row}" for row in range(n)], "y": rng.choice(["no", "yes"], n),
    })  # fmt: skip


@pytest.mark.parametrize("times", [1, 4, 40])
def test_repeating_rows_does_not_change_what_columns_are(times: int) -> None:
    once = wide()
    again = pd.concat([once] * times + [once[:100]])
    wanted = ["real", "count", "categorical", "identifier"]
    assert guessed(once, target="y") == wanted == guessed(again, target="y")
    numbers = once[["visits", "step"]].assign(more=np.arange(240)[::-1] * 7)
    assert guessed(numbers.to_numpy()) == guessed(pd.concat([numbers, numbers[:100]]).to_numpy())


def test_the_probability_of_a_row_hardly_moves_when_others_are_repeated() -> None:
    once = wide()
    models = [sc.NaiveBayes().fit(rows, "y") for rows in (once, pd.concat([once, once[:100]]))]
    first, second = (model.predict_proba(once.assign(visits=30))[:, 0] for model in models)
    assert np.abs(first - second).max() < 0.15


@pytest.mark.parametrize("columns", [["step"], ["visits", "y"], ["visits", "step", "y"]])
def test_a_whole_weight_is_as_many_rows(columns: list[str]) -> None:
    rows = pd.concat([wide()[columns]] * 3)
    counted = rows.groupby(columns).size().reset_index(name="weight")
    assert guessed(rows) == guessed(counted, weight="weight")


def test_a_fold_of_weight_zero_does_not_change_what_columns_are() -> None:
    rows, held = wide(), (np.arange(240) % 5 > 0).astype(float)
    assert guessed(rows, target="y", weights=held) == guessed(rows, target="y")
