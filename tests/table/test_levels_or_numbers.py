"""Few different whole numbers are levels or numbers, by which of the two tells rows that were left out better."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataWarning
from softcount.table import Kind, open_table
from softcount.table.inspect_columns import LEAST_ROWS, counted, gain_of_levels

ROWS = 160
CLASSES = np.arange(ROWS) % 2


def ratings(rows: int = ROWS) -> list[int]:
    """From 0 to 10, and a little higher in one class."""
    return np.random.default_rng(3).binomial(10, 0.4 + 0.1 * (np.arange(rows) % 2)).tolist()


def codes(rows: int = ROWS) -> list[int]:
    """Numbers that name something: neighbours have nothing to do with each other."""
    rng = np.random.default_rng(4)
    shares = np.array([[9, 0, 1, 8, 0, 1, 9], [0, 9, 1, 0, 8, 9, 1]]) + 0.2
    return [int(rng.choice(7, p=shares[row % 2] / shares[row % 2].sum())) for row in range(rows)]


def seldom(rows: int = ROWS) -> list[int]:
    """So many codes that the rule of thumb takes them for numbers."""
    return [3 * code + 100 * (code % 3) + 11 * (row % 4) for row, code in enumerate(codes(rows))]


def kind_of(values: list[int], classes: Any = CLASSES, **said: Any) -> Any:
    labels = None if classes is None else np.asarray(classes)[: len(values)]
    return open_table({"it": values, "other": ["p", "q"] * (len(values) // 2)}, labels=labels, **said).schema["it"]


def test_ratings_are_numbers_and_codes_are_levels() -> None:
    assert kind_of(ratings()).kind.numeric
    assert "predicted better as numbers" in kind_of(ratings()).why
    assert kind_of(codes()).kind is Kind.CATEGORICAL


def test_numbers_that_name_something_become_levels_only_where_classes_are_known() -> None:
    assert kind_of(seldom()).kind is Kind.CATEGORICAL
    assert "predicted better as categories" in kind_of(seldom()).why
    assert kind_of(seldom(), classes=None).kind.numeric


@pytest.mark.parametrize("drawn", [ratings, codes, seldom])
def test_files_frames_arrays_and_any_order_of_the_rows_agree(drawn: Callable[[], list[int]], tmp_path: Any) -> None:
    values, other = np.array(drawn()), CLASSES.astype(str)
    wanted = kind_of(values.tolist()).kind
    order = np.random.default_rng(0).permutation(ROWS)
    assert kind_of(values[order].tolist(), CLASSES[order]).kind is wanted
    assert open_table(values[:, None], labels=CLASSES).schema[0].kind is wanted
    (tmp_path / "t.csv").write_text("it,y\n" + "".join(f"{x},{y}\n" for x, y in zip(values, other, strict=True)))
    assert open_table(tmp_path / "t.csv", target="y").schema["it"].kind is wanted


def test_a_file_with_decimal_commas_has_plain_whole_numbers_all_the_same(tmp_path: Any) -> None:
    rows = [f"{x};{y};{x / 7:.2f}".replace(".", ",") for x, y in zip(ratings(), CLASSES, strict=True)]
    (tmp_path / "t.csv").write_text("it;y;size\n" + "\n".join(rows) + "\n")
    found = open_table(tmp_path / "t.csv", target="y").schema["it"]
    assert (found.kind, found.why) == (kind_of(ratings()).kind, kind_of(ratings()).why)


def test_labels_that_are_unknown_do_not_count() -> None:
    values, known = np.array([*ratings(), *[1, 99] * 40], dtype=float), np.array([*CLASSES, *[-1] * 80])
    found, wanted = counted(values, known), counted(values[:ROWS], CLASSES)
    assert found is not None and wanted is not None
    assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_too_few_rows_and_declared_columns_are_not_asked() -> None:
    assert counted(np.array(ratings(), dtype=float)[: LEAST_ROWS - 1], None) is None
    assert kind_of([1, 2, 3, 4, 5, 6] * 8).why == "whole numbers, 6 distinct"
    assert kind_of(ratings(), kinds={"it": "categorical"}).kind is Kind.CATEGORICAL
    assert kind_of(codes(), kinds={"it": "real"}).kind is Kind.REAL


def told(values: np.ndarray, classes: np.ndarray, row: int, kind: Kind | None) -> dict[int, float]:
    """The probability of a row's value in each class, without that row, in plain words; None is levels."""
    found = {}
    others = np.delete(np.arange(len(values)), row)
    for group in np.unique(classes).tolist():
        x = [float(values[i]) for i in others if classes[i] == group]
        value, whole = float(values[row]), [float(v) for v in values]
        mean_of_all = sum(whole) / len(whole)
        if kind is None:
            found[group] = (x.count(value) + 1) / (len(x) + len(set(whole)))
        elif kind is Kind.COUNT:
            rate = (sum(x) + mean_of_all) / (len(x) + 1)
            found[group] = math.exp(value * math.log(rate) - rate - math.lgamma(value + 1))
        else:
            spread = sum((v - mean_of_all) ** 2 for v in whole) / len(whole)
            mean = sum(x) / len(x)
            deviation = math.sqrt((sum((v - mean) ** 2 for v in x) + spread) / (len(x) + 1))
            below = [0.5 * math.erfc(-(value + d - mean) / deviation / math.sqrt(2)) for d in (-0.5, 0.5)]
            found[group] = below[1] - below[0]
    return found


@pytest.mark.parametrize("kind", [Kind.REAL, Kind.COUNT])
@pytest.mark.parametrize("drawn", [ratings, codes])
def test_what_levels_gain_is_what_plain_leaving_out_has(kind: Kind, drawn: Callable[[], list[int]]) -> None:
    values = np.array(drawn(), dtype=float)
    shares = np.bincount(CLASSES)
    said = {}
    for how in (None, kind):
        each = [told(values, CLASSES, row, how) for row in range(ROWS)]
        joint = [{group: shares[group] * p for group, p in row.items()} for row in each]
        said[how] = [
            sum(math.log(row[group]) for row, group in zip(each, CLASSES, strict=True)),
            sum(math.log(row[group] / sum(row.values())) for row, group in zip(joint, CLASSES, strict=True)),
        ]
    more = [(one - other) / ROWS for one, other in zip(said[None], said[kind], strict=True)]
    asked = counted(values, CLASSES)
    assert asked is not None
    assert gain_of_levels(*asked, kind) == pytest.approx(more, rel=1e-9)


def test_a_whole_number_never_seen_is_answered() -> None:
    model = sc.NaiveBayes().fit({"a": codes(), "b": ratings()}, CLASSES)
    with pytest.warns(DataWarning, match="1 cell"):
        found = model.predict_proba({"a": [99], "b": [40]})
    assert np.isfinite(found).all()


def test_later_rows_keep_what_the_first_ones_decided() -> None:
    X, more = {"a": codes(), "b": ratings()}, {"a": ratings(), "b": codes()}
    model = sc.NaiveBayes().partial_fit(X, CLASSES)
    kinds = dict(model.kinds_)
    assert dict(model.partial_fit(more, CLASSES).kinds_) == kinds
