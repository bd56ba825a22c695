"""Base of conjugate priors: checked parameters with the groups first, equality, and one-line representations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike

from softcount.core.special import plain
from softcount.errors import DataError

Number = float | np.ndarray
"""One number, or an array with the groups first."""

Seed = int | np.random.Generator | None

Given = ArrayLike | None
"""One of several arguments of which a caller gives some."""

SHOWN = 5
"""Number of groups that a line of text shows."""


class Distribution(Struct, frozen=True, eq=False):
    """One distribution, or several: each parameter is a float or an array with the groups first."""

    own_axes: ClassVar[int] = 0
    """Axes of the first parameter that are not groups: 1 if it has categories or columns."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = [(getattr(self, f), getattr(other, f)) for f in self.__struct_fields__]
        return all(
            bool(np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b)
            for a, b in pairs
        )

    def __hash__(self) -> int:
        values = (getattr(self, f) for f in self.__struct_fields__)
        plain_values = ((x.shape, tuple(x.ravel().tolist())) if isinstance(x, np.ndarray) else x for x in values)
        return hash((type(self), *plain_values))

    def __repr__(self) -> str:
        parts = []
        for name, value in ((f, getattr(self, f)) for f in self.__struct_fields__):
            if isinstance(value, np.ndarray):
                text = np.array2string(value, separator=", ", threshold=20, edgeitems=3)
                parts.append(f"{name}={' '.join(text.split())}")
            elif value is not None:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def describe(self) -> str:
        """Describe the distribution in one line.

        Returns
        -------
        str
            Estimate, interval, and the data that the distribution is worth.
        """
        return repr(self)

    @property
    def by_group(self) -> bool:
        """Whether there is one distribution per group, rather than a single one."""
        return bool(np.ndim(getattr(self, self.__struct_fields__[0])) > self.own_axes)

    def _settle(self, axes: Mapping[str, int] | None = None, **checks: Callable[[str, Any], np.ndarray]) -> None:
        """Check the parameters and store them, broadcast to the same groups: as floats, or as read-only arrays.

        `axes` are the numbers of last axes that are not groups, if a parameter has any.
        """
        values = {name: check(f"{type(self).__name__}'s {name}", getattr(self, name)) for name, check in checks.items()}
        own = {name: np.shape(value)[np.ndim(value) - (axes or {}).get(name, 0) :] for name, value in values.items()}
        shapes = {name: np.shape(value)[: np.ndim(value) - len(own[name])] for name, value in values.items()}
        try:
            together = np.broadcast_shapes(*shapes.values())
        except ValueError:
            found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise DataError(
                f"{type(self).__name__}: the parameters have different numbers of groups ({found}). "
                "Give each one number, or one per group."
            ) from None
        for name, value in values.items():
            self._store(name, np.broadcast_to(np.asarray(value, dtype=float), together + own[name]))

    def _require(self, right: ArrayLike, name: str, remedy: str) -> None:
        """Raise an error for the first value of a parameter for which `right` is false."""
        require(right, getattr(self, name), f"{type(self).__name__}'s {name}", remedy)

    def _store(self, name: str, value: np.ndarray) -> None:
        kept = plain(np.array(value, dtype=float))
        if isinstance(kept, np.ndarray):
            kept.setflags(write=False)
        force_setattr(self, name, kept)


class Conjugate(Distribution, frozen=True, eq=False):
    """A distribution of parameters that stays of its kind when rows are added."""

    def log_evidence(self, *rows: Any, **moments: Any) -> Number:
        """Return the log marginal likelihood of these rows, in the order they came.

        Parameters
        ----------
        *rows, **moments : array
            The rows, their counts or their moments, as in `update`.

        Returns
        -------
        float or ndarray of shape (n_groups,)
            The log marginal likelihood in nats.
        """
        raise NotImplementedError

    evidence = log_evidence

    def pdf(self, x: ArrayLike) -> Number:
        """Return the density of the expected value of a row: a share, a rate, or a mean.

        Parameters
        ----------
        x : float or array
            Possible values; for several categories or columns, these last.

        Returns
        -------
        float or ndarray
            Densities, groups first; 0 for impossible values.
        """
        raise NotImplementedError

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        """Return the ends of an equal-tailed interval that holds the expected value of a row.

        For several categories or columns, the interval is that of each alone.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the interval.

        Returns
        -------
        tuple of float or ndarray
            The lower and the upper end.
        """
        raise NotImplementedError

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw from the distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        random_state : int or Generator, default=None
            Seed of the draws.

        Returns
        -------
        ndarray or tuple of ndarray
            Shares or rates, or pairs of means and variances: groups first, then draws, then categories or columns.
        """
        raise NotImplementedError


def numbers(name: str, value: Any) -> np.ndarray:
    """Return the value as an array of floats. Words, dates and ragged lists raise an error."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(float)
    except (TypeError, ValueError):
        raise DataError(f"{name} is {value!r}, which is not a number. Give a number, or an array of them.") from None


def finite(name: str, value: Any, axes: Sequence[str] = ("group",)) -> np.ndarray:
    """Return the value as finite floats."""
    array = numbers(name, value)
    require(np.isfinite(array), array, name, "It must be a finite number.", axes)
    return array


def nonnegative(
    name: str, value: Any, remedy: str = "Counts are finite and 0 or more.", axes: Sequence[str] = ("group",)
) -> np.ndarray:
    """Return the value as finite floats of 0 or more."""
    array = numbers(name, value)
    require(np.isfinite(array) & (array >= 0), array, name, remedy, axes)
    return array


def positive(name: str, value: Any, remedy: str = "It must be finite and above 0.") -> np.ndarray:
    """Return the value as finite floats above 0."""
    array = numbers(name, value)
    require(np.isfinite(array) & (array > 0), array, name, remedy)
    return array


def either(values: object, parts: Sequence[object], wrong: str) -> None:
    """Raise an error unless either the values or all of the parts are given, but not both."""
    if sum(part is not None for part in parts) != (len(parts) if values is None else 0):
        raise DataError(wrong)


def require(
    right: ArrayLike,
    value: ArrayLike,
    name: str,
    remedy: str,
    axes: Sequence[str] = ("group",),
    levels: Sequence[object] | None = None,
) -> None:
    """Raise an error for the first value for which `right` is false, with its position and the remedy."""
    wrong = np.argwhere(~np.atleast_1d(right))
    if not len(wrong):
        return
    at = tuple(int(i) for i in wrong[0])
    shown = float(np.broadcast_to(np.asarray(value, dtype=float), np.atleast_1d(right).shape)[at])
    where = place(at[: np.ndim(right)], axes, levels)
    raise DataError(f"{name} is {shown:g}{where}. {remedy}")


def place(at: Sequence[int], axes: Sequence[str], levels: Sequence[object] | None = None) -> str:
    """Word a position, from its last axis outwards: " at level 'red' of group 3"."""
    if not at:
        return ""
    names = list(axes)[-len(at) :]
    names = ["group"] * (len(at) - len(names)) + names
    words = [
        f"{axis} {levels[i]!r}" if axis == "level" and levels is not None else f"{axis} {i}"
        for axis, i in zip(reversed(names), reversed(list(at)), strict=True)
    ]
    return " at " + " of ".join(words)


def against(x: ArrayLike, *parameters: Number) -> tuple[np.ndarray, ...]:
    """Return the points, and each parameter with trailing axes of length one for them.

    Every group is then combined with every point, groups first.
    """
    points = np.asarray(x, dtype=float)
    return points, *(np.reshape(p, np.shape(p) + (1,) * points.ndim) for p in parameters)


def tail(level: float) -> float:
    """Return the probability on each side of an equal-tailed interval."""
    if not 0 < level < 1:
        raise DataError(f"level is {level!r}. An interval holds a probability between 0 and 1, such as 0.95.")
    return (1 - level) / 2


def shown(value: Number) -> str:
    """Format a number with four digits; of several groups, the first few."""
    if np.ndim(value) == 0:
        return f"{float(value):.4g}"
    flat = np.ravel(value)
    more = f", ... ({flat.size} in all)" if flat.size > SHOWN else ""
    return ", ".join(f"{v:.4g}" for v in flat[:SHOWN]) + more
