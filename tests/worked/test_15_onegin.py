"""Worked example 15: Markov, 1913, the first 20,000 letters of Eugene Onegin as vowels and consonants.

Markov counted 8,638 vowels in the text of his time, after a vowel 0.128 and after a consonant 0.663 of them. The text
here is a modern one: with short i a vowel and both signs dropped it has 8,647.
"""

from __future__ import annotations

import numpy as np
import pytest

from softcount import MarkovChain

VOWELS = set("аеёиоуыэюяй")
SIGNS = set("ъь")
MARKOVS = {"vowels": 8638, "V after V": 0.128, "V after C": 0.663}
"""What he found; and 1,104 vowels after a vowel."""


@pytest.fixture(scope="module")
def letters(data):
    text = data("text_markov/onegin_ru.txt").read_text("utf-8").lower()
    cyrillic = [letter for letter in text if ("\u0430" <= letter <= "я" or letter == "ё") and letter not in SIGNS]
    return ["V" if letter in VOWELS else "C" for letter in cyrillic[:20_000]]


@pytest.fixture(scope="module")
def chain(letters):
    return MarkovChain(order=1, prior=0).fit([letters])


def test_vowels_and_what_follows_them(chain, letters):
    assert letters.count("V") == 8647 and abs(letters.count("V") - MARKOVS["vowels"]) < 10
    after = dict(zip(chain.contexts_, chain.transitions_.tolist(), strict=True))
    vowel = chain.next_symbols_.index("V")
    assert after["V"][vowel] == pytest.approx(0.132, abs=5e-4)
    assert after["C"][vowel] == pytest.approx(0.661, abs=5e-4)
    assert after["V"][vowel] == pytest.approx(MARKOVS["V after V"], abs=0.005)
    assert after["C"][vowel] == pytest.approx(MARKOVS["V after C"], abs=0.005)


def test_the_long_run_is_the_share_that_was_counted(chain, letters):
    share = letters.count("V") / len(letters)
    assert chain.stationary()["V"] == pytest.approx(share, abs=1e-4)
    assert chain.irreducible_ and chain.period_ == 1
    runs = chain.run_lengths()
    assert runs["V"] == pytest.approx(1 / (1 - 0.132), rel=2e-3) and runs["C"] == pytest.approx(1 / 0.661, rel=2e-3)
    assert chain.hitting_times("V")["C"] == pytest.approx(runs["C"], rel=1e-12)


def test_letters_depend_on_the_one_before(letters):
    """Markov's point: the letters are no independent draws, and two letters say more than one."""
    auto = MarkovChain(order="auto", prior="auto").fit([letters])
    assert auto.order_ >= 2 and auto.evidence_[1] - auto.evidence_[0] > 2000
    plain, pairs = (MarkovChain(order, prior=0).fit([letters]) for order in (0, 1))
    assert plain.perplexity([letters]) > 1.97 and pairs.perplexity([letters]) < 1.75
    assert np.exp(-auto.score([letters]) / len(letters)) < pairs.perplexity([letters])


def test_three_in_a_row_as_markov_counted_them(letters):
    """He counted 115 runs of three vowels and 505 of three consonants."""
    counts = MarkovChain(order=2, prior=0).fit([letters]).counts_.levels[2].counts
    assert counts[-1] == pytest.approx(115, rel=0.25) and counts[0] == pytest.approx(505, rel=0.25)
