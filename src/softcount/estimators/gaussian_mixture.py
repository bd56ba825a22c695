"""Gaussian mixtures under scikit-learn's names, on the engine of all mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace
from scipy.linalg import solve_triangular

from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute
from softcount.estimators.mixture import Mixture
from softcount.estimators.parameters import AUTO, check_arguments, check_whole
from softcount.families import Family, Multinormal, Normal
from softcount.families.multinormal import is_symmetric
from softcount.fit.classes import ClassRequest
from softcount.fitted.fitted import Fitted
from softcount.learn.initialise import params_around
from softcount.learn.record import Plan
from softcount.models.declare import Declared, read_kinds
from softcount.table import Table
from softcount.table.schema import Key

FAMILIES: dict[str, Family] = {
    "full": Multinormal(),
    "tied": Multinormal("tied"),
    "diag": Normal(),
    "tied_diag": Normal("classes"),
    "spherical": Normal("columns"),
    "tied_spherical": Normal("both"),
}
"""The family that every column, or the block of them all, has under a type of covariance."""
CHOSEN_FROM = ("full", "tied", "diag", "spherical")
"""Types that are tried where neither the number nor the type is given: scikit-learn's own."""
CORRELATED = ("full", "tied")
"""Types under which the columns are one block with covariances, not each by itself."""
HELD = ("weights", "means", "covariances")


class GaussianMixture(Mixture):
    """Mixture of normal distributions over columns of numbers.

    The density of a row x is the sum over components k of share_k * N(x | mean_k, covariance_k), fitted by EM. It takes
    the parameters of scikit-learn's GaussianMixture. In addition cells may be missing (NaN) under every type of
    covariance, rows may have weights, and `y` may hold the classes of some rows.

    `fixed` holds "weights", "means" or "covariances". If `means_init` is given without the others, the shares are equal
    and the covariance is the whole table's. `covariance_type_` is the type that was chosen.

    See Also
    --------
    Mixture : Columns of any kind.
    KMeans : Clusters around centres, without covariances.

    References
    ----------
    .. [1] G. McLachlan and D. Peel (2000).
       Finite Mixture Models. Wiley.
    .. [2] C. Fraley and A. E. Raftery (2002). "Model-based clustering, discriminant analysis, and density estimation".
       Journal of the American Statistical Association 97 (458), 611-631.

    Examples
    --------
    >>> X = np.array([[1.0], [1.1], [1.2], [9.0], [9.1], [9.2]])
    >>> mixture = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(mixture.means_.ravel())
    array([1.1, 9.1])
    """

    _input_tags: ClassVar = {"allow_nan": True}

    def __init__(  # noqa: PLR0913
        self,
        n_components: int | str = 1,
        covariance_type: str = AUTO,
        prior: Any = "row",
        estimate: str = "ml",
        init: Any = "k-means++",
        criterion: str = "bic",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-8,
        accelerate: bool = True,
        assign: str = "soft",
        fixed: Any = None,
        finish: str | None = None,
        half_steps: bool = False,
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        warm_start: bool = False,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
        spill: FilePath | None = None,
        checkpoint: FilePath | None = None,
        engine: Any = None,
    ) -> None:
        self._keep_parameters(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        try:
            return super().fit(X, y, sample_weight)
        except DataError as error:
            where, found, _ = str(error).partition(" If it means missing")
            if not found:
                raise
            raise DataError(
                f"{where} A Gaussian mixture takes numbers only. Use Mixture for columns of other kinds."
            ) from None

    @property
    def kinds(self) -> Family:
        """The kinds of the columns that `covariance_type` stands for, as in `Mixture`."""
        return FAMILIES[self._wanted]

    @property
    def _wanted(self) -> str:
        """The type of covariance before any is chosen."""
        if self.covariance_type != AUTO:
            return str(self.covariance_type)
        return self.covariance_type_ if self.warm_start and hasattr(self, "fitted_") else "full"

    covariance_type_: str = attribute(
        lambda fitted: _find_type(fitted) or "full", "Type of the covariances: the given one, or the one chosen."
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.means_init is None and not (self.weights_init is None and self.precisions_init is None):
            raise DataError("weights_init and precisions_init go with means_init: give the means to start from.")
        if self.fixed is not None and not (isinstance(self.fixed, Mapping) and set(self.fixed) <= set(HELD)):
            raise DataError(f"fixed is a mapping with some of {', '.join(map(repr, HELD))}, not {self.fixed!r}.")

    def _forced(self, declared: Declared, data: Any, target: Key | None = None) -> dict[Key, Any]:
        """Every column is a real number, except those that a table was opened without."""
        if hasattr(data, "tocsr"):
            raise DataError("Sparse data was passed: a Gaussian mixture needs dense rows. Use X.toarray().")
        unused = {key: kind for key, kind in inputs.read_kinds_of(data).items() if kind == "ignore"}
        return super()._forced(declared, data, target) | unused

    def _keep(self, fitted: Fitted) -> None:
        if _find_type(fitted) not in ([self.covariance_type] if self.covariance_type != AUTO else FAMILIES):
            raise DataError(f"a mixture whose covariance_type is {self.covariance_type!r} has other families.")
        super()._keep(fitted)

    def _request(self, table: Table, plan: Plan, start: Any) -> ClassRequest:
        request = super()._request(table, plan, start)
        given = (self.means_init, self.fixed)
        if self.covariance_type != AUTO or self._groups(start) is not None or any(x is not None for x in given):
            return request
        types = CHOSEN_FROM if len(table.schema.used) > 1 else CORRELATED  # of one column, others are the same
        plans = {name: replace(plan, declared=read_kinds(FAMILIES[name])) for name in types}
        assert request.search is not None
        return replace(request, search=replace(request.search, plans=plans, setting="covariance_type"))

    # -- where to start, and what is held

    def _start(self, table: Table) -> Any:
        if self.warm_start and hasattr(self, "fitted_"):
            return self.fitted_
        if self.means_init is None:
            return super()._start(table)
        columns = [spec.key for spec in table.schema.used]
        means = self._means("means_init", self.means_init, len(columns))
        k = len(means)
        given: dict[str, Any] = {"mean": means}
        if self.precisions_init is not None:
            given |= self._spreads("precisions_init", self.precisions_init, k, len(columns), inverse=True)
        shares = np.full(k, 1.0 / k) if self.weights_init is None else self.weights_init
        return params_around({ROOT: shares} | self._by_column(given, columns))

    def _groups(self, start: Any) -> int | None:
        return len(self.means_init) if callable(start) else super()._groups(start)

    def _with_fixed(self, plan: Plan, table: Table | Fitted, groups: int | None) -> Plan:
        plan = super()._with_fixed(plan, table, groups)
        if self.fixed is None:
            return plan
        columns, given = [spec.key for spec in table.schema.used], dict[str, np.ndarray]()
        if "means" in self.fixed:
            given["mean"] = self._means("fixed: means", self.fixed["means"], len(columns))
        if "covariances" in self.fixed:
            given |= self._spreads("fixed: covariances", self.fixed["covariances"], groups or 1, len(columns))
        if groups is None:  # what is held is the same for any number of them
            given = {name: value[0] for name, value in given.items()}
        held = self._by_column(given, columns) if given else {}
        shares = {ROOT: self.fixed["weights"]} if "weights" in self.fixed else {}
        return replace(plan, fixed=shares | held)

    def _by_column(self, given: Mapping[str, np.ndarray], columns: list[Key]) -> dict[Key, dict[str, np.ndarray]]:
        """Parameters in the shape of `params_`: under the block, or under each column."""
        if self._wanted in CORRELATED:
            return {tuple(columns): dict(given)}
        return {key: {name: value[..., j] for name, value in given.items()} for j, key in enumerate(columns)}

    def _means(self, name: str, value: Any, d: int) -> np.ndarray:
        means = read_finite(name, value)
        k = len(means) if self.n_components == AUTO and means.ndim == 2 else self.n_components
        if means.shape != (k, d):
            raise DataError(f"{name} should have the shape ({k}, {d}), components x columns, not {means.shape}.")
        return means

    def _spreads(self, name: str, value: Any, k: int, d: int, inverse: bool = False) -> dict[str, np.ndarray]:
        """Covariances (or variances) of every component, from the form of `covariances_` or one number for all."""
        shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "tied_diag": (d,), "spherical": (k,)}
        given, shape = read_finite(name, value), shapes.get(self._wanted, ())  # that of `covariances_`
        if given.ndim and given.shape != shape:
            raise DataError(f"{name} should have the shape {shape} for {self._wanted!r}, not {given.shape}.")
        if self._wanted in CORRELATED:
            whole = np.broadcast_to(given if given.ndim else given * np.eye(d), (k, d, d))
            if inverse and not (is_symmetric(whole) and (np.linalg.eigvalsh(whole) > 0).all()):
                raise DataError(f"{name} must be symmetric and positive definite.")
            return {"covariance": np.linalg.inv(whole) if inverse else whole}
        by_component = given[:, None] if self._wanted == "spherical" and given.ndim else given
        if not (by_component > 0).all():
            raise DataError(f"{name} must be above zero.")
        variance = np.broadcast_to(by_component, (k, d))
        return {"variance": 1.0 / variance if inverse else variance}

    # -- answers

    @check_arguments
    def sample(self, n_samples: int = 1, given: Any = None, random_state: RandomState = None) -> Any:
        """Draw rows from the mixture, and return them with their components as scikit-learn does.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_columns)
            The rows.
        components : ndarray of int, shape (n_samples,)
            The component that each row was drawn from.

        Examples
        --------
        >>> mixture = GaussianMixture(2, random_state=0).fit(np.array([[1.0], [1.2], [8.9], [9.1]]))
        >>> rows, components = mixture.sample(3, random_state=0)
        >>> rows.shape, components.shape
        ((3, 1), (3,))
        """
        fitted, n_samples = self._fitted, check_whole("n_samples", n_samples, 1)
        columns, groups = fitted.condition(given).draw_columns(n_samples, inputs.make_generator(random_state))
        return np.column_stack([columns[spec.key] for spec in fitted.schema.used]), groups

    # -- what was found

    @property
    def means_(self) -> np.ndarray:
        """Means, shape (n_components, n_columns)."""
        return self._stack("mean")

    @property
    def covariances_(self) -> Any:
        """Covariances in scikit-learn's shapes.

        (n_components, n_columns, n_columns) for "full", (n_columns, n_columns) for "tied", (n_components, n_columns)
        for "diag", (n_components,) for "spherical", (n_columns,) for "tied_diag" and one number for "tied_spherical".
        """
        spread = self._stack("covariance" if self.covariance_type_ in CORRELATED else "variance")
        if self.covariance_type_ == "spherical":
            return spread[:, 0]
        if self.covariance_type_ == "tied_spherical":
            return spread[0, 0]
        return spread[0] if self.covariance_type_.startswith("tied") else spread

    @property
    def precisions_cholesky_(self) -> Any:
        """Upper triangular factors C of the precisions C C', in the shape of `covariances_`."""
        covariances = self.covariances_
        if self.covariance_type_ not in CORRELATED:
            return 1.0 / np.sqrt(covariances)
        whole = covariances if covariances.ndim == 3 else covariances[None]
        factors = np.empty_like(whole)
        for place, part in enumerate(whole):
            unit = np.sqrt(np.diagonal(part))
            factor = np.linalg.cholesky(part / np.outer(unit, unit))
            factors[place] = solve_triangular(factor, np.diag(1.0 / unit), lower=True).T
        return factors if covariances.ndim == 3 else factors[0]

    @property
    def precisions_(self) -> Any:
        """Inverses of the covariances, in the shape of `covariances_`."""
        factor = self.precisions_cholesky_
        return factor @ np.swapaxes(factor, -1, -2) if self.covariance_type_ in CORRELATED else factor**2

    lower_bound_: float = attribute(
        lambda fitted: fitted.trace[-1] / fitted.n_rows, "Objective of EM at its end, per row."
    )

    def _stack(self, name: str) -> np.ndarray:
        parts, together = list(self.params_.values()), self.covariance_type_ in CORRELATED
        return parts[0][name] if together else np.stack([part[name] for part in parts], axis=1)


def _find_type(fitted: Fitted) -> str | None:
    """The type of covariance whose family the columns have; None where they have others."""
    families = {leaf.family for leaf in fitted.model.leaves}
    return next((name for name, family in FAMILIES.items() if families == {family}), None)


def read_finite(name: str, value: Any) -> np.ndarray:
    """An array of finite numbers, or an error that names the setting."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if not np.isfinite(array).all():
        raise DataError(f"{name} must be finite numbers, not {value!r}.")
    return array
