"""Laws of the one family that no table has by itself: a number along a line of others, in the nodes of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

from softcount.core.counts import Twofold, two_product
from softcount.errors import DataError
from softcount.families import Linear, Multinormal, Normal, Setting, floors
from softcount.families.learning import convert_stats, count_free
from softcount.families.setting import How
from softcount.priors import Beta

OFFSETS, SCALES = [0.0, 1e3, -1e6], [1.0, 2.0**-20, 2.0**60]


def setting_of(d: int, anchor: Any = 0.0, scale: Any = 1.0, groups: int = 2) -> Setting:
    each = np.broadcast_to(np.asarray(anchor, float), d).copy(), np.broadcast_to(np.asarray(scale, float), d).copy()
    return Setting(("y",), groups, ("y",), *each, floor=1e-6)


def counted(rows: np.ndarray, groups: np.ndarray, setting: Setting) -> Twofold:
    """Rows, sums and exact products by group, added row by row."""
    d = rows.shape[1]
    total = Twofold.of(np.zeros((setting.groups, 1 + d + d * d)))
    for row, g in zip(rows, groups, strict=True):
        t = (row - setting.anchor) * setting.scale
        product, lost = two_product(t[:, None], t[None, :])
        high, low = np.zeros((2, setting.groups, 1 + d + d * d))
        high[g], low[g] = np.concatenate([[1.0], t, product.ravel()]), np.concatenate([np.zeros(1 + d), lost.ravel()])
        total = total + Twofold(high, low)
    return total


def line_of(d: int) -> Linear:
    return Linear(tuple(f"x{j}" for j in range(1, d)))


@st.composite
def tables(draw: Any) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Rows of a number and one to three parents, their groups, and the unit they are in."""
    d, n = draw(st.integers(2, 4)), draw(st.integers(0, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    offset, scale = draw(st.sampled_from(OFFSETS)), draw(st.sampled_from(SCALES))
    rows = np.round(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)), 2)
    if draw(st.booleans()):
        rows[:, -1] = 1.5
    return (rows + offset) * scale, rng.integers(2, size=n), offset * scale, 1 / scale


def varies(rows: np.ndarray) -> bool:
    """Whether the number varies: where it does not, its deviation is the rounding of the number itself."""
    return len(rows) > 1 and rows[:, 0].std() > 0


@given(tables(), st.sampled_from(["ml", "map", "mean"]), st.sampled_from([0.0, 1.0, 2.5]))
def test_no_line_is_better_than_the_estimate(table: Any, how: How, prior: float) -> None:
    rows, groups, anchor, scale = table
    family, setting = line_of(rows.shape[1]), setting_of(rows.shape[1], anchor, scale)
    stats = counted(rows, groups, setting)
    hyper = family.hyper(prior, stats, setting)
    best = family.estimate(stats, hyper, how)

    def height(params: Any) -> float:
        return family.completed(stats, params) + float(np.sum(family.log_prior(params, hyper, how)))

    assert all(np.isfinite(value).all() for value in best.values()) and (best["variance"] > 0).all()
    assume(varies(rows))
    rng, top = np.random.default_rng(0), height(best)
    for size in (1e-4, 1e-2, 1.0):
        step = size * floors.deviation(family, best) * rng.normal(size=best["line"].shape)
        assert height(best | {"line": best["line"] + step}) <= top + 1e-7 * max(1.0, abs(top))
        wider = floors.clip(family, best | {"variance": best["variance"] * np.exp(size * rng.normal(size=2))}, hyper)
        assert height(wider) <= top + 1e-7 * max(1.0, abs(top))


@given(tables())
def test_completed_rows_are_as_likely_as_one_by_one(table: Any) -> None:
    rows, groups, anchor, scale = table
    assume(varies(rows))
    family, setting = line_of(rows.shape[1]), setting_of(rows.shape[1], anchor, scale)
    stats = counted(rows, groups, setting)
    params = family.estimate(stats, family.hyper(1.0, stats, setting), "mean")
    moved = (rows - setting.anchor) * setting.scale
    centre = params["line"][groups, 0] + (params["line"][groups, 1:] * moved[:, 1:]).sum(axis=1)
    right = norm.logpdf(moved[:, 0], centre, np.sqrt(params["variance"][groups])).sum()
    assert family.completed(stats, params) == pytest.approx(right, rel=1e-8, abs=1e-8)


@given(tables())
def test_two_halves_add_to_the_whole_and_are_taken_out_again(table: Any) -> None:
    rows, groups, anchor, scale = table
    setting, half = setting_of(rows.shape[1], anchor, scale), len(rows) // 2
    left, right = counted(rows[:half], groups[:half], setting), counted(rows[half:], groups[half:], setting)
    whole = counted(rows, groups, setting)
    np.testing.assert_allclose((left + right).value, whole.value, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose((whole - right).value, left.value, rtol=1e-13, atol=1e-12)
    family = line_of(rows.shape[1])
    assert not family.is_overdrawn(whole, whole - right, 1e-6)
    assert half == 0 or family.is_overdrawn(left, left - whole - whole, 1e-6)


@given(tables(), st.sampled_from([0.0, 3.0, -700.0]), st.sampled_from([1.0, 0.25, 8.0]))
def test_statistics_about_other_anchors_are_those_counted_there(table: Any, by: float, ratio: float) -> None:
    rows, groups, anchor, scale = table
    d = rows.shape[1]
    old, new = setting_of(d, anchor, scale), setting_of(d, anchor + by / scale, scale * ratio)
    family = line_of(d)
    moved = convert_stats(family, counted(rows, groups, old), family, old, new).value
    np.testing.assert_allclose(moved, counted(rows, groups, new).value, rtol=1e-9, atol=1e-6 * ratio**2)


@given(tables())
def test_statistics_of_parents_in_another_order_are_put_in_order(table: Any) -> None:
    rows, groups, anchor, scale = table
    d, family = rows.shape[1], line_of(rows.shape[1])
    units = scale * 2.0 ** np.arange(d)
    back = np.array([0, *range(d - 1, 0, -1)])
    other, mine = setting_of(d, anchor, units[back]), setting_of(d, anchor, units)
    moved = convert_stats(family, counted(rows[:, back], groups, other), Linear(family.parents[::-1]), other, mine)
    np.testing.assert_allclose(moved.value, counted(rows, groups, mine).value, rtol=1e-13, atol=1e-13)


@given(tables())
def test_public_parameters_come_back_private(table: Any) -> None:
    rows, groups, anchor, scale = table
    family, setting = line_of(rows.shape[1]), setting_of(rows.shape[1], anchor, scale)
    stats = counted(rows, groups, setting)
    params = family.estimate(stats, family.hyper(1.0, stats, setting), "mean")
    public = family.public(params, setting)
    assert public["coefficients"].shape == (2, rows.shape[1] - 1) and public["intercept"].shape == (2,)
    back = family.private(public, setting)
    size = 1e-9 * (1 + np.abs(anchor * scale))
    np.testing.assert_allclose(back["line"], params["line"], rtol=1e-9, atol=size)
    np.testing.assert_allclose(back["variance"], params["variance"], rtol=1e-12)
    assert family.density(params, setting).find_fault() is None
    assert family.density(params | {"variance": -params["variance"]}, setting).find_fault()
    assert len(family.density(params, setting).describe()) == 2


@given(tables(), st.sampled_from([0.5, 1.0, 4.0]))
def test_all_lines_of_a_complete_graph_have_the_evidence_of_one_block(table: Any, prior: float) -> None:
    """Whatever the order of the numbers: graphs that say the same are equally probable."""
    rows, groups, anchor, scale = table
    d = rows.shape[1]
    if len(rows) < 3 or (rows.std(axis=0) == 0).any():
        return
    block = setting_of(d, anchor, scale)
    stats = counted(rows, groups, block)
    right = Multinormal().evidence(stats, Multinormal().hyper(prior, stats, block))
    for order in (np.arange(d), np.arange(d)[::-1]):
        total = 0.0
        for place, j in enumerate(order):
            columns = [j, *order[:place]]
            setting = setting_of(1 + place, anchor, scale)
            own = counted(rows[:, columns], groups, setting)
            if place == 0:
                column = own.spread(1)
                hyper = Normal().hyper(prior, column, setting)
                total += Normal().evidence(column, hyper)
            else:
                family = line_of(1 + place)
                total += family.evidence(own, family.hyper(prior, own, setting))
        assert total == pytest.approx(right, rel=1e-8, abs=1e-6)


@given(tables())
def test_units_change_the_evidence_and_the_likelihood_only_by_themselves(table: Any) -> None:
    rows, groups, anchor, scale = table
    d, family = rows.shape[1], line_of(rows.shape[1])
    found = []
    for unit in (scale, 4.0 * scale):
        setting = setting_of(d, anchor, unit)
        stats = counted(rows, groups, setting)
        hyper = family.hyper(1.0, stats, setting)
        params = family.estimate(stats, hyper, "mean")
        logs = family.completed(stats, params), family.evidence(stats, hyper), 0.0
        units = [family.log_unit(stats, one) for one in (setting, setting, setting.in_deviations(hyper))]
        found.append(np.array(logs) + units)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-6)


def test_parameters_are_counted_and_groups_without_rows_are_those_of_the_column() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal([0.0, 5.0, 1.0], size=(20, 3))
    family, setting = line_of(3), setting_of(3, groups=3)
    stats = counted(rows, np.zeros(20, int), setting)
    assert count_free(family, setting, 3) == 12
    for how in ("ml", "mean"):
        params = family.estimate(stats, family.hyper(2.0, stats, setting), how)  # type: ignore[arg-type]
        np.testing.assert_allclose(params["line"][1:], [[rows[:, 0].mean(), 0.0, 0.0]] * 2, atol=1e-12)
        np.testing.assert_allclose(params["variance"][1:], rows[:, 0].var(), rtol=1e-12)


def test_a_floor_is_in_the_unit_of_the_column() -> None:
    x = np.arange(10.0)
    for size in (1e-30, 1.0, 1e30):
        rows = np.stack([3.0 * x, x], axis=1) * size
        setting = setting_of(2, groups=1)
        stats = counted(rows, np.zeros(10, int), setting)
        family = line_of(2)
        params = family.estimate(stats, family.hyper(0.0, stats, setting), "ml")
        np.testing.assert_allclose(params["variance"], 1e-6 * rows[:, 0].var(), rtol=1e-9)
        np.testing.assert_allclose(params["line"][:, 1], 3.0, rtol=1e-12)


@pytest.mark.parametrize("prior", [-1.0, np.nan, "nonsense", Beta(1.0, 1.0), True])
def test_senseless_priors_are_refused(prior: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(9, 2))
    setting = setting_of(2, groups=1)
    with pytest.raises(DataError):
        line_of(2).hyper(prior, counted(rows, np.zeros(9, int), setting), setting)
