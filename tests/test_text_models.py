"""Columns of text in models: beside numbers and levels, with holes, half labelled, and clustered."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

import softcount as sc
from explained import contributions
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.families import Text
from softcount.families.base import IMPOSSIBLE
from softcount.models.stacks import Kernels
from softcount.text import vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

TOPICS = (
    ("goal", "team", "match", "score", "ball"),
    ("bread", "oven", "flour", "butter", "salt"),
    ("star", "planet", "orbit", "moon", "comet"),
)
COMMON = ("the", "and", "with", "very", "then")
every_text = pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text("complement")], ids=lambda f: f.model)


def document(rng: np.random.Generator, topic: int, share: float, length: int = 10) -> str:
    """Words of a topic, a share of them, among common ones."""
    own = rng.random(length) < share
    return " ".join(str(rng.choice(TOPICS[topic] if mine else COMMON)) for mine in own)


def holed(rng: np.random.Generator, values: list[Any], share: float = 0.15) -> list[Any]:
    return [None if rng.random() < share else value for value in values]


def made_up(rows: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """One text, two levels, two numbers, holes in all of them; each says a part of the class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    noisy = [[str(k if rng.random() < 0.5 else rng.integers(0, 3)) for k in truth] for _ in range(2)]
    columns = {
        "note": holed(rng, [document(rng, k, 0.12) for k in truth]),
        "colour": holed(rng, ["rgb"[int(k)] for k in noisy[0]]),
        "size": holed(rng, ["sml"[int(k)] for k in noisy[1]]),
        "height": holed(rng, [float(0.7 * k + rng.normal()) for k in truth]),
        "weight": holed(rng, [float(0.7 * (k == 1) - 0.7 * (k == 2) + rng.normal()) for k in truth]),
    }
    return pa.table(columns), np.array(["ball", "food", "sky"])[truth]


# -- beside other columns


@every_text
def test_text_beside_levels_and_numbers_beats_each_part_alone(family: Text) -> None:
    table, names = made_up(900, 0)
    unseen, truth = made_up(900, 1)
    parts = {"text": ["note"], "levels": ["colour", "size"], "numbers": ["height", "weight"]}

    def score(columns: list[str]) -> float:
        kinds = {"note": family} if "note" in columns else None
        model = sc.NaiveBayes(kinds=kinds).fit(table.select(columns), names)
        return model.score(unseen.select(columns), truth)

    alone = {name: score(columns) for name, columns in parts.items()}
    assert score(table.column_names) > max(alone.values()) + 0.05
    assert min(alone.values()) > 0.45


@every_text
def test_an_explanation_adds_up_and_has_one_column_for_the_text(family: Text) -> None:
    table, names = made_up(300, 2)
    model = sc.NaiveBayes(kinds={"note": family}).fit(table, names)
    parts = contributions(model.explain(table))
    assert parts.column_names == ["(prior)", *table.column_names]
    total = sum(parts[name].to_numpy() for name in parts.column_names)
    logs = np.sort(model.predict_log_proba(table), axis=1)
    np.testing.assert_allclose(total, logs[:, -1] - logs[:, -2], rtol=1e-9, atol=1e-9)
    missing = [note is None for note in table["note"].to_pylist()]
    assert not parts["note"].to_numpy()[missing].any()


def test_a_missing_text_is_no_evidence_and_an_empty_one_is_some() -> None:
    table, names = made_up(300, 3)
    notes = table.select(["note"])
    for family in (Text(), Text("bernoulli")):
        model = sc.NaiveBayes(kinds={"note": family}).fit(notes, names)
        nothing = model.predict_proba({"note": [None]})[0]
        np.testing.assert_allclose(nothing, model.class_prior_, rtol=1e-12)
        empty = model.predict_proba({"note": [""]})[0]
        assert np.allclose(empty, nothing) == (family.model == "multinomial")


def test_two_columns_of_text_have_words_of_their_own() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 200)
    subject = [document(rng, k, 0.3) for k in truth]
    body = holed(rng, [document(rng, 2 * k, 0.3) for k in truth])
    model = sc.NaiveBayes(kinds={"subject": "text", "body": Text("bernoulli")})
    model.fit({"subject": subject, "body": body}, truth)
    assert "bread" in model.levels_["subject"] and "bread" not in model.levels_["body"]
    alone = [
        sc.NaiveBayes(kinds={name: family}, class_prior="uniform").fit({name: column}, truth)
        for name, family, column in (("subject", "text", subject), ("body", Text("bernoulli"), body))
    ]
    sums = np.log(model.class_prior_) + sum(
        part.predict_log_proba({name: column})
        for part, name, column in zip(alone, ("subject", "body"), (subject, body), strict=True)
    )
    right = sums - np.logaddexp.reduce(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba({"subject": subject, "body": body}), right, rtol=1e-9, atol=1e-9)


@every_text
def test_compiled_and_plain_kernels_agree_on_text(family: Text) -> None:
    table, names = made_up(200, 5)
    fitted = sc.NaiveBayes(kinds={"note": family}).fit(table, names).fitted_
    chunk = next(fitted.chunks(fitted.table(table)))
    joints, counts = [], []
    for cells in (1, 1 << 40):
        star = replace(fitted.model, kernels=Kernels(cells))
        ready = star.prepare(chunk)
        joints.append(star.score(ready, star.compile(fitted.estimates), slice(0, ready.n_rows)))
        counts.append(star.named(star.tally_members(ready, np.full((ready.n_rows, 3), 1 / 3))))
    np.testing.assert_allclose(*joints, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(counts[0]["note"], counts[1]["note"], rtol=1e-12)


@every_text
@pytest.mark.parametrize("note", [None, ""])
def test_a_text_without_a_word_leaves_the_other_columns_as_they_are(family: Text, note: str | None) -> None:
    rng = np.random.default_rng(18)
    names = ["uv"[k] for k in rng.integers(0, 2, 40)]
    plain = pa.table({"x": rng.normal(size=40), "c": ["rg"[k] for k in rng.integers(0, 2, 40)]})
    table = plain.append_column("note", pa.array([note] * 40, pa.string()))
    for how in ("mean", "ml", "map", *(("predictive",) if family.model != "complement" else ())):
        model = sc.NaiveBayes(kinds={"note": family}, estimate=how).fit(table, names)
        right = sc.NaiveBayes(estimate=how).fit(plain, names).predict_proba(plain)
        np.testing.assert_allclose(model.predict_proba(table), right, rtol=1e-12)
        assert len(model.levels_["note"]) == 0 and model.sample(2, random_state=0)["note"].to_pylist() == ["", ""]
        assert len(model.fitted_.cards()) == 2
    if family.model != "complement":
        mixture = sc.Mixture(2, kinds={"note": family}, n_init=2, random_state=0).fit(table)
        assert np.isfinite(mixture.predict_proba(table)).all()


# -- labels with gaps


def semi_supervised(seed: int, known: int = 9, rows: int = 400) -> tuple[dict[str, list[str]], list[Any], list[str]]:
    rng = np.random.default_rng(seed)
    truth = [int(k) for k in np.arange(rows) % 3]
    names = ["abc"[k] for k in truth]
    texts = [document(rng, k, 0.25, 12) for k in truth]
    return {"text": texts}, [*names[:known], *[None] * (rows - known)], names


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_documents_without_a_label_teach_what_a_few_with_one_cannot(model: str) -> None:
    kinds = {"text": Text(model)}  # type: ignore[arg-type]
    gains = []
    for seed in range(5):
        table, some, names = semi_supervised(seed)
        few = sc.NaiveBayes(kinds=kinds, unlabelled_weight=0.0).fit(table, some).score(table, names)
        many = sc.NaiveBayes(kinds=kinds).fit(table, some)
        assert many.fitted_.converged and np.all(np.diff(many.fitted_.trace) > -1e-7)
        gains.append(many.score(table, names) - few)
    assert np.mean(gains) > 0.04 and min(gains) > 0


def test_a_weight_on_unlabelled_documents_is_so_many_documents() -> None:
    table, some, _ = semi_supervised(7, rows=120)
    half = sc.NaiveBayes(kinds={"text": "text"}, unlabelled_weight=0.5, tol=0.0, max_iter=5).fit(table, some)
    weights = [1.0 if name else 0.5 for name in some]
    same = sc.NaiveBayes(kinds={"text": "text"}, tol=0.0, max_iter=5).fit(table, some, sample_weight=weights)
    np.testing.assert_allclose(half.counts_["text"], same.counts_["text"], rtol=1e-11)


def test_a_prior_that_drowns_the_labelled_documents_is_said() -> None:
    rng = np.random.default_rng(19)
    texts = [" ".join(f"word{k}" for k in rng.integers(0, 2000, 40)) for _ in range(200)]
    names = [*"uv" * 20, *[None] * 160]
    loud = sc.NaiveBayes(kinds={"text": "text"}, max_iter=2).fit({"text": texts}, names)
    quiet = sc.NaiveBayes(kinds={"text": "text"}, max_iter=2, prior=0.01).fit({"text": texts}, names)
    said = r"the prior adds .* words to every class, and the labelled documents have about 800"
    assert any(re.search(said, note) for note in loud.notes_)
    assert not any("the prior adds" in note for note in quiet.notes_)


def test_words_are_chosen_among_the_labelled_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["red red wine", "white wine", "white white hops", "red barley", "barley hops hops", None]
    names = ["a", "b", None, None, None, None]
    kinds = {"text": sc.families.Text(min_count=2)}
    model = sc.NaiveBayes(kinds=kinds).fit({"text": texts}, names)
    assert list(model.levels_["text"]) == ["red", "white", "wine"]  # white is met twice in all
    assert any("words are those that the 2 labelled rows hold" in note for note in model.notes_)
    monkeypatch.setattr(vocabulary, "FEW", 1)
    model = sc.NaiveBayes(kinds=kinds).fit({"text": texts}, names)
    alone = sc.NaiveBayes(kinds=kinds).fit({"text": texts[:2]}, names[:2])
    assert list(model.levels_["text"]) == list(alone.levels_["text"]) == ["red", "wine"]
    of_all = sc.Mixture(2, kinds=kinds, random_state=0).fit({"text": texts}, names)
    assert list(of_all.levels_["text"]) == ["barley", "hops", "red", "white", "wine"]
    frame = {"text": texts, "kind": names}
    assert list(sc.NaiveBayes(kinds=kinds).fit(frame, "kind").levels_["text"]) == ["red", "wine"]


def test_a_prior_by_evidence_is_chosen_by_the_labelled_documents() -> None:
    table, some, _ = semi_supervised(8, known=60, rows=200)
    model = sc.NaiveBayes(kinds={"text": "text"}, prior="auto").fit(table, some)
    alone = sc.NaiveBayes(kinds={"text": "text"}, prior="auto").fit({"text": table["text"][:60]}, some[:60])
    chosen = float(model.fitted_.imagined.hypers["text"]["alpha"][0])
    assert chosen == pytest.approx(float(alone.fitted_.imagined.hypers["text"]["alpha"][0]), rel=1e-3)
    assert f"a prior of {chosen:.4g} has the highest marginal likelihood" in " ".join(model.notes_)


# -- clusters


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
@pytest.mark.parametrize("beside", [False, True])
def test_three_topics_are_found_with_holes(model: str, beside: bool) -> None:
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(8)
    truth = np.arange(240) % 3
    columns: dict[str, Any] = {"note": holed(rng, [document(rng, k, 0.5) for k in truth], 0.1)}
    if beside:
        columns["height"] = holed(rng, [float(k + rng.normal()) for k in truth])
        columns["colour"] = holed(rng, ["rgb"[k] if rng.random() < 0.6 else "x" for k in truth])
    mixture = sc.Mixture(3, kinds={"note": Text(model)}, n_init=3, random_state=0).fit(pa.table(columns))  # type: ignore[arg-type]
    there = np.array([note is not None for note in columns["note"]])
    assert adjusted_rand_score(truth[there], mixture.predict(pa.table(columns))[there]) > 0.97
    marks = [set(line.split(", ")) for line in mixture.fitted_.describe("note")]
    assert sorted(map(sorted, marks)) == sorted(map(sorted, TOPICS))


def test_the_number_of_topics_is_found() -> None:
    rng = np.random.default_rng(9)
    texts = [document(rng, k % 3, 0.6, 14) for k in range(150)]
    mixture = sc.Mixture("auto", kinds={"note": "text"}, n_init=3, random_state=0).fit({"note": texts})
    assert len(mixture.weights_) == 3


def test_rows_in_another_order_make_the_same_clusters() -> None:
    rng = np.random.default_rng(10)
    texts = holed(rng, [document(rng, k % 3, 0.4) for k in range(90)])
    numbers = holed(rng, [float(k % 3 + rng.normal()) for k in range(90)])
    order = rng.permutation(90)
    tables = [
        pa.table({"note": [texts[i] for i in rows], "x": [numbers[i] for i in rows]}) for rows in (range(90), order)
    ]
    kinds = {"note": "text"}
    first, second = (sc.Mixture(3, kinds=kinds, n_init=2, random_state=3).fit(table) for table in tables)
    np.testing.assert_allclose(first.weights_, second.weights_, rtol=1e-9)
    np.testing.assert_allclose(first.params_["note"]["probability"], second.params_["note"]["probability"], rtol=1e-8)


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_every_way_up_leads_to_the_same_top(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaps, L-BFGS, given parameters, and plain maps whose pace a sample of the words tells."""
    rng = np.random.default_rng(17)
    table = {"note": holed(rng, [document(rng, k % 3, 0.4) for k in range(120)])}
    kinds, few = {"note": Text(model)}, {"n_init": 2, "random_state": 0}  # type: ignore[arg-type]
    best = sc.Mixture(3, kinds=kinds, **few).fit(table)
    ways = [sc.Mixture(3, kinds=kinds, finish="lbfgs", **few).fit(table)]
    words = {"probability": best.params_["note"]["probability"]}
    ways.append(sc.Mixture(3, kinds=kinds, init={"weights": best.weights_, "note": words}).fit(table))
    monkeypatch.setattr("softcount.learn.em.MANY", 20)
    monkeypatch.setattr("softcount.learn.em.SAMPLED", 20)
    ways.append(sc.Mixture(3, kinds=kinds, **few).fit(table))
    for other in ways:
        assert other.fitted_.converged
        assert max(other.trace_) == pytest.approx(max(best.trace_), rel=1e-7)
    held = sc.Mixture(3, kinds=kinds, fixed={"note": words}, init={"weights": best.weights_, "note": words}).fit(table)
    np.testing.assert_array_equal(held.params_["note"]["probability"], words["probability"])
    assert held.n_parameters_ == 2 and arrow(held.sample(2)).num_rows == 2
    with pytest.raises(sc.DataError, match="a probability of each of its 20 words"):
        sc.Mixture(3, kinds=kinds, init={"weights": best.weights_, "note": {"probability": np.full((3, 2), 0.5)}}).fit(
            table
        )


def test_empty_and_missing_documents_are_no_seeds() -> None:
    rng = np.random.default_rng(11)
    texts = [document(rng, k % 3, 0.6) for k in range(60)]
    texts += ["", None] * 30
    mixture = sc.Mixture(3, kinds={"note": "text"}, n_init=4, random_state=0).fit({"note": texts})
    marks = [set(line.split(", ")) for line in mixture.fitted_.describe("note")]
    assert sorted(map(sorted, marks)) == sorted(map(sorted, TOPICS))


# -- answers


@pytest.fixture(scope="module")
def mixed() -> sc.NaiveBayes:
    table, names = made_up(400, 12)
    return sc.NaiveBayes(kinds={"note": "text"}).fit(table.append_column("class", pa.array(names)), "class")


def test_text_is_given_but_not_asked_for(mixed: sc.NaiveBayes) -> None:
    told = mixed.query(of="class", given={"note": "goal and match"})
    assert max(told, key=told.get) == "ball"
    colours = mixed.query(of="colour", given={"note": "goal and match"})
    assert max(colours, key=colours.get) == "r"
    with pytest.raises(sc.DataError, match=r"'note' \(text, multinomial\) cannot be queried"):
        mixed.query(of="note")


def test_drawn_documents_are_words_of_their_class(mixed: sc.NaiveBayes) -> None:
    drawn = mixed.sample(300, random_state=0)
    known = set(mixed.levels_["note"])
    lengths = [len(note.split()) for note in drawn["note"].to_pylist()]
    assert all(set(note.split()) <= known for note in drawn["note"].to_pylist())
    assert 9 < np.mean(lengths) < 11
    assert mixed.score(drawn.drop_columns("class"), drawn["class"].to_pylist()) > 0.6
    held = mixed.sample(3, given={"note": "goal"}, random_state=0)
    assert held["note"].to_pylist() == ["goal"] * 3


def test_filling_holes_leaves_a_missing_text_missing(mixed: sc.NaiveBayes) -> None:
    table, _ = made_up(60, 13)
    filled = mixed.impute(table)
    assert filled["note"].to_pylist() == table["note"].to_pylist()
    assert filled["height"].null_count == 0 and filled["colour"].null_count == 0


def test_a_long_document_is_not_odd_and_a_strange_one_is() -> None:
    rng = np.random.default_rng(14)
    texts = [document(rng, k % 2, 0.5, int(rng.integers(5, 60))) for k in range(300)]
    texts += [" ".join(["comet"] * 3 + ["very"] * 5)]
    for family in (Text(), Text("bernoulli")):
        model = sc.Mixture(2, kinds={"note": family}, n_init=2, random_state=0).fit({"note": texts})
        scores = model.anomaly_score({"note": texts})
        assert scores.argmax() == 300
        if family.model == "multinomial":
            lengths = np.array([len(text.split()) for text in texts])
            assert abs(np.corrcoef(lengths[:300], scores[:300])[0, 1]) < 0.3


def test_cards_say_the_words_of_a_class_and_of_the_others(mixed: sc.NaiveBayes) -> None:
    for card in mixed.fitted_.cards():
        words = set(TOPICS[["ball", "food", "sky"].index(card.name)])
        text = next(item for item in card.contrasts if item.key == "note")
        assert set(text.here.split(", ")) == words and not set(text.elsewhere.split(", ")) & words
        assert card.typical["note"] == text.here
    assert mixed.influence_["note"] > 0


def test_predictive_probabilities_are_more_careful_than_plugged_in_ones() -> None:
    table, names = made_up(60, 15)
    notes = table.select(["note"])
    plain = sc.NaiveBayes(kinds={"note": "text"}).fit(notes, names)
    careful = sc.NaiveBayes(kinds={"note": "text"}, estimate="predictive").fit(notes, names)
    repeated = {"note": ["goal goal goal goal goal goal"]}
    assert careful.predict_proba(repeated).max() < plain.predict_proba(repeated).max()


# -- words that are certain, and what is refused


def test_a_word_that_every_document_of_a_class_holds_rules_it_out_where_it_lacks() -> None:
    texts, names = ["ant bee", "ant cat", "dog bee", "dog cat", "bee cat"], ["u", "u", "v", "v", "v"]
    model = sc.NaiveBayes(kinds={"note": Text("bernoulli")}, estimate="ml").fit({"note": texts}, names)
    proba = model.predict_proba({"note": ["ant bee", "dog bee", "bee cat", None]})
    np.testing.assert_allclose(proba, [[1, 0], [0, 1], [0, 1], [0.4, 0.6]], atol=1e-12)
    shares = model.params_["note"]["probability"][1]  # bee, cat, dog in two of three documents each
    right = np.log(0.6) + 3 * np.log(2 / 3) - np.log(2 / 3) + np.log(1 / 3) - 0.0
    assert shares[0] == 0.0
    np.testing.assert_allclose(model.score_samples({"note": ["dog bee"]}), right, rtol=1e-12)
    leaf = model.fitted_.model.leaves[0]
    chunk = model.fitted_.single({"note": "bee"})
    assert leaf.density(model.fitted_.estimates).score(chunk.bags[0])[0, 0] < IMPOSSIBLE


def test_complement_is_for_known_classes_only() -> None:
    family = Text("complement")
    texts = {"note": ["goal team", "bread oven", "goal ball", "flour oven"]}
    model = sc.NaiveBayes(kinds={"note": family}).fit(texts, ["u", "v", "u", "v"])
    for refused, why in (
        (lambda: sc.Mixture(2, kinds={"note": family}).fit(texts), "classes to be found"),
        (lambda: sc.NaiveBayes(kinds={"note": family}).fit(texts, ["u", "v", None, "v"]), "rows without a label"),
        (lambda: model.score_samples(texts), "no density"),
        (lambda: model.anomaly_score(texts), "no density"),
    ):
        with pytest.raises(sc.DataError, match=f"'note' is text by complement.*{why}"):
            refused()
    with pytest.raises(sc.DataError, match="not a density"):
        sc.NaiveBayes(kinds={"note": family}, estimate="predictive").fit(texts, ["u", "v", "u", "v"])
    with pytest.raises(sc.DataError, match="would be infinite"):
        sc.NaiveBayes(kinds={"note": family}, estimate="ml").fit(texts, ["u", "v", "u", "v"])


def test_settings_that_mean_nothing_are_told() -> None:
    with pytest.raises(sc.DataError, match="text model 'poisson' is not known"):
        Text("poisson")  # type: ignore[arg-type]
    with pytest.raises(sc.DataError, match="ngrams"):
        Text(ngrams=(2, 1))
    with pytest.raises(sc.DataError, match="Beta prior, or a number"):
        sc.NaiveBayes(kinds={"note": Text("bernoulli")}, prior={"note": sc.priors.Dirichlet([1.0, 2.0])}).fit(
            {"note": ["goal team", "bread"]}, ["u", "v"]
        )
    table, names = made_up(50, 16)
    with pytest.raises(sc.DataError, match=r"Known: .*text"):
        sc.NaiveBayes(kinds={"note": "txt"}).fit(table, names)


def test_words_that_are_there_or_not_take_a_beta_prior() -> None:
    texts, names = {"note": ["goal", "goal bread", "bread", "oven"]}, ["u", "u", "v", "v"]
    model = sc.NaiveBayes(kinds={"note": Text("bernoulli")}, prior={"note": sc.priors.Beta(1.0, 3.0)}).fit(texts, names)
    assert list(model.levels_["note"]) == ["bread", "goal", "oven"]
    np.testing.assert_allclose(model.params_["note"]["probability"], [[2 / 6, 3 / 6, 1 / 6], [2 / 6, 1 / 6, 2 / 6]])


def test_stop_words_may_be_a_list_and_a_family_is_still_a_key() -> None:
    family = Text(stop_words=["the", "and"], ngrams=[1, 2])  # type: ignore[arg-type]
    assert hash(family) == hash(Text(stop_words=("and", "the"), ngrams=(1, 2)))
    assert family.facts.reads == Text(stop_words=("and", "the"), ngrams=(1, 2)).facts.reads
