"""What makes no sense is refused, saying what would be right."""

import math

import numpy as np
import pytest

from softcount import NaiveBayes
from softcount.errors import DataError
from softcount.priors import (
    Beta,
    Dirichlet,
    Expert,
    Gamma,
    NormalInverseChi2,
    NormalInverseWishart,
    NormalKnownVariance,
    bdeu,
    best_concentration,
)

SQUARE = [[1.0, 0.0], [0.0, 1.0]]

WRONG = [
    (lambda bad: Beta(bad, 1), "alpha"),
    (lambda bad: Beta(1, bad), "beta"),
    (lambda bad: Beta(1, 1).update(successes=bad), "successes"),
    (lambda bad: Beta(1, 1).log_evidence(failures=bad), "failures"),
    (lambda bad: Dirichlet([1, bad]), "alpha"),
    (lambda bad: Dirichlet([1, 1]).update([1, bad]), "count"),
    (lambda bad: Dirichlet([1, 1], levels="ab").update({"b": bad}), "count"),
    (lambda bad: Gamma(bad, 1), "shape"),
    (lambda bad: Gamma(1, bad), "rate"),
    (lambda bad: Gamma(1, 1).update(total=bad, rows=1), "total"),
    (lambda bad: NormalInverseChi2(0, bad, 1, 1), "kappa"),
    (lambda bad: NormalInverseChi2(0, 1, bad, 1), "nu"),
    (lambda bad: NormalInverseChi2(0, 1, 1, bad), "variance"),
    (lambda bad: NormalInverseChi2(0, 1, 1, 1).update(rows=bad, mean=0, sum_squares=1), "rows"),
    (lambda bad: NormalInverseChi2(0, 1, 1, 1).update(rows=2, mean=0, sum_squares=bad), "sum_squares"),
    (lambda bad: NormalKnownVariance(0, 1, bad), "variance"),
    (lambda bad: NormalInverseWishart([0, 0], bad, 3, SQUARE), "kappa"),
    (lambda bad: NormalInverseWishart([0, 0], 1, bad, SQUARE), "nu"),
    (lambda bad: NormalInverseWishart([0, 0], 1, 3, [[bad, 0], [0, 1]]), "scale"),
    (lambda bad: Expert(bad, 3), "n"),
    (lambda bad: Expert(1, bad), "m"),
    (lambda bad: Expert([1, bad]), "n"),
    (lambda bad: Expert(1, 3).update(successes=bad), "successes"),
    (lambda bad: bdeu(bad, 2), "equivalent_size"),
    (lambda bad: best_concentration([[1, bad]]), "count"),
]


@pytest.mark.parametrize("bad", [-1.5, math.nan, math.inf, "three", 1j], ids=str)
@pytest.mark.parametrize(("make", "name"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_negative_nan_infinite_and_wordy_numbers_are_refused_by_name(make, name, bad):
    with pytest.raises(DataError, match=name):
        make(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_mean_that_is_no_number_is_refused(bad):
    for make in (
        lambda: NormalInverseChi2(bad, 1, 1, 1),
        lambda: NormalKnownVariance(bad, 1, 1),
        lambda: NormalInverseWishart([0, bad], 1, 3, SQUARE),
        lambda: NormalInverseChi2(0, 1, 1, 1).update(rows=2, mean=bad, sum_squares=1),
    ):
        with pytest.raises(DataError, match="mean is"):
            make()


NO_MODE = [Beta(0.5, 3), Beta(3, 0.999), Dirichlet([2, 0.5]), Gamma(0.5, 2), Beta([2, 0.5], [2, 2])]


@pytest.mark.parametrize("belief", NO_MODE, ids=repr)
def test_no_interior_mode_is_refused_suggesting_the_mean(belief):
    with pytest.raises(DataError, match="use the mean"):
        _ = belief.mode
    assert np.all(np.isfinite(belief.mean))


def test_a_flat_belief_has_the_middle_as_its_mode():
    assert Beta(1, 1).mode == 0.5
    assert Beta([1, 1], [1, 3]).mode.tolist() == [0.5, 0.0]
    np.testing.assert_allclose(Dirichlet([1, 1, 1]).mode, 1 / 3)


IMPROPER = [
    Beta(0, 0),
    Beta(0, 2),
    Dirichlet([0, 1]),
    Gamma(0, 1),
    Gamma(1, 0),
    NormalInverseChi2(0, 0, 1, 1),
    NormalInverseChi2(0, 1, 0, 1),
    NormalInverseChi2(0, 1, 1, 0),
    NormalKnownVariance(0, math.inf, 1),
    NormalInverseWishart([0, 0], 0, 3, SQUARE),
    NormalInverseWishart([0, 0], 1, 1, SQUARE),
    NormalInverseWishart([0, 0], 1, 3, np.ones((2, 2))),
]

ONE_ROW = {
    Beta: {"successes": 1, "failures": 1},
    Dirichlet: {"counts": [1, 1]},
    Gamma: {"total": 1, "rows": 1},
    NormalInverseChi2: {"values": [1.0]},
    NormalKnownVariance: {"values": [1.0]},
    NormalInverseWishart: {"values": [[1.0, 2.0]]},
}


@pytest.mark.parametrize("belief", IMPROPER, ids=repr)
def test_what_is_not_yet_a_distribution_gives_no_evidence_draws_or_density(belief):
    point = [0.5, 0.5] if type(belief) in (Dirichlet, NormalInverseWishart) else 0.5
    for ask in (lambda: belief.log_evidence(**ONE_ROW[type(belief)]), belief.sample, lambda: belief.pdf(point)):
        with pytest.raises(DataError):
            ask()
    assert "\n" not in belief.describe()


def test_no_counts_at_all_have_no_mean():
    for belief in (Beta(0, 0), Dirichlet([0, 0]), Gamma(0, 0)):
        with pytest.raises(DataError, match="no mean"):
            _ = belief.mean
    with pytest.raises(DataError, match="no share"):
        _ = Expert(0, 0).estimate


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_an_interval_level_is_between_zero_and_one(level):
    with pytest.raises(DataError, match=r"such as 0\.95"):
        Beta(2, 3).interval(level)


def test_data_comes_as_values_or_as_moments_but_not_as_both():
    for belief in (NormalInverseChi2(0, 1, 1, 1), NormalInverseWishart([0], 1, 1, [[1]]), Gamma(1, 1)):
        for wrong in ({}, {"values": [[1.0]], "rows": 1}, {"rows": 1}):
            with pytest.raises(DataError, match="Give either values"):
                belief.update(**wrong)


def test_a_value_that_cannot_be_is_named_by_its_row():
    with pytest.raises(DataError, match="inf at row 1"):
        NormalInverseChi2(0, 1, 1, 1).update(values=[1.0, math.inf])
    with pytest.raises(DataError, match="-3 at row 2"):
        Gamma(1, 1).update(values=[1, 2, -3])
    with pytest.raises(DataError, match=r"2\.5 at row 0"):
        Gamma(1, 1).log_evidence(values=[2.5])
    with pytest.raises(DataError, match="nan at column 1 of row 0"):
        NormalInverseWishart([0, 0], 1, 3, SQUARE).update(values=[[1.0, math.nan]])


def test_no_rows_with_a_scatter_are_refused():
    with pytest.raises(DataError, match="No rows scatter by 0"):
        NormalInverseChi2(0, 1, 1, 1).update(rows=0, mean=0, sum_squares=3)


def test_a_scatter_that_the_reference_prior_cannot_hold_is_refused():
    with pytest.raises(DataError, match="see more rows first"):
        NormalInverseChi2(0, 0, -1, 0).update(rows=1, mean=0, sum_squares=3)


def test_matrices_that_are_no_scatter_are_refused():
    for wrong, why in [
        ([[1, 2], [0, 1]], "not symmetric"),
        ([[1, 2], [2, 1]], "smallest eigenvalue"),
        ([[1, 0, 0], [0, 1, 0]], "square matrix"),
    ]:
        with pytest.raises(DataError, match=why):
            NormalInverseWishart([0, 0], 1, 3, wrong)


def test_levels_are_named_once_each_and_known():
    with pytest.raises(DataError, match="Name each level once"):
        Dirichlet([1, 1], levels=("a", "a"))
    with pytest.raises(DataError, match="Name each level once"):
        Dirichlet([1, 1, 1], levels=("a", "b"))
    with pytest.raises(DataError, match="no level 'c'"):
        Dirichlet([1, 1], levels=("a", "b")).update({"c": 1})
    with pytest.raises(DataError, match="numbered 0 to 1"):
        Dirichlet([1, 1]).predict(2)
    with pytest.raises(DataError, match="one count per level"):
        Dirichlet([1, 1]).update([1, 2, 3])
    with pytest.raises(DataError, match="one prior count per level"):
        Dirichlet(2.0)


def test_shares_that_do_not_sum_to_one_have_no_density():
    with pytest.raises(DataError, match="sum to one"):
        Dirichlet([1, 1]).pdf([0.5, 0.6])


def test_a_student_of_one_degree_has_no_mean_but_a_location():
    coming = NormalInverseChi2(3, 1, 1, 1).predict()
    assert coming.location == 3.0
    assert coming.variance == math.inf
    with pytest.raises(DataError, match="use location"):
        _ = coming.mean


def test_an_expert_is_asked_in_their_own_terms():
    with pytest.raises(DataError, match="at most m"):
        Expert(4, 3)
    with pytest.raises(DataError, match="needs m"):
        Expert(2)
    with pytest.raises(DataError, match="sum to 3"):
        Expert([1, 2], 5)
    with pytest.raises(DataError, match="counts="):
        Expert([1, 2]).update(successes=1)
    with pytest.raises(DataError, match="successes="):
        Expert(1, 2).update(counts=[1, 1])
    with pytest.raises(DataError, match="as_dirichlet"):
        Expert([1, 2]).as_beta()


def test_a_column_takes_priors_by_group_in_any_order_of_levels_and_only_for_its_groups():
    rows, classes = {"colour": ["red", "blue", "red", "green"] * 3}, ["a", "b", "a", "b"] * 3
    alpha = np.array([[1.0, 2.0, 30.0], [4.0, 50.0, 6.0]])
    in_order = NaiveBayes(prior={"colour": Dirichlet(alpha)}).fit(rows, classes)
    named = Dirichlet(alpha[:, [2, 0, 1]], levels=("red", "blue", "green"))
    by_name = NaiveBayes(prior={"colour": named}).fit(rows, classes)
    np.testing.assert_array_equal(in_order.params_["colour"]["probability"], by_name.params_["colour"]["probability"])
    np.testing.assert_allclose(by_name.params_["colour"]["probability"][0], [1 / 39, 2 / 39, 36 / 39])
    with pytest.raises(DataError, match=r"'colour' has 2 groups, but its prior counts are of shape \(3, 3\)"):
        NaiveBayes(prior={"colour": Dirichlet(np.ones((3, 3)))}).fit(rows, classes)
