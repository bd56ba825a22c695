"""Moments of the statistics of a correlated block."""

from __future__ import annotations

from threading import local

import numpy as np

from softcount.core.counts import Twofold

Moments = tuple[np.ndarray, np.ndarray, np.ndarray]
_last = local()


def block_moments(stats: Twofold) -> Moments:
    """Return rows, means and centred products (..., d, d) of the statistics of a block.

    The result is cached for the same statistics: an EM step needs it three times, which took a quarter of its time on a
    small table.
    """
    if getattr(_last, "stats", None) is not stats:
        _last.found = moments_of_block(stats)
        _last.stats = stats
    found: Moments = _last.found
    return found


def moments_of_block(stats: Twofold) -> Moments:
    """Compute what `block_moments` returns."""
    d = int((np.sqrt(4 * (stats.shape[-1] - 1) + 1) - 1) / 2)
    rows, total = stats[..., :1], stats[..., 1 : d + 1]
    mean = total.over(rows.broadcast(total.shape))
    outer = mean.spread(-1).broadcast((*mean.shape, d)) * total.spread(-2).broadcast((*mean.shape, d))
    flat = stats[..., d + 1 :]
    products = type(stats)(flat.hi.reshape(outer.shape), flat.lo.reshape(outer.shape if flat.lo.ndim else ()))
    scatter = (products - outer).value
    return rows.value[..., 0], mean.value, 0.5 * (scatter + np.swapaxes(scatter, -1, -2))
