"""Classifiers that learn more than naive Bayes from its rows: the ensemble, and AODE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import asdict

from softcount.classify.aode import AodeSetting
from softcount.classify.encode import EncodedColumns
from softcount.errors import DataError
from softcount.estimators.inputs import RandomState, attribute
from softcount.estimators.naive_bayes import ClassEstimator
from softcount.estimators.parameters import Parameter, varied
from softcount.estimators.result_frames import Frame, arrow_lines
from softcount.evaluate.aode import AodePlan, aode_counts, merge_aode, rebase_aode, with_aode
from softcount.fit.classes import ClassRequest
from softcount.fitted.fitted import Fitted
from softcount.learn.record import Plan
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.classify.ensemble import Ensemble


class Classifier(ClassEstimator):
    """A classifier that chooses by cross-validation which models predict, and explains its predictions.

    Its candidates are standard naive Bayes, naive Bayes with a weight for every column, discriminant analysis, AODE, an
    additive logistic model, and the same with pairwise interactions. For text and sparse tables they are word counts,
    the rarity of words, and a weight for every word. The ensemble adds the scores of the members that help, each with a
    weight; `selection_` shows all candidates. Use it if predictions matter most.

    `predict`, `predict_proba` and `explain` use the ensemble; the parts in `explain` add up. `query`, `sample`,
    `impute` and `params_` use the naive Bayes model in `fitted_`. With fewer than 10 labelled rows there is naive Bayes
    only. With an `engine`, workers count all rows, and at most 100,000 random rows are fetched into Python to choose
    the ensemble.

    See Also
    --------
    NaiveBayes : One model that is learned in one pass and can be merged and updated.
    AODE : One of the members as a classifier of its own.
    compare : Compares classifiers on the same folds.

    References
    ----------
    .. [1] D. H. Wolpert (1992).
       "Stacked generalization". Neural Networks 5 (2), 241-259.
    .. [2] Y. Lou, R. Caruana, J. Gehrke and G. Hooker (2013). "Accurate intelligible models with pairwise
       interactions". KDD 2013, 623-631.
    .. [3] J. H. Friedman (1989). "Regularized discriminant analysis". Journal of the American Statistical Association
       84 (405), 165-175.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 2)).astype(str)
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = Classifier().fit(X, y)
    >>> model.score(X, y)  # naive Bayes is right half of the time
    1.0
    >>> model.selection_["model"][0]
    'pairwise interactions'
    """

    _elsewhere: ClassVar = {
        "class_prior": "class_prior of predict and predict_proba", "class_weight": "sample_weight of fit",
    }  # fmt: skip

    def __init__(
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        missing: Any = None,
        budget: float | None = None,
        n_jobs: int | None = None,
        engine: Any = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def _request(self, plan: Plan, classes: Any, parts: bool) -> ClassRequest:
        return ClassRequest(plan, classes=classes, ensemble=not parts, budget=self.budget)

    ensemble_: Ensemble | None = attribute(
        "scorer.ensemble", "Ensemble that predicts: its members and their weights. None if naive Bayes predicts alone."
    )

    @property
    def selection_(self) -> Frame:
        """A line for each model that was tried: log-loss and accuracy on held-out rows, weight in the ensemble."""
        tried: Sequence[Any] = () if self.ensemble_ is None else self.ensemble_.tried
        lines = [{**asdict(line), "setting": str(line.setting)} for line in tried]
        return self._result(arrow_lines([{"model": line.pop("name"), **line} for line in lines]))


# AODE as a classifier


def check_cuts(name: str, cuts: Any) -> None:
    """Raise an error unless a value has the bin edges of columns, each in ascending order."""
    if not isinstance(cuts, Mapping):
        raise DataError(f"{name} must name columns and where each is cut: {{'age': [25, 40]}}.")
    for key, given in cuts.items():
        edges = np.asarray(given, dtype=np.float64)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise DataError(f"{name} of {key!r} must be numbers that rise: {given!r}.")


class AODE(ClassEstimator):
    """Averaged one-dependence estimators (AODE): every column in turn is a second parent of all others.

    The probability of class c and row x is the mean over columns i of p(c, x_i) * product over j of p(x_j | c, x_i).
    Numbers are discretised. It captures pairwise dependences that naive Bayes cannot, and still needs one pass.

    All estimators come from one count of pairs of cells. The counts can be merged, updated and subtracted (`merge`,
    `partial_fit`, `forget`). A missing cell is left out of every product and is not used as a parent. Columns with so
    many categories that pairs would take more than 64 MB depend on the class alone, which `notes_` reports. Only the
    naive Bayes model behind `query`, `sample`, `impute` and `params_` uses rows without a label.

    See Also
    --------
    NaiveBayes : Columns are independent given the class.
    Classifier : Weights AODE against other models by cross-validation.
    BayesNet : A network with chosen dependences, such as a tree (TAN).

    References
    ----------
    .. [1] G. I. Webb, J. R. Boughton and Z. Wang (2005). "Not so naive Bayes: aggregating one-dependence estimators".
       Machine Learning 58, 5-24.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 2)).astype(str)
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> AODE().fit(X, y).score(X, y)  # naive Bayes is right half of the time
    1.0
    """

    _input_tags: ClassVar = {"allow_nan": True, "string": True, "categorical": True}
    _elsewhere: ClassVar = {"numbers": "cuts: numbers are always discretised"}
    _varied: ClassVar = {
        "prior": Parameter(
            float,
            "Prior count of every distribution, spread evenly over its cells.",
            above=True, most=1e300,
        ),
        "cuts": varied("cuts", None, checked=check_cuts),
    }  # fmt: skip

    def __init__(
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        cuts: Any = None,
        parents: str | None = None,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def _request(self, plan: Plan, classes: Any, parts: bool) -> ClassRequest:
        """Rows that add to a model are cut where its own were."""
        edges = self.cuts_ if parts and hasattr(self, "fitted_") else self.cuts
        if edges is not None:
            edges = {key: np.asarray(own, dtype=np.float64) for key, own in edges.items()}
        setting = AodeSetting(float(self.prior), self.parents is not None)
        return ClassRequest(plan, classes=classes, aode=AodePlan(setting, edges))

    def _with_classes(self, fitted: Fitted, classes: list[Any]) -> Fitted:
        found = super()._with_classes(fitted, classes)
        return with_aode(found, rebase_aode(fitted, found))

    def _join(self, other: Fitted, sign: float = 1.0, grow: Collection[Key] | None = None) -> None:
        mine = self.fitted_
        aode_counts(other)  # raises an error if it is another model
        super()._join(other, sign, grow)
        self._keep(merge_aode(mine, other, self.fitted_, sign))

    @property
    def cuts_(self) -> dict[Key, np.ndarray]:
        """Bin edges of each column of numbers."""
        fitted = self._fitted
        columns = EncodedColumns.of(fitted.schema)
        return dict(zip(columns.keys[: columns.measured], aode_counts(fitted).cuts.edges, strict=False))
