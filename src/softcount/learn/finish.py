"""The last digits by L-BFGS: where EM creeps, the slope of the log-likelihood says more than its maps.

The slope at any parameters is that of complete rows with the expected counts (Fisher's identity), so a pass over the
table gives objective and slope at once. Parameters are laid out on the chart of `accelerate`, weighed so that complete
rows curve alike in all directions: what is left for L-BFGS to learn is what is hidden.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from softcount.families import Family
from softcount.learn.accelerate import Chart, Course

if TYPE_CHECKING:
    from softcount.learn.em import Way

NEAR = 1e-6
"""Predicted gain, in proportion, from which on L-BFGS goes alone: far from the top it may climb another hill."""
CORRECTIONS = 20


class _OutOfMaps(Exception):
    """No pass is left."""


def finish(way: Way) -> None:
    """EM until it is near, then L-BFGS; the driver's own stopping rule has the last word on what comes out."""
    unknown = sorted({x.family.name for x in way.star.leaves if type(x.family).slope is Family.slope})
    if unknown:
        way.notes.append(f"finish='lbfgs' does not know the slope of {', '.join(unknown)} columns: EM went on alone.")
        return
    asked = way.stop
    way.stop = replace(asked, tol=max(asked.tol, NEAR))
    way.run()
    way.stop, way.calm, way.course = asked, 0, Course(way.star, way.imagined)
    if way.converged:
        way.converged = False
        ascend(way)


def ascend(way: Way) -> None:
    """Climb by L-BFGS from where the way is, every pass on record; ends at the best parameters met."""
    from scipy.optimize import minimize

    chart, like, mass = Chart(way.star, way.imagined), way.params, max(way.counts.rows, 1e-300)
    weights = chart.weights(like)
    first = [(way.counts, way.height)]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        vector = x / weights
        if first:  # the first place asked for is where the way is
            params, (counts, height) = like, first.pop()
        else:
            if way.over:
                raise _OutOfMaps
            params = chart.params(vector, like, free=True)
            counts, height = way.seen(params)
            way.visit(params, counts, height)
        slopes = way.star.slope(counts, params, way.imagined)
        if slopes is None or not np.isfinite(height):
            return 1e3 - way.height / mass, np.zeros_like(x)
        return -height / mass, -chart.gradient(vector, slopes) / weights / mass

    steep = 1e-3 * np.sqrt(way.stop.tol * max(1.0, abs(way.height)) / mass)
    rules = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": steep, "maxiter": 15000, "maxfun": 15000}
    with suppress(_OutOfMaps):
        minimize(loss, chart.vector(like) * weights, jac=True, method="L-BFGS-B", options=rules)
