"""Classes that are looked for: columns that repeat others are left out, and dependent ones go into blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softcount as sc


def heaps(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Two heaps of numbers that are long and thin, so that independent columns need many classes for each."""
    rng = np.random.default_rng(seed)
    heap = rng.integers(0, 2, rows)
    along = rng.normal(0, 4, rows)
    x = along + np.where(heap, 3.0, -3.0)
    return pd.DataFrame({"x": x, "y": along + rng.normal(0, 0.1, rows), "z": rng.normal(0, 1, rows), "heap": heap})


def test_correlated_numbers_are_a_block_where_independent_ones_ask_for_many_classes() -> None:
    frame = heaps()
    found = sc.Mixture(random_state=0).fit(frame[["x", "y", "z"]])
    assert found.n_components_ == 2
    assert set(found.params_) == {("x", "y"), "z"}
    (note,) = [note for note in found.notes_ if "blocks" in note]
    assert "'x' and 'y' (correlation 0." in note or "'x' and 'y' (correlation 1.00" in note
    alone = sc.Mixture(random_state=0, kinds={"x": "normal", "y": "normal"}).fit(frame[["x", "y", "z"]])
    assert alone.n_components_ > 5 and not any("blocks" in note for note in alone.notes_)
    best = max(found.selection_["evidence"])
    assert best > max(alone.selection_["evidence"])


@pytest.mark.parametrize(("holes", "kinds"), [(False, None), (True, None), (False, "auto")])
def test_classes_whose_columns_all_follow_one_size_are_found(holes: bool, kinds: str | None) -> None:
    """Under a prior without correlations a class this thin costs more than it gains, and one class is left."""
    rng = np.random.default_rng(0)
    shape = np.array([[15.0, 12.0, 32.0, 37.0], [15.0, 14.0, 31.0, 36.5], [17.0, 12.5, 34.0, 37.5]])
    kind = np.arange(150) % 3
    size = rng.lognormal(0.0, 0.22, (150, 1))
    rows = shape[kind] * size + rng.normal(0.0, 0.15, (150, 4))
    frame = pd.DataFrame(rows, columns=["lobe", "rear", "length", "width"])
    found = sc.Mixture(kinds=kinds, random_state=0).fit(frame.mask(rng.random(frame.shape) < 0.03) if holes else frame)
    pairs = pd.crosstab(kind, found.predict(frame)).to_numpy()
    assert found.n_components_ == 3 and (pairs.max(axis=1) > 45).all()
    assert list(found.params_) == [tuple(frame)]
    assert any("default kinds" in note for note in found.notes_) == (kinds == "auto")


def test_dependent_levels_are_a_block() -> None:
    rng = np.random.default_rng(1)
    rows = 1_500
    sort = rng.integers(0, 2, rows)
    first = (rng.integers(0, 3, rows) + 3 * sort).astype(str)
    second = np.where(rng.random(rows) < 0.9, np.char.add("s", first), "s0")
    third = (rng.integers(0, 5, rows) + 2 * sort).astype(str)
    fourth = np.where(rng.random(rows) < 0.9, np.char.add("t", third), "t0")
    found = sc.Mixture(random_state=0).fit({"a": first, "b": second, "c": third, "d": fourth})
    assert {("a", "b"), ("c", "d")} <= set(found.params_)
    assert any("'a' and 'b'" in note and "nats" in note for note in found.notes_)
    assert found.n_components_ <= 4


@pytest.mark.parametrize("twin", ["copy", "coarser", "other units"])
def test_a_column_that_follows_from_another_is_left_out_and_said(twin: str) -> None:
    rng = np.random.default_rng(2)
    sort = rng.integers(0, 3, 300)
    letter, size = np.array(list("abc"))[sort], rng.normal(sort * 3.0, 1.0)
    copies = {
        "copy": np.char.upper(letter),
        "coarser": np.where(letter == "a", "first", "other"),
        "other units": 2.54 * size,
    }
    frame = {"letter": letter, "size": size, "it": copies[twin]}
    found = sc.Mixture(random_state=0).fit(frame)
    assert set(found.params_) == {"letter", "size"}
    lead = "size" if twin == "other units" else "letter"
    assert any(f"column 'it' is determined by '{lead}'" in note for note in found.notes_)
    same = sc.Mixture(random_state=0).fit({"letter": letter, "size": size})
    assert np.array_equal(found.predict(frame), same.predict({"letter": letter, "size": size}))


def test_a_declared_column_is_never_left_out() -> None:
    letter = np.array(list("ab") * 60)
    found = sc.Mixture(random_state=0, kinds={"it": "categorical"}).fit({"letter": letter, "it": np.char.upper(letter)})
    assert set(found.params_) == {"letter", "it"}


def test_levels_that_follow_by_chance_are_kept() -> None:
    rare = ["x"] * 2 + ["y"] * 38
    found = sc.Mixture(1, random_state=0).fit({"a": ["p"] * 20 + ["q"] * 20, "rare": rare})
    chosen = sc.Mixture(random_state=0).fit({"a": ["p"] * 20 + ["q"] * 20, "rare": rare})
    assert set(found.params_) == set(chosen.params_) == {"a", "rare"}


def test_a_model_of_blocks_answers_of_single_columns(tmp_path) -> None:
    frame = heaps()[["x", "y", "z"]]
    found = sc.Mixture(random_state=0).fit(frame)
    found.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    assert np.allclose(again.predict_proba(frame), found.predict_proba(frame), atol=1e-12)
    assert found.query(of="x", given={"y": 4.0}).mean > found.query(of="x", given={"y": -4.0}).mean


def test_pairs_that_ask_for_many_classes_are_named_with_what_few_have() -> None:
    rng = np.random.default_rng(3)
    shop = rng.integers(0, 8, 400)
    frame = {"shop": np.array(list("abcdefgh"))[shop], "price": rng.normal(shop * 4.0, 1.0), "x": rng.normal(size=400)}
    found = sc.Mixture(random_state=0).fit(frame)
    assert found.n_components_ > 5
    said = [note for note in found.notes_ if "of the improvement of" in note]
    assert len(said) == 1 and "'shop' and 'price'" in said[0] and "n_components=4" in said[0] and "'x'" not in said[0]
    notes = sc.Mixture(random_state=0).fit({"price": frame["x"]}).notes_
    few = [note for note in notes if "of the improvement of" in note]
    assert not few


def test_columns_left_out_are_said_in_one_note() -> None:
    letter = np.array(list("abc") * 60)
    rng = np.random.default_rng(4)
    frame = {"letter": letter, "x": rng.normal(size=180), "up": np.char.upper(letter), "first": letter == "a"}
    said = [note for note in sc.Mixture(random_state=0).fit(frame).notes_ if "determined by" in note]
    assert len(said) == 1 and "'up' (by 'letter'), 'first' (by 'letter')" in said[0]
