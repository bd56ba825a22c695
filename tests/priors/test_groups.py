"""One object holds many distributions: each group answers as it would alone."""

import numpy as np
import pytest

from softcount.errors import DataError
from softcount.priors import Beta, Dirichlet, Gamma, NormalInverseChi2, NormalInverseWishart, NormalKnownVariance

MATRICES = np.array([[[2.0, 0.5], [0.5, 1.0]], [[3.0, 0.0], [0.0, 1.0]], [[1.0, -0.3], [-0.3, 4.0]]])

MANY = [
    (Beta, {"alpha": [2.0, 3.0, 9.0], "beta": [1.5, 4.0, 2.0]}, [0.2, 0.7]),
    (Gamma, {"shape": [2.0, 3.0, 19.0], "rate": [1.5, 4.0, 2.0]}, [0.0, 2.0, 5.0]),
    (Dirichlet, {"alpha": [[1.0, 2.0], [3.0, 1.5], [7.0, 7.0]]}, [[0.2, 0.8], [0.5, 0.5]]),
    (
        NormalInverseChi2,
        {"mean": [0.0, 1.0, 5.0], "kappa": [1.0, 2.0, 3.0], "nu": [3.0, 4.0, 5.0], "variance": [1.0, 2.0, 9.0]},
        [0.5, 3.0],
    ),
    (
        NormalKnownVariance,
        {"mean": [0.0, 1.0, 5.0], "mean_variance": [1.0, 2.0, 3.0], "variance": [1.0, 2.0, 9.0]},
        [0.5, 3.0],
    ),
    (
        NormalInverseWishart,
        {"mean": [[0.0, 1.0], [2.0, 2.0], [5.0, 0.0]], "kappa": [1.0, 2.0, 3.0], "nu": [3.0, 4.0, 5.0],
         "scale": MATRICES},
        [[0.5, 3.0], [1.0, 1.0]],
    ),
]  # fmt: skip

ROWS = {
    Beta: {"successes": 2, "failures": 1},
    Gamma: {"values": [2, 0, 5]},
    Dirichlet: {"counts": [2, 1]},
    NormalInverseChi2: {"values": [2.0, 0.0, 5.0]},
    NormalKnownVariance: {"values": [2.0, 0.0, 5.0]},
    NormalInverseWishart: {"values": [[2.0, 0.0], [5.0, 1.0]]},
}

ANSWERS = [
    "mean",
    "mode",
    "variance",
    "joint_mode",
    "variance_mean",
    "variance_mode",
    "covariance_mode",
    "mean_variance",
]

every = pytest.mark.parametrize(
    ("kind", "parameters", "points"), MANY, ids=lambda value: getattr(value, "__name__", "")
)


def alone(kind, parameters, group):
    return kind(**{name: value[group] for name, value in parameters.items()})


def compare(together, single, group):
    if isinstance(together, tuple):
        for one, other in zip(together, single, strict=True):
            compare(one, other, group)
    else:
        np.testing.assert_allclose(together[group], single, rtol=1e-13)


@every
def test_every_group_answers_as_it_would_alone(kind, parameters, points):
    together = kind(**parameters)
    for group in range(3):
        single = alone(kind, parameters, group)
        for name in ANSWERS:
            if hasattr(kind, name):
                compare(getattr(together, name), getattr(single, name), group)
        compare(together.pdf(points), single.pdf(points), group)
        compare(together.interval(0.9), single.interval(0.9), group)
        data = ROWS[kind]
        compare(together.log_evidence(**data), single.log_evidence(**data), group)
        if hasattr(kind, "predict_log"):
            compare(together.predict_log(points), single.predict_log(points), group)
            compare(together.predict(points), single.predict(points), group)
            compare(together.predict().interval(0.8), single.predict().interval(0.8), group)


@every
def test_groups_come_first_and_points_after(kind, parameters, points):
    per_point = np.ndim(points) - (kind in (Dirichlet, NormalInverseWishart))
    assert np.shape(kind(**parameters).pdf(points)) == (3, *np.shape(points)[:per_point])
    assert np.shape(alone(kind, parameters, 0).pdf(points)) == np.shape(points)[:per_point]


@every
def test_draws_of_groups_have_the_shape_and_spread_of_each_alone(kind, parameters, points):
    drawn = kind(**parameters).sample(3000, random_state=1)
    first = drawn[0] if isinstance(drawn, tuple) else drawn
    assert first.shape[:2] == (3, 3000)
    for group in range(3):
        lone = alone(kind, parameters, group).sample(3000, random_state=2)
        other = lone[0] if isinstance(lone, tuple) else lone
        error = np.sqrt(first[group].var(axis=0) / 3000 + other.var(axis=0) / 3000)
        assert np.all(np.abs(first[group].mean(axis=0) - other.mean(axis=0)) < 5 * error)


def test_one_prior_takes_the_counts_of_many_groups():
    assert Beta(1, 1).update(successes=[3, 0], failures=[1, 2]) == Beta([4, 1], [2, 3])
    assert Dirichlet([1, 1]).update([[3, 1], [0, 2]]) == Dirichlet([[4, 2], [1, 3]])
    assert Gamma(1, 1).update(total=[3, 0], rows=[1, 2]) == Gamma([4, 1], [2, 3])
    values = np.array([[1.0, 2.0, np.nan], [5.0, np.nan, np.nan]])
    both = NormalInverseChi2(0, 1, 1, 1).update(values)
    for group, row in enumerate(values):
        single = NormalInverseChi2(0, 1, 1, 1).update(row[~np.isnan(row)])
        assert (both.mean[group], both.variance[group]) == (single.mean, single.variance)
    block = np.arange(12.0).reshape(2, 3, 2) ** 2
    many = NormalInverseWishart([0, 0], 1, 3, np.eye(2)).update(block)
    assert many.mean.shape == (2, 2)
    one = NormalInverseWishart([0, 0], 1, 3, np.eye(2)).update(block[1])
    np.testing.assert_allclose(many.scale[1], one.scale)


def test_scalars_in_give_floats_out():
    answers = [Beta(2, 3).mean, Beta(2, 3).pdf(0.5), Gamma(2, 3).mode, NormalInverseChi2(0, 1, 1, 1).predict_log(2)]
    assert all(type(answer) is float for answer in answers)


def test_an_empty_group_keeps_its_prior():
    prior = NormalInverseChi2([1.0, 2.0], [0.0, 0.5], [0.0, 1.0], [3.0, 4.0])
    assert prior.update(rows=[0, 0], mean=[np.nan, 0.0], sum_squares=[0, 0]) == prior


def test_groups_that_do_not_match_are_refused():
    with pytest.raises(DataError, match="different numbers of groups"):
        Beta([1, 2, 3], [1, 2])


def test_an_error_names_the_group():
    with pytest.raises(DataError, match="alpha is -1 at group 2"):
        Beta([1, 2, -1], 1)
    with pytest.raises(DataError, match="level 'lime' of group 1"):
        Dirichlet([[1, 1], [1, np.nan]], levels=("cherry", "lime"))
