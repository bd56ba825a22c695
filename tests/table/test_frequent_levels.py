"""Which of too many levels are kept: the most frequent, whatever the order of the rows and wherever they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.test_kmeans_elsewhere import Workers
from tests.table.reading import read_table, with_room

from softcount.table import Contradiction, Table, open_table
from softcount.table import levels as frequent_levels
from softcount.table.levels import KeptLevels

MOST = 300


def skewed(rows: int = 20_000) -> list[str]:
    """Few frequent levels and many rare ones."""
    draws = np.random.default_rng(3).pareto(0.7, rows)
    return [f"w{int(draw * 5)}" for draw in draws]


def ranked(values: list[str]) -> list[str]:
    counts = Counter(values)
    return sorted(counts, key=lambda level: (-counts[level], level))


def in_stretches(values: list[str], length: int = 1_000) -> list[tuple[list[Any], np.ndarray]]:
    parts = [Counter(values[at : at + length]) for at in range(0, len(values), length)]
    return [(list(part), np.array(list(part.values()), float)) for part in parts]


def found(values: list[str], most: int) -> KeptLevels:
    return frequent_levels.frequent_levels(lambda: in_stretches(values), most)


def test_the_most_frequent_are_kept_whatever_the_order_of_the_rows() -> None:
    values = skewed()
    shuffled = np.random.default_rng(0).permutation(values).tolist()
    kept = found(values, MOST)
    assert kept.levels == ranked(values)[:MOST]
    assert (kept.others, kept.at_least) == (len(set(values)) - MOST, False)
    assert found(shuffled, MOST) == kept


def test_of_more_levels_than_are_counted_one_by_one_the_same_are_kept_in_any_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frequent_levels, "CELLS", 1 << 14)
    values = skewed()
    most = 50
    assert len(set(values)) > frequent_levels.EXACT * most
    kept = found(values, most)
    assert kept.levels == ranked(values)[:most]
    assert kept.at_least and 0 < kept.others <= len(set(values)) - most
    assert found(np.random.default_rng(0).permutation(values).tolist(), most) == kept


def test_a_weight_of_two_is_the_row_twice() -> None:
    values = skewed(4_000)
    weights = np.random.default_rng(1).integers(1, 4, len(values)).astype(float)
    heavy = read_table(with_room(open_table({"it": values}, kinds={"it": "categorical"}, weights=weights), MOST))
    repeated = [value for value, weight in zip(values, weights, strict=True) for _ in range(int(weight))]
    assert set(heavy.settled.schema["it"].levels[:-1]) == set(ranked(repeated)[:MOST])


def on_workers(table: Table) -> Any:
    with Workers() as engine:
        while True:
            try:
                engine.encoded(table)
                return table.settle().schema
            except Contradiction as why:
                table = table.widened(why)


def test_workers_and_one_machine_keep_the_same_levels_of_shuffled_files(tmp_path: Path) -> None:
    values, schemas = skewed(8_000), []
    for turn in range(2):
        values = np.random.default_rng(turn).permutation(values).tolist()
        for part in range(3):
            pq.write_table(pa.table({"it": values[part::3]}), tmp_path / f"part-{turn}-{part}.parquet")
        table = with_room(open_table(str(tmp_path / f"part-{turn}-*.parquet"), kinds={"it": "categorical"}), MOST)
        schemas += [read_table(table).settled.schema["it"].levels, on_workers(table)["it"].levels]
    assert all(levels == schemas[0] for levels in schemas)
    assert set(schemas[0][:-1]) == set(ranked(values)[:MOST])
