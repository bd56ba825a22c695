"""Where numbers are cut by their classes, beside the rule written out."""

import math

import numpy as np
import pytest

from softcount.table.discretise import PointTable, by_class, by_class_each, equal_count


def entropy(counts):
    return float(-sum(x / counts.sum() * math.log2(x / counts.sum()) for x in counts if x > 0))


def written_out(table, first, last):
    """Fayyad and Irani's rule on (points x classes) counts."""
    if last - first < 2:
        return []
    whole = table[first:last].sum(axis=0)
    sides = [(at, table[first:at].sum(axis=0), table[at:last].sum(axis=0)) for at in range(first + 1, last)]
    at, left, right = min(sides, key=lambda side: round(sum(x.sum() * entropy(x) for x in side[1:]), 9))
    rows, parts = whole.sum(), (whole, left, right)
    gain = rows * entropy(whole) - left.sum() * entropy(left) - right.sum() * entropy(right)
    told = [(x > 0).sum() * entropy(x) for x in parts]
    cost = math.log2(rows - 1) + math.log2(3.0 ** (whole > 0).sum() - 2) - told[0] + told[1] + told[2]
    return [*written_out(table, first, at), at, *written_out(table, at, last)] if gain > cost else []


def columns():
    rng = np.random.default_rng(4)
    for rows, classes, digits in ((0, 2, 1), (1, 2, 1), (60, 2, 6), (150, 3, 1), (200, 5, 1), (90, 7, 0), (80, 2, 9)):
        labels = rng.integers(0, classes, rows)
        values = np.round(rng.normal(size=rows) + labels * rng.choice([0.0, 2.0, 5.0]), digits)
        yield values, labels, rng.integers(1, 4, rows).astype(float), classes


@pytest.mark.parametrize("place", range(7))
def test_cuts_by_class_are_those_of_the_rule_written_out(place):
    values, labels, weights, classes = list(columns())[place]
    distinct = np.unique(values)
    table = np.zeros((len(distinct), classes))
    np.add.at(table, (np.searchsorted(distinct, values), labels), weights)
    expected = [(distinct[at - 1] + distinct[at]) / 2 for at in written_out(table, 0, len(distinct))]
    np.testing.assert_allclose(by_class(values, labels, weights, classes), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_negated_numbers_are_cut_at_the_negated_places(seed):
    rng = np.random.default_rng(seed)
    values, labels = np.round(rng.normal(size=37), 1), rng.integers(0, 2, 37)
    labels[values > 0.3] = 1
    for cut in (lambda x: equal_count(x, np.ones(37), 4), lambda x: by_class(x, labels, np.ones(37), 2)):
        np.testing.assert_allclose(np.sort(-cut(-values)), cut(values), atol=1e-12)


@pytest.mark.parametrize("at_once", [1, 1000, 1 << 16])
def test_columns_cut_together_are_cut_as_each_alone(at_once, monkeypatch):
    monkeypatch.setattr("softcount.table.discretise.AT_ONCE", at_once)
    together = by_class_each([PointTable.of(*column) for column in columns()])
    assert sum(map(len, together)) > 5
    for own, column in zip(together, columns(), strict=True):
        np.testing.assert_array_equal(own, by_class(*column))
