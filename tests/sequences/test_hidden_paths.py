"""Sums over hidden paths: the plain and the compiled kernels beside every path tried one by one."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from every_path import AllPaths, every_path, path_log
from softcount.kernels import hidden_paths, reference_paths

KERNELS = {"plain": reference_paths, "compiled": hidden_paths}
each_kernel = pytest.mark.parametrize("kernels", KERNELS.values(), ids=list(KERNELS))


def small_chain(seed: int) -> dict[str, Any]:
    """A few sequences of a few steps: scores near and far apart, gaps, steps and transitions that cannot be."""
    rng = np.random.default_rng(seed)
    states, count = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    lengths = rng.integers(1, 6, count)
    scores = rng.normal(0.0, rng.choice([1.0, 8.0, 500.0]), (lengths.sum(), states))
    scores[rng.random(len(scores)) < 0.2] = 0.0  # a step that shows nothing
    if seed % 3 == 0:
        scores[rng.random(scores.shape) < 0.15] = -np.inf
    following = rng.dirichlet(np.full(states, 0.5), states)
    if seed % 2:
        following[rng.random(following.shape) < 0.3] = 0.0
        following /= np.maximum(following.sum(axis=1, keepdims=True), 1e-9)
    first = rng.dirichlet(np.ones(states)) * (rng.random(states) < 0.8)
    borders = np.concatenate([[0], np.cumsum(lengths)])
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], count)
    return {"scores": scores, "borders": borders, "weights": weights, "first": first, "following": following}


@cache
def right_sums(seed: int) -> AllPaths:
    return every_path(**small_chain(seed))


def near(found: np.ndarray, right: np.ndarray) -> None:
    """To 1e-12, and infinite at the same places."""
    finite = np.isfinite(right)
    assert np.array_equal(finite, np.isfinite(found))
    assert np.allclose(found[finite], right[finite], rtol=1e-12, atol=1e-12)


@each_kernel
def test_sums_are_those_of_every_path(kernels: ModuleType) -> None:
    for seed in range(200):
        given = small_chain(seed)
        right = right_sums(seed)
        members = given["scores"].copy()
        rest = {name: given[name] for name in ("borders", "weights", "first", "following")}
        logs, firsts, nexts = kernels.expect_paths(members, **rest)
        for found, wanted in (
            (logs, right.logs),
            (firsts, right.firsts),
            (nexts, right.nexts),
            (members, right.members),
        ):
            near(found, wanted)


@each_kernel
def test_steps_are_as_likely_as_every_path_to_them_says(kernels: ModuleType) -> None:
    for seed in range(100):
        given = small_chain(seed)
        right = right_sums(seed)
        del given["weights"]
        given["scores"] = filtered = given["scores"].copy()
        heights = kernels.filter_paths(**given)
        for begin, end, log in zip(given["borders"], given["borders"][1:], right.logs, strict=False):
            if np.isfinite(log):
                near(heights[begin:end], right.steps[begin:end])
                assert np.allclose(filtered[begin:end].sum(axis=1), 1.0)
                assert np.isclose(heights[begin:end].sum(), log)
            else:
                assert not np.isfinite(heights[begin:end]).all()


@each_kernel
def test_the_likeliest_path_is_the_best_of_all(kernels: ModuleType) -> None:
    for seed in range(100):
        given = small_chain(seed)
        right = right_sums(seed)
        scores, borders = given["scores"], given["borders"]
        path, logs = kernels.best_paths(scores.copy(), borders, given["first"], given["following"])
        near(logs, right.likeliest)
        for begin, end, log in zip(borders, borders[1:], logs, strict=False):
            if np.isfinite(log):
                own = path_log(tuple(path[begin:end]), scores[begin:end], given["first"], given["following"])
                assert own == pytest.approx(log, rel=1e-12)


@pytest.mark.parametrize("states", [1, 2, 3, 7, 8, 9, 17])
@pytest.mark.parametrize("sparse", [False, True])
def test_compiled_sums_are_the_plain_ones_for_any_number_of_states_and_lengths(states: int, sparse: bool) -> None:
    rng = np.random.default_rng(states)
    lengths = np.array([1, 700, 3, 90, 1, 64, 5, 8, 8, 9, 2, 1200])
    borders = np.concatenate([[0], np.cumsum(lengths)])
    scores = 3.0 * rng.normal(size=(lengths.sum(), states))
    first, following = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
    if sparse:
        following = np.triu(following) + np.eye(states)
        following /= following.sum(axis=1, keepdims=True)
    weights = rng.random(len(lengths)) + 0.5
    both = []
    for kernels in KERNELS.values():
        members, filtered = scores.copy(), scores.copy()
        sums = kernels.expect_paths(members, borders, weights, first, following)
        heights = kernels.filter_paths(filtered, borders, first, following)
        path, logs = kernels.best_paths(scores.copy(), borders, first, following)
        both.append([*sums, members, heights, filtered, path, logs])
    for plain, compiled in zip(*both, strict=True):
        assert np.allclose(plain, compiled, rtol=1e-11, atol=1e-12)


@each_kernel
def test_a_path_all_but_ruled_out_may_be_the_only_one(kernels: ModuleType) -> None:
    """A state that each step makes less likely by a factor of 1e-40, and that alone can show the last step."""
    steps = 60
    scores = np.zeros((steps, 2))
    scores[:-1, 0] = -92.0
    scores[-1, 1] = -np.inf
    following = np.array([[0.5, 0.5], [0.0, 1.0]])
    first = np.array([1.0, 0.0])
    members = scores.copy()
    logs, _, nexts = kernels.expect_paths(members, np.array([0, steps]), None, first, following)
    assert logs[0] == pytest.approx(-92.0 * (steps - 1) + (steps - 1) * np.log(0.5), rel=1e-12)
    assert np.allclose(members, [1.0, 0.0]) and nexts[0, 0] == pytest.approx(steps - 1)
    path, _ = kernels.best_paths(scores.copy(), np.array([0, steps]), first, following)
    assert not path.any()


@each_kernel
def test_a_step_that_shows_nothing_is_summed_out(kernels: ModuleType) -> None:
    rng = np.random.default_rng(0)
    following, first = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3))
    scores = rng.normal(size=(3, 3))
    scores[1] = 0.0
    logs, _, _ = kernels.expect_paths(scores.copy(), np.array([0, 3]), None, first, following)
    begun = first * np.exp(scores[0])
    assert logs[0] == pytest.approx(np.log(begun @ following @ following @ np.exp(scores[2])), rel=1e-12)


def test_long_sequences_keep_their_digits() -> None:
    """Counts of 200,000 steps beside the same in pieces of exact rational length: they add up to the steps."""
    rng = np.random.default_rng(1)
    steps, following = 200_000, np.array([[0.99, 0.01], [0.02, 0.98]])
    members = rng.normal(size=(steps, 2))
    _, firsts, nexts = hidden_paths.expect_paths(members, np.array([0, steps]), None, np.array([0.3, 0.7]), following)
    assert np.abs(members.sum(axis=1) - 1.0).max() < 1e-13
    assert nexts.sum() == pytest.approx(steps - 1, rel=1e-13) and firsts.sum() == pytest.approx(1.0, rel=1e-13)
    assert np.allclose(nexts.sum(axis=1), members[:-1].sum(axis=0), rtol=1e-12)
    assert np.allclose(nexts.sum(axis=0), members[1:].sum(axis=0), rtol=1e-12)
