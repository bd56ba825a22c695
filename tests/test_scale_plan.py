"""The page about scale shows what its script measures: sizes to the byte, and sums that hold wherever they are made."""

import re
from pathlib import Path

import pytest
from scripts.scale_plan import LEVELS, blocks_agree, fold_error, levels_in, size_of, sizes_of

import softcount as sc

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "scale.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
@pytest.mark.parametrize(("kind", "cells"), [("normal", lambda X: X), (f"categorical, {LEVELS} levels", levels_in)])
def test_the_page_has_the_bytes_of_counts(kind, cells):
    found = sizes_of(lambda: sc.NaiveBayes(n_jobs=1), cells)
    line = re.search(rf"^\| {re.escape(kind)} \| (.*?) \| (.*?) \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert float(line[1]) == found.held
    assert float(line[2]) == pytest.approx(found.sent, rel=0.02)  # pickles of other versions differ by some bytes
    assert line[3] == size_of(float(line[2]) * 1e7)


def test_blocks_of_columns_reduced_apart_are_the_whole_sum():
    assert blocks_agree()


def test_many_parts_lose_no_digits():
    pairs, plain = fold_error(5_000)
    assert pairs <= 2.3e-16 < plain
