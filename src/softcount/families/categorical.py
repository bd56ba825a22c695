"""Categorical columns: a probability for each category, looked up by code, or for each group of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import Twofold
from softcount.core.formulas import Formula, Keys, LevelCode, LookUp, Sizes, clamp
from softcount.core.lazy import xlogy
from softcount.core.special import log_dirichlet_multinomial, log_of
from softcount.errors import DataError
from softcount.families.base import Family, register, scalar_prior
from softcount.families.density import Columns, Density, Rng
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.priors import Beta, Dirichlet, Expert
from softcount.table import wording
from softcount.table.discretise import level_groups
from softcount.table.schema import Field, Key, Kind

NO_SHARE = "its share for levels never seen is no share"


def concentration(prior: Any, family: Family, setting: Setting, levels: int) -> np.ndarray:
    """Return the prior counts per category, in the order of the categories."""
    if isinstance(prior, Expert):
        prior = prior.as_beta() if levels == 2 and np.ndim(prior.n) == 0 else prior.as_dirichlet()
    if isinstance(prior, Beta):
        if levels != 2:
            raise DataError(f"column {setting.keys[0]!r} has {levels} levels; a Beta prior is for two. Use Dirichlet.")
        prior = Dirichlet(np.stack([prior.beta, prior.alpha], axis=-1))  # groups first, if there is one prior per class
    if isinstance(prior, Dirichlet):
        return _match_levels(prior, setting, levels)
    return np.full(levels, scalar_prior(prior, family, levels, setting.groups))


def _match_levels(prior: Dirichlet, setting: Setting, levels: int) -> np.ndarray:
    alpha = np.asarray(prior.alpha, dtype=np.float64)
    if alpha.shape[:-1] not in ((), (1,), (setting.groups,)):
        raise DataError(
            f"column {setting.keys[0]!r} has {setting.groups} groups, but its prior counts are of shape "
            f"{alpha.shape}. Give one line of numbers for all groups, or one for each."
        )
    if prior.levels is not None:
        given = dict(zip(prior.levels, np.moveaxis(alpha, -1, 0), strict=True))
        none = np.zeros(alpha.shape[:-1])
        return np.stack([given.get(level, none) for level in setting.levels], axis=-1)
    if alpha.shape[-1] != levels:
        raise DataError(
            f"column {setting.keys[0]!r} has {levels} levels {list(setting.levels)[:8]}, "
            f"but its Dirichlet prior has {alpha.shape[-1]}. Give one number per level, in sorted order."
        )
    return alpha


def estimate_shares(counts: np.ndarray, alpha: np.ndarray, how: How, what: str) -> np.ndarray:
    """Return shares from counts and prior counts along the last axis; equal shares if all are zero."""
    if how == "map":
        alpha = alpha - 1.0
        if (counts + alpha < 0).any():
            raise DataError(
                f"{what}: a count plus its concentration is below one, so the posterior has no interior mode. "
                f"Use {remedies.estimate_mean()}, or a prior of 1 or more."
            )
    raw = counts if how == "ml" else counts + alpha
    total = raw.sum(axis=-1, keepdims=True)
    return np.where(total > 0, raw / np.where(total > 0, total, 1.0), 1.0 / max(raw.shape[-1], 1))


def unseen_share(counts: np.ndarray, alpha: np.ndarray, how: How) -> np.ndarray:
    """Return the mass reserved for an unseen category: that of one category with average prior counts."""
    reserve = 0.0 if how == "ml" else alpha.sum(axis=-1) / max(alpha.shape[-1], 1)
    return np.asarray(reserve / np.maximum(counts.sum(axis=-1) + alpha.sum(axis=-1) + reserve, SMALLEST))


def prior_counts(hyper: Hyper, how: How) -> np.ndarray:
    """Return the prior counts per category that are part of the objective."""
    alpha = hyper["alpha"]
    return np.zeros_like(alpha) if how == "ml" else alpha - 1.0 if how == "map" else alpha


def shares_evidence(counts: np.ndarray, alpha: np.ndarray) -> float:
    """Return the log-probability of rows with these counts, with their shares integrated out under prior counts."""
    return float(log_dirichlet_multinomial(counts, alpha).sum())


class SharesDensity(Density):
    """Probabilities of categories, words or columns: `probability`, which sums to one along the last axis."""

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(-xlogy(self.own["probability"], self.own["probability"]).sum(axis=-1))

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        return divergence_of_shares(self.own["probability"], shares)

    def describe(self) -> list[str]:
        return [top_levels(row, self.setting.levels) for row in self.own["probability"]]

    def typical(self) -> list[Any]:
        levels = self.setting.levels
        return [levels[at] if levels else None for at in self.own["probability"].argmax(axis=1)]


class Shares(Family):
    """Base of families whose `probability` is shares of categories along the last axis, with prior counts `alpha`."""

    facts = Facts(chart={"probability": "shares"})
    _density = SharesDensity

    def tally(self, stats: Twofold) -> np.ndarray:
        """Return the counts from which the shares are estimated."""
        return np.asarray(np.maximum(stats.value, 0.0))

    def prior_tally(self, hyper: Hyper, how: How) -> np.ndarray:
        """Return the prior counts that are part of the objective."""
        return prior_counts(hyper, how)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return {"alpha": concentration(prior, self, setting, stats.shape[-1])}

    def completed(self, stats: Twofold, params: Params) -> float:
        return float(xlogy(self.tally(stats), params["probability"]).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        counts = self.tally(stats) + self.prior_tally(hyper, how)
        return {"probability": counts / np.maximum(params["probability"], SMALLEST)}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        return np.asarray(xlogy(self.prior_tally(hyper, how), params["probability"]).sum(axis=-1))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        return shares_evidence(self.tally(stats), self.prior_tally(hyper, "mean"))

    def proper(self, hyper: Hyper) -> Hyper:
        """If no category has prior counts, use one row shared by all categories."""
        alpha = hyper["alpha"]
        nothing = alpha.sum(axis=-1, keepdims=True) <= 0
        return hyper | {"alpha": np.where(nothing, 1.0 / max(alpha.shape[-1], 1), alpha)}

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Dirichlet:
        return Dirichlet(self.tally(stats) + self.prior_tally(hyper, "mean"))

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        return move_levels(stats, old.key, old.levels, new.levels)


class CategoricalDensity(SharesDensity):
    """Probabilities of categories, looked up by code: 0 is missing, 1 the first category, the last an unseen one."""

    @property
    def is_product(self) -> bool:
        """False: probabilities are looked up, because 0 times minus infinity is not a number."""
        return False

    def table(self) -> np.ndarray:
        """Return log-probabilities by code."""
        known, unseen = self.family.natural(self.own), self.own["unseen"]
        last = np.where(unseen > 0, log_of(unseen), 0.0)
        return np.concatenate([np.zeros_like(last)[..., None], known, last[..., None]], axis=-1)

    def score(self, column: np.ndarray) -> np.ndarray:
        return np.asarray(self.table().T[column])

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return a look-up by code: a missing cell first, then the categories, an unseen category last."""
        return LookUp(LevelCode(keys[0], sizes[0]), clamp(self.table().T))

    def linear_of(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one feature for each category; for a 0/1 column, its value."""
        if self.setting.levels in ((0, 1), (False, True)):
            return natural[:, 1:] - natural[:, :1], natural[:, 0]
        return natural, np.zeros(len(natural))

    def linear_basis(self) -> np.ndarray | None:
        """Return the basis (presence, value) for a 0/1 column, else None."""
        return np.array([[1.0, 0.0], [1.0, 1.0]]) if self.setting.levels in ((0, 1), (False, True)) else None

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        return LookUp(LevelCode(keys[0], sizes[0]), clamp(np.pad(weights, ((0, 0), (1, 1))).T))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw codes of categories."""
        edges = np.cumsum(self.own["probability"], axis=1)[groups]
        return np.asarray((rng.random(len(groups))[:, None] * edges[:, -1:] >= edges).sum(axis=1) + 1)

    def draw_columns(self, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None) -> Columns:
        return [[self.setting.levels[code - 1] for code in self.draw(groups, rng)]]

    def fill(self, weights: np.ndarray, cells: np.ndarray, want: int) -> Any:
        best = (weights @ self.own["probability"]).argmax(axis=-1)
        return np.array(self.setting.levels, dtype=object)[best]

    def there(self, column: np.ndarray) -> np.ndarray | None:
        """Return which cells are evidence. An unseen category is, if some mass is reserved for it."""
        kept = (self.own["unseen"] > 0).any()
        return column > 0 if kept else (column > 0) & (column <= len(self.setting.levels))

    def find_fault(self) -> str | None:
        unseen = self.own.get("unseen", np.zeros(1))
        possible = ((unseen >= 0) & (unseen <= 1)).all()
        return super().find_fault() or (None if possible else NO_SHARE)


@register
class Categorical(Shares, Struct, frozen=True):
    """Categorical distribution: one of several categories.

    The probability of category v is `probability[v]`. On a tuple of columns, `{("sex", "smoker"): "categorical"}`, it
    is a joint table: one probability for every combination.

    See Also
    --------
    Bernoulli : Two categories, success and failure.
    Grouped : Many categories in a few groups.
    softcount.priors.Dirichlet : The conjugate prior.

    Notes
    -----
    A model has `probability` (classes x categories) and `unseen`. With a prior of a rows per category, a category with
    n of the N rows has probability (n + a) / (N + a m) among the m known categories. A category that the training rows
    do not hold has the probability a / (N + a (m + 1)) when a model predicts; with `estimate="ml"` it is ignored.
    Statistics are the number of rows of each category.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"colour": ["red", "red", "red", "blue"]}
    >>> model = NaiveBayes(kinds={"colour": families.Categorical()}, prior=1.0).fit(rows, ["a"] * 4)
    >>> model.schema_["levels"].tolist(), model.params_["colour"]["probability"].round(3).tolist()
    ([2], [[0.333, 0.667]])
    """

    name = "categorical"
    _density = CategoricalDensity
    facts = replace(Shares.facts, kind=Kind.CATEGORICAL, as_block="joint", stack="codes", rows=slice(None), linear=True)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return np.asarray((column[:, None] == np.arange(1, self.width(setting) + 1)).astype(np.float64))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        counts, alpha = np.maximum(stats.value, 0.0), hyper["alpha"]
        shares = estimate_shares(counts, alpha, how, self.name)
        return {"probability": shares, "unseen": unseen_share(counts, alpha, how)}

    def natural(self, params: Params) -> np.ndarray:
        return log_of(params["probability"])

    # -- answers

    def levels_of(self, setting: Setting, want: int | None = None) -> Sequence[object] | None:
        return setting.levels


@register
class Bernoulli(Categorical, frozen=True):
    """Bernoulli distribution: success or failure.

    It always has two categories, even if only one of them occurs. The second in sorted order is the success. A column
    with more categories raises an error.

    See Also
    --------
    Categorical : Any number of categories.
    Binomial : Successes of several trials.
    softcount.priors.Beta : The conjugate prior.

    Notes
    -----
    A model has `probability` (classes x 2), failure first. Statistics are the numbers of failures and successes.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"smoker": ["no", "yes", "yes", "no", "no", "no"]}
    >>> kinds = {"smoker": families.Bernoulli()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["ill", "ill", "ill", "well", "well", "well"])
    >>> model.params_["smoker"]["probability"].round(3).tolist()
    [[0.333, 0.667], [1.0, 0.0]]
    """

    name = "bernoulli"
    facts = replace(Categorical.facts, two_levels=True)

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        levels = fields[0].levels
        if len(levels) > 2:
            raise DataError(
                f"column {key!r} is Bernoulli, but has {len(levels)} values: "
                f"{', '.join(wording.cell(level) for level in list(levels)[:5])}. "
                "Declare it categorical."
            )
        return Categorical.set_up(self, key, fields, groups, floor)


def move_levels(stats: Twofold, key: Key, old: Sequence[object], new: Sequence[object]) -> Twofold:
    """Move counts of categories (or columns) to another list. Raises an error if one of them is not in it."""
    where = {level: i for i, level in enumerate(new)}
    if not where.keys() >= set(old):
        raise DataError(
            f"{key!r} has {len(old)} columns in one model and {len(where)} in the other. Give both the same."
        )
    columns = np.array([where[level] for level in old], dtype=int)
    hi, lo = np.zeros((2, stats.shape[0], len(where)))
    hi[:, columns], lo[:, columns] = stats.hi, stats.lo
    return Twofold(hi, lo)


def divergence_of_shares(table: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the Kullback-Leibler divergence of each group's probabilities from their average, in nats."""
    own, whole = (np.log(np.where(part > 0, part, 1.0)) for part in (table, shares @ table))
    return np.asarray((table * (own - whole)).sum(axis=1))


def top_levels(shares: np.ndarray, levels: Sequence[object], most: int = 3) -> str:
    """Format the most frequent categories with their shares."""
    order = np.argsort(-shares, kind="stable")[:most]
    names = {i: _before_share(levels[i]) for i in order.tolist()}
    # Categories of less than half a percent add nothing after the first: "Third 100 %, Second 0 %".
    return ", ".join(f"{names[i]} {100 * shares[i]:.0f} %" for i in order if i == order[0] or shares[i] >= 0.005)


def _before_share(level: object) -> str:
    """Format a category before its share, with a colon if it could be read as a number.

    >>> _before_share("red"), _before_share("10115"), _before_share(4)
    ('red', '10115:', '4:')
    """
    text = " and ".join(map(str, level)) if isinstance(level, tuple) else str(level)
    plain = isinstance(level, str) and not any(char.isdigit() for char in level)
    return text if plain else f"{text}:"


MOST_NAMED = 4
"""Number of categories that name a group."""
MOST_GROUPS = 3
"""Number of groups that a note names."""


class GroupedDensity(CategoricalDensity):
    """Probabilities of categories in groups."""

    def describe(self) -> list[str]:
        group, shares = self.own["group"][0], self.own["probability"]
        names = [f"({name})" for name in group_names(group, self.setting.levels, shares.sum(axis=0))]
        return [top_levels(row, names) for row in shares @ _members(group)]

    def decision(self) -> str | None:
        names = group_names(self.own["group"][0], self.setting.levels, self.own["probability"].sum(axis=0))
        if len(names) in (0, len(self.setting.levels)):
            return None
        if len(names) == 1:
            return "all its categories are one group: the column has no information about the classes"
        more = f" and {len(names) - MOST_GROUPS} more" if len(names) > MOST_GROUPS else ""
        named = ", ".join(f"({name})" for name in names[:MOST_GROUPS])
        return f"{len(self.setting.levels)} levels in {len(names)} groups: {named}{more}"

    def find_fault(self) -> str | None:
        return find_group_fault(self.own["group"]) or super().find_fault()


@register
class Grouped(Categorical, frozen=True):
    """Many categories in a few groups, which are found by their class shares.

    The groups are the most probable ones given the classes, by the MODL criterion [1]_. Each class has its own shares
    of the groups. Within a group, the shares of the categories are the same in every class: those of all rows. It suits
    postcodes, products and other columns with many categories of few rows.

    See Also
    --------
    Categorical : Each category has probabilities of its own.
    Cut : Groups numbers into intervals by the same criterion.

    Notes
    -----
    A model has `probability` (classes x categories) and `group`, the group of each category. A prior of a rows adds a
    rows to every group. Categories are counted one by one and the groups are chosen from the counts. So learning in
    parts gives the same fit, and the groups of a fold depend on the other folds alone.

    References
    ----------
    .. [1] M. Boullé (2005). "A Bayes optimal approach for partitioning the values of categorical attributes". Journal
       of Machine Learning Research 6, 1431-1452.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"town": ["Ulm", "Bonn", "Kiel", "Jena"] * 20}
    >>> model = NaiveBayes(kinds={"town": families.Grouped()}).fit(rows, ["yes", "yes", "no", "no"] * 20)
    >>> [note for note in model.notes_ if "group" in note]
    ["column 'town': 4 levels in 2 groups: (Bonn, Ulm), (Jena, Kiel)."]
    """

    name = "grouped"
    _density = GroupedDensity
    facts = replace(Categorical.facts, as_block="", side_by_side=False, needs_classes=True)
    slope = Family.slope
    posterior = Family.posterior

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        counts = np.maximum(stats.value, 0.0).astype(np.float32).astype(np.float64)
        counts = counts.reshape(stats.shape[0], stats.shape[-1])
        group = level_groups(counts.T)
        groups = int(group.max(initial=-1)) + 1
        rows = scalar_prior(prior, self, max(groups, 1), setting.groups)
        size = np.bincount(group, minlength=groups)
        return {"alpha": rows / size[group], "group": group.astype(np.float64)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate each category: the share of its group in the class, times its share of the group in all classes."""
        member, counts = _members(hyper["group"]), np.maximum(stats.value, 0.0)
        alpha = hyper["alpha"] @ member
        groups = estimate_shares(counts @ member, alpha, how, self.name)
        unseen = unseen_share(counts, alpha, how)
        shares = (groups @ member.T) * _within(counts, hyper, how)
        return {"probability": shares, "unseen": unseen, "group": np.broadcast_to(hyper["group"], shares.shape).copy()}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        member = _members(hyper["group"])
        extra = prior_counts({"alpha": hyper["alpha"] @ member}, how)
        return np.asarray(xlogy(extra, params["probability"] @ member).sum(axis=-1))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence given the groups, with their shares integrated out."""
        member, counts = _members(hyper["group"]), np.maximum(stats.value, 0.0)
        levels = xlogy(counts, _within(counts, hyper, "mean")).sum()
        return float(shares_evidence(counts @ member, hyper["alpha"] @ member) + levels)


def _members(group: np.ndarray) -> np.ndarray:
    """Return the (categories x groups) indicators of membership; numbers from a file are not checked yet."""
    own = np.clip(np.nan_to_num(group.reshape(-1)[: group.shape[-1]]), 0, group.shape[-1]).astype(np.int64)
    return np.asarray(own[:, None] == np.arange(own.max(initial=-1) + 1), dtype=np.float64)


def _within(counts: np.ndarray, hyper: Hyper, how: How) -> np.ndarray:
    """Return the share of every category in its group, in all classes together."""
    member = _members(hyper["group"])
    pooled = counts.sum(axis=0) + (0.0 if how == "ml" else hyper["alpha"])
    held, size = (pooled @ member) @ member.T, member.sum(axis=0) @ member.T
    return np.asarray(np.where(held > 0, pooled / np.where(held > 0, held, 1.0), 1.0 / size))


def group_names(group: np.ndarray, levels: Sequence[object], weights: np.ndarray) -> list[str]:
    """Return the names of the groups: their most frequent categories."""
    found, order = [], np.argsort(-weights, kind="stable")
    for number in range(int(group.max(initial=-1)) + 1):
        own = [str(levels[place]) for place in order if group[place] == number]
        more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
        found.append(", ".join(own[:MOST_NAMED]) + more)
    return found


def find_group_fault(group: np.ndarray) -> str | None:
    """Return a description of what is wrong with the groups of categories, or None."""
    lines = group.reshape(-1, group.shape[-1]) if group.size else np.zeros((1, 0))
    numbers = np.unique(lines)
    if not (lines == lines[:1]).all() or not np.array_equal(numbers, np.arange(len(numbers))):
        return "its levels are in no groups"
    return None
