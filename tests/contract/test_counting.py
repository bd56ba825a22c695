"""Counting laws: halves add up, weights repeat, nothing counts for nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcount as sc
from contract.examples import EXAMPLES, LAWS, SUMS, Example, every_example, every_sum, laws, weights_for
from contract.models import (
    MIXED,
    Model,
    close,
    close_counts,
    every_fit,
    expectations,
    mixed_rows,
    naive_bayes,
    named,
    same_bits,
    told,
)
from softcount.core.counts import ROOT
from softcount.families import HOWS, Joint
from softcount.models.align import align_counts

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


@every_sum
def test_two_halves_add_to_the_whole(example: Example) -> None:
    @laws(example)
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example, whole=True, least=8))
        names = told(naive_bayes, names)
        cut = data.draw(st.integers(2, len(rows) - 2))
        if example.needs_values:
            rows[cut : cut + 2] = rows[:2]
        halves = [slice(None, cut), slice(cut, None)]
        parts = [naive_bayes(example.kinds, example.table(rows[s]), names[s], estimate=how) for s in halves]
        whole = naive_bayes(example.kinds, example.table(rows), names, estimate=how).fitted_
        merged = parts[0].merge(parts[1]).fitted_
        assert merged.classes == whole.classes and merged.levels == whole.levels
        close(merged, whole)
        close_counts(align_counts(merged, whole.model, whole.classes), whole.counts)

    law()


@every_sum
def test_rows_added_later_are_rows_seen_at_once(example: Example) -> None:
    @laws(example)
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example, whole=True, least=8))
        names = told(naive_bayes, names)
        if example.needs_values:
            rows[4:6] = rows[:2]
        grown = sc.NaiveBayes(kinds=example.kinds, n_jobs=1)
        grown.partial_fit(example.table(rows[:4]), names[:4], classes=["u", "v", "w"])
        assert grown.class_count_[2] == 0
        assert all(np.isfinite(value).all() for params in grown.params_.values() for value in params.values())
        grown.partial_fit(example.table(rows[4:]), names[4:])
        whole = sc.NaiveBayes(kinds=example.kinds, n_jobs=1)
        whole.partial_fit(example.table(rows), names, classes=["u", "v", "w"])
        assert [*grown.classes_] == ["u", "v", "w"]
        close(grown.fitted_, whole.fitted_)

    law()


@every_sum
def test_rows_forgotten_were_never_there(example: Example) -> None:
    @laws(example)
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example, whole=True, least=8))
        names = told(naive_bayes, names)
        if example.needs_values:
            rows[4:6] = rows[:2]
        model = naive_bayes(example.kinds, example.table(rows), names)
        before = model.counts_
        model.forget(example.table(rows[4:]), names[4:])
        first = naive_bayes(example.kinds, example.table(rows[:4]), names[:4]).fitted_
        close_counts(align_counts(first, model.fitted_.model, model.fitted_.classes), model.counts_, like=before)

    law()


@pytest.mark.parametrize("example", sorted({*EXAMPLES} - {*SUMS}, key=lambda e: e.title), ids=lambda e: e.title)
def test_counts_that_hang_on_their_fit_are_not_added(example: Example) -> None:
    rows, names = example.values, ["uv"[i % 2] for i in range(len(example.values))]
    model = naive_bayes(example.kinds, example.table(rows), names)
    for join in (
        lambda: model.merge(model),
        lambda: model.partial_fit(example.table(rows), names),
        lambda: model.forget(example.table(rows[:2]), names[:2]),
    ):
        told_why = rf"{re.escape(repr(example.keys[0]))} is {example.family.name}.*all the rows at once"
        with pytest.raises(sc.DataError, match=told_why):
            join()


@every_example
def test_expected_counts_of_two_halves_add_to_those_of_the_whole(example: Example) -> None:
    @laws(example)
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        model = naive_bayes(example.kinds, example.table(rows), told(naive_bayes, names)).fitted_
        cut = data.draw(st.integers(1, len(rows) - 1))
        halves = expectations(model, example.table(rows[:cut])) + expectations(model, example.table(rows[cut:]))
        whole = expectations(model, example.table(rows))
        close_counts(halves, whole)
        assert halves.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)
        assert whole.rows == len(rows)

    law()


@every_fit
def test_weight_two_is_the_row_twice(model: Model, example: Example) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example, most=12))
        names = told(model, names)
        times = data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=len(rows), max_size=len(rows)))
        again = [i for i, n in enumerate(times) for _ in range(n)]
        heavy = model(example.kinds, example.table(rows), names, [float(n) for n in times], estimate=how)
        long = model(example.kinds, example.table([rows[i] for i in again]), [names[i] for i in again], estimate=how)
        # Where the best share of a combination is nothing, a joint table with holes only comes near it.
        close(heavy.fitted_, long.fitted_, 1e-8 if isinstance(example.family, Joint) else 1e-11)
        np.testing.assert_allclose(heavy.counts_[ROOT], long.counts_[ROOT], rtol=1e-11)

    law()


@every_fit
def test_weight_zero_counts_for_nothing(model: Model, example: Example) -> None:
    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        names = told(model, names)
        weights = data.draw(weights_for(len(rows)))
        stay = [i for i, weight in enumerate(weights) if weight]
        few, short = example.table([rows[i] for i in stay]), [names[i] for i in stay]
        some = model(example.kinds, few, short, [weights[i] for i in stay])
        same_bits(model(example.kinds, example.table(rows), names, weights), some)

    law()


@every_example
def test_a_row_of_nulls_changes_nothing_but_the_share_of_its_class(example: Example) -> None:
    @laws(example)
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        names = told(naive_bayes, names)
        at = data.draw(st.integers(0, len(rows)))
        nothing = (None,) * len(example.columns)
        plain = naive_bayes(example.kinds, example.table(rows), names)
        longer = example.table([*rows[:at], nothing, *rows[at:]])
        more = naive_bayes(example.kinds, longer, [*names[:at], "u", *names[at:]])
        close(plain_shares(more.fitted_, plain.fitted_), plain.fitted_)
        assert more.class_count_[0] == plain.class_count_[0] + 1

    law()


def plain_shares(model: Any, like: Any) -> Any:
    """The model with another's class shares, which are the only thing that may differ."""
    from msgspec.structs import replace

    return replace(model, estimates=model.estimates.replaced({ROOT: like.estimates.bundles[ROOT]}))


@every_example
def test_a_row_of_nulls_is_expected_nowhere_and_is_certain(example: Example) -> None:
    @laws(example)
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        model = naive_bayes(example.kinds, example.table(rows), told(naive_bayes, names))
        nulls = example.table([(None,) * len(example.columns)] * 2)
        counts = expectations(model.fitted_, nulls)
        for leaf in model.fitted_.model.leaves:
            first = 1 if isinstance(leaf.family, Joint) else 0  # the pattern of holes itself, which no estimate uses
            assert not counts[leaf.key][:, first:].any()
        np.testing.assert_allclose(counts[ROOT], 2 * model.class_prior_, rtol=1e-15)
        assert counts.log_likelihood == pytest.approx(0.0, abs=1e-15)

    law()


@LAWS
@given(mixed_rows())
def test_a_missing_cell_adds_nothing_to_an_explanation(drawn: Any) -> None:
    rows, names = drawn
    table = MIXED.table(rows)
    model = naive_bayes(MIXED.kinds, table, [name.lower() for name in names])
    some = [name for name in table.column_names if name in model.params_]
    for name in some:
        holes = table.set_column(table.column_names.index(name), name, pa.nulls(len(rows), table[name].type))
        assert not np.any(model.explain(holes)[name].to_numpy())
