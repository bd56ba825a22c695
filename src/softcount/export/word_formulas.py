"""Words of a classifier as formulas: sums over those of a document, by what it is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.classify.conditional_fit import spread
from softcount.classify.word_lines import WordLines
from softcount.export.formulas import Apply, Choose, Formula, LookUp, Missing, WordsCode, formula, largest, log
from softcount.table.schema import Key

SHORTEST = 0.25
"""The square of a document's length, below any that has a word: what weighs least is log(2) squared, or .48."""


def word_terms(texts: Sequence[Key], member: WordLines, weight: float) -> list[Formula]:
    """What texts add to the scores of all classes, and what no text does."""
    scale = member.scale
    found: list[Formula] = [formula(weight * spread(member.coefficients[:1])[0])]
    each = scale.of_each(spread(member.coefficients)[1 : 1 + scale.width])
    for place, key in enumerate(texts):
        factors, coefficients = scale.factors[place][1:, None], weight * each[place][1:]
        if scale.counts:
            found.append(LookUp(WordsCode(key, "times"), coefficients * factors))
            continue
        words = LookUp(WordsCode(key, "log"), coefficients * factors)
        squares = largest([LookUp(WordsCode(key, "square"), factors**2), formula(SHORTEST)])
        found.append(words * Apply("exp", (log(squares / SHORTEST) * -0.5,)) * SHORTEST**-0.5)
        found += _length(key, member, place, weight)
    return found


def _length(key: Key, member: WordLines, place: int, weight: float) -> list[Formula]:
    """What the length of a text adds, if anything."""
    scale, slopes = member.scale, weight * spread(member.lengths)[place]
    if not slopes.any():
        return []
    words = LookUp(WordsCode(key, "times"), (scale.factors[place][1:, None] > 0).astype(np.float64))
    line = (log(words + 1.0) - float(scale.middle[place])) / float(scale.spread[place]) * slopes
    return [Choose((Missing(key),), formula(0.0), line)]
