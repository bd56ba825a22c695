"""The quick ways of networks against the plain ones: one pass kept for the next, evidence coded without a table."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import softcount as sc
from softcount.learn.networks import end_to_end
from softcount.models.base import Problem
from softcount.run.local import one_blas_thread
from softcount.table import open_table

LEVELS: dict[str, list[Any]] = {
    "text": ["a", "b", "c"],
    "whole": [0, 1, 2],
    "truth": [False, True],
    "word": ["one", "two"],
}
EDGES = [("text", "whole"), ("text", "truth"), ("whole", "word"), ("truth", "word")]


def rows_of(seed: int, n: int = 300, holes: float = 0.0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    found = {}
    for name, levels in LEVELS.items():
        codes = rng.integers(0, len(levels), n)
        found[name] = [None if rng.random() < holes else levels[code] for code in codes]
    return found


def fitted(rows: Any, **settings: Any) -> Any:
    return sc.BayesNet(EDGES, kinds={"whole": "categorical"}, **settings).fit(rows)


def plain_counts(rows: dict[str, list[Any]], levels: dict[str, list[Any]], child: str, weights: np.ndarray) -> Any:
    """The table of a node counted row by row; rows with a hole in it are passed over."""
    family = [*(parent for parent, own in EDGES if own == child), child]
    found = np.zeros([len(levels[name]) for name in family])
    for row in range(len(weights)):
        cells = [rows[name][row] for name in family]
        if None not in cells:
            found[tuple(levels[name].index(cell) for name, cell in zip(family, cells, strict=True))] += weights[row]
    return found.reshape(-1, len(levels[child]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_what_rows_show_is_counted_as_row_by_row(holes: float, weighted: bool) -> None:
    rows = rows_of(1, holes=holes)
    weights = np.random.default_rng(2).integers(1, 4, 300).astype(float) if weighted else np.ones(300)
    fit = fitted(rows)
    table = fit.fitted_.table(rows, weights=weights if weighted else None)
    net = fit.fitted_.net
    seen = net.seen(net.prepare(next(task() for task in table.tasks())))
    for child in LEVELS:
        np.testing.assert_array_equal(seen[child], plain_counts(rows, fit.levels_, child, weights))


@pytest.mark.parametrize("estimate", ["ml", "mean"])
def test_the_likelihood_that_counts_tell_is_that_of_all_rows(estimate: str) -> None:
    rows = rows_of(3)
    fit = fitted(rows, estimate=estimate)
    assert fit.log_likelihood_ == pytest.approx(fit.score_samples(rows).sum(), rel=1e-12)


def test_where_numbers_hang_on_levels_the_rows_tell_the_likelihood() -> None:
    rows = rows_of(4)
    rows["size"] = np.random.default_rng(4).normal(size=300).tolist()
    fit = sc.BayesNet([*EDGES, ("text", "size")], kinds={"whole": "categorical"}).fit(rows)
    assert fit.log_likelihood_ == pytest.approx(fit.score_samples(rows).sum(), rel=1e-10)


def test_levels_given_as_they_are_answer_as_a_table_that_is_read() -> None:
    fit = fitted(rows_of(5, holes=0.1)).fitted_
    asked = 0
    for names in ([], ["text"], ["whole", "truth"], ["word", "text", "truth"]):
        for cells in product(*(LEVELS[name] for name in names)):
            given = dict(zip(names, cells, strict=True))
            found = fit.exact_codes(given)
            assert found is not None
            np.testing.assert_array_equal(found, fit.read_row(given)[1].codes)
            asked += 1
    assert asked == 1 + 3 + 6 + 12


@pytest.mark.parametrize(
    "given", [{"whole": True}, {"whole": 1.0}, {"whole": "1"}, {"text": "A"}, {"truth": 1}, {"text": float("nan")}]
)
def test_what_is_no_level_word_for_word_is_read_as_a_table(given: dict[str, Any]) -> None:
    fit = fitted(rows_of(6)).fitted_
    assert fit.exact_codes(given) is None


def test_a_number_that_is_cut_is_never_taken_for_the_name_of_an_interval() -> None:
    rows = rows_of(7) | {"size": np.random.default_rng(7).normal(size=300).tolist()}
    fit = sc.BayesNet([("size", "text")], cut={"size": 3}).fit(rows).fitted_
    assert fit.exact_codes({"size": fit.levels["size"][0]}) is None
    assert (fit.query("size", {"text": "a"}).shares > 0).all()
    for name in fit.levels["size"]:
        assert fit.query("text", {"size": name}) != fit.query("text")


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_a_table_that_was_read_gives_the_same_network_again(holes: float) -> None:
    rows = rows_of(8, n=5000, holes=holes)
    table = sc.read(rows)
    fits = [sc.BayesNet(EDGES, max_iter=5, tol=0).fit(data) for data in (rows, table, table)]
    for fit in fits[1:]:
        assert fit.log_likelihood_ == fits[0].log_likelihood_
        for name in LEVELS:
            np.testing.assert_array_equal(fit.counts_[name], fits[0].counts_[name])
            assert fit.levels_[name] == fits[0].levels_[name]


def test_a_table_that_was_read_gives_the_same_mixture_again() -> None:
    rows = rows_of(14, n=5000, holes=0.1) | {"size": np.random.default_rng(14).normal(3.0, 2.0, 5000).tolist()}
    table = sc.read(rows)
    first, *others = [sc.Mixture(2, n_init=2, random_state=0, max_iter=20).fit(data) for data in (rows, table, table)]
    for fit in others:
        assert fit.trace_ == first.trace_


def test_a_second_pass_has_the_chunks_and_the_counts_of_holes_of_the_first() -> None:
    rows = rows_of(9, n=9000, holes=0.1)
    table = open_table(rows)
    first, missing = list(table.chunks()), dict(table.missing)
    next(iter(table.tasks()))()  # a pass that is given up counts nothing for the next
    second = list(table.chunks())
    assert len(first) == 3
    assert missing == table.missing == {name: cells.count(None) for name, cells in rows.items()}
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)


def test_a_pass_that_is_given_up_keeps_nothing() -> None:
    rows = rows_of(10, n=9000)
    table = open_table(rows)
    next(iter(table.chunks()))
    assert sum(chunk.n_rows for chunk in table.chunks()) == 9000


def test_settled_orders_of_one_table_are_told_apart() -> None:
    table = open_table({"answer": ["yes"] * 5 + [None], "other": ["b", "a", "b", "a", "b", "a"]}, kinds="categorical")
    raw = list(table.chunks())
    plain, wider = table.settle(), table.settle(two_levels=["answer"])
    assert not plain.moves_alike(wider)
    for settled in (plain, wider, plain):
        [found] = table.in_order(raw, settled)
        np.testing.assert_array_equal(found.codes, settled.recoded(raw[0]).codes)


def test_an_array_that_changed_is_read_again() -> None:
    array = np.array([[0, 1], [1, 0], [1, 1], [0, 1]])
    table = open_table(array, kinds="categorical")
    before = [chunk.codes.copy() for chunk in table.chunks()]
    array[:, 1] = array[::-1, 0]
    after = [chunk.codes for chunk in table.chunks()]
    assert not np.array_equal(before[0], after[0])


def test_chunks_end_to_end_are_their_rows() -> None:
    rows = rows_of(11, n=9000, holes=0.1)
    weights = np.random.default_rng(11).random(9000)
    chunks = list(open_table(rows, weights=weights).chunks())
    [whole] = end_to_end(chunks)
    assert whole.n_rows == 9000
    np.testing.assert_array_equal(whole.codes, np.concatenate([chunk.codes for chunk in chunks]))
    np.testing.assert_array_equal(whole.weights, weights)
    assert end_to_end(chunks[:1]) == chunks[:1]


def test_the_prior_of_parameters_is_remembered_for_those_alone() -> None:
    fit = fitted(rows_of(12)).fitted_
    problem = Problem(fit.net, fit.imagined, [])
    uneven = fitted(rows_of(13)).fitted_.estimates
    for params in (fit.estimates, uneven, fit.estimates, uneven, uneven):
        assert problem.log_prior(params) == fit.net.nodes.log_prior(params, fit.imagined)


def test_a_block_of_one_blas_thread_within_another_changes_nothing() -> None:
    def threads() -> list[int]:
        return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]

    before = threads()
    with one_blas_thread():
        assert set(threads()) <= {1}
        with one_blas_thread():
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before
    with pytest.raises(ValueError, match="given up"), one_blas_thread():
        raise ValueError("given up")
    assert threads() == before
    with one_blas_thread():
        assert set(threads()) <= {1}
