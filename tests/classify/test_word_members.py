"""Classifiers of text: every way to learn from words against plain loops, and what is said word by word."""

from __future__ import annotations

from collections.abc import Callable
from math import log, log1p, sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

import softcount as sc
from explained import contributions
from softcount.classify.encode import EncodedRows
from softcount.classify.logistic import contrast_classes
from softcount.classify.members import Training
from softcount.classify.recipes import WORD_RECIPES, temper
from softcount.errors import DataError, ModelFileError
from softcount.export.sql_query import as_sql
from softcount.files import archive

WORDS = np.array(["call", "cash", "claim", "free", "home", "love", "lunch", "mum", "prize", "see", "the", "win"])
pytestmark = pytest.mark.filterwarnings("ignore:.*hold no word known:softcount.errors.DataWarning")
KINDS = {"note": "text", "title": "text"}


def bags(rows: int, classes: int, seed: int = 0) -> Training:
    """Two texts, of which one is missing here and there and may be empty; rows of several weights."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    texts = []
    for words in (7, 4):
        likely = rng.dirichlet(np.ones(words), classes)
        counts = np.array([rng.multinomial(rng.integers(0, 9), likely[k]) for k in labels], dtype=float)
        there = (rng.random(rows) < 0.9).astype(float)
        texts.append(sparse.csr_matrix(np.column_stack([there, counts * there[:, None]])))
    nothing = np.zeros((rows, 0))
    encoded = EncodedRows(nothing, nothing.astype(np.int32), tuple(texts))
    return Training(encoded, labels, rng.integers(1, 3, rows).astype(float), classes, ())


@pytest.fixture(scope="module", params=[2, 3])
def training(request: pytest.FixtureRequest) -> Training:
    return bags(60, request.param)


def documents(rows: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """A table of two texts beside a number and a level: one text tells the class, and so does the number."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    shares = [np.roll(np.arange(12) + 1.0, 4 * k) / 78 for k in range(3)]
    notes = [" ".join(rng.choice(WORDS, rng.integers(0, 9), p=shares[k])) for k in kind]
    return pa.table(
        {
            "note": [None if rng.random() < 0.1 else note for note in notes],
            "title": [" ".join(rng.choice(WORDS, 3)) for _ in kind],
            "size": rng.normal(size=rows) + kind,
            "colour": rng.choice(["red", "blue"], rows),
        }
    ), np.array(["ham", "news", "spam"])[kind]


@pytest.fixture(scope="module")
def mixed() -> tuple[sc.Classifier, pa.Table, np.ndarray]:
    X, y = documents(240, 0)
    return sc.Classifier(kinds=KINDS).fit(X, y), *documents(200, 1)


# -- against plain loops


def weighed_plainly(training: Training, text: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows x columns) what words weigh by rarity, and how rare they are."""
    bag = training.rows.bags[text].toarray()
    held = [sum(w for row, w in zip(bag, training.weights, strict=True) if row[k]) for k in range(bag.shape[1])]
    rare = [0.0, *(1 + log((1 + held[0]) / (1 + each)) if each else 0.0 for each in held[1:])]
    found = np.array([[log1p(count) * factor for count, factor in zip(row, rare, strict=True)] for row in bag])
    lengths = [sqrt(sum(cell * cell for cell in row)) or 1.0 for row in found]
    return found / np.array(lengths)[:, None], np.array(rare)


def test_words_weigh_by_how_rare_they_are_and_documents_are_of_length_one(training):
    for text, bag in enumerate(training.rows.bags):
        expected, rare = weighed_plainly(training, text)
        np.testing.assert_allclose(training.rarity.factors[text], rare, rtol=1e-13)
        np.testing.assert_allclose(training.rarity.weigh(text, bag).toarray(), expected, atol=1e-13)


@pytest.mark.parametrize(("name", "prior"), [("multinomial naive Bayes", 1.0), ("tf-idf naive Bayes", 0.1)])
def test_counted_words_are_naive_bayes_of_what_they_weigh(name, prior, training):
    (member,) = WORD_RECIPES[name].fit(training, (prior,))
    labels, weights = training.labels, training.weights
    expected = np.tile(training.shares, (len(labels), 1))
    for text, bag in enumerate(training.rows.bags):
        cells = bag.toarray() if name == "multinomial naive Bayes" else weighed_plainly(training, text)[0]
        for k in range(training.classes):
            mass = [weights[labels == k] @ cells[labels == k, word] + prior for word in range(1, cells.shape[1])]
            expected[:, k] += cells[:, 1:] @ np.log(np.array(mass) / sum(mass))
    scores = member.scores(training.rows)
    away = (scores - scores[:, :1]) - (expected - expected[:, :1])
    assert np.abs(away).max() < 1e-10


def test_weighted_words_have_the_least_penalised_loss(training):
    (member,) = WORD_RECIPES["logistic regression on words"].fit(training, (0.3,))
    scale, labels = training.rarity, training.labels
    features = np.hstack([scale.words(training.rows).toarray(), scale.own_lengths(training.rows, training.weights)])

    def loss(found: np.ndarray) -> float:
        lines = np.column_stack([np.zeros(len(found)), found]) if found.shape[1] == 1 else found
        scores = features @ lines[1:] + lines[0]
        rows = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
        pull = 0.25 if training.classes == 2 else 0.5  # of two classes the penalty is of both
        return float(training.weights @ rows + pull * 0.3 * (found[1:] ** 2).sum())

    (words,) = member.parts
    coefficients = contrast_classes(np.vstack([member.bias, words.words, words.lengths]))
    best = loss(coefficients)
    rng = np.random.default_rng(0)
    free = np.vstack([np.ones((1, 1)), np.concatenate([*(own > 0 for own in scale.factors), np.ones(2)])[:, None]])
    for size in (0.3, 0.1, 0.03):
        for _ in range(20):
            aside = coefficients + size * free * rng.normal(size=coefficients.shape)
            assert loss(aside) > best - 1e-4 * training.weights.sum()


def test_a_document_is_as_long_as_the_words_that_would_be_known_without_it():
    there = np.ones((4, 1))
    bag = sparse.csr_matrix(np.hstack([there, [[1, 2, 0], [1, 0, 0], [1, 0, 5], [1, 1, 0]]]))
    nothing = np.zeros((4, 0))
    rows = EncodedRows(nothing, nothing.astype(np.int32), (bag,))
    scale = Training(rows, np.arange(4) % 2, np.ones(4), 2, ()).rarity
    own = np.log1p([3.0, 1.0, 1.0, 2.0])  # the third word is of one document only
    assert scale.own_lengths(rows, np.ones(4))[:, 0] == pytest.approx((own - own.mean()) / own.std())
    new = np.log1p([3.0, 1.0, 6.0, 2.0])
    assert scale.lengths(rows)[:, 0] == pytest.approx((new - own.mean()) / own.std())


def test_one_weight_for_all_is_the_likeliest():
    rng = np.random.default_rng(0)
    for size in (0.3, 3.0, 60.0):
        logs = rng.normal(size=(200, 3)) * size
        labels, heavy = (logs + 2 * size * rng.normal(size=logs.shape)).argmax(axis=1), rng.random(200)

        def loss(share: float, logs=logs, labels=labels, heavy=heavy) -> float:
            scores = share * logs
            return float(heavy @ (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(200), labels]))

        found = minimize_scalar(loss, bounds=(0.0, 3.0), method="bounded", options={"xatol": 1e-9}).x
        assert temper(logs, labels, heavy) == pytest.approx(found, rel=2e-3, abs=1e-6)


# -- laws


@pytest.mark.parametrize("name", WORD_RECIPES)
def test_texts_add_up_to_the_scores_and_a_hole_adds_nothing(name, training):
    for member in WORD_RECIPES[name].fit(training, WORD_RECIPES[name].settings(training)[:2]):
        parts, rest = member.split(training.rows)
        assert np.abs(parts.sum(axis=1) + rest - member.scores(training.rows)).max() < 1e-10
        missing = np.column_stack([bag[:, :1].toarray() == 0 for bag in training.rows.bags])
        assert missing.any()
        assert (parts[missing] == 0).all()


@pytest.mark.parametrize("name", ["multinomial naive Bayes", "tf-idf naive Bayes"])
def test_weight_two_is_the_row_twice(name, training):
    twice = np.repeat(np.arange(len(training.labels)), training.weights.astype(int))
    written = replace(training.take(twice), weights=np.ones(len(twice)))
    settings = WORD_RECIPES[name].settings(training)[-1:]
    heavy, plain = (next(iter(WORD_RECIPES[name].fit(x, settings))).scores(training.rows) for x in (training, written))
    assert np.abs((heavy - heavy[:, :1]) - (plain - plain[:, :1])).max() < 1e-10


def test_text_beside_columns_is_told_by_both_and_explained_to_the_word(mixed):
    model, X, y = mixed
    names = set(model.ensemble_.names)
    assert names & set(WORD_RECIPES) and names - set(WORD_RECIPES)
    plain = sc.NaiveBayes(kinds=KINDS).fit(*documents(240, 0))
    assert log_loss(y, model.predict_proba(X)) < log_loss(y, plain.predict_proba(X)) + 0.01
    why = contributions(model.explain(X)).to_pandas()
    assert list(why.columns) == ["(prior)", "note", "title", "size", "colour"]
    logs = np.sort(model.predict_log_proba(X), axis=1)
    assert np.abs(why.sum(axis=1) - (logs[:, -1] - logs[:, -2])).max() < 1e-9
    for row in range(5):
        words = model.explain_words(X, row=row).to_pandas()
        for key, nats in words.groupby("column")["nats"].sum().items():
            assert nats == pytest.approx(why[key][row], abs=1e-9)


def test_neither_the_order_of_rows_nor_threads_nor_writing_a_row_twice_matters(mixed):
    model, X, _ = mixed
    table, y = documents(240, 0)
    order = np.random.default_rng(2).permutation(240)
    other = sc.Classifier(kinds=KINDS, n_jobs=2).fit(table.take(order), y[order])
    assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
    times = np.arange(240) % 2 + 1
    heavy = sc.Classifier(kinds=KINDS).fit(table, y, sample_weight=times)
    twice = sc.Classifier(kinds=KINDS).fit(table.take(np.repeat(np.arange(240), times)), np.repeat(y, times))
    assert np.array_equal(heavy.predict_proba(X), twice.predict_proba(X))


def test_it_is_saved_and_merged(mixed, tmp_path):
    model, X, y = mixed
    model.save(tmp_path / "model.sc")
    again = sc.load(tmp_path / "model.sc")
    assert isinstance(again, sc.Classifier)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    both = model.merge(sc.Classifier(kinds=KINDS).fit(X, y))
    assert both.ensemble_ is None and "The ensemble was dropped" in both.notes_[-1]


def test_it_is_a_query_where_a_database_finds_words(mixed):
    model = mixed[0]
    _, check = as_sql(model, "duckdb", "rows", ())
    assert check.rows == 1_000 and check.difference <= 1e-12 and check.otherwise == 0
    for export in (lambda: model.to_sql("sqlite"), model.to_onnx):
        with pytest.raises(DataError, match=r"column 'note' is text, of which .* cannot find the words"):
            export()


@pytest.mark.parametrize("part", ["factors", "words", "spread", "counts"])
def test_a_file_whose_words_make_no_sense_is_refused(part, mixed, tmp_path):
    model = mixed[0]
    model.save(tmp_path / "model.sc")
    document, arrays = archive.read(tmp_path / "model.sc")
    members = document["scorer"]["ensemble"]["members"]
    words = next(part for member in members for part in member["parts"] if part["kind"] == "words")
    if part == "counts":
        words["scale"]["counts"] = 1
    elif part == "words":
        name = next(iter(words[part].values()))
        arrays[name] = arrays[name][:-1]
    else:
        said = words["scale"][part]
        name = next(iter((said[0] if isinstance(said, list) else said).values()))
        arrays[name] = -1 - arrays[name]
    archive.write(tmp_path / "model.sc", document, arrays)
    with pytest.raises(ModelFileError):
        sc.load(tmp_path / "model.sc")


def test_a_sparse_table_is_a_text_without_words():
    rng = np.random.default_rng(0)
    X = sparse.random(150, 40, 0.15, format="csr", random_state=1, data_rvs=lambda n: rng.integers(1, 4, n))
    y = np.where(np.asarray(X[:, :6].sum(axis=1)).ravel() > 1, "many", "few")
    model = sc.Classifier().fit(X, y)
    assert "logistic regression on words" in model.ensemble_.names
    assert model.ensemble_.log_loss < model.ensemble_.plain
    odds = np.abs(np.diff(model.predict_log_proba(X), axis=1))[:, 0]
    assert np.abs(contributions(model.explain(X)).to_pandas().sum(axis=1) - odds).max() < 1e-9
    with pytest.raises(DataError, match="on a sparse table"):
        model.to_sql()


@pytest.mark.parametrize("how", ["weights", "logistic"])
def test_words_add_up_where_columns_or_features_have_weights(how):
    rows = ["cash prize now", "win cash", "meet for lunch", "lunch at noon", "prize cash", "see you at lunch"] * 4
    X, y = {"note": rows, "size": np.arange(24.0) % 5}, list("sshhsh") * 4
    plain = sc.NaiveBayes(kinds={"note": "text"}, weights="columns" if how == "weights" else None)
    if how == "logistic":
        X = {"note": rows}
    model = plain.fit(X, y) if how == "weights" else plain.fit(X, y).to_logistic(X, y)
    told = sum(model.explain_words(X, row=0)["nats"].tolist())
    assert told == pytest.approx(model.explain(X)["note"][0], abs=1e-9)


def test_a_weight_does_not_make_long_documents_alike():
    """A log-density below -1000 in every class once stood for nothing known."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(300)])
    y = np.arange(60) % 2
    shares = rng.dirichlet(np.full(300, 5.0), 2)
    X = {"note": [" ".join(rng.choice(words, 400, p=shares[k])) for k in y]}
    assert sc.NaiveBayes(kinds={"note": "text"}, weights="columns").fit(X, y).score(X, y) == 1.0


def test_spam_is_told_better_than_with_one_weight_for_the_text(data: Callable[[str], Path]):
    lines = (data("sms_spam") / "SMSSpamCollection").read_text("utf-8").splitlines()
    label, text = (np.array(side, dtype=object) for side in zip(*(x.split("\t", 1) for x in lines), strict=True))
    test = np.arange(len(text)) % 5 == 0

    def loss(model: sc.NaiveBayes) -> float:
        model.fit(list(text[~test]), list(label[~test]))
        return float(log_loss(label[test], model.predict_proba(list(text[test])), labels=model.classes_))

    own, weighed, plain = map(
        loss, (sc.Classifier("text"), sc.NaiveBayes("text", weights="columns"), sc.NaiveBayes("text"))
    )
    assert own < 0.7 * weighed < weighed < plain
