"""Families of one number a row, of which rows and their total say everything: Poisson, geometric, exponential.

The conjugate prior of each is imagined rows with an imagined total.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from softcount.core import remedies
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families.base import Family, scalar_prior
from softcount.families.setting import ClosedForm, How, Hyper, Params, Setting
from softcount.table.schema import Kind

Pair = tuple[np.ndarray, np.ndarray]
LEAST = 1e-12
"""Rows that a predictive form rests on where nothing was seen or imagined."""


class Totals(Family):
    """Statistics are rows and total; a prior of a imagined rows adds a rows like the whole column's.

    A family says `fitted`, its parameters from rows and total; `natural`; its conjugate prior and `log_mass`; `draw`
    and `moments`. `predicted` follows from `log_mass`, unless it can be said with more digits.
    """

    rows_first = True
    imagined: ClassVar[tuple[str, str]] = ("rows", "total")
    """What imagined rows and their total are called in the prior, and in the parameters of the predictive form."""
    conjugate: ClassVar[Any] = None
    """The prior that can be given as an object, and that posteriors are."""
    conjugate_parts: ClassVar[tuple[str, str]] = ("", "")
    """Which parts of it are imagined rows and their total."""
    beyond_mode: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """By how much such a prior imagines more rows and total than its mode rests on."""

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        """The likeliest parameters of so many rows with this total."""
        raise NotImplementedError

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Logarithm of the integral, over the parameter, of what so many rows with this total make likely."""
        raise NotImplementedError

    def width(self, setting: Setting) -> int:
        return 2

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        present = ~np.isnan(column)
        return np.stack([present.astype(np.float64), np.where(present, column, 0.0)], axis=1)

    def mean_features(self, params: Params) -> np.ndarray | None:
        mean = self.moments(params)[0]
        return np.stack([np.ones_like(mean), mean], axis=-1)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        pooled = stats.value.sum(axis=0)
        # Nothing but zeros is taken for half an event, or every other value would be impossible for ever.
        whole = np.maximum(pooled[..., 1], 0.5 * (pooled[..., 1] <= 0)) / np.maximum(pooled[..., 0], 0.5)
        explicit = self.conjugate is not None and isinstance(prior, self.conjugate)
        if explicit:
            rows, total = (np.broadcast_to(getattr(prior, part), whole.shape) for part in self.conjugate_parts)
        else:
            imagined = scalar_prior(prior, self, groups=setting.groups)
            rows, total = np.full(whole.shape, imagined), imagined * whole
        told = dict(zip(self.imagined, (rows, total), strict=True))
        return told | {"whole": whole, "explicit": np.array(float(explicit))}

    def imagined_stats(self, hyper: Hyper, how: How) -> np.ndarray:
        more = np.stack(np.broadcast_arrays(*(hyper[name] for name in self.imagined)), axis=-1)
        less = np.multiply.outer(hyper["explicit"], self.beyond_mode) if how == "map" else 0.0
        return np.zeros_like(more) if how == "ml" else more - less

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        whole = stats.value + self.imagined_stats(hyper, how)
        rows, total = whole[..., 0], whole[..., 1]
        few = how == "map" and bool((rows < 0).any())  # otherwise what forgetting leaves of rounding
        if few or (total < 0).any():
            what = f"rows plus {self.imagined[0]}" if few else f"total plus {self.imagined[1]}"
            raise DataError(
                f"{self.name}: {what} is below one, so there is no interior mode. Use {remedies.estimate_mean()}."
            )
        seen = rows > 0
        params = self.fitted(np.where(seen, rows, 1.0), np.where(seen, total, hyper["whole"]), hyper)
        if how == "predictive":
            unit = 1.0 if self.kind is Kind.COUNT else hyper["whole"]
            least = np.maximum(rows, LEAST), np.maximum(total, LEAST * unit)
            params |= dict(zip(self.imagined, least, strict=True))
        return params

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        before = [np.broadcast_to(np.maximum(hyper[name], 1e-300), rows.shape) for name in self.imagined]
        grown = self.log_mass(before[0] + rows, before[1] + total) - self.log_mass(*before)
        return float(np.where(rows > 0, grown, 0.0).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Where nothing is imagined, one row like the whole column's."""
        rows, total = (hyper[name] for name in self.imagined)
        nothing = (rows <= 0) | (total <= 0)
        one = np.where(nothing, 1.0, rows), np.where(nothing, hyper["whole"], total)
        return hyper | dict(zip(self.imagined, one, strict=True))

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """Counts have no unit."""
        return 0.0 if self.kind is Kind.COUNT else float(stats.value[..., 0].sum() * np.log(setting.scale).sum())

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        after = (stats.value[..., j] + hyper[name] for j, name in enumerate(self.imagined))
        return self.conjugate(**dict(zip(self.conjugate_parts, after, strict=True)))

    def after(self, params: Params) -> Pair | None:
        """Rows and total that a predictive form rests on; None where parameters are plugged in."""
        return (params[self.imagined[0]], params[self.imagined[1]]) if self.imagined[0] in params else None

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Log-density of values after so many rows with this total, without `base`."""
        return np.asarray(self.log_mass(rows + 1.0, total + x) - self.log_mass(rows, total))

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        after = self.after(params)
        if after is None:
            return Family.score(self, column, params, setting)
        x = column[:, None]
        return np.where(np.isnan(x), 0.0, self.predicted(np.where(np.isnan(x), 0.0, x), *after))

    def closed_form(self, params: Params) -> ClosedForm | None:
        """A straight line, unless it is predictive."""
        if self.after(params) is not None:
            return None
        return self.weighted_form(self.natural(params), Setting())

    def weighted_form(self, weights: np.ndarray, setting: Setting) -> ClosedForm | None:
        start, slope = weights.T
        return {"form": "line", "start": start, "slope": slope}
