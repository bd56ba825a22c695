"""k-means: published optima, the law of its starts, and changes that must not matter."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import kmeans_oracle as oracle
import softcount as sc
from softcount.kernels import bounded, nearest
from softcount.learn import k_means
from softcount.learn.k_means import FewRows, descend_together, draw_different, plus_plus
from softcount.learn.lloyd import Engine, KMeansStop, Points, descend, sort_rows
from softcount.run.local import Threads

OPTIMA = [
    *(
        ("iris_fisher", 4, k, j)
        for k, j in enumerate([152.347952, 78.851441, 57.228473, 46.446182, 39.039987], start=2)
    ),
    *(("faithful", 2, k, j) for k, j in enumerate([8901.768721, 5188.540468, 2941.720903], start=2)),
    ("ruspini", 2, 4, 12881.0512),
    ("xclara", 2, 3, 611605.881),
]
"""R's kmeans, the best of 200 starts."""


def blobs(rows=300, columns=3, clusters=4, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(clusters, columns))[rng.integers(0, clusters, rows)] * 4 + spread * rng.normal(
        size=(rows, columns)
    )


def agree(a, b):
    """Whether two labellings are one partition."""
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("name, columns, clusters, cost", OPTIMA)
def test_default_settings_find_the_published_optimum(data, name, columns, clusters, cost):
    table = pd.read_csv(data(f"r_datasets/{name}.csv")).iloc[:, :columns]
    digits = len(str(cost).split(".")[1])
    model = sc.KMeans(clusters, random_state=3).fit(table)
    assert round(model.inertia_, digits) == cost
    assert model.converged_ and model.trace_[-1] == model.inertia_


def test_the_cost_of_old_faithful_is_the_published_one_after_every_step(data):
    table = pd.read_csv(data("r_datasets/faithful.csv"))
    rows = ((table - table.mean()) / table.std()).to_numpy()
    model = sc.KMeans(2, init=[(-1.75, 1.0), (1.75, -1.0)], tol=0).fit(rows)
    costs = [1201.957842, 252.290779, 119.169959, 80.670249, 79.613137, 79.342883, 79.313142, 79.283401, 79.283401]
    np.testing.assert_allclose(model.trace_, costs, atol=5e-7)
    assert model.n_iter_ == 4 and model.agreed_ == (1, 1)


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_every_step_is_that_of_the_row_by_row_oracle(seed, clusters, weighted):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 2))
    weights = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    start = rows[rng.choice(40, clusters, replace=False)]
    model = sc.KMeans(clusters, init=start, tol=0).fit(rows, sample_weight=weights)
    centres, labels, trace = oracle.lloyd(rows, weights, start)
    assert model.labels_.tolist() == labels
    np.testing.assert_allclose(model.cluster_centers_, centres, atol=1e-12)
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)


KINDS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "far": lambda X: X + 1e8,
    "tiny": lambda X: X * 1e-150,
    "huge": lambda X: X * 1e150,
    "sparse": lambda X: sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0)),
    "whole": lambda X: np.round(X),
    "outlier": lambda X: np.vstack([X, [[1e12] * X.shape[1]]]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [sc.KMeans, sc.SphericalKMeans])
def test_labels_are_what_predict_says_and_the_cost_never_rises(make, kind):
    X = KINDS[kind](blobs())
    model = make(5, random_state=0, n_init=3).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert (np.diff(model.trace_) <= 0).all()
    assert model.trace_[-1] == model.inertia_
    assert model.inertia_ == pytest.approx(-model.score(X), rel=1e-12)
    far = model.transform(X)
    np.testing.assert_array_equal(far.argmin(axis=1), model.labels_)
    dense = X.toarray() if sparse.issparse(X) else X.astype(float)
    if make is sc.SphericalKMeans:
        largest = np.abs(dense).max()
        lengths = largest * np.sqrt(((dense / largest) ** 2).sum(axis=1, keepdims=True))
        dense = dense / np.where(lengths > 0, lengths, 1.0)
    np.testing.assert_allclose(far, np.sqrt(((dense[:, None] - model.cluster_centers_) ** 2).sum(axis=2)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "far", "tiny", "huge"])
def test_units_and_offsets_do_not_change_the_labels(kind):
    X = blobs()
    plain = sc.KMeans(5, random_state=0).fit(X)
    other = sc.KMeans(5, random_state=0).fit(KINDS[kind](X))
    np.testing.assert_array_equal(plain.labels_, other.labels_)
    assert plain.agreed_ == other.agreed_


@pytest.mark.parametrize("make", [sc.KMeans, sc.SphericalKMeans])
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(make):
    X = blobs(120)
    weights = np.random.default_rng(0).integers(0, 4, 120)
    weighted = make(4, random_state=1).fit(X, sample_weight=weights)
    repeated = make(4, random_state=1).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)
    assert len(weighted.labels_) == 120
    np.testing.assert_array_equal(weighted.labels_, weighted.predict(X))


def test_row_order_does_not_change_the_clusters():
    X = blobs(200)
    order = np.random.default_rng(0).permutation(200)
    a, b = sc.KMeans(4, random_state=0).fit(X), sc.KMeans(4, random_state=0).fit(X[order])
    np.testing.assert_array_equal(a.labels_[order], b.labels_)
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, rtol=1e-13)


def test_sparse_rows_give_the_clusters_of_dense_ones():
    X = np.random.default_rng(0).poisson(0.4, (300, 12)).astype(float)
    start = X[:4] + 0.01
    a, b = sc.KMeans(4, init=start).fit(X), sc.KMeans(4, init=start).fit(sparse.csr_matrix(X))
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_allclose(a.trace_, b.trace_, rtol=1e-11)
    np.testing.assert_allclose(a.transform(X), b.transform(sparse.csr_matrix(X)), rtol=1e-12)


@pytest.mark.parametrize("make", [sc.KMeans, sc.SphericalKMeans])
def test_wide_sparse_rows_stay_sparse_and_give_the_clusters_of_dense_ones(make, monkeypatch):
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(400, 0.05), size=3)
    X = sparse.csr_matrix(np.stack([rng.multinomial(60, topics[i % 3]) for i in range(150)]).astype(float))
    dense = make(3, random_state=0).fit(X.toarray())
    monkeypatch.setattr(sparse.csr_matrix, "toarray", no_large_array(sparse.csr_matrix.toarray))
    wide = make(3, random_state=0).fit(X)
    assert agree(wide.labels_, np.arange(150) % 3) and agree(dense.labels_, wide.labels_)
    assert wide.inertia_ == pytest.approx(dense.inertia_, rel=1e-12)
    assert wide.inertia_ == pytest.approx(-wide.score(X), rel=1e-12)
    np.testing.assert_array_equal(wide.transform(X).argmin(axis=1), wide.labels_)


def no_large_array(toarray):
    def checked(rows, *args, **kwargs):
        assert np.prod(rows.shape) <= 10 * 3 * 400, f"{rows.shape} made dense"  # the centres of ten starts
        return toarray(rows, *args, **kwargs)

    return checked


# Starts


def test_centres_are_drawn_by_squared_distance_times_weight():
    """Every ordered choice of three of five rows as often as the law says: chi-square over 6,000 draws."""
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [5.0, 1.0]])
    weights = np.array([1.0, 2.0, 0.5, 1.0, 1.5])
    law = oracle.plus_plus_law(rows.tolist(), weights.tolist(), 3)
    few = FewRows.of(Points.of(rows, weights), unit=False)
    seen = dict.fromkeys(law, 0)
    for start in plus_plus(few, np.random.default_rng(7), 3, 6_000).tolist():
        seen[tuple(start)] += 1
    expected = np.array(list(law.values())) * 6_000
    assert sum(law.values()) == pytest.approx(1.0)
    assert stats.chisquare(list(seen.values()), expected).pvalue > 1e-3
    even = np.full(len(law), 6_000 / len(law))
    assert stats.chisquare(list(seen.values()), even).pvalue < 1e-9  # the test can tell


def test_random_starts_are_rows_no_two_the_same():
    few, rng = FewRows.of(Points.of(np.arange(6.0)[:, None], np.ones(6)), unit=False), np.random.default_rng(0)
    assert all(len(set(draw_different(few, rng, 6).tolist())) == 6 for _ in range(20))
    assert sc.KMeans(3, init="random", random_state=0).fit(blobs()).converged_


def test_the_random_state_reproduces_to_the_bit():
    X = blobs(200, spread=2.0)
    first, again = (sc.KMeans(6, random_state=5).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    assert first.trace_ == again.trace_


def test_clusters_of_drawn_starts_come_largest_first_and_given_ones_stay_in_order():
    X = (
        np.concatenate([np.full(30, -9.0), np.full(60, 9.0), np.full(10, 0.0)])[:, None]
        + np.linspace(0, 1, 100)[:, None]
    )
    assert np.bincount(sc.KMeans(3, random_state=0).fit(X).labels_).tolist() == [60, 30, 10]
    assert np.bincount(sc.KMeans(3, init=[[0.0], [-9.0], [9.0]]).fit(X).labels_).tolist() == [10, 30, 60]


# Trouble


@pytest.mark.parametrize("n_init", [1, 4])
def test_an_empty_cluster_moves_to_the_farthest_row(n_init):
    X = blobs(60)
    start = np.vstack([X[:2], [[1e3, 1e3, 1e3]], [[1e3, 1e3, 1e3]]])
    model = sc.KMeans(4, init=start, n_init=n_init).fit(X)
    assert set(model.labels_) == {0, 1, 2, 3}
    assert (np.diff(model.trace_) <= 0).all()
    assert any("2 empty clusters were moved" in note for note in model.notes_)


@pytest.mark.parametrize("make", [sc.KMeans, sc.SphericalKMeans])
def test_fewer_distinct_rows_than_clusters_is_an_answer_and_a_note(make):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]], 10, axis=0)
    model = make(5, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-14)
    assert len(set(model.labels_)) == 3
    assert any("fewer distinct rows than clusters" in note for note in model.notes_)
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize(
    "X", [np.ones((50, 2)), np.zeros((5, 1)), np.arange(4.0)[:, None], np.array([[1.0] * 9 + [1e9]]).T]
)
def test_degenerate_tables_have_an_answer(X):
    model = sc.KMeans(4, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all() and np.isfinite(model.trace_).all()
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_stopping_early_is_said_and_labels_still_fit_the_centres():
    X = blobs(400, spread=3.0)
    model = sc.KMeans(6, init=X[:6], max_iter=1, tol=0).fit(X)
    assert not model.converged_ and model.n_iter_ == 1 and len(model.trace_) == 3
    assert any("raise max_iter" in note for note in model.notes_)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


BAD = {
    "a hole": (
        lambda X: X.assign(a=X.a.mask(X.index == 16)),
        {},
        r"column 'a', row 17 is missing.*GaussianMixture or Mixture",
    ),
    "infinity": (lambda X: X.replace(X.iloc[3, 1], np.inf), {}, r"column 'b', row 4 holds inf"),
    "words": (lambda X: X.assign(c="red"), {}, r"column 'c' is not all numbers"),
    "too many clusters": (lambda X: X.head(3), {}, r"n_samples=3 should be >= n_clusters=4"),
    "a word for init": (lambda X: X, {"init": "best"}, r"init='best' is not known"),
    "centres of another shape": (lambda X: X, {"init": np.zeros((4, 3))}, r"4 centres of 2 columns"),
    "centres with a hole": (
        lambda X: X,
        {"init": [[0, 1], [1, 2], [2, np.nan], [0, 0]]},
        r"centre 2, column 'b' is nan",
    ),
    "no clusters": (lambda X: X, {"n_clusters": 0}, r"n_clusters must be a whole number of at least 1"),
    "a negative tolerance": (lambda X: X, {"tol": -1}, r"tol must be 0 or more"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_clustered_is_refused_by_name_and_place(what):
    change, settings, message = BAD[what]
    frame = change(pd.DataFrame(blobs(40, 2), columns=["a", "b"]))
    with pytest.raises(sc.DataError, match=message):
        sc.KMeans(**{"n_clusters": 4, **settings}).fit(frame)


@pytest.mark.parametrize("row", [list, tuple, np.array, pd.Series, pa.array, lambda texts: [None, *texts]])
@pytest.mark.parametrize("model", [sc.KMeans, sc.SphericalKMeans])
def test_documents_are_to_be_made_numbers_and_how_is_said(model, row):
    documents = ["win money now", "see you at noon"]
    with pytest.raises(sc.DataError, match=r'texts, and k-means needs numbers.*BagOfWords\("tfidf"\)'):
        model(2).fit(row(documents))
    fitted = model(2).fit(sc.BagOfWords("tfidf").fit_transform(documents))
    with pytest.raises(sc.DataError, match="BagOfWords"):
        fitted.predict(row(documents))


@pytest.mark.parametrize("table", [lambda x: pd.DataFrame({"a": [1.0, 2.0], "note": x}), lambda x: [[x[0]], [x[1]]]])
def test_a_long_document_is_not_quoted_whole(table):
    with pytest.raises(sc.DataError, match="could not convert") as caught:
        sc.KMeans(2).fit(table(["\x1b[31m" + "word " * 10_000, "other"]))
    assert len(str(caught.value)) < 400 and "\x1b" not in str(caught.value)


def test_a_hole_is_refused_in_prediction_and_in_sparse_rows():
    model = sc.KMeans(2, random_state=0).fit(blobs(30))
    with pytest.raises(sc.DataError, match="column 1, row 1 is missing"):
        model.predict([[0.0, np.nan, 1.0]])
    with pytest.raises(sc.DataError, match="column 2, row 2 is missing"):
        sc.KMeans(1).fit(sparse.csr_matrix([[0.0, 1.0, 1.0], [0.0, 0.0, np.nan]]))


def test_all_weights_zero_is_refused():
    with pytest.raises(sc.DataError, match="weight"):
        sc.KMeans(2).fit(blobs(30), sample_weight=np.zeros(30))


# Tables, files, kernels


@pytest.mark.parametrize("kind", ["polars", "arrow", "mapping", "file", "opened"])
def test_every_kind_of_table_gives_the_same_clusters(kind, tmp_path):
    frame = pd.DataFrame(np.round(blobs(50, 2), 3), columns=["a", "b"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    X = {
        "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame), "mapping": frame.to_dict("list"),
        "file": str(tmp_path / "t.csv"), "opened": sc.read(tmp_path / "t.csv"),
    }[kind]  # fmt: skip
    plain = sc.KMeans(3, random_state=0).fit(frame)
    model = sc.KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(X), plain.labels_)


@pytest.mark.parametrize("make", [sc.KMeans, sc.SphericalKMeans])
def test_a_saved_model_predicts_the_same(make, tmp_path):
    frame = pd.DataFrame(blobs(80) + 1e6, columns=["a", "b", "c"])
    model = make(4, random_state=0).fit(frame)
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    assert type(again) is make
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    assert (again.trace_, again.inertia_, again.notes_, again.agreed_) == (
        model.trace_, model.inertia_, model.notes_, model.agreed_,
    )  # fmt: skip
    assert again.feature_names_in_.tolist() == ["a", "b", "c"] and again.n_clusters == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: a.update({d["centres"]["centres"]["array"]: np.full((4, 3), np.nan)}),
        lambda d, a: a.update({d["centres"]["frame"]["anchor"]["array"]: np.zeros(2)}),
        lambda d, a: d["centres"]["frame"].update(scale=3.0), lambda d, a: d["centres"].update(inertia=-1.0),
        lambda d, a: d["estimator"].update(name="os.system"), lambda d, a: d["centres"].pop("trace"),
        lambda d, a: d["estimator"]["settings"].update(n_clusters=9),
        lambda d, a: d["estimator"]["columns"].update(n=7),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(change, tmp_path):
    from softcount.files import read, write

    sc.KMeans(4, random_state=0).fit(blobs(60)).save(tmp_path / "m.sc")
    document, arrays = read(tmp_path / "m.sc")
    change(document, arrays)
    write(tmp_path / "bad.sc", document, arrays)
    with pytest.raises(sc.ModelFileError):
        sc.load(tmp_path / "bad.sc")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_compiled_and_plain_descents_end_with_the_same_labels(kind):
    X = blobs(9_000, 5, 12, spread=2.5).astype(kind)
    ends = []
    with Threads(1) as threads:
        for kernel in (bounded, nearest):
            ends.append(
                descend(Engine(Points.of(X, None), kernel, threads), X[:12].astype(float), KMeansStop(200, 0.0))
            )
    np.testing.assert_array_equal(ends[0].labels, ends[1].labels)
    np.testing.assert_allclose(ends[0].trace, ends[1].trace, rtol=1e-11)
    assert ends[0].converged and len(ends[0].trace) > 30  # long enough for the bounds to have been used


@pytest.mark.parametrize("compiled", [False, True])
def test_four_threads_equal_one_bit_for_bit(compiled, monkeypatch):
    monkeypatch.setattr(k_means, "WORTH_COMPILING", 1 if compiled else 1 << 60)
    X = blobs(6_000, 4, 6, spread=2.0).astype(np.float32)
    models = [sc.KMeans(6, init=X[:6], tol=0, max_iter=40, n_jobs=jobs).fit(X) for jobs in (1, 4)]
    np.testing.assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    assert models[0].trace_ == models[1].trace_


def test_a_large_table_is_started_from_a_sample_of_its_rows():
    X = blobs(30_000, 2, 5)
    model = sc.KMeans(5, random_state=0, n_init=3).fit(X)
    assert any("compared on 8,192 distinct rows; the best went on with all 30,000" in note for note in model.notes_)
    assert agree(model.labels_, sc.KMeans(5, random_state=0, n_init=3).fit(X[::-1]).labels_[::-1])
    np.testing.assert_array_equal(model.labels_, model.predict(X))


# Directions


def test_spherical_clusters_are_k_means_of_unit_rows_with_unit_centres():
    X = np.abs(blobs(200, 4))
    model = sc.SphericalKMeans(3, random_state=0).fit(X)
    unit = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose((model.cluster_centers_**2).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, (unit @ model.cluster_centers_.T).argmax(axis=1))
    assert model.inertia_ == pytest.approx(2 * (1 - (unit @ model.cluster_centers_.T).max(axis=1)).sum(), rel=1e-10)
    for k in range(3):
        total = unit[model.labels_ == k].sum(axis=0)
        np.testing.assert_allclose(model.cluster_centers_[k], total / np.linalg.norm(total), atol=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X * 7.5))


def test_rows_of_zeros_have_no_direction():
    cells = np.random.default_rng(0).poisson(1.0, (100, 20)).astype(float)
    cells[[3, 50]] = 0
    X = sparse.csr_matrix(cells)
    model = sc.SphericalKMeans(3, random_state=0).fit(X)
    assert any("2 rows of zeros" in note for note in model.notes_)
    assert model.labels_[3] == model.labels_[50] == 0
    with pytest.raises(sc.DataError, match="none has a direction"):
        sc.SphericalKMeans(1).fit(np.zeros((4, 2)))


def test_a_descent_on_a_small_array_is_the_oracle():
    X = blobs(50, 2)
    weights = np.linspace(0.5, 2.0, 50)
    with Threads(1) as threads:
        end = descend(Engine(Points.of(X, weights), nearest, threads), X[:3], KMeansStop(100, 0.0))
    expected, expected_labels, _ = oracle.lloyd(X, weights, X[:3])
    assert end.labels.tolist() == expected_labels
    np.testing.assert_allclose(end.centres, expected, atol=1e-12)


# What is far too large, too small or too heavy


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("scale", [1e-44, 1e-40, 1e30])
def test_float32_rows_of_any_size_are_told_apart(scale, form):
    X = np.repeat([[1.0, 100.0], [1.0, 200.0], [900.0, 1.0]], 5, axis=0) * scale
    model = sc.KMeans(3, random_state=0).fit(form(X.astype(np.float32)))
    assert len(set(model.labels_)) == 3 and model.inertia_ == 0.0
    np.testing.assert_array_equal(model.labels_, model.predict(form(X.astype(np.float32))))


def test_float32_rows_are_asked_about_to_the_last_digit_of_float64_centres():
    X = np.array([[1e8 + 1.0]] * 4 + [[1e8 + 5.0]] * 5)
    model = sc.KMeans(2, random_state=0).fit(X)
    row = np.array([[1e8]])
    assert model.predict(row.astype(np.float32)).tolist() == model.predict(row).tolist() == [1]
    np.testing.assert_allclose(model.transform(row.astype(np.float32)), [[5.0, 1.0]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_row_too_far_for_distances_is_refused_by_its_place(form):
    model = sc.KMeans(2, random_state=0).fit(blobs(50, 2) * 1e-100)
    with pytest.raises(sc.DataError, match=r"column 1, row 2 holds -1e\+300"):
        model.predict(form(np.array([[1.0, 1.0], [1.0, -1e300]])))
    with pytest.raises(sc.DataError, match="centre 1 is too far"):
        sc.KMeans(2, init=[[0.0, 0.0], [1e300, 0.0]]).fit(blobs(50, 2))


def test_numbers_near_the_largest_have_an_answer_and_a_cost_that_is_said_to_be_too_large():
    model = sc.KMeans(2, random_state=0).fit(np.array([[1.7e308], [-1.7e308], [1.6e308]]))
    np.testing.assert_allclose(model.cluster_centers_.ravel(), [1.65e308, -1.7e308])
    assert model.labels_.tolist() == [0, 1, 0] and any("more than 1.8e308" in note for note in model.notes_)


@pytest.mark.parametrize("unit", [1e-300, 1e290])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_unit_of_weights_changes_nothing_but_the_cost(unit, init):
    X, weights = blobs(200, 2), np.linspace(1.0, 3.0, 200)
    one = sc.KMeans(3, init=init, random_state=0).fit(X, sample_weight=weights)
    other = sc.KMeans(3, init=init, random_state=0).fit(X, sample_weight=weights * unit)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(np.array(other.trace_) / unit, one.trace_, rtol=1e-9)


def test_a_row_beside_which_others_weigh_nothing_does_not_stop_random_starts():
    weights = np.array([1e300, *[1e-200] * 49])
    model = sc.KMeans(3, init="random", random_state=0).fit(blobs(50, 2), sample_weight=weights)
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_directions_do_not_depend_on_the_lengths_of_rows(form):
    X = np.abs(blobs(120, 4)) + 0.1
    lengths = np.tile([1.0, 1e-200, 1e200], 40)[:, None]
    one, other = (sc.SphericalKMeans(3, random_state=0).fit(form(rows)) for rows in (X, X * lengths))
    assert agree(one.labels_, other.labels_)
    np.testing.assert_array_equal(other.labels_, other.predict(form(X * lengths)))
    assert other.inertia_ == pytest.approx(one.inertia_, rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_directions_of_float32_rows_that_are_almost_one_are_clustered(scale):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = ((rng.normal(size=(3, 17)) + 1e8) * scale).astype(np.float32)[rng.integers(0, 3, 7)]
        model = sc.SphericalKMeans(7, n_init=1, random_state=seed).fit(X, sample_weight=rng.random(7) + 0.01)
        np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_clusters_that_an_early_stop_leaves_empty_are_not_blamed_on_the_rows():
    for seed in range(20):
        X = sparse.csr_matrix(np.random.default_rng(seed).integers(0, 3, (255, 4)) * 1.0)
        model = sc.KMeans(40, init="random", n_init=1, max_iter=1, tol=0, random_state=seed).fit(X)
        assert not any("fewer distinct rows" in note for note in model.notes_)


def test_the_search_for_better_starts_has_an_end(monkeypatch):
    sweeps = []
    weigh = k_means.weigh_moves
    monkeypatch.setattr(k_means, "weigh_moves", lambda *what: sweeps.append(1) or weigh(*what))
    sc.KMeans(8, n_init=2, random_state=0).fit(np.random.default_rng(0).normal(size=(4000, 4)))
    assert len(sweeps) < 200


# Many starts on few rows


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("few", [0, 1 << 60])
@pytest.mark.parametrize("behind", [k_means.BEHIND, 1e300])
def test_starts_descended_together_end_where_each_ends_alone(behind, few, form, monkeypatch):
    monkeypatch.setattr(k_means, "FEW", few)  # sums counted anew, or by what changed
    monkeypatch.setattr(k_means, "BEHIND", behind)
    X, weights = blobs(200, 5, 6, spread=2.0), np.random.default_rng(1).integers(1, 4, 200).astype(float)
    starts = np.stack([X[np.random.default_rng(seed).choice(200, 6, replace=False)] for seed in range(7)])
    ends = descend_together(FewRows.of(Points.of(form(X), weights), unit=False), starts, 300)
    alone = {tuple(labels): (centres, trace[-1]) for centres, labels, trace in (
        oracle.lloyd(X, weights, start) for start in starts
    )}  # fmt: skip
    for end in ends:
        centres, cost = alone[tuple(end.labels.tolist())]
        np.testing.assert_allclose(end.centres, centres, atol=1e-12)
        assert end.converged and end.cost == pytest.approx(cost, rel=1e-12)
    assert min(end.cost for end in ends) == pytest.approx(min(cost for _, cost in alone.values()), rel=1e-12)
    assert len(ends) == 7 if behind > 20 else len(ends) < 7  # some are given up


def test_a_start_with_empty_clusters_gets_the_farthest_rows_beside_others():
    X = blobs(60)
    far = np.full((1, 3), 1e3)
    starts = np.stack([np.vstack([X[:2], far, far]), np.vstack([far, X[:1], far, X[1:2]])])
    few = FewRows.of(Points.of(X, None), unit=False)
    ends = descend_together(few, starts, 300)
    assert len(ends) == 2
    for end in ends:
        assert end.converged and set(end.labels) == {0, 1, 2, 3}
        labels, cost = end.labels, oracle.cost(X, few.weights, end.labels, end.centres)
        assert labels.tolist() == [oracle.nearest(row, end.centres) for row in X]
        assert end.cost == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("shape, clusters", [((80, 2), 5), ((60, 30), 4)])
def test_after_the_exchange_no_single_row_can_lower_the_cost(shape, clusters):
    """In noise of many columns Lloyd's steps stop early: moving a row moves both centres, which they do not see."""
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=shape), rng.integers(1, 4, shape[0]).astype(float)
    few = FewRows.of(Points.of(X, weights), unit=False)
    before = descend_together(few, X[None, :clusters], 300)[0]
    after = k_means.exchange_rows(few, before, k_means.LAST_SWEEPS)
    assert after.cost < before.cost
    means = oracle.means(X, weights, after.labels, after.centres)
    np.testing.assert_allclose(after.centres, means, atol=1e-12)
    for row in range(len(X)):
        for other in range(clusters):
            labels = after.labels.copy()
            labels[row] = other
            moved = oracle.means(X, weights, labels, after.centres)
            assert oracle.cost(X, weights, labels, moved) > after.cost * (1 - 1e-8)


def test_a_centre_is_moved_to_where_the_cost_falls_most():
    """Two centres in one blob and one between two: Lloyd's steps do not leave it, one move of a centre does."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)) * 0.1 + middle for middle in ([0, 0], [10, 0], [10, 10])])
    few = FewRows.of(Points.of(X, None), unit=False)
    stuck = descend_together(few, np.array([[[-0.1, 0.0], [0.1, 0.0], [10.0, 5.0]]]), 300)[0]
    assert len({*stuck.labels[40:].tolist()}) == 1
    found = k_means.move_centres(few, stuck, np.random.default_rng(0), 300)
    assert agree(found.labels, np.repeat([0, 1, 2], 40))


def test_of_several_looks_the_row_that_leaves_least_is_taken():
    X = blobs(300, 2, 6)
    few = FewRows.of(Points.of(X, None), unit=False)
    cost = {
        looks: [
            few.squares(few.cells(start)).min(axis=0).sum()
            for start in plus_plus(few, np.random.default_rng(0), 6, 200, looks)
        ]
        for looks in (1, 4)
    }
    assert np.mean(cost[4]) < 0.8 * np.mean(cost[1])


def test_rows_that_differ_by_less_than_products_round_are_still_told_apart():
    """At 1e8 from the middle a product of float64 is right to two units; the blobs here are one apart."""
    rng = np.random.default_rng(0)
    places = np.array([[1e8, 0.0], [1e8, 1.0], [-1e8, 0.0], [-1e8, 1.0]])
    X = np.repeat(places, 25, axis=0) + rng.normal(size=(100, 2)) * 0.02
    few = FewRows.of(Points.of(X, None), unit=False)
    assert not few.is_clear(places)
    model = sc.KMeans(4, random_state=0).fit(X)
    assert agree(model.labels_, np.repeat(np.arange(4), 25))


@given(st.integers(0, 10_000))
def test_rows_are_sorted_and_told_apart_as_numpy_does(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, (rng.integers(1, 40), rng.integers(1, 5))) * rng.choice([1.0, -0.0, 1e300])
    order, first = sort_rows(rows)
    expected, counts = np.unique(rows + 0.0, axis=0, return_counts=True)
    np.testing.assert_array_equal(rows[order[first]], expected)
    np.testing.assert_array_equal(np.diff(np.append(np.flatnonzero(first), len(rows))), counts)


def test_few_starts_need_nothing_compiled():
    code = "import sys, numpy as np, softcount as sc; sc.KMeans(3).fit(np.eye(9)); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_starts_of_rows_in_few_directions_are_not_all_given_up() -> None:
    """Their costs are nothing but rounding, which may rise."""
    rows = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    model = sc.SphericalKMeans(2, random_state=0).fit(rows)
    assert np.isfinite(model.inertia_) and len(set(model.labels_)) == 2
