"""Text: documents as bags of words, each word's chance in every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from scipy.special import xlogy

from softcount.errors import DataError
from softcount.families.base import Family, How, Hyper, Line, Params, Setting, register
from softcount.families.multinomial import log_ways, polya
from softcount.families.word_models import MODELS, Drawn, There
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Kind
from softcount.text import Reading

MARKING = 5
"""Words that say what a group is about."""
NOISE = 1e-14
"""What rounding leaves of the evidence of a word that is equally likely everywhere."""


@register
@dataclass(frozen=True, slots=True)
class Text(Family):
    """Words of a document: drawn one by one (`multinomial`), each there or not (`bernoulli`), or `complement`.

    The last tells a class by what the others hold, and is for known classes only; where it is all there is, classes
    are equally likely before unless `class_prior` says otherwise. The other settings say how
    documents are read, as `Reading` does; its limits (`min_count`, `min_df`, `max_df`, `drop_top`, `max_words`) count
    documents and words, whatever rows weigh. A column is a sparse matrix: 1 for a document that is there, then how
    often it holds each word. Statistics are the number of documents and that of each word; for `bernoulli`, of the
    documents that hold it.
    """

    model: Literal["multinomial", "bernoulli", "complement"] = "multinomial"
    analyzer: Any = "word"
    ngrams: tuple[int, int] = (1, 1)
    pattern: str | None = None
    lowercase: bool = True
    stop_words: str | tuple[str, ...] = ()
    min_count: int = 1
    min_df: int | float = 1
    max_df: int | float = 1.0
    drop_top: int = 0
    max_words: int | None = 1_000_000

    name = "text"
    kind = Kind.TEXT

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise DataError(f"text model {self.model!r} is not known. Use 'multinomial', 'bernoulli' or 'complement'.")
        reading = self.reading  # which refuses what it cannot mean, and has the rest in order
        for part in fields(reading):
            object.__setattr__(self, part.name, getattr(reading, part.name))

    @property
    def reading(self) -> Reading:
        """How its documents become words."""
        return Reading(**{part.name: getattr(self, part.name) for part in fields(Reading)})

    @classmethod
    def of(cls, reading: Reading) -> Text:
        """Multinomial text read this way."""
        return cls(**{part.name: getattr(reading, part.name) for part in fields(Reading)})

    @property
    def way(self) -> Drawn:
        """The way its words are modelled."""
        return MODELS[self.model]

    @property
    def by_document(self) -> bool:
        """Whether it counts which documents hold a word, not how often they do."""
        return self.model == "bernoulli"

    @property
    def chart(self) -> Mapping[str, Line]:  # type: ignore[override]
        return {"probability": self.way.line}

    @property
    def alone(self) -> bool:
        return True

    def width(self, setting: Setting) -> int:
        return 1 + len(setting.levels)

    def features(self, column: Any, setting: Setting) -> Any:
        if not self.by_document:
            return column
        there = column.copy()
        there.data = (there.data > 0).astype(np.float64)
        return there

    def base(self, column: Any) -> np.ndarray | float:
        """The ways to order a document's words; none where it only counts which are there."""
        if self.model != "multinomial":
            return 0.0
        return log_ways(column, first=1)

    def sizes(self, column: Any) -> np.ndarray:
        """How many words each document has, or for `bernoulli` whether it is there: what `entropy` is of."""
        whole = np.zeros(column.shape[1])
        whole[0 if self.by_document else slice(1, None)] = 1.0
        return np.asarray(column @ whole)

    def observed(self, stats: np.ndarray) -> float | None:
        return float(stats[..., 0].sum())

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return self.way.hyper(prior, self, setting, stats.shape[-1] - 1)

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        return self.way.estimate(stats, hyper, how)

    def seen(self, stats: Twofold) -> np.ndarray:
        """Which words any group holds."""
        return stats.value[:, 1:].sum(axis=0) > 0

    def estimate_seen(self, stats: Twofold, hyper: Hyper, how: How, seen: np.ndarray) -> Params:
        """What a fit that knew only the seen words would give; the others get nothing, and are not to be scored."""
        places = np.flatnonzero(seen)
        known = stats[:, np.concatenate([[0], places + 1])]
        part = self.estimate(known, {name: value[..., places] for name, value in hyper.items()}, how)
        for name, value in part.items():
            if value.ndim == 2:
                # What is never scored only has to have a logarithm, and to add nothing to the sums of `alpha`.
                whole = np.full((len(seen), len(value)), {"others": 1.0, "alpha": 1e-300}.get(name, 0.0)).T
                whole[:, places] = value
                part[name] = whole
        return part

    def held(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params) -> Params:
        return self.way.estimate(stats, hyper, "mean" if how == "predictive" else how) | fixed

    def natural(self, params: Params) -> np.ndarray:
        return self.way.natural(params)

    def score(self, column: Any, params: Params, setting: Setting) -> np.ndarray:
        features = self.features(column, setting)
        if "alpha" in params:
            return polya(features[:, 1:], params["alpha"])
        out = np.asarray(features @ self.natural(params).T)
        lacking = self.lacking(params)
        if lacking is not None:
            out[np.asarray(features @ lacking.T) > 0] = -np.inf
        return out

    def lacking(self, params: Params) -> np.ndarray | None:
        """Weights that count the words a document should hold for certain and does not; None where none is certain."""
        return self.way.lacking(params) if isinstance(self.way, There) else None

    def completed(self, stats: Twofold, params: Params) -> float:
        return self.way.completed(stats, params)

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        return self.way.slope(stats, params, hyper, how)

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> float:
        return self.way.log_prior(params, hyper, how)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        return self.way.evidence(stats, hyper)

    def proper(self, hyper: Hyper) -> Hyper:
        return self.way.proper(hyper)

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        return self.way.posterior(stats, hyper)

    def free(self, setting: Setting, groups: int) -> int:
        return groups * self.way.free(len(setting.levels))

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> Any:
        """Documents as a sparse column; each as long as its group's usually are, by chance longer or shorter."""
        from scipy import sparse

        of, words = self.way.words(params, np.asarray(groups), rng)
        rows = np.concatenate([np.arange(len(groups)), of])
        places = np.concatenate([np.zeros(len(groups), dtype=np.int64), words + 1])
        shape = (len(groups), params["probability"].shape[1] + 1)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, places)), shape=shape)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        """The words that most set each group apart from all of them."""
        return [spoken(setting.levels, row) for row in marking(params["probability"])]

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        return self.way.divergence(params, shares)

    def entropy(self, params: Params) -> np.ndarray:
        """Of one word, or for `bernoulli` of a whole document."""
        return self.way.entropy(params)

    def check_params(self, params: Params) -> str | None:
        length = params.get("length", np.zeros(1))
        if not (np.isfinite(length) & (length >= 0)).all():
            return "its documents have no sensible length"
        return self.way.wrong(params)


def evidence(here: np.ndarray, there: np.ndarray, sizes: tuple[float, float]) -> np.ndarray:
    """Nats by which two rates, one here and one there, explain how often words occur better than one rate does.

    `sizes` are all words here and there (or all documents). Half of Dunning's G2: a name that one document repeats has
    little of it and a word used everywhere next to none.
    """
    apart = sum(_likelihood(part, size) for part, size in zip((here, there), sizes, strict=True))
    return np.maximum(apart - _likelihood(here + there, sum(sizes)), 0.0)


def _likelihood(count: np.ndarray, size: float) -> np.ndarray:
    """Log-likelihood, at its best rate, of a word met so often among so many."""
    rest = np.maximum(size - count, 0.0)
    return xlogy(count, count) + xlogy(rest, rest) - xlogy(size, size)


def marking(probability: np.ndarray) -> np.ndarray:
    """(groups x words) how well each word marks each group: its evidence, were all groups of one size.

    0 where a word is no likelier than in the others together; a single group has its words by their probability.
    """
    others = len(probability) - 1
    if others <= 0:
        return probability
    rest = np.maximum(probability.sum(axis=0) - probability, 0.0)
    scores = np.stack([evidence(*pair, (1.0, float(others))) for pair in zip(probability, rest, strict=True)])
    return np.where(probability * others > rest, scores, 0.0)


def spoken(words: Sequence[object], scores: np.ndarray, least: float = NOISE) -> str:
    """The words with the largest scores above the least, largest first; equal ones in the order of the words."""
    most = min(MARKING, len(scores))
    if not most:
        return "no words"
    top = np.argpartition(-scores, most - 1)[:most]
    top = top[np.lexsort((top, -scores[top]))]
    return ", ".join(str(words[int(i)]) for i in top if scores[i] > least) or "nothing that sets it apart"
