"""Markov chains against loops over every step, against themselves under changes that must not matter, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from sequences import chain_oracle as oracle
from softcount import DataError, MarkovChain, ModelFileError
from softcount.chains.chain import hitting_times, shape_of, stationary
from softcount.chains.counts import level_discounts, shared_levels
from softcount.chains.order import StepBlocks

ALPHABET = ["a", "b", "c"]
steps = st.sampled_from([*ALPHABET, None])
drawn = st.lists(st.lists(steps, min_size=1, max_size=9), min_size=1, max_size=6).filter(
    lambda found: any(step is not None for sequence in found for step in sequence)
)
settings_of_chain = st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))


def chain_of(order: int, ends: bool, prior: Any) -> MarkovChain:
    return MarkovChain(order, prior, ends, symbols=ALPHABET)


def padded(sequences: list[list[Any]], order: int) -> list[list[Any]]:
    """With one long enough for the order."""
    return [*sequences, ["a", "b", "c", "a", "c", "b", "a", "a", "b"][: order + 2]]


def as_oracle(chain: MarkovChain) -> Callable[[tuple[Any, ...]], dict[Any, float]]:
    """What the chain itself predicts after a context, in the oracle's terms."""
    digit = {oracle.BEGIN: 0, **{symbol: at for at, symbol in enumerate(chain.symbols_, start=1)}}
    after = [*chain.symbols_, *([oracle.END] if chain.ends else [])]
    return lambda context: dict(zip(after, chain.predictions_.after([digit[x] for x in context]).tolist(), strict=True))


@settings(max_examples=30)
@given(drawn, settings_of_chain)
def test_shares_are_those_of_counting_step_by_step(sequences: list[list[Any]], how: Any) -> None:
    order, ends, prior = how
    sequences = padded(sequences, order)
    chain = chain_of(order, ends, prior).fit(sequences)
    levels = oracle.counted(sequences, order, ends)
    after = [*ALPHABET, *([oracle.END] if ends else [])]
    for context in {context for level in levels for context in level} | {("c", "c", "c")[:order]}:
        right = oracle.flat_after(levels, prior, after, len(after), context)
        assert as_oracle(chain)(context) == pytest.approx(right, rel=1e-12, abs=1e-15)


@settings(max_examples=30)
@given(drawn, settings_of_chain, st.sampled_from(["kneser-ney", None]))
def test_a_sequence_with_gaps_is_as_likely_as_all_ways_to_fill_them(sequences: Any, how: Any, prior: Any) -> None:
    order, ends, number = how
    chain = chain_of(order, ends, prior or number).fit(padded(sequences, order))
    asked = [sequence for sequence in sequences if sequence.count(None) <= 4]
    if asked:
        right = [oracle.log_probability(as_oracle(chain), one, ALPHABET, ends, order) for one in asked]
        assert chain.score_samples(asked) == pytest.approx(right, rel=1e-10, abs=1e-12)


@settings(max_examples=20)
@given(drawn, st.integers(0, 3), st.booleans(), st.sampled_from(["kneser-ney", 0.5]))
def test_what_comes_next_sums_to_one_and_is_what_the_longer_sequence_adds(
    sequences: Any, order: int, ends: bool, prior: Any
) -> None:
    chain = chain_of(order, ends, prior).fit(padded(sequences, order))
    chances = chain.predict_proba(sequences)
    assert chances.sum(axis=1) == pytest.approx(np.ones(len(sequences)), rel=1e-12)
    assert (chances > 0).all()
    if not ends:
        for place, symbol in enumerate(ALPHABET):
            longer = chain.score_samples([[*sequence, symbol] for sequence in sequences])
            assert longer - chain.score_samples(sequences) == pytest.approx(np.log(chances[:, place]), abs=1e-9)


def text(length: int, seed: int = 0) -> str:
    """Letters that depend on the two before them."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(5, 0.35), (5, 5))
    found = [0, 1]
    while len(found) < length:
        found.append(int(rng.choice(5, p=table[found[-2], found[-1]])))
    return "".join("abcde"[place] for place in found)


@pytest.mark.parametrize("ends", [False, True])
def test_back_off_is_kneser_and_neys(ends: bool) -> None:
    lines = [text(30, seed)[: 10 + seed % 9] for seed in range(40)]
    chain = MarkovChain(3, ends=ends).fit(lines)
    levels = oracle.counted(lines, 3, ends)
    after = [*"abcde", *([oracle.END] if ends else [])]
    settled = [level_discounts(level, chain.counts_.alphabet.base) for level in shared_levels(chain.counts_)]
    otherwise = [(float(discounts[0]), strength) for discounts, strength in settled]
    assert [strength > 0 for _, strength in otherwise] == [True, True, False, False]
    for context in [("a", "b", "c"), ("e", "e", "e"), ("b",), (), ("a", "d"), ("c", "a", "b")]:
        right = oracle.kneser_ney_after(levels, after, context, otherwise)
        assert as_oracle(chain)(context) == pytest.approx(right, rel=1e-9)


# -- laws


LEARNING = {
    "plain": lambda: MarkovChain(1, 0.5),
    "back-off": lambda: MarkovChain(2, ends=True),
    "variable": lambda: MarkovChain("variable"),
    "order 0": lambda: MarkovChain(0, 1.0),
}
every_way = pytest.mark.parametrize("way", LEARNING)
LINES = [text(40, seed)[: 7 + 3 * (seed % 6)] for seed in range(60)]


def same(first: MarkovChain, second: MarkovChain) -> None:
    assert first.symbols_ == second.symbols_
    for mine, theirs in zip(first.counts_.levels, second.counts_.levels, strict=True):
        assert np.array_equal(mine.keys, theirs.keys) and np.array_equal(mine.counts, theirs.counts)
    asked = [*LINES[:5], ["a", "b", None, "c", "d"]]
    asked = [list(line) for line in asked]
    assert np.array_equal(first.score_samples(asked), second.score_samples(asked))


@every_way
def test_two_halves_add_to_the_whole_and_are_forgotten(way: str) -> None:
    whole, first = LEARNING[way]().fit(LINES), LEARNING[way]().fit(LINES[:30])
    again = LEARNING[way]().fit(LINES[:30])
    same(whole, LEARNING[way]().fit(LINES[:30]).partial_fit(LINES[30:]))
    if whole.order_ == first.order_:
        second = LEARNING[way]().fit(LINES[30:])
        if second.order_ == first.order_:
            same(whole, first.merge(second))
        same(again, first.partial_fit(LINES[30:]).forget(LINES[30:]))


@every_way
def test_weight_two_is_the_sequence_twice(way: str) -> None:
    twice = LEARNING[way]().fit([*LINES, *LINES[:20]])
    same(twice, LEARNING[way]().fit(LINES, sample_weight=[2.0] * 20 + [1.0] * 40))


@every_way
def test_a_saved_chain_says_the_same(way: str, tmp_path: Path) -> None:
    chain = LEARNING[way]().fit(LINES)
    chain.save(tmp_path / "chain.sc")
    back = sc.load(tmp_path / "chain.sc")
    same(chain, back)
    assert back.get_params() == chain.get_params() and back.sample(2, random_state=1) == chain.sample(2, random_state=1)


def test_order_0_is_the_categorical_family() -> None:
    chain = MarkovChain(0, 1.0).fit(LINES)
    column = np.array(list("".join(LINES)), dtype=object)[:, None]
    bayes = sc.NaiveBayes(kinds="categorical", prior=1.0).fit(column, np.zeros(len(column)))
    assert chain.transitions_[0] == pytest.approx(bayes.params_[0]["probability"][0], rel=1e-14)


def test_new_symbols_join_the_alphabet_in_order() -> None:
    chain = MarkovChain(1, 0.0).fit([["b", "d", "b"]])
    chain.partial_fit([["a", "b", "c"]])
    assert chain.symbols_ == ["a", "b", "c", "d"]
    assert chain.counts_.levels[1].counts.sum() == 4
    assert chain.transitions_[chain.symbols_.index("b")].tolist() == [0, 0, 0.5, 0.5]


def test_many_steps_are_counted_as_few_are() -> None:
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 4, length) for length in (1_200_000, 3, 900_000, 1)]
    large = MarkovChain(1, 0.0).fit(parts)
    table = np.zeros((4, 4))
    for part in parts:
        np.add.at(table, (part[:-1], part[1:]), 1)
    assert np.array_equal(large.counts_.levels[1].counts, table.ravel())
    assert np.array_equal(large.counts_.levels[0].counts, np.bincount(np.concatenate(parts)))
    heavy = MarkovChain(1, 0.0).fit(parts, sample_weight=[1, 2, 1, 2])
    again = MarkovChain(1, 0.0).fit([*parts, parts[1], parts[3]])
    assert np.array_equal(heavy.counts_.levels[1].counts, again.counts_.levels[1].counts)


# -- the order


def test_the_evidence_finds_the_order_that_made_the_text() -> None:
    for prior in ("kneser-ney", "auto", 0.5):
        chain = MarkovChain("auto", prior).fit([text(6000)])
        assert chain.order_ == 2 and max(chain.evidence_, key=chain.evidence_.get) == 2
    assert "order 2 has the most evidence" in chain.notes_[0]
    assert MarkovChain("auto").fit([list(np.random.default_rng(0).integers(0, 3, 3000))]).order_ == 0


def test_the_evidence_of_a_flat_prior_is_the_product_of_predictions_one_by_one() -> None:
    line = text(200)
    chain = MarkovChain("auto", 0.5).fit([line])
    for order in (0, 1, 2):
        seen: dict[str, dict[str, float]] = {}
        total = 0.0
        for place, symbol in enumerate(line):
            row = seen.setdefault(line[max(0, place - order) : place], {})
            total += np.log((row.get(symbol, 0) + 0.5) / (sum(row.values()) + 0.5 * 5))
            row[symbol] = row.get(symbol, 0) + 1
        assert chain.evidence_[order] == pytest.approx(total, rel=1e-10)


def test_contexts_are_as_long_as_they_need_be() -> None:
    # After an "a" one must know what came before it; after anything else nothing.
    rng = np.random.default_rng(2)
    found = ["b"]
    while len(found) < 8000:
        p = [0.4, 0.3, 0.3] if found[-1] != "a" else ([0.05, 0.9, 0.05] if found[-2:-1] == ["b"] else [0.05, 0.05, 0.9])
        found.append("abc"[int(rng.choice(3, p=p))])
    chain = MarkovChain("variable", 0.5).fit([found])
    assert chain.predictions_.order == 2
    contexts = {context for context in chain.contexts_ if context[1] != "a"}
    assert not contexts and {context[1] for context in chain.contexts_} == {"a"}
    assert chain.predict_proba([["b", "a"]])[0] == pytest.approx([0.05, 0.9, 0.05], abs=0.03)
    assert "contexts are distinguished" in chain.notes_[0]


# -- the long run


def test_the_long_run_of_two_states() -> None:
    chain = MarkovChain(1, 0.0).fit(["aaab" * 50 + "a"])
    stay = chain.transitions_[0, 0]
    assert chain.stationary()["a"] == pytest.approx(1 / (1 + (1 - stay)), rel=1e-12)
    assert chain.run_lengths() == pytest.approx({"a": 1 / (1 - stay), "b": 1.0})
    assert chain.hitting_times("b") == pytest.approx({"a": 1 / (1 - stay), "b": 0.0})
    assert chain.irreducible_ and chain.period_ == 1


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("ends", [False, True])
def test_the_long_run_is_what_long_samples_show(order: int, ends: bool) -> None:
    chain = MarkovChain(order, 0.2, ends).fit([text(15, seed) for seed in range(80)])
    drawn = chain.sample(3_000, random_state=0) if ends else chain.sample(length=40_000, random_state=0)
    joined = "".join(line + "." for line in drawn) if ends else drawn[0]
    shares = chain.stationary()
    assert sum(shares.values()) == pytest.approx(1.0)
    for symbol, share in shares.items():
        assert joined.count("." if symbol == "(end)" else symbol) / len(joined) == pytest.approx(share, abs=0.02)
    if ends:
        begin = "(begin)" if order == 1 else ("(begin)",)
        assert chain.hitting_times("(end)")[begin] == pytest.approx(len(joined) / len(drawn), rel=0.05)
    runs = {symbol: [len(run) for run in runs_of(joined, symbol)] for symbol in "abcde"}
    for symbol, expected in chain.run_lengths().items():
        assert np.mean(runs[symbol]) == pytest.approx(expected, rel=0.1)


def runs_of(found: str, symbol: str) -> list[str]:
    return [run for run in "".join(x if x == symbol else " " for x in found).split(" ") if run]


def test_chains_that_do_not_get_everywhere_or_keep_step_are_said() -> None:
    assert MarkovChain(1, 0.0).fit(["abcabcabca"]).period_ == 3
    trapped = MarkovChain(1, 0.0).fit(["aabbb"])
    assert not trapped.irreducible_ and "not irreducible: its states fall into 2 classes" in trapped.notes_[-1]
    assert trapped.stationary() == pytest.approx({"a": 0.0, "b": 1.0})
    assert trapped.hitting_times("a")["b"] == np.inf
    with pytest.raises(DataError, match="2 sets of states"):
        stationary(np.eye(2))
    assert shape_of(np.array([[0, 1, 0], [0, 0, 1], [1, 1, 0]], bool)).period == 1
    assert (
        hitting_times(np.array([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1.0]]), np.array([False, True, False]))[0]
        == np.inf
    )


def test_samples_begin_as_asked_and_end_where_ends_are_states() -> None:
    names = ["anna", "hannah", "ava", "eva"]
    chain = MarkovChain(2, ends=True).fit(names)
    drawn = chain.sample(200, start="an", random_state=3)
    assert len(drawn) == 200 and all(name.startswith("an") for name in drawn)
    assert chain.sample(5, random_state=3) == chain.sample(5, random_state=3)
    words = MarkovChain(1, 0.1).fit([["to", "be"], ["or", "not", "to", "be"]])
    (drawn,) = words.sample(length=30, random_state=0)
    assert len(drawn) == 30 and len(chain.sample(20, length=3, random_state=0)) == 20
    assert max(map(len, chain.sample(20, length=3, random_state=0))) <= 3


def test_each_step_is_explained() -> None:
    chain = MarkovChain(1, 0.5).fit(LINES)
    table = chain.explain(["abc"]).to_dict("list")
    assert table["symbol"] == ["a", "b", "c"] and table["after"] == ["", "a", "b"] and table["step"] == [1, 2, 3]
    assert sum(table["bits"]) == pytest.approx(-chain.score_samples(["abc"])[0] / np.log(2))
    assert table["likeliest"][1] == chain.predict(["a"])[0]


# -- bad input


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a symbol never seen": (
        lambda: MarkovChain().fit(["abab"]).score_samples(["aab", "abz"]),
        "sequence 2, step 3: 'z' did not occur",
    ),
    "a symbol that is none": (
        lambda: MarkovChain(symbols=["a", "b"]).fit(["ab", "abq"]),
        "sequence 2, step 3: 'q' is not one of the `symbols`",
    ),
    "an order longer than all": (lambda: MarkovChain(4).fit(["ab", "abc"]), "order=4.*sequence 2, the longest, has 3"),
    "an order beyond digits": (lambda: MarkovChain(40).fit([text(100)]), "order=40 is too long for 5 symbols"),
    "an empty sequence": (lambda: MarkovChain().fit(["ab", ""]), "sequence 2 is empty"),
    "several columns": (lambda: MarkovChain().fit([[(1, 2), (1, 3)]]), "a step has 2"),
    "nothing known": (lambda: MarkovChain().fit([[None, None]]), "every step is missing"),
    "a negative prior": (lambda: MarkovChain(prior=-1).fit(["ab"]), "prior"),
    "an unknown prior": (lambda: MarkovChain(prior="witten").fit(["ab"]), "'witten' is not known"),
    "half an order": (lambda: MarkovChain(1.5).fit(["ab"]), "order"),
    "forgetting what was never there": (lambda: MarkovChain(1, 0.0).fit(["abab"]).forget(["bbbb"]), "never counted"),
    "forgetting everything": (lambda: MarkovChain().fit(["abab"]).forget(["abab"]), "would remove all counts"),
    "chains of two orders": (
        lambda: MarkovChain(1).fit(["abab"]).merge(MarkovChain(2).fit(["abab"])),
        "differ in order",
    ),
    "a start that is no symbol": (lambda: MarkovChain().fit(["abab"]).sample(start="ax"), "start, step 2: 'x'"),
    "a symbol to hit that is none": (lambda: MarkovChain().fit(["abab"]).hitting_times("z"), "'z' is not a symbol"),
    "too many states": (lambda: MarkovChain(8, 1.0).fit([text(300)]).stationary(), "too many to compute"),
    "a prior of another length": (
        lambda: MarkovChain(prior=sc.priors.Dirichlet([1.0, 2.0, 3.0])).fit(["abab"]),
        "has 3 numbers, but 2 things",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_named(case: str) -> None:
    call, said = BAD[case]
    with pytest.raises(DataError, match=said):
        call()


def test_a_spoilt_file_is_refused(tmp_path: Path) -> None:
    from softcount.files.archive import read, write

    path = tmp_path / "chain.sc"
    MarkovChain(1, ends=True).fit(LINES).save(path)
    document, arrays = read(path)
    (keys0, counts0), (keys1, counts1) = (
        [level[part]["array"] for part in ("keys", "counts")] for level in document["chain"]["levels"]
    )
    spoilt: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {keys1: arrays[keys1][::-1].copy()}),
        ({}, {counts1: -arrays[counts1]}),
        ({}, {counts0: arrays[counts0][:-1]}),
        ({}, {keys0: arrays[keys0] * 100}),
        ({"levels": document["chain"]["levels"][:1]}, {}),
        ({"notes": [1]}, {}),
        ({"symbols": ["a", "a"]}, {}),
        ({"order": 7}, {}),
        ({"settings": {**document["estimator"]["settings"], "order": "longest"}}, {}),
    ]
    for said, changed in spoilt:
        part = "estimator" if "settings" in said else "chain"
        write(path, {**document, part: {**document[part], **said}}, {**arrays, **changed})
        with pytest.raises(ModelFileError, match=r"chain\.sc"):
            sc.load(path)


def test_an_empty_sequence_is_one_that_ends_at_once() -> None:
    chain = MarkovChain(1, 0.0, ends=True).fit([["a"], [], ["a", "a"]])
    assert chain.predict_proba([[]])[0] == pytest.approx([2 / 3, 1 / 3])
    assert chain.score_samples([[], ["a"]]) == pytest.approx([np.log(1 / 3), np.log(2 / 3 * 2 / 3)])


def test_blocks_of_steps_are_the_whole() -> None:
    chain = MarkovChain(2).fit(LINES)
    codes = np.concatenate([[chain.symbols_.index(x) + 1 for x in line] for line in LINES])
    starts = np.concatenate([[0], np.cumsum([len(line) for line in LINES])])
    blocks = StepBlocks.of(codes, starts, chain.counts_.alphabet, 2, None)
    for back, level in enumerate(chain.counts_.levels):
        own, before = blocks.levels(back)
        assert np.array_equal(before[-1].plus(own[-1]).counts, level.counts)
