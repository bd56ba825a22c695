"""Bayes' rule over named hypotheses: likelihoods, posterior, predictions, and pictures of the history."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.special import Number, log_of, log_sum_exp, plain, softmax_rows
from softcount.errors import DataError
from softcount.pictures.chart import PAGE, Axis, Chart, class_lines
from softcount.pictures.drawing import stack
from softcount.pictures.text import axis, printable, shorten, spark
from softcount.table.schema import apart, labels

CLOSE = 1e-9
"""Tolerance for probabilities that must sum to one."""
TIE = 9
"""Decimals to which log-probabilities must agree to be a tie.

Sums of the same logarithms in another order agree this closely.
"""
SHOWN = 20
"""Maximum number of hypotheses that are printed, most probable first."""
ACROSS = 60
"""Width of a terminal drawing in characters."""
LONGEST = 20
"""Maximum length of a name in a terminal drawing."""

By = str | int
"""`"all"`, `"map"`, `"ml"`, or the number of most probable hypotheses to use."""

RULES: dict[str, By] = {"bayes": "all", "map": "map", "ml": "ml"}
"""The three predictions in a history."""


# -- likelihoods


class Likelihood(Struct, frozen=True):
    """The likelihood of one hypothesis: a mapping of value to probability, a fitted model, or a function of a value.

    >>> Likelihood("fair", {"heads": 0.5, "tails": 0.5}).logs(["heads", "tails"]).round(4).tolist()
    [-0.6931, -0.6931]
    >>> Likelihood("flat", lambda x: 0.25 if 0 <= x <= 4 else 0.0).logs([1.5, 7.0]).round(4).tolist()
    [-1.3863, -inf]
    """

    name: Hashable
    given: Any

    def __post_init__(self) -> None:
        if isinstance(self.given, Mapping):
            for value, share in self.given.items():
                check_share(share, f"{self.name!r} gives {value!r}")
            check_sum(self.given.values(), f"the probabilities of the values under {self.name!r}")
        elif not self.is_model and not callable(self.given):
            raise DataError(
                f"the likelihood of {self.name!r} is {self.given!r}. "
                "Give the probability of each value, a function of a value, or a fitted model."
            )

    @property
    def is_model(self) -> bool:
        """Whether the likelihood is a fitted model, which scores rows of a table."""
        return hasattr(self.given, "score_samples") or hasattr(self.given, "log_likelihood")

    def logs(self, seen: Any) -> np.ndarray:
        """Return the log-likelihood of every observation, or of all rows together if the model gives only the sum."""
        if isinstance(self.given, Mapping):
            return log_of([float(self.given.get(value, 0.0)) for value in seen])
        if not self.is_model:
            return log_of([checked_likelihood(self.given(value), self.name, repr(value)) for value in seen])
        model = self.given
        logs = np.asarray((getattr(model, "score_samples", None) or model.log_likelihood)(seen), dtype=float)
        if logs.ndim > 1:
            raise DataError(f"the model {self.name!r} gives scores of shape {logs.shape}. One for each row is needed.")
        if np.isnan(logs).any() or np.isposinf(logs).any():
            raise DataError(f"the model {self.name!r} gives a log-likelihood of {logs.max():g}. It must be below inf.")
        return logs


def check_share(share: Any, what: str) -> None:
    if not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise DataError(f"{what} the probability {share!r}. A probability is a number from 0 to 1.")


def check_sum(shares: Any, what: str) -> None:
    total = math.fsum(shares)
    if abs(total - 1) > CLOSE:
        raise DataError(f"{what} sum to {total:.10g}. Probabilities sum to one: divide each by their sum.")


def checked_likelihood(given: Any, name: Hashable, what: str) -> float:
    try:
        likelihood = float(given)
    except (TypeError, ValueError):
        likelihood = math.nan
    if not 0 <= likelihood < math.inf:
        raise DataError(f"{name!r} gives {what} the likelihood {given!r}. A likelihood is finite and 0 or more.")
    return likelihood


# -- weights of hypotheses in a prediction: their posteriors, or only the best one


def best(logs: np.ndarray, count: int = 1) -> np.ndarray:
    """Return the indices of the largest values in each row, largest first; ties keep their order.

    With `count=1` the second axis is dropped.

    >>> best(np.log([[0.2, 0.4, 0.4]])), best(np.log([[0.2, 0.4, 0.4]]), 2)
    (array([1]), array([[1, 2]]))
    """
    below = np.round(logs - logs.max(axis=1, keepdims=True), TIE)
    order = np.argsort(-below, axis=1, kind="stable")
    return np.asarray(order[:, 0] if count == 1 else order[:, :count])


def log_weights(by: By, joint: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """Return (rows x hypotheses) log-weights that sum to one, from joint log-probabilities and log-likelihoods."""
    logs = likelihood if by == "ml" else joint
    if by != "all":
        chosen = best(logs, 1 if by in ("map", "ml") else int(by)).reshape(len(logs), -1)
        kept = np.full(logs.shape, -np.inf)
        np.put_along_axis(kept, chosen, np.take_along_axis(logs, chosen, axis=1), axis=1)
        logs = kept
    return np.asarray(logs - np.asarray(log_sum_exp(logs, axis=1))[:, None])


# -- pictures of courses: by name, the values after 0, 1, 2, ... observations


def _sparklines(courses: Mapping[str, np.ndarray]) -> list[str]:
    """Return one line of block characters per course; longer courses are thinned to ACROSS values."""
    top, lines = max(1.0, *(float(np.nan_to_num(course).max()) for course in courses.values())), []
    for name, course in zip(map(printable, courses), courses.values(), strict=True):
        places = np.round(np.linspace(0, len(course) - 1, min(ACROSS, len(course)))).astype(int)
        lines.append(f"{shorten(name, LONGEST):<{LONGEST}} {spark(course[places], top)}")
    return lines


def _chart(title: str, y_name: str, courses: Mapping[str, np.ndarray]) -> Chart:
    known = {name: course for name, course in courses.items() if np.isfinite(course).any()}
    highest = max(1.0, *(float(np.nanmax(course)) for course in known.values()))
    lines = class_lines(list(known), np.arange(max(map(len, known.values()))), list(known.values()))
    axes = Axis("observations"), Axis(y_name, (0.0, 1.02 * highest))
    return Chart(title, lines, *axes, list(known), title, PAGE, 300)


class Hypotheses:
    """Mutually exclusive hypotheses, each with a prior probability and a likelihood of observations.

    The posterior follows from Bayes' rule: p(h | seen) is proportional to p(h) * p(seen | h). `observe` returns a new
    object and leaves this one unchanged.

    Parameters
    ----------
    prior : dict
        Probability of each hypothesis; they sum to 1.
    likelihood : dict
        For each hypothesis a dict of value to probability, a function of a value (a probability or a density), or a
        fitted model, for which rows of a table are observed.

    See Also
    --------
    average : Averages fitted models by their marginal likelihood.
    softcount.priors.Beta : A hypothesis for every share between 0 and 1.

    References
    ----------
    .. [1] S. Russell and P. Norvig (2021). Artificial Intelligence: A Modern Approach, fourth edition. Pearson. Section
       20.1.

    Examples
    --------
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
        _check_names(prior, likelihood)
        for name, share in prior.items():
            check_share(share, f"the prior gives {name!r}")
        check_sum(prior.values(), "the prior probabilities of the hypotheses")
        self._names = list(prior)
        self._prior = {name: float(share) for name, share in prior.items()}
        self._likelihoods = [Likelihood(name, likelihood[name]) for name in prior]
        self._by_models = any(own.is_model for own in self._likelihoods)
        tables = [own.given for own in self._likelihoods if isinstance(own.given, Mapping)]
        self._known = dict.fromkeys(value for table in tables for value in table)
        self._logs = np.zeros((0, len(prior)))
        self._seen: tuple[str | None, ...] = ()

    def observe(self, seen: Any) -> Hypotheses:
        """Return the hypotheses after more observations.

        Parameters
        ----------
        seen : list, table, dict or function
            Values; rows of a table if the hypotheses are fitted models. An observation without a value is given by its
            likelihood under each hypothesis: a dict of hypothesis to likelihood, or a function of the hypothesis.

        Returns
        -------
        Hypotheses
            The hypotheses, with the posterior given these observations too.

        Raises
        ------
        DataError
            If an observation is impossible under every hypothesis that was still possible.
        """
        values: list[Any] | None = None
        if callable(seen) or (isinstance(seen, Mapping) and all(isinstance(own, Real) for own in seen.values())):
            seen = {name: seen(name) for name in self._prior} if callable(seen) else seen
            _check_names(self._prior, seen, "what was seen")
            logs = log_of([checked_likelihood(seen[name], name, "what was seen") for name in self._prior])[None]
        elif self._by_models:
            logs = self._log_likelihoods(seen)
        else:
            values = _listed(seen)
            logs = self._log_likelihoods(values)
        after = copy.copy(self)
        shown = [None] * len(logs) if values is None else [str(value) for value in values]
        after._logs, after._seen = np.vstack([self._logs, logs]), (*self._seen, *shown)
        if not np.isfinite(after._joint).any():
            place = int(np.isneginf(after._courses()[0]).all(axis=1).argmax())
            value = after._seen[place - 1]
            which = f"observation {place}" if value is None else f"observation {place}, {value!r},"
            raise DataError(
                f"{which} is impossible under every hypothesis that was still possible. "
                "Check it, or add a hypothesis under which it can happen."
            )
        return after

    # Current beliefs

    @property
    def prior(self) -> dict[Any, float]:
        """Hypothesis -> probability before any observation."""
        return dict(self._prior)

    @property
    def posterior(self) -> dict[Any, float]:
        """Hypothesis -> probability given all observations."""
        shares, _ = softmax_rows(self._joint[None])
        return dict(zip(self._names, shares[0].tolist(), strict=True))

    @property
    def map(self) -> Any:
        """The most probable hypothesis; ties within 1e-9 of log-probability go to the first."""
        return self._names[best(self._joint[None])[0]]

    @property
    def ml(self) -> Any:
        """The hypothesis of maximum likelihood, regardless of its prior; ties go to the first."""
        self._needs_observations()
        return self._names[best(self._log_likelihood[None])[0]]

    @property
    def description_length(self) -> dict[Any, float]:
        """Hypothesis -> bits for the hypothesis and the observations: -log2 P(h) - log2 P(seen given h).

        The shortest description belongs to the most probable hypothesis. With densities, the bits depend on the unit of
        the values.
        """
        return dict(zip(self._names, (0.0 - self._joint / np.log(2)).tolist(), strict=True))

    # Predictions

    def predict(self, x: Any, by: By = "all") -> Number:
        """Return the probability (or density) that a value comes next.

        Parameters
        ----------
        x : value or table
            The value, or rows if the hypotheses are models.
        by : {'all', 'map', 'ml'} or int, default='all'
            Average over all hypotheses with their posterior probabilities, the most probable hypothesis alone, that of
            maximum likelihood, or the k most probable.

        Returns
        -------
        float or ndarray of shape (n_rows,)
            The probability, one for each row if the hypotheses are models.
        """
        return plain(np.exp(self.predict_log(x, by)))

    def predict_log(self, x: Any, by: By = "all") -> Number:
        """Return the logarithm of `predict`, which stays exact if a density underflows.

        Parameters
        ----------
        x : value or table
            The value, or rows if the hypotheses are models.
        by : {'all', 'map', 'ml'} or int, default='all'
            Average over all hypotheses with their posterior probabilities, the most probable hypothesis alone, that of
            maximum likelihood, or the k most probable.

        Returns
        -------
        float or ndarray of shape (n_rows,)
            The log-probability.
        """
        count = len(self._prior)
        if not (isinstance(by, int) and not isinstance(by, bool) and 1 <= by <= count) and by not in RULES.values():
            raise DataError(
                f"by is {by!r}. Predictions are by 'all', 'map', 'ml', or the best 1 to {count} hypotheses."
            )
        if by == "ml":
            self._needs_observations()
        shares = log_weights(by, self._joint[None], self._log_likelihood[None])[0]
        return log_sum_exp(self._next(x) + shares, axis=-1)

    def predictions(self, x: Any) -> Any:
        """Return the predictions of a value after 0, 1, 2, ... observations.

        Parameters
        ----------
        x : value
            The value that comes next.

        Returns
        -------
        Arrow table
            The columns `observed`, `bayes`, `map` and `ml`. The ML prediction is null before the first observation.
        """
        import pyarrow as pa

        return pa.table({"observed": np.arange(len(self._logs) + 1), **self._predicted(x)})

    @property
    def history(self) -> Any:
        """An Arrow table with one row for the prior and one after each observation.

        It has the posterior of each hypothesis under its name. For every value in a table of probabilities, it also has
        the Bayes, MAP and ML predictions that the value comes next: "bayes lime", "map lime", "ml lime".
        """
        import pyarrow as pa

        columns: dict[str, Any] = self._posteriors()
        ours = {"observed": np.arange(len(self._logs) + 1), "value": pa.array([None, *self._seen], pa.string())}
        columns = {**{apart(name, columns): column for name, column in ours.items()}, **columns}
        for value in () if self._by_models else self._known:
            for rule, column in self._predicted(value).items():
                columns[apart(f"{rule} {value}", columns)] = column
        return pa.table(columns)

    def history_text(self, of: Any = None) -> str:
        """Draw the history for a terminal: each posterior, and each rule's prediction of a value.

        Parameters
        ----------
        of : value, default=None
            The value that is predicted. By default, the last observed value, if likelihoods are tables.

        Returns
        -------
        str
            The lines.

        Examples
        --------
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
        last, (predictions, predicted) = len(self._logs), self._drawn_predictions(of)
        lines = [f"posterior after 0 to {last} observations (a whole block is 1)", *_sparklines(self._posteriors())]
        if predictions:
            lines += [f"prediction that {printable(predicted)} comes next", *_sparklines(predictions)]
        width = min(ACROSS, last + 1)
        if last and width >= 10:
            lines += [" " * (LONGEST + 1) + mark for mark in axis(0, last, width)]
        return "\n".join(line.rstrip() for line in lines)

    def history_svg(self, of: Any = None) -> str:
        """Return the history as the text of an SVG file: the posteriors, and below them the predictions of a value.

        Parameters
        ----------
        of : value, default=None
            The value that is predicted. By default, the last observed value, if likelihoods are tables.

        Returns
        -------
        str
            The SVG.
        """
        predictions, predicted = self._drawn_predictions(of)
        charts = [_chart("Posterior of each hypothesis", "posterior", self._posteriors())]
        if predictions:
            charts.append(_chart(f"Prediction that {predicted} comes next", "prediction", predictions))
        return stack([chart.draw() for chart in charts], charts[0].title).svg_file()

    def _drawn_predictions(self, of: Any) -> tuple[dict[str, np.ndarray], str]:
        """Return each rule's predictions of the value to draw, and the value as text; empty if there is none."""
        if of is None and self._seen and not self._by_models:
            of = next((value for value in self._known if str(value) == self._seen[-1]), None)
        if of is None:
            return {}, ""
        predicted = {rule: column.to_numpy(zero_copy_only=False) for rule, column in self._predicted(of).items()}
        return predicted, "the row" if self._by_models else str(of)

    def __repr__(self) -> str:
        return f"Hypotheses({', '.join(map(repr, self._names))}; {len(self._logs)} observations)"

    def __str__(self) -> str:
        n, posterior, bits = len(self._logs), self.posterior, self.description_length
        kept = sorted(best(self._joint[None], SHOWN)[0]) if len(posterior) > SHOWN else range(len(posterior))
        marks = {self.map: ["MAP"]}
        if n:
            marks.setdefault(self.ml, []).append("ML")
        rows = [["", "prior", "posterior", "bits", ""]]
        for name in (self._names[place] for place in kept):
            text = str(name) if str(name).isprintable() else ascii(str(name))
            numbers = (f"{self._prior[name]:.4g}", f"{posterior[name]:.6f}", f"{bits[name]:.4f}")
            rows.append([text, *numbers, ", ".join(marks.get(name, []))])
        first, *widths = (max(len(row[column]) for row in rows) for column in range(4))
        lines = [f"{len(posterior)} hypotheses after {n} observation{'' if n == 1 else 's'}"]
        for text, *cells, mark in rows:
            numbers_text = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"{text:<{first}}  {numbers_text}  {mark}".rstrip())
        if len(posterior) > SHOWN:
            lines.append(f"and {len(posterior) - SHOWN} less probable ones")
        return "\n".join(lines)

    # Computation

    @property
    def _log_likelihood(self) -> np.ndarray:
        # One contiguous row per hypothesis: NumPy then uses pairwise sums, and 100,000 terms keep 15 digits.
        return np.asarray(np.ascontiguousarray(self._logs.T).sum(axis=1))

    @property
    def _joint(self) -> np.ndarray:
        """log P(h) + log P(seen given h) for each hypothesis."""
        return np.asarray(log_of(list(self._prior.values())) + self._log_likelihood)

    def _courses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return joint log-probabilities and log-likelihoods (observations so far x hypotheses), starting at 0."""
        likelihood = np.vstack([np.zeros(len(self._prior)), self._logs.cumsum(axis=0)])
        return likelihood + log_of(list(self._prior.values())), likelihood

    def _posteriors(self) -> dict[str, np.ndarray]:
        """Return the posterior of each hypothesis after 0, 1, 2, ... observations, by name as text."""
        shares, _ = softmax_rows(self._courses()[0])
        return dict(zip(labels(self._names).values(), shares.T, strict=True))

    def _predicted(self, x: Any) -> dict[str, Any]:
        """Return each rule's prediction of x after 0, 1, 2, ... observations, as Arrow arrays."""
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
        """Return the log-likelihood of x with hypotheses on the last axis; models have rows on the first axis."""
        return self._log_likelihoods(x) if self._by_models else np.asarray(self._log_likelihoods([x])[0])

    def _log_likelihoods(self, seen: Any) -> np.ndarray:
        """Return (rows x hypotheses) log-likelihoods; a single row if a model gives only the sum over rows."""
        values = [] if all(own.is_model for own in self._likelihoods) else _listed(seen)
        for place, value in enumerate(values if self._known else (), 1):
            try:
                is_known = value in self._known
            except TypeError:  # a list, or a tuple that contains one, cannot be a key
                is_known = False
            if not is_known:
                names = ", ".join(map(repr, self._known))
                raise DataError(f"no hypothesis knows the value {value!r} (observation {place}). Known: {names}.")
        parts = [own.logs(seen if own.is_model else values) for own in self._likelihoods]
        if any(part.ndim == 0 for part in parts):
            parts = [part.sum().reshape(1) for part in parts]
        if len({part.shape for part in parts}) > 1:
            numbers = ", ".join(f"{name!r} {len(part)}" for name, part in zip(self._prior, parts, strict=True))
            raise DataError(
                f"the hypotheses were given different numbers of rows ({numbers}). Give all of them the same rows."
            )
        return np.stack(parts, axis=-1)

    def _needs_observations(self) -> None:
        if not len(self._logs):
            raise DataError(
                "nothing was observed, so there is no hypothesis of maximum likelihood: observe first, or use map."
            )


def _check_names(prior: Any, given: Any, what: str = "likelihood") -> None:
    """Raise unless both are mappings with an entry for each hypothesis."""
    for name, mapping in (("prior", prior), (what, given)):
        if not isinstance(mapping, Mapping):
            raise DataError(f"{name} is {mapping!r}. Give a mapping with an entry for each hypothesis.")
    if not prior:
        raise DataError("there are no hypotheses: give at least one, with its prior and its likelihood.")
    for name in prior:
        if name not in given:
            raise DataError(f"{what} has no entry for {name!r}. Give one for each hypothesis.")
    for name in given:
        if name not in prior:
            raise DataError(f"{what} names {name!r}, which the prior does not. The prior has an entry for each.")


def _listed(seen: Any) -> list[Any]:
    """Return the values as a list; a single string, a table or a mapping raises an error."""
    tabular = isinstance(seen, Mapping) or hasattr(seen, "columns") or getattr(seen, "ndim", 1) != 1
    if isinstance(seen, str | bytes) or tabular or not hasattr(seen, "__iter__"):
        raise DataError(f"what is observed is {seen!r}. Give a list of values, also for a single one: [value].")
    return list(seen.to_pylist() if hasattr(seen, "to_pylist") else seen)
