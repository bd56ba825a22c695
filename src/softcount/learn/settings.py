"""Settings of a fit: how to search, estimate and stop, and parameters given by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import FAMILIES, How
from softcount.families import Params as Own
from softcount.families.base import NEVER_BELOW_ONE
from softcount.families.setting import fixed_numbers
from softcount.learn.checkpoints import Checkpoint
from softcount.learn.em import EMRun, Stop, Watch
from softcount.learn.record import WatchStarts
from softcount.models.base import ClassModel
from softcount.models.declare import Declared
from softcount.models.nodes import Imagined, Node, Params
from softcount.run.local import Runner
from softcount.table import Contradiction, Table, wording

Result = TypeVar("Result")
WORD_CELLS = 4
"""Cells that a word of a document counts for: sparse products take this many times as long as a lookup."""
MANY_CELLS = 1 << 40
"""Assumed size of a stream of unknown length."""
MANY_NAMES = 8
"""Columns of a block from which on they are not named one by one."""
HARD = "log-likelihood of rows and their groups"


class Plan(Struct, frozen=True):
    """How to fit: declared columns, priors, estimates, and when to stop."""

    declared: Declared = field(default_factory=Declared)
    prior: Any = 1.0
    estimate: How = "mean"
    class_prior: Any = None
    unlabelled_weight: float | None = None  # what a row without a label counts; None: as `for_labels` decides
    stop: Stop = field(default_factory=Stop)
    target: Any = None
    watch: WatchStarts | None = None
    fixed: Mapping[Any, Any] | None = None  # parameters to leave alone, in the shape of `params_`, and "weights"
    named: Sequence[Any] | None = None  # the known classes that a mixture's labels are codes of
    log: Checkpoint | None = None  # where EM runs are recorded
    beside: Any = None  # what else is counted in the pass that learns: `evaluate.folds.FoldsBeside`

    def for_labels(self, table: Table) -> Plan:
        """The plan with a weight for rows without a label: 1 in a table of text, else 0, unless the user set one.

        Unlabelled documents help if few are labelled. In other tables labels are rarely missing at random: of 3,023
        squirrels, 55 without a colour turned 103 black ones into 148.
        """
        if self.unlabelled_weight is not None:
            return self
        return replace(self, unlabelled_weight=float(table.has_texts or table.bag_width is not None))

    def watching(self, start: int = 1, of: int = 1) -> Watch | None:
        """The watch of one EM run."""
        watch = self.watch
        return None if watch is None else lambda iteration, objective: watch(start, of, iteration, objective)

    @property
    def how(self) -> How:
        """How EM estimates: Jeffreys' and row priors have no mode and imply `mean`."""
        if self.estimate == "map" and isinstance(self.prior, str) and self.prior in NEVER_BELOW_ONE:
            return "mean"
        return self.estimate


def retyping(table: Table, attempt: Callable[[Table], Result], runner: Runner, known_classes: bool = True) -> Result:
    """Try to read or fit; if later rows contradict the types guessed from the first, start again with wider ones.

    With known classes only the words of labelled documents are kept: 50,000 words of 10,000 unlabelled documents made
    the groups of 300 labelled ones alike.
    """
    while True:
        try:
            table.gather_words(runner.map, known_classes, getattr(runner, "met", None))
            return attempt(table)
        except Contradiction as why:
            table = table.widened(why)


def plug(how: How) -> How:
    """The estimate used during EM: predictive densities are computed at the end."""
    return "mean" if how == "predictive" else how


def em_facts(reached: EMRun | None, plan: Plan, counts: Counts) -> dict[str, Any]:
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


def em_note(hidden: str, reached: EMRun) -> str:
    state = "converged" if reached.converged else "stopped"
    return f"{hidden}: EM {state} after {reached.n_iter} iterations."


def stopped_notes(reached: EMRun, plan: Plan) -> list[str]:
    """Why EM stopped before convergence."""
    if reached.fell > 0:
        why = f"EM stopped after {reached.n_iter} iterations, because the next would have lowered its objective."
        return [*reached.notes, why]
    # No step at all is allowed if the result of an interrupted search is only counted.
    cut = reached.interrupted or plan.stop.max_iter == 0
    if not reached.converged and plan.stop.tol > 0 and plan.stop.assign != "drawn" and not cut:
        return [*reached.notes, f"EM stopped at max_iter={plan.stop.max_iter} before it converged."]
    return [*reached.notes]


def state_notes(model: ClassModel, params: Params, imagined: Imagined, names: Sequence[Any]) -> list[str]:
    """Notes on choices and degenerate columns of a model of known classes."""
    decided = [(leaf.key, leaf.family.decided(imagined.hypers[leaf.key], leaf.setting)) for leaf in model.leaves]
    notes = [f"{wording.column(key)}: {what}." for key, what in decided if what is not None]
    notes += degenerate_notes(model, params, imagined)
    if len(names) == 1:
        only = names[0].item() if isinstance(names[0], np.generic) else names[0]
        notes.append(f"only one class, {only!r}: every prediction will be this class.")
    return notes


def degenerate_notes(model: ClassModel, params: Params, imagined: Imagined) -> list[str]:
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
    """Missing cells of each column: the rows' weight less what the column's counts hold."""
    found: dict[Any, float] = {}
    for leaf in model.leaves:
        observed = leaf.family.observed(counts.arrays[leaf.key].hi)
        if observed is None:
            found |= {column: float(table.missing.get(column, 0)) for column in leaf.columns}
        else:
            found[leaf.key] = max(0.0, round(counts.rows - observed, 9))
    return found


def cells_of(table: Table) -> int:
    """How much there is to count: decides between NumPy and compiled kernels."""
    if table.n_rows is None:
        return MANY_CELLS
    return table.n_rows * max(1, len(table.schema.used)) + WORD_CELLS * table.n_words


# Parameters, memberships and labels given by the user, as initialisation or fixed.


def holding(model: ClassModel, imagined: Imagined, fixed: Mapping[Any, Any] | None) -> Imagined:
    """The priors with some parameters fixed.

    `fixed` has "weights" for the groups' shares, and for a column some of its parameters by name. One number, or that
    of one group, is for all groups.
    """
    if not fixed:
        return imagined
    if not isinstance(fixed, Mapping):
        raise DataError(f"fixed is a mapping of 'weights' and columns to what they are fixed at, not {fixed!r}.")
    leaves = {leaf.key: leaf for leaf in model.leaves}
    name = shares_name(fixed)
    unknown = [key for key in fixed if key != name and key not in leaves]
    if unknown:
        names = ", ".join(repr(key) for key in leaves)
        raise DataError(f"fixed names {unknown[0]!r}, which is not a column of the model. It has: {names}.")
    said = {key: what for key, what in fixed.items() if key != name}
    held = {key: leaves[key].family.held_at(what, leaves[key].setting, model.groups) for key, what in said.items()}
    for leaf in model.leaves:
        for other in _sharing(model, leaf):
            if set(held.get(leaf.key, ())) != set(held.get(other.key, ())):
                raise DataError(
                    f"fixed: columns {leaf.key!r} and {other.key!r} share a variance, so fix the same in both."
                )
    if name in fixed:
        shares = fixed_numbers(fixed[name], "weights")
        if shares.shape != (model.groups,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
            raise DataError(f"fixed: 'weights' must be {model.groups} shares that sum to one, not {fixed[name]!r}.")
        held[ROOT] = {"probability": np.asarray(shares / shares.sum())[None]}
    return replace(imagined, fixed={**imagined.fixed, **{key: part for key, part in held.items() if part}})


def shares_name(given: Mapping[Any, Any]) -> Any:
    """The key of the shares in parameters by column: "weights", or "(weights)" if that is a column."""
    name = "weights"
    while isinstance(given.get(name), Mapping):
        name = f"({name})"
    return ROOT if ROOT in given else name


def _sharing(model: ClassModel, leaf: Node) -> list[Node]:
    """The columns that share a parameter with this one, itself included."""
    return [x for x in model.leaves if x.family == leaf.family] if leaf.family.shared_by_columns else [leaf]


def given_params(model: ClassModel, given: Mapping[Any, Any]) -> Params:
    """Parameters given by the user in the shape of `params_`, levels by name or in order."""
    groups, name = model.groups, shares_name(given)
    try:
        shares = np.asarray(given.get(name, np.full(groups, 1 / groups)), dtype=float)
    except (TypeError, ValueError):
        shares = np.full(0, np.nan)
    if shares.shape != (groups,) or not abs(shares.sum() - 1) <= 1e-6 or (shares < 0).any():
        raise DataError(f"init: 'weights' must be {groups} shares that sum to one, not {given.get(name)!r}.")
    known = {leaf.key for leaf in model.leaves}
    for key in given:
        if key != name and key not in known:
            raise DataError(f"init names {key!r}, which is not a column of the model.")
    leaves: dict[Any, Own] = {}
    for leaf in model.leaves:
        if leaf.key not in given:
            raise DataError(
                f"init has no parameters for column {leaf.key!r}. Give every column, or leave it out of the table."
            )
        leaves[leaf.key] = leaf.family.given(dict(given[leaf.key]), leaf.setting, groups)
    return model.params(shares, leaves)


def around(given: Mapping[Any, Any]) -> Callable[[ClassModel, Imagined], Params]:
    """Makes parameters from given means and shares (`ROOT`); all others are fixed ones or those of the whole table."""

    def make(model: ClassModel, imagined: Imagined) -> Params:
        said = {ROOT: given[ROOT]}
        for key in given:
            if key is not ROOT:
                leaf, fixed = model.nodes[key], imagined.fixed.get(key, {})
                hypers = [imagined.hypers[x.key] for x in _sharing(model, leaf)]
                said[key] = leaf.family.spread_around(hypers, leaf.setting, model.groups, fixed) | dict(given[key])
        return given_params(model, said)

    return make


def start_levels(init: Any) -> dict[Any, list[Any]]:
    if not isinstance(init, Mapping):
        return {}
    names = {name for family in FAMILIES.values() for name in family().chart}
    return {
        key: list(said)
        for key, said in init.items()
        if isinstance(said, Mapping) and not names & {str(x) for x in said}
    }


def checked_memberships(init: np.ndarray, ready: Sequence[Any], groups: int) -> np.ndarray:
    """The given memberships, or those of given labels."""
    rows = sum(part.n_rows for part in ready)
    if init.ndim == 1:
        if len(init) != rows:
            raise DataError(f"init: labels must be one for each of {rows} rows, not {len(init)}.")
        known = np.where(np.isnan(init), -1, init)
        wrong = (known != np.floor(known)) | (known < -1) | (known >= groups)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"init: row {row + 1} is labelled {init[row]:g}. Labels to start from are 0 to {groups - 1}, "
                "and -1 or NaN if unknown."
            )
        labels = known.astype(int)
        return np.where(labels[:, None] < 0, 1.0 / groups, np.eye(groups)[np.maximum(labels, 0)])
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)
