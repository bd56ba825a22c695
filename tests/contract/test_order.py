"""Nothing depends on the order of rows or columns, on what levels are called, or on what units numbers have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcount as sc
from contract.examples import LAWS, Example
from contract.models import MIXED, Model, close, every_fit, every_model, mixed_rows, naive_bayes, named, told, with_gaps

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

COLOURS = {"red": "a", "green": "z", "blue": "m"}
NEW_NAMES = COLOURS | {"no": "yea", "yes": "nay", "f": "woman", "m": "man", "l": "x", "s": "b"}
"""Names that sort in another order than the old ones."""


@every_fit
def test_the_order_of_rows_changes_nothing(model: Model, example: Example) -> None:
    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        names = told(model, names)
        order = data.draw(st.permutations(range(len(rows))))
        plain = model(example.kinds, example.table(rows), names)
        other = model(example.kinds, example.table([rows[i] for i in order]), [names[i] for i in order])
        close(plain.fitted_, other.fitted_, 1e-11)

    law()


@every_model
def test_the_order_of_columns_changes_nothing(model: Model) -> None:
    @LAWS
    @given(mixed_rows(), st.data())
    def law(drawn: Any, data: Any) -> None:
        rows, names = drawn
        names = told(model, names)
        table = MIXED.table(rows)
        columns = data.draw(st.permutations(table.column_names))
        kinds = dict(data.draw(st.permutations(list(MIXED.kinds.items()))))
        plain = model(MIXED.kinds, table, names)
        other = model(kinds, table.select(columns), names)
        assert set(plain.params_) == set(other.params_)
        close(plain.fitted_, other.fitted_, 1e-10)

    law()


@every_model
@pytest.mark.parametrize("title", ["categorical", "bernoulli", "joint"])
def test_what_levels_are_called_changes_nothing(model: Model, title: str) -> None:
    example = next(part for part in MIXED.parts if part.title == title)

    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        names, rows[:2] = told(model, names), example.values[:2]
        plain = model(example.kinds, example.table(rows), names)
        again = [tuple(renamed(cell, i) for i, cell in enumerate(row)) for row in rows]
        other = model(example.kinds, example.table(again), names)
        close(plain.fitted_, other.fitted_, places=places(plain, other, example))

    law()


def renamed(cell: Any, column: int) -> Any:
    """A new name, which sorts elsewhere; the same word in another column gets another name."""
    return None if cell is None else f"{NEW_NAMES[cell]}{column}"


def places(plain: Any, other: Any, example: Example) -> dict[Any, list[int]]:
    """Where each level of the first model is among those of the second."""
    found = {}
    for key in example.keys:
        new = other.levels_[key]
        if isinstance(key, tuple):
            after: list[Any] = [tuple(renamed(part, i) for i, part in enumerate(level)) for level in plain.levels_[key]]
        else:
            after = [renamed(level, 0) for level in plain.levels_[key]]
        found[key] = [new.index(level) for level in after]
    return found


@pytest.mark.parametrize("model", [naive_bayes, with_gaps])
def test_what_classes_are_called_only_changes_their_order(model: Model) -> None:
    @LAWS
    @given(mixed_rows())
    def law(drawn: Any) -> None:
        rows, names = drawn
        names, table = told(model, names), MIXED.table(rows)
        plain = model(MIXED.kinds, table, names)
        other = model(MIXED.kinds, table, [{"u": "w", "U": "W"}.get(name, name) for name in names])
        assert [*plain.classes_] == ["u", "v"] and [*other.classes_] == ["v", "w"]
        np.testing.assert_allclose(plain.predict_proba(table), other.predict_proba(table)[:, ::-1], atol=1e-9)

    law()


@pytest.mark.parametrize("factor", [2.0**-100, 2.0**100])
@every_model
def test_units_change_nothing_but_the_units(model: Model, factor: float) -> None:
    """Probabilities of the classes are the same; a power of two is an exact change of units."""
    columns = ("height", "income", "x", "y", "wait", "delay", "age")

    @LAWS
    @given(mixed_rows())
    def law(drawn: Any) -> None:
        rows, names = drawn
        names, table = told(model, names), MIXED.table(rows)
        units = {c: pa.array(table[c].to_numpy() * factor, from_pandas=True) for c in columns}
        other_table = pa.table({c: units.get(c, table[c]) for c in table.column_names})
        one, other = model(MIXED.kinds, table, names), model(MIXED.kinds, other_table, names)
        np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(other_table), atol=1e-9)

    law()


def test_a_long_table_in_another_order_is_the_same_table() -> None:
    """Longer than what the first look sees, so that anchors differ."""
    rng = np.random.default_rng(8)
    table = np.stack([rng.normal(1e8, 1.0, 6_000), np.sort(rng.normal(0.0, 5.0, 6_000))], axis=1)
    names = np.where(table[:, 1] > 0.5, "v", "u")
    order = rng.permutation(len(table))
    plain, other = sc.NaiveBayes(n_jobs=1).fit(table, names), sc.NaiveBayes(n_jobs=1).fit(table[order], names[order])
    assert plain.fitted_.schema[1].anchor != other.fitted_.schema[1].anchor
    close(plain.fitted_, other.fitted_)
    start = np.where(table[:, [1]] > 0.5, [[0.2, 0.8]], [[0.8, 0.2]])
    often = {"n_components": 2, "n_init": 1, "max_iter": 3, "tol": 0.0, "n_jobs": 1}
    mixed, again = sc.Mixture(init=start, **often).fit(table), sc.Mixture(init=start[order], **often).fit(table[order])
    close(mixed.fitted_, again.fitted_, 1e-11)


def test_starts_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(rng.choice([0.0, 6.0], (300, 1)), 1.0, (300, 2))
    order = rng.permutation(300)
    settings = {"n_components": 2, "n_init": 3, "random_state": 5, "n_jobs": 1}
    plain, other = sc.Mixture(**settings).fit(table), sc.Mixture(**settings).fit(table[order])
    np.testing.assert_allclose(plain.predict_proba(table)[order], other.predict_proba(table[order]), atol=1e-6)
    assert plain.trace_[0] == pytest.approx(other.trace_[0], rel=1e-12)
