"""Mixtures that are told the classes of some rows answer in those classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import DataError

TRUTH = np.repeat([3, 7, 9], 40)
X = pd.DataFrame({"x": np.random.default_rng(0).normal(np.repeat([0.0, 8.0, 16.0], 40), 1.0)})
GAPS = np.arange(120) % 2 == 0


def labels(form: str) -> object:
    if form == "Int64":
        return pd.Series(TRUTH, dtype="Int64").mask(GAPS)
    if form == "scikit-learn's sign":
        return np.where(GAPS, -1, TRUTH)
    return np.where(GAPS, np.nan, TRUTH.astype(float))


@pytest.mark.parametrize("model", [sc.Mixture, sc.GaussianMixture])
@pytest.mark.parametrize("form", ["Int64", "scikit-learn's sign", "NaN"])
def test_predictions_are_in_the_labels_that_were_given(form: str, model: type) -> None:
    mixture = model(3, random_state=0).fit(X, labels(form))
    assert mixture.classes_.tolist() == [3, 7, 9]
    assert np.array_equal(mixture.predict(X), TRUTH)
    assert np.array_equal(mixture.labels_, TRUTH)
    if form != "NaN":
        assert mixture.classes_.dtype.kind == mixture.predict(X).dtype.kind == "i"


def test_components_that_nobody_named_have_numbers() -> None:
    y = np.where(GAPS | (TRUTH == 9), None, np.array(["low", "mid", "high"])[TRUTH // 4])
    mixture = sc.Mixture(3, random_state=0).fit(X, y)
    assert mixture.predict(X.iloc[[0, 50, 110]]).tolist() == ["low", "mid", 2]


def test_minus_one_beside_one_other_number_is_a_class() -> None:
    mixture = sc.Mixture(3, random_state=0).fit(X, np.where(TRUTH > 5, 1, -1))
    assert any("names the class of every row" in note for note in mixture.notes_)
    assert (mixture.labels_ == mixture.predict(X)).all()


def test_the_entropy_of_icl_is_of_all_memberships_or_of_the_likeliest() -> None:
    mixture = sc.GaussianMixture(2, random_state=0).fit(X)
    members = mixture.predict_proba(X)
    soft = -(members * np.log(np.maximum(members, 1e-300))).sum()
    assert mixture.icl(X) == pytest.approx(mixture.bic(X) + 2 * soft)
    assert mixture.icl(X, assign="hard") == pytest.approx(mixture.bic(X) - 2 * np.log(members.max(axis=1)).sum())
    with pytest.raises(DataError, match="soft"):
        mixture.icl(X, assign="drawn")
