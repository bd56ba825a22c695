"""Summaries of columns: exact counts, quantiles of a part of long tables, and the same for any chunks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from softcount.table import column_summary, open_table
from softcount.table.column_summary import PassSummary, TableSummary, counted_between, summarise


def cells(n: int = 400, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(50, 10, n).round(2)
    colours = rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]).tolist()
    holes = rng.random(n) < 0.2
    return {
        "size": [None if hole else float(x) for x, hole in zip(numbers, holes, strict=True)],
        "colour": [
            None if hole and place % 2 else x for place, (x, hole) in enumerate(zip(colours, holes, strict=True))
        ],
        "n": rng.poisson(3, n).tolist(),
    }


def summary_of(table: dict[str, list[Any]], like: TableSummary | None = None) -> TableSummary:
    opened = open_table(table, kinds={"n": "count"})
    for task in opened.tasks():
        task()
    settled = opened.settle()
    return summarise(map(settled.recoded, opened.chunks()), settled.schema, like)


def test_every_cell_is_counted_once() -> None:
    table = cells()
    found = summary_of(table)
    assert found.rows == 400
    for column in found.columns:
        own = table[str(column.key)]
        assert column.missing == own.count(None)
        assert column.there == len(own) - own.count(None)
    colour = found.column("colour")
    assert colour is not None
    counted = Counter(x for x in table["colour"] if x is not None)
    assert [n for _, n in colour.levels] == sorted(counted.values(), reverse=True)
    assert {sorted(counted)[place]: n for place, n in colour.levels} == dict(counted)


def test_quantiles_and_bins_are_those_of_the_numbers() -> None:
    table = cells()
    size = summary_of(table).column("size")
    assert size is not None
    own = np.array([x for x in table["size"] if x is not None])
    np.testing.assert_allclose(size.quantiles, np.quantile(own, np.linspace(0, 1, 21)))
    between = [((own > low) & (own <= high)).sum() for low, high in zip(size.edges[:-1], size.edges[1:], strict=True)]
    assert list(size.in_bins) == [(own <= size.edges[0]).sum(), *between, 0]


def test_holes_in_the_same_rows_are_counted_by_pairs() -> None:
    table = cells()
    both = sum(a is None and b is None for a, b in zip(table["size"], table["colour"], strict=True))
    assert summary_of(table).together == ((0, 1, both),)


def test_copies_of_rows_are_counted() -> None:
    table = cells(50)
    repeated = {key: [*column, *column[:7]] for key, column in table.items()}
    different = len(set(zip(*table.values(), strict=True)))
    assert summary_of(table).copies == 50 - different
    assert summary_of(repeated).copies == 57 - different


def test_a_long_table_keeps_a_part_that_depends_on_row_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = cells(5_000)
    whole = summary_of(table)
    monkeypatch.setattr(column_summary, "MOST_KEPT", 1_000)
    part = summary_of(table)
    assert part == summary_of(table)
    size, all_sizes = part.column("size"), whole.column("size")
    assert size is not None and all_sizes is not None
    assert 250 < sum(size.in_bins) <= 1_000 < sum(all_sizes.in_bins)
    assert abs(size.quantiles[10] - all_sizes.quantiles[10]) < 1.5
    for one, other in zip(part.columns, whole.columns, strict=True):
        assert (one.there, one.missing, one.levels) == (other.there, other.missing, other.levels)


def test_another_table_is_counted_between_the_same_edges() -> None:
    before = summary_of(cells())
    now = summary_of({**cells(300, seed=1), "size": [1000.25 + x for x in range(300)]}, like=before)
    size = now.column("size")
    assert size is not None and size.edges == before.columns[0].edges
    assert size.in_bins[-1] == 300 and sum(size.in_bins) == 300


def test_no_row_is_a_summary_too() -> None:
    assert counted_between(np.zeros(0), ()) == ()
    table = open_table(cells(3))
    assert summarise([], table.schema).rows == 0


def test_a_pass_for_something_else_gives_the_same_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_summary, "MOST_KEPT", 1_000)
    table = cells(9_000)
    table["colour"][8_999] = "a level met last"
    watch = PassSummary()
    opened = open_table(table, kinds={"n": "count"}).watched(watch)
    for task in reversed(list(opened.tasks())):
        task()
    settled = opened.settle()
    assert watch.under(settled.schema) == summary_of(table)
    assert watch.under(opened.schema) is None  # without its levels


def test_a_pass_that_ended_early_gives_no_summary_and_a_closed_one_keeps_its_own() -> None:
    watch = PassSummary()
    opened = open_table(cells(9_000), kinds={"n": "count"}).watched(watch)
    next(iter(opened.tasks()))()
    assert watch.under(opened.settle().schema) is None
    whole = [task() for task in opened.tasks()]
    watch.closed = True
    next(iter(opened.tasks()))()
    found = watch.under(opened.settle().schema)
    assert found is not None
    assert found.rows == sum(chunk.n_rows for chunk in whole)
