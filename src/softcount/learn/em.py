"""The EM driver: total the expected counts, record the objective, stop or estimate and go on.

How rows are assigned, when to stop and whether to leap are rules handed to it (`learn/rules.py`).
"""

from __future__ import annotations

import numpy as np

from softcount.learn.rules import Climb, ClimbState, Converging, DrawnAssignment, HardAssignment, Rule, Stop, Watch
from softcount.models.base import Problem
from softcount.models.nodes import Params
from softcount.run.base import one_blas_thread
from softcount.run.progress import best_so_far


def climb(
    problem: Problem,
    params: Params,
    stop: Stop | None = None,
    watch: Watch | None = None,
    rng: np.random.Generator | None = None,
) -> Climb:
    """Climb from `params` until nothing worth having is left to gain; interrupted, the best so far.

    The objective is log-likelihood plus the prior's part; under hard assignment the likelihood is that of the rows
    with their groups. It cannot fall; if rounding ever makes it fall, the climb ends at the best parameters met and
    says by how much.
    """
    stop = stop or Stop()
    seed = 0 if rng is None else int(rng.integers(2**62))
    rule = rule_of(problem, stop, seed)
    state = ClimbState(problem, stop, rule, watch)
    with one_blas_thread():
        start, log = problem.held(params), problem.log
        saved = None if log is None else log.begin(start, (stop, seed))
        try:
            if log is not None and saved is not None and rule.recall(state, saved, start):
                log.refuse_other_height(saved, state.height)
            else:
                state.begin(start)
                rule.before(state)
            while not state.over:
                rule.step(state)
                if log is not None and rule.remembers:
                    log.keep(rule.saved(state))
        except KeyboardInterrupt:
            best_so_far()
            state.interrupted = True
    if log is not None:
        if state.interrupted:
            log.interrupt()
        elif saved is None or not saved.ended:
            log.keep(rule.saved(state, ended=True))
    return state.climbed()


def rule_of(problem: Problem, stop: Stop, seed: int) -> Rule:
    """The rule that goes with a way to stop."""
    if stop.assign == "drawn":
        return DrawnAssignment(seed)
    if stop.assign == "hard":
        return HardAssignment()
    if stop.tol == 0:
        return Rule()
    if stop.finish is not None:
        from softcount.learn.finish import Finished

        return Finished(problem, stop.accelerate)
    return Converging(problem, stop.accelerate and not stop.half_steps)
