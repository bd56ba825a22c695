"""Worked example 5: AutoClass by hand, and expected counts by enumerating every completion."""

from itertools import product
from math import log, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc

ROWS = {"one": ["F", "T"], "two": ["T", "T"]}
START = {"weights": [0.7, 0.3], "one": {"T": [0.9, 0.3], "F": [0.1, 0.7]}, "two": {"T": [0.6, 0.2], "F": [0.4, 0.8]}}


def climbed(table, start, iterations, weights=None):
    """A mixture that has taken exactly so many textbook steps from `start`."""
    groups = len(start["weights"])
    mixture = sc.Mixture(groups, init=start, n_init=1, max_iter=iterations, tol=0, accelerate=False, estimate="ml")
    return mixture.fit(table, sample_weight=weights)


def share(mixture, column, level):
    """The probability of a level in each group."""
    return mixture.params_[column]["probability"][:, mixture.levels_[column].index(level)]


def test_memberships_at_the_start():
    members = climbed(ROWS, START, 0).predict_proba(ROWS)
    np.testing.assert_allclose(members[:, 0], [0.5, 0.954545], atol=5e-7)


def test_expected_counts_at_the_start():
    counts = climbed(ROWS, START, 0).counts_
    np.testing.assert_allclose(counts["(groups)"], [1.454545, 0.545455], atol=5e-7)
    np.testing.assert_allclose(counts["one"], [[0.5, 0.954545], [0.5, 0.045455]], atol=5e-7)
    np.testing.assert_allclose(counts["two"], [[0, 1.454545], [0, 0.545455]], atol=5e-7)


def test_parameters_after_one_step():
    mixture = climbed(ROWS, START, 1)
    np.testing.assert_allclose(mixture.weights_, [0.727273, 0.272727], atol=5e-7)
    np.testing.assert_allclose(share(mixture, "one", "T"), [0.65625, 0.083333], atol=5e-7)
    np.testing.assert_allclose(share(mixture, "two", "T"), [1, 1], atol=1e-15)


def test_the_log_likelihood_climbs_as_printed():
    mixture = climbed(ROWS, START, 1)
    assert mixture.trace_ == pytest.approx([-3.403280, -1.386294], abs=5e-7)
    assert mixture.log_likelihood_ == mixture.trace_[-1]
    assert mixture.n_iter_ == 1


def test_the_four_completions_have_the_printed_probabilities():
    found = {classes: chance for classes, chance, _ in completions(ROWS, START)}
    assert found[0, 0] == pytest.approx(0.4773, abs=5e-5)
    assert found[0, 1] == pytest.approx(0.0227, abs=5e-5)
    assert found[1, 0] == pytest.approx(0.4773, abs=5e-5)
    assert found[1, 1] == pytest.approx(0.0227, abs=5e-5)


# -- the law behind it: enumerating completions gives the same counts as summing memberships row by row


def completions(table, start):
    """Every assignment of classes to rows: (classes, its probability given the table, its weightless joint)."""
    names = list(table)
    rows = list(zip(*table.values(), strict=True))
    groups = range(len(start["weights"]))
    joint = [
        [
            start["weights"][g] * prod(start[c][x][g] for c, x in zip(names, row, strict=True) if x is not None)
            for g in groups
        ]
        for row in rows
    ]
    every = [
        (classes, prod(joint[i][g] for i, g in enumerate(classes))) for classes in product(groups, repeat=len(rows))
    ]
    total = sum(chance for _, chance in every)
    return [(classes, chance / total, chance) for classes, chance in every]


def enumerated_counts(table, start, weights, levels):
    """Expected counts and log-likelihood from the completions alone."""
    groups = len(start["weights"])
    counts = {"(groups)": np.zeros(groups)} | {name: np.zeros((groups, len(levels[name]))) for name in table}
    for classes, chance, _ in completions(table, start):
        for i, g in enumerate(classes):
            counts["(groups)"][g] += chance * weights[i]
            for name, cells in table.items():
                if cells[i] is not None:
                    counts[name][g, levels[name].index(cells[i])] += chance * weights[i]
    return counts


def row_log_likelihood(table, start, weights):
    names, total = list(table), 0.0
    for row, weight in zip(zip(*table.values(), strict=True), weights, strict=True):
        chance = sum(
            share * prod(start[c][x][g] for c, x in zip(names, row, strict=True) if x is not None)
            for g, share in enumerate(start["weights"])
        )
        total += weight * log(chance)
    return total


@st.composite
def tables(draw):
    """Up to ten rows of two or three discrete columns with holes, weights, and parameters to start from."""
    n, groups = draw(st.integers(1, 10)), draw(st.integers(2, 3))
    if groups == 3:
        n = min(n, 7)  # 3 ** 7 completions are enough
    widths = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    chance = st.integers(1, 9)
    start: dict = {"weights": shares(draw(st.lists(chance, min_size=groups, max_size=groups)))}
    table = {}
    for j, width in enumerate(widths):
        levels = [False, True] if width == 2 else ["a", "b", "c"]
        by_group = [shares(draw(st.lists(chance, min_size=width, max_size=width))) for _ in range(groups)]
        start[f"x{j}"] = {level: [row[k] for row in by_group] for k, level in enumerate(levels)}
        table[f"x{j}"] = draw(st.lists(st.sampled_from([*levels, None]), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.25]), min_size=n, max_size=n))
    return table, start, weights


def shares(numbers):
    return [number / sum(numbers) for number in numbers]


@settings(max_examples=40, deadline=None)
@given(tables())
def test_expected_counts_are_those_of_every_completion(made):
    table, start, weights = made
    mixture = climbed(table, start, 0, weights)
    wanted = enumerated_counts(table, start, weights, mixture.levels_)
    for name, counts in wanted.items():
        np.testing.assert_allclose(mixture.counts_[name], counts, rtol=1e-11, atol=1e-12, err_msg=name)
    assert mixture.log_likelihood_ == pytest.approx(row_log_likelihood(table, start, weights), rel=1e-12, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(tables())
def test_one_step_divides_the_counts_of_every_completion(made):
    table, start, weights = made
    mixture = climbed(table, start, 1, weights)
    wanted = enumerated_counts(table, start, weights, mixture.levels_)
    np.testing.assert_allclose(mixture.weights_, wanted.pop("(groups)") / sum(weights), rtol=1e-11)
    for name, counts in wanted.items():
        if any(cell is not None for cell in table[name]):
            expected = counts / counts.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(mixture.params_[name]["probability"], expected, rtol=1e-11, atol=1e-13)
