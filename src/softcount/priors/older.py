"""The counts of an older model as a prior."""

from __future__ import annotations

from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from softcount.errors import DataError


class Older(Struct, frozen=True):
    """A prior made of the counts of an older model, each worth `weight` new rows, in addition to `prior`.

    Parameters
    ----------
    model : fitted NaiveBayes, Classifier or Mixture
        The older model. Its columns are matched by name.
    weight : float, default=1.0
        What a row of the older model counts; 0 ignores it.
    prior : float, str or prior, default=1.0
        The prior that is added to the counts.

    Examples
    --------
    >>> import softcount as sc
    >>> older = sc.NaiveBayes().fit({"Sky": ["grey", "blue"] * 50}, ["rain", "sun"] * 50)
    >>> model = sc.NaiveBayes(prior=Older(older, weight=0.1)).fit({"Sky": ["grey", "blue"]}, ["sun", "sun"])
    >>> model.params_["Sky"]["probability"].round(2).tolist()
    [[0.86, 0.14], [0.22, 0.78]]
    """

    model: Any
    weight: float = 1.0
    prior: Any = 1.0

    def __post_init__(self) -> None:
        inner = getattr(self.model, "fitted_", self.model)
        force_setattr(self, "model", inner)
        if not isfinite(self.weight) or self.weight < 0:
            raise DataError(f"an older model's weight is a number of 0 or more, not {self.weight}.")
