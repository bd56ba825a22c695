"""The last digits by L-BFGS: where EM creeps, the slope of the log-likelihood says more than its maps.

The slope at any parameters is that of complete rows with the expected counts (Fisher's identity), so a pass over the
table gives objective and slope at once. Parameters are laid out in the coordinates of the leaps, weighed so that
complete rows curve alike in all directions: what is left for L-BFGS to learn is what is hidden.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from softcount.learn.accelerate import Extrapolation
from softcount.learn.rules import ClimbState, Converging
from softcount.models.coordinates import Coordinates

NEAR = 1e-6
"""Predicted gain, in proportion, from which on L-BFGS goes alone: far from the top it may climb another hill."""
CORRECTIONS = 20


class _OutOfMaps(Exception):
    """No pass is left."""


class Finished(Converging):
    """EM until it is near, then L-BFGS; the usual stopping rule has the last word on what comes out."""

    remembers = False

    def before(self, state: ClimbState) -> None:
        asked = state.stop
        state.stop = replace(asked, tol=max(asked.tol, NEAR))
        while not state.over:
            self.step(state)
        state.stop, self.calm, self.maps = asked, 0, Extrapolation(state.problem)
        if state.converged:
            state.converged = False
            ascend(state)


def ascend(state: ClimbState) -> None:
    """Climb by L-BFGS from where the climb is, every pass on record; ends at the best parameters met."""
    from scipy.optimize import minimize

    problem, like, mass = state.problem, state.params, max(state.counts.rows, 1e-300)
    chart = Coordinates(problem.model, problem.imagined)
    weights = chart.weights(like)
    first = [(state.counts, state.height)]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        vector = x / weights
        if first:  # the first place asked for is where the climb is
            params, (counts, height) = like, first.pop()
        else:
            if state.over:
                raise _OutOfMaps
            params = chart.params(vector, like, free=True)
            counts, height = state.seen(params)
            if height >= state.height:
                state.params, state.counts, state.height = params, counts, height
            state.record(state.height)
        slopes = problem.slope(counts, params)
        if slopes is None or not np.isfinite(height):
            return 1e3 - state.height / mass, np.zeros_like(x)
        return -height / mass, -chart.gradient(vector, slopes) / weights / mass

    steep = 1e-3 * np.sqrt(state.stop.tol * max(1.0, abs(state.height)) / mass)
    rules = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": steep, "maxiter": 15000, "maxfun": 15000}
    with suppress(_OutOfMaps):
        minimize(loss, chart.vector(like) * weights, jac=True, method="L-BFGS-B", options=rules)
