"""Text columns: documents as bags of words, with the probability of each word in each group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from softcount.core import remedies
from softcount.core.counts import Twofold
from softcount.core.formulas import CLAMPED, Formula, Keys, LookUp, Sizes, WordsCode, clamp, formula
from softcount.core.lazy import entr, gammaln, logit, xlog1py, xlogy
from softcount.core.special import log_of, log_rising
from softcount.errors import DataError
from softcount.families.base import Family, register, scalar_prior
from softcount.families.categorical import (
    Shares,
    SharesDensity,
    concentration,
    divergence_of_shares,
    estimate_shares,
    prior_counts,
)
from softcount.families.density import Columns, Density, Rng
from softcount.families.learning import sums_to_one
from softcount.families.multinomial import log_ways, polya
from softcount.families.setting import IMPOSSIBLE, SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.priors import Beta, Dirichlet, Expert
from softcount.table.schema import Kind
from softcount.text import Reading, Words
from softcount.text.words import LONGEST_PATTERN

ROUNDING = 1e-9
"""Relative excess of the expected counts of a word over those of the documents that is taken for rounding."""
DRAWN_AT_ONCE = 1_000_000
"""Number of cells drawn in one step."""


class MultinomialWords(Shares):
    """Multinomial: each word of a document is drawn independently. The number of words is not modelled."""

    def tally(self, stats: Twofold) -> np.ndarray:
        return _split(stats)[1]

    def prior_of(self, prior: Any, family: Family, setting: Setting, words: int) -> Hyper:
        """Return the prior parameters for `prior`."""
        return {"alpha": concentration(prior, family, setting, words) if words else np.zeros(0)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        documents, words = _split(stats)
        more = {"alpha": words + hyper["alpha"]} if how == "predictive" else {}
        lengths = usual_lengths(documents, words.sum(axis=-1))  # before the counts become shares
        return {"probability": _shares(words, hyper["alpha"], how), "length": lengths, **more}

    def natural(self, params: Params) -> np.ndarray:
        return _weights(params["probability"], 1.0)

    def completed(self, stats: Twofold, params: Params) -> float:
        return float((_split(stats)[1] * _logs(params["probability"])).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        exponent = prior_counts(hyper, how)
        if not exponent.any():
            return 0.0
        logs = _logs(params["probability"])
        alike = exponent.min() == exponent.max()
        height = exponent.max() * logs.sum(axis=-1) if alike else (exponent * logs).sum(axis=-1)
        return np.where(height > IMPOSSIBLE, height, -np.inf)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        words = _split(stats)[1]
        alpha = np.broadcast_to(hyper["alpha"], words.shape)
        seen, met = np.asarray(log_rising(alpha.sum(axis=-1), words.sum(axis=-1))), words > 0
        return float(np.asarray(log_rising(alpha[met], words[met])).sum() - seen.sum())


class BernoulliWords(MultinomialWords):
    """Bernoulli: each word is present or not, independently of the others. Absence is evidence too."""

    facts = Facts(chart={"probability": "share"})

    def prior_of(self, prior: Any, family: Family, setting: Setting, words: int) -> Hyper:
        """Return the numbers of prior documents with each word, and without it: a prior a is Beta(a, a)."""
        prior = prior.as_beta() if isinstance(prior, Expert) else prior
        if isinstance(prior, Beta):
            pair = prior.alpha, prior.beta
        elif isinstance(prior, Dirichlet):
            raise DataError(f"column {setting.keys[0]!r}: words that are there or not take a Beta prior, or a number.")
        else:
            pair = (scalar_prior(prior, family, 2, setting.groups),) * 2
        return {"alpha": np.full(words, pair[0], np.float64), "beta": np.full(words, pair[1], np.float64)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate the share of each word. The posterior mean is also the predictive share."""
        documents, words = _split(stats)
        with_it, without = _imagined_pair(hyper, how)
        raw, total = words + with_it, documents[:, None] + with_it + without
        if (raw < 0).any() or (raw > total + ROUNDING * np.abs(total)).any():
            raise DataError(
                "text: a count plus its concentration is below one, so the posterior has no interior mode. "
                f"Use {remedies.estimate_mean()}, or a prior of 1 or more."
            )
        share = np.where(total > 0, np.minimum(raw / np.where(total > 0, total, 1.0), 1.0), 0.5)
        return {"probability": share, "length": share.sum(axis=-1)}

    def natural(self, params: Params) -> np.ndarray:
        """Return the log-probability of an empty document, then the log-odds of each word, 0 for certain words."""
        share = params["probability"]
        table = np.empty((share.shape[1] + 1, share.shape[0]))
        absent = np.log1p(-np.where(share < 1, share, 0.0))
        with np.errstate(divide="ignore"):
            np.maximum(np.log(share.T, out=table[1:]), CLAMPED, out=table[1:])
        table[1:] -= absent.T
        table[0] = absent.sum(axis=-1)
        return table.T

    def completed(self, stats: Twofold, params: Params) -> float:
        documents, words = _split(stats)
        share, rest = params["probability"], np.maximum(documents[:, None] - words, 0.0)
        return float((xlogy(words, share) + xlog1py(rest, -share)).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        with_it, without = _imagined_pair(hyper, how)
        share = params["probability"]
        return np.asarray((xlogy(with_it, share) + xlog1py(without, -share)).sum(axis=-1))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        documents, words = _split(stats)
        with_it, without = _imagined_pair(hyper, how)
        share, rest = params["probability"], np.maximum(documents[:, None] - words, 0.0)
        rise = (words + with_it) / np.maximum(share, SMALLEST)
        return {"probability": rise - (rest + without) / np.maximum(1.0 - share, SMALLEST)}

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        documents, words = _split(stats)
        rest = np.maximum(documents[:, None] - words, 0.0)
        alpha, beta = (np.broadcast_to(hyper[name], words.shape) for name in ("alpha", "beta"))
        found = np.asarray(log_rising(alpha, words)) + np.asarray(log_rising(beta, rest))
        return float((found - np.asarray(log_rising(alpha + beta, words + rest))).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        nothing = hyper["alpha"] + hyper["beta"] <= 0
        return {name: np.where(nothing, 0.5, hyper[name]) for name in ("alpha", "beta")}

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        documents, words = _split(stats)
        return Beta(words + hyper["alpha"], np.maximum(documents[:, None] - words, 0.0) + hyper["beta"])


class ComplementWords(MultinomialWords):
    """Complement: a word is evidence for a class if it is rare in all other classes together."""

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate the shares of words in each class (`probability`) and in all others together (`others`)."""
        if how == "predictive":
            raise DataError(
                f"text: complement weights are not a density, so they cannot be averaged. Use "
                f"{remedies.estimate_mean()}."
            )
        words = _split(stats)[1]
        others = _shares(np.maximum(words.sum(axis=0) - words, 0.0), hyper["alpha"], how)
        if len(words) > 1 and (others <= 0).any():
            raise DataError(
                "text: a word was met in one class only, so its weight under complement would be infinite. "
                f"Use {remedies.estimate_mean()} with a prior above 0."
            )
        return super().estimate(stats, hyper, how) | {"others": others}

    def natural(self, params: Params) -> np.ndarray:
        return _weights(params["others"], -1.0)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        raise DataError("text: complement has no likelihood, so no evidence. Use Text('multinomial').")


MODELS: dict[str, MultinomialWords] = {
    "multinomial": MultinomialWords(),
    "bernoulli": BernoulliWords(),
    "complement": ComplementWords(),
}


# Tables of words have millions of cells: they are changed in place if possible.


def _split(stats: Twofold) -> tuple[np.ndarray, np.ndarray]:
    """Return the documents of every group, and the counts of every word in it."""
    counts = stats.value
    np.maximum(counts, 0.0, out=counts)
    return counts[:, 0], counts[:, 1:]


def _shares(words: np.ndarray, alpha: np.ndarray, how: How) -> np.ndarray:
    """Estimate shares as `estimate_shares` does, usually in place: the given counts become the shares.

    Another array of 20 classes and 209,404 words took 34 MB more at the peak of a fit.
    """
    if how in ("ml", "map") or not (alpha > 0).all():
        return estimate_shares(words, alpha, how, "text")
    words += alpha
    words /= words.sum(axis=-1, keepdims=True)
    return words


def _logs(shares: np.ndarray) -> np.ndarray:
    """Return logarithms. That of 0 is replaced by a finite number, so that 0 times it is 0."""
    logs = log_of(shares)
    return np.asarray(np.maximum(logs, CLAMPED, out=logs))


def usual_lengths(documents: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the words per document in every group; a group without documents has the average of the table."""
    mass = documents.sum()
    whole = total.sum() / mass if mass > 0 else 0.0
    return np.where(documents > 0, total / np.where(documents > 0, documents, 1.0), whole)


def _weights(shares: np.ndarray, sign: float) -> np.ndarray:
    """Return (groups x (1 + words)) logarithms, 0 for the document itself; groups are contiguous in memory."""
    table = np.empty((shares.shape[1] + 1, shares.shape[0]))
    table[0] = 0.0
    with np.errstate(divide="ignore"):
        np.log(shares.T, out=table[1:])
    np.maximum(table[1:], CLAMPED, out=table[1:])
    if sign < 0:
        np.negative(table[1:], out=table[1:])
    return table.T


def _imagined_pair(hyper: Hyper, how: How) -> tuple[np.ndarray, np.ndarray]:
    less = {"ml": 0.0, "map": 1.0}.get(how, 0.0)
    with_it, without = hyper["alpha"] - less, hyper["beta"] - less
    return (np.zeros_like(with_it), np.zeros_like(without)) if how == "ml" else (with_it, without)


LONGEST = 1e7
"""Largest typical length of a document in a model file, in words: more than any book has."""
MARKING = 5
"""Number of characteristic words of a group."""
NOISE = 1e-14
"""Rounding error of the evidence of a word that is equally likely everywhere."""


class BagsDensity(SharesDensity):
    """Words or transitions of each document, or each as often as it occurs."""

    family: Bags

    def sizes(self, column: Any) -> np.ndarray:
        """Return the number of words or known transitions of each row; by document, whether it is present."""
        whole = np.zeros(column.shape[1])
        whole[0 if self.family.by_document else slice(1, None)] = 1.0
        return np.asarray(column @ whole)

    def describe(self) -> list[str]:
        """Describe each group by the words or transitions that distinguish it most from all groups."""
        table = self.own["probability"].reshape(len(self.own["probability"]), -1)
        return [list_words(self.setting.levels, row) for row in marking(table)]

    @property
    def is_product(self) -> bool:
        """Whether scores are products, except for certain words, which `lacking` counts."""
        return "alpha" not in self.own

    def score_words(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the (groups x words) contributions of words to the log-density of a document."""
        return np.asarray(counts * self.family.natural(self.own)[:, places + 1])

    def find_fault(self) -> str | None:
        length = self.own.get("length", np.zeros(1))
        if not ((length >= 0) & (length <= LONGEST)).all():
            return f"its {self.family.nouns[1]} have no sensible length"
        return super().find_fault()

    def linear_of(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one feature for each word of a document that is present."""
        return natural[:, 1:], natural[:, 0]


class TextDensity(BagsDensity):
    """Words that are drawn one by one."""

    family: Text

    def score(self, column: Any) -> np.ndarray:
        features = self.family.features(column, self.setting)
        if "alpha" in self.own:
            return polya(features[:, 1:], self.own["alpha"])
        out = np.asarray(features @ self.family.natural(self.own).T)
        lacking = self.lacking
        if lacking is not None:
            out[np.asarray(features @ lacking.T) > 0] = -np.inf
        return out

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> Any:
        """Draw documents as a sparse column, with Poisson lengths around the typical length of their group."""
        from scipy import sparse

        of, words = self._draw_words(np.asarray(groups), rng)
        rows = np.concatenate([np.arange(len(groups)), of])
        places = np.concatenate([np.zeros(len(groups), dtype=np.int64), words + 1])
        shape = (len(groups), self.own["probability"].shape[1] + 1)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, places)), shape=shape)

    def draw_columns(self, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None) -> Columns:
        """Draw documents, with their words in random order: a bag of words has none."""
        column, out = self.draw(groups, rng), []
        for start, stop in pairwise(column.indptr):
            times = column.data[start + 1 : stop].astype(np.int64)
            ids = rng.permutation(np.repeat(column.indices[start + 1 : stop] - 1, times))
            out.append(" ".join(str(self.setting.levels[int(i)]) for i in ids))
        return [out]

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        code = WordsCode(keys[0], "once" if self.family.by_document else "times")
        return LookUp(code, clamp(weights[:, 1:].T)) + formula(weights[:, 0])

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return None if words are drawn one after another, or if some are certain: such scores are not sums."""
        return None if self.lacking is not None else super().formula(keys, sizes)

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence of a document of the group's typical length."""
        mass = shares * self.own["length"]
        whole = mass / mass.sum() if mass.sum() > 0 else shares
        return np.asarray(self.own["length"] * divergence_of_shares(self.own["probability"], whole))

    def score_words(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if "alpha" in self.own:
            # Words are drawn one after another: the term for the length of the document is shared by its words.
            alpha, mass, length = self.own["alpha"][:, places], self.own["alpha"].sum(axis=-1), counts.sum()
            each = (gammaln(mass + length) - gammaln(mass)) / max(length, 1.0)
            return np.asarray(gammaln(alpha + counts) - gammaln(alpha) - counts * each[:, None])
        return super().score_words(places, counts)

    def _draw_words(self, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw documents, one for each entry of `groups`; return the document of each word, and the word."""
        usual = self.own.get("length", np.ones(len(self.own["probability"])))
        of = np.repeat(np.arange(len(groups)), rng.poisson(usual[groups]))
        found = np.zeros(len(of), dtype=np.int64)
        for g in np.unique(groups):
            edges, own = np.cumsum(self.own["probability"][g]), np.flatnonzero(groups[of] == g)
            if len(edges) and len(own):
                at = np.searchsorted(edges, rng.random(len(own)) * edges[-1], side="right")
                found[own] = np.minimum(at, len(edges) - 1)
        return (of, found) if self.own["probability"].shape[1] else (of[:0], found[:0])

    def find_fault(self) -> str | None:
        if not sums_to_one(self.own.get("others", np.ones((1, 0)))):
            return "its probabilities do not sum to one"
        return super().find_fault()


class PresenceDensity(TextDensity):
    """Words that are each present or not."""

    @property
    def lacking(self) -> np.ndarray | None:
        certain = self.own["probability"] >= 1
        if not certain.any():
            return None
        return np.concatenate([certain.sum(axis=-1, keepdims=True), -certain.astype(np.float64)], axis=-1)

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        share = self.own["probability"]
        whole = np.clip(shares @ share, SMALLEST, 1.0 - 1e-16)
        with_it = xlogy(share, share) - xlogy(share, whole)
        return np.asarray((with_it + xlog1py(1.0 - share, -share) - xlog1py(1.0 - share, -whole)).sum(axis=-1))

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy of a whole document."""
        return np.asarray((entr(self.own["probability"]) + entr(1.0 - self.own["probability"])).sum(axis=-1))

    def score_words(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return log_of(self.own["probability"][:, places])

    def _draw_words(self, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        share = self.own["probability"]
        step = max(1, DRAWN_AT_ONCE // max(share.shape[1], 1))
        parts = []
        for a in range(0, len(groups), step):
            of, word = np.nonzero(rng.random((len(groups[a : a + step]), share.shape[1])) < share[groups[a : a + step]])
            parts.append((of + a, word))
        nothing = np.zeros(0, dtype=np.int64)
        return tuple(np.concatenate(side) for side in zip((nothing, nothing), *parts, strict=True))  # type: ignore[return-value]


class Bags(Family):
    """Base of families of counted words or transitions.

    A column is a sparse matrix: 1 for a document that is present, then the count of each word.
    """

    facts = Facts(
        kind=Kind.TEXT, chart={"probability": "shares"}, stack="bag", rows=0, counted=True, words=True,
        linear=True, alone=True,
    )  # fmt: skip
    _density = BagsDensity
    by_document = False
    """Whether it counts the documents that contain a word, not the occurrences."""
    nouns: ClassVar[tuple[str, str]] = "text", "documents"
    """What a column holds, and what its cells are."""

    model: str
    """Name of the distribution of words or transitions."""

    @property
    def plain(self) -> Family:
        """The family that estimates probabilities of single words."""
        return self

    def log_odds(self, here: Twofold, there: Twofold, hyper: Hyper, how: How) -> np.ndarray:
        """Return the log-odds of every word between two classes with these statistics; `hyper` is of one class."""
        how = "mean" if how == "predictive" else how
        own, other = (self.plain.estimate(stats, hyper, how)["probability"].ravel() for stats in (here, there))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = logit(own) - logit(other) if self.by_document else np.log(own) - np.log(other)
        return np.asarray(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf))

    def word_evidence(self, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return the evidence of every word: among all documents if only presence counts, else among all words."""
        own, rest = (float(part[0] if self.by_document else part[1:].sum()) for part in (here, there))
        return evidence(here[1:], there[1:], (own, rest))

    def estimate_seen(self, stats: Twofold, hyper: Hyper, how: How) -> tuple[Params, np.ndarray] | None:
        """Return parameters as of a fit that knows only the words that occur, and which do; None if it has no words."""
        return None

    def features(self, column: Any, setting: Setting) -> Any:
        return column

    def width(self, setting: Setting) -> int:
        return 1 + len(setting.levels)

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Convert counts of documents and words to another vocabulary; words that it does not have are left out."""
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


@register
class Text(Bags, Struct, frozen=True):
    """Words of a document.

    A cell is a text. If a model has no other columns, classes are equally likely a priori unless `class_prior` is
    given.

    Parameters
    ----------
    model : {'multinomial', 'bernoulli', 'complement'}, default='multinomial'
        Distribution of the words: drawn one by one, or each present or absent. 'complement' scores a class by the words
        of all other classes [2]_; it needs known classes and has no likelihood.
    analyzer : {'word', 'char', 'char_wb'}, default='word'
        Whether the features are words, or runs of characters, which with 'char_wb' stay within words.
    ngrams : tuple of (int, int), default=(1, 1)
        Shortest and longest run of words (or characters) that is a feature.
    pattern : str or None, default=None
        Regular expression for a word. None finds runs of two or more word characters, which is faster.
    lowercase : bool, default=True
        Whether to read words in lower case.
    stop_words : tuple of str or 'english', default=()
        Words to leave out. 'english' is a short list.
    min_count : int, default=1
        Leave out words that occur fewer times in all documents.
    min_df : int or float, default=1
        Leave out words that occur in fewer documents; a float is a share of the documents.
    max_df : int or float, default=1.0
        Leave out words that occur in more documents; a float is a share of the documents.
    drop_top : int, default=0
        Number of the most frequent words to leave out.
    max_words : int or None, default=1000000
        Largest number of words to keep, the most frequent ones. None keeps all.

    See Also
    --------
    softcount.BagOfWords : The sparse matrix of words, for other models.
    Multinomial : Counts that are columns already.
    Markov : Sequences, in which the order of steps matters.

    Notes
    -----
    A model has `probability` (classes x words). The limits on documents and words ignore the weights of rows. A column
    is a sparse matrix: 1 for a document that is present, then the count of each word. Statistics are the number of
    documents and the count of each word, or with 'bernoulli' the number of documents that contain it.

    References
    ----------
    .. [1] A. McCallum and K. Nigam (1998). "A comparison of event models for naive Bayes text classification". AAAI-98
       Workshop on Learning for Text Categorization, 41-48.
    .. [2] J. D. M. Rennie, L. Shih, J. Teevan and D. R. Karger (2003). "Tackling the poor assumptions of naive Bayes
       text classifiers". ICML 2003, 616-623.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> mails = {"mail": ["buy now", "buy it cheap", "meet at noon", "lunch at noon"]}
    >>> kinds = {"mail": families.Text(stop_words=("at", "it"))}
    >>> model = NaiveBayes(kinds=kinds).fit(mails, ["spam", "spam", "ham", "ham"])
    >>> model.predict({"mail": ["cheap lunch at noon", "buy cheap now"]}).tolist()
    ['ham', 'spam']
    """

    model: Literal["multinomial", "bernoulli", "complement"] = "multinomial"
    analyzer: Any = "word"
    ngrams: tuple[int, int] = (1, 1)
    pattern: Annotated[str, Meta(max_length=LONGEST_PATTERN)] | None = None
    lowercase: bool = True
    stop_words: str | tuple[str, ...] = ()
    min_count: int = 1
    min_df: int | float = 1
    max_df: int | float = 1.0
    drop_top: int = 0
    max_words: int | None = 1_000_000

    name = "text"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise DataError(f"text model {self.model!r} is not known. Use 'multinomial', 'bernoulli' or 'complement'.")
        reading = reading_of(self)  # checks the settings and puts them in standard form
        reading.refuse_steps()
        for part in reading.__struct_fields__:
            force_setattr(self, part, getattr(reading, part))

    @property
    def plain(self) -> Family:
        return MODELS["bernoulli" if self.by_document else "multinomial"]

    @property
    def words_model(self) -> MultinomialWords:
        """The model of its words."""
        return MODELS[self.model]

    @property
    def by_document(self) -> bool:  # type: ignore[override]
        return self.model == "bernoulli"

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return _facts(self, isinstance(self.min_df, float), isinstance(self.max_df, float))

    def features(self, column: Any, setting: Setting) -> Any:
        if not self.by_document:
            return column
        there = column.copy()
        there.data = (there.data > 0).astype(np.float64)
        return there

    def base(self, column: Any) -> np.ndarray | float:
        """Return the log of the number of orders of a document's words; 0 unless the model is `multinomial`."""
        if self.model != "multinomial":
            return 0.0
        return log_ways(column, first=1)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return self.words_model.prior_of(prior, self, setting, stats.shape[-1] - 1)

    def estimate_seen(self, stats: Twofold, hyper: Hyper, how: How) -> tuple[Params, np.ndarray]:
        """Estimate as a fit does that knows only the words that occur; the others must not be scored."""
        seen = np.asarray(stats.value[:, 1:].sum(axis=0) > 0)
        places = np.flatnonzero(seen)
        known = stats[:, np.concatenate([[0], places + 1])]
        part = self.estimate(known, {name: value[..., places] for name, value in hyper.items()}, how)
        for name, value in part.items():
            if value.ndim == 2:
                # Words that are never scored only need a logarithm, and must add nothing to the sums of `alpha`.
                whole = np.full((len(seen), len(value)), {"others": 1.0, "alpha": 1e-300}.get(name, 0.0)).T
                whole[:, places] = value
                part[name] = whole
        return part, seen

    def density(self, params: Params, setting: Setting) -> Density:
        return (PresenceDensity if self.by_document else TextDensity)(self, params, setting)


def reading_of(settings: Text | Reading) -> Reading:
    """Return how documents are read, from the settings of a family that has them all."""
    return Reading(**{part: getattr(settings, part) for part in Reading.__struct_fields__})


@lru_cache(maxsize=64)
def _facts(family: Text, *shares: bool) -> Facts:
    """Return the facts of a family; `shares` says which limits are shares, because 1 and 1.0 are equal as keys."""
    return replace(
        Bags.facts, chart=family.words_model.facts.chart, title=f"text, {family.model}", reading=reading_of(family),
        has_density=family.model != "complement", heavy_prior=family.model == "multinomial",
    )  # fmt: skip


BY_MODEL = (
    "estimate", "natural", "completed", "slope", "log_prior", "evidence", "proper", "posterior",
)  # fmt: skip
"""Methods that the model of words implements."""


def _of_words_model(name: str) -> Any:
    return lambda text, *how: getattr(text.words_model, name)(*how)


for _name in BY_MODEL:
    setattr(Text, _name, _of_words_model(_name))


def evidence(here: np.ndarray, there: np.ndarray, sizes: tuple[float, float]) -> np.ndarray:
    """Return the nats by which separate rates here and there explain word counts better than one common rate.

    `sizes` are the numbers of all words here and there (or of all documents). The result is half of Dunning's G2: small
    for a name that one document repeats, almost 0 for a word used everywhere.
    """
    apart = sum(_likelihood(part, size) for part, size in zip((here, there), sizes, strict=True))
    return np.asarray(np.maximum(apart - _likelihood(here + there, sum(sizes)), 0.0))


def _likelihood(count: np.ndarray, size: float) -> np.ndarray:
    """Return the log-likelihood, at the best rate, of a word with this count among `size` words."""
    rest = np.maximum(size - count, 0.0)
    return np.asarray(xlogy(count, count) + xlogy(rest, rest) - xlogy(size, size))


def marking(probability: np.ndarray) -> np.ndarray:
    """Return how characteristic each word is of each group (groups x words): its evidence, for groups of equal size.

    It is 0 if a word is not more frequent than in the other groups together. A single group has the probabilities of
    its words.
    """
    others = len(probability) - 1
    if others <= 0:
        return probability
    rest = np.maximum(probability.sum(axis=0) - probability, 0.0)
    scores = np.stack([evidence(*pair, (1.0, float(others))) for pair in zip(probability, rest, strict=True)])
    return np.where(probability * others > rest, scores, 0.0)


def list_words(words: Sequence[object], scores: np.ndarray, least: float = NOISE) -> str:
    """Format the words with the largest scores above `least`, largest first; ties in the order of the words."""
    most = min(MARKING, len(scores))
    if not most:
        return "no words"
    top = np.argpartition(-scores, most - 1)[:most]
    top = top[np.lexsort((top, -scores[top]))]
    return ", ".join(str(words[int(i)]) for i in top if scores[i] > least) or "no characteristic words"
