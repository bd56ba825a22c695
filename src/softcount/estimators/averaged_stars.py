"""Averaged one-dependence stars as a classifier of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softcount.classify.aode import StarLayout, StarSetting
from softcount.classify.encode import column_keys, measured_count
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.naive_bayes import ClassEstimator, KnownColumns
from softcount.estimators.parameters import Parameter
from softcount.evaluate.aode import StarPlan, joined_stars, told_by
from softcount.fit.classes import ClassRequest
from softcount.fitted.fitted import Fitted
from softcount.learn.settings import Plan
from softcount.sources.frames import refuse_elsewhere
from softcount.table.schema import Key


class AveragedStars(ClassEstimator):
    """Averaged one-dependence stars (AODE): every column in turn is a second parent of all others beside the class.

    All stars come from one pass that counts pairs of cells, which are added and taken away like every count (`merge`,
    `partial_fit`, `forget`). Numbers are cut where the classes change, or at `cuts`, which names the edges of columns;
    `cuts_` has those that were taken. A missing cell drops out of every product, and is not a parent. `prior` is the
    prior weight of every distribution, spread evenly over its cells. With `parents="information"` a star is weighted by
    the mutual information of its parent and the class, else all alike. Columns of so many categories that pairs would
    take more than 64 MB stand under the class alone, which `notes_` says. Rows without a label are left to naive Bayes,
    which answers `query`, `sample`, `impute` and `params_`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 2)).astype(str)
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> AveragedStars().fit(X, y).score(X, y)  # naive Bayes is right half of the time
    1.0
    """

    _varied: ClassVar = {
        "prior": Parameter(
            float,
            "Prior count of every distribution, spread evenly over its cells, or as the class is if it is a normal.",
            above=True, most=1e300,
        ),
    }  # fmt: skip

    def __init__(
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        cuts: Any = None,
        parents: str | None = None,
        missing: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_settings(self) -> None:
        super()._check_settings()
        self._edges()

    def _edges(self) -> dict[Key, np.ndarray] | None:
        """The cuts that were given, checked."""
        if self.cuts is None:
            return None
        if not isinstance(self.cuts, Mapping):
            raise DataError("cuts must name columns and where each is cut: {'age': [25, 40]}.")
        found = {key: np.asarray(edges, dtype=np.float64) for key, edges in self.cuts.items()}
        for key, edges in found.items():
            if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
                raise DataError(f"cuts of {key!r} must be numbers that rise: {self.cuts[key]!r}.")
        return found

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        parts: bool = False,
        earlier: KnownColumns | None = None,
    ) -> Fitted:
        refuse_elsewhere(X)
        if not isinstance(X, np.ndarray):
            X = inputs.opened(X, self._missing(), True)
        return super()._learn(X, y, sample_weight, parts=parts, earlier=earlier)

    def _request(self, plan: Plan, classes: Any, parts: bool) -> ClassRequest:
        """Rows that add to a model are cut where its own were."""
        edges = self.cuts_ if parts and hasattr(self, "fitted_") else self._edges()
        setting = StarSetting(float(self.prior), self.parents is not None)
        return ClassRequest(plan, classes=classes, stars=StarPlan(setting, edges))

    def _with_classes(self, fitted: Fitted, classes: list[Any]) -> Fitted:
        assert fitted.stars is not None
        found = super()._with_classes(fitted, classes)
        old, new = (StarLayout.of(part.schema, part.names) for part in (fitted, found))
        return told_by(found, fitted.stars.moved(old, new))

    def _join(self, other: Fitted, sign: float = 1.0, grow: Collection[Key] | None = None) -> None:
        mine = self.fitted_
        if other.stars is None:
            raise DataError("only averaged stars can be merged with averaged stars.")
        super()._join(other, sign, grow)
        self._keep(joined_stars(mine, other, self.fitted_, sign))

    @property
    def cuts_(self) -> dict[Key, np.ndarray]:
        """Where each column of numbers is cut."""
        check_is_fitted(self, "fitted_")
        fitted = self.fitted_
        assert fitted.stars is not None
        keys = column_keys(fitted.schema)[: measured_count(fitted.schema)]
        return dict(zip(keys, fitted.stars.cuts.edges, strict=False))

    def to_linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Averaged stars are not linear: an error that says so."""
        raise DataError("to_linear is of naive Bayes, and here averaged stars tell the classes.")
