"""Text where some rows have no label: whose words are kept, and that nothing else decides it."""

from __future__ import annotations

import os
import pickle
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import softcount as sc
from softcount.core.counts import Twofold
from softcount.evaluate.folds import FoldWords
from softcount.evaluate.scores import Evaluation, cross_validate
from softcount.learn.record import Plan
from softcount.models.bag_stack import Bag, Pending, SparseRows
from softcount.models.stacks import Kernels
from softcount.models.star import rearrange_groups
from softcount.run.local import Threads
from softcount.sources import csv_file, documents
from softcount.table import Kind, Table, open_table
from softcount.text import Gathered, Reading, block_of, vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

WORDS = ["oak", "elm", "ash", "fir", "yew", "box"]
KINDS = {"text": "text"}
TEXTS = ["red wine", "white wine", "hops barley", None, "barley malt"]
SOME = ["a", "b", None, None, None]


def words(model: Any) -> list[str]:
    return list(model.levels_["text"])


# -- gathering

limits = st.builds(
    Reading,
    min_count=st.integers(1, 3),
    min_df=st.sampled_from([1, 2, 0.3]),
    max_df=st.sampled_from([2, 0.7, 1.0]),
    drop_top=st.integers(0, 2),
    max_words=st.sampled_from([None, 2, 100]),
)
rows = st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.booleans())


def kept_by_hand(texts: list[tuple[list[str], bool]], reading: Reading, few: int) -> list[str]:
    """Words of labelled documents within the limits there, or, where these are few, within the limits of all."""

    def within(docs: list[list[str]]) -> dict[str, int]:
        least, most = (x * len(docs) if isinstance(x, float) else x for x in (reading.min_df, reading.max_df))
        times = {word: sum(doc.count(word) for doc in docs) for word in WORDS}
        among = {word: sum(word in doc for doc in docs) for word in WORDS}
        return {w: times[w] for w in WORDS if times[w] >= reading.min_count and least <= among[w] <= most}

    told = [doc for doc, known in texts if known]
    held = {word for doc in told for word in doc}
    counts = {word: n for word, n in within(told).items() if word in held}
    if len(told) == len(texts) or len(counts) <= few:
        counts = {word: n for word, n in within([doc for doc, _ in texts]).items() if word in held}
    ranked = sorted(sorted(counts), key=lambda word: -counts[word])[reading.drop_top :]
    return sorted(ranked[: reading.max_words])


@settings(max_examples=150)
@given(
    blocks=st.lists(st.lists(rows, min_size=1, max_size=4), min_size=1, max_size=5),
    reading=limits,
    few=st.integers(0, 4),
)
def test_words_kept_are_those_a_count_by_hand_keeps(blocks: Any, reading: Reading, few: int) -> None:
    gathered = Gathered(reading)
    before, vocabulary.FEW = vocabulary.FEW, few
    try:
        for part in blocks:
            known = np.array([row[1] for row in part])
            block = block_of([" ".join(row[0]) for row in part], reading)
            gathered.add(block, labelled=None if known.all() else known)
            gathered = pickle.loads(pickle.dumps(gathered))
        chosen = gathered.chosen()
    finally:
        vocabulary.FEW = before
    everything = [row for part in blocks for row in part]
    assert list(chosen.words) == kept_by_hand(everything, reading, few)
    assert chosen.cells == sum(len(set(doc) & set(chosen.words)) for doc, _ in everything)


def test_words_without_a_label_are_the_first_to_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "ALWAYS_HELD", 0)
    monkeypatch.setattr(vocabulary, "FEW", 0)
    reading = Reading(max_words=10)
    gathered = Gathered(reading)
    gathered.add(block_of([" ".join(WORDS)], reading), labelled=None)
    for start in range(0, 400, 20):
        often = " ".join(f"rare{i} rare{i} rare{i}" for i in range(start, start + 30))
        gathered.add(block_of([often], reading), labelled=np.array([False]))
    gathered.add(block_of(["oak rare7"], reading), labelled=np.array([True]))
    chosen = gathered.chosen()
    assert gathered.given_up and chosen.notes
    assert dict(zip(chosen.words, chosen.counts.tolist(), strict=True)) == {
        **dict.fromkeys(WORDS, 1),
        "oak": 2,
        "rare7": 1,
    }


# -- what tells which rows are labelled


@pytest.fixture
def shelf(tmp_path: Path) -> str:
    for name in "ab":
        (tmp_path / "mail" / name).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "mail" / name / f"{i}").write_text(f"word{name} common thing{i % 3}")
    for i in range(8):
        (tmp_path / "mail" / f"loose{i}").write_text(f"loose word{'ab'[i % 2]} common other{i}")
    return os.fspath(tmp_path / "mail")


def test_a_folder_a_file_a_frame_and_a_list_keep_the_same_words(
    shelf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [Path(shelf, *([c] if c else []), n).read_text() for c, n in _names(shelf)]
    frame = pd.DataFrame({"text": texts, "class": [c for c, _ in _names(shelf)]})
    frame.to_csv(tmp_path / "mail.csv", index=False)
    found = {}
    for size in (2_048, 3):
        monkeypatch.setattr(documents, "PIECE_DOCUMENTS", size)
        for jobs in (1, 4):
            model = sc.NaiveBayes(n_jobs=jobs).fit(shelf)
            assert sum("those that the 12 labelled rows hold" in note for note in model.notes_) == 1
            found[size, jobs] = model
    kinds = {"text": "text"}
    found["csv"] = sc.NaiveBayes(kinds=kinds).fit(os.fspath(tmp_path / "mail.csv"), "class")
    found["frame"] = sc.NaiveBayes(kinds=kinds).fit(frame, "class")
    found["list"] = sc.NaiveBayes(kinds="text").fit(texts, [c for c, _ in _names(shelf)])
    for model in found.values():
        assert words(model) == ["common", "thing0", "thing1", "thing2", "worda", "wordb"]
        np.testing.assert_allclose(model.counts_["text"], found["list"].counts_["text"], rtol=1e-9)
    for size in (2_048, 3):
        assert np.array_equal(found[size, 1].counts_["text"], found[size, 4].counts_["text"])


def _names(shelf: str) -> list[tuple[str | None, str]]:
    inside = [(c, str(i)) for c in "ab" for i in range(6)]
    assert all(Path(shelf, c, n).exists() for c, n in inside)
    return [*inside, *[(None, f"loose{i}") for i in range(8)]]


def test_a_column_that_must_be_read_again_leaves_the_words_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first rows say that sizes are all the same and labels numbers; the last one that they are not.
    monkeypatch.setattr(csv_file, "LOOK_ROWS", 1_000)
    monkeypatch.setattr(csv_file, "LOOK_RUN", 1_000)
    again: list[Any] = []
    widened = Table.widened
    monkeypatch.setattr(Table, "widened", lambda table, why: again.append(why.key) or widened(table, why))
    many = 3_000
    texts = [f"word{i % 2} only{i % 7}" if i % 3 else f"loose{i % 5} word{i % 2}" for i in range(many)]
    names = [str(i % 2) if i % 3 else None for i in range(many - 1)] + ["two"]
    frame = pd.DataFrame({"text": texts, "size": ["7"] * (many - 1) + ["8"], "kind": names})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    model = sc.NaiveBayes(kinds=KINDS, max_iter=2).fit(os.fspath(tmp_path / "wide.csv"), "kind")
    assert set(again) == {"size", "kind"}
    assert list(model.classes_) == ["0", "1", "two"]
    assert words(model) == [*(f"only{i}" for i in range(7)), "word0", "word1"]
    assert sum("labelled rows hold" in note for note in model.notes_) == 1


def test_a_table_that_is_used_again_has_the_words_of_each_use() -> None:
    every = ["barley", "hops", "malt", "red", "white", "wine"]
    table = open_table({"text": TEXTS}, kinds={"text": Kind.TEXT})
    for _ in range(2):
        assert words(sc.NaiveBayes(kinds=KINDS).fit(table, SOME)) == ["red", "white", "wine"]
        assert words(sc.Mixture(2, kinds=KINDS, random_state=0).fit(table)) == every
        assert words(sc.Mixture(2, kinds=KINDS, random_state=0).fit(table, SOME)) == every
        assert words(sc.NaiveBayes(kinds=KINDS).fit(table, ["a", *[None] * 4])) == ["red", "wine"]
        assert words(sc.NaiveBayes(kinds=KINDS).fit(table, list("abaab"))) == every


# -- few labels, or none


@pytest.mark.parametrize("texts", [TEXTS, [None, None, "", None, "malt"]])
@pytest.mark.parametrize("gap", [None, float("nan")])
def test_where_no_row_has_a_label_it_is_the_labels_that_are_to_blame(texts: list[Any], gap: Any) -> None:
    for data, y in (({"text": texts}, [gap] * 5), (pd.DataFrame({"text": texts, "y": [gap] * 5}), "y")):
        with pytest.raises(sc.DataError, match=r"every label is unknown.* use Mixture"):
            sc.NaiveBayes(kinds=KINDS).fit(data, y)


def test_one_labelled_row_is_said_as_one() -> None:
    model = sc.NaiveBayes(kinds=KINDS).fit({"text": TEXTS}, ["a", *[None] * 4])
    assert words(model) == ["red", "wine"]
    assert any("the one labelled row holds" in note for note in model.notes_)


@pytest.mark.parametrize("held", [None, "", "?"])
def test_labelled_rows_without_a_word_are_named_as_the_cause(held: str | None) -> None:
    texts = [held, held, "hops barley", "barley malt"]
    with pytest.raises(sc.DataError, match="rows that have a label hold none of the 3 of the others"):
        sc.NaiveBayes(kinds=KINDS).fit({"text": texts}, ["a", "b", None, None])
    beside = sc.NaiveBayes(kinds=KINDS).fit({"text": texts, "size": [1.5, 9.5, 1.7, 9.1]}, ["a", "b", None, None])
    assert any("have a label hold none of the 3" in note for note in beside.notes_)
    assert not any("min_count" in note or "its words are those" in note for note in beside.notes_)
    assert list(beside.predict({"text": texts, "size": [1.5, 9.5, 1.7, 9.1]})) == ["a", "b", "a", "b"]


def test_without_the_weight_of_the_others_a_model_is_that_of_the_labelled_rows() -> None:
    known = [k for k, name in enumerate(SOME) if name]
    for model in ("multinomial", "bernoulli", "complement"):
        kinds = {"text": sc.families.Text(model)}  # type: ignore[arg-type]
        some = sc.NaiveBayes(kinds=kinds, unlabelled_weight=0.0).fit({"text": TEXTS}, SOME)
        alone = sc.NaiveBayes(kinds=kinds).fit({"text": [TEXTS[k] for k in known]}, [SOME[k] for k in known])
        assert words(some) == words(alone)
        assert np.array_equal(some.predict_proba({"text": TEXTS}), alone.predict_proba({"text": TEXTS}))


# -- trying, joining, keeping


def gappy(rows: int = 240) -> tuple[list[str], list[str | None]]:
    rng = np.random.default_rng(5)
    texts = [
        " ".join(f"{'uv'[i % 2] if rng.random() < 0.3 else 'w'}{j}" for j in rng.integers(0, 9, 6)) for i in range(rows)
    ]
    return texts, ["uv"[i % 2] if i < rows // 3 else None for i in range(rows)]


def tried(
    share: float | None, size: int, jobs: int, tmp: Path, texts: list[str], names: list[str | None], weight: float = 0.0
) -> Evaluation:
    pd.DataFrame({"text": texts, "y": names}).to_parquet(tmp / "gappy.parquet", row_group_size=size)
    table = open_table(os.fspath(tmp / "gappy.parquet"), kinds={"text": Kind.TEXT}, target="y")
    with Threads(jobs) as threads:
        found = cross_validate(table, Plan(unlabelled_weight=weight), threads, share=share)
    assert found is not None
    return found


@pytest.mark.parametrize("share", [None, 0.3])
def test_rows_without_a_label_that_do_not_count_change_nothing_in_a_trial(share: float | None, tmp_path: Path) -> None:
    texts, names = gappy()
    whole = tried(share, 1_000, 1, tmp_path, texts, names)
    parts = tried(share, 20, 4, tmp_path, texts, names)
    alone = tried(share, 1_000, 1, tmp_path, texts[:80], names[:80])
    assert whole == parts == alone and whole.accuracy > 0.8
    taught = tried(share, 1_000, 1, tmp_path, texts, names, weight=1.0)
    assert taught.log_loss != whole.log_loss and taught.n_rows == whole.n_rows


def test_a_stretch_without_a_label_has_no_words_to_add() -> None:
    bag = sparse.csr_matrix(np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
    none = FoldWords.of(bag, np.array([-1, -1]), None)
    some = FoldWords.of(bag, np.array([0, 3]), np.array([1.0, 0.5]))
    for words in (none + some, some + none, sum([none] * 20, some)):
        assert np.array_equal(words.total(2, [1, 0], 2), [[0.5, 0.0, 1.5], [1.0, 2.0, 0.0]])


def test_a_calibrated_model_of_some_labels_is_corrected_by_models_that_all_rows_taught() -> None:
    texts, names = gappy()
    model, deaf = (
        sc.NaiveBayes(kinds="text", calibration="temperature", unlabelled_weight=weight).fit(texts, names)
        for weight in (1.0, 0.0)
    )
    alone = sc.NaiveBayes(kinds="text", calibration="temperature").fit(texts[:80], names[:80])
    assert deaf.calibration_.temperature == alone.calibration_.temperature
    assert model.calibration_.log_loss_before != alone.calibration_.log_loss_before


def test_parts_with_gaps_add_their_words_and_come_back_from_a_file(tmp_path: Path) -> None:
    parts = [
        (["red wine", "white hops", "red barley", "malt"], ["a", "b", None, None]),
        (["blue wine", "white hops", "malt"], ["a", None, None]),
        ([None, "white hops", "malt"], ["b", None, None]),
    ]
    model = sc.NaiveBayes(kinds="text")
    for texts, names in parts:
        model.partial_fit(texts, names)
    assert words(model) == ["blue", "hops", "red", "white", "wine"]
    assert model.counts_["text"][:, 0].sum() == pytest.approx(9.0)  # documents, the missing one apart
    apart = [sc.NaiveBayes(kinds="text").fit(texts, names) for texts, names in parts[:2]]
    merged = apart[0].merge(apart[1])
    assert words(merged) == words(model)
    merged.save(tmp_path / "merged.sc")
    asked = ["blue wine", "white malt", None]
    assert np.array_equal(sc.load(tmp_path / "merged.sc").predict_proba(asked), merged.predict_proba(asked))


def test_labelled_rows_of_no_weight_have_no_say_in_the_words() -> None:
    weights = [1.0, 0.0, 1.0, 1.0, 1.0]
    model = sc.NaiveBayes(kinds=KINDS).fit({"text": TEXTS}, SOME, sample_weight=weights)
    assert words(model) == ["red", "wine"]


def test_what_was_learned_with_gaps_can_be_forgotten() -> None:
    texts, names = gappy()
    model = sc.NaiveBayes(kinds="text").fit(texts[:60], names[:60])
    before = model.counts_["text"].copy()
    model.partial_fit(texts[60:90], names[60:90]).forget(texts[60:90], names[60:90])
    np.testing.assert_allclose(model.counts_["text"], before, atol=1e-9)


# -- counts that wait

BAG = sparse.csr_matrix(np.random.default_rng(1).integers(0, 3, (12, 4)).astype(float))
LABELS = np.random.default_rng(2).integers(-1, 3, 12).astype(np.int32)


def waiting(first: int, last: int) -> Pending:
    """Some of the rows; classes that they have not met are not known to them."""
    labels = LABELS[first:last]
    stack = Bag("bag", (), (), (), Kernels(1))
    found = stack.count_labelled(SparseRows.of(BAG[first:last]), labels, None, int(labels.max(initial=0)) + 1)
    return found["bag"]  # type: ignore[return-value]


def by_hand(groups: int) -> np.ndarray:
    return np.stack([BAG.toarray()[g == LABELS].sum(axis=0) for g in range(groups)])


@settings(max_examples=40)
@given(cuts=st.lists(st.integers(0, 12), max_size=4), backwards=st.booleans())
def test_counts_that_wait_add_up_however_they_are_joined(cuts: list[int], backwards: bool) -> None:
    parts = [waiting(first, last) for first, last in pairwise([0, *sorted(cuts), 12])]
    whole = reduce(lambda rest, part: part.joined(rest), parts[::-1]) if backwards else reduce(Pending.joined, parts)
    assert np.array_equal(whole.whole.value, by_hand(whole.shape[0]))


@settings(max_examples=40)
@given(cut=st.integers(0, 12), order=st.permutations([0, 1, 2]), lacking=st.integers(0, 2), room=st.integers(0, 2))
def test_counts_that_wait_move_to_other_groups_as_others_do(
    cut: int, order: list[int], lacking: int, room: int
) -> None:
    whole = waiting(0, cut).joined(waiting(cut, 12))
    wanted = np.array([*order[: 3 - lacking]], dtype=np.int64)
    moved = rearrange_groups(whole, wanted, 3 + room)
    assert isinstance(moved, Pending)
    assert np.array_equal(moved.value, rearrange_groups(Twofold.of(by_hand(3)), wanted, 3 + room).value)
    assert moved.shape == moved.value.shape == (3 + room, 4)
    dropped = rearrange_groups(whole, np.array([-1, 0, 1]), 2)
    assert np.array_equal(dropped.value, by_hand(3)[1:])


def test_classes_in_any_order_and_any_number_of_threads_give_the_same_bits(tmp_path: Path) -> None:
    texts, names = gappy(900)
    names = [name or "tvzab"[k % 5] for k, name in enumerate(names)]
    found = []
    for order, jobs in ((list(range(900)), 1), (list(range(900)), 4), (list(np.argsort(names, kind="stable")), 1)):
        data = {"text": [texts[k] for k in order], "y": [names[k] for k in order]}
        pd.DataFrame(data).to_parquet(tmp_path / "some.parquet", row_group_size=64)
        found.append(sc.NaiveBayes(kinds=KINDS, prior=0.1, n_jobs=jobs).fit(os.fspath(tmp_path / "some.parquet"), "y"))
    for model in found:
        assert np.array_equal(model.params_["text"]["probability"], found[0].params_["text"]["probability"])
        assert np.array_equal(model.predict_proba(texts), found[0].predict_proba(texts))
