"""The same bits, however the input is cut, however many threads count, and after a file in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcount as sc
from contract.examples import LAWS, Example, weights_for
from contract.models import MIXED, Model, every_fit, every_model, memberships, mixed_rows, named, same_bits, told
from softcount.families import HOWS

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

LONG = 84_000
"""More rows than the largest number that fits two bytes, so that the table has many chunks."""


def batched(table: pa.Table, size: int) -> pa.Table:
    return pa.Table.from_batches(table.to_batches(max_chunksize=size), schema=table.schema)


@every_model
def test_any_batching_of_the_input_gives_the_same_bits(model: Model) -> None:
    @LAWS
    @given(mixed_rows(), st.sampled_from([1, 7, 1000]))
    def law(drawn: Any, size: int) -> None:
        rows, names = drawn
        names, table = told(model, names), MIXED.table(rows)
        same_bits(model(MIXED.kinds, table, names), model(MIXED.kinds, batched(table, size), names))

    law()


@every_model
def test_any_number_of_threads_gives_the_same_bits(model: Model) -> None:
    @LAWS
    @given(mixed_rows())
    def law(drawn: Any) -> None:
        rows, names = drawn
        names, table = told(model, names), MIXED.table(rows)
        one = model(MIXED.kinds, table, names, n_jobs=1)
        for n_jobs in (2, 4):
            same_bits(one, model(MIXED.kinds, table, names, n_jobs=n_jobs))

    law()


@every_fit
def test_the_same_fit_twice_is_equal(model: Model, example: Example) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        names, weights = told(model, names), data.draw(weights_for(len(rows)))
        one, other = (model(example.kinds, example.table(rows), names, weights, estimate=how) for _ in range(2))
        same_bits(one, other)

    law()


@pytest.fixture(scope="module")
def long_table() -> tuple[pa.Table, list[str]]:
    rng = np.random.default_rng(11)
    side = rng.integers(0, 2, LONG)
    height = rng.normal(np.where(side, 3.0, -1.0) + 1e8, 1.5)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3 - side)]
    table = pa.table(
        {
            "height": pa.array(height, mask=rng.random(LONG) < 0.1),
            "colour": pa.array(colour, mask=rng.random(LONG) < 0.1),
            "visits": pa.array(rng.poisson(2.0 + side), mask=rng.random(LONG) < 0.1),
        }
    )
    names = np.where(side, "v", "u")
    return table, [*np.where(rng.random(LONG) < 0.2, np.char.upper(names), names)]


LONG_KINDS = {"height": "normal", "colour": "categorical", "visits": "poisson"}


@every_model
def test_a_long_table_has_the_same_bits_in_any_batches_on_any_threads(model: Model, long_table: Any) -> None:
    """A mixture of so many rows goes through the compiled kernels, naive Bayes through plain NumPy."""
    table, names = long_table
    names = told(model, names)
    one = model(LONG_KINDS, table, names, n_jobs=1)
    assert one.fitted_.counts.rows == LONG
    for size, n_jobs in ((LONG, 2), (999, 4)):
        same_bits(one, model(LONG_KINDS, batched(table, size), names, n_jobs=n_jobs))
    fused = one.fitted_.model.kernels.count_reals_soft.__module__ != "softcount.kernels.reference"
    assert fused == (model.__name__ == "mixture")


def test_naive_bayes_through_compiled_kernels_has_the_same_bits_on_any_threads(long_table: Any) -> None:
    table, names = long_table
    wide = np.repeat(np.nan_to_num(table["height"].to_numpy())[:, None], 30, axis=1) * np.arange(1.0, 31.0)
    wide[::7, 3] = np.nan
    names = np.char.lower(names)
    one = sc.NaiveBayes(n_jobs=1).fit(wide, names)
    assert one.fitted_.model.kernels.count_reals_labelled.__module__ != "softcount.kernels.reference"
    for n_jobs in (2, 4):
        same_bits(one, sc.NaiveBayes(n_jobs=n_jobs).fit(np.asfortranarray(wide) if n_jobs == 4 else wide, names))


def test_compiled_kernels_count_what_plain_ones_count(long_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import softcount.kernels as kernels

    table, names = long_table
    start = {"init": memberships(names[:4_000]), "n_init": 1, "max_iter": 2, "tol": 0.0, "n_jobs": 1}
    few = table.slice(0, 4_000)
    plain = sc.Mixture(2, kinds=LONG_KINDS, **start).fit(few)
    monkeypatch.setattr(kernels, "WORTH_COMPILING", 1)
    fused = sc.Mixture(2, kinds=LONG_KINDS, **start).fit(few)
    assert fused.trace_ == pytest.approx(plain.trace_, rel=1e-12)
    for key, params in plain.params_.items():
        for name, value in params.items():
            np.testing.assert_allclose(fused.params_[key][name], value, rtol=1e-11)


@every_fit
def test_a_saved_model_is_the_model(model: Model, example: Example, tmp_path: Path) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        names, table = told(model, names), example.table(rows)
        fitted = model(example.kinds, table, names, estimate=how)
        fitted.save(tmp_path / "first.sc")
        loaded = sc.load(tmp_path / "first.sc")
        same_bits(fitted, loaded)
        assert type(loaded) is type(fitted)
        assert np.array_equal(loaded.predict_log_proba(table), fitted.predict_log_proba(table))
        loaded.save(tmp_path / "second.sc")
        assert (tmp_path / "first.sc").read_bytes() == (tmp_path / "second.sc").read_bytes()

    law()


@every_model
def test_a_saved_model_of_every_family_is_the_model(model: Model, tmp_path: Path) -> None:
    @LAWS
    @given(mixed_rows())
    def law(drawn: Any) -> None:
        rows, names = drawn
        table = MIXED.table(rows)
        fitted = model(MIXED.kinds, table, told(model, names))
        fitted.save(tmp_path / "all.sc")
        loaded = sc.load(tmp_path / "all.sc")
        same_bits(fitted, loaded)
        loaded.save(tmp_path / "again.sc")
        assert (tmp_path / "all.sc").read_bytes() == (tmp_path / "again.sc").read_bytes()
        assert np.array_equal(loaded.score_samples(table), fitted.score_samples(table))
        assert loaded.query(of="colour", given={"visits": 2}) == fitted.query(of="colour", given={"visits": 2})

    law()
