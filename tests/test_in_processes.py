"""Every task and step of a fit in a pool of processes: the same bits as in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from process_runner import Processes
from small_tables import fruit
from softcount.evaluate.scores import cross_validate
from softcount.learn.choose import search_classes
from softcount.learn.em import Stop
from softcount.learn.known_classes import fit_labelled
from softcount.learn.mixture import Starts, fit_groups
from softcount.learn.record import Learned
from softcount.learn.settings import Plan
from softcount.models.declare import read_kinds
from softcount.run.local import Runner, Threads
from softcount.table import Table, open_table

ROWS = 9_000
KINDS: dict[Any, Any] = {
    "size": "normal", ("colour", "shape"): "categorical", "visits": "poisson", ("x", "y"): "multinormal",
    "note": "text",
}  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Processes]:
    with Processes(2) as found:
        yield found


def columns() -> tuple[dict[str, Any], list[Any]]:
    """Numbers, levels that come late, counts, a correlated block with holes, documents; every third label unknown."""
    frame, names = fruit(ROWS)
    rng = np.random.default_rng(1)
    found = {name: list(frame[name]) for name in ("size", "colour", "visits")}
    found["shape"] = [f"s{i // 2000}" if i % 7 else None for i in range(ROWS)]
    block = rng.normal(size=(ROWS, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    found["x"], found["y"] = np.where(rng.random(ROWS) < 0.1, np.nan, block[:, 0]), block[:, 1]
    found["note"] = [" ".join(rng.choice(["ant", "bee", "cat", f"w{i // 3000}"], 4)) for i in range(ROWS)]
    return found, [None if i % 3 == 0 else str(name) for i, name in enumerate(names)]


def labelled(runner: Runner) -> Learned:
    table, plan = opened(labels=True)
    return fit_labelled(table, plan, runner)


def known(runner: Runner) -> Learned:
    """No gaps and nothing hidden: one pass."""
    found, names = columns()
    kinds = {key: kind for key, kind in KINDS.items() if key != ("x", "y")}
    plan = Plan(read_kinds(kinds | {"x": "normal", "y": "student"}), stop=Stop(3), target="kind")
    full = {**found, "kind": [name or "other" for name in names]}
    return fit_labelled(open_table(full, kinds=dict(plan.declared.forced), target="kind"), plan, runner)


def grouped(runner: Runner) -> Learned:
    table, plan = opened(labels=False)
    return fit_groups(table, plan, Starts(3, n_init=2, seed=0), runner)


def drawn(runner: Runner) -> Learned:
    table, plan = opened(labels=False, stop=Stop(4, assign="drawn"))
    return fit_groups(table, plan, Starts(2, n_init=1, seed=0), runner)


def chosen(runner: Runner) -> Learned:
    kinds = {"size": "normal", "visits": "poisson"}
    table, plan = opened(labels=False, stop=Stop(10, 1e-3, accelerate=True), kinds=kinds)
    return search_classes(table, plan, Starts(1, n_init=1, seed=0), runner, "bic").chosen()


def opened(labels: bool, stop: Stop | None = None, kinds: Any = None) -> tuple[Table, Plan]:
    found, names = columns()
    said = kinds or KINDS
    plan = Plan(read_kinds(said), prior="row", stop=stop or Stop(4, 0.0), target="kind" if labels else None)
    kept = {name: found[name] for key in said for name in (key if isinstance(key, tuple) else (key,))}
    table = {**kept, "kind": names} if labels else kept
    return open_table(table, kinds=dict(plan.declared.forced), target=plan.target), plan


FITS: dict[str, Callable[[Runner], Learned]] = {
    "labelled": labelled, "known": known, "grouped": grouped, "drawn": drawn, "chosen": chosen,
}  # fmt: skip


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_in_processes_has_the_bits_of_one_in_threads(fit: str, pool: Processes) -> None:
    with Threads(2) as threads:
        here, there = FITS[fit](threads), FITS[fit](pool)
    assert here.trace == there.trace and here.classes == there.classes and here.schema == there.schema
    for key in here.model.nodes.places:
        for name, value in here.estimates[key].items():
            assert np.array_equal(value, there.estimates[key][name]), (key, name)
        assert np.array_equal(here.counts.arrays[key].hi, there.counts.arrays[key].hi), key
        assert np.array_equal(here.counts.arrays[key].lo, there.counts.arrays[key].lo), key


def test_folds_in_processes_have_the_scores_of_threads(pool: Processes) -> None:
    table, plan = opened(labels=True)
    with Threads(2) as threads:
        here, there = (cross_validate(table, plan, runner) for runner in (threads, pool))
    assert here == there
