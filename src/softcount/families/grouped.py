"""Grouped columns: many levels, of which those that say the same of the classes share what is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.core.lazy_scipy import xlogy
from softcount.core.special import log_rising
from softcount.core.twofold import Twofold
from softcount.families.base import Family, register, scalar_prior
from softcount.families.categorical import Categorical, estimated, imagined_counts, top_levels
from softcount.families.examples import Cells, example
from softcount.families.setting import SMALLEST, How, Hyper, Params, Setting
from softcount.table.discretise import level_groups
from softcount.table.schema import Key

MOST_NAMED = 4
"""Levels that a group is named by."""
MOST_GROUPS = 3
"""Groups that a note names."""


@register
class Grouped(Categorical, frozen=True):
    """One of many levels in a few groups, by Boullé's rule: the likeliest groups given the classes.

    A class has a share of every group; within a group each level has its share of all rows, whatever the class. A
    prior of `a` imagines `a` rows for every group. Levels are counted one by one, so groups are decided by counts that
    add: fits in parts are the fit at once, and those of a fold are decided by the other folds alone.
    """

    name = "grouped"
    side_by_side = False
    slope = Family.slope

    @property
    def needs_classes(self) -> bool:
        return True

    def for_key(self, key: Key) -> Family:
        return Family.for_key(self, key)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        counts = np.maximum(stats.value, 0.0).astype(np.float32).astype(np.float64)
        counts = counts.reshape(stats.shape[0], stats.shape[-1])
        group = level_groups(counts.T)
        groups = int(group.max(initial=-1)) + 1
        rows = scalar_prior(prior, self, max(groups, 1), setting.groups)
        size = np.bincount(group, minlength=groups)
        seen = counts.sum(axis=0)
        return {"alpha": rows / size[group], "group": group.astype(np.float64), "seen": seen}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """The share of a level is that of its group in the class, times its own in the group in all of them."""
        member, counts = _members(hyper["group"]), np.maximum(stats.value, 0.0)
        alpha = hyper["alpha"] @ member
        groups = estimated(counts @ member, alpha, how, self.name)
        reserve = 0.0 if how == "ml" else alpha.sum(axis=-1) / max(alpha.shape[-1], 1)
        unseen = reserve / np.maximum(counts.sum(axis=-1) + alpha.sum(axis=-1) + reserve, SMALLEST)
        shares = (groups @ member.T) * _within(counts, hyper, how)
        return {"probability": shares, "unseen": unseen, "group": np.broadcast_to(hyper["group"], shares.shape).copy()}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        member = _members(hyper["group"])
        imagined = imagined_counts({"alpha": hyper["alpha"] @ member}, how)
        return np.asarray(xlogy(imagined, params["probability"] @ member).sum(axis=-1))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Of the groups as they are: their shares unknown, those of levels within them known."""
        member, counts = _members(hyper["group"]), np.maximum(stats.value, 0.0)
        held = counts @ member
        alpha = np.broadcast_to(hyper["alpha"] @ member, held.shape)
        seen = np.asarray(log_rising(alpha.sum(axis=-1), held.sum(axis=-1))).sum()
        levels = xlogy(counts, _within(counts, hyper, "mean")).sum()
        return float(np.asarray(log_rising(alpha, held)).sum() - seen + levels)

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        return Family.posterior(self, stats, hyper, setting)

    def free_under(self, hyper: Hyper, setting: Setting, groups: int, columns: int = 1) -> int:
        if not hyper:
            return self.free(setting, groups, columns)
        found = int(hyper["group"].max(initial=-1)) + 1
        return columns * (groups * max(found - 1, 0) + len(setting.levels) - found)

    def decided(self, hyper: Hyper, setting: Setting) -> str | None:
        names = group_names(hyper["group"], setting.levels, hyper["seen"])
        if len(names) in (0, len(setting.levels)):
            return None
        if len(names) == 1:
            return "its levels tell no class from another: they are one group and say nothing"
        more = f" and {len(names) - MOST_GROUPS} more" if len(names) > MOST_GROUPS else ""
        named = ", ".join(f"({name})" for name in names[:MOST_GROUPS])
        return f"{len(setting.levels)} levels in {len(names)} groups: {named}{more}"

    def describe(self, params: Params, setting: Setting) -> list[str]:
        group = params["group"][0]
        names = [f"({name})" for name in group_names(group, setting.levels, params["probability"].sum(axis=0))]
        return [top_levels(row, names) for row in params["probability"] @ _members(group)]

    def check_params(self, params: Params) -> str | None:
        return _no_groups(params["group"]) or Categorical.check_params(self, params)

    def check_hyper(self, hyper: Hyper) -> str | None:
        return _no_groups(hyper["group"]) or Categorical.check_hyper(self, hyper)


def _members(group: np.ndarray) -> np.ndarray:
    """(levels x groups) one where a level is in a group; of a file there may be any numbers until they are checked."""
    own = np.clip(np.nan_to_num(group.reshape(-1)[: group.shape[-1]]), 0, group.shape[-1]).astype(np.int64)
    return np.asarray(own[:, None] == np.arange(own.max(initial=-1) + 1), dtype=np.float64)


def _within(counts: np.ndarray, hyper: Hyper, how: How) -> np.ndarray:
    """The share of every level in its group, in all classes together."""
    member = _members(hyper["group"])
    pooled = counts.sum(axis=0) + (0.0 if how == "ml" else hyper["alpha"])
    held, size = (pooled @ member) @ member.T, member.sum(axis=0) @ member.T
    return np.asarray(np.where(held > 0, pooled / np.where(held > 0, held, 1.0), 1.0 / size))


def group_names(group: np.ndarray, levels: Sequence[object], weights: np.ndarray) -> list[str]:
    """What the groups are called: by their commonest levels."""
    found, order = [], np.argsort(-weights, kind="stable")
    for number in range(int(group.max(initial=-1)) + 1):
        own = [str(levels[place]) for place in order if group[place] == number]
        more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
        found.append(", ".join(own[:MOST_NAMED]) + more)
    return found


def _no_groups(group: np.ndarray) -> str | None:
    """What makes these the groups of no levels, in words, or None."""
    lines = group.reshape(-1, group.shape[-1]) if group.size else np.zeros((1, 0))
    numbers = np.unique(lines)
    if not (lines == lines[:1]).all() or not np.array_equal(numbers, np.arange(len(numbers))):
        return "its levels are in no groups"
    return None


EXAMPLES = (
    example(
        Grouped(),
        "town",
        ["york", "bath", None, "york", "hull", "bath", "york", "deal"],
        Cells("levels", ("york", "bath", "hull", "deal")),
    ),
)
