"""Every smoothing kernel is a symmetric density, at every bandwidth, and says the truth about itself."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from softcount.densities.kernels import KERNELS, named_kernel
from softcount.errors import DataError

NAMES = ["gaussian", "epanechnikov", "uniform", "triangular", "biweight", "triweight", "cosine", "logistic"]
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)


def integral(shape, low, high):
    """By parts between the kernel's corners, so that no jump is straddled."""
    edges = [low, *(x for x in (-1.0, 0.0, 1.0) if low < x < high), high]
    return sum(quad(shape, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(edges))


def end(kernel):
    return kernel.support if kernel.support < inf else 60.0


def test_there_are_eight():
    assert sorted(KERNELS) == sorted(NAMES)


@every_kernel
def test_it_is_symmetric_and_never_negative(kernel):
    u = np.random.default_rng(0).normal(size=1000) * 2
    np.testing.assert_array_equal(kernel.pdf(u), kernel.pdf(-u))
    np.testing.assert_allclose(kernel.cdf(u), 1 - kernel.cdf(-u), atol=1e-15)
    assert (kernel.pdf(u) >= 0).all()
    np.testing.assert_array_equal(kernel.pdf(np.array([-5.0, 5.0])) == 0, kernel.support < inf)


@every_kernel
@pytest.mark.parametrize("h", [1e-3, 0.7, 1.0, 42.0])
def test_it_integrates_to_one_at_every_bandwidth(kernel, h):
    edges = np.array([-end(kernel), -1.0, 0.0, 1.0, end(kernel)]) * h
    scaled = [quad(lambda x: kernel.pdf(np.float64(x / h)) / h, a, b, epsabs=1e-12)[0]
              for a, b in itertools.pairwise(edges)]  # fmt: skip
    assert sum(scaled) == pytest.approx(1.0, abs=1e-9)


@every_kernel
def test_its_cdf_is_the_integral_of_its_density(kernel):
    for u in (-3.0, -0.9, -0.3, 0.0, 0.2, 0.99, 1.0, 2.5):
        assert kernel.cdf(np.float64(u)) == pytest.approx(integral(kernel.pdf, -end(kernel), u), abs=1e-9)


@every_kernel
def test_its_constants_are_its_integrals(kernel):
    assert kernel.roughness == pytest.approx(integral(lambda u: kernel.pdf(u) ** 2, -end(kernel), end(kernel)))
    assert kernel.variance == pytest.approx(integral(lambda u: u * u * kernel.pdf(u), -end(kernel), end(kernel)))


@every_kernel
def test_its_draws_have_its_distribution(kernel):
    drawn = kernel.draw(np.random.default_rng(1), 20_000)
    assert kstest(drawn, kernel.cdf).pvalue > 1e-3
    assert drawn.var() == pytest.approx(kernel.variance, rel=0.05)


@every_kernel
def test_its_logarithm_is_that_of_its_density_and_goes_on_far_away(kernel):
    u = np.linspace(-0.99, 0.99, 41)
    np.testing.assert_allclose(kernel.log_pdf(u), np.log(kernel.pdf(u)), rtol=1e-12)
    far = kernel.log_pdf(np.array([1000.0]))[0]
    assert far == (
        -inf if kernel.support < inf else pytest.approx({"gaussian": -500000.9189385332}.get(kernel.name, -1000))
    )


@every_kernel
def test_beyond_its_reach_a_point_adds_next_to_nothing(kernel):
    nearest = np.array([0.0, 0.5, 3.0, 40.0])
    far = kernel.reach(nearest, 30.0)
    for near, there in zip(kernel.log_pdf(nearest), kernel.log_pdf(far * (1 + 1e-12)), strict=True):
        assert there == -inf or there - near <= -30.0 + 1e-9


@pytest.mark.parametrize("name", ["gaussian", "logistic"])
def test_no_sum_of_derivatives_is_further_above_the_peak_than_said(name):
    """A few kernels, shifted and weighed, lie above the derivatives: their masses bound every sum of derivatives."""
    kernel = KERNELS[name]
    u = np.linspace(-12, 12, 4801)
    step = 1e-2
    height = kernel.pdf(np.float64(0.0))

    def shape(x):
        return kernel.pdf(x) / height

    second = (shape(u + step) - 2 * shape(u) + shape(u - step)) / step**2
    fourth = (
        shape(u + 2 * step) - 4 * shape(u + step) + 6 * shape(u) - 4 * shape(u - step) + shape(u - 2 * step)
    ) / step**4
    covers = {
        "gaussian": (
            [0.85, 0.315, 0.315],
            [0, 1.67, -1.67],
            [0.62, 1.74, 1.74, 0.25, 0.25],
            [0, 0.86, -0.86, 2.48, -2.48],
        ),
        "logistic": ([0.484, 0.05, 0.05], [0, 2.82, -2.82], [1.002, 0.001, 0.001], [0, 6, -6]),
    }[name]
    for derivative, masses, places, said in (
        (second, *covers[:2], kernel.bends[0]), (fourth, *covers[2:], kernel.bends[1])
    ):  # fmt: skip
        above = sum(m * shape(u - s) for m, s in zip(masses, places, strict=True))
        assert (above - np.abs(derivative) >= -1e-3 * above).all()
        assert sum(masses) <= said + 1e-9


@pytest.mark.parametrize("name", ["tophat", "", None, 3])
def test_an_unknown_kernel_is_named_beside_those_there_are(name):
    with pytest.raises(DataError, match=r"there is no kernel .* gaussian, epanechnikov"):
        named_kernel(name)
