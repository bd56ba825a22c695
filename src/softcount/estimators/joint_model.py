"""Joint models as an estimator: one mixture of trees that answers every question about the columns of a table."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import TableEstimator, progress
from softcount.estimators.docstrings import PARTIAL_ROWS
from softcount.estimators.inputs import ArrayLike, RandomState, attribute, row_by_row
from softcount.estimators.parameters import AUTO, check_arguments, check_whole, varied
from softcount.estimators.result_frames import Frame, arrow_lines, fill_cells
from softcount.fit.joint import JointRequest
from softcount.fitted.joint import FittedJoint
from softcount.learn.record import Plan
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import open_table


class JointModel(TableEstimator):
    """Joint distribution of all columns of a table: a mixture of trees, for any question about any columns.

    The density of a row is the sum over components k of weight_k times the density of tree k. In every component the
    categorical columns form a forest of their own, learned from the rows, and the numbers are normal in suitable
    units given one categorical column, singly or together. A column of numbers with few values is categorical, and
    values that many rows share, such as 0, have a probability of their own. One component without missing cells is a
    Chow-Liu tree; components without edges are a `Mixture`; one vector of numbers makes it a `GaussianMixture`.

    A quarter of the rows is held out to choose the units, the form of the components and their number, and to weight
    the best candidates, which are then fitted to all rows by EM; missing cells are summed over exactly. Of tables with
    more than 8,000 rows a sample of 8,000 decides. A background component keeps outliers possible.

    Answers are exact under the model, except if ranges of correlated numbers are given: these are integrated
    numerically. Numbers stay within the range of their column as in `Mixture`. Columns of text are left out.

    See Also
    --------
    Mixture : Components of independent columns, as classes that can be described.
    BayesNet : One network, whose edges can be given.
    Classifier : Predicts one column with more accuracy.

    References
    ----------
    .. [1] M. Meila and M. I. Jordan (2000). "Learning with mixtures of trees". Journal of Machine Learning Research 1,
       1-48.
    .. [2] D. Edwards, G. C. G. de Abreu and R. Labouriau (2010). "Selecting high-dimensional mixed graphical models
       using minimal AIC or BIC forests". BMC Bioinformatics 11, 18.
    .. [3] P. Smyth and D. Wolpert (1999). "Linearly combining density estimators via stacking". Machine Learning 36,
       59-83.

    Examples
    --------
    >>> rows = {"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2] * 5, "kind": ["a", "a", "a", "b", "b", "b"] * 5}
    >>> model = JointModel(random_state=0).fit(rows)
    >>> model.query("kind", {"x": 1.1})["a"] > 0.9
    True
    """

    fitted_: FittedJoint
    _arguments: ClassVar = {"X": PARTIAL_ROWS}
    _input_tags: ClassVar = {"allow_nan": True, "string": True, "categorical": True}
    _varied: ClassVar = {
        "n_components": varied("n_components", help="Largest number of components that are tried, or 'auto'.")
    }

    def __init__(
        self,
        n_components: int | str = AUTO,
        kinds: Any = None,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the joint distribution.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns)
            Rows. Cells may be missing.
        y : object, default=None
            Ignored; present for pipelines. A column to be predicted is a column of `X`.
        sample_weight : array of shape (n_rows,), default=None
            Weight of each row. A row of weight 2 counts as two equal rows.

        Raises
        ------
        DataError
            If there is no row, or neither a column of categories nor a number with two values.
        """
        self._check_settings()
        if sparse.issparse(X):
            raise DataError("a joint model does not take a sparse matrix. Give X.toarray().")
        data = inputs.open_file(inputs.check_rows(self, X, reset=True), self._missing())
        weights = inputs.read_weights(sample_weight, data)
        data, weights, _ = inputs.drop_zero_weights(data, weights, None)
        declared = read_kinds(self.kinds)
        if declared.auto or declared.all_auto or declared.blocks:
            raise DataError("kinds: a joint model takes kinds of single columns, such as {'zip': 'categorical'}.")
        forced = inputs.read_kinds_of(data) | declared.forced
        table = open_table(data, kinds=forced, missing=self._missing(), weights=weights)
        inputs.remember_columns(self, table, data)
        plan = Plan(declared=declared, prior="row")
        most = None if self.n_components == AUTO else int(self.n_components)
        seed = int(inputs.make_generator(0 if self.random_state is None else self.random_state).integers(2**31))
        with progress(self, plan) as watched, Threads(self.n_jobs) as threads:
            request = JointRequest(watched, most, seed)
            self._keep(request.learn(table, threads))
        self._keep_rows(table, request)
        return self

    n_components_: int = attribute("trees.mixture.n_components", "Number of components, with the background component.")
    held_out_: float = attribute("trees.held_out", "Mean log-density of the held-out rows of the search, in nats.")
    units_: str = attribute("trees.units", "Units of the numbers: 'linear' or 'normal scores'.")
    weights_: np.ndarray = attribute(
        lambda fitted: np.exp(fitted.trees.mixture.log_weights), "Weight of each component, the largest first."
    )

    @property
    def selection_(self) -> Frame:
        """A line for each candidate: units, form of the numbers, components, edges, and nats per held-out row."""
        lines = [
            {name: getattr(trial, name) for name in ("units", "numbers", "components", "edges", "held_out")}
            for trial in self._fitted.trees.trials
        ]
        return self._result(arrow_lines(lines))

    # -- answers

    def query(self, of: Any = None, given: Any = None) -> Any:
        """Return the distribution of any columns given any others.

        Parameters
        ----------
        of : str, list of str or None, default=None
            Column. A list of categorical columns asks for their joint distribution, by tuples of categories; if one
            of them is a number, each is answered. None returns the answers for all columns that are not given.
        given : dict, default=None
            Values or conditions by column: `between(100, 200)`, `above(5)`, `below(5)`, `any_of("disc", "rim")`,
            `not_("disc")`; short for them are a range (100, 200) and a list.

        Returns
        -------
        dict or answer
            Probabilities by category; for a number, an answer with `mean`, `variance`, `sd`, `cdf`, `pdf` and
            `quantile`; for several columns, one of these by column.

        See Also
        --------
        impute : Fills the missing cells of rows.
        sample : Draws rows, with columns held if wanted.

        Examples
        --------
        >>> rows = {"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2] * 5, "kind": ["a", "a", "a", "b", "b", "b"] * 5}
        >>> model = JointModel(random_state=0).fit(rows)
        >>> model.query("x", {"kind": "b"}).mean > 8
        True
        """
        return self._fitted.query(of, given)

    @row_by_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each component given the row.

        Returns
        -------
        ndarray of shape (n_rows, n_components_)
            Probabilities, each row summing to one.
        """
        return np.asarray(self._answer(X, "proba"))

    def impute(self, X: Any, draws: int | None = None, random_state: RandomState = None) -> Any:
        """Fill missing cells given the rest of the row.

        Numbers get their conditional mean, categories the most probable one. With `draws`, several tables are completed
        by draws from the joint distribution of the missing cells (multiple imputation), so that the spread between them
        shows the uncertainty of each cell.

        Parameters
        ----------
        X : DataFrame, Arrow table, dict or array of shape (n_rows, n_columns)
            Rows with missing cells.
        draws : int, default=None
            Number of completed tables. None fills with means and most probable categories.
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        Same type as `X`, or list of it
            The completed rows; with `draws`, a list of completed tables.

        See Also
        --------
        query : The whole distribution of a column given others.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2] * 5, "kind": ["a", "a", None, "b", "b", "b"] * 5})
        >>> JointModel(random_state=0).fit(rows).impute(rows)["kind"].tolist()[:4]
        ['a', 'a', 'a', 'b']
        """
        fitted, table = self._fitted, self._read_rows(X)
        order = [spec.key for spec in fitted.schema.fields]
        if draws is None:
            found = fitted.fills(table)
            inputs.warn_of_kept(table)
            return fill_cells(X, found, order)
        rng = inputs.make_generator(random_state)
        count = check_whole("draws", draws, 1)
        return [fill_cells(X, fitted.draw_fills(self._read_rows(X), rng), order) for _ in range(count)]

    @check_arguments
    def anomalies(self, X: Any, n: int = 10) -> Frame:
        """Return the most anomalous rows with the reasons.

        The score is the difference between the expected log-density and that of the row, in nats. It is the sum of the
        surprises of the columns: the mean of the surprise given the columns before it and given those after it, less
        the surprise that is usual for the column. A missing cell adds 0.

        Parameters
        ----------
        n : int, default=10
            Number of rows.

        Returns
        -------
        DataFrame
            A line for each row, the most anomalous first: `row` (from 0), `score`, `log_density`, `reason` (the column
            that adds most) and `reasons` (column and surprise of each, the largest first).

        See Also
        --------
        anomaly_score : The scores of all rows.

        Examples
        --------
        >>> rows = {"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2] * 5, "kind": ["a", "a", "a", "b", "b", "b"] * 5}
        >>> model = JointModel(random_state=0).fit(rows)
        >>> list(model.anomalies({"x": [1.1, 1.1], "kind": ["a", "b"]}, n=1)["row"])
        [1]
        """
        fitted, table = self._fitted, self._read_rows(X)
        most = check_whole("n, the number of rows,", n, 0)
        with Threads(self.n_jobs) as threads:
            found = fitted.find_anomalies(table, threads, most)
        lines = []
        for odd in found:
            reasons = [{"column": str(key), "surprise": part} for key, part in odd.parts.items()]
            lines.append(
                {"row": odd.row, "score": odd.score, "log_density": odd.log_density,
                 "reason": reasons[0]["column"], "reasons": reasons}
            )  # fmt: skip
        reason = pa.struct([("column", pa.string()), ("surprise", pa.float64())])
        types = [("row", pa.int64()), ("score", pa.float64()), ("log_density", pa.float64()), ("reason", pa.string()),
                 ("reasons", pa.list_(reason))]  # fmt: skip
        return self._result(arrow_lines(lines, types), X, np.array([odd.row for odd in found], dtype=np.int64))
