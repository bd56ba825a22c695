"""Markov: a column of sequences, each step of which depends on the steps before it."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.formulas import CLAMPED
from softcount.core.lazy import entr, gammaln
from softcount.core.special import log_of, log_rising
from softcount.errors import DataError
from softcount.families.base import register, scalar_prior
from softcount.families.categorical import Shares, estimate_shares, prior_counts
from softcount.families.density import Columns, Rng
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.families.text import Bags, BagsDensity, usual_lengths
from softcount.text import Reading, Words
from softcount.text.count_words import TO, symbols_behind, symbols_in

LONGEST = 8
"""Largest order."""
WORDS = r"\S+"
"""Pattern of a step if text is read as words."""


class MarkovDensity(BagsDensity):
    """Transitions, whose probabilities are (groups x contexts x steps)."""

    family: Markov

    def score(self, column: Any) -> np.ndarray:
        if "alpha" not in self.own:
            return super().score(column)
        from scipy import sparse

        alpha, steps = self.own["alpha"], self.own["alpha"].shape[2]
        cells = column[:, 1:].tocoo()
        flat = alpha.reshape(len(alpha), -1)
        shape = (column.shape[0], alpha.shape[1])
        contexts = sparse.csr_matrix((cells.data, (cells.row, cells.col // steps)), shape=shape).tocoo()
        out = np.empty((column.shape[0], len(alpha)))
        for g, own in enumerate(flat):
            met = np.asarray(log_rising(own[cells.col], cells.data))
            seen = np.asarray(log_rising(alpha[g].sum(axis=-1)[contexts.col], contexts.data))
            out[:, g] = np.bincount(cells.row, met, len(out)) - np.bincount(contexts.row, seen, len(out))
        return out

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence of a sequence of typical length, with the contexts as frequent as in the group."""
        table, often = self.own["probability"], self._often
        whole = np.tensordot(shares, often[:, :, None] * table, 1)
        whole = whole / np.maximum(whole.sum(axis=-1, keepdims=True), SMALLEST)
        own, all_of = (np.log(np.where(part > 0, part, 1.0)) for part in (table, whole))
        nats = (often[:, :, None] * table * (own - all_of)).sum(axis=(1, 2))
        return np.asarray(self.own.get("length", np.ones(len(table))) * nats)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy of one step: the length of a sequence is not modelled."""
        return np.asarray((self._often * entr(self.own["probability"]).sum(axis=-1)).sum(axis=-1))

    @property
    def _often(self) -> np.ndarray:
        """The (groups x contexts) share of each context; equal shares if no sequences were counted."""
        table = self.own["probability"]
        return self.own.get("often", np.full(table.shape[:2], 1.0 / max(table.shape[1], 1)))

    def draw_columns(self, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None) -> Columns:
        """Draw sequences as text, with lengths typical of their group."""
        symbols = symbols_in([str(word) for word in self.setting.levels])
        if not symbols:
            return [["" for _ in groups]]
        steps, words = len(symbols), [str(word) for word in self.setting.levels]
        # By context: its position, and the steps that may follow.
        after: dict[tuple[str, ...], tuple[int, list[str]]] = {}
        for at in range(0, len(words), steps):
            block = [word.split(TO) for word in words[at : at + steps]]
            after[tuple(block[0][:-1])] = (at // steps, [parts[-1] for parts in block])
        edges = np.cumsum(self.own["probability"], axis=-1)
        lengths = rng.poisson(self.own.get("length", np.ones(len(edges)))[groups])
        joint = "" if self.family.steps == "characters" and all(len(symbol) == 1 for symbol in symbols) else " "
        lines = []
        for g, length in zip(groups, lengths, strict=True):
            drawn = [""] * self.family.order
            for _ in range(length):
                place, names = after[tuple(drawn[-self.family.order :])]
                own = edges[g, place]
                at = int(np.searchsorted(own, rng.random() * own[-1], "right"))
                drawn.append(names[min(at, len(names) - 1)])
            lines.append(joint.join(drawn[self.family.order :]))
        return [lines]

    def score_words(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return (groups x transitions) contributions to the log-probability of a sequence."""
        if "alpha" not in self.own:
            return np.asarray(counts * self.family.natural(self.own)[:, places + 1])
        alpha, steps = self.own["alpha"], self.own["alpha"].shape[2]
        flat, totals = alpha.reshape(len(alpha), -1)[:, places], alpha.sum(axis=-1)[:, places // steps]
        of = np.bincount(places // steps, counts, minlength=alpha.shape[1])[places // steps]
        each = (gammaln(totals + of) - gammaln(totals)) / np.maximum(of, 1.0)
        return np.asarray(gammaln(flat + counts) - gammaln(flat) - counts * each)


@cache
def _facts(order: int, steps: str) -> Facts:
    return replace(
        Bags.facts, title="Markov chain" if order == 1 else f"Markov chain of order {order}",
        reading=Reading("steps", (order, order), WORDS if steps == "words" else None, lowercase=False),
        suffix={"order": "2", "steps": "words"},
    )  # fmt: skip


@register
class Markov(Bags, Shares, Struct, frozen=True):
    """Markov chain: a column of sequences, each step drawn given the steps before it.

    A cell is a list of steps, or text that is read as characters or as words.

    Parameters
    ----------
    order : int, default=1
        Number of previous steps that the probability of a step depends on. The beginning counts as a step.
    steps : {'characters', 'words'}, default='characters'
        Steps of a text. Words are separated by blanks.

    See Also
    --------
    softcount.MarkovChain : A model of sequences by themselves.
    Text : Documents as bags of words.

    Notes
    -----
    A model has `probability` (classes x contexts x steps), the probabilities of the next step. A missing or unseen step
    is ignored. The length of sequences is not modelled. Statistics are the number of sequences and that of each
    transition.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"name": ["anna", "hanna", "emma", "otto", "bodo", "udo"]}
    >>> model = NaiveBayes(kinds={"name": families.Markov()}).fit(rows, ["f", "f", "f", "m", "m", "m"])
    >>> model.predict({"name": ["nana", "odo"]}).tolist()
    ['f', 'm']
    """

    order: int = 1
    steps: Literal["characters", "words"] = "characters"

    name = "markov"
    _density = MarkovDensity
    nouns = "sequences", "sequences"
    model = "markov"

    def __post_init__(self) -> None:
        if isinstance(self.order, bool) or not isinstance(self.order, int) or not 1 <= self.order <= LONGEST:
            raise DataError(
                f"order={self.order!r}: the order of a column of sequences is a number from 1 to {LONGEST}."
            )
        if self.steps not in ("characters", "words"):
            raise DataError(f"steps={self.steps!r} is not known. Text is read as 'characters' or as 'words'.")

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return _facts(self.order, self.steps)

    def _inner_shape(self, name: str, setting: Setting) -> tuple[int, ...]:
        return self._shape(len(setting.levels))

    def _shape(self, transitions: int) -> tuple[int, int]:
        """Return the number of contexts, and the number of steps that may follow each."""
        steps = symbols_behind(transitions, self.order)
        return (transitions // steps if steps else 0), steps

    def tally(self, stats: Twofold) -> np.ndarray:
        """Return (groups x contexts x steps) counts."""
        return self._blocks(np.maximum(stats.value[:, 1:], 0.0))

    def prior_tally(self, hyper: Hyper, how: How) -> np.ndarray:
        return self._blocks(prior_counts(hyper, how))

    def _blocks(self, table: np.ndarray) -> np.ndarray:
        return table.reshape(*table.shape[:-1], *self._shape(table.shape[-1]))

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        steps = self._shape(len(setting.levels))[1]
        return {"alpha": np.full(len(setting.levels), scalar_prior(prior, self, max(steps, 1), setting.groups))}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        counts, alpha = self.tally(stats), self._blocks(hyper["alpha"])
        length = usual_lengths(np.maximum(stats.value[:, 0], 0.0), counts.sum(axis=(1, 2)))
        more = {"alpha": counts + alpha} if how == "predictive" else {}
        often = estimate_shares(counts.sum(axis=-1), np.zeros(counts.shape[1]), "ml", self.name)
        return {"probability": estimate_shares(counts, alpha, how, self.name), "length": length, "often": often, **more}

    def natural(self, params: Params) -> np.ndarray:
        shares = params["probability"].reshape(len(params["probability"]), -1)
        logs = np.maximum(log_of(shares), CLAMPED)
        return np.concatenate([np.zeros((len(shares), 1)), logs], axis=1)

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        return np.asarray(np.sum(Shares.log_prior(self, params, hyper, how), axis=-1))

    def proper(self, hyper: Hyper) -> Hyper:
        alpha = hyper["alpha"]
        steps = max(self._shape(alpha.shape[-1])[1], 1)
        return {"alpha": alpha if alpha.sum() > 0 else np.full_like(alpha, 1.0 / steps)}


def is_complete(levels: Words, order: int) -> bool:
    """Return whether transitions come context by context, each with the same steps after it."""
    if not len(levels):
        return True
    steps = symbols_behind(len(levels), order)
    if not steps:
        return False
    pairs = [word.rpartition(TO) for word in levels]
    names = [after for _, _, after in pairs[:steps]]
    blocks = ([pairs[at + place] for place in range(steps)] for at in range(0, len(levels) // steps * steps, steps))
    return all(len({before for before, _, _ in block}) == 1 and [x[2] for x in block] == names for block in blocks)
