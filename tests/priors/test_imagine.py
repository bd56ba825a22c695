"""Imagined counts: Jeffreys, BDeu, experts, and the concentration the data like best."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from softcount.errors import DataError
from softcount.priors import Beta, Dirichlet, Expert, bdeu, best_concentration, jeffreys

TABLES = arrays(float, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=5), elements=st.integers(0, 30))


def plain_evidence(table, a):
    """The log-evidence under a symmetric prior, row of the data by row, in plain loops."""
    total = 0.0
    for group in table:
        seen = 0
        for count in group:
            for i in range(int(count)):
                total += math.log(a + i) - math.log(a * len(group) + seen)
                seen += 1
    return total


@settings(max_examples=40)
@given(TABLES)
def test_no_concentration_on_a_grid_has_more_evidence(table):
    best = best_concentration(table)
    height = plain_evidence(table, best)
    assert 1e-6 <= best <= 1e6
    for a in np.geomspace(1e-6, 1e6, 49):
        assert plain_evidence(table, a) <= height + 1e-7 * (1 + abs(height))


def test_the_best_concentration_lies_where_a_fine_grid_says():
    table = np.array([[9, 1], [2, 8], [5, 5]])
    grid = np.linspace(1.0, 2.5, 15001)
    assert best_concentration(table) == pytest.approx(
        grid[np.argmax([plain_evidence(table, a) for a in grid])], abs=1e-4
    )


def test_evidence_of_an_object_and_of_plain_loops_agree():
    table = np.array([[9, 1, 0], [2, 8, 4]])
    together = Dirichlet.symmetric(0.7, 3).log_evidence(table)
    assert together.sum() == pytest.approx(plain_evidence(table, 0.7), rel=1e-13)


def test_pure_groups_want_the_least_and_even_groups_the_most():
    assert best_concentration([[50, 0], [0, 50]]) == pytest.approx(1e-6)
    assert best_concentration([[50, 50], [50, 50]]) == pytest.approx(1e6)
    assert best_concentration([[50, 50]], most=10.0) == pytest.approx(10.0)


@pytest.mark.parametrize("table", [[[0, 0]], [[1, 0, 0], [0, 1, 0]], [[5.0], [3.0]], np.zeros((0, 3))], ids=str)
def test_counts_that_do_not_care_give_one(table):
    assert best_concentration(table) == 1.0


def test_large_tables_are_fine():
    table = np.random.default_rng(0).multinomial(1000, np.full(8, 1 / 8), size=20000)
    assert best_concentration(table) > 1e4


def test_where_to_look_must_make_sense():
    with pytest.raises(DataError, match="0 < least < most"):
        best_concentration([[1, 2]], least=5, most=1)


def test_jeffreys_is_half_a_count_of_everything():
    assert jeffreys() == Beta(0.5, 0.5)
    assert jeffreys(4) == Dirichlet([0.5] * 4)
    assert jeffreys(["a", "b"]) == Dirichlet([0.5, 0.5], levels=("a", "b"))


@given(st.floats(0.1, 100), st.integers(1, 9), st.integers(1, 12))
def test_bdeu_spreads_its_rows_over_levels_and_parents(size, levels, parents):
    one = bdeu(size, levels, parents)
    assert one.alpha.shape == (levels,)
    assert one.total * parents == pytest.approx(size)
    assert np.ptp(one.alpha) == 0


def test_bdeu_needs_parents_and_levels():
    with pytest.raises(DataError, match="parents=1"):
        bdeu(1, 2, parents=0)
    with pytest.raises(DataError, match="at least one level"):
        bdeu(1, 0)


def test_names_of_levels_go_with_their_counts():
    by_name = Expert({"cherry": 3, "lime": 1})
    assert by_name.as_dirichlet() == Dirichlet([3, 1], levels=("cherry", "lime"))
    assert by_name.update(counts={"lime": 4}) == Expert([3, 5], levels=("cherry", "lime"))
    assert by_name.update(counts=[0, 4]).m == 8.0
    assert Dirichlet({"b": 2, "a": 1}, levels=("a", "b")) == Dirichlet([1, 2], levels=("a", "b"))
    assert Dirichlet({"b": 2, "a": 1}).predict("b") == pytest.approx(2 / 3)


def test_counts_by_name_may_hold_groups():
    belief = Dirichlet([1, 1], levels=("a", "b")).update({"b": [3, 0, 1]})
    assert belief.alpha.tolist() == [[1, 4], [1, 1], [1, 2]]


def test_an_expert_who_is_surer_moves_less():
    moved = [Expert(2 * k, 3 * k).update(failures=10).estimate for k in (1, 10, 100)]
    assert moved == sorted(moved)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 30), st.integers(1, 30))
def test_an_expert_and_their_beta_learn_the_same(won, lost, n, more):
    expert = Expert(n, n + more)
    assert expert.update(won, lost).as_beta() == expert.as_beta().update(won, lost)
    assert expert.update(won, lost).estimate == pytest.approx(expert.as_beta().update(won, lost).mean, rel=1e-15)
