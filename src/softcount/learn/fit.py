"""From a table to a fitted model: naive Bayes when classes are known, a mixture when they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import HOWS, How, Multinormal
from softcount.families.base import NEVER_BELOW_ONE
from softcount.learn.em import Climb, Stop, Watch, climb, expected
from softcount.learn.start import drawn_memberships, given_params, members_params, open_params, sketch, start_params
from softcount.models.align import Older, aligned, reordered
from softcount.models.blanks import with_blanks
from softcount.models.fitted import Fitted
from softcount.models.leaves import Wishes, leaves_of, priors_of
from softcount.models.plates import Kernels
from softcount.models.settle import Settling, remapped, settling
from softcount.models.star import Imagined, Ready, Star, StarParams, best_evidence
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Contradiction, Table

MANY_CELLS = 1 << 40
"""What a stream of unknown length is taken to hold."""
MIXTURE_FLOOR = 1e-6
LABELLED_FLOOR = 1e-24
"""Of the column's variance, so a deviation of 1e-12: a class a million deviations from the others is not degenerate."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to fit: the user's wishes for columns, priors and estimates, and when to stop."""

    wishes: Wishes = field(default_factory=Wishes)
    prior: Any = 1.0
    estimate: How = "mean"
    class_prior: Any = None
    unlabelled_weight: float = 1.0
    stop: Stop = field(default_factory=Stop)
    target: Any = None
    watch: Watch | None = None

    def __post_init__(self) -> None:
        if self.estimate not in HOWS:
            raise DataError(f"estimate={self.estimate!r} is not known. Use one of {', '.join(HOWS)}.")

    @property
    def how(self) -> How:
        """How EM estimates: Jeffreys' and row priors have no mode and imply `mean`."""
        if self.estimate == "map" and isinstance(self.prior, str) and self.prior in NEVER_BELOW_ONE:
            return "mean"
        return self.estimate


def retyping(table: Table, attempt: Callable[[Table], Fitted]) -> Fitted:
    """Try to fit; where later rows contradict what the first ones suggested, start again with wider kinds."""
    while True:
        try:
            return attempt(table)
        except Contradiction as why:
            table = table.widened(why)


# -- known classes


def fit_labelled(table: Table, plan: Plan, threads: Threads, classes: Sequence[Any] | None = None) -> Fitted:
    """Naive Bayes: one pass if every class is known; EM over the unknown ones if not."""
    fitted = retyping(table.unchecked(), lambda t: _fit_labelled(t, plan, threads, classes))
    if not fitted.counts.finite:
        _refuse_infinite(table)
    return fitted


def _refuse_infinite(table: Table) -> None:
    """Sums that are not finite come from cells that are not: read again, checking each, to name the first."""
    for task in table.tasks():
        task()
    raise DataError("the numbers of some column are too large to be squared and added. Divide the column by its scale.")


def _fit_labelled(table: Table, plan: Plan, threads: Threads, classes: Sequence[Any] | None) -> Fitted:
    fast = Kernels(cells_of(table))
    counts, settled, kept = _tallied(table, plan, threads, fast, classes)
    names = settled.classes
    if counts.rows <= 0:
        raise DataError(
            "every label is unknown, so there is nothing to learn a class from. To find classes, use Mixture."
        )
    leaves = leaves_of(settled.schema, plan.wishes, len(names), table.bag_width, LABELLED_FLOOR)
    star = Star(settled.schema, leaves, len(names), fast, plan.unlabelled_weight)
    counts = star.unstacked(counts)
    imagined = imagine_classes(star, counts, plan)
    counts, imagined = with_older(star, counts, imagined, plan, names)
    notes = [*table.notes, *settled.notes, *chosen_notes(star, counts, plan)]
    params = star.estimate(counts, replace_how(imagined, _plug(plan.how)))
    hidden = _hidden(table, star, plan)
    way = None
    if hidden and isinstance(plan.prior, Older):
        raise DataError(
            f"{hidden}: an older model's counts cannot be joined with what EM expects yet. "
            "Leave those rows out (unlabelled_weight=0 for rows without a label), or merge() the two models."
        )
    if hidden:
        kept = kept or list(threads.map(lambda task: remapped(task(), settled, table), table.tasks()))
        way, imagined = climb_labelled(star, kept, params, imagined, plan, threads)
        counts, params = way.counts, way.params
        notes.append(_climb_note(hidden, way))
    if plan.estimate == "predictive" or plan.how != _plug(plan.how):
        params = star.estimate(counts, imagined)
    notes += state_notes(star, params, imagined, names)
    return Fitted(
        star=star, estimates=params, counts=counts, imagined=imagined, classes=list(names), target=plan.target,
        notes=notes, prior=plan.prior, class_prior=plan.class_prior, estimate=plan.estimate,
        missing=absent(star, counts, table), **_way_facts(way, plan, counts),
    )  # fmt: skip


def _tallied(
    table: Table, plan: Plan, threads: Threads, fast: Any, classes: Sequence[Any] | None
) -> tuple[Counts, Settling, list[Chunk] | None]:
    """Counts of labelled rows with levels and classes in sorted order, and the chunks if they had to be kept."""
    groups = len(classes) if classes is not None else 1
    kept = None
    if any(family.name == "joint" for family in plan.wishes.families.values()):
        raw = list(threads.map(lambda task: task(), table.tasks()))
        settled = settling(table, plan.wishes, None, classes)
        kept = [remapped(chunk, settled, table) for chunk in raw]
        leaves = leaves_of(settled.schema, plan.wishes, groups, table.bag_width, LABELLED_FLOOR)
        star = Star(settled.schema, leaves, len(settled.classes), fast)
        counts = total(threads, lambda chunk: star.tally(star.prepare(chunk, base=False)), kept)
        return _or_empty(counts), settled, kept
    leaves = leaves_of(table.schema, plan.wishes, groups, table.bag_width, LABELLED_FLOOR)
    star = Star(table.schema, leaves, groups, fast)
    counts = total(threads, lambda task: star.tally(star.prepare(task(), base=False)), table.tasks())
    counts = _or_empty(counts)
    settled = settling(table, plan.wishes, counts, classes)
    return reordered(counts, star, settled), settled, None


def _or_empty(counts: Counts | None) -> Counts:
    if counts is None:
        raise DataError("the table has no rows.")
    return counts


def _hidden(table: Table, star: Star, plan: Plan) -> str:
    """What is hidden that one pass cannot count, in words, or nothing."""
    if table.unknown_labels and plan.unlabelled_weight > 0:
        return f"{table.unknown_labels:,} rows without a label used as unlabelled"
    return holes_in_blocks(table, star)


def holes_in_blocks(table: Table, star: Star) -> str:
    """The first correlated block with missing cells, in words, or nothing."""
    for leaf in star.leaves:
        if isinstance(leaf.family, Multinormal) and any(table.missing.get(c) for c in leaf.columns):
            return f"holes in the block {leaf.key}"
    return ""


def climb_labelled(
    star: Star, kept: list[Chunk], params: StarParams, imagined: Imagined, plan: Plan, threads: Threads
) -> tuple[Climb, Imagined]:
    """EM over what is hidden beside known classes: labels with gaps, holes in a correlated block."""
    star, bare = with_blanks(star, kept), star
    ready = list(threads.map(star.prepare, kept))
    if star is not bare:
        counts = star.unstacked(_or_empty(total(threads, star.tally, ready)))
        imagined = imagine_classes(star, counts, plan)
        params = star.estimate(counts, replace_how(imagined, _plug(plan.how)))
    everything = expected(star, params, ready, threads)
    if np.isneginf(everything.log_likelihood):
        # An unlabelled row holds what no labelled one does: under `ml` it would be impossible in every class for ever.
        params = open_params(star, replace_how(imagined, _plug(plan.how)), ready)
        everything = expected(star, params, ready, threads)
    imagined = imagine_classes(star, everything, plan)
    way = climb(star, replace_how(imagined, _plug(plan.how)), ready, params, threads, plan.stop, plan.watch)
    return way, imagined


def imagine_classes(star: Star, counts: Counts, plan: Plan) -> Imagined:
    """Priors of a model whose classes are known: the scalar prior is for columns, class shares are as counted."""
    priors = priors_of(_own_prior(plan.prior), star.leaves, 1.0)
    root, root_how = _class_root(plan.class_prior, star.groups)
    return star.imagine(counts, priors, root, plan.how, root_how)


def chosen_notes(star: Star, counts: Counts, plan: Plan) -> list[str]:
    """What `"auto"` chose, column by column."""
    priors = priors_of(_own_prior(plan.prior), star.leaves, 1.0)
    auto = [leaf for leaf in star.leaves if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto"]
    return [
        f"column {leaf.key!r}: a prior of {best_evidence(leaf, counts.arrays[leaf.key]):.4g} has the best evidence."
        for leaf in auto
    ]


def _class_root(class_prior: Any, groups: int) -> tuple[Any, How]:
    if class_prior is None:
        return 0.0, "ml"
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(groups, 1.0 / groups), "ml"
    try:
        shares = np.asarray(class_prior, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"class_prior={class_prior!r} is not known. Use None, 'uniform', a number, or one share per class."
        ) from None
    if shares.ndim == 0:
        return float(shares), "mean"
    if shares.shape != (groups,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-8:
        raise DataError(f"class_prior must be {groups} shares, one per class in sorted order, that sum to one.")
    return shares, "ml"


def _own_prior(prior: Any) -> Any:
    return prior.prior if isinstance(prior, Older) else prior


def with_older(
    star: Star, counts: Counts, imagined: Imagined, plan: Plan, names: Sequence[Any]
) -> tuple[Counts, Imagined]:
    """The older model's counts, times its weight, added to what was observed."""
    if not isinstance(plan.prior, Older):
        return counts, imagined
    both = counts + aligned(plan.prior.model, star, names) * plan.prior.weight
    return both, imagine_classes(star, both, plan)


def replace_how(imagined: Imagined, how: How) -> Imagined:
    return replace(imagined, how=how)


def _plug(how: How) -> How:
    """EM plugs estimates in: predictive densities are for the end."""
    return "mean" if how == "predictive" else how


# -- unknown classes


@dataclass(frozen=True, slots=True)
class Starts:
    """How many groups, and where to start from."""

    groups: int
    init: Any = "k-means++"
    n_init: int = 10
    seed: Any = None


def fit_groups(table: Table, plan: Plan, starts: Starts, threads: Threads) -> Fitted:
    """A mixture: several starts, the best kept."""
    if isinstance(plan.prior, Older):
        raise DataError(
            "prior: an older model's counts are for known classes (NaiveBayes): a mixture's groups have no names. "
            "To start from an older mixture give it as init."
        )
    return retyping(table, lambda t: _fit_groups(t, plan, starts, threads))


def _fit_groups(table: Table, plan: Plan, starts: Starts, threads: Threads) -> Fitted:
    fast = Kernels(20 * cells_of(table))
    raw = list(threads.map(lambda task: task(), table.tasks()))
    if not raw:
        raise DataError("the table has no rows.")
    settled = settling(table, plan.wishes, None, None)
    chunks = [remapped(chunk, settled, table) for chunk in raw]
    leaves = leaves_of(settled.schema, plan.wishes, starts.groups, table.bag_width, MIXTURE_FLOOR)
    star = Star(settled.schema, leaves, starts.groups, fast, plan.unlabelled_weight)
    star = with_blanks(star, chunks)
    ready = list(threads.map(star.prepare, chunks))
    ways, imagined, notes = _climbs(star, chunks, ready, plan, starts, threads)
    best = max(ways, key=lambda way: way.objective)
    named = isinstance(starts.init, (Mapping, np.ndarray, Fitted))
    params, counts = (best.params, best.counts) if named else _largest_first(best)
    if plan.estimate == "predictive":
        params = star.estimate(counts, imagined)
    notes = [*table.notes, *settled.notes, *notes, *degenerate_notes(star, params, imagined)]
    return Fitted(
        star=star, estimates=params, counts=counts, imagined=imagined, classes=None, target=None, notes=notes,
        prior=plan.prior, class_prior=None, estimate=plan.estimate, missing=absent(star, counts, table),
        agreed=(sum(_same(way, best) for way in ways), len(ways)), **_way_facts(best, plan, counts),
    )  # fmt: skip


def _climbs(
    star: Star, chunks: list[Chunk], ready: list[Ready], plan: Plan, starts: Starts, threads: Threads
) -> tuple[list[Climb], Imagined, list[str]]:
    """Every start's climb. Priors look at the whole table, which any memberships add up to.

    An `"auto"` prior needs classes to choose by: one imagined row first, then the best evidence in what that found.
    """
    counts = _shared_counts(star, ready, threads)
    priors = priors_of(plan.prior, star.leaves, "row")
    auto = [key for key, prior in priors.items() if isinstance(prior, str) and prior == "auto"]
    imagined = _imagine_groups(star, counts, priors | dict.fromkeys(auto, "row"), plan)
    notes: list[str] = []
    ways = []
    for params in _start_params(star, imagined, chunks, ready, starts, notes):
        ways.append(climb(star, imagined, ready, params, threads, plan.stop, plan.watch))
    if auto:
        best = max(ways, key=lambda way: way.objective)
        found = best.counts.arrays
        priors |= {leaf.key: best_evidence(leaf, found[leaf.key]) for leaf in star.leaves if leaf.key in auto}
        imagined = _imagine_groups(star, counts, priors, plan)
        ways = [climb(star, imagined, ready, best.params, threads, plan.stop, plan.watch)]
        notes += [f"column {key!r}: a prior of {priors[key]:.4g} has the best evidence." for key in auto]
    return ways, replace_how(imagined, plan.how), notes


def _imagine_groups(star: Star, counts: Counts, priors: Mapping[Any, Any], plan: Plan) -> Imagined:
    root = plan.prior if isinstance(plan.prior, (int, float, str)) and plan.prior != "auto" else "row"
    return star.imagine(counts, priors, root, _plug(plan.how), _plug(plan.how))


def _shared_counts(star: Star, ready: list[Ready], threads: Threads) -> Counts:
    """The whole table's counts, every row shared equally between the groups."""

    def work(part: Ready) -> Counts:
        return star.tally_members(part, np.full((part.n_rows, star.groups), 1.0 / star.groups))

    return star.unstacked(_or_empty(total(threads, work, ready)))


def _start_params(
    star: Star, imagined: Imagined, chunks: list[Chunk], ready: list[Ready], starts: Starts, notes: list[str]
) -> Any:
    init = starts.init
    if isinstance(init, Fitted):
        yield star.estimate(aligned(init, star, None), imagined)
    elif isinstance(init, Mapping):
        yield given_params(star, init)
    elif isinstance(init, np.ndarray):
        yield members_params(star, imagined, ready, _checked_memberships(init, ready, star.groups))
    else:
        yield from _drawn_params(star, imagined, chunks, ready, starts, notes)


def _drawn_params(
    star: Star, imagined: Imagined, chunks: list[Chunk], ready: list[Ready], starts: Starts, notes: list[str]
) -> Any:
    rows = sketch(chunks)
    if len(rows.weights) < star.groups:
        notes.append(f"asked for {star.groups} classes, but the table has only {len(rows.weights)} distinct rows.")
    for child in np.random.SeedSequence(_entropy(starts.seed)).spawn(starts.n_init if star.groups > 1 else 1):
        members = drawn_memberships(rows, star.groups, starts.init, np.random.default_rng(child))
        yield start_params(star, imagined, rows, members)


def _entropy(seed: Any) -> Any:
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(0, 2**31 - 1))
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**62))
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"random_state must be None, a whole number of at least 0, or a generator, not {seed!r}.")
    return int(seed)


def _checked_memberships(init: np.ndarray, ready: list[Ready], groups: int) -> np.ndarray:
    rows = sum(part.n_rows for part in ready)
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)


def _largest_first(way: Climb) -> tuple[StarParams, Counts]:
    """Groups in the order of their size."""
    order = np.argsort(-way.counts[ROOT], kind="stable")
    leaves = {key: {k: v[order] for k, v in part.items()} for key, part in way.params.leaves.items()}
    return StarParams(way.params.shares[order], leaves), way.counts.map(lambda array: array[order])


def _same(way: Climb, best: Climb) -> bool:
    return best.objective - way.objective <= 1e-3 + 1e-7 * abs(best.objective)


# -- what both say


def _way_facts(way: Climb | None, plan: Plan, counts: Counts) -> dict[str, Any]:
    if way is None:
        return {"trace": [], "converged": True, "log_likelihood": None, "objective": ""}
    how = _plug(plan.how)
    names = {
        "ml": "log-likelihood",
        "map": "log-likelihood + log prior",
        "mean": "log-likelihood + log prior of concentration a + 1",
    }
    return {
        "trace": way.trace,
        "converged": way.converged,
        "log_likelihood": counts.log_likelihood,
        "objective": names[how],
    }


def _climb_note(hidden: str, way: Climb) -> str:
    state = "converged" if way.converged else "stopped"
    return f"{hidden}: EM {state} after {way.n_iter} iterations."


def state_notes(star: Star, params: StarParams, imagined: Imagined, names: Sequence[Any]) -> list[str]:
    """What is odd about a model of known classes as it stands."""
    notes = degenerate_notes(star, params, imagined)
    if len(names) == 1:
        only = names[0].item() if isinstance(names[0], np.generic) else names[0]
        notes.append(f"only one class, {only!r}: every prediction will be it.")
    return notes


def degenerate_notes(star: Star, params: StarParams, imagined: Imagined) -> list[str]:
    """Groups whose variance met its floor."""
    notes = []
    for leaf in star.leaves:
        floor = imagined.leaves[leaf.key].get("floor")
        variance = params.leaves[leaf.key].get("variance")
        if floor is not None and variance is not None and (variance <= floor).any():
            at = ", ".join(str(g) for g in np.flatnonzero(variance <= floor))
            notes.append(f"column {leaf.key!r} does not vary in group {at}: its variance is held at a floor.")
    return notes


def absent(star: Star, counts: Counts, table: Table) -> dict[Any, float]:
    """Missing cells of each column: the rows' weight less what the column's own counts hold."""
    found: dict[Any, float] = {}
    for leaf in star.leaves:
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
    return table.n_rows * max(1, len(table.schema.used))
