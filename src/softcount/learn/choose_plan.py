"""Several ways to model one table, each with as many classes as suit it: the one that the criterion likes best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from softcount.learn.choose import NumberSearch
from softcount.learn.groups import Starts
from softcount.learn.learned import Learned
from softcount.learn.plan import Plan
from softcount.learn.prepare import prepare
from softcount.run.base import Runner
from softcount.table import Table

SHORT = {"bic": "BIC", "icl": "ICL"}
FEW = 2
"""Classes that every plan is tried with."""


def fit_best_plan(
    table: Table, plans: Mapping[str, Plan], setting: str, starts: Starts, runner: Runner, criterion: str
) -> Learned:
    """The mixture of the best plan, which says how the others did; of equals the first.

    They are named by what a setting may be. Numbers of classes are tried under each, as long as it may still be the
    best, and only that is climbed to its end.
    """
    tried: dict[str, NumberSearch] = {}
    for name, plan in plans.items():
        tried[name] = NumberSearch(prepare(table, plan, runner), plan, starts, runner, criterion)
        _run(tried[name], [*tried.values()][:-1])
        if tried[name].interrupted:
            break
    best = max(tried, key=lambda name: tried[name].merit)
    found = tried[best].chosen()
    return replace(found, notes=[*found.notes, _said(setting, best, tried)])


def _run(search: NumberSearch, before: Sequence[NumberSearch]) -> None:
    """Try numbers of classes under one plan for as long as it may still overtake the others."""
    while True:
        search.run(max(FEW, search.best if search.trials else 0))
        if search.interrupted or search.exhausted or any(other.far_ahead(search) for other in before):
            return


def _said(setting: str, best: str, tried: Mapping[str, NumberSearch]) -> str:
    """All of them in one line, the best first."""
    order = sorted(tried, key=lambda name: (name != best, -tried[name].merit))
    more = {name: "" if tried[name].exhausted or tried[name].interrupted else " and more" for name in order}
    told = [f"{name!r} {tried[name].figure} with {tried[name].best} classes{more[name]}" for name in order]
    criterion = tried[best].criterion
    return f"{setting}={best!r} is chosen by the {SHORT.get(criterion, criterion)}: {', '.join(told)}."
