"""Logistic regression on naive Bayes' features: right, explained, saved, and where each leads."""

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import softcount as sc
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.evaluate.logistic import fit_weights, naive_weights, read_rows
from softcount.run.local import Threads

COLUMNS = ["age", "work", "weight", "education", "years", "marital", "job", "relation", "race", "sex", "gain", "loss"]
COLUMNS += ["hours", "country", "income"]


def mixed(rows=300, classes=3, seed=0):
    """A table of a tied normal, levels and a 0/1 column, with holes, and its classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(rows) < 0.1, np.nan, 1e4 + 30 * rng.normal(size=rows) + 20 * y),
            "colour": np.where(rng.random(rows) < 0.3, "red", np.array(["blue", "green", "black", "white"])[y]),
            "ripe": (rng.random(rows) < 0.2 + 0.2 * y).astype(int),
        }
    )
    frame.loc[::17, "colour"] = None
    return frame, np.array(["plum", "pear", "apple", "fig"])[y]


KINDS = {"size": sc.families.Normal(tied="classes"), "colour": "categorical", "ripe": "bernoulli"}


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    frame, y = mixed(classes=request.param)
    return frame, y, sc.NaiveBayes(KINDS).fit(frame, y)


def test_explanations_add_up_and_saved_is_loaded(fitted, tmp_path):
    frame, y, naive = fitted
    partner = naive.to_logistic(frame, y)
    logs = np.sort(partner.predict_log_proba(frame), axis=1)
    table = arrow(partner.explain(frame)).to_pandas()
    parts = table[["(prior)", "size", "colour", "ripe"]].sum(axis=1)
    np.testing.assert_allclose(parts, logs[:, -1] - logs[:, -2], rtol=0, atol=1e-10)
    assert (table.loc[::17, "colour"] == 0).all()
    partner.save(tmp_path / "partner.softcount")
    loaded = sc.load(tmp_path / "partner.softcount")
    assert np.array_equal(loaded.predict_proba(frame), partner.predict_proba(frame))
    assert (loaded.to_linear()[0] == partner.to_linear()[0]).all()
    assert partner.score(frame, y) >= naive.score(frame, y) - 0.02


@pytest.mark.parametrize(
    "spoil", [{"intercept": np.array([np.nan, 0, 0])}, {"penalty": -1.0}, {"intercept": np.zeros(7)}]
)
def test_a_file_of_senseless_weights_is_refused(fitted, spoil, tmp_path):
    frame, y, naive = fitted
    partner = naive.to_logistic(frame, y)
    own = replace(partner.fitted_.scorer, **spoil)
    partner.fitted_ = replace(partner.fitted_, scorer=own)
    partner.save(tmp_path / "bad.softcount")
    with pytest.raises(sc.ModelFileError):
        sc.load(tmp_path / "bad.softcount")


def test_the_linear_form_is_that_of_the_learned_weights(fitted):
    frame, y, naive = fitted
    partner, known = naive.to_logistic(frame, y), frame.dropna()
    levels = naive.fitted_.levels["colour"]
    X = np.column_stack([known["size"], *(known["colour"] == level for level in levels), known["ripe"]]).astype(float)
    coef, intercept = partner.to_linear()
    assert coef.shape == naive.to_linear()[0].shape
    np.testing.assert_allclose(softmax(X @ coef.T + intercept, axis=1), partner.predict_proba(known), atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_scikit_learns_optimum_on_the_same_features(classes):
    rng = np.random.default_rng(5)
    y = np.arange(200) % classes
    X = rng.poisson(1.0 + (np.arange(6) % classes == y[:, None]), size=(200, 6))
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    ours = sc.NaiveBayes("multinomial").fit(X, y).to_logistic(X, y, penalty=2.0)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-6)


def test_of_words_it_learns_what_naive_bayes_counts():
    texts = ["win money now", "cheap money", "see you at noon", "noon at the club"] * 5
    y = ["spam", "spam", "ham", "ham"] * 5
    partner = sc.NaiveBayes("text").fit(texts, y).to_logistic(texts, y)
    assert partner.score(texts, y) == 1
    assert any("are classified correctly" in note for note in partner.fitted_.notes)
    assert np.abs(partner.to_linear()[0]).max() < 10


def test_separable_classes_have_finite_weights_and_are_said():
    X, y = np.arange(40.0)[:, None], np.arange(40) >= 20
    partner = sc.NaiveBayes(sc.families.Normal(tied="classes")).fit(X, y).to_logistic(X, y, penalty=1e-3)
    assert np.isfinite(partner.to_linear()[0]).all()
    assert any("only the penalty keeps the weights finite" in note for note in partner.fitted_.notes)


def test_weight_two_is_the_row_twice_on_any_number_of_threads():
    frame, y = mixed(120)
    weights = 1 + np.arange(120) % 3
    twice = np.repeat(np.arange(120), weights)
    one = sc.NaiveBayes(KINDS, n_jobs=1).fit(frame, y, weights).to_logistic(frame, y, weights)
    other, labels = frame.iloc[twice], y[twice]
    two = sc.NaiveBayes(KINDS, n_jobs=2).fit(other, labels).to_logistic(other, labels)
    assert one.fitted_.scorer.penalty == two.fitted_.scorer.penalty
    np.testing.assert_allclose(one.predict_proba(frame), two.predict_proba(frame), atol=1e-5)


def test_rows_added_later_drop_the_weights_and_say_so(fitted):
    frame, y, naive = fitted
    merged = naive.to_logistic(frame, y).merge(naive)
    assert merged.fitted_.scorer.has_density
    assert any("to_logistic again" in note for note in merged.fitted_.notes)


@pytest.mark.parametrize("penalty", [0, -1.0, np.inf, np.nan, True, "1", None])
def test_senseless_penalties_are_refused(fitted, penalty):
    frame, y, naive = fitted
    with pytest.raises(sc.DataError, match="penalty must be a number above 0"):
        naive.to_logistic(frame, y, penalty=penalty)


def test_what_cannot_be_is_refused_by_name(fitted):
    frame, y, naive = fitted
    with pytest.raises(sc.DataError, match="there is no class 'cherry'"):
        naive.to_logistic(frame, ["cherry"] * len(y))
    with pytest.raises(sc.DataError, match="at least two classes"):
        naive.to_logistic(frame, [y[0]] * len(y))
    with pytest.raises(sc.DataError, match=r"'size'.*not linear"):
        sc.NaiveBayes().fit(frame, y).to_logistic(frame, y)


# -- a real table


@pytest.fixture(scope="module")
def adult(data):
    path = data("uci_adult/adult.data.gz")
    frame = pd.read_csv(path, header=None, names=COLUMNS, skipinitialspace=True, na_values="?")
    return frame.sample(8000, random_state=0)


def of_adult(rows):
    kinds = {name: sc.families.Normal(tied="classes") for name in rows.select_dtypes("number").columns}
    X, y = rows.drop(columns="income"), rows["income"].to_numpy()
    return X, y, sc.NaiveBayes(kinds).fit(X, y)


def log_loss(model, X, y):
    places = np.searchsorted(model.classes_, y)
    return -np.log(np.maximum(model.predict_proba(X)[np.arange(len(y)), places], 1e-15)).mean()


def test_started_at_naive_bayes_it_takes_fewer_iterations_than_a_cold_start_on_adult(adult):
    X, y, naive = of_adult(adult[:3000])
    codes = np.searchsorted(naive.classes_, y).astype(np.int32)
    with Threads(1) as threads:
        rows = read_rows(naive.fitted_, naive.fitted_.table(X, labels=codes), threads)
    start = naive_weights(rows, naive.fitted_.estimates)
    warm, warm_iterations = fit_weights(rows, start, 1.0)
    cold_iterations = fit_weights(rows, np.zeros_like(start), 1.0)[1]
    assert warm_iterations < cold_iterations / 2
    parts = rows.parts.toarray()
    parts = parts[:, parts.std(axis=0) > 0]
    best = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=100).fit(parts, codes)
    found = softmax(rows.scores(warm), axis=1)
    np.testing.assert_allclose(found, best.predict_proba(parts), atol=1e-5)


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
def test_naive_bayes_leads_at_50_rows_and_logistic_regression_at_5000_on_adult(adult):
    test = adult[5000:]
    tx, ty = test.drop(columns="income"), test["income"].to_numpy()

    def losses(rows):
        X, y, naive = of_adult(rows)
        ways = naive, naive.to_logistic(X, y, penalty=0.01)
        return [log_loss(model, tx, ty) for model in ways]

    few = np.mean([losses(adult[50 * k : 50 * k + 50]) for k in range(4)], axis=0)
    many = losses(adult[:5000])
    assert few[0] < few[1]
    assert many[1] < many[0] - 0.05
