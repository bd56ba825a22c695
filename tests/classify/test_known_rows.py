"""Rows drawn from a table as it goes by: which they are, whatever the chunks and threads, and how many are held."""

import numpy as np
import pyarrow as pa
import pytest

import softcount as sc
from softcount.evaluate import folds as drawing
from softcount.evaluate.folds import draw_known_rows
from softcount.run.local import Threads
from softcount.table.chunk import Split

ROWS = 900


class CutAnew:
    """A table whose chunks are cut in other places."""

    def __init__(self, table, cuts):
        self.table, self.cuts, self.settle = table, cuts, table.settle

    def chunks(self, run):
        (whole,) = self.table.chunks(run)
        for a, b in zip([0, *self.cuts], [*self.cuts, whole.n_rows], strict=True):
            part = whole.take(slice(a, b))
            yield type(part)(a, part.n_rows, part.reals, part.codes, part.wide, (), part.labels, part.weights)


@pytest.fixture(scope="module")
def given():
    rng = np.random.default_rng(0)
    columns = {"number": rng.normal(size=ROWS), "level": rng.choice(["a", "b"], ROWS), "row": np.arange(ROWS) + 0.5}
    labels = np.where(np.arange(ROWS) % 7 == 0, -1, rng.integers(0, 2, ROWS)).astype(np.int32)
    weights = np.where(np.arange(ROWS) % 11 == 0, 0.0, 1.0)
    known = np.flatnonzero((labels >= 0) & (weights > 0))
    table = pa.table(columns)
    fitted = sc.NaiveBayes().fit(table.take(known), labels[known]).fitted_

    def opened():
        return fitted.table(table, labels=labels, weights=weights)

    return fitted, opened, known, labels


def drawn(fitted, table, jobs=1):
    with Threads(jobs) as threads:
        return draw_known_rows(fitted, table, threads, [0, 1])


def test_all_rows_with_a_label_and_weight_are_taken_in_their_order(given):
    fitted, opened, known, labels = given
    found = drawn(fitted, opened())
    np.testing.assert_array_equal(found.numbers, known)
    np.testing.assert_array_equal(found.labels, labels[known])
    np.testing.assert_array_equal(found.rows.numbers[:, 1], known + 0.5)
    assert found.of == len(known)


@pytest.mark.parametrize("cuts", [(), (1, 2, 450), tuple(range(40, ROWS, 40))])
def test_the_same_rows_are_drawn_however_the_table_is_cut(given, cuts, monkeypatch):
    fitted, opened, known, labels = given
    monkeypatch.setattr(drawing, "MOST_ROWS", 200)
    found = drawn(fitted, CutAnew(opened(), cuts), jobs=2)
    whole = drawn(fitted, opened())
    assert len(found.labels) == 200 and found.of == len(known)
    np.testing.assert_array_equal(found.numbers, whole.numbers)
    np.testing.assert_array_equal(found.labels, labels[found.numbers])
    np.testing.assert_array_equal(found.rows.numbers[:, 1], found.numbers + 0.5)
    assert set(found.numbers) <= set(known) and (np.diff(found.numbers) > 0).all()


def test_no_more_is_held_than_a_quarter_over_what_is_drawn(given):
    fitted, opened, _, _ = given
    (whole,) = opened().chunks()
    kept = drawing._LowestRows(100)
    for a in range(0, 20 * ROWS, 30):
        part = whole.take(slice(a % ROWS, a % ROWS + 30))
        chunk = type(part)(a, 30, part.reals, part.codes, part.wide, (), part.labels, part.weights)
        kept.add(*drawing.draw_rows(fitted.schema, kept.limit, chunk))
        assert sum(len(part.labels) for _, part in kept.parts) <= 125 + 30
    assert len(kept.known(np.arange(2)).labels) == 100


def test_many_columns_get_fewer_rows(given, monkeypatch):
    fitted, opened, _, _ = given
    monkeypatch.setattr(drawing, "MOST_ROWS", 500)
    monkeypatch.setattr(drawing, "MOST_CELLS", 600)
    assert len(drawn(fitted, opened()).labels) == 200
    monkeypatch.setattr(drawing, "MOST_CELLS", 1)
    assert len(drawn(fitted, opened()).labels) == 50


def test_rows_drawn_are_spread_over_all_folds_and_all_of_the_table(given, monkeypatch):
    fitted, opened, _, _ = given
    monkeypatch.setattr(drawing, "MOST_ROWS", 350)
    found = drawn(fitted, opened()).numbers
    for seed in (0, 1):
        out = Split(2, seed, 0.3).of_numbers(found) == 0
        assert 0.2 < out.mean() < 0.4
    assert 120 < (found < ROWS / 2).sum() < 230


def test_the_fit_says_how_many_rows_it_was_learned_from(monkeypatch):
    monkeypatch.setattr(drawing, "MOST_ROWS", 60)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    model = sc.Classifier().fit(X, (X[:, 0] > 0).astype(int))
    assert "The ensemble was trained on 60 of 150 rows." in model.notes_
