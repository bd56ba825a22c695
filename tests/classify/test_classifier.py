"""The classifier that decides for itself: laws, what it tells, what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from explained import contributions
from softcount.classify import logistic
from softcount.classify.ensemble import _score_nested
from softcount.errors import DataError, DataWarning, ModelFileError, SoftcountError
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.files.archive import read, write

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


def mixed(rows=150, seed=0):
    """Numbers, levels and holes; the class hangs on a pair of columns and on a number."""
    rng = np.random.default_rng(seed)
    colour, size = rng.choice(["red", "blue"], rows), rng.choice(["S", "L"], rows)
    price = rng.lognormal(size=rows)
    odds = 3.0 * ((colour == "red") == (size == "S")) + np.log(price) - 1.5
    label = np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "kept", "sold")
    frame = pd.DataFrame({"colour": colour, "size": size, "price": price, "age": rng.normal(size=rows)})
    frame.loc[rng.random(rows) < 0.1, "price"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "colour"] = None
    return frame, label


@pytest.fixture(scope="module")
def fitted():
    frame, label = mixed()
    return sc.Classifier().fit(frame, label), frame, label


def test_it_passes_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(sc.Classifier(budget=0.0))  # the first way alone: what is checked does not depend on more


def test_probabilities_are_shares_and_beat_naive_bayes(fitted):
    model, *_ = fitted
    new, label = mixed(2000, seed=1)
    proba, plain = model.predict_proba(new), sc.NaiveBayes().fit(*fitted[1:]).predict_proba(new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    own = np.searchsorted(model.classes_, label)
    rows = np.arange(len(own))
    assert -np.log(proba[rows, own]).mean() < -np.log(plain[rows, own]).mean() - 0.05
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), proba)


def test_it_says_what_was_chosen_and_what_it_gained(fitted):
    model, *_ = fitted
    table = arrow(model.selection_).to_pydict()
    assert set(table) == {"model", "setting", "log_loss", "accuracy", "weight"}
    assert table["log_loss"] == sorted(table["log_loss"])
    assert sum(weight > 0 for weight in table["weight"]) == len(model.ensemble_.names)
    assert model.notes_[-1].startswith("Ensemble: ")
    assert f"{model.ensemble_.plain:.4g}" in model.notes_[-1]
    assert model.ensemble_.log_loss < model.ensemble_.plain


@pytest.mark.parametrize("against", [None, "kept"])
def test_explanations_add_up_to_the_log_odds(fitted, against):
    model, frame, _ = fitted
    table = contributions(model.explain(frame, against))
    assert table.column_names[0] == "(prior)"
    assert set(table.column_names[1:]) == set(frame.columns)
    total = np.sum([table[name].to_numpy() for name in table.column_names], axis=0)
    logs = model.predict_log_proba(frame)
    other = np.sort(logs, axis=1)[:, 0] if against is None else logs[:, 0]
    np.testing.assert_allclose(total, logs.max(axis=1) - other, atol=1e-10)
    assert (table["price"].to_numpy()[frame["price"].isna()] == 0).all()


def test_neither_order_nor_threads_nor_repetition_change_a_bit(fitted):
    model, frame, label = fitted
    expected = model.predict_proba(frame)
    order = np.random.default_rng(1).permutation(len(frame))
    shuffled = sc.Classifier(n_jobs=1).fit(frame.iloc[order], label[order])
    np.testing.assert_array_equal(shuffled.predict_proba(frame), expected)
    weights = np.where(np.arange(len(frame)) % 3 == 0, 2, 1)
    twice = np.repeat(np.arange(len(frame)), weights)
    heavy = sc.Classifier().fit(frame, label, sample_weight=weights)
    written = sc.Classifier().fit(frame.iloc[twice], label[twice])
    np.testing.assert_array_equal(heavy.predict_proba(frame), written.predict_proba(frame))


@pytest.fixture(scope="module")
def seven():
    """Seven columns whose classes overlap; numbers that are rounded, positive and skewed, categories, missing cells."""
    rng = np.random.default_rng(1)
    label = np.array(["no", "yes"])[rng.integers(0, 2, 160)]
    yes = (label == "yes").astype(float)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=160) + yes,
            "b": np.round(rng.normal(size=160) * 3 + yes, 1),
            "pay": rng.lognormal(size=160) * (1 + yes),
            "d": rng.choice(list("pqrs"), 160),
            "e": np.where(rng.random(160) < 0.3 + 0.3 * yes, "u", "v"),
            "f": rng.choice([f"w{k}" for k in range(9)], 160),
            "h": np.where(rng.random(160) < 0.5, rng.choice(list("xyz"), 160), np.where(yes > 0, "z", "x")),
        }
    )
    frame.loc[rng.random(160) < 0.05, "a"] = np.nan
    frame.loc[rng.random(160) < 0.05, "d"] = None
    model = sc.Classifier(n_jobs=1).fit(frame, label)
    return frame, label, model.predict_proba(frame), model.ensemble_.log_loss


def renamed(frame):
    """Categories that sort in another order."""
    turned = {f"w{k}": f"w{(4 * k + 3) % 9}" for k in range(9)}
    names = {"d": dict(zip("pqrs", "zkab", strict=True)), "e": {"u": "zz", "v": "aa"}, "f": turned}
    return frame.assign(**{key: frame[key].map(own) for key, own in names.items()})


CHANGES = {
    "columns in another order": lambda frame: frame[["h", "pay", "d", "a", "f", "b", "e"]],
    "categories renamed": renamed,
    "numbers negated": lambda frame: frame.assign(a=-frame["a"], b=-frame["b"], pay=-frame["pay"]),
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "Arrow": lambda frame: pa.Table.from_pandas(frame),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_matter_changes_nothing(seven, change):
    frame, label, expected, loss = seven
    other = CHANGES[change](frame)
    model = sc.Classifier(n_jobs=1).fit(other, label)
    np.testing.assert_allclose(model.predict_proba(other), expected, atol=1e-9)
    assert model.ensemble_.log_loss == pytest.approx(loss, abs=1e-9)


def test_what_is_saved_is_what_is_loaded(fitted, tmp_path):
    model, frame, _ = fitted
    model.save(tmp_path / "model.sc")
    loaded = sc.load(tmp_path / "model.sc")
    assert type(loaded) is sc.Classifier
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.explain(frame).equals(model.explain(frame))
    assert arrow(loaded.selection_).to_pydict() == arrow(model.selection_).to_pydict()
    loaded.save(tmp_path / "again.sc")
    assert (tmp_path / "again.sc").read_bytes() == (tmp_path / "model.sc").read_bytes()


def cuts_of(member):
    """The bins of a member."""
    return next(part.cuts for part in member.parts if hasattr(part, "cuts"))


def _senseless(arrays, document):
    """Changes after which a file makes no sense, by what is changed."""
    ensemble = document["scorer"]["ensemble"]
    weights, bias = ensemble["weights"]["array"], ensemble["bias"]["array"]
    tables = next(part for member in ensemble["members"] for part in member["parts"] if part["kind"] == "tables")
    coefficients = tables["values"]["array"]
    yield "weights", lambda: arrays.update({weights: -arrays[weights]})
    yield "bias", lambda: arrays.update({bias: arrays[bias][:1]})
    yield "nan", lambda: arrays.update({coefficients: np.full_like(arrays[coefficients], np.nan)})
    yield "short", lambda: arrays.update({coefficients: arrays[coefficients][:-1]})
    yield "names", lambda: ensemble.update(names=["os.system"] * len(ensemble["names"]))
    yield "kind", lambda: ensemble["members"][0]["parts"][0].update(kind="pickle")
    yield "terms", lambda: tables["terms"]["columns"].append([99])
    yield "cuts", lambda: tables["cuts"]["edges"]["lengths"].append(1)
    yield "tried", lambda: ensemble["tried"][0].update(log_loss="x")


@pytest.mark.parametrize("what", ["weights", "bias", "nan", "short", "names", "kind", "terms", "cuts", "tried"])
def test_senseless_files_are_refused(fitted, tmp_path, what):
    model, *_ = fitted
    model.save(tmp_path / "model.sc")
    document, arrays = read(tmp_path / "model.sc")
    dict(_senseless(arrays, document))[what]()
    write(tmp_path / "bad.sc", document, arrays)
    with pytest.raises(ModelFileError):
        sc.load(tmp_path / "bad.sc")


@pytest.mark.parametrize("column", ["price", "colour"])
def test_a_column_copied_ten_times_changes_no_probability(column):
    frame, label = mixed()
    copied = frame.assign(**{f"copy {k}": frame[column] for k in range(10)})
    if column == "colour":
        copied["copy 3"] = frame[column].map({"red": "rouge", "blue": "bleu"})
    alone, many = sc.Classifier().fit(frame, label), sc.Classifier().fit(copied, label)
    np.testing.assert_allclose(many.predict_proba(copied), alone.predict_proba(frame), atol=1e-9)
    assert any("10 columns repeat another one" in x and f"'copy 7' (repeats {column!r})" in x for x in many.notes_)


def test_columns_without_repeated_values_are_not_taken_for_copies():
    rng = np.random.default_rng(3)
    label = rng.integers(0, 4, 200)
    X = rng.normal(size=(200, 6)) + 1.5 * (label[:, None] == np.arange(6))
    model = sc.Classifier().fit(X, label)
    assert not any("repeat" in note for note in model.notes_)
    assert model.score(X, label) > 0.6


@pytest.mark.parametrize(("change", "copy"), [(np.exp, True), (np.negative, True), (np.square, False)])
def test_a_number_repeats_another_where_the_order_of_rows_is_the_same_or_turned(change, copy):
    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    model = sc.Classifier().fit({"x": x, "other": change(x)}, (x + rng.normal(size=80) > 0).astype(int))
    assert ("column 'other' repeats 'x' and is left out." in model.notes_) == copy


def test_a_pair_of_columns_that_only_together_tell_is_found():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (300, 4)).astype(str)
    y = (X[:, 1] == X[:, 3]).astype(int)
    model = sc.Classifier().fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.selection_["model"][0] == "pairwise interactions"


@pytest.mark.parametrize("failures", [1, 99])
def test_a_final_fit_that_stops_early_is_repeated_or_refused(failures, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (300, 4)).astype(str)
    y = (X[:, 1] == X[:, 3]).astype(int)
    minimise, failed = logistic.minimise, []

    def stops_early(objective, start, *settings):
        if len(start) == 1 and len(failed) < failures:  # folds of a small table are fitted side by side
            failed.append(start)
            return start, np.zeros(1, dtype=np.int64)
        return minimise(objective, start, *settings)

    monkeypatch.setattr(logistic, "minimise", stops_early)
    if failures == 1:
        assert sc.Classifier().fit(X, y).score(X, y) == 1.0
    else:
        with pytest.raises(SoftcountError, match="final fit of 'pairwise interactions' failed"):
            sc.Classifier().fit(X, y)
    assert failed


def test_steps_that_scale_each_of_many_features_alone_reach_the_same_fit(monkeypatch):
    X, y = load_iris(return_X_y=True)
    expected = sc.Classifier(n_jobs=1).fit(X, y)
    monkeypatch.setattr(logistic, "MOST_DECORRELATED", 0)
    monkeypatch.setattr(np.linalg, "inv", None)  # it would take minutes of thousands of columns
    found = sc.Classifier(n_jobs=1).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=0.02)


def test_numbers_that_say_nothing_alone_are_looked_at_in_pairs():
    rng = np.random.default_rng(6)
    X = rng.uniform(0, 2, (900, 3))
    y = np.floor(X[:, :2]).sum(axis=1) % 2
    model = sc.Classifier().fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.85
    assert "pairwise interactions" in model.ensemble_.names


def test_ten_rows_told_without_error_do_not_make_sure_of_all():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [1.0], [1.1], [1.2], [1.3], [1.4]])
    model = sc.Classifier().fit(np.repeat(X, 2, axis=0), np.repeat([0, 1], 10))
    assert model.ensemble_ is not None
    assert 0.5 < model.predict_proba([[0.6]])[0, 0] < 0.999


def test_correlated_numbers_get_a_block():
    X, y = load_iris(return_X_y=True)
    model = sc.Classifier().fit(X, y)
    assert "discriminant analysis" in model.ensemble_.names
    assert model.ensemble_.log_loss < model.ensemble_.plain / 1.5


def test_levels_that_are_numbers_are_taken_as_numbers_unless_somebody_says_otherwise():
    rng = np.random.default_rng(4)
    stars = rng.integers(1, 6, 200)
    frame = pd.DataFrame({"stars": stars, "colour": rng.choice(["red", "blue"], 200)})
    label = (rng.random(200) < stars / 6).astype(int)
    guessed, said = sc.Classifier().fit(frame, label), sc.Classifier(kinds={"stars": "categorical"}).fit(frame, label)
    assert {len(cuts_of(member).edges) for member in guessed.ensemble_.members} == {1}
    assert {len(cuts_of(member).edges) for member in said.ensemble_.members} == {0}


@pytest.mark.parametrize("why", ["few rows", "one class"])
def test_simple_cases_get_the_textbooks_model_and_say_so(why):
    frame, label = mixed(9 if why == "few rows" else 60)
    if why == "one class":
        label = np.full(len(label), "kept")
    model = sc.Classifier().fit(frame, label)
    assert model.ensemble_ is None
    assert "standard naive Bayes alone" in model.notes_[-1]
    plain = sc.NaiveBayes().fit(frame, label)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(frame))


def test_rows_without_a_label_are_left_to_naive_bayes(fitted):
    _, frame, label = fitted
    gaps = label.astype(object)
    gaps[::3] = None
    model = sc.Classifier().fit(frame, gaps)
    kept = np.flatnonzero(gaps != None)  # noqa: E711
    alone = sc.Classifier().fit(frame.iloc[kept], label[kept])
    assert model.ensemble_.names == alone.ensemble_.names
    assert np.abs(model.predict_proba(frame) - alone.predict_proba(frame)).max() < 1e-6


def test_the_class_may_be_a_column_of_a_file(fitted, tmp_path):
    model, frame, label = fitted
    frame.assign(label=label).to_csv(tmp_path / "table.csv", index=False)
    again = sc.Classifier().fit(str(tmp_path / "table.csv"), "label")
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), atol=1e-9)


def test_counts_are_merged_and_the_rest_is_dropped_with_a_note(fitted):
    model, frame, label = fitted
    merged = model.merge(model)
    assert merged.ensemble_ is None
    assert "dropped" in merged.notes_[-1]
    np.testing.assert_allclose(
        merged.predict_proba(frame), sc.NaiveBayes().fit(frame, label, np.full(len(label), 2.0)).predict_proba(frame)
    )


def loans(rows=900, seed=0):
    """Seven grades, two of them rare; numbers and levels that all follow one risk, and two columns of noise."""
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=rows)
    grade = np.array(list("ABCDEFG"))[
        np.searchsorted([0.40, 0.70, 0.88, 0.955, 0.99, 0.997], risk.argsort().argsort() / rows)
    ]
    frame = {f"n{k}": risk * (1.0 - k / 6) + rng.normal(size=rows) for k in range(7)}
    frame["rate"] = np.round(6 + 3 * risk + rng.normal(size=rows), 1)
    for k in range(4):
        codes = np.digitize(risk * (1.0 - k / 3) + rng.normal(size=rows), [-1, 0, 1])
        frame[f"c{k}"] = np.array(list("pqrs"))[codes]
    return pd.DataFrame(frame), grade


def nats(model, frame, label):
    logs = model.predict_log_proba(frame)
    return -logs[np.arange(len(label)), np.searchsorted(model.classes_, label)].mean()


def test_an_empty_row_has_the_class_shares_and_few_cells_are_worth_what_a_refit_makes_of_them():
    frame, label = loans()
    inside, outside, tested = frame[:600], frame[600:], label[600:]
    model = sc.Classifier(n_jobs=1).fit(inside, label[:600])
    empty = pd.DataFrame({name: [None] for name in frame})
    shares = np.array([(label[:600] == grade).mean() for grade in model.classes_])
    np.testing.assert_allclose(model.predict_proba(empty)[0], shares, rtol=1e-12)
    assert (model.explain(empty)[list(frame)].to_numpy() == 0).all()
    known = -np.log(shares[np.searchsorted(model.classes_, tested)]).mean()
    full = nats(model, outside, tested)
    for columns in (["n0"], ["n6", "c3"], ["c0", "n1", "n3"], ["rate", "n2"], ["rate", "n0", "n1", "c0", "c1", "c2"]):
        few = outside[columns].reindex(columns=list(frame))
        found = nats(model, few, tested)
        assert found <= known + 0.002, columns
        refitted = nats(sc.Classifier(n_jobs=1).fit(inside[columns], label[:600]), outside[columns], tested)
        assert found - refitted < 0.15 * (known - full), columns


def test_rows_with_few_cells_are_explained_and_saved_as_they_are_scored(fitted, tmp_path):
    model, frame, _ = fitted
    few = frame.copy()
    few.loc[::2, ["colour", "price"]] = None
    few.loc[::3, ["size"]] = None
    few.loc[::7, ["age"]] = None
    log_odds = model.predict_log_proba(few)
    added = np.asarray(model.explain(few).select_dtypes("number"), dtype=float).sum(axis=1)
    np.testing.assert_allclose(added, np.abs(log_odds[:, 1] - log_odds[:, 0]), atol=1e-9)
    model.save(tmp_path / "model.softcount")
    np.testing.assert_array_equal(sc.load(tmp_path / "model.softcount").predict_log_proba(few), log_odds)


@pytest.mark.parametrize("rows", [[0], [0, 1, 2]])
def test_unseen_and_missing_cells_are_no_evidence(fitted, rows):
    model, frame, _ = fitted
    odd = frame.iloc[rows].assign(colour="green")
    gone = frame.iloc[rows].assign(colour=None)
    with pytest.warns(DataWarning, match="never seen"):
        proba = model.predict_proba(odd)
    np.testing.assert_allclose(proba, model.predict_proba(gone))


@pytest.mark.parametrize("numbers", [1e200, 1e-200])
def test_units_change_nothing(numbers):
    frame, label = mixed()
    scaled = frame.assign(price=frame["price"] * numbers)
    plain, other = sc.Classifier().fit(frame, label), sc.Classifier().fit(scaled, label)
    np.testing.assert_allclose(other.predict_proba(scaled), plain.predict_proba(frame), atol=1e-6)


def test_classes_told_without_error_have_finite_scores():
    X = np.arange(60.0)[:, None]
    model = sc.Classifier().fit(X, X[:, 0] > 30)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.score(X, X[:, 0] > 30) > 0.9


def test_a_class_of_one_row_and_a_constant_column_do_no_harm():
    frame, label = mixed(80)
    label = label.astype(object)
    label[3] = "lost"
    model = sc.Classifier().fit(frame.assign(one=1.0), label)
    assert np.isfinite(model.predict_proba(frame.assign(one=1.0))).all()
    with pytest.raises(DataError):
        sc.Classifier().fit(frame, None)


@pytest.mark.parametrize("asked", ["to_linear", "to_quadratic"])
def test_forms_of_naive_bayes_are_refused_where_something_else_tells_the_classes(fitted, asked):
    with pytest.raises(DataError, match="needs naive Bayes"):
        getattr(fitted[0], asked)()


def test_a_budget_leaves_out_what_comes_too_late(fitted):
    _, frame, label = fitted
    model = sc.Classifier(budget=0.0).fit(frame, label)
    assert arrow(model.selection_)["model"].to_pylist() == ["Gaussian naive Bayes"]
    assert model.ensemble_.names == ("Gaussian naive Bayes",)


def test_numbers_are_cut_where_the_classes_change_beside_a_partner():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (1600, 3))
    y = np.floor(X[:, :2]).sum(axis=1) % 2  # a chequerboard, and a number that has nothing to do with it
    model = sc.Classifier().fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > 0.97
    member = model.ensemble_.members[model.ensemble_.names.index("pairwise interactions")]
    for edges in cuts_of(member).edges[:2]:
        np.testing.assert_allclose(edges, [1, 2, 3], atol=0.05)


def test_folds_of_few_rows_without_a_mistake_do_not_end_the_search():
    X, y = load_iris(return_X_y=True)
    model = sc.Classifier().fit(X[40:60], y[40:60])  # told by any column, without a mistake
    assert len(model.selection_) > 1


# -- copies of a row in one fold


def noise(rows, weights, seed=0):
    """Numbers that say nothing of the class."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    label = rng.permutation(np.arange(rows) % 2)
    return frame, label, np.asarray(weights(rng, rows, label), dtype=float)


WEIGHTS = {
    "all alike": lambda rng, rows, label: np.full(rows, 5),
    "by class": lambda rng, rows, label: np.where(label == 1, 9, 3),
    "of any size": lambda rng, rows, label: rng.integers(1, 9, rows),
    "fractions": lambda rng, rows, label: np.full(rows, 2.5),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_do_not_leak_into_folds(name):
    """Copies of a row in several folds let noise be told with a log-loss below 0.2."""
    frame, label, weights = noise(80, WEIGHTS[name])
    model = sc.Classifier(n_jobs=1).fit(frame, label, sample_weight=weights)
    shares = np.bincount(label, weights) / weights.sum()
    assert model.ensemble_.log_loss > -(shares @ np.log(shares)) - 0.05
    fresh, classes, _ = noise(1000, WEIGHTS[name], seed=1)
    heavy = shares[classes] / np.bincount(classes)[classes]
    own = np.log(model.predict_proba(fresh)[np.arange(1000), classes])
    assert model.ensemble_.log_loss == pytest.approx(-(heavy @ own) / heavy.sum(), abs=0.1)
    if np.ptp(weights) > 0:
        assert any(note.startswith("Held-out figures use the row weights") for note in model.notes_)


def test_copies_are_reported_and_a_weight_is_a_repetition():
    frame, label, weights = noise(60, WEIGHTS["of any size"])
    short = sc.Classifier(n_jobs=1).fit(frame, label, sample_weight=weights)
    places = np.random.default_rng(3).permutation(np.repeat(np.arange(60), weights.astype(int)))
    long = sc.Classifier(n_jobs=1).fit(frame.iloc[places], label[places])
    assert long.ensemble_.log_loss == short.ensemble_.log_loss
    np.testing.assert_array_equal(long.predict_proba(frame), short.predict_proba(frame))
    said = f"{len(places) - 60} of {len(places)} rows repeat an earlier row. Cross-validation keeps identical rows in"
    assert any(note.startswith(said) for note in short.notes_)


@pytest.mark.parametrize("rows", [8, 9])
def test_few_distinct_rows_are_few_rows_whatever_they_weigh(rows):
    frame, label, _ = noise(rows, WEIGHTS["all alike"])
    model = sc.Classifier(n_jobs=1).fit(frame, label, sample_weight=np.arange(rows) + 20.0)
    assert model.ensemble_ is None
    assert any("fewer than 10 rows have a label" in note for note in model.notes_)


def counted_people():
    """Counts of independent people: cells of few discrete columns, in which both classes are met."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.integers(0, 3, (400, 2)), columns=["a", "b"]).astype(str)
    people["y"] = np.where(rng.random(400) < 0.2 + 0.6 * (people["a"] == "1"), "yes", "no")
    return people, people.value_counts().reset_index()


def test_counts_of_independent_rows_are_not_taken_for_copies():
    people, counts = counted_people()
    long = sc.Classifier(n_jobs=1).fit(people[["a", "b"]], people["y"])
    short = sc.Classifier(n_jobs=1).fit(counts[["a", "b"]], counts["y"], sample_weight=counts["count"].to_numpy(float))
    assert short.ensemble_.log_loss == long.ensemble_.log_loss == pytest.approx(0.52, abs=0.04)
    assert any("treats them as independent rows" in note for note in short.notes_)
    heavy = 1000.0 * counts["count"].to_numpy()
    many = sc.Classifier(n_jobs=1).fit(counts[["a", "b"]], counts["y"], sample_weight=heavy)
    assert many.ensemble_.log_loss == pytest.approx(long.ensemble_.log_loss, abs=0.03)  # by whole cells it is 1.2


def test_equal_weights_of_discrete_rows_do_not_leak():
    """150 rows of noise in 144 cells, each five times: no number of a distinct row is not a multiple of five."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.integers(0, 12, (150, 2)), columns=["a", "b"]).astype(str)
    label = rng.permutation(np.arange(150) % 2)
    model = sc.Classifier(n_jobs=1).fit(frame, label, sample_weight=np.full(150, 5.0))
    assert model.ensemble_.log_loss > 0.68


# -- honest figures, and what columns contribute


def test_a_fold_has_no_part_in_the_choice_that_it_is_scored_by():
    """A setting that is right in one half only is not chosen for that half."""
    labels, groups = np.tile([0, 1], 100), np.repeat([0, 1], 100)
    sure = np.where(labels[:, None] == np.arange(2), np.log(0.99), np.log(0.01))
    lucky = np.where(groups[:, None] == 0, sure, sure[:, ::-1])
    steady = np.where(labels[:, None] == np.arange(2), np.log(0.6), np.log(0.4))
    said = {("Gaussian naive Bayes", 1.0): lucky, ("Gaussian naive Bayes", 2.0): steady}
    logs = _score_nested(said, labels, np.ones(200), groups, {})
    own = -logs[np.arange(200), labels]
    assert own[groups == 0].mean() > 0.2


def test_the_log_loss_has_its_spread_over_folds(fitted):
    model, *_ = fitted
    folds = [fold["log_loss"] for fold in model.fitted_.record.evaluation.folds]
    assert len(folds) == 5
    spread = f"(± {np.std(folds, ddof=1):.2g} over 5 folds)"
    assert any(spread in note for note in model.notes_)


def test_a_column_that_is_the_class_has_the_largest_influence(tmp_path):
    """The words diverge by more nats than the entropy of the classes, which no column can exceed."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 120)
    words = [" ".join(rng.choice([f"w{k}" for k in range(60)], 80)) + f" topic{k}" * rng.integers(0, 3) for k in label]
    frame = pd.DataFrame({"abstract": words, "code": np.array(["x", "y", "z"])[label], "size": rng.normal(size=120)})
    model = sc.Classifier(kinds={"abstract": "text"}, n_jobs=1).fit(frame, label)
    shares = np.bincount(label) / 120
    assert next(iter(model.influence_)) == "code"
    assert model.influence_["code"] == pytest.approx(-(shares @ np.log(shares)), abs=0.05)
    assert 0 <= model.influence_["size"] < 0.05 < model.influence_["abstract"] < model.influence_["code"]
    model.save(tmp_path / "kept.sc")
    assert sc.load(tmp_path / "kept.sc").influence_ == model.influence_
