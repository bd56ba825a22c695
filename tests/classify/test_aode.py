"""Averaged one-dependence stars as an estimator: an oracle in plain loops, laws, files, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from softcount.classify import aode
from softcount.cli import main as cli
from softcount.errors import DataError, ModelFileError
from softcount.files.archive import read, write

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


def table(rows=240, seed=0):
    """Levels, whole numbers, a number and holes; the class hangs on a pair of columns."""
    rng = np.random.default_rng(seed)
    colour, size = rng.choice(["red", "blue", "green"], rows), rng.choice(["S", "L"], rows)
    price, doors = np.round(rng.lognormal(size=rows), 3), rng.integers(2, 6, rows)
    odds = 2.5 * ((colour == "red") == (size == "S")) + np.log(price) - 1.2
    label = np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "kept", "sold")
    frame = pd.DataFrame({"colour": colour, "size": size, "doors": doors, "price": price})
    frame.loc[rng.random(rows) < 0.1, "price"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "colour"] = None
    return frame, label


@pytest.fixture(scope="module")
def fitted():
    frame, label = table()
    return sc.AODE().fit(frame, label), frame, label


def cells_of(model, frame):
    """Every row as a list of levels and intervals, None where a cell is missing."""
    rows = []
    for _, row in frame.iterrows():
        cells = [None if row[key] is None or row[key] != row[key] else row[key] for key in ("colour", "size", "doors")]
        price = row["price"]
        rows.append([*cells, None if price != price else int(np.searchsorted(model.cuts_["price"], price))])
    return rows


def oracle(model, frame, label, asked, prior=1.0, weights=None):
    """The sum over parents of share times product, made to sum to one; a column of one cell says nothing."""
    rows, labels = cells_of(model, frame), list(label)
    sizes = [len({row[j] for row in rows if row[j] is not None}) for j in range(3)] + [len(model.cuts_["price"]) + 1]
    found = []
    for cells in cells_of(model, asked):
        cells = [cell if size > 1 else None for cell, size in zip(cells, sizes, strict=True)]
        scores = []
        for name in sorted(set(labels)):
            own = [row for row, known in zip(rows, labels, strict=True) if known == name]
            share = (len(own) + 0.5) / (len(rows) + 1.0)
            stars = []
            for p, parent in enumerate(cells):
                if parent is None:
                    continue
                there = [row for row in own if row[p] is not None]
                product = share * (sum(row[p] == parent for row in there) + prior / sizes[p]) / (len(there) + prior)
                under = [row for row in own if row[p] == parent]
                for c, cell in enumerate(cells):
                    if c != p and cell is not None:
                        known = [row for row in under if row[c] is not None]
                        product *= (sum(row[c] == cell for row in known) + prior / sizes[c]) / (len(known) + prior)
                stars.append(product * (1.0 if weights is None else weights[p]))
            scores.append(np.sum(stars) if stars else share)
        found.append(np.array(scores) / np.sum(scores))
    return np.array(found)


@pytest.mark.parametrize("cuts", [None, {}, {"price": [0.5, 1.0]}], ids=["found", "none", "given"])
@pytest.mark.parametrize("prior", [1.0, 0.3])
def test_probabilities_are_those_of_plain_loops(prior, cuts):
    frame, label = table(80)
    model = sc.AODE(prior=prior, cuts=cuts).fit(frame, label)
    asked = frame.iloc[:20].copy()
    asked.loc[0] = [None, None, np.nan, np.nan]
    asked.loc[1] = [None, None, np.nan, 0.7]
    np.testing.assert_allclose(model.predict_proba(asked), oracle(model, frame, label, asked, prior), rtol=1e-10)


def test_stars_count_by_what_their_parent_tells_of_the_class():
    frame, label = table(80)
    frame = frame.dropna().reset_index(drop=True)
    label = label[: len(frame)]
    model = sc.AODE(parents="information").fit(frame, label)
    weights = []
    for column in zip(*cells_of(model, frame), strict=True):
        counts = pd.crosstab(pd.Series(column, dtype=object).astype(str), pd.Series(label)).to_numpy() / len(label)
        apart = counts / (counts.sum(axis=1, keepdims=True) * counts.sum(axis=0))
        weights.append(max(float((counts[counts > 0] * np.log(apart[counts > 0])).sum()), 1e-6))
    expected = oracle(model, frame, label, frame.iloc[:20], weights=weights)
    np.testing.assert_allclose(model.predict_proba(frame.iloc[:20]), expected, rtol=1e-9)


def test_it_passes_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(sc.AODE())


@pytest.mark.parametrize("against", [None, "kept"])
def test_explanations_add_up_to_the_log_odds(fitted, against):
    model, frame, _ = fitted
    why = model.explain(frame, against=against)
    logs = model.predict_log_proba(frame)
    best = logs.argmax(axis=1)
    other = 1 - best if against is None else np.zeros(len(best), dtype=int)
    odds = logs[np.arange(len(best)), best] - logs[np.arange(len(best)), other]
    np.testing.assert_allclose(pd.DataFrame(why).select_dtypes("number").sum(axis=1), odds, atol=1e-10)


def test_units_of_numbers_do_not_matter(fitted):
    model, frame, label = fitted
    far = frame.assign(price=frame["price"] * 1024 + 2.0**24)
    found = clone(model).fit(far, label).predict_proba(far)
    np.testing.assert_allclose(found, model.predict_proba(frame), rtol=1e-6)


def test_a_pair_that_only_together_tells_is_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    assert sc.AODE().fit(X, y).score(X, y) > 0.85


def test_weight_two_is_the_row_twice_and_no_thread_changes_a_bit(fitted):
    model, frame, label = fitted
    twice = clone(model).fit(pd.concat([frame, frame]), np.concatenate([label, label]))
    heavy = clone(model).set_params(n_jobs=4).fit(frame, label, sample_weight=np.full(len(frame), 2.0))
    np.testing.assert_allclose(heavy.predict_proba(frame), twice.predict_proba(frame), rtol=1e-12)
    other = clone(model).set_params(n_jobs=1).fit(frame, label, sample_weight=np.full(len(frame), 2.0))
    np.testing.assert_array_equal(heavy.predict_proba(frame), other.predict_proba(frame))
    none = (
        clone(model)
        .set_params(n_jobs=3)
        .fit(pd.concat([frame, frame[:9]]), np.concatenate([label, label[:9]]), np.repeat([1.0, 0.0], [len(frame), 9]))
    )
    np.testing.assert_array_equal(none.predict_proba(frame), model.predict_proba(frame))


def test_a_missing_column_changes_nothing(fitted):
    model, frame, label = fitted
    wider = frame.assign(nothing=None)
    np.testing.assert_array_equal(clone(model).fit(wider, label).predict_proba(wider), model.predict_proba(frame))


def test_counts_are_added_and_taken_away(fitted):
    model, frame, label = fitted
    half = np.arange(len(frame)) < 100
    blank = clone(model).set_params(cuts=model.cuts_)
    one, other = (clone(blank).fit(frame[part], label[part]) for part in (half, ~half))
    whole = model.predict_proba(frame)
    np.testing.assert_allclose(one.merge(other).predict_proba(frame), whole, rtol=1e-13)
    more = clone(blank).partial_fit(frame[half], label[half], classes=["sold", "kept"])
    np.testing.assert_allclose(more.partial_fit(frame[~half], label[~half]).predict_proba(frame), whole, rtol=1e-13)
    less = clone(blank).fit(frame, label).forget(frame[half], label[half])
    np.testing.assert_allclose(less.predict_proba(frame), other.predict_proba(frame), rtol=1e-10)


def test_levels_and_classes_that_only_one_part_has_are_united():
    one = pd.DataFrame({"a": ["x", "x", "y"] * 5, "b": [0, 1, 0] * 5})
    other = pd.DataFrame({"a": ["z", "x", "z"] * 5, "b": [2, 1, 3] * 5})
    left, right = np.array(["p", "q", "p"] * 5), np.array(["q", "r", "r"] * 5)
    both = sc.AODE().fit(one, left).merge(sc.AODE().fit(other, right))
    whole = sc.AODE().fit(pd.concat([one, other]), np.concatenate([left, right]))
    np.testing.assert_allclose(both.predict_proba(other), whole.predict_proba(other), rtol=1e-12)
    assert both.classes_.tolist() == ["p", "q", "r"]


def test_parts_that_are_cut_in_other_places_are_not_merged(fitted):
    model, frame, label = fitted
    other = sc.AODE(cuts={"price": [1.0, 2.0]}).fit(frame, label)
    with pytest.raises(DataError, match=r"column 'price' has different bins.*cuts=first.cuts_"):
        model.merge(other)


def test_what_is_saved_is_what_is_loaded(fitted, tmp_path):
    model, frame, _ = fitted
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(again.merge(model).predict_proba(frame), model.merge(model).predict_proba(frame))
    assert type(again) is sc.AODE and again.cuts_["price"].tolist() == model.cuts_["price"].tolist()


COUNTS = ["pairs", "single", "sizes"]
SETTINGS = ["columns", "concentration", "informed"]


@pytest.mark.parametrize("part", [*COUNTS, *SETTINGS, "edges"])
def test_senseless_files_are_refused(tmp_path, part):
    model = sc.AODE().fit(*table(40))
    model.save(tmp_path / "m.sc")
    document, arrays = read(tmp_path / "m.sc")
    stars = document["scorer"]["counts"]
    if part in COUNTS:
        name = (stars["pairs"]["counts"] if part == "pairs" else stars[part])["array"]
        arrays[name] = -1.0 - arrays[name]
    elif part == "edges":
        edges = stars["cuts"]["edges"]
        name = edges["split"] if "split" in edges else edges[0]["array"]
        arrays[name] = arrays[name][::-1].copy()
    elif part == "columns":
        stars["pairs"]["terms"]["columns"] = [[7]]
    else:
        stars["setting"][part] = 0.0 if part == "concentration" else "yes"
    write(tmp_path / "bad.sc", document, arrays)
    with pytest.raises(ModelFileError):
        sc.load(tmp_path / "bad.sc")


def test_columns_of_too_many_cells_stand_under_the_class_alone(monkeypatch):
    frame, label = table(120)
    monkeypatch.setattr(aode, "MOST_BYTES", 2 * 8 * 10 * 8)
    model = sc.AODE(cuts={"price": [0.5, 1.0, 2.0]}).fit(frame.drop(columns="doors"), label)
    assert model.fitted_.scorer.counts.pairs.counts.nbytes <= 2 * 8 * 10 * 8
    assert any("price" in note and "pairs with" in note and "class alone" in note for note in model.notes_)
    proba = model.predict_proba(frame)
    logs = pd.DataFrame(model.explain(frame)).select_dtypes("number").sum(axis=1)
    np.testing.assert_allclose(logs, np.abs(np.log(proba[:, 0] / proba[:, 1])), atol=1e-10)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"prior": 0}, "prior must be above 0"),
        ({"parents": "best"}, "parents='best' is not known"),
        ({"cuts": [1.0]}, "cuts must name columns"),
        ({"cuts": {"price": [2.0, 1.0]}}, "must be numbers that rise"),
    ],
)
def test_what_makes_no_sense_is_refused(setting, said):
    frame, label = table(40)
    with pytest.raises(DataError, match=said):
        sc.AODE(**setting).fit(frame, label)


def test_text_is_refused():
    with pytest.raises(DataError, match="is text, and AODE takes categories and numbers"):
        sc.AODE(kinds="text").fit(["win money now", "see you at noon"], ["spam", "ham"])


def test_the_shell_fits_shows_predicts_explains_evaluates_and_merges(tmp_path, monkeypatch):
    frame, label = table()
    monkeypatch.chdir(tmp_path)
    frame.assign(label=label).to_csv("cars.csv", index=False)
    ask = CliRunner().invoke
    told = ask(cli, ["fit", "cars.csv", "--target", "label", "--model", "aode", "-o", "m.sc"])
    assert told.exit_code == 0 and "AODE for label" in told.output and "log-loss" in told.output
    assert "AODE" in ask(cli, ["show", "m.sc"]).output
    assert ask(cli, ["predict", "m.sc", "cars.csv", "--digits", "15", "-o", "out.csv"]).exit_code == 0
    model = sc.load("m.sc")
    np.testing.assert_allclose(pd.read_csv("out.csv")["p(kept)"], model.predict_proba(frame)[:, 0], rtol=1e-12)
    assert "log-odds" in ask(cli, ["explain", "m.sc", "cars.csv", "--row", "3"]).output
    assert "accuracy" in ask(cli, ["evaluate", "m.sc", "cars.csv"]).output
    assert ask(cli, ["merge", "m.sc", "m.sc", "-o", "two.sc"]).exit_code == 0
    assert sc.load("two.sc").class_count_.sum() == 2 * len(frame)
    refused = ask(cli, ["fit", "cars.csv", "--target", "label", "--model", "aode", "--prior", "2"])
    assert refused.exit_code == 2 and "--prior is for naive Bayes" in refused.output


def test_a_share_held_out_and_no_folds_are_taken_in_the_shell(tmp_path, monkeypatch):
    frame, label = table(120)
    monkeypatch.chdir(tmp_path)
    frame.assign(label=label).to_csv("cars.csv", index=False)
    ask, fit = CliRunner().invoke, ["fit", "cars.csv", "--target", "label", "--model", "aode", "-o", "m.sc"]
    assert "30 % held out" in ask(cli, [*fit, "--holdout", "0.3"]).output
    assert "cross-validation" not in ask(cli, [*fit, "--folds", "0"]).output
