"""A star that is given as a network is the mixture and the naive Bayes model that it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from contract.networks import drawn
from softcount.estimators.result_frames import arrow_of as arrow

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
KINDS = {"x": "normal", "z": "normal", "k": "poisson"}
COLUMNS = ["a", "b", "x", "k", "z"]
START = {
    "weights": [0.6, 0.4],
    "a": {"no": [0.6, 0.3], "yes": [0.4, 0.7]},
    "b": {"low": [0.5, 0.2], "mid": [0.3, 0.3], "top": [0.2, 0.5]},
    "x": {"mean": [0.0, 1.0], "variance": [1.0, 2.0]},
    "k": {"rate": [1.0, 3.0]},
    "z": {"mean": [0.0, 1.0], "variance": [1.0, 1.0]},
}
LEVELS, MIXED = ["a", "b"], COLUMNS


def classed(lost: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Rows of three classes of different sizes, whose other cells may be lost."""
    table = drawn(seed, 150, lost).assign(c=drawn(seed, 150)["c"])
    return table[~((table["c"] == "u") & (table.index % 2 == 0) & (table.index > 20))].reset_index(drop=True)


def star(root: str, columns: list[str]) -> list[tuple[str, str]]:
    return [(root, name) for name in columns]


def kinds_of(columns: list[str]) -> dict[str, str]:
    return {key: kind for key, kind in KINDS.items() if key in columns}


def same_params(one, other, columns, tolerance=1e-12):
    for key in columns:
        for name, value in one.params_[key].items():
            if name != "unseen":
                np.testing.assert_allclose(value, other.params_[key][name], rtol=tolerance, atol=tolerance, err_msg=key)


def same_counts(one, other, columns):
    for key in columns:
        np.testing.assert_allclose(one.counts_[key], other.counts_[key], rtol=1e-12, atol=1e-10, err_msg=key)


# Classes that are known


@pytest.mark.parametrize("estimate", ["ml", "mean", "map"])
@pytest.mark.parametrize("columns", [LEVELS, MIXED], ids=["levels", "mixed"])
def test_complete_rows_of_known_classes(columns, estimate):
    table = classed()[[*columns, "c"]]
    how = {"kinds": kinds_of(columns), "estimate": estimate}
    plain = sc.NaiveBayes(class_prior=1.0 if estimate == "mean" else None, **how).fit(table, "c")
    for edges in ("naive", star("c", columns)):
        if edges == "naive" and columns is MIXED:
            continue  # whose numbers would be cut
        net = sc.BayesNet(edges, **how).fit(table, "c")
        same_counts(plain, net, columns)
        same_params(plain, net, columns)
        np.testing.assert_allclose(net.counts_["c"][0], plain.class_count_, rtol=1e-15)
        np.testing.assert_allclose(net.predict_proba(table), plain.predict_proba(table), rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(net.score_samples(table), plain.score_samples(table), rtol=1e-12)
        assert net.predict(table).tolist() == plain.predict(table).tolist()
        assert net.n_parameters_ == plain.n_parameters_


@pytest.mark.parametrize("estimate", ["ml", "mean"])
@pytest.mark.parametrize("columns", [LEVELS, MIXED], ids=["levels", "mixed"])
def test_rows_with_holes_of_known_classes(columns, estimate):
    """EM over cells that no other cell depends on ends where counting what is there begins."""
    table = classed(0.2)[[*columns, "c"]]
    how = {"kinds": kinds_of(columns), "estimate": estimate}
    plain = sc.NaiveBayes(class_prior=1.0 if estimate == "mean" else None, **how).fit(table, "c")
    net = sc.BayesNet(star("c", columns), tol=1e-15, max_iter=5000, **how).fit(table, "c")
    same_params(plain, net, columns, 1e-7)
    np.testing.assert_allclose(net.predict_proba(table), plain.predict_proba(table), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(net.score_samples(table), plain.score_samples(table), rtol=1e-7, atol=1e-12)


def test_some_classes_unknown():
    table = classed()[[*LEVELS, "c"]]
    labels = [None if i % 3 == 0 else name for i, name in enumerate(table["c"])]
    table = table.assign(c=labels)
    how = {"estimate": "ml", "tol": 1e-14, "max_iter": 5000}
    plain = sc.NaiveBayes(unlabelled_weight=1.0, **how).fit(table, "c")
    net = sc.BayesNet(star("c", LEVELS), **how).fit(table, "c")
    same_params(plain, net, LEVELS, 1e-6)
    np.testing.assert_allclose(net.predict_proba(table), plain.predict_proba(table), atol=1e-6)


@pytest.mark.parametrize("columns", [LEVELS, MIXED], ids=["levels", "mixed"])
def test_what_each_column_says_of_the_class(columns):
    """A star's pieces of evidence are naive Bayes's, whatever order they are taken in."""
    table = classed()[[*columns, "c"]]
    plain = sc.NaiveBayes(kinds=kinds_of(columns), class_prior=1.0).fit(table, "c")
    net = sc.BayesNet(star("c", columns), kinds=kinds_of(columns)).fit(table, "c")
    for against in (None, "u"):
        one, other = (arrow(model.explain(table, against=against)).to_pandas() for model in (plain, net))
        names = ["(prior)", *columns]
        np.testing.assert_allclose(other[names].to_numpy(), one[names].to_numpy(), rtol=1e-9, atol=1e-11)


# Classes that are looked for


@pytest.mark.parametrize(
    ("columns", "estimate"),
    [(LEVELS, "ml"), (LEVELS, "mean"), (LEVELS, "map"), (MIXED, "ml")],
    ids=["levels-ml", "levels-mean", "levels-map", "mixed-ml"],
)
def test_hidden_classes_climb_the_same_way(columns, estimate):
    table = drawn(1, 120)[columns]
    how = {
        "max_iter": 6, "tol": 0, "accelerate": False, "n_init": 1, "estimate": estimate, "prior": 1.0,
        "kinds": kinds_of(columns),
    }  # fmt: skip
    start = {key: START[key] for key in ("weights", *columns)}
    plain = sc.Mixture(2, init=start, **how).fit(table)
    init = {"H" if key == "weights" else key: said for key, said in start.items()}
    net = sc.BayesNet(star("H", columns), {"H": 2}, init=init, **how).fit(table)
    np.testing.assert_allclose(net.trace_, plain.trace_, rtol=1e-12)
    assert net.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)
    same_counts(plain, net, columns)
    same_params(plain, net, columns, 1e-10)
    np.testing.assert_allclose(net.predict_proba(table, "H"), plain.predict_proba(table), rtol=1e-9, atol=1e-13)
    assert net.n_parameters_ == plain.n_parameters_


def test_hidden_classes_and_holes_end_at_the_same_place():
    table = drawn(2, 150, 0.2)[[*LEVELS, "c"]]
    start = START | {"c": {"u": [0.2, 0.4], "v": [0.3, 0.3], "w": [0.5, 0.3]}}
    start = {key: start[key] for key in ("weights", *table)}
    how = {"max_iter": 20_000, "tol": 1e-15, "n_init": 1, "estimate": "mean", "prior": 1.0}
    plain = sc.Mixture(2, init=start, **how).fit(table)
    init = {"H" if key == "weights" else key: said for key, said in start.items()}
    net = sc.BayesNet(star("H", list(table)), {"H": 2}, init=init, **how).fit(table)
    assert net.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
    same_params(plain, net, table, 1e-4)


def test_the_best_of_many_starts_is_no_worse():
    table = drawn(3, 200)[["a", "b", "c"]]
    how = {"estimate": "ml", "tol": 1e-10, "max_iter": 5000, "random_state": 0, "n_init": 10}
    plain = sc.Mixture(2, **how).fit(table)
    net = sc.BayesNet(star("H", list(table)), {"H": 2}, **how).fit(table)
    assert net.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-4)
