"""Chains on real text: names, and what is known of them from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from sequences import chain_oracle as oracle
from softcount import MarkovChain


@pytest.fixture(scope="module")
def names(data: Callable[[str], Path]) -> list[str]:
    return data("text_markov/names.txt").read_text().split()


def test_pairs_of_letters_in_names_are_as_likely_as_makemore_has_them(names: list[str]) -> None:
    """Its lecture counts pairs with a dot at both ends: a mean negative log-likelihood of 2.4540."""
    chain = MarkovChain(1, prior=0, ends=True).fit(names)
    assert np.log(chain.perplexity(names)) == pytest.approx(2.4540, abs=1e-4)
    assert len(chain.next_symbols_) == 27


def test_held_out_names_beside_an_exact_count(names: list[str]) -> None:
    held, rest = names[::10], [name for at, name in enumerate(names) if at % 10]
    chain = MarkovChain(2, prior=0.1, ends=True).fit(rest)
    levels = oracle.counted(rest, 2, True)
    after = [*chain.symbols_, oracle.END]
    total = steps = 0.0
    for name in held[:300]:
        written = [oracle.BEGIN, *name, oracle.END]
        for place in range(1, len(written)):
            context = tuple(written[max(0, place - 2) : place])
            total += np.log(oracle.flat_after(levels, 0.1, after, 27, context)[written[place]])
            steps += 1
    assert chain.perplexity(held[:300]) == pytest.approx(np.exp(-total / steps), rel=1e-10)


def test_the_order_with_the_most_evidence_predicts_held_out_names_best(names: list[str], tmp_path: Path) -> None:
    held, rest = names[::10], [name for at, name in enumerate(names) if at % 10]
    auto = MarkovChain("auto", ends=True).fit(rest)
    assert auto.order_ == 5
    others = [MarkovChain(order, ends=True).fit(rest).perplexity(held) for order in (1, 3)]
    assert auto.perplexity(held) < 7.3 < others[1] < others[0]
    known = set(names)
    drawn = auto.sample(300, random_state=0)
    assert 0.2 < sum(name in known for name in drawn) / 300 < 0.8
    assert all(3 <= np.mean([len(name) for name in part]) <= 9 for part in (drawn[:100], drawn[100:]))


def test_lines_of_a_file_are_names(data: Callable[[str], Path], names: list[str]) -> None:
    found = sc.read_sequences(data("text_markov/names.txt"), steps="characters")
    assert len(found) == len(names) and found.n_steps == sum(map(len, names))
    from_file, from_list = (MarkovChain(1, ends=True).fit(given) for given in (found, names))
    assert np.array_equal(from_file.transitions_, from_list.transitions_)
