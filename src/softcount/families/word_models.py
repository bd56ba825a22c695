"""The three ways to model a document's words, each a set of functions of statistics and parameters.

Statistics are (groups x (1 + words)): documents first, then what each word was met.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.families.base import Family, scalar_prior
from softcount.families.categorical import concentration, divergence_of_shares, estimated, imagined_counts
from softcount.families.setting import CLAMPED, IMPOSSIBLE, SMALLEST, How, Hyper, Params, Setting
from softcount.numerics.late_scipy import entr, xlog1py, xlogy
from softcount.numerics.logspace import log_rising
from softcount.numerics.twofold import Twofold
from softcount.priors import Beta, Dirichlet, Expert

ROUNDING = 1e-9
"""By which expected counts of a word may exceed those of the documents."""
DRAWN_AT_ONCE = 1_000_000
"""Words that are asked whether they are there, at a time."""


class MultinomialWords:
    """Multinomial: every word of a document is drawn anew; how many there are is not modelled."""

    line: Any = "shares"

    def hyper(self, prior: Any, family: Family, setting: Setting, words: int) -> Hyper:
        return {"alpha": concentration(prior, family, setting, words) if words else np.zeros(0)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        documents, words = _split(stats)
        more = {"alpha": words + hyper["alpha"]} if how == "predictive" else {}
        lengths = _lengths(documents, words)  # while they are counts still
        return {"probability": _shares(words, hyper["alpha"], how), "length": lengths, **more}

    def natural(self, params: Params) -> np.ndarray:
        return _weights(params["probability"], 1.0)

    def lacking(self, params: Params) -> np.ndarray | None:
        """Weights that count the certain words a document lacks; None where no word is certain."""
        return None

    def completed(self, stats: Twofold, params: Params) -> float:
        return float((_split(stats)[1] * _logs(params["probability"])).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        exponent = imagined_counts(hyper, how)
        if not exponent.any():
            return 0.0
        logs = _logs(params["probability"])
        alike = exponent.min() == exponent.max()
        height = exponent.max() * logs.sum(axis=-1) if alike else (exponent * logs).sum(axis=-1)
        return np.where(height > IMPOSSIBLE, height, -np.inf)

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        counts = _split(stats)[1] + imagined_counts(hyper, how)
        return {"probability": counts / np.maximum(params["probability"], SMALLEST)}

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        words = _split(stats)[1]
        alpha = np.broadcast_to(hyper["alpha"], words.shape)
        seen, met = np.asarray(log_rising(alpha.sum(axis=-1), words.sum(axis=-1))), words > 0
        return float(np.asarray(log_rising(alpha[met], words[met])).sum() - seen.sum())

    def proper(self, hyper: Hyper) -> Hyper:
        alpha = hyper["alpha"]
        return {"alpha": alpha if alpha.sum() > 0 else np.full_like(alpha, 1.0 / max(alpha.shape[-1], 1))}

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        return Dirichlet(_split(stats)[1] + hyper["alpha"])

    def free(self, words: int) -> int:
        return max(words - 1, 0)

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        """Of a document of the group's usual length."""
        mass = shares * params["length"]
        whole = mass / mass.sum() if mass.sum() > 0 else shares
        return np.asarray(params["length"] * divergence_of_shares(params["probability"], whole))

    def entropy(self, params: Params) -> np.ndarray:
        """Of one word: a document's length is not modelled."""
        return np.asarray(entr(params["probability"]).sum(axis=-1))

    def words(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Words of drawn documents, one for each entry of `groups`: the document of each word, and the word."""
        usual = params.get("length", np.ones(len(params["probability"])))
        of = np.repeat(np.arange(len(groups)), rng.poisson(usual[groups]))
        found = np.zeros(len(of), dtype=np.int64)
        for g in np.unique(groups):
            edges, own = np.cumsum(params["probability"][g]), np.flatnonzero(groups[of] == g)
            if len(edges) and len(own):
                at = np.searchsorted(edges, rng.random(len(own)) * edges[-1], side="right")
                found[own] = np.minimum(at, len(edges) - 1)
        return (of, found) if params["probability"].shape[1] else (of[:0], found[:0])


class BernoulliWords(MultinomialWords):
    """Bernoulli: each word is there or not, whatever the others are; absence counts too."""

    line: Any = "share"

    def hyper(self, prior: Any, family: Family, setting: Setting, words: int) -> Hyper:
        """Imagined documents with each word, and without it: a prior a is Beta(a, a)."""
        prior = prior.as_beta() if isinstance(prior, Expert) else prior
        if isinstance(prior, Beta):
            pair = prior.alpha, prior.beta
        elif isinstance(prior, Dirichlet):
            raise DataError(f"column {setting.keys[0]!r}: words that are there or not take a Beta prior, or a number.")
        else:
            pair = (scalar_prior(prior, family, 2, setting.groups),) * 2
        return {"alpha": np.full(words, pair[0], np.float64), "beta": np.full(words, pair[1], np.float64)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """The posterior mean is also the predictive share: a document holds a word once, or not."""
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
        """Log-odds of each word, after what is said by none being there; words that are certain are left out."""
        share = params["probability"]
        table = np.empty((share.shape[1] + 1, share.shape[0]))
        absent = np.log1p(-np.where(share < 1, share, 0.0))
        with np.errstate(divide="ignore"):
            np.maximum(np.log(share.T, out=table[1:]), CLAMPED, out=table[1:])
        table[1:] -= absent.T
        table[0] = absent.sum(axis=-1)
        return table.T

    def lacking(self, params: Params) -> np.ndarray | None:
        certain = params["probability"] >= 1
        if not certain.any():
            return None
        return np.concatenate([certain.sum(axis=-1, keepdims=True), -certain.astype(np.float64)], axis=-1)

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
        told = np.asarray(log_rising(alpha, words)) + np.asarray(log_rising(beta, rest))
        return float((told - np.asarray(log_rising(alpha + beta, words + rest))).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        nothing = hyper["alpha"] + hyper["beta"] <= 0
        return {name: np.where(nothing, 0.5, hyper[name]) for name in ("alpha", "beta")}

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        documents, words = _split(stats)
        return Beta(words + hyper["alpha"], np.maximum(documents[:, None] - words, 0.0) + hyper["beta"])

    def free(self, words: int) -> int:
        return words

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        share = params["probability"]
        whole = np.clip(shares @ share, SMALLEST, 1.0 - 1e-16)
        with_it = xlogy(share, share) - xlogy(share, whole)
        return np.asarray((with_it + xlog1py(1.0 - share, -share) - xlog1py(1.0 - share, -whole)).sum(axis=-1))

    def entropy(self, params: Params) -> np.ndarray:
        """Of a whole document."""
        return np.asarray((entr(params["probability"]) + entr(1.0 - params["probability"])).sum(axis=-1))

    def words(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        share = params["probability"]
        step = max(1, DRAWN_AT_ONCE // max(share.shape[1], 1))
        parts = []
        for a in range(0, len(groups), step):
            of, word = np.nonzero(rng.random((len(groups[a : a + step]), share.shape[1])) < share[groups[a : a + step]])
            parts.append((of + a, word))
        nothing = np.zeros(0, dtype=np.int64)
        return tuple(np.concatenate(side) for side in zip((nothing, nothing), *parts, strict=True))  # type: ignore[return-value]


class ComplementWords(MultinomialWords):
    """Complement: a word speaks for a class as far as it is rare in all the others together."""

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """Shares of words in each class (`probability`) and in all others together (`others`)."""
        if how == "predictive":
            raise DataError(f"text: complement weights are no density to average. Use {remedies.estimate_mean()}.")
        words = _split(stats)[1]
        others = _shares(np.maximum(words.sum(axis=0) - words, 0.0), hyper["alpha"], how)
        if len(words) > 1 and (others <= 0).any():
            raise DataError(
                "text: a word was met in one class only, and complement would weigh it without end. "
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


# These tables have millions of cells, and every pass over one is felt: they are written to in place where they can be.


def _split(stats: Twofold) -> tuple[np.ndarray, np.ndarray]:
    """Documents of every group, and counts of every word in it."""
    counts = stats.value
    np.maximum(counts, 0.0, out=counts)
    return counts[:, 0], counts[:, 1:]


def _shares(words: np.ndarray, alpha: np.ndarray, how: How) -> np.ndarray:
    """As `estimated`, in two passes where nothing is odd; the counts given become the shares then.

    Another array of 20 classes and 209,404 words was 34 MB more at the height of a fit.
    """
    if how in ("ml", "map") or not (alpha > 0).all():
        return estimated(words, alpha, how, "text")
    words += alpha
    words /= words.sum(axis=-1, keepdims=True)
    return words


def _logs(shares: np.ndarray) -> np.ndarray:
    """Logarithms, of nothing a finite number that stands for what is impossible: no count times it is not a number."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return np.asarray(np.maximum(logs, CLAMPED, out=logs))


def _lengths(documents: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Words of a usual document; a group without documents has the whole table's."""
    total, mass = words.sum(axis=-1), documents.sum()
    whole = total.sum() / mass if mass > 0 else 0.0
    return np.where(documents > 0, total / np.where(documents > 0, documents, 1.0), whole)


def _weights(shares: np.ndarray, sign: float) -> np.ndarray:
    """(groups x (1 + words)) logarithms, nothing for the document itself; groups side by side in memory."""
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
