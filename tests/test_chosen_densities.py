"""The density of a column chosen by rows held out: what wins, what it says, and how it goes on from there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.families import FAMILIES
from softcount.families.base import family_title
from softcount.families.candidates import candidates, facts_of_numbers
from softcount.learn.density_choice import SAMPLE, FamilyTrial, Numbers
from softcount.models.nodes import Node
from softcount.table.schema import Field, Kind

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
RNG = np.random.default_rng(11)
ROWS = 400
SIDE = np.arange(ROWS) % 2
SHAPES: dict[str, tuple[np.ndarray, str]] = {
    "normal": (RNG.normal(200.0 + 8 * SIDE, 3.0), "normal"),
    "lognormal": (np.exp(RNG.normal(1.0 + SIDE, 0.9)), "lognormal"),
    "gamma": (RNG.gamma(0.7, 10.0 + 5 * SIDE), "gamma"),
    "exponential": (RNG.exponential(4.0 + 4 * SIDE), "exponential"),
    "student": (RNG.standard_t(2.0, ROWS) * 3 - 4 * SIDE, "student"),
    "poisson": (RNG.poisson(30.0 + 8 * SIDE).astype(float), "poisson"),
    "geometric": (RNG.geometric(0.1, ROWS) - 1.0, "geometric"),
    "two humps": (np.where(RNG.random(ROWS) < 0.5, RNG.normal(-6.0 + SIDE, 0.2), RNG.normal(6.0, 3.0, ROWS)), "mixed"),
    "mostly zero": (np.where(RNG.random(ROWS) < 0.7, 0.0, np.exp(RNG.normal(2.0 + SIDE))), "spiked"),
}


def chosen(column: np.ndarray, **how: Any) -> Any:
    return sc.NaiveBayes(kinds="auto", **how).fit({"x": column}, SIDE[: len(column)])


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_get_the_density_that_made_them(shape: str) -> None:
    column, wanted = SHAPES[shape]
    model = chosen(column)
    (leaf,) = model.fitted_.model.leaves
    assert leaf.family.name == wanted
    assert family_title(leaf.family) in model.fitted_.schema["x"].why


@pytest.mark.parametrize("shape", [name for name, (column, _) in SHAPES.items() if column.min() >= 0])
def test_what_was_never_below_zero_is_never_drawn_there(shape: str) -> None:
    column, _ = SHAPES[shape]
    model = chosen(column)
    drawn = model.sample(5_000, random_state=1)["x"].to_numpy()
    assert drawn.min() >= 0.0
    assert model.query(of="x").cdf(-1e-12) <= 1e-9


def test_the_ages_of_the_demo_table_are_not_below_zero() -> None:
    path = Path(sc.__file__).parent / "demo" / "bicycles.csv"
    model = sc.NaiveBayes(kinds={"age_years": "auto"}).fit(str(path), "type")
    assert model.sample(4_000, random_state=0)["age_years"].to_numpy().min() > 0.0
    assert "on held-out rows" in model.fitted_.schema["age_years"].why
    plain = sc.NaiveBayes().fit(str(path), "type")
    assert model.fitted_.schema["price"].why == plain.fitted_.schema["price"].why


def test_only_what_is_left_open_is_chosen() -> None:
    table = {"x": SHAPES["gamma"][0], "z": SHAPES["gamma"][0], "colour": ["red", "blue"] * 200}
    model = sc.NaiveBayes(kinds={"x": "auto", "z": "normal"}).fit(table, SIDE)
    assert [leaf.family.name for leaf in model.fitted_.model.leaves] == ["gamma", "normal", "categorical"]


def test_rounded_numbers_keep_a_density_as_wide_as_their_rounding() -> None:
    column = np.where(SIDE == 1, 7.0, np.round(RNG.normal(3.0, 1.0, ROWS), 1))
    for how in ("ml", "mean"):
        fitted = chosen(column, estimate=how).fitted_
        (leaf,) = fitted.model.leaves
        top = leaf.density(fitted.estimates).log_pdf(np.array([7.0]))
        assert top[0, 1] <= np.log(1 / 0.1) + 1.0


def test_the_number_of_parts_is_chosen_where_nobody_gives_it() -> None:
    three = np.concatenate([RNG.normal(m, 0.4, 200) for m in (-5.0, 0.0, 5.0)])
    model = sc.NaiveBayes(kinds={"x": "mixed"}).fit({"x": three}, ["a"] * 600)
    assert model.fitted_.model.leaves[0].family == sc.families.Mixed("normal", 3)
    corners = RNG.integers(0, 2, size=(2, 400)) + 0.1 * RNG.normal(size=(2, 400))
    block = sc.NaiveBayes(kinds={("a", "b"): sc.families.Mixed()}).fit(
        dict(zip("ab", corners, strict=True)), ["k"] * 400
    )
    assert block.fitted_.model.leaves[0].family.parts == 4


def test_a_choice_goes_on_into_files_and_later_rows(tmp_path: Path) -> None:
    column, _ = SHAPES["lognormal"]
    model = chosen(column)
    model.save(tmp_path / "model.sc")
    back = sc.load(tmp_path / "model.sc")
    np.testing.assert_array_equal(back.predict_proba({"x": column}), model.predict_proba({"x": column}))
    assert back.fitted_.schema["x"].why == model.fitted_.schema["x"].why
    grown = sc.NaiveBayes(kinds="auto").partial_fit({"x": column[:300]}, SIDE[:300])
    grown.partial_fit({"x": column[300:]}, SIDE[300:])
    assert grown.fitted_.model.leaves[0].family.name == "lognormal"


def test_rows_without_a_class_and_classes_to_be_found() -> None:
    column, _ = SHAPES["two humps"]
    gaps = [None if i % 3 == 0 else side for i, side in enumerate(SIDE.tolist())]
    some = sc.NaiveBayes(kinds="auto").fit({"x": column}, gaps)
    assert not some.fitted_.model.leaves[0].family.facts.needs_classes
    found = sc.Mixture(2, kinds="auto", random_state=0).fit({"x": column})
    assert found.fitted_.model.leaves[0].family.name == "normal"
    np.testing.assert_allclose(np.sort(found.params_["x"]["mean"].ravel()), [-5.5, 6.0], atol=0.6)


def test_a_large_table_says_which_part_of_it_chose() -> None:
    column = RNG.normal(0.0, 1.0, 5 * SAMPLE)
    model = sc.NaiveBayes(kinds="auto").fit({"x": column}, np.arange(len(column)) % 2)
    why = model.fitted_.schema["x"].why
    assert f"of {5 * SAMPLE:,} rows)" in why and why.startswith("normal")


def test_a_number_that_only_other_rows_hold_is_thought_of() -> None:
    column = np.exp(RNG.normal(size=5 * SAMPLE))
    column[1::7] = 1.5
    column[3] = 0.0
    model = sc.NaiveBayes(kinds="auto", n_jobs=1).fit({"x": column}, np.arange(len(column)) % 2)
    assert np.isfinite(model.predict_log_proba({"x": [0.0, 1.0]})).all()


@pytest.mark.parametrize("name", ["normal", "lognormal", "gamma", "exponential", "student", "histogram", "kde"])
def test_held_out_scores_are_those_of_a_fit_without_the_fold(name: str) -> None:
    column = np.round(SHAPES["lognormal"][0], 2) + 0.01
    numbers = Numbers(column, SIDE, np.ones(ROWS), float(column.min()), False)
    trial = FamilyTrial(_node(name, column), numbers, "mean", 1.0)
    scores = trial.held_out()
    assert scores is not None
    test = numbers.folds == 2
    model = sc.NaiveBayes(kinds={"x": name}, tol=1e-10).fit({"x": column[~test]}, SIDE[~test])
    leaf = model.fitted_.model.leaves[0]
    mine = leaf.density(model.fitted_.estimates).score(column[test])[np.arange(test.sum()), SIDE[test]]
    wanted = mine + leaf.family.base(column[test])
    close = 0.02 if not leaf.family.facts.exact else 1e-6 if not leaf.family.facts.counts_points else 0.2
    assert np.mean(scores[test]) == pytest.approx(float(np.mean(wanted)), abs=close)


def _node(name: str, column: np.ndarray) -> Node:
    from msgspec.structs import replace

    from softcount.table.schema import CountedPoints, anchor_of, log_anchor_of

    family = FAMILIES[name]()
    anchor = log_anchor_of(column) if family.facts.kind.logged else anchor_of(column)
    spec = Field("x", Kind(str(family.facts.reads)), "", anchor=anchor.at, scale=anchor.scale)
    spec = replace(spec, points=CountedPoints.of([column]))
    return Node("x", ("x",), *family.set_up("x", [spec], 2, 1e-24))


def test_every_candidate_can_hold_the_numbers_it_is_for() -> None:
    for column in (np.array([0.0, 0.0, 1.0, 4.0] * 40), np.array([-1.0, 2.5, 3.0, 2.5] * 40), np.arange(1.0, 200.0)):
        facts = facts_of_numbers(column, np.ones(len(column)), 80.0)
        found = [family for kind in candidates(facts) for family in kind]
        assert {"normal", "histogram", "kde", "mixed"} <= {family.name for family in found}
        for family in found:
            family.check(column, "x", 0)


def test_a_file_with_words_and_a_target_is_read_again_as_chosen(tmp_path: Path) -> None:
    """Levels and classes are met anew when kinds have changed."""
    path = tmp_path / "rain.csv"
    cells = zip(SHAPES["mostly zero"][0], SHAPES["two humps"][0], SIDE, strict=True)
    rows = [
        f"{x:.1f},{z:.3f},{'wet' if i % 3 else 'dry'},{'up' if side else 'down'}"
        for i, (x, z, side) in enumerate(cells)
    ]
    path.write_text("\n".join(["rain,level,ground,way", *rows]) + "\n")
    model = sc.NaiveBayes(kinds="auto").fit(str(path), "way")
    assert [leaf.family.name for leaf in model.fitted_.model.leaves] == ["spiked", "mixed", "categorical"]
    assert model.classes_.tolist() == ["down", "up"] and model.class_count_.tolist() == [200, 200]
    assert model.levels_["ground"] == ["dry", "wet"]
    asked = ["fit", str(path), "--target", "way", "--model", "naive-bayes", "--kind", "auto"]
    asked += ["--full", "-o", str(tmp_path / "m.sc")]
    command = [sys.executable, "-m", "softcount.cli", *asked]
    shell = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shell.returncode == 0, shell.stderr
    assert "lognormal with a spike at 0" in shell.stdout
    back = sc.load(tmp_path / "m.sc")
    np.testing.assert_allclose(back.predict_proba(str(path)), model.predict_proba(str(path)), atol=1e-9)


@pytest.mark.parametrize(("kinds", "said"), [
    ({("x", "z"): "auto"}, "one column"),
    ({"nowhere": "auto"}, "nowhere"),
    ({"x": "autom"}, "Did you mean 'auto'"),
])  # fmt: skip
def test_what_cannot_be_chosen_is_refused(kinds: Any, said: str) -> None:
    with pytest.raises(sc.DataError, match=said):
        sc.NaiveBayes(kinds=kinds).fit({"x": [1.0, 2.0, 4.0, 3.0], "z": [1.0, 5.0, 2.0, 2.5]}, [0, 1, 0, 1])


def test_a_network_says_that_it_does_not_choose() -> None:
    with pytest.raises(sc.DataError, match="auto"):
        sc.BayesNet([("c", "x")], kinds={"x": "auto"}).fit({"x": [1.0, 2.0, 4.0, 3.0], "c": ["a", "b"] * 2})


@pytest.mark.parametrize("column", [[2.5] * 6, [None, 1.5] * 3, [0.0, 1e-300, 3.5, 1e300, 2.0, 1.0], [None] * 6])
def test_odd_columns_are_taken(column: Any) -> None:
    table = {"x": column, "other": [1.5, 2.5, 0.5, 3.0, 2.0, 7.25]}
    model = sc.NaiveBayes(kinds="auto").fit(table, [0, 1] * 3)
    assert np.isfinite(model.predict_proba(table)).all()


@pytest.mark.parametrize("title", ["wine", "heart"])
def test_the_choice_is_as_good_on_unseen_rows_as_the_best_family_for_all(title: str) -> None:
    from compare_chosen_densities import NAMES, SHARED, TABLES, log_density

    from softcount.run.local import Threads

    if title != "wine" and not SHARED.exists():
        pytest.skip("the shared data sets are not here")
    columns, labels = TABLES[title]()
    fold = np.random.default_rng(7).permutation(len(labels)) % 5
    with Threads(1) as runner:
        found = {
            name: log_density(columns, labels, fold == 0, name, runner)
            for name in (*(name for name in NAMES if name not in ("student", "mixed")), "auto")
        }
    best = max(value for name, value in found.items() if name != "auto")
    assert found["auto"] >= best - 0.01 * len(columns)
