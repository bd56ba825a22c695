"""scikit-learn's three naive Bayes classifiers of text on real messages: the same probabilities, as good a filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import softcount as sc
from softcount.families import Text

PEERS: dict[str, Callable[..., Any]] = {
    "multinomial": MultinomialNB,
    "bernoulli": BernoulliNB,
    "complement": ComplementNB,
}
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
every_model = pytest.mark.parametrize("model", PEERS)


@pytest.fixture(scope="module")
def messages(data: Callable[[str], Path]) -> tuple[list[str], np.ndarray]:
    """The SMS Spam Collection: messages and whether they are spam."""
    lines = data("sms_spam/SMSSpamCollection").read_text("utf-8").splitlines()
    pairs = [line.split("\t", 1) for line in lines]
    return [text for _, text in pairs], np.array([name for name, _ in pairs])


def ours(model: str, prior: float = 1.0, **settings: Any) -> Any:
    return sc.NaiveBayes(kinds={"text": Text(model)}, prior=prior, **settings)  # type: ignore[arg-type]


def table(texts: Any) -> dict[str, list[str]]:
    return {"text": list(texts)}


@every_model
@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_messages_have_the_probabilities_that_scikit_learn_gives(model: str, alpha: float, messages: Any) -> None:
    texts, names = messages
    head, tail = slice(0, 4000), slice(4000, None)
    mine = ours(model, alpha).fit(table(texts[head]), names[head])
    peer = make_pipeline(CountVectorizer(), PEERS[model](alpha=alpha)).fit(texts[head], names[head])
    assert list(mine.levels_["text"]) == list(peer[0].get_feature_names_out())
    unseen = table(texts[tail])
    np.testing.assert_allclose(mine.predict_log_proba(unseen), peer.predict_log_proba(texts[tail]), **CLOSE)
    assert np.array_equal(mine.predict(unseen), peer.predict(texts[tail]))
    logs = peer[1].feature_log_prob_
    share = mine.params_["text"]["others" if model == "complement" else "probability"]
    np.testing.assert_allclose(np.log(share), -logs if model == "complement" else logs, **CLOSE)


@every_model
def test_weighted_messages_have_the_same_probabilities_too(model: str, messages: Any) -> None:
    texts, names = messages[0][:1500], messages[1][:1500]
    weights = np.random.default_rng(0).exponential(size=1500)
    mine = ours(model).fit(table(texts), names, sample_weight=weights)
    counter = CountVectorizer()
    peer = PEERS[model]().fit(counter.fit_transform(texts), names, sample_weight=weights)
    right = peer.predict_log_proba(counter.transform(messages[0][1500:]))
    np.testing.assert_allclose(mine.predict_log_proba(table(messages[0][1500:])), right, **CLOSE)


def test_five_folds_of_messages_are_told_as_well_as_by_the_best_of_three(messages: Any) -> None:
    texts, names = np.array(messages[0], dtype=object), messages[1]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(texts, names))

    def balanced(make: Callable[[], Any], wrap: Callable[[Any], Any]) -> float:
        scores = []
        for train, test in folds:
            found = make().fit(wrap(texts[train]), names[train]).predict(wrap(texts[test]))
            scores.append(balanced_accuracy_score(names[test], found))
        return float(np.mean(scores))

    mine = {model: balanced(lambda m=model: ours(m), table) for model in PEERS}
    best = max(balanced(lambda p=peer: make_pipeline(CountVectorizer(), p()), list) for peer in PEERS.values())
    assert max(mine.values()) >= best
    assert mine["complement"] > 0.96 and mine["multinomial"] > 0.95 and mine["bernoulli"] > 0.9


def test_a_linear_form_of_text_is_the_model(messages: Any) -> None:
    texts, names = messages[0][:1000], messages[1][:1000]
    for model in PEERS:
        mine = ours(model).fit(table(texts), names)
        coef, intercept = mine.to_linear()
        counts = CountVectorizer(vocabulary=list(mine.levels_["text"]), binary=model == "bernoulli").transform(texts)
        scores = counts @ coef.T + intercept
        log_proba = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        np.testing.assert_allclose(mine.predict_log_proba(table(texts)), log_proba, **CLOSE)
