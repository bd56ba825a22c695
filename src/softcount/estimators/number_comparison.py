"""A number predicted in several ways, side by side: the same rows held out for all, and how often intervals hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from softcount.errors import DataError, SoftcountError
from softcount.estimators.mixture_regression import MixtureRegression
from softcount.estimators.result_frames import arrow_lines, as_frame
from softcount.estimators.rivals import RivalTable, plain_features, quiet
from softcount.evaluate.paired_losses import Behind, behind, ranked, verdict
from softcount.records import dataclass
from softcount.table.schema import Schema

INSIDE = 0.9
"""The share of rows whose number an interval should hold."""
NORMAL_END = 1.6448536269514722
"""Standard deviations from the mean within which nine tenths of a normal distribution lie."""
MOST_ROWS = 5_000
"""Rows that numbers are compared on; of more, some are drawn: support vectors take the square of them."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberForecast:
    """Of rows held out the expected number, the ends of an interval (None where there is none), and the settings."""

    expected: np.ndarray
    ends: tuple[np.ndarray, np.ndarray] | None
    settings: str


@dataclass(frozen=True, slots=True, eq=False)
class NumberScores:
    """What one way to predict a number did on rows held out; `errors` are those of the rows.

    `coverage` is the share of rows whose number is in its interval of 90 %, `width` the interval's on average; both NaN
    where there is none. `behind` is how far its mean squared error is from the best; `settings` are of the last fold.
    """

    name: str
    errors: np.ndarray
    coverage: float
    width: float
    seconds: float
    settings: str
    behind: Behind = field(default_factory=lambda: Behind(0.0, 0.0))

    @property
    def rmse(self) -> float:
        return float(np.sqrt((self.errors**2).mean()))

    @property
    def mae(self) -> float:
        return float(np.abs(self.errors).mean())

    def line(self) -> dict[str, Any]:
        """The figures by name."""
        return {
            "model": self.name, "rmse": self.rmse, "mae": self.mae, "squared_error_behind": self.behind.mean,
            "standard_error": self.behind.error, "tie": self.behind.is_tie, "coverage": self.coverage,
            "width": self.width, "seconds": self.seconds, "settings": self.settings,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class NumberComparison:
    """Ways to predict a number side by side, the lowest squared error first; `deviation` is that of the number itself.

    `table` has a line for each, `verdicts` say in words who is best and who ties with it.
    """

    scores: list[NumberScores]
    how: str
    rows: int
    deviation: float
    verdicts: list[str]
    notes: list[str]
    failed: dict[str, str]
    library: str | None = None

    @property
    def table(self) -> Any:
        """A frame with a line for every way."""
        return as_frame(arrow_lines([found.line() for found in self.scores]), self.library)

    @property
    def best(self) -> NumberScores:
        """The one with the lowest squared error."""
        return self.scores[0]

    def __str__(self) -> str:
        return "\n".join([self.how, *self.verdicts])


Forecaster = Callable[[RivalTable, np.ndarray, RivalTable], NumberForecast]


def forecasters(schema: Schema, kinds: Mapping[Any, Any], seed: int) -> dict[str, Forecaster]:
    """Every way to predict a number, the simplest first."""
    named = {str(spec.key) for spec in schema.used}
    target = next(name for name in ("target", *(f"target {i}" for i in range(len(named) + 1))) if name not in named)
    numbers = [str(spec.key) for spec in schema.stored("reals") if str(spec.key) not in kinds]

    def mixture(train: RivalTable, y: np.ndarray, test: RivalTable) -> NumberForecast:
        model = MixtureRegression(target, numbers, dict(kinds), seed).fit(train.arrow, y)
        found = model.answer(test.arrow)
        ends = found.quantile((1 - INSIDE) / 2), found.quantile((1 + INSIDE) / 2)
        return NumberForecast(found.expected, ends, f"{len(model.model_.weights_)} classes")

    return {"ridge regression": ridge, "mixture regression": mixture, "support vector regression": support_vectors}


def ridge(train: RivalTable, y: np.ndarray, test: RivalTable) -> NumberForecast:
    """scikit-learn's ridge regression, its penalty by leaving rows out; an interval by the errors of those."""
    from sklearn.linear_model import RidgeCV

    features = plain_features(train)
    rows = features.fit_transform(train.matrix)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    centre, scale = float(y.mean()), float(y.std()) or 1.0
    model = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(rows, (y - centre) / scale)
    asked = features.transform(test.matrix)
    found = centre + scale * model.predict(asked.toarray() if hasattr(asked, "toarray") else asked)
    half = NORMAL_END * scale * float(np.sqrt(-model.best_score_))
    return NumberForecast(found, (found - half, found + half), f"penalty {model.alpha_:.3g}")


def support_vectors(train: RivalTable, y: np.ndarray, test: RivalTable) -> NumberForecast:
    """scikit-learn's support vector regression as it comes, of a standardised number; it has no interval."""
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVR

    centre, scale = float(y.mean()), float(y.std()) or 1.0
    model = make_pipeline(plain_features(train), SVR()).fit(train.matrix, (y - centre) / scale)
    svr = model[-1]
    told = f"{svr.kernel}, C {svr.C:g}, epsilon {svr.epsilon:g}, {len(svr.support_):,} support vectors"
    return NumberForecast(centre + scale * model.predict(test.matrix), None, told)


def compared_numbers(  # noqa: PLR0913 - what is compared, and on what
    table: RivalTable,
    schema: Schema,
    values: np.ndarray,
    kinds: Mapping[Any, Any],
    folds: int,
    seed: int,
    notes: list[str],
) -> NumberComparison:
    """Every way to predict these numbers on the same folds."""
    from sklearn.model_selection import KFold

    rows, more = _known(values, seed)
    if len(rows) < folds:
        raise DataError(f"there are {len(rows)} rows with a number, fewer than {folds} folds. Give fewer folds.")
    table, values = table.take(rows), values[rows]
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(values))
    scores, failed = [], {}
    for name, forecast in forecasters(schema, kinds, seed).items():
        try:
            scores.append(_scored(name, forecast, table, values, splits))
        except (SoftcountError, ValueError, np.linalg.LinAlgError) as error:
            failed[name] = str(error).splitlines()[0]
    if not scores:
        raise DataError(f"nothing could be tried: {next(iter(failed.values()))}")
    squares = {found.name: found.errors**2 for found in scores}
    verdicts = [
        verdict(squares, "squared error"), verdict({x.name: np.abs(x.errors) for x in scores}, "absolute error"),
    ]  # fmt: skip
    by_name = {found.name: found for found in scores}
    order = ranked(squares)
    behinds = {name: behind(squares[name], squares[order[0]]) for name in order}
    ordered = [replace(by_name[name], behind=behinds[name]) for name in order]
    how = f"{folds} folds, the same for all"
    return NumberComparison(ordered, how, len(values), float(values.std()), verdicts, [*notes, *more], failed)


def _known(values: np.ndarray, seed: int) -> tuple[np.ndarray, list[str]]:
    """Places of rows whose number is known, at most so many, and what is to be said of the others."""
    if np.isinf(values).any():
        raise DataError(f"the target of row {int(np.argmax(np.isinf(values))) + 1} is infinite. Leave it empty.")
    rows, notes = np.flatnonzero(~np.isnan(values)), []
    if len(rows) < len(values):
        first = int(np.argmax(np.isnan(values))) + 1
        notes.append(
            f"rows without a number to predict are left out: {len(values) - len(rows):,}, row {first} the first."
        )
    if len(rows) > MOST_ROWS:
        notes.append(f"{MOST_ROWS:,} of {len(rows):,} rows are drawn to compare on.")
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_ROWS])
    return rows, notes


def _scored(name: str, forecast: Forecaster, table: RivalTable, values: np.ndarray, splits: Any) -> NumberScores:
    """One way fitted on every fold and asked for the rows held out there."""
    errors, inside, widths, begun = np.empty(len(values)), [], [], time.perf_counter()
    for train, test in splits:
        with quiet():
            found = forecast(table.take(train), values[train], table.take(test))
        errors[test] = values[test] - found.expected
        if found.ends is not None:
            low, high = found.ends
            inside.append((values[test] >= low) & (values[test] <= high))
            widths.append(high - low)
    seconds = (time.perf_counter() - begun) / len(splits)
    coverage, width = (float(np.concatenate(x).mean()) if x else float("nan") for x in (inside, widths))
    return NumberScores(name, errors, coverage, width, seconds, found.settings)
