"""Which identical rows are copies of one observation, and which are independent."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.table.chunk import Chunk, Split
from softcount.table.column_summary import deal_repeats, find_repeats, row_keys, units_of

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(100, 2))
CELLS = RNG.integers(1, 4, (100, 2)).astype(np.int32)
WIDE = RNG.integers(1, 4, (100, 12)).astype(np.int32)
AGES = RNG.integers(20, 60, (100, 1)).astype(float)
NOISE = RNG.permutation(100) % 2
TIMES = RNG.integers(1, 7, 100)
TABLES = {  # numbers, codes, labels, and whether rows of weight n are copies
    "numbers": (NUMBERS, CELLS, NOISE, True),
    "many discrete columns": (NUMBERS[:, :0], WIDE, NOISE, True),
    "few discrete columns": (NUMBERS[:, :0], CELLS, NOISE, False),
    "few discrete columns that fix the class": (NUMBERS[:, :0], CELLS, CELLS[:, 0] % 2, False),
    "whole numbers with both classes": (AGES, CELLS[:, :0], NOISE, False),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_data_decide_and_a_weight_is_a_repetition(name):
    *blocks, labels, copies = TABLES[name]
    found = find_repeats(row_keys(blocks), labels, TIMES.astype(float), blocks)
    places = np.random.default_rng(1).permutation(np.repeat(np.arange(100), TIMES))
    written, units = units_of([block[places] for block in blocks], labels[places])
    assert found == written
    assert (written.rows, written.copies) == (TIMES.sum(), copies)
    assert (len(np.unique(units)) < len(units)) == copies


def test_a_few_repeats_are_ignored():
    found, units = units_of([np.vstack([NUMBERS, NUMBERS[:2]])], np.append(NOISE, NOISE[:2]))
    assert (found.repeats, found.copies, found.describe()) == (2, False, None)
    assert len(np.unique(units)) == 102


def test_missing_cells_and_signed_zeros_are_alike():
    rows = np.array([[np.nan, 0.0], [-np.nan, -0.0], [0.0, np.nan]])
    keys = row_keys([rows])
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", ["numbers", "few discrete columns"])
def test_folds_of_weighted_rows(name, labelled):
    numbers, codes, labels, copies = TABLES[name]
    known = labels.astype(np.int32) if labelled else None
    narrow = codes.astype(np.uint8)
    chunk = Chunk(0, 100, numbers, narrow, codes[:, :0], labels=known, weights=TIMES.astype(float))
    split = deal_repeats(Split(5, 0), [chunk], lambda: [(0, chunk.weights)], complete=True)
    folds = np.array([split.weights_in(chunk, fold) > 0 for fold in range(5)]).sum(axis=0)
    assert (folds == 1).all() == copies
    assert sum(split.weights_in(chunk, fold).sum() for fold in range(5)) == TIMES.sum()
