"""The plan of a fit and its result: settings, parameters, marginal likelihood, notes, and the trace of every EM run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, lgamma, log
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from softcount.core.counts import ROOT, Counts
from softcount.core.lazy import entr
from softcount.core.ranges import NotNegative
from softcount.errors import DataError
from softcount.families import How, floors
from softcount.families.base import NEVER_BELOW_ONE
from softcount.families.learning import count_free, observed_rows
from softcount.learn.checkpoints import Checkpoint
from softcount.models.base import ClassModel, CompiledStep, Model
from softcount.models.declare import Declared
from softcount.models.nodes import Bundle, Imagined, Params
from softcount.priors import Dirichlet
from softcount.run.local import Rows, Runner, rows_here
from softcount.table import Contradiction, Table, wording
from softcount.table.column_summary import TableSummary
from softcount.table.schema import Key, Schema

Watch = Callable[[int, float], None]
Assignment = Literal["soft", "hard", "drawn"]
WatchStarts = Callable[[int, int, int, float], None]
"""Called with the number of a run, how many there are, its iteration and its objective."""
Result = TypeVar("Result")
WORD_CELLS = 4
"""Cells that a word of a document counts for: sparse products take this many times as long as a lookup."""
MANY_CELLS = 1 << 40
"""Assumed size of a stream of unknown length."""
MANY_NAMES = 8
"""Columns of a block from which on they are not named one by one."""
HARD = "log-likelihood of rows and their groups"


# How to fit.


class Stop(Struct, frozen=True):
    """When to stop: after `max_iter` steps, or once the predicted remaining gain is below `tol`.

    `tol=0` takes exactly `max_iter` plain steps. Hard assignment stops when a step gains nothing. Drawn assignment
    never stops early and ends at the best parameters found. Both, and `half_steps`, take plain steps.
    """

    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = False
    assign: Assignment = "soft"
    finish: str | None = None
    half_steps: bool = False

    def __post_init__(self) -> None:
        if self.finish and self.tol == 0:
            raise DataError(
                f"finish={self.finish!r} needs a tolerance above 0: tol=0 takes exactly max_iter steps of EM and no "
                "others. Use finish=None, or tol=1e-8."
            )
        if self.finish and (self.assign != "soft" or self.half_steps):
            raise DataError(f"finish={self.finish!r} is for soft assignment and whole steps. Use finish=None.")

    def small(self, gain: float, objective: float) -> bool:
        return self.tol > 0 and gain <= self.tol * max(1.0, abs(objective))


class EMRun(Struct, frozen=True):
    """The result of an EM run: the parameters just scored, their expected counts, and the trace.

    The trace holds the objective after every pass; a refused extrapolation repeats the previous one. With `half_steps`
    it also holds the lower bound after every M-step in between.
    """

    params: Params
    counts: Counts
    trace: list[float]
    converged: bool
    fell: float = 0.0
    interrupted: bool = False
    half_steps: bool = False
    notes: tuple[str, ...] = ()
    units: float = 0.0

    @property
    def objective(self) -> float:
        return max(self.trace)

    @property
    def size(self) -> float:
        """The scale for differences of the objective: its size without the columns' units, at least 1."""
        return max(1.0, abs(self.objective - self.units))

    @property
    def n_iter(self) -> int:
        return (len(self.trace) - 1) // (2 if self.half_steps else 1)


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
    fold_counter: Any = None  # what else is counted in the pass that learns: `evaluate.folds.FoldCounter`

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
        """The estimate of the result: Jeffreys' and row priors have no mode and imply `mean`."""
        if self.estimate == "map" and isinstance(self.prior, str) and self.prior in NEVER_BELOW_ONE:
            return "mean"
        return self.estimate

    @property
    def em_how(self) -> How:
        """The estimate during EM: predictive densities are computed at the end."""
        return "mean" if self.how == "predictive" else self.how


def prior_levels(prior: Any) -> dict[Any, list[Any]]:
    """Return the categories that priors name, which exist whether seen or not."""
    if not isinstance(prior, Mapping):
        return {}
    named = {key: own.levels for key, own in prior.items() if isinstance(own, Dirichlet)}
    return {key: list(levels) for key, levels in named.items() if levels is not None}


def retry_wider(table: Table, attempt: Callable[[Table], Result], runner: Runner, known_classes: bool = True) -> Result:
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


def em_facts(reached: EMRun, plan: Plan, counts: Counts) -> dict[str, Any]:
    how = plan.em_how
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


def note_em(hidden: str, reached: EMRun) -> str:
    state = "converged" if reached.converged else "stopped"
    return f"{hidden}: EM {state} after {reached.n_iter} iterations."


def explain_stop(reached: EMRun, plan: Plan) -> list[str]:
    """Why EM stopped before convergence."""
    if reached.fell > 0:
        why = f"EM stopped after {reached.n_iter} iterations, because the next would have lowered its objective."
        return [*reached.notes, why]
    # No step at all is allowed if the result of an interrupted search is only counted.
    cut = reached.interrupted or plan.stop.max_iter == 0
    if not reached.converged and plan.stop.tol > 0 and plan.stop.assign != "drawn" and not cut:
        return [*reached.notes, f"EM stopped at max_iter={plan.stop.max_iter} before it converged."]
    return [*reached.notes]


def note_states(model: ClassModel, params: Params, imagined: Imagined, names: Sequence[Any]) -> list[str]:
    """Notes on choices and degenerate columns of a model of known classes."""
    notes = []
    for leaf in model.leaves:
        facts = leaf.family.facts
        what = leaf.density(params).decision() if facts.needs_classes or facts.counts_points else None
        if what is not None:
            notes.append(f"{wording.column(leaf.key)}: {what}.")
    notes += note_degenerate(model, params, imagined)
    if len(names) == 1:
        only = names[0].item() if isinstance(names[0], np.generic) else names[0]
        notes.append(f"only one class, {only!r}: every prediction will be this class.")
    return notes


def note_degenerate(model: ClassModel, params: Params, imagined: Imagined) -> list[str]:
    notes = []
    for leaf in model.leaves:
        narrow = floors.find_narrow(leaf.family, params[leaf.key], imagined.hypers[leaf.key])
        if narrow.any():
            at = ", ".join(str(g) for g in np.flatnonzero(narrow))
            what, how = f"column {leaf.key!r}", "does not vary"
            if isinstance(leaf.key, tuple):
                many = len(leaf.key) > MANY_NAMES
                what, how = f"the block of {len(leaf.key)} columns" if many else f"block {leaf.key!r}", "is flat"
            notes.append(f"{what} {how} in group {at}: its variance is held at a floor.")
    return notes


def count_missing(model: ClassModel, counts: Counts, table: Table) -> dict[Any, float]:
    """Missing cells of each column: the rows' weight less what the column's counts hold."""
    found: dict[Any, float] = {}
    for leaf in model.leaves:
        observed = observed_rows(leaf.family, counts.arrays[leaf.key].hi)
        if observed is None:
            found |= {column: float(table.missing.get(column, 0)) for column in leaf.columns}
        else:
            found[leaf.key] = max(0.0, round(counts.rows - observed, 9))
    return found


def count_cells(table: Table) -> int:
    """How much there is to count: decides between NumPy and compiled kernels."""
    if table.n_rows is None:
        return MANY_CELLS
    return table.n_rows * max(1, len(table.schema.used)) + WORD_CELLS * table.n_words


# Marginal likelihood and information criteria.


def cheeseman_stutz(model: ClassModel, imagined: Imagined, params: Params, counts: Counts, known: int = 0) -> float:
    """Return the log marginal likelihood of the table by Cheeseman and Stutz, at parameters just scored.

    It is log P(D'|K) + log P(D|theta) - log P(D'|theta), with expected counts D'; exact for one class without missing
    values. All but the first `known` classes can be numbered in K! ways, each of which is an optimum.
    """
    whole = complete_evidence(model, imagined, params, counts)
    return whole + counts.log_likelihood - model.nodes.completed(counts, params) + lgamma(model.groups - known + 1)


def complete_evidence(
    model: Model, imagined: Imagined, params: Params, counts: Counts, *, leaves_only: bool = False
) -> float:
    """Return the log marginal likelihood of complete rows with these counts, in counting units and without `base`.

    Nodes with fixed parameters get a BIC penalty for the free ones. With `leaves_only` the class is left out.
    """
    bundles = [bundle for bundle in model.nodes.bundles if not (leaves_only and bundle.name == ROOT)]
    return sum(_evidence(bundle, imagined, params, counts) for bundle in bundles)


def _evidence(bundle: Bundle, imagined: Imagined, params: Params, counts: Counts) -> float:
    family, stats = bundle.family, counts.arrays[bundle.name]
    held = [place for place, key in enumerate(bundle.keys) if key in imagined.fixed]
    if not held:
        return family.evidence(stats, family.proper(imagined.of(bundle)))
    total = 0.0
    for place in held:
        node, own = bundle.nodes[place], stats if bundle.alone else stats[:, place]
        fixed = imagined.fixed[node.key]
        left = count_free(family, node.setting, bundle.groups) - count_free(
            family, node.setting, bundle.groups, names=fixed
        )
        total += family.completed(own, params[node.key]) - 0.5 * left * log(max(counts.rows, 1.0))
    free = [place for place in range(len(bundle.nodes)) if place not in held]
    if free:
        rest = Bundle.of([bundle.nodes[place] for place in free])
        hyper = Imagined(imagined.hypers, imagined.how).of(rest)
        total += family.evidence(stats[:, np.array(free)], family.proper(hyper))
    return total


def memberships_entropy(model: ClassModel, params: Params, ready: Rows | Sequence[Any], runner: Runner) -> float:
    """Return the weighted sum of the entropies of the memberships, in nats."""
    return float(rows_here(ready, runner).total(CompiledStep(model, params, _sum_entropies)))


def _sum_entropies(model: ClassModel, compiled: Any, ready: Any) -> float:
    found = []
    for rows in ready.tiles():
        entropies = entr(model.memberships(ready, compiled, rows)).sum(axis=1)
        if ready.labels is not None:
            entropies[ready.labels[rows] >= 0] = 0.0
        found.append(float(entropies.sum() if ready.weights is None else entropies @ ready.weights[rows]))
    return sum(found)


def bic(log_likelihood: float, n_parameters: int, rows: float) -> float:
    """Return -2 log-likelihood + parameters x log(rows); smaller is better."""
    return n_parameters * log(max(rows, 1.0)) - 2 * log_likelihood


def description_length(criterion: float) -> float:
    """Return half of a BIC in bits: the length of parameters and rows; smaller is better.

    For numbers, bits are relative to the unit of the column, so that only differences are meaningful.
    """
    return criterion / (2 * log(2.0))


# Traces of all EM runs of a search.

MOST_STARTS, MOST_STEPS = 20, 150
"""Maximum number of runs, and of steps of each, that are kept."""

Traces = tuple[tuple[float, ...], ...]


class StartTraces(Struct):
    """A callback that records the traces of all runs and forwards every call.

    Each number of classes has a separate list. `nearest` finds the one that reached an objective.
    """

    report_to: WatchStarts
    searches: list[dict[int, list[float]]] = field(default_factory=lambda: [{}])

    def __call__(self, start: int, of: int, iteration: int, objective: float) -> None:
        known = self.searches[-1].get(start)
        if iteration == 0 and known and len(known) > 1 and objective < known[-1]:  # another number of classes
            self.searches.append({})
        trace = self.searches[-1].setdefault(start, [])
        if isfinite(objective) and len(trace) < MOST_STEPS:
            if trace and iteration < len(trace) and iteration > 0:  # several tries of one initialisation: keep the best
                trace[iteration] = max(trace[iteration], objective)
            else:
                trace.append(objective)
        self.report_to(start, of, iteration, objective)

    def nearest(self, objective: float, slack: float = 1e-6) -> Traces:
        """Return the traces of the search whose best run came near to an objective; empty if no search did.

        >>> watch = StartTraces(lambda *step: None)
        >>> for step, value in enumerate([-9.0, -5.0, -4.0]): watch(1, 2, step, value)
        >>> for step, value in enumerate([-8.0, -6.0, -6.0]): watch(2, 2, step, value)
        >>> watch.nearest(-4.0)
        ((-9.0, -5.0, -4.0), (-8.0, -6.0, -6.0))
        """
        near = slack * max(1.0, abs(objective))
        for search in reversed(self.searches):
            if search and abs(max(max(trace, default=-1e300) for trace in search.values()) - objective) <= near:
                return tuple(tuple(trace) for trace in list(search.values())[:MOST_STARTS])
        return ()


# The record of a fit: scores on held-out rows, a summary of the table, its origin.


class Provenance(Struct, frozen=True):
    """Version, command, seed and data that a model was learned from. `sha256` is the hash of the data's bytes."""

    version: str
    command: str
    seed: int
    data: str
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")] | None = None


class FitRecord(Struct, frozen=True):
    """Facts about a fit that are kept with the model. `evaluation` is an `evaluate.scores.Evaluation` or None.

    `criterion` chose the number of classes, if it was searched. `starts` holds the traces of all runs. `gains` holds
    the nats per held-out row by which each column lowers the log-loss: numbers first, then categories, then texts. It
    is empty if not known.
    """

    evaluation: Any = None
    table: TableSummary | None = None
    provenance: Provenance | None = None
    criterion: str | None = None
    starts: Traces = ()
    gains: tuple[NotNegative, ...] = ()


# The result of learning: structure, counts, priors, parameters and the history of the fit.


class Trial(Struct, frozen=True):
    """A number of classes and its criteria: `bic`, `mdl` and `icl` are better if smaller, the others if larger.

    `cv` is the cross-validated log-likelihood per row or None. `reached` is the number of classes that are not
    degenerate. If it is less than `classes`, this number cannot be chosen.
    """

    classes: int
    log_likelihood: float
    n_parameters: int
    bic: float
    icl: float
    evidence: float
    cv: float | None
    reached: int

    @property
    def mdl(self) -> float:
        return description_length(self.bic)

    @property
    def figures(self) -> dict[str, Any]:
        """All criteria by name."""
        kept = asdict(self)
        before = [*kept][: [*kept].index("bic") + 1]
        return {**{name: kept[name] for name in before}, "mdl": self.mdl, **kept}

    def merit(self, criterion: str) -> float:
        value = getattr(self, criterion)
        if self.reached < self.classes > 1 or value is None or not np.isfinite(value):
            return -np.inf
        return float(-value if criterion in ("bic", "icl") else value)


class Learned(Struct, frozen=True, eq=False):
    """A model with its parameters, and the counts by node that they were estimated from.

    `classes` names the groups of a model of known classes and is None for a mixture. `named` are the labelled classes
    of a mixture, its first groups. `selection` holds the trials of a search for the number of groups. `undecided` is
    the entropy of the memberships in nats. With `half_steps` the trace has two entries per iteration.
    """

    model: ClassModel
    estimates: Params
    counts: Counts
    imagined: Imagined
    classes: list[Any] | None = None
    target: Key | None = None
    notes: list[str] = field(default_factory=list)
    prior: Any = 1.0
    class_prior: Any = None
    estimate: str = "mean"
    missing: dict[Key, float] = field(default_factory=dict)
    trace: list[float] = field(default_factory=list)
    converged: bool = True
    log_likelihood: float | None = None
    objective: str = ""
    agreed: tuple[int, int] | None = None
    named: list[Any] | None = None
    selection: list[Any] | None = None
    half_steps: bool = False
    interrupted: bool = False
    record: FitRecord = FitRecord()
    undecided: float | None = None

    @classmethod
    def of(cls, learned: Learned) -> Self:
        """Return what was learned as a model of this class."""
        return cls(**asdict(learned))

    @property
    def title(self) -> str:
        """The name of the model in reports."""
        return f"Model {self.model.name}"

    def suitable_estimator(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and settings of the estimator that a file of this model is loaded as; None if it has none."""
        return None

    @property
    def n_iter(self) -> int:
        return max(len(self.trace) - 1, 0) // (2 if self.half_steps else 1)

    @property
    def information(self) -> dict[str, float] | None:
        """AIC, BIC, the entropy of the memberships in nats, and ICL, for the rows that a mixture was learned from.

        None if the log-likelihood was not kept, or if the classes are known. All but log-likelihood and entropy are
        better if smaller.
        """
        if self.log_likelihood is None or self.classes is not None:
            return None
        height, size = self.log_likelihood, self.n_parameters
        short = bic(height, size, self.counts.rows)
        known = {"log_likelihood": height, "bic": short, "aic": 2.0 * size - 2 * height}
        unsure = self.undecided
        return known if unsure is None else {**known, "entropy": unsure, "icl": short + 2 * unsure}

    @property
    def schema(self) -> Schema:
        return self.model.schema

    @property
    def n_groups(self) -> int:
        return self.model.groups

    @property
    def shares(self) -> np.ndarray:
        return self.estimates.shares

    @property
    def n_parameters(self) -> int:
        return self.model.nodes.n_parameters(self.imagined)
