"""Naive Bayes as a formula: its linear and quadratic forms, and logistic regression on the same features."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
from msgspec.structs import replace
from sklearn.utils.validation import check_is_fitted

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.fitted.explain import Quadratic, linear_form, quadratic_form
from softcount.fitted.fitted import Fitted
from softcount.run.local import Threads

DROPPED = "the weights of logistic regression were dropped: rows were added or taken away. Call to_logistic again."


class LinearForms:
    """What the classes' log-odds are made of, where they are linear or quadratic."""

    fitted_: Fitted
    classes_: np.ndarray
    n_jobs: int | None
    get_params: Callable[..., dict[str, Any]]
    _names: Callable[[], list[Any]]
    _missing: Callable[[], Any]
    _keep: Callable[[Any], None]

    def to_linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept), where the log-odds are linear: multinomial, Bernoulli, categorical, tied normal."""
        check_is_fitted(self, "fitted_")
        return linear_form(self.fitted_)

    def to_quadratic(self, c1: Any = None, c2: Any = None) -> Quadratic:
        """The log-odds of class c1 against c2 as a quadratic in the values, where every column is normal.

        With one column, `to_quadratic().roots` are the values where the two are equally likely. Of two classes the
        first is set against the second unless you say so.
        """
        check_is_fitted(self, "fitted_")
        if self.fitted_.learned_weights is not None:
            raise DataError("to_quadratic is of naive Bayes as it is: fit with weights=None, and without to_logistic.")
        if (c1 is None or c2 is None) and len(self.classes_) != 2:
            raise DataError(f"say which two of the {len(self.classes_)} classes to compare: to_quadratic(c1, c2).")
        first, second = self._names()[:2] if c1 is None or c2 is None else (c1, c2)
        return quadratic_form(self.fitted_, first, second)

    def to_logistic(self, X: Any, y: Any, sample_weight: Any = None, penalty: float = 1.0) -> Self:
        """Fit a logistic regression on the features of this naive Bayes, starting at its weights.

        The new model has a weight for everything that `to_linear` has one for. Missing cells and categories that were
        not seen add nothing. Densities, samples and queries of columns stay those of naive Bayes.

        Parameters
        ----------
        X : DataFrame, Arrow table or array of shape (n_rows, n_columns)
            Rows with the columns of the fit.
        y : array-like of shape (n_rows,) or str
            Labels, or the name of the column of `X` that holds them. Rows without a label are ignored.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        penalty : float, default=1.0
            Strength of the L2 penalty on the weights: scikit-learn's `C=1 / penalty`.

        Returns
        -------
        Same type as this model
            A new model that predicts classes by logistic regression.

        Examples
        --------
        >>> import numpy as np
        >>> from softcount import NaiveBayes
        >>> X = np.array([["red", "big"], ["red", "small"], ["blue", "big"], ["blue", "small"]] * 20)
        >>> y = np.array(["apple", "apple", "plum", "apple"] * 20)
        >>> partner = NaiveBayes().fit(X, y).to_logistic(X, y)
        >>> partner.predict(X[:4])
        array(['apple', 'apple', 'plum', 'apple'], dtype='<U5')
        """
        from softcount.evaluate.logistic import logistic

        check_is_fitted(self, "fitted_")
        if self.fitted_.weights is not None or self.fitted_.pool is not None:
            raise DataError("to_logistic is of plain naive Bayes: fit NaiveBayes without weights=.")
        if isinstance(penalty, bool) or not isinstance(penalty, Real) or not 0 < float(penalty) < np.inf:
            raise DataError(f"penalty must be a number above 0, not {penalty!r}: at 0 weights can be infinite.")
        X = inputs.opened(X, self._missing(), isinstance(y, str))
        data, weights = inputs.checked(self, X, reset=False), inputs.weights_of(sample_weight, X)
        plain = replace(self.fitted_, linear=None)
        table = plain.table(data, labels=self._label_codes(X, y), weights=weights)
        with Threads(self.n_jobs) as threads:
            found = logistic(plain, table, threads, float(penalty))
        model = type(self)(**self.get_params(deep=False))
        model._keep(found)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _label_codes(self, X: Any, y: Any) -> np.ndarray:
        """The place among the classes of each row's label, -1 where it has none."""
        labels = inputs.column_of(X, y) if isinstance(y, str) and inputs.is_table(X) else y
        classes, codes = inputs.labels_of(labels, X)
        known = self._names()
        for name in np.asarray(classes).tolist():
            if name not in known:
                raise DataError(f"there is no class {name!r}. The classes are: {', '.join(map(str, known))}.")
        places = np.array([known.index(name) for name in np.asarray(classes).tolist()], dtype=np.int32)
        return np.where(codes >= 0, places[np.maximum(codes, 0)] if len(places) else -1, -1).astype(np.int32)
