"""The models of the contract: naive Bayes with every label, naive Bayes with gaps, and a mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import softcount as sc
from contract.examples import EXAMPLES, Example, Row, labelled, rows_of
from softcount.core.counts import Counts
from softcount.fitted.fitted import Fitted
from softcount.models.base import expected
from softcount.run.local import Threads

Names = Sequence[Any]
Model = Callable[..., Any]
STEPS = 4
"""EM steps of the models that need them: enough to tell a difference, few enough to stay near the start."""


def naive_bayes(kinds: Any, table: Any, names: Names, weights: Any = None, **own: Any) -> Any:
    """Every label known: one pass, unless a correlated block has holes."""
    model = sc.NaiveBayes(kinds=kinds, max_iter=STEPS, tol=0.0, **_settings(own))
    return model.fit(table, [*names], sample_weight=weights)


def with_gaps(kinds: Any, table: Any, names: Names, weights: Any = None, **own: Any) -> Any:
    """Every third label unknown, but for those of the first rows."""
    model = sc.NaiveBayes(kinds=kinds, max_iter=STEPS, tol=0.0, unlabelled_weight=1.0, **_settings(own))
    return model.fit(table, hidden(names), sample_weight=weights)


def hidden(names: Names) -> list[Any]:
    return [None if name.isupper() else name for name in names]


def mixture(kinds: Any, table: Any, names: Names, weights: Any = None, **own: Any) -> Any:
    """No labels; the names only say where to start."""
    model = sc.Mixture(2, kinds=kinds, init=memberships(names), n_init=1, max_iter=STEPS, tol=0.0, **_settings(own))
    return model.fit(table, sample_weight=weights)


def memberships(names: Names) -> np.ndarray:
    return np.array([[0.75, 0.25] if name.lower() == "u" else [0.25, 0.75] for name in names])


def _settings(own: Mapping[str, Any]) -> dict[str, Any]:
    return {"prior": 1.0, "n_jobs": 1} | dict(own)


MODELS: dict[str, Model] = {"naive-bayes": naive_bayes, "with-gaps": with_gaps, "mixture": mixture}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
FITS = {
    f"{e.title}-{name}": (e, model)
    for e in EXAMPLES
    for name, model in MODELS.items()
    if e.climbs or model is naive_bayes
}
every_fit = pytest.mark.parametrize(("example", "model"), FITS.values(), ids=FITS)
"""Every example in every model that can learn it."""


@st.composite
def named(draw: Any, example: Example, **sizes: Any) -> tuple[list[Row], list[str]]:
    """Rows with names u and v; a capital is a name that `with_gaps` does not tell."""
    rows, names = draw(labelled(example, **sizes))
    loud = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    loud[:2] = [False, False]
    return rows, [name.upper() if say else name for name, say in zip(names, loud, strict=True)]


def told(model: Model, names: Names) -> list[str]:
    """The names as a model takes them: only one of them knows about capitals."""
    return [*names] if model is with_gaps else [name.lower() for name in names]


# -- a table of every family at once


class Mixed:
    """All the examples side by side, each family once that every model can learn: many kinds of column in one table."""

    parts = tuple(e for e in EXAMPLES if e.title == e.family.name and e.climbs)

    @property
    def kinds(self) -> dict[Any, Any]:
        return {key: said for part in self.parts for key, said in part.kinds.items()}

    def table(self, rows: Sequence[Sequence[Row]]) -> Any:
        """An Arrow table; each row holds the cells of every part."""
        import pyarrow as pa

        tables = [part.table([row[i] for row in rows]) for i, part in enumerate(self.parts)]
        columns = {name: table[name] for table in tables for name in table.column_names}
        return pa.table(columns)


MIXED = Mixed()


@st.composite
def mixed_rows(draw: Any, least: int = 8, most: int = 16) -> tuple[list[tuple[Row, ...]], list[str]]:
    size = draw(st.integers(least, most))
    columns = [draw(rows_of(part, least=size, most=size)) for part in MIXED.parts]
    names = draw(st.lists(st.sampled_from("uvUV"), min_size=size, max_size=size))
    return list(zip(*columns, strict=True)), ["u", "v", *names[2:]]


# -- what two models may have in common


def same_bits(one: Any, other: Any) -> None:
    """The same counts, parameters and story, bit for bit."""
    left, right = one.fitted_, other.fitted_
    assert left.counts.keys() == right.counts.keys()
    for name in left.counts:
        assert np.array_equal(left.counts.arrays[name].hi, right.counts.arrays[name].hi), name
        assert np.array_equal(left.counts.arrays[name].lo, right.counts.arrays[name].lo), name
    assert np.array_equal(left.shares, right.shares)
    for key, params in left.params.items():
        assert params.keys() == right.params[key].keys()
        for name in params:
            assert np.array_equal(params[name], right.params[key][name]), (key, name)
    assert left.trace == right.trace and left.classes == right.classes and left.levels == right.levels


def close(one: Fitted, other: Fitted, tolerance: float = 1e-12, places: Any = None) -> None:
    """The same parameters up to rounding: numbers in units of their column, everything else as it is.

    `places` says, for a column whose levels were renamed, where each level of `one` went in `other`.
    """
    np.testing.assert_allclose(one.shares, other.shares, rtol=tolerance, atol=tolerance)
    for leaf in one.model.leaves:
        for name, value in one.params[leaf.key].items():
            right = other.params[leaf.key][name]
            if places and name == "probability" and leaf.key in places:
                right = right[:, places[leaf.key]]
            unit, what = _unit(one, leaf.key, name), f"{leaf.key} {name}"
            np.testing.assert_allclose(value / unit, right / unit, rtol=tolerance, atol=tolerance, err_msg=what)


def _unit(model: Fitted, key: Any, name: str) -> Any:
    """What one is, for a parameter in the user's units: the whole column's deviation, or a float's own grain."""
    hyper, setting = model.imagined.hypers[key], model.model.nodes[key].setting
    if "whole" not in hyper or name not in ("mean", "variance", "spread", "covariance"):
        return 1.0
    grain = 1e-4 * np.abs(model.params[key]["mean"]).max(axis=0)
    unit = np.sqrt(np.maximum(hyper["whole"], 1e-300)) / setting.scale
    unit = np.maximum(unit if "covariance" in model.params[key] else unit[0], grain)
    if name == "mean":
        return unit
    if name == "spread" and "covariance" in model.params[key]:
        return 1.0
    return np.multiply.outer(unit, unit) if name == "covariance" else unit**2


def expectations(model: Fitted, table: Any) -> Counts:
    """Expected counts of a table under a model's parameters, its rows having no label."""
    ready = [model.model.prepare(chunk) for chunk in model.chunks(model.table(table))]
    with Threads(1) as threads:
        return model.model.nodes.unstacked(expected(model.model, model.estimates, ready, threads))


def close_counts(one: Counts, other: Counts, like: Counts | None = None) -> None:
    """The same counts up to rounding, in proportion to the largest of each array (or of that array in `like`)."""
    assert set(one) == set(other)
    for name in one:
        largest = np.abs((like or one)[name]).max(initial=0.0)
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-12 * largest)
