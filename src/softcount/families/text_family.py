"""Text: documents as bags of words, each word's chance in every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from softcount.errors import DataError, ModelFileError
from softcount.families.answering import Columns, Rng
from softcount.families.base import Family, register
from softcount.families.derived import sums_to_one
from softcount.families.examples import Cells, example
from softcount.families.multinomial import log_ways, polya
from softcount.families.setting import ClosedForm, How, Hyper, Line, Params, Setting
from softcount.families.word_models import MODELS, MultinomialWords
from softcount.numerics.late_scipy import gammaln, logit, xlogy
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.table.schema import Field, Key, Kind
from softcount.text import Reading, Words

MANY_WORDS = 1_000
"""Words from which on it is said that a prior drowns the labelled documents."""
LONGEST = 1e7
"""Words of a class's usual document, in a model file: more than any book has."""
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
    stack = "bag"
    rows_first = True

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise DataError(f"text model {self.model!r} is not known. Use 'multinomial', 'bernoulli' or 'complement'.")
        reading = self.reading  # which refuses what it cannot mean, and has the rest in order
        reading.refuse_steps()
        for part in fields(reading):
            object.__setattr__(self, part.name, getattr(reading, part.name))

    @property
    def reading(self) -> Reading:
        """How its documents become words."""
        return Reading(**{part.name: getattr(self, part.name) for part in fields(Reading)})

    @property
    def reads(self) -> Kind | Reading:
        return self.reading

    @classmethod
    def of(cls, reading: Reading) -> Text:
        """Multinomial text read this way."""
        return cls(**{part.name: getattr(reading, part.name) for part in fields(Reading)})

    @classmethod
    def of_field(cls, field: Field) -> Text:
        return cls.of(field.reading or Reading())

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        return self, Setting((key,), groups, fields[0].levels, floor=floor)

    @property
    def words_model(self) -> MultinomialWords:
        """The way its words are modelled."""
        return MODELS[self.model]

    @property
    def by_document(self) -> bool:
        """Whether it counts which documents hold a word, not how often they do."""
        return self.model == "bernoulli"

    @property
    def chart(self) -> Mapping[str, Line]:  # type: ignore[override]
        return {"probability": self.words_model.line}

    @property
    def has_density(self) -> bool:
        return self.model != "complement"

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

    def sizes(self, column: Any, setting: Setting) -> np.ndarray:
        """How many words each document has, or for `bernoulli` whether it is there: what `entropy` is of."""
        whole = np.zeros(column.shape[1])
        whole[0 if self.by_document else slice(1, None)] = 1.0
        return np.asarray(column @ whole)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return self.words_model.hyper(prior, self, setting, stats.shape[-1] - 1)

    def seen(self, stats: Twofold) -> np.ndarray:
        """Which words any group holds."""
        return np.asarray(stats.value[:, 1:].sum(axis=0) > 0)

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
        return self.words_model.estimate(stats, hyper, "mean" if how == "predictive" else how) | fixed

    def given(self, said: Mapping[Any, Any], setting: Setting, groups: int) -> Params:
        """A probability for every word, in the order of the vocabulary; documents of no certain length."""
        params = Family.given(self, {"probability": said.get("probability", [])}, setting, groups)
        words = len(setting.levels)
        if params["probability"].shape != (groups, words):
            key = setting.keys[0]
            raise DataError(f"init: column {key!r} needs a probability of each of its {words:,} words in each group.")
        return params

    def swamped(self, stats: Twofold, hyper: Hyper, setting: Setting) -> str | None:
        """Where the prior imagines more words in a class than its labelled documents have, EM learns less.

        With a prior of 1, 300 messages of 20 Newsgroups gained a point or two less by 10,000 unlabelled ones than
        with 0.1.
        """
        if self.model != "multinomial" or len(setting.levels) < MANY_WORDS:
            return None
        guessed, known = float(hyper["alpha"].sum()), float(stats.hi[:, 1:].sum()) / stats.shape[0]
        if guessed <= known:
            return None
        return (
            f"column {setting.keys[0]!r}: the prior imagines {guessed:,.0f} words in every class, and the labelled "
            f"documents have about {known:,.0f}. Rows without a label teach more with prior=0.1 or 'auto'."
        )

    def _moved(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Counts of documents and words in another vocabulary; words it does not have are left out."""
        mine, theirs = old.levels, new.levels
        assert isinstance(mine, Words) and isinstance(theirs, Words)
        if was.by_document != self.by_document:
            raise DataError(
                f"column {old.keys[0]!r} counts words in one model and documents that hold them (bernoulli) in the "
                "other. Declare it the same in both with kinds."
            )
        if mine == theirs:
            return stats
        columns = theirs.columns(mine)
        there = np.flatnonzero(columns >= 0)
        hi, lo = np.zeros((2, stats.shape[0], 1 + len(theirs)))
        for out, part in ((hi, stats.hi), (lo, stats.lo)):
            out[:, 0] = part[:, 0]
            out[:, 1 + columns[there]] = part[:, 1 + there]
        return Twofold(hi, lo)

    def is_product(self, params: Params) -> bool:
        """But for words that are certain, which `lacking` counts."""
        return "alpha" not in params

    def score(self, column: Any, params: Params, setting: Setting) -> np.ndarray:
        features = self.features(column, setting)
        if "alpha" in params:
            return polya(features[:, 1:], params["alpha"])
        out = np.asarray(features @ self.natural(params).T)
        lacking = self.lacking(params)
        if lacking is not None:
            out[np.asarray(features @ lacking.T) > 0] = -np.inf
        return out

    def free(self, setting: Setting, groups: int, columns: int = 1) -> int:
        return groups * columns * self.words_model.free(len(setting.levels))

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> Any:
        """Documents as a sparse column; each as long as its group's usually are, by chance longer or shorter."""
        from scipy import sparse

        of, words = self.words_model.words(params, np.asarray(groups), rng)
        rows = np.concatenate([np.arange(len(groups)), of])
        places = np.concatenate([np.zeros(len(groups), dtype=np.int64), words + 1])
        shape = (len(groups), params["probability"].shape[1] + 1)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, places)), shape=shape)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        """The words that most set each group apart from all of them."""
        return [spoken(setting.levels, row) for row in marking(params["probability"])]

    def check_params(self, params: Params) -> str | None:
        length = params.get("length", np.zeros(1))
        if not ((length >= 0) & (length <= LONGEST)).all():
            return "its documents have no sensible length"
        if not sums_to_one(params.get("others", np.ones((1, 0)))):
            return "its probabilities do not sum to one"
        return Family.check_params(self, params)

    # -- what it says

    counted = True

    @property
    def title(self) -> str:
        return f"text, {self.model}"

    def refuse_query(self, column: Key) -> None:
        raise DataError(
            f"{column!r} is text, which cannot be asked for: sample() draws documents, params_ has its words."
        )

    def draw_columns(
        self, params: Params, setting: Setting, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None
    ) -> Columns:
        """Drawn words as documents, in any order: a bag of words has none."""
        column, out = self.draw(params, groups, rng), []
        for start, stop in pairwise(column.indptr):
            times = column.data[start + 1 : stop].astype(np.int64)
            ids = rng.permutation(np.repeat(column.indices[start + 1 : stop] - 1, times))
            out.append(" ".join(str(setting.levels[int(i)]) for i in ids))
        return [out]

    def linear(self, params: Params, setting: Setting) -> tuple[np.ndarray, np.ndarray] | None:
        """One feature for each word of a document that is there."""
        return self.linear_of(self.natural(params), setting)

    def linear_of(self, natural: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        return natural[:, 1:], natural[:, 0]

    def closed_form(self, params: Params) -> ClosedForm | None:
        """None where words are drawn one after another, or some are certain: such are no sums."""
        if "alpha" in params or self.lacking(params) is not None:
            return None
        return self.weighted_form(self.natural(params), Setting())

    def weighted_form(self, weights: np.ndarray, setting: Setting) -> ClosedForm | None:
        return {"form": "words", "weights": weights, "once": self.by_document}

    def words_of(self, setting: Setting) -> WordFigures | None:
        return WordFigures(setting.levels, self.words_model, self.by_document)

    # -- in files

    @property
    def word_model(self) -> str | None:
        return self.model

    @classmethod
    def reading_in(cls, own: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return {name: value for name, value in own.items() if name != "model"}

    def takes(self, kind: Kind) -> bool:
        return kind is Kind.TEXT

    def _kept_levels(self, setting: Setting) -> Any:
        return None  # words are in arrays of their own

    def _read_levels(self, kept: Any, specs: Sequence[Field], widest: int) -> Sequence[object]:
        if kept is not None or len(specs) != 1 or not isinstance(specs[0].levels, Words):
            raise ModelFileError(f"{[spec.key for spec in specs]!r} is {self.name}, but no one column of text.")
        return specs[0].levels


BY_MODEL = (
    "estimate", "natural", "lacking", "completed", "slope", "log_prior", "evidence", "proper", "posterior",
    "divergence", "entropy",
)  # fmt: skip
"""What of a column of text is as the model of its words has it."""


def _of_words_model(name: str) -> Any:
    return lambda text, *how: getattr(text.words_model, name)(*how)


for _name in BY_MODEL:
    setattr(Text, _name, _of_words_model(_name))


@dataclass(frozen=True, slots=True)
class WordFigures:
    """What there is to say of single words. With `once` it counts only that a word is there, not how often."""

    words: Sequence[object]
    words_model: MultinomialWords
    once: bool

    def log_odds(self, here: Twofold, there: Twofold, hyper: Hyper, how: How) -> np.ndarray:
        """Every word's, as the model would see two classes, of these statistics; `hyper` is of one class."""
        plain = MODELS["bernoulli" if self.once else "multinomial"]
        how = "mean" if how == "predictive" else how
        own, other = (plain.estimate(stats, hyper, how)["probability"][0] for stats in (here, there))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = logit(own) - logit(other) if self.once else np.log(own) - np.log(other)
        return np.asarray(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf))

    def evidence(self, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Every word's: among all documents where it counts only that a word is there, else among all words."""
        own, rest = (float(part[0] if self.once else part[1:].sum()) for part in (here, there))
        return evidence(here[1:], there[1:], (own, rest))

    def scores(self, params: Params, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(groups x words) what each word of a document adds to its log-density, from private parameters."""
        if self.once:
            with np.errstate(divide="ignore"):
                return np.log(params["probability"][:, places])
        if "alpha" in params:
            # One draw after another: what the length of the document takes is shared by its words.
            alpha, mass, length = params["alpha"][:, places], params["alpha"].sum(axis=-1), counts.sum()
            each = (gammaln(mass + length) - gammaln(mass)) / max(length, 1.0)
            return np.asarray(gammaln(alpha + counts) - gammaln(alpha) - counts * each[:, None])
        return np.asarray(counts * self.words_model.natural(params)[:, places + 1])


def evidence(here: np.ndarray, there: np.ndarray, sizes: tuple[float, float]) -> np.ndarray:
    """Nats by which two rates, one here and one there, explain how often words occur better than one rate does.

    `sizes` are all words here and there (or all documents). Half of Dunning's G2: a name that one document repeats has
    little of it and a word used everywhere next to none.
    """
    apart = sum(_likelihood(part, size) for part, size in zip((here, there), sizes, strict=True))
    return np.asarray(np.maximum(apart - _likelihood(here + there, sum(sizes)), 0.0))


def _likelihood(count: np.ndarray, size: float) -> np.ndarray:
    """Log-likelihood, at its best rate, of a word met so often among so many."""
    rest = np.maximum(size - count, 0.0)
    return np.asarray(xlogy(count, count) + xlogy(rest, rest) - xlogy(size, size))


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


_NOTES = ["ant bee ant", "bee dog", None, "cat cat cat bee", "", "dog ant bee", "cat ant"]
EXAMPLES = tuple(
    example(family, "note", _NOTES, Cells("documents", ("ant", "bee", "cat", "dog")))
    for family in (Text(), Text("bernoulli"))
)
