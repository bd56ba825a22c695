"""Influence: how far each column of each group departs from the table taken as one class."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from softcount.classify.encode import EncodedColumns
from softcount.core.counts import Counts, Twofold
from softcount.families import Params
from softcount.families.setting import average_prior
from softcount.models.nodes import Imagined, Nodes
from softcount.models.nodes import Params as Stacked
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted


def measure_departures(fitted: Fitted) -> dict[Key, np.ndarray]:
    """Return for every column the divergence of each group's distribution from that of the single class, in nats.

    This is AutoClass's influence value I-jk: sum_l p_jkl log(p_jkl / p_*kl), or its integral. The single class is
    estimated from all counts under the same priors, so both are equally cautious on small tables. It reproduces all
    printed digits of AutoClass's values for small soybean; the average of the groups does not.
    """
    single, found = pool_groups(fitted, fitted.counts.map(sum_groups)), {}
    for leaf in fitted.model.leaves:
        # Append the single class as one more group with share 1, so that it is the average of the groups.
        # Use counting units, in which no value underflows.
        groups = fitted.estimates[leaf.key]
        joined = {name: np.concatenate([part, single[leaf.key][name]]) for name, part in groups.items()}
        shares = np.zeros(len(joined[next(iter(joined))]))
        shares[-1] = 1.0
        found[leaf.key] = np.asarray(np.maximum(leaf.family.density(joined, leaf.setting).divergence(shares)[:-1], 0.0))
    return found


def measure_known_influence(fitted: Fitted) -> list[tuple[Key, float]]:
    """Return columns and how far each lowers the log-loss of the known classes, in nats per row, largest first.

    An ensemble measures this on held-out rows. For other models it is a bound from the counts alone: the divergence of
    the classes from the whole table, averaged over the rows' classes, and at most the entropy of the classes.
    """
    keys, gains = (*EncodedColumns.of(fitted.schema).keys, *fitted.texts), fitted.record.gains
    if gains and len(gains) == len(keys):
        found = dict(zip(keys, gains, strict=True))
        leaves = fitted.model.leaves  # the gain of a block is the sum over its columns
        values = {leaf.key: found.get(leaf.key, sum(found.get(key, 0.0) for key in leaf.columns)) for leaf in leaves}
    else:
        shares = fitted.row_shares
        most = float(-(shares[shares > 0] @ np.log(shares[shares > 0])))
        values = {key: min(most, float(far @ shares)) for key, far in measure_departures(fitted).items()}
    return sorted(values.items(), key=lambda pair: -pair[1])


def influence_meaning(fitted: Fitted) -> str:
    if fitted.classes is None:
        return "how far the classes depart from the whole table, in nats"
    if fitted.record.gains:
        return "how much the column lowers the log-loss of held-out rows, in nats per row"
    return "how much the column can lower the log-loss at most, in nats per row"


def sum_other_groups(fitted: Fitted) -> Iterator[Counts]:
    """Yield for each group the counts of all other groups; a single group yields its own counts."""
    if fitted.n_groups == 1:
        yield fitted.counts.map(sum_groups)
    else:
        # Sums from either end: nothing is subtracted, so the counts of the others keep all their digits if one group
        # holds nearly all rows.
        each = [fitted.counts.map(partial(sum_groups, groups=slice(g, g + 1))) for g in range(fitted.n_groups)]
        before, after = list(accumulate(each, add)), list(accumulate(each[::-1], add))[::-1]
        yield after[1]
        for left, right in zip(before, after[2:], strict=False):
            yield left + right
        yield before[-2]


def pool_params(fitted: Fitted, counts: Counts) -> dict[Key, Params]:
    """Return the parameters of one class with these counts, in the user's units."""
    return fitted.model.public(pool_groups(fitted, counts))


def whole_table(fitted: Fitted) -> dict[Key, Params]:
    """Return the parameters of the table taken as one class, without a prior."""
    return pool_params(replace(fitted, imagined=fitted.imagined.using("ml")), fitted.counts.map(sum_groups))


def sum_groups(array: Twofold, groups: slice = slice(None)) -> Twofold:
    """Sum the statistics of these groups into one class."""
    return array[groups].sum(axis=0, keepdims=True)


def pool_groups(fitted: Fitted, counts: Counts) -> Stacked:
    hypers = {x.key: average_prior(fitted.imagined.hypers[x.key]) for x in fitted.model.leaves}
    leaves = Nodes(fitted.model.leaves, fitted.model.nodes.apart)
    return leaves.estimate(leaves.stacked(counts), Imagined(hypers, fitted.imagined.how))
