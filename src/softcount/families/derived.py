"""What follows of a family from what it must say: slopes, divergences, entropies, evidence, what makes no sense.

Each holds for any family. Those with a formula of their own say it instead, and laws compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.families.setting import SMALLEST, How, Hyper, Line, Params, Setting
from softcount.numerics.twofold import Twofold

if TYPE_CHECKING:
    from softcount.families.base import Family

DRAWS = 4096
STEP = 1e-3
"""Of a parameter, by which it is moved: with five points the error is near 1e-12 of the slope."""
POINTS = ((-2.0, 1 / 12), (-1.0, -2 / 3), (1.0, 2 / 3), (2.0, -1 / 12))
"""Where a slope is told from, in steps, and what each place weighs."""


def slope_by_differences(family: Family, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
    """How `completed` plus `log_prior` rises with each parameter of the chart, from five places around it.

    A parameter that several groups or columns share has its slope divided between them.
    """
    chart = {name: np.array(params[name], dtype=float) for name in family.chart}
    imagined = family.imagined_stats(hyper, how)
    known = None if imagined is None else stats.value + imagined

    def height(there: Params) -> Any:
        """What rises: of each group where the whole is a product, or of all of them."""
        if known is not None:
            return product(known, family.natural(there))
        return family.completed(stats, params | there) + np.sum(family.log_prior(params | there, hyper, how))

    found = {}
    for name, line in family.chart.items():
        units, apart = _steps(family, chart, name, line), np.ndim(height(chart))
        found[name] = np.zeros(chart[name].shape)
        for inner in np.ndindex(*chart[name].shape[apart:]):
            spot = (*[slice(None)] * apart, *inner)
            places = [(chart | {name: _moved(chart[name], spot, by * units)}, weight) for by, weight in POINTS]
            found[name][spot] = sum(weight * height(there) for there, weight in places) / units[spot]
    return {name: _shared(value) if name in family.shared_by_groups else value for name, value in found.items()}


def _moved(value: np.ndarray, spot: Any, by: np.ndarray) -> np.ndarray:
    moved = value.copy()
    moved[spot] += by[spot]
    return moved


def product(stats: np.ndarray, natural: np.ndarray) -> np.ndarray:
    """Statistics times natural parameters, summed over the features; nothing times infinity is nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(stats != 0, stats * natural, 0.0).sum(axis=-1))


def _steps(family: Family, params: Params, name: str, line: Line) -> np.ndarray:
    """How far each number of a parameter is moved: little enough to stay where it makes sense."""
    value = params[name]
    if line == "plain":
        return np.broadcast_to(STEP * np.asarray(family.deviation(params)), value.shape)
    if line == "covariance":
        wide = np.sqrt(np.diagonal(value, axis1=-2, axis2=-1))
        return np.asarray(STEP * wide[..., :, None] * wide[..., None, :])
    room = np.minimum(value, 1.0 - value) if line == "share" else value
    return np.maximum(STEP * room, SMALLEST)


def _shared(slope: np.ndarray) -> np.ndarray:
    return np.broadcast_to(slope.mean(axis=0), slope.shape)


def schwarz_evidence(family: Family, stats: Twofold, hyper: Hyper) -> float:
    """Log marginal likelihood of rows with these statistics, in counting units and without `base`.

    With a proper prior it is the log of the product of one-step-ahead predictions. Where the prior has no say in some
    parameter, what that parameter's prior would add is left out: only priors of that kind can be compared. Here, where
    no closed form is given, it is the likelihood at the posterior mean less half the logarithm of the rows for every
    parameter (Schwarz's approximation to Laplace's).
    """
    params = family.estimate(stats, hyper, "mean")
    size = sum(params[name].size for name in family.chart)
    rows = family.observed(stats.value)
    return family.completed(stats, params) - 0.5 * size * float(np.log(max(rows or 1.0, 1.0)))


def draws(family: Family, params: Params) -> Any:
    """(groups x 4,096) values drawn from every group, the same each time."""
    count = len(next(iter(params.values())))
    drawn = family.draw(params, np.repeat(np.arange(count), DRAWS), np.random.default_rng(0))
    return drawn.reshape(count, DRAWS, *drawn.shape[1:])


def divergence(family: Family, params: Params, shares: np.ndarray) -> np.ndarray:
    """How far each group's distribution is from the whole table's, in nats, from public parameters.

    It is E[T] . (eta of the group - eta of the whole), from the mean features.
    The whole is the member of the family with the mean features of all groups together; of a predictive form the
    parameters are plugged in. Without mean features it is the mixture of the groups, and divergences are averages
    over draws.
    """
    plain = {name: params[name] for name in family.chart}
    means = family.mean_features(plain) if family.is_product(plain) else None
    if means is None:
        drawn = draws(family, params)
        scored = family.score(drawn.reshape(-1, *drawn.shape[2:]), params, Setting())
        return from_mixture(scored.reshape(*drawn.shape[:2], -1), shares)
    together = Twofold.of((shares @ means)[None])
    whole = family.natural(family.estimate(together, family.hyper(0.0, together, Setting()), "ml"))
    return product(means, family.natural(plain) - whole)


def entropy(family: Family, params: Params, simple: bool) -> np.ndarray:
    """How surprising a value is on average in each group: -E[T] . eta where the density is no more (`simple`)."""
    means = family.mean_features(params) if simple and family.is_product(params) else None
    if means is not None:
        return -product(means, family.natural(params))
    groups = np.repeat(np.arange(len(next(iter(params.values())))), DRAWS)
    values = family.draw(params, groups, np.random.default_rng(0))
    scored = family.score(values, params, Setting())[np.arange(len(groups)), groups] + family.base(values)
    return np.asarray(-scored.reshape(-1, DRAWS).mean(axis=1))


def from_mixture(scored: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Divergences from the mixture of all groups: averages of (groups x values x groups) log-densities."""
    with np.errstate(divide="ignore"):
        whole = np.logaddexp.reduce(scored + np.log(shares), axis=-1)
    own = scored[np.arange(len(shares)), :, np.arange(len(shares))]
    return np.asarray((own - whole).mean(axis=1))


def senseless(chart: Mapping[str, Line], params: Params) -> str | None:
    """What makes parameters senseless, in words, from the lines they are on; None where nothing does."""
    shares = [name for name, line in chart.items() if line == "shares"]
    if any(not sums_to_one(params[name]) for name in shares):
        return f"its {_plural(shares)} do not sum to one"
    between = [name for name, line in chart.items() if line == "share"]
    if any(not ((params[name] >= 0) & (params[name] <= 1)).all() for name in between):
        return f"its {_plural(between)} are not between 0 and 1"
    positive = [name for name, line in chart.items() if line == "log"]
    if any(not (params[name] > 0).all() for name in positive):
        return f"its {_plural(positive)} are not all positive"
    for name in chart:  # a KeyError names what is missing
        params[name]
    return None


def sums_to_one(shares: np.ndarray) -> bool:
    """Whether they are shares of one, in every group; of nothing they always are."""
    if not shares.shape[-1]:
        return True
    return bool((shares >= 0).all() and np.abs(shares.sum(axis=-1) - 1).max(initial=0.0) <= 1e-9)


def _plural(names: list[str]) -> str:
    endings = {"y": "ies", "s": "ses"}
    return " and ".join(name[:-1] + endings.get(name[-1], f"{name[-1]}s") for name in names)
