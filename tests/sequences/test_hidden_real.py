"""Hidden states in real sequences: vowels that nobody marked, and the eruptions of Old Faithful beside hmmlearn."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv as csv
import pytest

import softcount as sc

Find = Callable[[str], Path]


@pytest.mark.parametrize(
    ("name", "kept", "vowels"),
    [("onegin_ru.txt", "а-яё", "аеиоуыьэюяё"), ("tinyshakespeare.txt", "a-z ", "aeiou ")],  # noqa: RUF001
)
def test_two_states_of_letters_are_vowels_and_consonants(data: Find, name: str, kept: str, vowels: str) -> None:
    """As Markov marked them by hand in 1913; the soft sign, and the space of English, stand where vowels do."""
    text = data(f"text_markov/{name}").read_text(encoding="utf-8").lower().replace("\n", " ")
    steps = list(re.sub(f"[^{kept}]", "", text)[:6000])
    model = sc.HiddenMarkov(2, random_state=0, n_init=4, tol=1e-6).fit([steps])
    shown = model.params_[0]["probability"]
    state = int(shown[:, model.levels_[0].index(vowels[0])].argmax())
    found = {letter for letter, own in zip(model.levels_[0], shown.T, strict=True) if own.argmax() == state}
    wrong = (found ^ set(vowels)) & set(steps)
    assert sum(steps.count(letter) for letter in wrong) < 0.03 * len(steps), wrong
    assert model.transitions_[state, state] < 0.4  # vowels hardly ever follow vowels


@pytest.mark.parametrize(("states", "best"), [(2, -1113.5421487865), (3, -1071.5183666376)])
def test_old_faithful_comes_to_the_best_that_hmmlearn_finds(data: Find, states: int, best: float) -> None:
    """GaussianHMM(diag) of hmmlearn 0.3.3, the best of ten starts, without its priors, tol 1e-6."""
    table = csv.read_csv(data("r_datasets/faithful.csv"))
    steps = np.column_stack([table["eruptions"].to_numpy(), table["waiting"].to_numpy()])
    kinds = {0: "normal", 1: "normal"}
    model = sc.HiddenMarkov(states, kinds=kinds, estimate="ml", random_state=0).fit([steps])
    assert model.log_likelihood_ >= best - 1e-6
    assert model.log_likelihood_ == pytest.approx(best, abs=1e-4)
    assert model.agreed_[0] >= 2 and model.converged_
