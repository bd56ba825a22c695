"""What of SciPy is in general use, loaded when it is first called: loading takes longer than fitting a small table."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

FEW = 256
"""Numbers up to which plain Python is quick enough."""
FEW_STEPS = 500.0
"""Rates up to which the terms of a Poisson distribution are added up."""
HALF_ROOT = math.sqrt(0.5)


def _special(name: str) -> Callable[..., Any]:
    """A function of `scipy.special`, by its name."""
    found: list[Callable[..., Any]] = []

    def call(*numbers: Any, **settings: Any) -> Any:
        if not found:
            found.append(getattr(import_module("scipy.special"), name))
        return found[0](*numbers, **settings)

    return call


betainc = _special("betainc")
betaln = _special("betaln")
chdtrc = _special("chdtrc")
entr = _special("entr")
expit = _special("expit")
gammainc = _special("gammainc")
gammaincc = _special("gammaincc")
gammaln = _special("gammaln")
logit = _special("logit")
logsumexp = _special("logsumexp")
_many_ndtr = _special("ndtr")
_many_pdtr = _special("pdtr")
pdtrc = _special("pdtrc")
polygamma = _special("polygamma")
psi = _special("psi")
softmax = _special("softmax")
stdtr = _special("stdtr")
stdtrit = _special("stdtrit")
xlog1py = _special("xlog1py")
xlogy = _special("xlogy")


def ndtr(z: Any) -> Any:
    """The standard normal distribution function; of a few numbers without SciPy, which takes 0.15 s to load.

    >>> ndtr(0.0), ndtr(np.array([-1.0, 30.0])).round(4).tolist()
    (0.5, [0.1587, 1.0])
    """
    values = np.asarray(z, dtype=np.float64)
    if values.size > FEW:
        return _many_ndtr(z)
    found = [0.5 * math.erfc(-value * HALF_ROOT) for value in values.ravel().tolist()]
    return np.array(found).reshape(values.shape) if values.ndim else found[0]


def pdtr(k: float, rate: np.ndarray) -> np.ndarray:
    """The probability of at most k, a whole number, under Poisson distributions; of a few rates without SciPy.

    >>> pdtr(2.0, np.array([1.0, 4.0])).round(4)
    array([0.9197, 0.2381])
    """
    most = float(np.max(rate, initial=0.0))
    if np.size(rate) > FEW or not most <= FEW_STEPS:
        return np.asarray(_many_pdtr(k, rate))
    if k > most + 40.0 * math.sqrt(most) + 100.0:
        return np.ones(np.shape(rate))
    steps = np.arange(1.0, k + 1.0)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(rate)[..., None] - np.log(steps), axis=-1)
    return np.asarray(np.minimum((np.exp(logs).sum(axis=-1) + 1.0) * np.exp(-rate), 1.0))


class _Sparse:
    """`scipy.sparse`, which nobody needs to load who has no sparse matrix.

    >>> _Sparse().issparse([1, 2])
    False
    """

    def issparse(self, data: object) -> bool:
        loaded = sys.modules.get("scipy.sparse")
        return loaded is not None and bool(loaded.issparse(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.sparse"), name)


if TYPE_CHECKING:
    from scipy import sparse as sparse
else:
    sparse = _Sparse()
