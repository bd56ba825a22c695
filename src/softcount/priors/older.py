"""The counts of an older model as a prior."""

from __future__ import annotations

from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from softcount.errors import DataError


class Older(Struct, frozen=True):
    """A prior made of the counts of an older model, in addition to another prior.

    Use it if older data are worth less than new data, or come from another place. An older row counts as `weight` new
    rows.

    Parameters
    ----------
    model : fitted NaiveBayes, Classifier or Mixture
        The older model. Its columns are matched by name.
    weight : float, default=1.0
        Weight of a row of the older model; 0 ignores it.
    prior : float, str or prior, default=1.0
        The prior that is added to the counts.

    See Also
    --------
    expert_prior : A prior made of beliefs.
    Dirichlet : Prior counts of one column.

    References
    ----------
    .. [1] J. G. Ibrahim and M.-H. Chen (2000). "Power prior distributions for regression models". Statistical Science
       15 (1), 46-60.

    Examples
    --------
    >>> import softcount as sc
    >>> older = sc.NaiveBayes().fit({"Sky": ["grey", "blue"] * 50}, ["rain", "sun"] * 50)
    >>> prior = sc.priors.Older(older, weight=0.1)
    >>> model = sc.NaiveBayes(prior=prior).fit({"Sky": ["grey", "blue"]}, ["sun", "rain"])
    >>> model.params_["Sky"]["probability"].round(2).tolist()  # blue and grey, with 5 older and 1 new row each
    [[0.25, 0.75], [0.75, 0.25]]
    """

    model: Any
    weight: float = 1.0
    prior: Any = 1.0

    def __post_init__(self) -> None:
        inner = getattr(self.model, "fitted_", self.model)
        force_setattr(self, "model", inner)
        if not isfinite(self.weight) or self.weight < 0:
            raise DataError(f"an older model's weight is a number of 0 or more, not {self.weight}.")
