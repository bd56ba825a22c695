"""Distributions of shares: Beta, Dirichlet, prior counts of an expert, and concentrations chosen by the data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike

from softcount.core.special import log_dirichlet_multinomial, log_rising, plain
from softcount.errors import DataError
from softcount.priors.distribution import (
    Conjugate,
    Distribution,
    Number,
    Seed,
    against,
    nonnegative,
    numbers,
    positive,
    require,
    shown,
    tail,
)
from softcount.priors.predictive import log_gamma_pdf


class Beta(Conjugate, frozen=True, eq=False):
    r"""Beta distribution of a share, worth `alpha` prior successes and `beta` prior failures.

    .. math:: p(\theta) = \frac{\theta^{\alpha - 1} (1 - \theta)^{\beta - 1}}{B(\alpha, \beta)}

    Use it for the probability of success of a trial. Beta(1, 1) is uniform. Beta(0, 0) is improper and has no mean
    before data are added.

    Parameters
    ----------
    alpha : float or array of shape (n_groups,)
        Prior successes, 0 or more.
    beta : float or array of shape (n_groups,)
        Prior failures, 0 or more.

    See Also
    --------
    Dirichlet : Shares of several categories.
    Expert : The same belief as "n of m".
    softcount.families.Bernoulli : The column that it is the prior of.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Chapter 2.

    Examples
    --------
    >>> after = Beta(5, 3).update(successes=1, failures=2)
    >>> after
    Beta(alpha=6.0, beta=5.0)
    >>> after.describe()
    'a share of 0.5455 (0.2624 to 0.8129 with 95 %), worth 6 successes and 5 failures'
    >>> round(after.mode, 6), round(after.predict(), 6)
    (0.555556, 0.545455)
    >>> Beta(1, 1).update(successes=[3, 0], failures=[1, 2]).mean.round(3).tolist()   # two groups
    [0.667, 0.25]
    >>> round(float(np.exp(Beta(1, 1).log_evidence(1, 2))), 6)   # 1/2 * 1/3 * 2/4
    0.083333
    """

    alpha: Number
    beta: Number

    def __post_init__(self) -> None:
        counts = partial(nonnegative, remedy="Prior counts are finite and 0 or more: Beta(1, 1) has one of each.")
        self._settle(alpha=counts, beta=counts)

    def update(self, successes: ArrayLike = 0.0, failures: ArrayLike = 0.0) -> Beta:
        """Return the posterior: the counts are added.

        Parameters
        ----------
        successes, failures : float or array of shape (n_groups,), default=0.0
            Numbers of trials.

        Returns
        -------
        Beta
            The distribution, updated with these trials.
        """
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        return Beta(self.alpha + won, self.beta + lost)

    @property
    def total(self) -> Number:
        """The total of the prior counts."""
        return plain(self.alpha + self.beta)

    @property
    def mean(self) -> Number:
        """The expected share, alpha / (alpha + beta)."""
        remedy = "Without any count there is no mean: update with data first, or start from Beta(1, 1)."
        require(np.asarray(self.total) > 0, self.total, "Beta's alpha + beta", remedy)
        return plain(self.alpha / self.total)

    @property
    def mode(self) -> Number:
        """The most probable share, (alpha - 1) / (alpha + beta - 2), and 1/2 for the uniform Beta(1, 1).

        So Beta(1, 1) with any data has the maximum-likelihood share as its mode. If alpha or beta is below 1, the
        density is unbounded at an end, and an error is raised.
        """
        remedy = "Below 1 there is no interior mode: use the mean, or prior counts of at least 1."
        for name, count in (("alpha", self.alpha), ("beta", self.beta)):
            self._require(np.asarray(count) >= 1, name, remedy)
        above = np.asarray(self.alpha) - 1
        total = above + (np.asarray(self.beta) - 1)
        return plain(np.where(total == 0, 0.5, above / np.where(total == 0, 1.0, total)))

    @property
    def variance(self) -> Number:
        """The variance of the share."""
        mean = self.mean
        return plain(mean * (1 - mean) / (self.total + 1))

    def pdf(self, x: ArrayLike) -> Number:
        from scipy.stats import beta

        self._proper()
        points, a, b = against(x, self.alpha, self.beta)
        return plain(beta.pdf(points, a, b))

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        from scipy.special import betainccinv, betaincinv

        self._proper()
        out = tail(level)
        return plain(betaincinv(self.alpha, self.beta, out)), plain(betainccinv(self.alpha, self.beta, out))

    def predict(self, success: bool = True) -> Number:
        """Return the probability of the next trial's result.

        Parameters
        ----------
        success : bool, default=True
            Whether the result is a success.

        Returns
        -------
        float or ndarray of shape (n_groups,)
            The probability.
        """
        if success not in (True, False):
            raise DataError(f"The next trial is a success or a failure, True or False, not {success!r}.")
        return self.mean if success else Beta(self.beta, self.alpha).mean

    def log_evidence(self, successes: ArrayLike = 0.0, failures: ArrayLike = 0.0) -> Number:
        self._proper()
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        counts = np.stack(np.broadcast_arrays(won, lost), axis=-1)
        return plain(log_dirichlet_multinomial(counts, np.stack([self.alpha, self.beta], axis=-1)))

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        self._proper()
        _, a, b = against([0.0], self.alpha, self.beta)
        return np.random.default_rng(random_state).beta(a, b, size=(*np.shape(self.alpha), n_samples))

    def describe(self) -> str:
        worth = f"worth {shown(self.alpha)} successes and {shown(self.beta)} failures"
        if np.any(np.asarray(self.alpha) == 0) or np.any(np.asarray(self.beta) == 0):
            return f"a share, {worth}"
        if np.ndim(self.alpha):
            return f"shares of {shown(self.mean)}, {worth}"
        low, high = self.interval()
        return f"a share of {shown(self.mean)} ({shown(low)} to {shown(high)} with 95 %), {worth}"

    def _proper(self) -> None:
        remedy = "With no prior count on one side this is not a distribution: use at least a little, such as 0.5."
        for name, count in (("alpha", self.alpha), ("beta", self.beta)):
            self._require(np.asarray(count) > 0, name, remedy)


# -- shares of several categories

AXES = ("group", "level")


class Dirichlet(Conjugate, frozen=True, eq=False):
    r"""Dirichlet distribution of the shares of several categories, worth `alpha` prior counts of each.

    .. math:: p(\theta) = \frac{\Gamma(\sum_k \alpha_k)}{\prod_k \Gamma(\alpha_k)} \prod_k \theta_k^{\alpha_k - 1}

    Parameters
    ----------
    alpha : array of shape (..., n_categories) or dict
        Prior counts, 0 or more: categories on the last axis, groups before it; or by name.
    levels : sequence, default=None
        Names of the categories, in the order of `alpha`. With names, counts may be given by name.

    See Also
    --------
    Beta : The share of one of two categories.
    Expert : Prior counts of an expert.
    softcount.families.Categorical : The column that it is the prior of.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Section 3.4.

    Examples
    --------
    >>> die = Dirichlet([1, 1, 1, 1, 1, 1]).update([3, 0, 0, 1, 0, 0])
    >>> die.predict().tolist()
    [0.4, 0.1, 0.1, 0.2, 0.1, 0.1]
    >>> candy = Dirichlet([2, 1], levels=("cherry", "lime")).update({"lime": 3})
    >>> candy.predict("lime")
    0.6666666666666666
    >>> candy.describe()
    'shares of 2 levels: cherry 0.3333, lime 0.6667, worth 6 counts'
    >>> round(float(np.exp(Dirichlet([1, 1, 1]).log_evidence([1, 1, 0]))), 6)   # 1/3 * 1/4
    0.083333
    """

    own_axes = 1

    alpha: np.ndarray
    levels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        given: Any = self.alpha
        if isinstance(given, Mapping):
            if self.levels is not None and set(self.levels) != set(given):
                raise DataError(
                    f"Dirichlet's alpha names {list(given)}, levels are {list(self.levels)}. Name the same."
                )
            names = tuple(given) if self.levels is None else tuple(self.levels)
            force_setattr(self, "levels", names)
            given = [given[name] for name in names]
        elif self.levels is not None:
            force_setattr(self, "levels", tuple(self.levels))
        alpha = numbers("Dirichlet's alpha", given)
        if alpha.ndim == 0 or alpha.shape[-1] == 0:
            raise DataError(
                "Dirichlet's alpha needs one prior count per level, such as [1, 1, 1]. "
                "For the same count everywhere: Dirichlet.symmetric(1.0, levels)."
            )
        levels = self.levels
        if levels is not None and (len(levels) != alpha.shape[-1] or len(set(levels)) != len(levels)):
            raise DataError(
                f"Dirichlet has {alpha.shape[-1]} prior counts and levels {list(levels)}. "
                "Name each level once, in the order of alpha."
            )
        remedy = "Prior counts are finite and 0 or more, such as 1 per level."
        require(np.isfinite(alpha) & (alpha >= 0), alpha, "Dirichlet's alpha", remedy, AXES, self.levels)
        self._store("alpha", alpha)

    @classmethod
    def symmetric(cls, concentration: float, levels: int | Sequence[Hashable]) -> Dirichlet:
        """Return a Dirichlet with the same prior count for every category.

        Parameters
        ----------
        concentration : float
            The prior count.
        levels : int or sequence
            Number of categories, or their names.

        Returns
        -------
        Dirichlet
            The distribution.

        Examples
        --------
        >>> Dirichlet.symmetric(0.5, ["no", "yes"])
        Dirichlet(alpha=[0.5, 0.5], levels=('no', 'yes'))
        """
        names = None if isinstance(levels, int | np.integer) else tuple(levels)
        size = int(levels) if isinstance(levels, int | np.integer) else len(levels)
        if size < 1:
            raise DataError(f"levels is {levels!r}. A Dirichlet needs at least one level.")
        return cls(np.full(size, concentration, dtype=float), names)

    def update(self, counts: ArrayLike | Mapping[Any, float]) -> Dirichlet:
        """Return the posterior: the counts are added.

        Parameters
        ----------
        counts : array of shape (..., n_categories) or dict
            Counts of the categories, in order or by name.

        Returns
        -------
        Dirichlet
            The distribution, updated with these rows.
        """
        return Dirichlet(self.alpha + self._check_counts(counts), self.levels)

    @property
    def total(self) -> Number:
        """The total of the prior counts."""
        return plain(self.alpha.sum(axis=-1))

    @property
    def mean(self) -> np.ndarray:
        """The expected share of each category."""
        remedy = "Without any count there is no mean: update with data first, or use a prior count of 1 for each level."
        require(np.asarray(self.total) > 0, self.total, "the sum of Dirichlet's alpha", remedy)
        return np.asarray(self.alpha / self.alpha.sum(axis=-1, keepdims=True))

    @property
    def mode(self) -> np.ndarray:
        """The most probable shares, (alpha - 1) over its sum; equal shares if every alpha is 1.

        Raises an error if any alpha is below 1.
        """
        remedy = "Below 1 there is no interior mode: use the mean, or prior counts of at least 1."
        require(self.alpha >= 1, self.alpha, "Dirichlet's alpha", remedy, AXES, self.levels)
        above = self.alpha - 1
        total = above.sum(axis=-1, keepdims=True)
        return np.where(total == 0, 1 / self.alpha.shape[-1], above / np.where(total == 0, 1.0, total))

    @property
    def variance(self) -> np.ndarray:
        """The variance of the share of each category."""
        mean = self.mean
        return np.asarray(mean * (1 - mean) / (self.alpha.sum(axis=-1, keepdims=True) + 1))

    def pdf(self, x: ArrayLike) -> Number:
        self._proper()
        points = np.asarray(x, dtype=float)
        off = points.ndim == 0 or points.shape[-1] != self.alpha.shape[-1]
        if off or np.any(points < 0) or not np.allclose(points.sum(axis=-1), 1.0, rtol=0, atol=1e-9):
            raise DataError(
                f"A density is asked at {x!r}. Give {self.alpha.shape[-1]} shares of 0 or more that sum to one."
            )
        groups = self.alpha.shape[:-1]
        alpha = self.alpha.reshape(groups + (1,) * (points.ndim - 1) + self.alpha.shape[-1:])
        # Through Gamma densities at shares times the total: plain log-gammas lose eight digits at an alpha of 1e8.
        total = alpha.sum(axis=-1)
        each = log_gamma_pdf(points * total[..., None], alpha).sum(axis=-1)
        return plain(np.exp(each - log_gamma_pdf(total, total) + (points.shape[-1] - 1) * np.log(total)))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        from scipy.special import betainccinv, betaincinv

        self._proper()
        out = tail(level)
        if self.alpha.shape[-1] == 1:  # a single category has the whole share
            return np.ones_like(self.alpha), np.ones_like(self.alpha)
        rest = self.alpha.sum(axis=-1, keepdims=True) - self.alpha
        return betaincinv(self.alpha, rest, out), betainccinv(self.alpha, rest, out)

    def predict(self, level: Hashable | None = None) -> Number:
        """Return the probability of each category for the next row, or of one category.

        Parameters
        ----------
        level : category or int, default=None
            The category, by name or, without names, by number. None returns the probabilities of all categories.

        Returns
        -------
        float or ndarray
            The probability, or (..., n_categories) probabilities.
        """
        if level is None:
            return self.mean
        return plain(self.mean[..., self._position(level)])

    def log_evidence(self, counts: ArrayLike | Mapping[Any, float]) -> Number:
        self._proper()
        seen = self._check_counts(counts)
        return plain(log_dirichlet_multinomial(seen, self.alpha))

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        self._proper()
        # Shares are drawn through logarithms: with alpha near 0, plain gamma draws are all zero and divide to NaN.
        rng = np.random.default_rng(random_state)
        size = (*self.alpha.shape[:-1], n_samples, self.alpha.shape[-1])
        alpha = self.alpha[..., None, :]
        with np.errstate(divide="ignore"):
            logs = np.log(rng.gamma(alpha + 1, size=size)) + np.log(rng.random(size)) / alpha
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def describe(self) -> str:
        if self.alpha.ndim > 1 or not np.all(np.asarray(self.total) > 0):
            return f"shares of {self.alpha.shape[-1]} levels, worth {shown(self.total)} counts"
        mean, names = self.mean, self.levels
        each = shown(mean) if names is None else ", ".join(f"{k} {shown(v)}" for k, v in zip(names, mean, strict=True))
        return f"shares of {mean.size} levels: {each}, worth {shown(self.total)} counts"

    def _position(self, level: Hashable) -> int:
        if self.levels is not None and level in self.levels:
            return self.levels.index(level)
        size = self.alpha.shape[-1]
        if self.levels is None and isinstance(level, int | np.integer) and 0 <= level < size:
            return int(level)
        known = list(self.levels) if self.levels is not None else f"numbered 0 to {size - 1}"
        raise DataError(f"There is no level {level!r}: the levels are {known}.")

    def _check_counts(self, counts: ArrayLike | Mapping[Any, float]) -> np.ndarray:
        """Return the counts as an array with the categories last, checked."""
        if isinstance(counts, Mapping):
            given: list[Any] = [0.0] * self.alpha.shape[-1]
            for level, count in counts.items():
                given[self._position(level)] = numbers(f"the count of level {level!r}", count)
            counts = np.stack(np.broadcast_arrays(*given), axis=-1)
        seen = numbers("counts", counts)
        if seen.ndim == 0 or seen.shape[-1] != self.alpha.shape[-1]:
            raise DataError(
                f"counts have shape {seen.shape}, but there are {self.alpha.shape[-1]} levels. "
                "Give one count per level, levels on the last axis."
            )
        require(np.isfinite(seen) & (seen >= 0), seen, "a count", "Counts are finite and 0 or more.", AXES, self.levels)
        return seen

    def _proper(self) -> None:
        remedy = "With a level of 0 this is not a distribution: use at least a little of each, such as 0.5."
        require(self.alpha > 0, self.alpha, "Dirichlet's alpha", remedy, AXES, self.levels)


# -- prior counts: an expert's n of m trials, and rules for use without an expert

LEAST, MOST = 1e-6, 1e6
"""Bounds of the search for a concentration."""

STEPS = 121
"""Points of the first, coarse search: ten per power of ten, so that a second maximum would be noticed."""


class Expert(Distribution, frozen=True, eq=False):
    """The opinion of an expert, "n of m": the larger m is, the surer the expert.

    A share n / m counts like m earlier trials with n successes. For several categories n is one count per category.

    Parameters
    ----------
    n : float, array of shape (n_categories,) or dict
        Prior successes; or prior counts of the categories, in order or by name.
    m : float, default=None
        Number of prior trials. For several categories it is the sum of `n` and may be left out.
    levels : sequence, default=None
        Names of the categories, in the order of `n`.

    See Also
    --------
    expert_prior : Turns many opinions into the prior of a model.
    Beta : The same opinion as a distribution of the share.

    Examples
    --------
    >>> Expert(n=2, m=3).update(successes=1, failures=9).estimate == 3 / 13
    True
    >>> Expert(n=2000, m=3000).update(successes=1, failures=9).estimate == 2001 / 3010
    True
    >>> Expert(n={"cherry": 3, "lime": 1}).update(counts={"lime": 4}).estimate.tolist()
    [0.375, 0.625]
    >>> Expert(n=2, m=3).describe()
    '2 of 3 prior trials'
    """

    own_axes = 1

    n: Number
    m: Number | None = None
    levels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        given: Any = self.n
        if isinstance(given, Mapping):
            named = Dirichlet(given, self.levels)  # type: ignore[arg-type]
            force_setattr(self, "levels", named.levels)
            given = named.alpha
        n = nonnegative("Expert's n", given, axes=("group", "level"))
        total = n.sum(axis=-1) if n.ndim else n
        if self.m is None and not n.ndim:
            raise DataError(f"Expert(n={self.n!r}) needs m, the number of prior trials: Expert(n=2, m=3) is 2 of 3.")
        m = np.asarray(total if self.m is None else nonnegative("Expert's m", self.m))
        if n.ndim:
            force_setattr(self, "levels", Dirichlet(n, self.levels).levels)
            right = np.isclose(total, m, rtol=1e-9, atol=0)
            remedy = f"The counts of the levels sum to {shown(plain(total))}: leave m out, or make it the same."
            require(right, m, "Expert's m", remedy)
        else:
            require(n <= m, n, "Expert's n", f"It is at most m, which is {shown(plain(m))}.")
        self._store("n", n)
        self._store("m", m)

    def update(
        self, successes: float = 0.0, failures: float = 0.0, *, counts: ArrayLike | Mapping[Any, float] | None = None
    ) -> Expert:
        """Return the updated opinion: a success adds one to n and m, a failure to m alone.

        Parameters
        ----------
        successes, failures : float, default=0.0
            Numbers of trials, for a single share.
        counts : array of shape (n_categories,) or dict, default=None
            Counts of the categories, for several.

        Returns
        -------
        Expert
            The opinion, updated with these trials.
        """
        if np.ndim(self.n):
            if counts is None:
                raise DataError(
                    "This expert has beliefs about several categories. Use update(counts=...) with one count for each."
                )
            return Expert(self.as_dirichlet().update(counts).alpha, levels=self.levels)
        if counts is not None:
            raise DataError("This expert knows one share: update(successes=..., failures=...).")
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        return Expert(plain(self.n + won), plain(self._m + won + lost))

    @property
    def estimate(self) -> Number:
        """The share n / m; one per category if there are several."""
        require(self._m > 0, self._m, "Expert's m", "No trials give no share: use prior trials, or update first.")
        return plain(self.n / (self._m[..., None] if np.ndim(self.n) else self._m))

    def as_beta(self) -> Beta:
        """Return the opinion as a Beta with n successes and m - n failures, so that its mean is n / m.

        Returns
        -------
        Beta
            The distribution of the share.
        """
        if np.ndim(self.n):
            raise DataError("This expert has beliefs about several categories: use as_dirichlet().")
        return Beta(self.n, self._m - self.n)

    def as_dirichlet(self) -> Dirichlet:
        """Return the opinion as a Dirichlet; a single share gives two categories, success first.

        Returns
        -------
        Dirichlet
            The distribution of the shares.
        """
        if np.ndim(self.n):
            return Dirichlet(np.asarray(self.n), self.levels)
        return Dirichlet(np.stack([np.asarray(self.n), self._m - self.n]))

    def describe(self) -> str:
        if self.levels is None:
            return f"{shown(self.n)} of {shown(plain(self._m))} prior trials"
        each = ", ".join(f"{k} {shown(v)}" for k, v in zip(self.levels, np.atleast_2d(self.n)[0], strict=True))
        return f"{each} of {shown(plain(self._m))} prior trials"

    @property
    def _m(self) -> np.ndarray:
        return np.asarray(self.m, dtype=float)


def jeffreys(levels: int | Sequence[Hashable] | None = None) -> Beta | Dirichlet:
    """Return half a prior count of everything: a Beta, or a Dirichlet if categories are given by number or name.

    >>> jeffreys()
    Beta(alpha=0.5, beta=0.5)
    >>> jeffreys(3)
    Dirichlet(alpha=[0.5, 0.5, 0.5])
    """
    return Beta(0.5, 0.5) if levels is None else Dirichlet.symmetric(0.5, levels)


def bdeu(equivalent_size: float, levels: int | Sequence[Hashable], parents: int = 1) -> Dirichlet:
    """Spread `equivalent_size` prior rows evenly over the categories and the `parents` configurations of parents.

    The result is the prior of one configuration; it is the same for each.

    >>> bdeu(6, ["no", "yes"], parents=3)
    Dirichlet(alpha=[1., 1.], levels=('no', 'yes'))
    """
    size = float(positive("equivalent_size", equivalent_size, "It is a number of prior rows above 0, such as 1."))
    if parents < 1:
        raise DataError(f"parents is {parents}. Without parents there is one configuration: parents=1.")
    count = int(levels) if isinstance(levels, int | np.integer) else len(levels)
    return Dirichlet.symmetric(size / max(count, 1) / parents, levels)


def best_concentration(counts: ArrayLike, least: float = LEAST, most: float = MOST) -> float:
    """Return the prior count per category, shared by all groups, with the largest marginal likelihood.

    `counts` has shape (groups, levels). The result lies between `least` and `most`, and is one of them if the marginal
    likelihood keeps rising. It is 1 if the counts carry no information: no group has two rows, or there is one
    category.

    >>> round(best_concentration([[9, 1], [2, 8], [5, 5]]), 4)
    1.6354
    """
    if not 0 < least < most < np.inf:
        raise DataError(f"A concentration is looked for between {least} and {most}. Give 0 < least < most.")
    table = np.atleast_2d(numbers("counts", counts))
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"counts have shape {table.shape}. Give groups x levels.")
    right = np.isfinite(table) & (table >= 0)
    require(right, table, "a count", "Counts are finite and 0 or more.", ("group", "level"))
    # Equal counts give equal terms: each distinct count is evaluated once, weighted by its frequency.
    totals = table.sum(axis=1)
    cells, cell_times = np.unique(table[table > 0], return_counts=True)
    totals, total_times = np.unique(totals[totals > 0], return_counts=True)

    def evidence(log_concentration: float) -> float:
        a = float(np.exp(log_concentration))
        gained = cell_times @ np.asarray(log_rising(a, cells))
        return float(gained - total_times @ np.asarray(log_rising(a * table.shape[1], totals)))

    grid = np.linspace(np.log(least), np.log(most), STEPS)
    heights = np.array([evidence(point) for point in grid])
    if np.ptp(heights) <= 1e-10 * (1 + np.abs(heights).max()):
        return 1.0
    from scipy.optimize import minimize_scalar

    best = int(heights.argmax())
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda p: -evidence(p), bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    point = max((float(found.x), float(grid[best])), key=evidence)
    return float(np.clip(float(np.exp(point)), least, most))
