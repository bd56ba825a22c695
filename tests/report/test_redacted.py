"""Redacted reports of every kind of model, searched: no cell, and no level, word or symbol of fewer than five rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc

SECRET = ("zyxsecret", "qwvhidden")
"""Levels, words and symbols that four rows have, one of them two."""


def rows(n: int = 240) -> dict[str, list[Any]]:
    """A table of two clear groups, in which a level and a class are rare, and three rows lie far from all others."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    level = np.array(["cat", "dog"])[(group + (rng.random(n) < 0.2)) % 2].astype(object)
    level[:3], level[3:5] = SECRET
    size = rng.normal(70 + 20 * group, 3).round(5)
    size[10:13] = [7131.31371, 7131.31372, 7131.31373]
    long = rng.normal(5 + 3 * group, 1).round(5)
    word = [f"{'win cash' if g else 'see lunch'} {'now' * int(rng.integers(2))}" for g in group]
    word[7] += f" {SECRET[0]} {SECRET[1]}"
    label = np.where(group, "yes", "no").astype(object)
    label[20:23] = SECRET[1]
    found: dict[str, Any] = {"animal": level, "size": size, "long": long, "text": np.array(word), "kept": label}
    return {name: cells.tolist() for name, cells in found.items()}


TABLE = rows()
NUMBERS = np.column_stack([TABLE["size"], TABLE["long"]])
SEQUENCES = [list(TABLE["animal"][at : at + 30]) for at in range(0, 240, 30)]
KINDS = {"size": "normal", "long": "normal", "text": "ignore"}
PLAIN = {name: cells for name, cells in TABLE.items() if name not in ("text", "kept")}
STEPS = [pd.DataFrame(PLAIN)[at : at + 30] for at in range(0, 240, 30)]

MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": lambda: sc.NaiveBayes(kinds=KINDS).fit(TABLE, "kept").report(TABLE, redact=True),
    "classifier": lambda: sc.Classifier(kinds=KINDS).fit(TABLE, "kept").report(TABLE, redact=True),
    "mixture": lambda: sc.Mixture(4, n_init=2, random_state=0).fit(PLAIN).report(PLAIN, redact=True),
    "Gaussian mixture": lambda: sc.GaussianMixture(4, n_init=2, random_state=0).fit(NUMBERS)
    .report(NUMBERS, redact=True),
    "k-means": lambda: sc.KMeans(4, n_init=2, random_state=0).fit(NUMBERS).report(NUMBERS, redact=True),
    "text": lambda: sc.NaiveBayes(kinds={"text": "text"}).fit({"text": TABLE["text"]}, TABLE["kept"])
    .report({"text": TABLE["text"]}, TABLE["kept"], redact=True),
    "network": lambda: sc.BayesNet([("kept", "animal"), ("animal", "size")], kinds=KINDS).fit(TABLE)
    .report(TABLE, redact=True),
    "chain": lambda: sc.MarkovChain().fit(SEQUENCES).report(redact=True),
    "longer chain": lambda: sc.MarkovChain(order=2, ends=True).fit(SEQUENCES).report(redact=True),
    "hidden states": lambda: sc.HiddenMarkov(2, n_init=1, random_state=0).fit(STEPS).report(redact=True),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_a_redacted_report_has_nothing_of_few_rows(kind: str) -> None:
    report = MODELS[kind]()
    cells = [f"{x:g}" for x in NUMBERS.ravel()] + [f"{x:.5f}" for x in NUMBERS.ravel()]
    for written in (report.html, report.render(".json"), str(report)):
        for secret in (*SECRET, "7131", "7,131", "7130", "7,130"):
            assert secret not in written, secret
        assert not [cell for cell in cells if len(cell) > 5 and cell in written]
        assert kind in ("Gaussian mixture", "k-means") or any(common in written for common in ("dog", "cash"))
