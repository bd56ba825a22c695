"""Gaussian mixtures of published tables, as mclust 6.0-6.1 finds them or better, and single steps as scikit-learn's.

Where mclust stops short of the optimum, or a better one exists, the optimum stands beside its figure.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Theirs

import softcount as sc

TYPES = ["full", "tied", "diag", "spherical", "tied_diag", "tied_spherical"]
PUBLISHED = {
    ("faithful", "full", 1): ("-1289.796745", -1289.796745),
    ("faithful", "full", 2): ("-1130.264068", -1130.263960),
    ("faithful", "tied", 2): ("-1140.186760", -1140.186759),
    ("faithful", "tied", 3): ("-1126.326236", -1126.315928),
    ("faithful", "diag", 2): ("-1147.806353", -1147.806353),
    ("faithful", "tied_spherical", 2): ("-1709.681820", -1709.681373),
    ("waiting", "tied", 2): ("-1034.002", -1034.001761),
    ("iris", "full", 2): ("-214.354704", -214.354704),
    ("iris", "full", 3): ("-180.1854771313", -180.185477),
    ("iris", "diag", 3): ("-307.1775715984", -306.860461),
    ("iris", "tied", 3): ("-256.3540431257", -256.354043),
    ("iris", "spherical", 3): ("-384.3140950612", -384.314095),
    ("diabetes", "full", 3): ("-2295.118", -2295.093455),
    ("galaxies", "full", 3): ("-203.1792", -203.179228),
    ("galaxies", "diag", 3): ("-203.1792", -203.179228),
}
"""Table, covariance and components: mclust's log-likelihood as printed, and the best genuine optimum known."""


@pytest.fixture(scope="module")
def table(data):
    """A published table by name, numbers only."""

    def read(name: str) -> pd.DataFrame:
        files = {"diabetes": "r_mclust/diabetes.csv", "iris": "r_datasets/iris_fisher.csv"}
        files |= {"waiting": "r_datasets/faithful.csv"}
        frame = pd.read_csv(data(files.get(name, f"r_datasets/{name}.csv"))).select_dtypes("number").astype(float)
        if name == "diabetes":
            # mclust corrects glucose[104] to 455; in this file the column that holds 45 there is called insulin.
            assert frame.loc[103, "insulin"] == 45
            frame.loc[103, "insulin"] = 455.0
        if name == "galaxies":
            frame /= 1000
        return frame[["waiting"]] if name == "waiting" else frame

    return read


@pytest.fixture(scope="module")
def fitted(table):
    """Each mixture with default settings, fitted once."""
    kept: dict[tuple[str, str, int], sc.GaussianMixture] = {}

    def fit(name: str, kind: str, components: int) -> sc.GaussianMixture:
        if (name, kind, components) not in kept:
            mixture = sc.GaussianMixture(components, kind, random_state=0)
            kept[name, kind, components] = mixture.fit(table(name))
        return kept[name, kind, components]

    return fit


def half_a_digit(printed: str) -> float:
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


@pytest.mark.parametrize(("name", "kind", "components"), PUBLISHED)
def test_default_settings_reach_the_published_likelihood_or_a_better_optimum(fitted, name, kind, components):
    printed, optimum = PUBLISHED[name, kind, components]
    mixture = fitted(name, kind, components)
    promised = mixture.tol * abs(optimum)
    assert mixture.converged_
    assert mixture.log_likelihood_ >= float(printed) - half_a_digit(printed) - promised
    assert mixture.log_likelihood_ == pytest.approx(optimum, rel=0, abs=promised + 1e-6)


@pytest.mark.parametrize(("name", "kind", "components"), PUBLISHED)
def test_the_last_digits_come_with_a_smaller_tolerance(table, fitted, name, kind, components):
    printed, _ = PUBLISHED[name, kind, components]
    sharp = sc.GaussianMixture(components, kind, init=fitted(name, kind, components), tol=1e-14, max_iter=20_000)
    sharp.fit(table(name))
    assert sharp.log_likelihood_ >= float(printed) - half_a_digit(printed)


@pytest.mark.parametrize(("name", "kind", "components"), PUBLISHED)
def test_no_component_is_a_spike(table, fitted, name, kind, components):
    mixture = fitted(name, kind, components)
    assert not any("floor" in note for note in mixture.notes_)
    spread = table(name).var(ddof=0).to_numpy()
    for covariance in as_full(mixture, len(spread)):
        narrowest = np.linalg.eigvalsh(covariance / np.sqrt(np.outer(spread, spread)))[0]
        assert narrowest > 1e-4
    assert (mixture.weights_ * len(table(name)) > len(spread)).all()


def as_full(mixture: sc.GaussianMixture, columns: int) -> np.ndarray:
    """(components x columns x columns) covariances of any type."""
    found, kind, k = np.asarray(mixture.covariances_), mixture.covariance_type_, mixture.n_components_
    if kind in ("full", "tied"):
        return np.broadcast_to(found, (k, columns, columns))
    by_component = found[:, None] if kind == "spherical" else found
    return np.broadcast_to(by_component, (k, columns))[:, :, None] * np.eye(columns)


def test_weights_and_means_of_old_faithful(fitted):
    mixture = fitted("faithful", "full", 2)
    np.testing.assert_allclose(mixture.weights_, [0.64407, 0.35593], atol=2e-4)  # mclust is 1e-4 nats short
    np.testing.assert_allclose(mixture.means_, [[4.289781, 79.969549], [2.036523, 54.479886]], rtol=2e-4)


def test_waiting_times_with_one_deviation(fitted):
    mixture = fitted("waiting", "tied", 2)
    np.testing.assert_allclose(np.sort(mixture.means_.ravel()), [54.61364, 80.09031], rtol=2e-5)
    assert np.sqrt(mixture.covariances_[0, 0]) == pytest.approx(5.869089, rel=2e-5)


def test_shares_of_the_diabetes_classes(fitted, table):
    mixture = fitted("diabetes", "full", 3)
    # mclust stops 0.025 nats short of the optimum, where its shares are still .5554 .2479 .1967
    np.testing.assert_allclose(mixture.weights_, [0.560255, 0.242768, 0.196977], atol=1e-4)
    np.testing.assert_allclose(mixture.weights_, [0.5553630, 0.2479432, 0.1966939], atol=6e-3)


# One step


def blobs(seed: int = 0, rows: int = 300, columns: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(columns, columns)) / 2 + np.eye(columns)
    return rng.normal(size=(rows, columns)) @ mixing + rng.choice([-2.0, 0.0, 2.5], rows)[:, None]


def start_of(kind: str, components: int, columns: int) -> dict[str, np.ndarray]:
    """Weights, means and precisions to start from, in the shapes of the type."""
    rng = np.random.default_rng(5)
    means = np.linspace(-2, 2, components)[:, None] + 0.3 * rng.normal(size=(components, columns))
    factors = rng.normal(size=(components, columns, columns)) / 3 + np.eye(columns)
    full = factors @ factors.transpose(0, 2, 1)
    diagonal = np.diagonal(full, axis1=1, axis2=2)
    precisions = {"full": full, "tied": full[0], "diag": diagonal, "spherical": diagonal[:, 0]}
    precisions |= {"tied_diag": diagonal[0], "tied_spherical": diagonal[0, 0]}
    weights = np.arange(1.0, components + 1)
    return {"weights_init": weights / weights.sum(), "means_init": means, "precisions_init": np.array(precisions[kind])}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_step_is_the_step_of_scikit_learn(kind):
    X, start = blobs(), start_of(kind, 3, 3)
    theirs = Theirs(3, covariance_type=kind, reg_covar=0.0, max_iter=1, tol=0.0, **start).fit(X)
    ours = sc.GaussianMixture(3, kind, max_iter=1, tol=0.0, **start).fit(X)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-10)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.precisions_, theirs.precisions_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.precisions_cholesky_, theirs.precisions_cholesky_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
    assert ours.trace_[0] / len(X) == pytest.approx(theirs.lower_bound_, rel=1e-12)
    assert ours.n_parameters_ == theirs._n_parameters()
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)


@pytest.mark.parametrize("kind", ["tied_diag", "tied_spherical"])
def test_a_step_with_shared_variances_is_the_pooled_one(kind):
    X, start = blobs(), start_of(kind, 3, 3)
    before = sc.GaussianMixture(3, kind, max_iter=0, **start).fit(X)
    after = sc.GaussianMixture(3, kind, max_iter=1, tol=0.0, **start).fit(X)
    members = before.predict_proba(X)
    means = (members.T @ X) / members.sum(axis=0)[:, None]
    squares = np.einsum("nk,nkj->j", members, (X[:, None] - means) ** 2) / len(X)
    np.testing.assert_allclose(after.means_, means, rtol=1e-10)
    np.testing.assert_allclose(after.covariances_, squares if kind == "tied_diag" else squares.mean(), rtol=1e-10)


# Weights and holes


@pytest.mark.parametrize("kind", TYPES)
def test_a_weight_is_a_repetition(kind):
    X = blobs(1, rows=80)
    weights = np.random.default_rng(2).integers(0, 4, len(X))
    how = {"max_iter": 5, "tol": 0.0, **start_of(kind, 2, 3)}
    weighed = sc.GaussianMixture(2, kind, **how).fit(X, sample_weight=weights)
    repeated = sc.GaussianMixture(2, kind, **how).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighed.trace_, repeated.trace_, rtol=1e-12)
    np.testing.assert_allclose(weighed.means_, repeated.means_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(weighed.covariances_, repeated.covariances_, rtol=1e-10, atol=1e-12)
    assert weighed.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-12)


def holed(X: np.ndarray, share: float = 0.25, seed: int = 3) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("kind", TYPES)
def test_rows_with_holes_have_the_density_of_what_is_there(kind):
    X = holed(blobs(4, rows=120))
    mixture = sc.GaussianMixture(2, kind, random_state=0, n_init=2).fit(X)
    covariances = as_full(mixture, 3)
    wanted = []
    for row in X:
        there = ~np.isnan(row)
        parts = np.log(mixture.weights_)
        for g, (mean, covariance) in enumerate(zip(mixture.means_, covariances, strict=True)):
            if there.any():
                parts[g] += multivariate_normal.logpdf(row[there], mean[there], covariance[np.ix_(there, there)])
        wanted.append(logsumexp(parts))
    np.testing.assert_allclose(mixture.score_samples(X), wanted, rtol=1e-9)
    assert mixture.log_likelihood_ == pytest.approx(np.sum(wanted), rel=1e-9)
    assert all(low <= high + 1e-9 for low, high in zip(mixture.trace_, mixture.trace_[1:], strict=False))


def test_holes_are_filled_from_the_other_columns_under_full_covariance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = np.column_stack([x, 2 * x + 0.01 * rng.normal(size=400)])
    X[::4, 1] = np.nan
    mixture = sc.GaussianMixture(1).fit(X)
    mixture.score(X)
    np.testing.assert_allclose(mixture.impute(X)[::4, 1], 2 * X[::4, 0], atol=0.02)


# Units and degenerate tables


def two_clusters(spacing: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    return spacing * (truth[:, None] + 0.05 * rng.normal(size=(120, 2))), truth


def perfect(labels: np.ndarray, truth: np.ndarray) -> bool:
    return len({*zip(labels.tolist(), truth.tolist(), strict=True)}) == len(set(truth.tolist()))


CHANGES = ["as it is", "times 1e-4", "spacing 1e-3", "offset 1e8", "times 1e150", "times 1e-150"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_perfect_clustering_stays_perfect_in_any_units(kind, change):
    X, truth = two_clusters(1e-3 if change == "spacing 1e-3" else 1.0)
    factor = float(change.split()[1]) if change.startswith("times") else 1.0
    moved = X * factor + (1e8 if change == "offset 1e8" else 0.0)
    mixture = sc.GaussianMixture(2, kind, random_state=0, n_init=3).fit(moved)
    assert perfect(mixture.predict(moved), truth)
    # the offset leaves 1e8 +- 1.5e-8, so the rows themselves are not quite those they were
    plain = sc.GaussianMixture(2, kind, random_state=0, n_init=3).fit(moved - 1e8 if change == "offset 1e8" else X)
    log_units = 2 * np.log(factor)
    assert mixture.lower_bound_ + log_units == pytest.approx(plain.lower_bound_, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_fifty_identical_points_have_an_answer(kind):
    X = np.full((50, 2), 3.25)
    mixture = sc.GaussianMixture(2, kind, random_state=0).fit(X)
    np.testing.assert_allclose(mixture.means_, 3.25)
    assert np.isfinite(mixture.predict_proba(X)).all()
    assert np.isfinite(mixture.score(X))
    assert mixture.notes_
