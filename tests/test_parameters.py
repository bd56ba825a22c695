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
