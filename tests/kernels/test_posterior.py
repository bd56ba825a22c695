"""Log joint to memberships and evidence, and the exp and log beneath it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels import plain_loops

from softcount.kernels import fused, reference
from softcount.kernels.lanes import WIDTH, load_part, store_part
from softcount.kernels.lanes import fused as fused_kernel
from softcount.kernels.posterior import exp_lanes, log_lanes

KERNELS = pytest.mark.parametrize("kernels", [reference, fused], ids=["reference", "fused"])


@KERNELS
@settings(max_examples=60, deadline=None)
@given(
    rows=st.sampled_from([0, 1, 7, 8, 9, 600]), groups=st.sampled_from([1, 2, 6, 8, 9, 17]),
    spread=st.sampled_from([0.0, 1.0, 50.0, 1e5]), offset=st.sampled_from([0.0, -1e6, 700.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_memberships_and_evidence_match_the_plain_loops(
    kernels: ModuleType, rows: int, groups: int, spread: float, offset: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    joint = rng.normal(size=(rows, groups)) * spread + offset
    joint[rng.random(joint.shape) < 0.2] = -np.inf
    memberships, expected = plain_loops.normalise(joint)
    evidence = kernels.normalise(joint)
    np.testing.assert_allclose(joint, memberships, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(evidence, expected, rtol=1e-14, atol=1e-14)


@KERNELS
def test_an_impossible_row_has_no_members_and_no_nan(kernels: ModuleType) -> None:
    joint = np.array([[-np.inf, -np.inf, -np.inf], [0.0, -np.inf, 0.0]])
    evidence = kernels.normalise(joint)
    assert joint.tolist() == [[0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]
    assert evidence[0] == -np.inf
    assert evidence[1] == pytest.approx(np.log(2.0), rel=1e-15)


@fused_kernel
def exp_array(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.size)
    for at in range(0, x.size, WIDTH):
        store_part(out, at, exp_lanes(load_part(x, at, x.size - at)), x.size - at)
    return out


@fused_kernel
def log_array(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.size)
    for at in range(0, x.size, WIDTH):
        store_part(out, at, log_lanes(load_part(x, at, x.size - at)), x.size - at)
    return out


def ulps(got: np.ndarray, truth: np.ndarray) -> float:
    return float(np.max(np.abs(got - truth) / np.spacing(np.abs(truth)), initial=0.0))


def test_exp_is_within_two_units_of_numpy_over_its_whole_range() -> None:
    dense = np.concatenate([np.linspace(-708.0, 709.0, 1_000_003)[1:], -np.logspace(-320, 0, 10_000), np.zeros(3)])
    assert ulps(exp_array(dense), np.exp(dense)) <= 2.0


def test_exp_of_the_hopeless_is_zero() -> None:
    hopeless = np.array([-708.5, -745.0, -746.0, -1e4, -1e17, -1e300, -np.inf])
    assert not exp_array(hopeless).any()


def test_log_is_within_two_units_of_numpy() -> None:
    close_to_one = 1 + 2.0 ** -np.arange(53)
    dense = np.concatenate([np.linspace(1.0, 64.0, 500_001), np.logspace(-300, 300, 200_000), close_to_one])
    assert ulps(log_array(dense), np.log(dense)) <= 2.0
