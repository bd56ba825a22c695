"""20 Newsgroups: the published accuracy, and what unlabelled messages add to a few labelled ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from cli.shell import softcount_command
from softcount.sources.source import Wanted

WORDS = sc.families.Text(min_count=3, drop_top=100)


@pytest.fixture(scope="module")
def archive(data: Callable[[str], Path]) -> Path:
    return data("newsgroups20_19997/20_newsgroups.tar.gz")


@pytest.fixture(scope="module")
def messages(archive: Path) -> tuple[np.ndarray, np.ndarray]:
    """The 19,997 messages, headers in, and their groups."""
    wanted = {"text": Wanted(numeric=False, text=True), "class": Wanted(numeric=False)}
    parts = [piece.load() for piece in sc.read(archive).source.pieces(wanted)]
    text, groups = ([cell for part in parts for cell in part[key].to_pylist()] for key in ("text", "class"))
    return np.array(text, dtype=object), np.array(groups, dtype=object)


def test_one_command_reaches_the_published_accuracy(archive: Path, tmp_path: Path) -> None:
    """89 % is Mitchell's figure for two thirds of the messages and these words; 0.4 is a standard error."""
    how = ["--min-count", "3", "--drop-top", "100", "--holdout", "0.3333", "--json", "-o", str(tmp_path / "news.sc")]
    told = softcount_command("fit", str(archive), *how, "--seed", "1")
    assert told.returncode == 0
    assert json.loads(told.stdout)["evaluation"]["accuracy"] >= 0.88


def test_unlabelled_messages_add_eight_points_to_three_hundred_labelled_ones(
    messages: tuple[np.ndarray, np.ndarray],
) -> None:
    text, groups = messages
    gains = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(text))
        labelled, both, test = order[:300], order[:10_300], order[10_300:]
        known = groups[both].copy()
        known[300:] = None
        alone = sc.NaiveBayes(kinds=WORDS).fit(text[labelled], groups[labelled])
        helped = sc.NaiveBayes(kinds=WORDS).fit(text[both], known)
        assert list(helped.levels_["text"]) == list(alone.levels_["text"])
        gains.append(helped.score(text[test], groups[test]) - alone.score(text[test], groups[test]))
    assert np.mean(gains) >= 0.08
