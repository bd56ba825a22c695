"""What mistakes cost, how frequent classes are and thresholds, as the command line says them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from softcount.cli.named_columns import suggestion
from softcount.cli.outputs import say_note
from softcount.errors import DataError

if TYPE_CHECKING:
    import numpy as np

PRIOR_WORDS = ("uniform", "estimate")


class DecisionRequest(Struct, frozen=True):
    """What was asked: costs as TRUE,DECIDED=COST, shares as CLASS=SHARE or a word, a threshold as CLASS=P."""

    costs: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    threshold: str | None = None

    def __post_init__(self) -> None:
        if self.costs and self.threshold is not None:
            raise click.UsageError("--cost and --threshold each decide by themselves: give one of them")
        if len(self.prior) > 1 and any(text in PRIOR_WORDS for text in self.prior):
            raise click.UsageError("--prior is shares, or one word: uniform, estimate")

    def cost_pairs(self, names: Sequence[Any]) -> dict[tuple[Any, Any], float] | None:
        """Costs by (true class, class decided for); None where nobody asked."""
        return dict(_costs(self.costs, names)) if self.costs else None

    def shares(self, names: Sequence[Any]) -> Any:
        """The prior as the library takes it; None where nobody asked."""
        if len(self.prior) == 1 and self.prior[0] in PRIOR_WORDS:
            return self.prior[0]
        return dict(class_numbers("--prior", self.prior, names)) if self.prior else None

    def reweighted(
        self, logs: Callable[[], np.ndarray], names: Sequence[Any], shares: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """(rows x classes) probabilities under the shares asked for, from those of training; None where nobody asked.

        Shares that were estimated are said.
        """
        import numpy as np

        from softcount.fitted.decisions import ESTIMATE, estimated_shares, with_prior

        prior = self.shares(names)
        if prior is None:
            return None
        found, was = logs(), shares()
        if prior == ESTIMATE:
            prior = estimated_shares(found, was)
            told = ", ".join(f"{name} {share:.4g}" for name, share in list(zip(names, prior, strict=True))[:8])
            say_note(f"shares of the classes, estimated from these rows: {told}")
        return np.asarray(np.exp(with_prior(found, prior, names, was)))

    def choose(self, proba: np.ndarray, names: Sequence[Any]) -> np.ndarray:
        """The place of every row's class."""
        from softcount.fitted.decisions import Decision

        threshold = None if self.threshold is None else dict(class_numbers("--threshold", [self.threshold], names))
        return Decision.of(names, self.cost_pairs(names), threshold)(proba)


def class_numbers(option: str, texts: Iterable[str], names: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """A class and its number for each CLASS=NUMBER; a class may hold "=", a number does not."""
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise click.UsageError(f"{option} {text!r} is not CLASS=NUMBER, such as yes=0.1")
        yield _class(option, name, names), _number(option, value)


def _costs(texts: Iterable[str], names: Sequence[Any]) -> Iterator[tuple[tuple[Any, Any], float]]:
    """Pair and cost of each TRUE,DECIDED=COST; names may hold commas, so the comma that parts two classes counts."""
    known = {str(name) for name in names}
    for text in texts:
        pair, sign, value = text.rpartition("=")
        cuts = [place for place, char in enumerate(pair) if char == ","]
        if not sign or not cuts:
            raise click.UsageError(f"--cost {text!r} is not TRUE,DECIDED=COST, such as ill,well=10")
        both = [cut for cut in cuts if pair[:cut] in known and pair[cut + 1 :] in known]
        cut = (both or cuts)[0]
        true, decided = (_class("--cost", part, names) for part in (pair[:cut], pair[cut + 1 :]))
        yield (true, decided), _number("--cost", value)


def _class(option: str, text: str, names: Sequence[Any]) -> Any:
    known = {str(name): name for name in names}
    if text not in known:
        raise DataError(f"{option}: there is no class {text!r}.\n  {suggestion(text, known)}")
    return known[text]


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is not a number") from None


OPTIONS = (
    click.option(
        "--cost",
        "costs",
        multiple=True,
        metavar="TRUE,DECIDED=N",
        help="What deciding for a class costs where another is true; decide by the lowest expected cost. Mistakes not "
        "named cost 1. May be repeated.",
    ),
    click.option(
        "--prior",
        "prior",
        multiple=True,
        metavar="CLASS=SHARE",
        help="How frequent a class is among these rows, if not as in training; or: uniform, estimate (from the rows "
        "themselves). May be repeated.",
    ),
    click.option(
        "--threshold",
        "threshold",
        metavar="CLASS=P",
        help="Decide for CLASS from this probability on, else for the likeliest other class.",
    ),
)


def decision_options(command: Callable[..., None]) -> Callable[..., None]:
    """How classes are decided for, which the command gets as `decide`."""

    @wraps(command)
    def with_request(costs: tuple[str, ...], prior: tuple[str, ...], threshold: str | None, **asked: Any) -> None:
        command(decide=DecisionRequest(costs, prior, threshold), **asked)

    for option in reversed(OPTIONS):
        with_request = option(with_request)
    return with_request
