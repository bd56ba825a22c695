"""Every parameter of an estimator is declared once, and its declaration gives the check and the documentation."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.errors import DataError
from softcount.estimators.base import Estimator
from softcount.estimators.parameters import PARAMETERS, PATH, Parameter

ESTIMATORS = [
    own
    for own in (getattr(sc, name) for name in sc.__all__)
    if inspect.isclass(own) and issubclass(own, Estimator) and own is not Estimator
]
CHECKED = [
    (own, name)
    for own in ESTIMATORS
    for name, declared in own._declared.items()
    if declared.type in (None, int, float, bool, PATH)
]


def test_every_estimator_is_looked_at() -> None:
    assert len(ESTIMATORS) >= 13


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_documentation_lists_every_parameter_with_type_and_default(estimator: Any) -> None:
    section = inspect.getdoc(estimator).split("Parameters\n----------\n")[1].split("\n\n")[0]
    listed = dict(re.findall(r"^(\w+) : (.+)$", section, re.M))
    given = inspect.signature(estimator).parameters
    assert [*listed] == [*given] == [*estimator._declared]
    for name, text in listed.items():
        assert text == f"{estimator._declared[name].documented_type}, default={given[name].default!r}"


@pytest.mark.parametrize(("estimator", "name"), CHECKED, ids=lambda own: getattr(own, "__name__", own))
def test_a_value_of_another_type_is_refused_by_name(estimator: Any, name: str) -> None:
    model = clone(estimator()).set_params(**{name: object()})
    with pytest.raises(DataError, match=f"^{name}"):
        model._check_settings()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_takes_a_seed_and_shows_progress(estimator: Any) -> None:
    given = inspect.signature(estimator).parameters
    assert given["random_state"].default is None and given["verbose"].default is False
    assert estimator(random_state=3, verbose=True).get_params()["random_state"] == 3


@pytest.mark.parametrize(
    ("estimator", "name", "right"),
    [
        (sc.GaussianMixture, "init_params", "Use init:"),
        (sc.GaussianMixture, "reg_covar", "Use prior:"),
        (sc.NaiveBayes, "alpha", "Use prior:"),
        (sc.NaiveBayes, "prio", "Did you mean 'prior'?"),
        (sc.NaiveBayes, "dependence", r"Use BayesNet\.tan\(X, y\)"),
        (sc.Mixture, "n_clusters", "Use n_components:"),
        (sc.KMeans, "n_components", "Use n_clusters:"),
        (sc.HiddenMarkov, "n_components", "Use n_states:"),
        (sc.BagOfWords, "ngram_range", "Use ngrams:"),
        (sc.BagOfWords, "max_features", "Use max_words:"),
        (sc.BagOfWords, "token_pattern", "Use pattern:"),
        (sc.BagOfWords, "norm", "Use normalize:"),
        (sc.Classifier, "class_prior", "Use class_prior of predict and predict_proba"),
        (sc.HiddenMarkov, "covariance_type", "Use kinds:"),
        (sc.Histogram, "xyz", "It has bins, random_state, verbose"),
    ],
)
def test_a_name_of_another_library_names_ours(estimator: Any, name: str, right: str) -> None:
    with pytest.raises(DataError, match=f"{estimator.__name__} has no parameter '{name}'. {right}"):
        estimator(**{name: 1})
    with pytest.raises(TypeError, match=f"'{name}'"):
        estimator(**{name: 1})
    with pytest.raises(DataError, match=f"{estimator.__name__} has no parameter '{name}'. {right}"):
        estimator().set_params(**{name: 1})


def test_the_seed_of_a_classifier_changes_its_evaluation_alone() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, size=60)
    one, same, other = (sc.NaiveBayes(random_state=seed).fit(X, y) for seed in (None, 0, 5))
    assert (one.predict_proba(X) == other.predict_proba(X)).all()
    losses = [model._complete_record().record.evaluation.log_loss for model in (one, same, other)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_defaults_are_in_range(estimator: Any) -> None:
    estimator()._check_settings()


def test_every_declaration_is_used() -> None:
    used = {name for own in ESTIMATORS for name in own._declared}
    assert used == set(PARAMETERS)


@pytest.mark.parametrize(
    ("parameter", "right", "wrong"),
    [
        (Parameter(int, "", ("auto",), 1), [1, np.int64(3), "auto"], [0, 1.5, True, "few", None]),
        (Parameter(float, "", (None,)), [0, 2.5, np.float32(1), None], [-1, "1", float("nan"), True]),
        (Parameter(float, "", above=True, most=9.0), [0.1, 9], [0, 9.1, float("inf")]),
        (Parameter(bool, ""), [True, np.bool_(False)], [1, None, "yes"]),
        (Parameter(None, "", ("soft", None)), ["soft", None], ["hard", 0, np.ones(2)]),
    ],
)
def test_values_are_checked_by_type_range_and_words(parameter: Parameter, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        parameter.check("p", value)
    for value in wrong:
        with pytest.raises(DataError, match=r"^p[ =]"):
            parameter.check("p", value)


def test_a_method_names_its_parameters_if_it_is_called_with_others() -> None:
    model = sc.NaiveBayes().fit([["a"], ["b"]], ["x", "y"])
    with pytest.raises(TypeError, match=r"^NaiveBayes\.sample has no parameter 'n'\. Use n_samples\.$"):
        model.sample(n=2)
    with pytest.raises(TypeError, match=r"^NaiveBayes\.explore got too many arguments\. It has X\.$"):
        model.explore([["a"]], ["x"])
