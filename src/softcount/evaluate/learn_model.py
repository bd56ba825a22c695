"""Learning a model from a table, whether its classes are known or looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import warn
from softcount.fitted.fitted import Fitted

if TYPE_CHECKING:
    from softcount.learn.choose import NumberSearch
    from softcount.learn.mixture import Starts
    from softcount.learn.settings import Plan
    from softcount.run.local import Runner
    from softcount.table import Table


class ClassSearch(Struct, frozen=True):
    """Classes to be found: where to start from, and the criterion that chooses their number (None: it is given).

    The criterion also chooses among `plans`, if there are any, which are named by what a `setting` may be.
    """

    starts: Starts
    criterion: str | None = None
    plans: Mapping[str, Plan] | None = None
    setting: str = ""


def learn_model(
    table: Table,
    plan: Plan,
    runner: Runner,
    search: ClassSearch | None = None,
    calibration: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Fitted:
    """A model of the classes that labels tell, its probabilities corrected if asked for; or of those a search finds.

    `classes` are those of coded labels. What was interrupted is not corrected.
    """
    _foretell(table)
    if search is not None and search.plans is not None:
        from softcount.learn.choose import fit_best_plan

        assert search.criterion is not None
        plans = {name: replace(own, watch=plan.watch, log=plan.log) for name, own in search.plans.items()}
        return Fitted.of(fit_best_plan(table, plans, search.setting, search.starts, runner, search.criterion))
    if search is not None and search.criterion is not None:
        return Fitted.of(_search_numbers(table, plan, runner, search).chosen())
    table, plan = choose_densities(table, plan, runner, known_classes=search is None)
    if search is None:
        from softcount.evaluate.calibrate import calibrated
        from softcount.learn.known_classes import fit_labelled

        fitted = Fitted.of(fit_labelled(table, plan, runner, classes))
        if calibration is None or fitted.interrupted:
            return fitted
        return calibrated(fitted, table, replace(plan, watch=None), runner, calibration, classes)
    from softcount.learn.mixture import fit_groups

    return Fitted.of(fit_groups(table, plan, search.starts, runner))


def _search_numbers(table: Table, plan: Plan, runner: Runner, search: ClassSearch) -> NumberSearch:
    """Numbers of classes under the chosen densities, or under the default ones if the criterion prefers these.

    Densities are chosen by all rows together, which classes may contradict, and a column whose density is chosen is
    not put in a block: on breast cancer that lost 19 nats per held-out row.
    """
    from softcount.learn.choose import searched

    assert search.criterion is not None
    found = searched(
        *choose_densities(table, plan, runner, known_classes=False), search.starts, runner, search.criterion
    )
    if found.interrupted or not (plan.declared.all_auto or plan.declared.auto):
        return found
    default = replace(plan, declared=replace(plan.declared, auto=frozenset(), all_auto=False))
    other = searched(
        *choose_densities(table, default, runner, known_classes=False), search.starts, runner, search.criterion
    )
    if found.merit >= other.merit:
        return found
    return other.because(
        f"Columns keep their default kinds: the {search.criterion} is {other.figure} with {other.best} classes; with "
        f"densities chosen by all rows together it is {found.figure} with {found.best}."
    )


def _foretell(table: Table) -> None:
    """Say before the work what would else be said when it is to be saved."""
    if (why := table.schema.unsaveable) is not None:
        warn(f"this model cannot be saved: {why}")


def choose_densities(table: Table, plan: Plan, runner: Runner, known_classes: bool) -> tuple[Table, Plan]:
    """The table and the plan once the densities that were left open are chosen by the rows."""
    if not plan.declared.leaves_open:
        return table, plan
    from softcount.learn.density_choice import decided

    return decided(table, plan, runner, known_classes)
