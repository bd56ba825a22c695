"""Bayes' rule over named hypotheses: likelihoods, posterior, and its history as a picture."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from msgspec import Struct, field

from softcount.bayes.evidence import RULES, By, best, checked_by, log_weights
from softcount.core.special import Number, log_sum_exp, plain, softmax_rows
from softcount.errors import DataError
from softcount.pictures.chart import PAGE, Axis, Chart, class_lines
from softcount.pictures.drawing import stack
from softcount.pictures.text import axis, printable, spark
from softcount.table.schema import apart, labels

CLOSE = 1e-9
"""How far from one probabilities may sum."""


class Likelihood(Struct, frozen=True):
    """The log-likelihood of observations under one hypothesis, and the values it knows by name.

    >>> likelihood_of("fair", {"heads": 0.5, "tails": 0.5}).logs(["heads", "tails"]).round(4).tolist()
    [-0.6931, -0.6931]
    >>> likelihood_of("flat", lambda x: 0.25 if 0 <= x <= 4 else 0.0).logs([1.5, 7.0]).round(4).tolist()
    [-1.3863, -inf]
    """

    logs: Callable[[Any], np.ndarray]
    known: tuple[Hashable, ...] = ()
    takes_tables: bool = False


def likelihood_of(name: Hashable, said: Any) -> Likelihood:
    """From a mapping of value to probability, a fitted model, or a function of a value."""
    if isinstance(said, Mapping):
        shares = {value: checked_share(share, f"{name!r} gives {value!r}") for value, share in said.items()}
        sums_to_one(shares.values(), f"the probabilities of the values under {name!r}")
        return Likelihood(partial(_level_logs, shares), tuple(shares))
    if hasattr(said, "score_samples") or hasattr(said, "log_likelihood"):
        return Likelihood(partial(_model_logs, name, said), takes_tables=True)
    if callable(said):
        return Likelihood(partial(_function_logs, name, said))
    raise DataError(
        f"the likelihood of {name!r} is {said!r}. "
        "Give the probability of each value, a function of a value, or a fitted model."
    )


def _level_logs(shares: Mapping[Any, float], seen: Any) -> np.ndarray:
    return logs_of([shares.get(value, 0.0) for value in seen])


def _function_logs(name: Hashable, function: Callable[[Any], Any], seen: Any) -> np.ndarray:
    return logs_of([checked_likelihood(function(value), name, repr(value)) for value in seen])


def _model_logs(name: Hashable, model: Any, seen: Any) -> np.ndarray:
    """The log-density of every row, or of all rows together if the model gives no more."""
    logs = np.asarray((getattr(model, "score_samples", None) or model.log_likelihood)(seen), dtype=float)
    if logs.ndim > 1:
        raise DataError(f"the model {name!r} gives scores of shape {logs.shape}. One for each row is needed.")
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise DataError(f"the model {name!r} gives a log-likelihood of {logs.max():g}. It must be below inf.")
    return logs


def checked_share(share: Any, told: str) -> float:
    if not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise DataError(f"{told} the probability {share!r}. A probability is a number from 0 to 1.")
    return float(share)


def checked_likelihood(said: Any, name: Hashable, what: str) -> float:
    try:
        likelihood = float(said)
    except (TypeError, ValueError):
        likelihood = math.nan
    if not 0 <= likelihood < math.inf:
        raise DataError(f"{name!r} gives {what} the likelihood {said!r}. A likelihood is finite and 0 or more.")
    return likelihood


def sums_to_one(shares: Any, told: str) -> None:
    total = math.fsum(shares)
    if abs(total - 1) > CLOSE:
        raise DataError(f"{told} sum to {total:.10g}. Probabilities sum to one: divide each by their sum.")


def logs_of(likelihoods: list[float]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array(likelihoods, dtype=float)))


# Pictures of the posterior after each observation: block characters for a terminal, and SVG.

ACROSS = 60
"""Columns of a drawing in a terminal."""
LONGEST = 20


class BeliefCourse(Struct, frozen=True):
    """Posteriors after 0, 1, 2, ... observations by hypothesis, and the predictions of the next one by rule."""

    posteriors: Mapping[str, np.ndarray]
    predictions: Mapping[str, np.ndarray] = field(default_factory=dict)
    predicted: str = ""

    def text(self) -> str:
        last = len(next(iter(self.posteriors.values()))) - 1
        lines = [f"posterior after 0 to {last} observations (a whole block is 1)"]
        lines += _lines(self.posteriors)
        if self.predictions:
            lines += [f"prediction that {printable(self.predicted)} comes next", *_lines(self.predictions)]
        width = min(ACROSS, last + 1)
        marks = axis(0, last, width) if last and width >= 10 else []
        return "\n".join([*lines, *(" " * (LONGEST + 1) + mark for mark in marks)])

    def svg(self) -> str:
        charts = [_chart("Posterior of each hypothesis", "posterior", self.posteriors)]
        if self.predictions:
            charts.append(_chart(f"Prediction that {self.predicted} comes next", "prediction", self.predictions))
        return stack([chart.draw() for chart in charts], charts[0].title).svg_file()


def _lines(courses: Mapping[str, np.ndarray]) -> list[str]:
    names = [printable(name) for name in courses]
    cut = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names]
    top = max(1.0, *(float(np.nan_to_num(course).max()) for course in courses.values()))
    return [f"{name:<{LONGEST}} {spark(_sampled(own), top)}" for name, own in zip(cut, courses.values(), strict=True)]


def _sampled(course: Sequence[float] | np.ndarray) -> np.ndarray:
    """At most ACROSS of its numbers, evenly spaced, with the first and the last."""
    course = np.asarray(course, dtype=float)
    if len(course) <= ACROSS:
        return course
    return np.asarray(course[np.round(np.linspace(0, len(course) - 1, ACROSS)).astype(int)])


def _chart(title: str, y_name: str, courses: Mapping[str, np.ndarray]) -> Chart:
    """Lines over the number of observations."""
    known = {name: np.asarray(course, dtype=float) for name, course in courses.items() if np.isfinite(course).any()}
    highest = max(1.0, *(float(np.nanmax(course)) for course in known.values()))
    lines = class_lines(list(known), np.arange(max(map(len, known.values()))), list(known.values()))
    axes = Axis("observations"), Axis(y_name, (0.0, 1.02 * highest))
    return Chart(title, lines, *axes, list(known), title, PAGE, 300)


# A finite set of hypotheses with a prior, and their posterior after every observation.

SHOWN = 20
"""Hypotheses that are printed, the most probable ones."""


class Hypotheses:
    """Hypotheses that exclude each other, with a prior probability each and a likelihood for what may be seen.

    A likelihood is a mapping of value to probability, a function of a value (a probability or a density), or a fitted
    model, for which rows of a table are observed. `observe` gives a new object; this one stays as it is.

    >>> bags = Hypotheses(
    ...     prior={"all cherry": 0.25, "half": 0.5, "all lime": 0.25},
    ...     likelihood={"all cherry": {"cherry": 1}, "half": {"cherry": 0.5, "lime": 0.5}, "all lime": {"lime": 1}},
    ... )
    >>> after = bags.observe(["lime", "lime"])
    >>> print(after)
    3 hypotheses after 2 observations
                prior  posterior      bits
    all cherry   0.25   0.000000       inf
    half          0.5   0.333333    3.0000
    all lime     0.25   0.666667    2.0000  MAP, ML
    >>> round(after.predict("lime"), 6), after.predict("lime", by="map"), after.map
    (0.833333, 1.0, 'all lime')
    """

    def __init__(self, prior: Mapping[Any, float], likelihood: Mapping[Any, Any]) -> None:
        self._names = names = _same_names(prior, likelihood)
        self._prior = {name: checked_share(prior[name], f"the prior gives {name!r}") for name in names}
        sums_to_one(self._prior.values(), "the prior probabilities of the hypotheses")
        self._judges: list[Likelihood] = [likelihood_of(name, likelihood[name]) for name in names]
        self._logs = np.zeros((0, len(names)))
        self._seen: tuple[str | None, ...] = ()

    def observe(self, seen: Any) -> Hypotheses:
        """The hypotheses after more observations: a list of values, or the rows of a table if fitted models judge.

        An observation without a value is given by its likelihood under each hypothesis: a mapping of hypothesis to
        likelihood, or a function of the hypothesis.
        """
        logs, shown = self._judged(seen)
        after = copy.copy(self)
        after._logs, after._seen = np.vstack([self._logs, logs]), (*self._seen, *shown)
        after._refuse_the_impossible()
        return after

    # What is believed now

    @property
    def prior(self) -> dict[Any, float]:
        """Hypothesis -> probability before any observation."""
        return dict(self._prior)

    @property
    def posterior(self) -> dict[Any, float]:
        """Hypothesis -> probability given all observations."""
        shares, _ = softmax_rows(self._joint[None])
        return self._by_name(shares[0])

    @property
    def map(self) -> Any:
        """The most probable hypothesis; of those within a billionth of it, the first."""
        return self._names[best(self._joint[None])[0]]

    @property
    def ml(self) -> Any:
        """The hypothesis that makes what was seen most probable, whatever its prior; of equals, the first."""
        self._needs_observations()
        return self._names[best(self._log_likelihood[None])[0]]

    @property
    def description_length(self) -> dict[Any, float]:
        """Hypothesis -> bits for itself and for what was seen under it: -log2 P(h) - log2 P(seen | h).

        The shortest is the most probable hypothesis. Of densities, bits count from the unit the values are in.
        """
        return self._by_name(0.0 - self._joint / np.log(2))

    # What comes next

    def predict(self, x: Any, by: By = "all") -> Number:
        """The probability (or density) of x, coming next: weighted by all hypotheses, or as `by` says.

        `by="map"` asks the most probable hypothesis alone, `by="ml"` the one of maximum likelihood, and a number k the
        k most probable, weighed among themselves. Where models judge, x is a table and each of its rows is answered.
        """
        return plain(np.exp(self.predict_log(x, by)))

    def predict_log(self, x: Any, by: By = "all") -> Number:
        """The logarithm of `predict`, exact where a density is too small for a float."""
        checked_by(by, len(self._prior))
        if by == "ml":
            self._needs_observations()
        shares = log_weights(by, self._joint[None], self._log_likelihood[None])[0]
        return log_sum_exp(self._next(x) + shares, axis=-1)

    def predictions(self, x: Any) -> Any:
        """An Arrow table of the Bayes, MAP and ML predictions of x after 0, 1, 2, ... observations.

        Before the first one there is no hypothesis of maximum likelihood: null.
        """
        import pyarrow as pa

        return pa.table({"observed": np.arange(len(self._logs) + 1), **self._predicted(x)})

    @property
    def history(self) -> Any:
        """An Arrow table with a line for the prior and one after each observation.

        It has the posterior of each hypothesis under its name and, for every value that a table of probabilities names,
        the Bayes, MAP and ML predictions that it comes next: "bayes lime", "map lime", "ml lime".
        """
        import pyarrow as pa

        joint, _ = self._courses()
        posterior, _ = softmax_rows(joint)
        theirs = labels(self._names)
        columns: dict[str, Any] = dict(zip(theirs.values(), posterior.T, strict=True))
        ours = {"observed": np.arange(len(joint)), "value": pa.array([None, *self._seen], pa.string())}
        columns = {**{apart(name, columns): column for name, column in ours.items()}, **columns}
        for value in () if self._by_models else self._known:
            for rule, column in self._predicted(value).items():
                columns[apart(f"{rule} {value}", columns)] = column
        return pa.table(columns)

    def history_text(self, of: Any = None) -> str:
        """The history drawn for a terminal: how each posterior goes, and each rule's prediction of a value.

        `of` is the value that is predicted: without it the last that was seen, where tables of probabilities judge.

        >>> coins = Hypotheses({"fair": 0.9, "bent": 0.1}, {"fair": {"h": 0.5, "t": 0.5}, "bent": {"h": 0.9, "t": 0.1}})
        >>> print(coins.observe(["h"] * 11).history_text())
        posterior after 0 to 11 observations (a whole block is 1)
        fair                 ▇▇▆▅▄▃▂▁▁
        bent                 ▁▁▂▃▄▅▆▇▇███
        prediction that h comes next
        bayes                ▄▅▅▅▆▆▇▇▇▇▇▇
        map                  ▄▄▄▄▇▇▇▇▇▇▇▇
        ml                    ▇▇▇▇▇▇▇▇▇▇▇
                             ┬────┬────┬─
                             0    5   10
        """
        return "\n".join(line.rstrip() for line in self._course(of).text().split("\n"))

    def history_svg(self, of: Any = None) -> str:
        """The history as a picture, the text of an SVG file: posteriors, and below them the predictions of a value."""
        return self._course(of).svg()

    def _course(self, of: Any) -> BeliefCourse:
        joint, _ = self._courses()
        shares, _ = softmax_rows(joint)
        posteriors = dict(zip(labels(self._names).values(), shares.T, strict=True))
        if of is None and self._known and self._seen and not self._by_models:
            of = next((value for value in self._known if str(value) == self._seen[-1]), None)
        if of is None:
            return BeliefCourse(posteriors)
        predicted = {rule: column.to_numpy(zero_copy_only=False) for rule, column in self._predicted(of).items()}
        return BeliefCourse(posteriors, predicted, "the row" if self._by_models else str(of))

    def __repr__(self) -> str:
        return f"Hypotheses({', '.join(map(repr, self._names))}; {len(self._logs)} observations)"

    def __str__(self) -> str:
        n, posterior, bits = len(self._logs), self.posterior, self.description_length
        kept = sorted(best(self._joint[None], SHOWN)[0]) if len(posterior) > SHOWN else range(len(posterior))
        marks = {self.map: ["MAP"]}
        if n:
            marks.setdefault(self.ml, []).append("ML")
        lines = [["", "prior", "posterior", "bits", ""]]
        for name in (self._names[place] for place in kept):
            numbers = (f"{self._prior[name]:.4g}", f"{posterior[name]:.6f}", f"{bits[name]:.4f}")
            text = str(name)
            lines.append([(text if text.isprintable() else ascii(text)), *numbers, ", ".join(marks.get(name, []))])
        widths = [max(len(line[j]) for line in lines) for j in range(4)]
        told = [
            f"{line[0]:<{widths[0]}}  "
            + "  ".join(cell.rjust(width) for cell, width in zip(line[1:4], widths[1:], strict=True))
            + f"  {line[4]}"
            for line in lines
        ]
        head = f"{len(posterior)} hypotheses after {n} observation{'' if n == 1 else 's'}"
        more = [f"and {len(posterior) - SHOWN} less probable ones"] if len(posterior) > SHOWN else []
        return "\n".join(line.rstrip() for line in [head, *told, *more])

    # How it is found

    @property
    def _log_likelihood(self) -> np.ndarray:
        # Each hypothesis in a row of its own: NumPy then sums in pairs, and 100,000 terms keep 15 digits.
        return np.asarray(np.ascontiguousarray(self._logs.T).sum(axis=1))

    @property
    def _joint(self) -> np.ndarray:
        """log P(h) + log P(seen | h) of each hypothesis."""
        return np.asarray(logs_of(list(self._prior.values())) + self._log_likelihood)

    @property
    def _known(self) -> dict[Any, None]:
        return dict.fromkeys(value for judge in self._judges for value in judge.known)

    def _by_name(self, numbers: np.ndarray) -> dict[Any, float]:
        return dict(zip(self._prior, numbers.tolist(), strict=True))

    def _courses(self) -> tuple[np.ndarray, np.ndarray]:
        """Joint log-probabilities and log-likelihoods after 0, 1, 2, ... observations, a column per hypothesis."""
        likelihood = np.vstack([np.zeros(len(self._prior)), self._logs.cumsum(axis=0)])
        return likelihood + logs_of(list(self._prior.values())), likelihood

    def _predicted(self, x: Any) -> dict[str, Any]:
        """Each rule's prediction of x after 0, 1, 2, ... observations, as Arrow arrays."""
        import pyarrow as pa

        coming = np.exp(self._next(x))
        if coming.ndim == 2:
            if len(coming) != 1:
                raise DataError(f"predictions are of one row, and x has {len(coming)}. Ask for one row at a time.")
            coming = coming[0]
        joint, likelihood = self._courses()
        nothing = np.arange(len(joint)) == 0
        return {
            rule: pa.array(np.exp(log_weights(by, joint, likelihood)) @ coming, mask=nothing if by == "ml" else None)
            for rule, by in RULES.items()
        }

    def _next(self, x: Any) -> np.ndarray:
        """The log-likelihood of x under each hypothesis, on the last axis; rows of a table before it."""
        return self._log_likelihoods(x) if self._by_models else np.asarray(self._log_likelihoods([x])[0])

    @property
    def _by_models(self) -> bool:
        return any(judge.takes_tables for judge in self._judges)

    def _judged(self, seen: Any) -> tuple[np.ndarray, list[str | None]]:
        """(observations x hypotheses) log-likelihoods, and each observation as text if it has one."""
        if callable(seen):
            return self._told({name: seen(name) for name in self._prior}), [None]
        if isinstance(seen, Mapping) and all(isinstance(said, Real) for said in seen.values()):
            return self._told(seen), [None]
        if self._by_models:
            logs = self._log_likelihoods(seen)
            return logs, [None] * len(logs)
        values = _listed(seen)
        return self._log_likelihoods(values), [str(value) for value in values]

    def _told(self, likelihoods: Mapping[Any, Any]) -> np.ndarray:
        """One observation, given by its likelihood under each hypothesis."""
        _same_names(self._prior, likelihoods, "what was seen")
        return logs_of([checked_likelihood(likelihoods[h], h, "what was seen") for h in self._prior])[None]

    def _log_likelihoods(self, seen: Any) -> np.ndarray:
        """(rows x hypotheses); one row in all if a model gives only the log-likelihood of all rows."""
        values = [] if all(judge.takes_tables for judge in self._judges) else _listed(seen)
        known = self._known
        for place, value in enumerate(values, 1):
            if known and not _is_one_of(value, known):
                names = ", ".join(map(repr, known))
                raise DataError(f"no hypothesis knows the value {value!r} (observation {place}). Known: {names}.")
        parts = [judge.logs(seen if judge.takes_tables else values) for judge in self._judges]
        if any(part.ndim == 0 for part in parts):
            parts = [part.sum().reshape(1) for part in parts]
        if len({part.shape for part in parts}) > 1:
            told = ", ".join(f"{name!r} {len(part)}" for name, part in zip(self._prior, parts, strict=True))
            raise DataError(f"the hypotheses see different numbers of rows ({told}). Give all of them the same rows.")
        return np.stack(parts, axis=-1)

    def _refuse_the_impossible(self) -> None:
        if np.isfinite(self._joint).any():
            return
        joint, _ = self._courses()
        place = int(np.isneginf(joint).all(axis=1).argmax())
        what = self._seen[place - 1]
        told = "" if what is None else f", {what!r},"
        raise DataError(
            f"observation {place}{told} is impossible under every hypothesis that was still possible. "
            "Check it, or add a hypothesis under which it can happen."
        )

    def _needs_observations(self) -> None:
        if not len(self._logs):
            raise DataError("nothing was observed, so no hypothesis is the likeliest: observe first, or ask for map.")


def _same_names(prior: Any, given: Any, what: str = "likelihood") -> list[Any]:
    """The hypotheses, which both mappings must name."""
    for said, mapping in (("prior", prior), (what, given)):
        if not isinstance(mapping, Mapping):
            raise DataError(f"{said} is {mapping!r}. Give a mapping with an entry for each hypothesis.")
    if not prior:
        raise DataError("there are no hypotheses: give at least one, with its prior and its likelihood.")
    lacking = [name for name in prior if name not in given]
    if lacking:
        raise DataError(f"{what} says nothing of {lacking[0]!r}. Give an entry for each hypothesis.")
    strangers = [name for name in given if name not in prior]
    if strangers:
        raise DataError(f"{what} names {strangers[0]!r}, which the prior does not. The prior has an entry for each.")
    return list(prior)


def _listed(seen: Any) -> list[Any]:
    """The values, one by one; a single text, a table or a mapping is refused."""
    tabular = isinstance(seen, Mapping) or hasattr(seen, "columns") or getattr(seen, "ndim", 1) != 1
    if isinstance(seen, str | bytes) or tabular or not hasattr(seen, "__iter__"):
        raise DataError(f"what is observed is {seen!r}. Give a list of values, also for a single one: [value].")
    return list(seen.to_pylist() if hasattr(seen, "to_pylist") else seen)


def _is_one_of(value: Any, known: Mapping[Any, None]) -> bool:
    try:
        return value in known
    except TypeError:  # a list, or a tuple with one inside, is nobody's key
        return False
