"""Columns of text on Dask: every part tells its words, and models and figures are those of one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcount as sc
from parted_rows import same_bits
from softcount.errors import DataError
from softcount.evaluate.scores import cross_validate
from softcount.learn.record import Plan
from softcount.models.declare import read_kinds
from softcount.run.dask import DaskEngine
from softcount.run.local import Threads
from softcount.table import open_table
from softcount.text import Gathered, Reading, block_of

distributed = pytest.importorskip("distributed")
ROWS = 150


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Documents with holes, words that one part alone has, a number beside them; a third of the labels are gaps."""
    folder = tmp_path_factory.mktemp("texts")
    words = np.array([f"word{place}" for place in range(80)])
    shares = 1 / np.arange(1, 81)
    for part in range(3):
        rng = np.random.default_rng(part)
        kind = rng.integers(0, 2, ROWS)
        said = [" ".join(rng.choice(words if own else words[::-1], 9, p=shares / shares.sum())) for own in kind]
        said = [
            f"{text} only{part}" if row % 5 == 0 else None if row % 11 == 0 else text for row, text in enumerate(said)
        ]
        names = [None if row % 3 == 0 else "ab"[own] for row, own in enumerate(kind)]
        cells = {"said": said, "x": rng.normal(size=ROWS) + kind, "kind": ["ab"[own] for own in kind], "some": names}
        pq.write_table(pa.table(cells), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


@pytest.mark.parametrize(
    "family", [sc.families.Text(), sc.families.Text(ngrams=(1, 2), min_df=3, max_words=40)], ids=["words", "pairs"]
)
@pytest.mark.parametrize(("target", "left_out"), [("kind", "some"), ("some", "kind")])
def test_a_model_of_text_is_that_of_one_machine(
    client: Any, files: str, family: Any, target: str, left_out: str
) -> None:
    setting: dict[str, Any] = {"kinds": {"said": family, left_out: "ignore"}, "unlabelled_weight": 0}
    here, there = (
        sc.NaiveBayes(**setting).fit(files, target),
        sc.NaiveBayes(engine=client, **setting).fit(files, target),
    )
    assert list(there.levels_["said"]) == list(here.levels_["said"]) and len(here.levels_["said"]) > 30
    assert same_bits(here, there) and there.fitted_.missing == here.fitted_.missing and there.notes_ == here.notes_
    assert np.array_equal(there.predict_proba(files), here.predict_proba(files))


def test_folds_of_text_are_those_of_one_machine_and_frames_are_taken(client: Any, files: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    kinds: dict[Any, Any] = {"said": "text", "some": "ignore"}
    plan = Plan(declared=read_kinds(kinds), prior=1.0, estimate="mean", target="kind")
    with Threads(1) as threads, DaskEngine(client) as engine:
        here, there = (
            cross_validate(open_table(files, kinds=kinds, target="kind"), plan, x) for x in (threads, engine)
        )
    assert here is not None and here == there
    model = sc.NaiveBayes(kinds=kinds).fit(frames.read_parquet(files), "kind")
    alone = sc.NaiveBayes(kinds=kinds).fit(files, "kind")
    np.testing.assert_allclose(model.predict_proba(files), alone.predict_proba(files), rtol=1e-10)
    one, other = (sc.Classifier(kinds=kinds, engine=x).fit(files, "kind") for x in (None, client))
    assert one.notes_[-1] == other.notes_[-1] and (one.ensemble_ is None) == (other.ensemble_ is None)
    np.testing.assert_allclose(other.predict_proba(files), one.predict_proba(files), rtol=1e-9)
    with pytest.raises(DataError, match="classes of texts"):
        sc.Mixture(2, kinds=kinds, engine=client).fit(files)


def test_words_gathered_apart_and_joined_are_those_gathered_at_once() -> None:
    """With labels in some blocks, in all, and in none of the documents."""
    texts = [["ink pot", "ink"], ["pen ink", "pen pen box"], ["box pot", "lid"]]
    labels = [np.array([True, False]), None, np.array([False, False])]
    reading = Reading(min_count=2)
    for some in (labels, [None] * 3, labels[::-1]):
        whole, joined = Gathered(reading), Gathered(reading)
        for block, told in zip(texts, some, strict=True):
            apart = Gathered(reading)
            for gathered in (whole, apart):
                gathered.add(block_of(block, reading), labelled=told)
            joined.join(apart)
        one, other = whole.chosen(), joined.chosen()
        assert list(one.words) == list(other.words)
        for name in ("counts", "documents", "n_documents", "unlabelled", "cells"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
