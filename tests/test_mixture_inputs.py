"""Mixtures of tables in every form that one family for all columns is asked of."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import softcount as sc
from softcount.errors import DataError

COLUMNS = {"a": [0, 1, 0, 1, 2, 2] * 5, "b": [5, 6, 5, 6, 7, 7] * 5}
FORMS = {
    "arrow": pa.table,
    "batch": lambda columns: pa.table(columns).to_batches()[0],
    "stream": lambda columns: pa.table(columns).to_reader(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "mapping": dict,
}
TYPES = ["full", "tied", "diag", "spherical", "tied_diag", "tied_spherical"]


@pytest.mark.parametrize("form", FORMS)
def test_one_kind_for_all_columns_reaches_every_form_of_table(form):
    mixture = sc.Mixture(2, kinds="categorical", n_init=1, random_state=0).fit(FORMS[form](COLUMNS))
    assert mixture.levels_ == {"a": [0, 1, 2], "b": [5, 6, 7]}


@pytest.mark.parametrize("form", FORMS)
def test_a_gaussian_mixture_of_any_form_of_table_is_that_of_the_array(form):
    bare = sc.GaussianMixture(2, covariance_type="diag", estimate="mean", n_init=2, random_state=0)
    means = bare.fit(np.column_stack(list(COLUMNS.values())).astype(float)).means_
    again = sc.GaussianMixture(2, covariance_type="diag", estimate="mean", n_init=2, random_state=0)
    np.testing.assert_array_equal(again.fit(FORMS[form](COLUMNS)).means_, means)


@pytest.mark.parametrize("column", [pa.array([1.0, 2.0]), pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])])
def test_one_column_that_is_no_table_is_refused_in_words(column):
    with pytest.raises(DataError, match="Pass a frame"):
        sc.GaussianMixture(1).fit(column)


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_without_values_is_said_to_mean_nothing(kind):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = sc.GaussianMixture(1, covariance_type=kind).fit(rows)
    assert [note for note in mixture.notes_ if note.startswith("column 1 has no values")]
    rows[3, 1] = 0.5
    assert not [note for note in sc.GaussianMixture(1, covariance_type="tied").fit(rows).notes_ if "no values" in note]


def two_heaps():
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(0, 1, (20, 3)), rng.normal(6, 1, (20, 3))])


def test_shares_that_are_no_numbers_are_no_start():
    rows = two_heaps()
    for make in (sc.GaussianMixture, sc.Mixture):
        found = make(2, n_init=1, random_state=0).fit(rows)
        with pytest.raises(DataError, match="'weights' must be 2 shares"):
            make(2, init={"weights": [np.nan, 0.9]} | found.params_).fit(rows)


@pytest.mark.parametrize("weight", [1e300, 1e308])
def test_weights_too_large_to_count_with_are_refused(weight):
    for make in (sc.GaussianMixture, sc.Mixture):
        with pytest.raises(DataError, match="too large to count with"):
            make(2, random_state=0).fit(two_heaps(), sample_weight=np.full(40, weight))


@pytest.mark.parametrize("kind", TYPES)
def test_weights_that_add_up_to_one_make_no_class_a_spike(kind):
    rows, how = two_heaps(), {"covariance_type": kind, "n_init": 2, "random_state": 0}
    whole = sc.GaussianMixture(2, **how).fit(rows)
    light = sc.GaussianMixture(2, **how).fit(rows, sample_weight=np.full(40, 1 / 40))
    assert light.notes_ == whole.notes_ == []
    np.testing.assert_allclose(light.means_, whole.means_, rtol=1e-9)


def test_a_model_of_other_columns_is_no_start():
    rows = two_heaps()
    base = sc.GaussianMixture(2, n_init=1, random_state=0).fit(rows)
    with pytest.raises(DataError, match="no column or block"):
        sc.GaussianMixture(2, init=base).fit(rows[:, :2])
    warm = sc.GaussianMixture(2, warm_start=True, n_init=1, random_state=0).fit(rows)
    with pytest.raises(DataError, match="no column or block"):
        warm.set_params(covariance_type="diag").fit(rows)


def test_text_of_a_polars_frame_can_be_augmented():
    frame = pl.DataFrame({"a": ["x", "y", None] * 6, "b": ["p", "q", "q"] * 6})
    mixture = sc.Mixture(2, n_init=1, random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = mixture.augment(frame)
    assert whole["a"].to_list() == [cell for cell in frame["a"] for _ in range(2)]


@pytest.mark.parametrize(
    "model", [sc.Mixture(2), sc.Mixture(), sc.GaussianMixture(2), sc.GaussianMixture(2, "spherical")]
)
def test_a_column_wider_than_any_number_is_refused_by_name(model):
    """From -1e308 to 1e308 is farther than a double says: the search met no number and had nothing to choose from."""
    X = np.random.default_rng(0).uniform(-1.5, 1.5, size=(60, 2)) * [1.0, 1e308]
    with pytest.raises(sc.DataError, match=r"column 1 goes from -1.*e\+308 to 1.*e\+308.*divide the column"):
        model.fit(X)
    model.fit(X / [1.0, 2.0])
