"""The gamma shape's equation and its kin, against fifty digits and adaptive quadrature."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, polygamma, psi

from softcount.core.special import FAR, bend, excess, gap, height, log_integral, log_twofold, shape_of

SHAPES = 10.0 ** np.linspace(-3, 12, 301)


def test_the_shape_found_has_the_gap_it_was_asked_for() -> None:
    np.testing.assert_allclose(shape_of(gap(SHAPES)), SHAPES, rtol=5e-14)


def test_a_gap_of_nothing_is_an_enormous_shape_and_no_warning() -> None:
    with np.errstate(all="raise"):
        assert np.all(shape_of(np.array([0.0, -1e-20, -3.0])) > 1e90)


def test_series_and_direct_formulas_meet() -> None:
    k = np.array([FAR])
    assert height(k) == pytest.approx(k * np.log(k) - k - gammaln(k) + 0.5 * np.log(2 * np.pi), rel=1e-14)
    assert gap(k) == pytest.approx(np.log(k) - psi(k), rel=1e-13)
    assert bend(k) == pytest.approx(polygamma(1, k) - 1 / k, rel=1e-12)


def test_gap_and_bend_are_the_slopes_they_claim() -> None:
    k = np.array([0.02, 0.7, 3.0, 15.0, 17.0, 400.0])
    near, far = k * (1 - 1e-5), k * (1 + 1e-5)
    np.testing.assert_allclose((height(far) - height(near)) / (far - near), gap(k), rtol=1e-6)
    np.testing.assert_allclose((gap(near) - gap(far)) / (far - near), bend(k), rtol=1e-6)


@pytest.mark.parametrize("x", [3 + 1e-11, 3 - 1e-8, 3.0001, 3.374, 3.376, 2.63, 0.3, 1e-14, 1e-200, 18.0, 3e8])
def test_the_excess_keeps_its_digits(x: float) -> None:
    with localcontext(prec=60):
        ratio = Decimal(x) / 3
        right = float(ratio - 1 - ratio.ln())
    assert excess(np.array(x), np.array(3.0)) == pytest.approx(right, rel=5e-15)


def test_a_twofold_logarithm_has_thirty_digits() -> None:
    drawn = np.exp(np.random.default_rng(0).normal(0, 200, 300))
    x = np.concatenate([drawn, [1.0, 1 + 2**-50, 0.7071, 1.4142, 2.0**-1000]])
    found = log_twofold(x)
    with localcontext(prec=50):
        for value, hi, lo in zip(x.tolist(), found.hi.tolist(), found.lo.tolist(), strict=True):
            right = Decimal(value).ln()
            assert abs(right - Decimal(hi) - Decimal(lo)) <= abs(right) * Decimal("1e-30")


@pytest.mark.parametrize(("rows", "spare"), [(1.0, 0.3), (1.0, 5.0), (0.5, 0.1), (100.0, 3.0), (1e4, 1e-3), (1e6, 2e6)])
def test_the_integral_over_shapes_is_what_quadrature_finds(rows: float, spare: float) -> None:
    peak = np.log(shape_of(np.array(spare / rows)))
    top = rows * height(np.exp(peak)) - np.exp(peak) * spare
    width = (rows * np.exp(2 * peak) * bend(np.exp(peak))) ** -0.5

    def hump(u: float) -> float:
        return float(np.exp(rows * height(np.exp(u)) - np.exp(u) * spare - top))

    edges = peak + width * np.array([-60, -10, -3, 0, 3, 20])
    area = sum(quad(hump, a, b, epsabs=1e-13, limit=300)[0] for a, b in pairwise(edges))
    assert log_integral(np.array(rows), np.array(spare)) == pytest.approx(top + np.log(area), abs=1e-9)


@pytest.mark.parametrize(("rows", "spare"), [(10.0, 40.0), (10.0, 2.0), (10.0, 1e-3), (400.0, 900.0)])
def test_the_integral_within_bounds_is_cut_there(rows: float, spare: float) -> None:
    top = max(rows * height(k) - k * spare for k in np.linspace(0.5, 100.0, 2_000))

    def hump(u: float) -> float:
        return float(np.exp(rows * height(np.exp(u)) - np.exp(u) * spare - top))

    edges = np.log([0.5, 0.51, 0.6, 1.0, 3.0, 10.0, 50.0, 100.0])
    area = sum(quad(hump, a, b, epsabs=1e-14, limit=300)[0] for a, b in pairwise(edges))
    found = log_integral(np.array(rows), np.array(spare), 0.5, 100.0)
    assert found == pytest.approx(top + np.log(area), abs=1e-7)
