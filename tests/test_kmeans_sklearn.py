"""k-means works inside scikit-learn's tools and takes the steps of its k-means."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Peer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import softcount as sc

BOTH = [sc.KMeans(), sc.SphericalKMeans()]


def named(estimator):
    return type(estimator).__name__


def rows(count=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 3)) + 4 * rng.integers(0, 2, (count, 1))


def test_from_the_same_start_the_steps_are_scikit_learns():
    X = rows(500)
    for tol in (0.0, 1e-4, 1e-2):
        peer = Peer(5, init=X[:5], n_init=1, tol=tol, algorithm="lloyd").fit(X)
        ours = sc.KMeans(5, init=X[:5], tol=tol).fit(X)
        np.testing.assert_allclose(ours.cluster_centers_, peer.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(ours.labels_, peer.labels_)
        assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-10)
        assert peer.n_iter_ - ours.n_iter_ in (0, 1)  # theirs counts the assignment that changed nothing


@pytest.mark.parametrize("estimator", BOTH, ids=named)
def test_it_clones_pickles_and_names_what_it_gives(estimator):
    frame = pd.DataFrame(rows(), columns=["a", "b", "c"])
    model = clone(estimator).set_params(n_clusters=3, random_state=0).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    assert model.get_feature_names_out().tolist() == [f"{named(model).lower()}{k}" for k in range(3)]
    assert model.set_output(transform="pandas").transform(frame).shape == (200, 3)
    with pytest.raises(NotFittedError):
        clone(model).predict(frame)


def test_it_ends_and_begins_a_pipeline():
    X = rows()
    labels = make_pipeline(StandardScaler(), sc.KMeans(2, random_state=0)).fit_predict(X)
    assert set(labels) == {0, 1}
    far = make_pipeline(sc.KMeans(4, random_state=0), StandardScaler()).fit_transform(X)
    assert far.shape == (200, 4)


def test_fitting_changes_neither_rows_nor_weights_nor_centres():
    X, weights = rows(), np.ones(200)
    start = X[:3].copy()
    kept = X.copy(), weights.copy(), start.copy()
    sc.KMeans(3, init=start).fit(X + 0.0, sample_weight=weights).transform(X)
    sc.SphericalKMeans(3, init=start).fit(X, sample_weight=weights)
    for now, before in zip((X, weights, start), kept, strict=True):
        np.testing.assert_array_equal(now, before)
