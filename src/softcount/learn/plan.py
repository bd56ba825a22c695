"""How to fit, and what any fit has to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.families import HOWS, How
from softcount.families.base import NEVER_BELOW_ONE
from softcount.learn.climb_log import ClimbLog
from softcount.learn.rules import Climb, Stop, Watch
from softcount.models.base import ClassModel
from softcount.models.declared import Declared
from softcount.models.nodes import Imagined, Params
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.table import Contradiction, Table, wording

Result = TypeVar("Result")
WatchStarts = Callable[[int, int, int, float], None]
"""Told the number of a start, how many there are, its iteration and its objective."""
WORD_CELLS = 4
"""Cells that a word of a document counts for: sparse products take so many times as long as looking a code up."""
MANY_CELLS = 1 << 40
"""What a stream of unknown length is taken to hold."""
MANY_NAMES = 8
"""Columns of a block from which on they are not named one by one."""
HARD = "log-likelihood of rows and their groups"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to fit: what the user declared of columns, priors and estimates, and when to stop."""

    declared: Declared = field(default_factory=Declared)
    prior: Any = 1.0
    estimate: How = "mean"
    class_prior: Any = None
    unlabelled_weight: float | None = None  # what a row without a label counts; None: as `for_labels` decides
    stop: Stop = field(default_factory=Stop)
    target: Any = None
    watch: WatchStarts | None = None
    fixed: Mapping[Any, Any] | None = None  # parameters to leave alone, in the shape of `params_` beside "weights"
    named: Sequence[Any] | None = None  # the known classes that a mixture's labels are codes of
    log: ClimbLog | None = None  # where climbs are taken down
    beside: Any = None  # what else is counted in the pass that learns: `learn.prepare.Beside`

    def __post_init__(self) -> None:
        if self.estimate not in HOWS:
            raise DataError(f"estimate={self.estimate!r} is not known. Use one of {', '.join(HOWS)}.")

    def for_labels(self, table: Table) -> Plan:
        """The plan with a weight for rows without a label: 1 in a table of text, else 0, unless the user set one.

        Unlabelled documents help where few are labelled. In other tables labels are rarely missing at random: of
        3,023 squirrels, 55 without a colour turned 103 black ones into 148.
        """
        if self.unlabelled_weight is not None:
            return self
        return replace(self, unlabelled_weight=float(table.has_texts or table.bag_width is not None))

    def watching(self, start: int = 1, of: int = 1) -> Watch | None:
        """What one climb tells of itself: the watch of all starts, told which this is."""
        watch = self.watch
        return None if watch is None else lambda iteration, objective: watch(start, of, iteration, objective)

    @property
    def how(self) -> How:
        """How EM estimates: Jeffreys' and row priors have no mode and imply `mean`."""
        if self.estimate == "map" and isinstance(self.prior, str) and self.prior in NEVER_BELOW_ONE:
            return "mean"
        return self.estimate


def retyping(table: Table, attempt: Callable[[Table], Result], runner: Runner, known_classes: bool = True) -> Result:
    """Try to read or fit; where later rows contradict what the first ones suggested, start again with wider kinds.

    Of text, the words of labelled rows are kept where classes are known: others say nothing of them, and 50,000 words
    of 10,000 unlabelled documents made the groups of 300 labelled ones alike.
    """
    while True:
        try:
            table.gather_words(runner.map, known_classes, getattr(runner, "met", None))
            return attempt(table)
        except Contradiction as why:
            table = table.widened(why)


def or_empty(counts: Counts | None) -> Counts:
    """The counts, if there are any rows."""
    if counts is None:
        raise DataError("the table has no rows.")
    return counts


def plug(how: How) -> How:
    """EM plugs estimates in: predictive densities are for the end."""
    return "mean" if how == "predictive" else how


def climb_facts(reached: Climb | None, plan: Plan, counts: Counts) -> dict[str, Any]:
    """How EM climbed, as what was learned has it."""
    if reached is None:
        return {"trace": [], "converged": True, "log_likelihood": None, "objective": ""}
    how = plug(plan.how)
    names = {
        "ml": "log-likelihood",
        "map": "log-likelihood + log prior",
        "mean": "log-likelihood + log prior of concentration a + 1",
    }
    return {
        "trace": reached.trace,
        "converged": reached.converged,
        "log_likelihood": counts.log_likelihood,
        "objective": names[how].replace("log-likelihood", HARD) if plan.stop.assign == "hard" else names[how],
    }


def climb_note(hidden: str, reached: Climb) -> str:
    """What was hidden, and how EM ended."""
    state = "converged" if reached.converged else "stopped"
    return f"{hidden}: EM {state} after {reached.n_iter} iterations."


def stopped_notes(reached: Climb, plan: Plan) -> list[str]:
    """Why EM stopped, where it was not for want of anything to gain."""
    if reached.fell > 0:
        why = f"EM stopped after {reached.n_iter} iterations, because the next would have lowered its objective."
        return [*reached.notes, why]
    cut = (
        reached.interrupted or plan.stop.max_iter == 0
    )  # none at all: what an interrupted search came to, counted once
    if not reached.converged and plan.stop.tol > 0 and plan.stop.assign != "drawn" and not cut:
        return [*reached.notes, f"EM stopped at max_iter={plan.stop.max_iter} with something left to gain."]
    return [*reached.notes]


def state_notes(model: ClassModel, params: Params, imagined: Imagined, names: Sequence[Any]) -> list[str]:
    """What was decided, and what is odd, about a model of known classes as it stands."""
    notes = decided_notes(model, imagined) + degenerate_notes(model, params, imagined)
    if len(names) == 1:
        only = names[0].item() if isinstance(names[0], np.generic) else names[0]
        notes.append(f"only one class, {only!r}: every prediction will be it.")
    return notes


def decided_notes(model: ClassModel, imagined: Imagined) -> list[str]:
    """What families decided of their columns by counts: where numbers are cut, which levels are grouped."""
    said = [(leaf.key, leaf.family.decided(imagined.hypers[leaf.key], leaf.setting)) for leaf in model.leaves]
    return [f"{wording.column(key)}: {what}." for key, what in said if what is not None]


def degenerate_notes(model: ClassModel, params: Params, imagined: Imagined) -> list[str]:
    """Groups whose variance met its floor."""
    notes = []
    for leaf in model.leaves:
        narrow = leaf.family.degenerate(params[leaf.key], imagined.hypers[leaf.key])
        if narrow.any():
            at = ", ".join(str(g) for g in np.flatnonzero(narrow))
            what, how = f"column {leaf.key!r}", "does not vary"
            if isinstance(leaf.key, tuple):
                many = len(leaf.key) > MANY_NAMES
                what, how = f"the block of {len(leaf.key)} columns" if many else f"block {leaf.key!r}", "is flat"
            notes.append(f"{what} {how} in group {at}: its variance is held at a floor.")
    return notes


def absent(model: ClassModel, counts: Counts, table: Table) -> dict[Any, float]:
    """Missing cells of each column: the rows' weight less what the column's own counts hold."""
    found: dict[Any, float] = {}
    for leaf in model.leaves:
        observed = leaf.family.observed(counts.arrays[leaf.key].hi)
        if observed is None:
            found |= {column: float(table.missing.get(column, 0)) for column in leaf.columns}
        else:
            found[leaf.key] = max(0.0, round(counts.rows - observed, 9))
    return found


def cells_of(table: Table) -> int:
    """How much there is to count: decides between plain NumPy and compiled kernels."""
    if table.n_rows is None:
        return MANY_CELLS
    return table.n_rows * max(1, len(table.schema.used)) + WORD_CELLS * table.n_words
