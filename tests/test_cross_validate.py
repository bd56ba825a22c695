"""Cross-validation by adding and subtracting counts agrees with refitting every fold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

import softcount as sc
from small_tables import KINDS, fruit
from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.folds import FoldCounter, FoldWords, fold_models
from softcount.evaluate.scores import Evaluation, cross_validate
from softcount.learn.known_classes import fit_labelled
from softcount.learn.record import Plan, Stop
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import Chunk, Table, open_table
from softcount.table.chunk import Repeats, Split

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")  # missing cells, met on purpose


def opened(frame, y, kinds=KINDS, weights=None):
    return open_table(frame.assign(state=y), kinds=read_kinds(kinds).forced, target="state", weights=weights)


def planned(kinds=KINDS, **how):
    return Plan(declared=read_kinds(kinds), target="state", **how)


def evaluated(frame, y, kinds=KINDS, weights=None, folds=5, seed=0, share=None, calibration=None, **how) -> Evaluation:
    table, plan = opened(frame, y, kinds, weights), planned(kinds, **how)
    with Threads(1) as threads:
        return cross_validate(table, plan, threads, folds, seed, calibration, share=share)


def folds_of(rows: int, folds: int, seed: int, share: float | None = None) -> np.ndarray:
    nothing = np.zeros((rows, 0))
    chunk = Chunk(0, rows, nothing, nothing.astype(np.uint8), nothing.astype(np.int32))
    return Split(2 if share is not None else folds, seed, share).of(chunk)


def refitted(frame, y, kinds=KINDS, weights=None, folds=5, seed=0, share=None, **how) -> tuple[float, float, int]:
    """Accuracy, log-loss and rows, from a model fitted anew for every fold and its rows looked at one by one."""
    y = np.asarray(y, dtype=object)
    weights = np.ones(len(y)) if weights is None else weights
    known = np.array([name is not None for name in y])
    part = folds_of(len(y), folds, seed, share)
    right = loss = mass = rows = 0.0
    for fold in range(folds if share is None else 1):
        train, test = (part != fold) & known, (part == fold) & known
        model = sc.NaiveBayes(kinds=kinds, n_jobs=1, **how).fit(frame[train], y[train].astype(str), weights[train])
        if not test.any():
            continue
        proba = model.predict_proba(frame[test])
        for shares, name, weight in zip(proba, y[test], weights[test], strict=True):
            own = shares[model.classes_.tolist().index(name)]
            right += weight * (shares.argmax() == model.classes_.tolist().index(name))
            loss -= weight * math.log(max(own, SMALLEST))
            mass += weight
            rows += 1
    return right / mass, loss / mass, int(rows)


def agrees(found: Evaluation, expected: tuple[float, float, int]) -> None:
    assert found.accuracy == pytest.approx(expected[0], abs=1e-9)
    assert found.log_loss == pytest.approx(expected[1], abs=1e-9)
    assert found.n_rows == expected[2]


FRAME, Y = fruit(150)


@pytest.mark.parametrize("estimate", ["mean", "ml", "predictive"])
@settings(max_examples=4, deadline=None)
@given(folds=st.integers(2, 10), seed=st.integers(0, 2**63 - 1))
def test_every_fold_is_predicted_by_a_refit_of_the_others(estimate, folds, seed):
    how = {"folds": folds, "seed": seed, "estimate": estimate}
    agrees(evaluated(FRAME, Y, **how), refitted(FRAME, Y, **how))


@settings(max_examples=4, deadline=None)
@given(share=st.floats(0.1, 0.6), seed=st.integers(0, 1000))
def test_a_held_out_share_is_predicted_by_a_fit_of_the_rest(share, seed):
    agrees(evaluated(FRAME, Y, share=share, seed=seed), refitted(FRAME, Y, share=share, seed=seed))


BLOCKS = {
    "joint": {("colour", "shape"): "categorical", "size": "normal"},
    "multinormal": {("size", "length"): "multinormal", "colour": "categorical"},
    "multinomial": {("visits", "seeds"): "multinomial"},
    "tied": {"size": sc.families.Normal(tied="classes"), "length": sc.families.Normal(tied="classes")},
    "lognormal": {"mass": "lognormal", "visits": "poisson"},
}


def wider() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return FRAME.assign(
        shape=rng.choice(["flat", "round"], 150),
        length=FRAME["size"] * 0.5 + rng.normal(size=150),
        seeds=rng.poisson(3.0, 150),
        mass=np.exp(FRAME["size"]),
    )


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_and_other_families_agree_too(name):
    kinds = BLOCKS[name]
    frame = wider()[[c for key in kinds for c in (key if isinstance(key, tuple) else (key,))]]
    agrees(evaluated(frame, Y, kinds, folds=4), refitted(frame, Y, kinds, folds=4))


@pytest.mark.parametrize("prior", [0.3, "jeffreys", {"colour": 2.0}])
def test_priors_look_at_the_training_rows_only(prior):
    agrees(evaluated(FRAME, Y, prior=prior), refitted(FRAME, Y, prior=prior))


@pytest.mark.parametrize("class_prior", ["uniform", 2.0, [0.3, 0.7]])
def test_class_priors_count_in_every_fold(class_prior):
    agrees(evaluated(FRAME, Y, class_prior=class_prior), refitted(FRAME, Y, class_prior=class_prior))


def unequal(rows: int = 150) -> np.ndarray:
    """Weights that are no whole numbers, so that no row stands for several."""
    return np.random.default_rng(1).uniform(0.5, 4.0, rows)


def test_weights_count_in_training_and_in_the_score():
    weights = unequal()
    found = evaluated(FRAME, Y, weights=weights)
    agrees(found, refitted(FRAME, Y, weights=weights))
    plain = evaluated(FRAME, Y)
    assert abs(found.log_loss - plain.log_loss) > 1e-6


def test_weights_scale_out_of_the_score_under_maximum_likelihood():
    once, twice = (evaluated(FRAME, Y, weights=np.full(150, w), estimate="ml") for w in (1.5, 3.5))
    assert twice.log_loss == pytest.approx(once.log_loss, abs=1e-12)
    assert twice.baseline_log_loss == pytest.approx(once.baseline_log_loss, abs=1e-12)


def test_rows_without_a_label_that_do_not_count_are_neither_trained_on_nor_scored():
    gaps = Y.astype(object)
    gaps[::6] = None
    found = evaluated(FRAME, gaps, unlabelled_weight=0.0)
    agrees(found, refitted(FRAME, gaps))
    assert found.n_rows == 125


@pytest.mark.parametrize("share", [None, 0.3])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_rows_without_a_label_teach_every_fold_as_they_teach_the_fit(weight, share):
    """A refit of the other folds and of all rows without a label, by the estimator itself."""
    gaps = Y.astype(object)
    gaps[np.arange(150) % 10 > 1] = None
    known = gaps != None  # noqa: E711 - cell by cell
    part, loss, mass = folds_of(150, 5, 0, share), 0.0, 0
    for fold in range(5 if share is None else 1):
        train, test = ~known | (part != fold), known & (part == fold)
        model = sc.NaiveBayes(KINDS, estimate="ml", unlabelled_weight=weight, tol=1e-13, max_iter=5000, n_jobs=1)
        shares = model.fit(FRAME[train], gaps[train].tolist()).predict_proba(FRAME[test])
        own = shares[np.arange(test.sum()), [model.classes_.tolist().index(name) for name in Y[test]]]
        loss, mass = loss - np.log(np.maximum(own, SMALLEST)).sum(), mass + test.sum()
    how = {"estimate": "ml", "stop": Stop(5000, 1e-13), "share": share}
    found = evaluated(FRAME, gaps, unlabelled_weight=weight, **how)
    assert (found.n_rows, found.log_loss) == (mass, pytest.approx(loss / mass, abs=1e-6))
    assert abs(found.log_loss - evaluated(FRAME, gaps, unlabelled_weight=0.0, **how).log_loss) > 1e-3


def test_missing_cells_are_no_evidence_in_any_fold():
    frame = FRAME.copy()
    frame.loc[::5, "size"] = np.nan
    frame.loc[1::7, "colour"] = None
    agrees(evaluated(frame, Y), refitted(frame, Y))


def test_holes_in_a_correlated_block_are_filled_by_em_in_every_fold():
    """Under a prior the refit's own start decides the prior's scale, so the law is for maximum likelihood."""
    kinds = BLOCKS["multinormal"]
    frame = wider()[["size", "length", "colour"]].copy()
    frame.loc[::6, "length"] = np.nan
    found = evaluated(frame, Y, kinds, estimate="ml", stop=Stop(5000, 1e-14))
    expected = refitted(frame, Y, kinds, estimate="ml", max_iter=5000, tol=1e-14)
    assert found.log_loss == pytest.approx(expected[1], abs=1e-7)
    assert found.accuracy == pytest.approx(expected[0], abs=1e-9)


def test_an_older_models_counts_are_behind_every_fold():
    older = sc.priors.Older(sc.NaiveBayes(kinds=KINDS).fit(*fruit(40, seed=9)), weight=3.0)
    found = evaluated(FRAME, Y, prior=older)
    agrees(found, refitted(FRAME, Y, prior=older))
    assert abs(found.log_loss - evaluated(FRAME, Y).log_loss) > 1e-4


def test_a_constant_column_does_not_drown_the_others():
    kinds = KINDS | {"same": "normal"}
    frame = FRAME.assign(same=3.5)
    found, plain = evaluated(frame, Y, kinds), evaluated(FRAME, Y)
    assert found.log_loss == pytest.approx(plain.log_loss, abs=1e-9)


def test_the_baseline_always_says_how_frequent_each_class_is():
    found = evaluated(FRAME, Y)
    share = np.mean(Y == "ripe")
    assert found.baseline_accuracy == pytest.approx(max(share, 1 - share))
    assert found.baseline_log_loss == pytest.approx(-share * math.log(share) - (1 - share) * math.log(1 - share))


def test_folds_are_listed_and_add_up():
    found = evaluated(FRAME, Y, folds=6, seed=3)
    sizes = [int(n) for n in np.bincount(folds_of(150, 6, 3), minlength=6)]
    assert [fold["rows"] for fold in found.folds] == sizes
    mean = sum(fold["accuracy"] * fold["rows"] for fold in found.folds) / 150
    assert found.accuracy == pytest.approx(mean, abs=1e-12)
    assert found.how == "6-fold cross-validation"


@pytest.mark.parametrize("kind", ["cut", "kde", "histogram"])
def test_words_beside_a_column_whose_levels_come_first_are_of_their_own_classes(kind):
    """Rows of the later class come first; the words alone tell the classes."""
    told = np.array([True, False, False] * 40)
    rows = pd.DataFrame(
        {"said": np.where(told, "good film", "bad thing"), "n": np.random.default_rng(0).normal(size=120)}
    )
    kinds = read_kinds({"said": "text", "n": kind})
    with Threads(1) as threads:
        table = open_table(rows.assign(y=np.where(told, "yes", "no")), kinds=kinds.forced, target="y")
        found = cross_validate(table, Plan(declared=kinds, prior=1.0, estimate="mean", target="y"), threads)
    assert found is not None and found.accuracy == 1.0


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    with Threads(threads) as many:
        found = cross_validate(opened(FRAME, Y), planned(), many)
    assert found == evaluated(FRAME, Y)


@pytest.mark.parametrize("name", ["columns", "words", "joint", "multinormal"])
def test_folds_counted_beside_the_fit_are_those_of_a_pass_of_their_own(name, monkeypatch):
    """To the bit; and the rows are read once less."""
    kinds = {"columns": KINDS, "words": KINDS | {"note": "text"}, **BLOCKS}[name]
    frame = wider().assign(note=notes())[[c for key in kinds for c in (key if isinstance(key, tuple) else (key,))]]
    passes, tasks = [], Table.tasks
    monkeypatch.setattr(Table, "tasks", lambda table: passes.append(1) or tasks(table))
    found = []
    for counter in (None, FoldCounter(Split(5, 0))):
        table, plan = opened(frame, Y, kinds), planned(kinds, fold_counter=counter)
        with Threads(1) as threads:
            fitted = fit_labelled(table, plan, threads)
            found.append((fitted, cross_validate(table, plan, threads), len(passes)))
        passes.clear()
    (alone, expected, more), (same, tried, fewer) = found
    assert tried == expected and all(np.array_equal(alone.counts[key], same.counts[key]) for key in alone.counts)
    assert fewer == more - (name != "joint")  # whose levels come first: its rows are kept as they are read


def test_folds_of_another_table_or_split_are_counted_again():
    table, counter = opened(FRAME, Y), FoldCounter(Split(5, 0))
    with Threads(1) as threads:
        fit_labelled(opened(FRAME[:80], Y[:80]), planned(fold_counter=counter), threads)
        assert cross_validate(table, planned(fold_counter=counter), threads) == evaluated(FRAME, Y)
        fit_labelled(table, planned(fold_counter=counter), threads)
        assert cross_validate(table, planned(fold_counter=counter), threads, seed=1) == evaluated(FRAME, Y, seed=1)


def test_another_seed_makes_other_folds():
    assert (folds_of(150, 5, 0) != folds_of(150, 5, 1)).any()
    assert evaluated(FRAME, Y, seed=0).log_loss != evaluated(FRAME, Y, seed=1).log_loss


def test_a_class_absent_from_a_training_part_costs_what_it_must():
    """One row of its class cannot be predicted by the others, and its loss is the largest there is."""
    y = np.where(np.arange(150) == 7, "lone", Y)
    found = evaluated(FRAME, y)
    assert found.log_loss >= -math.log(SMALLEST) / 150
    assert math.isfinite(found.log_loss)


def test_too_few_labels_give_no_score():
    frame, y = fruit(3)
    assert evaluated(frame[:1], y[:1], folds=2) is None
    assert evaluated(FRAME, [None] * 150) is None


@pytest.mark.parametrize("folds", [1, 0, -3])
def test_fewer_than_two_folds_are_refused(folds):
    with pytest.raises(DataError, match=f"at least 2 folds, not {folds}"):
        evaluated(FRAME, Y, folds=folds)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(DataError, match="between 0 and 1"):
        evaluated(FRAME, Y, share=share)


# Weights that are whole numbers

TIMES = np.random.default_rng(2).integers(0, 6, 150)
WRITTEN_OUT = np.repeat(np.arange(150), TIMES)


def alike(short: Evaluation, long: Evaluation) -> None:
    """That two evaluations are one, but for the order in which numbers were added up."""
    for name in ("how", "n_rows"):
        assert getattr(short, name) == getattr(long, name)
    names = ("accuracy", "balanced_accuracy", "log_loss", "baseline_accuracy", "baseline_log_loss", "calibration_error")
    for name in names:
        assert getattr(short, name) == pytest.approx(getattr(long, name), abs=1e-9)
    assert [fold["rows"] for fold in short.folds] == [fold["rows"] for fold in long.folds]


@pytest.mark.parametrize("share", [None, 0.3])
@pytest.mark.parametrize("calibration", [None, "temperature", "isotonic"])
def test_a_row_of_weight_n_is_judged_as_the_row_n_times(share, calibration):
    how = {"share": share, "calibration": calibration}
    short = evaluated(FRAME, Y, weights=TIMES.astype(float), **how)
    long = evaluated(FRAME.iloc[WRITTEN_OUT], Y[WRITTEN_OUT], **how)
    alike(short, long)
    assert short.n_rows == (TIMES.sum() if share is None else long.n_rows)


def test_so_it_is_with_words_with_holes_and_without_labels():
    gaps, frame = Y.astype(object), wider()[["size", "length", "colour"]].assign(note=notes())
    gaps[::3] = None
    frame.loc[::6, "length"] = np.nan
    kinds = BLOCKS["multinormal"] | {"note": "text"}
    how = {"estimate": "ml", "stop": Stop(2000, 1e-13)}
    short = evaluated(frame, gaps, kinds, TIMES.astype(float), **how)
    alike(short, evaluated(frame.iloc[WRITTEN_OUT], gaps[WRITTEN_OUT], kinds, **how))


@pytest.mark.parametrize("most", [100, 1_000])
def test_however_heavy_rows_are_their_weight_is_shared_out(most):
    """Repetitions beyond so many in all weigh more instead: nothing is lost, and no row is in two folds for nothing."""
    chunk = opened(FRAME, Y, weights=TIMES * 1e6 + 1.0)
    chunks = [task() for task in chunk.tasks()]
    split = Split(5, 0, repeats=Repeats.of(chunk.weights, most))
    for part in chunks:
        folded = split.folded(part)
        assert np.bincount(folded.rows, folded.chunk.weights) == pytest.approx(part.weights)
        assert len(folded.rows) <= max(most, part.n_rows)


def test_the_titanic_by_its_counts_is_the_titanic_person_by_person(data):
    counted = pd.read_csv(data("r_datasets/Titanic_table.csv"))
    people = counted.loc[counted.index.repeat(counted["Freq"])].drop(columns="Freq")
    columns = dict.fromkeys(["Class", "Sex", "Age"], "categorical")
    plan = Plan(declared=read_kinds(columns), target="Survived")
    with Threads(1) as threads:
        short = cross_validate(open_table(counted, kinds=columns, target="Survived", weight="Freq"), plan, threads)
        long = cross_validate(open_table(people, kinds=columns, target="Survived"), plan, threads)
    alike(short, long)
    assert short.n_rows == 2201


# Calibrated as the saved model is


def test_every_fold_is_calibrated_by_what_the_others_show():
    """Temperatures by a plain search over the posteriors that refits give."""
    part, kinds = folds_of(150, 5, 0), KINDS | {"again": "normal", "still": "normal"}
    frame = FRAME.assign(again=FRAME["size"] + 0.01, still=FRAME["size"] - 0.01)
    logs, codes = np.empty((150, 2)), (Y == "sour").astype(int)
    for fold in range(5):
        model = sc.NaiveBayes(kinds, n_jobs=1).fit(frame[part != fold], Y[part != fold])
        logs[part == fold] = model.predict_log_proba(frame[part == fold])

    def loss(heat, rows):
        cooled = logs[rows] / np.exp(heat)
        return -(cooled - np.logaddexp.reduce(cooled, axis=1, keepdims=True))[np.arange(len(rows)), codes[rows]].sum()

    total = 0.0
    for fold in range(5):
        others = np.flatnonzero(part != fold)
        best = minimize_scalar(loss, args=(others,), bounds=(-3, 5), method="bounded", options={"xatol": 1e-9}).x
        total += loss(best, np.flatnonzero(part == fold))
    found = evaluated(frame, Y, kinds, calibration="temperature")
    assert found.log_loss == pytest.approx(total / 150, abs=1e-5)
    assert found.log_loss < evaluated(frame, Y, kinds).log_loss
    assert found.how == "5-fold cross-validation, calibrated by the other rows"


@pytest.mark.parametrize("share", [None, 0.3])
def test_what_is_reported_is_what_a_calibrated_fit_does(share):
    """Columns that say one thing ten times make a rare class seem common; curves put that right, and show it.

    A fit of the training rows makes other folds of them to learn its curves from, so the figures are not quite equal.
    """
    rng = np.random.default_rng(3)
    rare = rng.random(4_000) < 0.06
    hint, y = np.where(rare, 1.2, 0.0) + rng.normal(size=4_000), rare.astype(str)
    frame = pd.DataFrame({f"x{i}": hint + 0.1 * rng.normal(size=4_000) for i in range(10)})
    kinds, part, proba = dict.fromkeys(frame.columns, "normal"), folds_of(4_000, 5, 0, share), np.empty((4_000, 2))
    for fold in range(5 if share is None else 1):
        model = sc.NaiveBayes(kinds, calibration="isotonic", n_jobs=1).fit(frame[part != fold], y[part != fold])
        proba[part == fold] = model.predict_proba(frame[part == fold])
    tested = part < (5 if share is None else 1)
    found = evaluated(frame, y, kinds, share=share, calibration="isotonic")
    assert found.accuracy == pytest.approx(np.mean(proba[tested].argmax(axis=1) == rare[tested]), abs=0.003)
    assert found.log_loss == pytest.approx(log_loss(y[tested], proba[tested]), abs=0.003)
    assert evaluated(frame, y, kinds, share=share).accuracy < found.accuracy - 0.1


# How sure, and how right


def stated(frame, y, weights=None, folds=5, **how):
    """Every row's predicted class and the probability it is stated with, by a refit of the other folds."""
    part, found, sure = folds_of(len(y), folds, 0), np.empty(len(y), dtype=object), np.empty(len(y))
    weights = np.ones(len(y)) if weights is None else weights
    for fold in range(folds):
        train = part != fold
        model = sc.NaiveBayes(kinds=KINDS, n_jobs=1, **how).fit(frame[train], y[train], weights[train])
        proba = model.predict_proba(frame[~train])
        found[~train], sure[~train] = model.classes_[proba.argmax(axis=1)], proba.max(axis=1)
    return found, sure


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_accuracy_and_reliability_are_those_of_refits(weighted):
    weights = unequal() if weighted else np.ones(150)
    found = evaluated(FRAME, Y, weights=weights)
    names, sure = stated(FRAME, Y, weights)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(Y, names, sample_weight=weights), abs=1e-9)
    assert found.baseline_balanced_accuracy == 0.5
    error = 0.0
    for part in found.reliability:
        inside = [i for i in range(150) if part.low <= sure[i] < part.high or (part.high == 1 and sure[i] == 1)]
        mass = sum(weights[i] for i in inside)
        claim = sum(weights[i] * sure[i] for i in inside) / mass
        right = sum(weights[i] * (names[i] == Y[i]) for i in inside) / mass
        assert (part.rows, part.stated, part.right) == pytest.approx((mass, claim, right))
        error += mass * abs(claim - right)
    assert sum(part.rows for part in found.reliability) == pytest.approx(weights.sum())
    assert found.calibration_error == pytest.approx(error / weights.sum())


def test_classes_that_no_row_held_out_has_do_not_count_in_the_balance():
    y = np.where(np.arange(150) == next(np.flatnonzero(folds_of(150, 2, 0, 0.3) == 1).flat), "lone", Y)
    found = evaluated(FRAME, y, share=0.3)
    assert found.baseline_balanced_accuracy == 0.5
    assert found.balanced_accuracy > 0.7


# Text

WORDS = ["ripe", "sweet", "soft", "green", "hard", "sour", "the", "a", "fruit", "is"]
THEIRS = {"multinomial": MultinomialNB, "bernoulli": BernoulliNB, "complement": ComplementNB}


def notes(rows: int = 150, seed: int = 0) -> list[str]:
    """Documents in which every third row has a word of its own, so that each fold has words no other knows."""
    rng = np.random.default_rng(seed)
    lean = np.where(Y[:rows] == "ripe", 0, 3)
    own = [f"own{i}" if i % 3 == 0 else "" for i in range(rows)]
    drawn = [rng.choice(WORDS[k : k + 4] + WORDS[5:], rng.integers(2, 9)) for k in lean]
    return [" ".join([*words, word]) for words, word in zip(drawn, own, strict=True)]


def by_peer(documents, y, model, part, tested):
    """Predictions of scikit-learn's pipeline, fitted on the training rows alone."""
    y, found, told = np.asarray(y), [], []
    for fold in tested:
        train = part != fold
        reader, other = CountVectorizer(), THEIRS[model]()
        other.fit(reader.fit_transform(np.array(documents, dtype=object)[train]), y[train])
        found.append(other.predict_proba(reader.transform(np.array(documents, dtype=object)[~train])))
        told.append(y[~train])
    return np.concatenate(found), np.concatenate(told), other.classes_


def as_the_peer(found: Evaluation, peer) -> None:
    proba, told, classes = peer
    assert found.accuracy == accuracy_score(told, classes[proba.argmax(axis=1)])
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(told, classes[proba.argmax(axis=1)]))
    proba = np.clip(proba, SMALLEST, 1.0)
    assert found.log_loss == pytest.approx(log_loss(told, proba / proba.sum(axis=1, keepdims=True)), abs=1e-9)


@pytest.mark.parametrize("model", THEIRS)
@pytest.mark.parametrize("share", [None, 0.3])
def test_words_that_no_training_row_holds_are_no_evidence(model, share):
    documents, kinds = notes(), {"note": sc.families.Text(model)}
    how = {"class_prior": "uniform"} if model == "complement" else {}
    found = evaluated(pd.DataFrame({"note": documents}), Y, kinds, folds=5, share=share, **how)
    part = folds_of(150, 5, 0, share)
    as_the_peer(found, by_peer(documents, Y, model, part, range(5 if share is None else 1)))


@pytest.mark.parametrize("model", THEIRS)
@pytest.mark.parametrize("share", [None, 0.3])
def test_real_messages_are_judged_as_by_a_pipeline_of_the_training_rows(data, model, share):
    """450 of the 5,574 messages repeat the words of an earlier one, and share its fold."""
    lines = data("sms_spam/SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    y, documents = zip(*(line.split("\t", 1) for line in lines), strict=True)
    how = {"class_prior": "uniform"} if model == "complement" else {}
    found = evaluated(pd.DataFrame({"note": documents}), list(y), {"note": sc.families.Text(model)}, share=share, **how)
    met: dict[tuple, int] = {}
    bags = CountVectorizer().fit_transform(documents).sorted_indices()
    units = [met.setdefault((*bag.indices, *bag.data), len(met)) for bag in bags]
    part = Split(2 if share is not None else 5, 0, share).of_numbers(np.array(units))
    as_the_peer(found, by_peer(documents, y, model, part, range(5 if share is None else 1)))


@pytest.mark.parametrize("estimate", ["mean", "predictive"])
def test_text_beside_other_columns_and_with_holes_agrees_with_refits(estimate):
    kinds = KINDS | {"note": "text"}
    documents = [None if i % 11 == 0 else text for i, text in enumerate(notes())]
    frame = FRAME.assign(note=documents)
    agrees(evaluated(frame, Y, kinds, estimate=estimate), refitted(frame, Y, kinds, estimate=estimate))


def test_text_beside_a_block_with_holes_agrees_with_refits():
    kinds = BLOCKS["multinormal"] | {"note": "text"}
    frame = wider()[["size", "length", "colour"]].assign(note=notes())
    frame.loc[::6, "length"] = np.nan
    found = evaluated(frame, Y, kinds, estimate="mean", stop=Stop(5000, 1e-14), prior={"note": 1.0})
    expected = refitted(frame, Y, kinds, estimate="mean", max_iter=5000, tol=1e-14, prior={"note": 1.0})
    assert found.accuracy == pytest.approx(expected[0], abs=0.02)
    assert found.log_loss == pytest.approx(expected[1], abs=0.02)


def test_weights_count_in_the_words_too():
    weights = unequal()
    frame, kinds = pd.DataFrame({"note": notes()}), {"note": "text"}
    agrees(evaluated(frame, Y, kinds, weights=weights), refitted(frame, Y, kinds, weights=weights))


def test_a_sparse_table_agrees_with_refits():
    counts = CountVectorizer(max_features=12).fit_transform(notes())
    codes = (Y == "sour").astype(np.int32)
    table = open_table(sparse.csr_matrix(counts), labels=codes)
    with Threads(2) as threads:
        models = fold_models(table, Plan(), threads, Split(5, 0), ["ripe", "sour"])
        answers = [found for task in table.tasks() for found in models.answers(task())]
    for found in answers:
        train = folds_of(150, 5, 0) != found.fold
        plain = sc.NaiveBayes().fit(counts[train], codes[train])
        mine = found.joint - np.logaddexp.reduce(found.joint, axis=1)[:, None]
        np.testing.assert_allclose(mine, plain.predict_log_proba(counts[found.rows]), atol=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_words_by_fold_are_the_same_however_many_parts_they_come_in(seed, parts):
    rng = np.random.default_rng(seed)
    bag = sparse.random(60, 7, 0.3, "csr", rng=rng, data_rvs=lambda n: rng.integers(1, 5, n).astype(float))
    groups = rng.integers(-1, 6, 60)  # two classes in three folds, or no class
    order = rng.permutation(2)
    total = None
    for rows in np.array_split(np.arange(60), parts):
        part = FoldWords.of(bag[rows], groups[rows], None)
        total = part if total is None else total + part
    for fold in range(3):
        expected = np.zeros((2, 7))
        for k in range(2):
            expected[order[k]] = bag.toarray()[groups == 3 * k + fold].sum(axis=0)
        np.testing.assert_array_equal(total.fold(fold, 3, order, 2), expected)
    np.testing.assert_array_equal(total.total(3, order, 2).sum(axis=0), bag.toarray()[groups >= 0].sum(axis=0))


# Copies of a row


@pytest.mark.parametrize("calibration", [None, "isotonic"])
def test_weights_of_noise_do_not_leak(calibration):
    """Copies of a row are in one fold: spread over folds, they make naive Bayes right in 79 % of these rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 12)).round(3), columns=[f"c{k}" for k in range(12)])
    y, weights = np.where(rng.permutation(40) % 2, "u", "v"), rng.integers(4, 9, 40).astype(float)
    kinds = dict.fromkeys(frame, "normal")
    found = evaluated(frame, y, kinds, weights, calibration=calibration)
    assert found.n_rows == weights.sum()
    assert found.accuracy < 0.65
    model = sc.NaiveBayes(kinds=kinds, calibration="isotonic").fit(frame, y, sample_weight=weights)
    assert model.calibration_.log_loss_after > 0.65
