"""How much two nodes say of each other, against plain loops and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency

from networks.plain_structures import drawn_codes, plain_counts, plain_information
from softcount.errors import DataError
from softcount.networks.scores import CodeCounts, dependence, dependent_pairs


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]), st.sampled_from([(), (2,), (3, 2)]))
def test_information_and_test_are_what_a_loop_says(seed, holes, given):
    codes, sizes = drawn_codes(seed, 4, 60, holes)
    weights = np.random.default_rng(seed).integers(0, 3, 60) * 1.0
    found = dependence(CodeCounts(codes, sizes, weights), 0, 1, given)
    joint = plain_counts(codes, weights, (*given, 0, 1))
    seen = {key for key, weight in joint.items() if weight}
    strata = {key[:-2] for key in seen}
    levels = [[len({key[at] for key in seen if key[:-2] == one}) - 1 for at in (-2, -1)] for one in strata]
    freedom = sum(a * b for a, b in levels)
    assert found.information == pytest.approx(plain_information(codes, weights, 0, 1, given), abs=1e-13)
    assert found.weight == sum(joint.values())
    assert found.freedom == freedom
    assert found.g2 == 2 * found.weight * found.information
    assert found.p_value == pytest.approx(chi2.sf(found.g2, freedom) if freedom else 1.0, rel=1e-12)


def test_without_strata_it_is_scipys_test():
    codes, sizes = drawn_codes(4, 2, 200)
    rows = CodeCounts(codes, sizes)
    found = dependence(rows, 0, 1)
    table = rows.counts((0, 1))
    expected = chi2_contingency(
        table[table.any(axis=1)][:, table.any(axis=0)], correction=False, lambda_="log-likelihood"
    )
    assert (found.g2, found.p_value, found.freedom) == pytest.approx((*expected[:2], expected.dof), rel=1e-11)


def test_independent_nodes_are_refused_as_often_as_the_test_says():
    rng = np.random.default_rng(0)
    found = [dependence(CodeCounts(rng.integers(0, 3, (300, 3)), (3, 3, 3)), 0, 1, [2]).p_value for _ in range(400)]
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.09
    assert 0.42 < np.mean(found) < 0.58


def test_both_sides_say_the_same():
    codes, sizes = drawn_codes(5, 4, 100, 0.1)
    rows = CodeCounts(codes, sizes)
    one, other = dependence(rows, 0, 3, [1]), dependence(rows, 3, 0, [1])
    assert one.information == pytest.approx(other.information, abs=1e-14)
    assert (one.freedom, one.weight, one.copy) == (other.freedom, other.weight, other.copy)


def test_weight_two_is_the_row_twice():
    codes, sizes = drawn_codes(6, 3, 50)
    twice = dependence(CodeCounts(np.concatenate([codes, codes]), sizes), 0, 1, [2])
    doubled = dependence(CodeCounts(codes, sizes, np.full(50, 2.0)), 0, 1, [2])
    assert twice == doubled


def test_pairs_come_most_dependent_first():
    codes, sizes = drawn_codes(7, 6, 200, 0.1)
    rows = CodeCounts(codes, sizes)
    found = dependent_pairs(rows, 2)
    assert {(pair.a, pair.b) for pair in found} == {
        (a, b) for a in range(6) for b in range(a + 1, 6) if 2 not in (a, b)
    }
    assert all(pair == dependence(rows, pair.a, pair.b, [2]) for pair in found)
    sizes_of = [pair.information for pair in found]
    assert sizes_of == sorted(sizes_of, reverse=True)


def test_pairs_that_are_the_same_keep_their_order():
    one = np.random.default_rng(0).integers(0, 2, 40)
    codes = np.stack([one, one, np.tile([0, 1], 20), one, one], axis=1)
    found = dependent_pairs(CodeCounts(codes, (2,) * 5), 2)
    assert [(pair.a, pair.b) for pair in found] == [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)]


@pytest.mark.parametrize(
    ("a", "b", "copy"),
    [
        ([0, 1, 2, 0, 1], [0, 1, 2, 0, 1], True),
        ([0, 1, 2, 0, 1], [1, 0, 0, 1, 0], True),
        ([0, 1, 1, 0], [2, 0, 1, 2], True),
        ([0, 1, 1, 0], [0, 1, 0, 1], False),
        ([0, 1, 1, 0], [0, 0, 0, 0], False),
        ([0, 1, -1, 0], [0, 1, 0, -1], True),
        ([-1, -1], [0, 1], False),
    ],
)
def test_a_copy_follows_from_the_other_and_varies(a, b, copy):
    codes = np.stack([a, b], axis=1)
    assert dependence(CodeCounts(codes, (3, 3)), 0, 1).copy is copy


def test_a_column_of_holes_or_of_one_value_says_nothing():
    codes = np.array([[0, -1, 0], [1, -1, 0], [1, -1, 0]])
    rows = CodeCounts(codes, (2, 2, 1))
    empty, constant = dependence(rows, 0, 1), dependence(rows, 0, 2)
    assert (empty.information, empty.weight, empty.freedom, empty.p_value) == (0.0, 0.0, 0, 1.0)
    assert (constant.information, constant.weight, constant.freedom, constant.p_value) == (0.0, 3.0, 0, 1.0)


@pytest.mark.parametrize(("a", "b", "given"), [(0, 0, ()), (0, 1, (1,)), (0, 1, (2, 2))])
def test_a_node_named_twice_is_refused(a, b, given):
    with pytest.raises(DataError, match="a node is named twice"):
        dependence(CodeCounts(np.zeros((2, 3), dtype=int), (2, 2, 2)), a, b, given)
