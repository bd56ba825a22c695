"""Ways to learn from words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from softcount.classify.conditional_fit import Abreast, Conditional, folded
from softcount.classify.encoded_rows import EncodedRows
from softcount.classify.indicators import SparseFeatures
from softcount.classify.learning_features import Features
from softcount.classify.members import Member
from softcount.classify.recipes import RECIPES, OneByOne, Recipe
from softcount.classify.training import Training
from softcount.classify.word_lines import WordLines
from softcount.classify.word_scale import WordScale
from softcount.records import dataclass

MOST_COEFFICIENTS = 1 << 20
"""Words times classes that get a coefficient by conditional likelihood, those of most documents first."""
MOST_WORK = 1 << 27
"""Words of all documents times classes that these are learned from; of more documents some, evenly spread."""


@dataclass(frozen=True, slots=True)
class WordCounts(OneByOne):
    """Naive Bayes as the textbook has it: every word of a document is drawn anew."""

    name: ClassVar[str] = "naive Bayes of words"
    ordered: ClassVar[bool] = False
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0, 0.1)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        return _counted(training, training.rarity.plain, settings)


@dataclass(frozen=True, slots=True)
class RareWords(OneByOne):
    """The same of words that weigh by how rare they are, in documents that are all of one length."""

    name: ClassVar[str] = "naive Bayes of words by rarity"
    ordered: ClassVar[bool] = False
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (0.3, 0.1, 0.03, 0.01)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        return _counted(training, training.rarity, settings)


def _counted(training: Training, scale: WordScale, priors: tuple[float, ...]) -> Iterator[WordLines]:
    """What words weigh in the classes, added up, so much more being imagined of every word that is known."""
    totals = scale.of_each(scale.by_class(training.rows, training.labels, training.weights, training.classes))
    known = [factors > 0 for factors in scale.factors]
    for prior in priors:
        logs = [_log_shares(own, of, prior) for own, of in zip(totals, known, strict=True)]
        lengths = np.zeros((len(totals), training.classes))
        yield WordLines(scale, folded(np.vstack([training.shares, *logs, lengths])))


def _log_shares(totals: np.ndarray, known: np.ndarray, prior: float) -> np.ndarray:
    """Logarithms of each word's share in every class, those of all classes adding up to nothing."""
    found = np.zeros(totals.shape)
    shares = totals[known] + prior
    logs = np.log(shares) - np.log(shares.sum(axis=0))
    found[known] = logs - logs.mean(axis=1, keepdims=True)
    return found


@dataclass(frozen=True, slots=True)
class WeightedWords(OneByOne):
    """Coefficients of words and of lengths by conditional likelihood, words weighing by how rare they are."""

    name: ClassVar[str] = "weighted words"
    ordered: ClassVar[bool] = True
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0, 0.3, 0.1, 0.03)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        scale, kept = training.rarity, _most_frequent(training)
        places = _some(training)
        some = training.take(places)
        # The first of the features stands for nothing known.
        words = SparseFeatures(scale.words(some.rows)[:, np.concatenate([[0], kept])])
        features = Features(words, scale.own_lengths(training.rows, training.weights)[places], together=1)
        problem = Abreast((Conditional(features, some.labels, some.weights, training.classes),))
        for (found,) in problem.path([np.full(features.width, penalty)] for penalty in settings):
            whole = np.zeros((1 + scale.width + len(scale.factors), found.shape[1]))
            whole[0], whole[1 + scale.width :] = found[0], found[2 + len(kept) :]
            whole[1 + kept] = found[2 : 2 + len(kept)]
            yield WordLines(scale, whole)


def _some(training: Training) -> np.ndarray:
    """Places of the rows that are learned from."""
    rows = len(training.labels)
    most = int(rows * MOST_WORK / max(MOST_WORK, training.rows.cells * training.classes))
    return np.unique(np.linspace(0, rows - 1, max(1, most)).astype(np.int64))


def _most_frequent(training: Training) -> np.ndarray:
    """Places of the words that get a coefficient among the columns of all bags: rare ones are left out of very many."""
    factors = np.concatenate(training.rarity.factors)
    known = np.flatnonzero(factors > 0)
    most = MOST_COEFFICIENTS // (1 if training.classes == 2 else training.classes)
    return np.sort(known[np.argsort(factors[known], kind="stable")[:most]])


WORD_RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (WordCounts(), RareWords(), WeightedWords())}
"""All ways to learn from words, the simplest first."""
ALL_RECIPES: dict[str, Recipe] = WORD_RECIPES | RECIPES


def recipes_for(rows: EncodedRows) -> list[Recipe]:
    """The ways that have something to learn from: words where there are texts, columns where there are others."""
    words = list(WORD_RECIPES.values()) if rows.bags else []
    return words if words and not rows.plain_columns else [*words, *RECIPES.values()]
