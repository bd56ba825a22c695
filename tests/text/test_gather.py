"""Vocabularies gathered block by block keep the words that a count by hand keeps, and matrices have their columns."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from softcount.kernels import token_counts
from softcount.kernels.tokenise import EVERY
from softcount.text import Gathered, Reading, WordBlock, Words, block_of, matrix_of, vocabulary
from softcount.text.vocabulary import Lookup
from text.plain_words import counted, kept, matrix
from text.ways import WAYS, read, same_matrix, way

TREES = ["oak", "elm", "ash", "fir", "yew", "box", "bay", "beech tree", "birch"]
DOCUMENTS = st.lists(st.lists(st.sampled_from(TREES), max_size=8).map(" ".join), min_size=1, max_size=10)
LIMITS = st.builds(
    Reading,
    ngrams=st.sampled_from([(1, 1), (1, 2)]),
    min_count=st.integers(1, 4),
    min_df=st.sampled_from([1, 2, 0.0, 0.2, 0.5]),
    max_df=st.sampled_from([1, 3, 0.5, 0.9, 1.0]),
    drop_top=st.integers(0, 3),
    max_words=st.sampled_from([None, 1, 4, 100]),
)
SPELLINGS = st.lists(st.text(st.sampled_from("ab\x00é中\U0001f600\ud800"), max_size=20), unique=True, max_size=30)


@pytest.mark.parametrize("how", WAYS)
@settings(max_examples=80)
@given(documents=DOCUMENTS, reading=LIMITS)
def test_limits_keep_what_a_count_by_hand_keeps(documents, reading, how):
    with way(how):
        chosen, rows = read(documents, reading)
    tables = counted(documents, reading)
    words = kept(tables, reading, len(documents))
    expected = matrix(tables, words)
    assert list(chosen.words) == words
    assert np.array_equal(rows.toarray(), expected)
    assert np.array_equal(chosen.counts, expected.sum(axis=0))
    assert np.array_equal(chosen.documents, (expected > 0).sum(axis=0))
    assert chosen.n_documents == len(documents) and chosen.notes == ()


@given(documents=DOCUMENTS, order=st.randoms(use_true_random=False))
def test_the_order_of_blocks_changes_nothing(documents, order):
    blocks = [block_of([text], Reading()) for text in documents]
    shuffled = blocks.copy()
    order.shuffle(shuffled)
    found = []
    for each in (blocks, shuffled):
        gathered = Gathered(Reading(min_count=2, drop_top=1))
        for block in each:
            gathered.add(block)
        found.append(gathered.chosen())
    assert found[0].words == found[1].words
    assert np.array_equal(found[0].counts, found[1].counts) and np.array_equal(found[0].documents, found[1].documents)


def test_missing_documents_are_not_counted_where_the_caller_says_so():
    gathered = Gathered(Reading(max_df=0.5))
    gathered.add(block_of(["oak elm", None, None, "oak"], Reading()), n_documents=2)
    assert gathered.chosen().n_documents == 2
    assert list(gathered.chosen().words) == ["elm"]


# Words


@pytest.mark.parametrize("how", WAYS)
@given(words=SPELLINGS, others=SPELLINGS)
def test_words_are_sorted_found_and_taken_by_their_spelling(words, others, how):
    with way(how):
        ours = Words.of(words)
        order = ours.order()
        assert [words[at] for at in order] == sorted(words)
        assert list(ours.take(order)) == sorted(words)
        places = {word: place for place, word in enumerate(words)}
        assert ours.columns(Words.of(others)).tolist() == [places.get(word, -1) for word in others]
        assert ours.columns(ours).tolist() == list(range(len(words)))


@pytest.mark.parametrize("how", WAYS)
@given(words=st.lists(st.tuples(st.integers(0, 50), st.text("\0aé", max_size=12)), max_size=30))
def test_words_that_begin_alike_are_sorted_by_their_later_letters(words, how):
    spelt = ["a" * length + rest for length, rest in words]
    with way(how):
        assert [spelt[at] for at in Words.of(spelt).order()] == sorted(spelt)


@pytest.mark.parametrize("how", WAYS)
@given(lists=st.lists(SPELLINGS, max_size=5))
def test_words_keep_the_numbers_they_were_first_given(lists, how):
    known: dict[str, int] = {}
    lookup = Lookup()
    with way(how):
        for words in lists:
            ids = lookup.learn(Words.of(words))
            assert ids.tolist() == [known.setdefault(word, len(known)) for word in words]
            assert len(lookup) == len(known)
        assert list(lookup.words()) == list(known)


def test_words_begun_in_a_dictionary_go_on_in_arrays():
    lookup = Lookup()
    with way("plain"):
        assert lookup.learn(Words.of(["oak", "elm"])).tolist() == [0, 1]
    with way("compiled"):
        assert lookup.learn(Words.of(["ash", "elm"])).tolist() == [2, 1]
    assert list(pickle.loads(pickle.dumps(lookup)).words()) == ["oak", "elm", "ash"]


@given(words=SPELLINGS)
def test_words_come_back_from_a_pickle_and_from_slices_and_go_to_arrow(words):
    ours = Words.of(words)
    ours.columns(ours)
    assert pickle.loads(pickle.dumps(ours)) == ours and list(ours) == words
    assert ours.to_arrow().view(pa.large_binary()).to_pylist() == ours.spelled()
    if len(words) > 2:
        assert (ours[1], ours[-1], ours[1:]) == (words[1], words[-1], words[1:])


@pytest.mark.parametrize("spread", [np.uint64(0), np.uint64(1 << 63), EVERY])
def test_words_that_share_a_hash_are_found_by_their_bytes(spread):
    words = Words.of([f"{'long ' * (i % 3)}word {i}" for i in range(500)])
    some = words.take(np.arange(0, 500, 2))
    pair = some.data, some.offsets
    table, sizes = (np.zeros((16, 2), np.uint64), np.empty(4, np.uint8), np.zeros(4, np.int64)), np.zeros(2, np.int64)
    ids, table = token_counts.learn_words(*pair, table, sizes, spread)
    found = token_counts.find_words(words.data, words.offsets, table[0], *pair, spread)
    assert found.tolist() == [i // 2 if i % 2 == 0 else -1 for i in range(500)]
    again, _ = token_counts.learn_words(words.data, words.offsets, table, sizes, spread)
    assert ids.tolist() == list(range(250)) and again[::2].tolist() == ids.tolist()
    assert sorted(again[1::2].tolist()) == list(range(250, 500))


# Matrices


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@settings(max_examples=60)
@given(data=st.data())
def test_both_ways_make_the_same_matrix_with_its_columns_in_order(data, dtype):
    words, width = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 9))
    cells = st.lists(
        st.tuples(st.integers(0, words - 1), st.integers(1, 5)), max_size=8, unique_by=lambda cell: cell[0]
    )
    rows = data.draw(st.lists(cells, max_size=6))
    columns = np.array(data.draw(st.lists(st.integers(-1, width - 1), min_size=words, max_size=words)), np.int32)
    ends = np.cumsum([0, *map(len, rows)])
    ids, counts = (np.array([cell[part] for row in rows for cell in row], np.int32) for part in (0, 1))
    block = WordBlock(ends, ids, counts.astype(np.uint8), Words.of(()))
    expected = np.zeros((len(rows), width), dtype)
    for i, row in enumerate(rows):
        for word, count in row:
            if columns[word] >= 0:
                expected[i, columns[word]] += count
    for how in WAYS:
        with way(how):
            found = matrix_of(block, columns, width, dtype)
        assert found.dtype == dtype and found.indices.dtype == np.int32
        assert same_matrix(found, sparse.csr_matrix(expected))


# More words than were asked for


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(vocabulary, "ALWAYS_HELD", 0)


def _rare(start: int, stop: int) -> str:
    return " ".join(f"rare{i}" for i in range(start, stop))


def test_counts_are_exact_as_long_as_memory_is_not_passed(little_memory):
    reading = Reading(max_words=30)
    gathered = Gathered(reading)
    documents = [_rare(0, 60) + " oak oak", _rare(50, 110) + " elm oak"]
    for text in documents:
        gathered.add(block_of([text], reading))
    chosen = gathered.chosen()
    assert list(chosen.words) == kept(counted(documents, reading), reading, 2) and chosen.notes == ()


@pytest.mark.parametrize("how", WAYS)
def test_rare_words_given_up_leave_frequent_ones_and_a_note(how, little_memory):
    reading = Reading(max_words=10)
    gathered = Gathered(reading)
    rng = np.random.default_rng(3)
    documents = [
        " ".join(rng.permutation([*TREES[:7]] * 3 + _rare(i, i + 30).split() + ["late"] * (i > 300)))
        for i in range(0, 600, 15)
    ]
    with way(how):
        ids = [(block, gathered.add(block)) for block in (block_of([text], reading) for text in documents)]
        chosen = gathered.chosen()
    truth = Counter(word for text in documents for word in text.split())
    found = dict(zip(chosen.words, chosen.counts.tolist(), strict=True))
    assert len(gathered.counts) <= 4 * 10 and len(found) == 10
    assert {*TREES[:7], "late"} <= set(found)
    assert all(truth[word] - gathered.lost <= count <= truth[word] for word, count in found.items())
    assert all(found[tree] == truth[tree] for tree in TREES[:7])
    [note] = chosen.notes
    assert f"{gathered.given_up:,} rare ones" in note and f"up to {gathered.lost:,}" in note
    rows = sparse.vstack([matrix_of(block, chosen.columns[numbers], 10) for block, numbers in ids])
    assert np.array_equal(np.asarray(rows.sum(axis=0)).ravel(), chosen.counts)


def test_a_vocabulary_of_words_met_once_keeps_as_many_as_asked(little_memory):
    reading = Reading(max_words=5)
    gathered = Gathered(reading)
    gathered.add(block_of([_rare(0, 1000)], reading))
    chosen = gathered.chosen()
    assert len(chosen.words) == 5 and gathered.lost == 1 and chosen.notes
    assert len(chosen.columns) == 1000 and np.count_nonzero(chosen.columns >= 0) == 5


def test_a_gathering_goes_on_after_a_pickle(little_memory):
    reading = Reading(max_words=5)
    gathered = Gathered(reading)
    gathered.add(block_of([_rare(0, 100)], reading))
    again = pickle.loads(pickle.dumps(gathered))
    for each in (gathered, again):
        each.add(block_of(["oak elm oak", _rare(3, 60)], reading))
    assert gathered.chosen().words == again.chosen().words
