"""Functions of SciPy that load it on their first call: loading takes longer than fitting a small table."""

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


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of SciPy, by its name."""
    found: list[Callable[..., Any]] = []

    def call(*numbers: Any, **settings: Any) -> Any:
        if not found:
            found.append(getattr(import_module(module), name))
        return found[0](*numbers, **settings)

    return call


betainc = _late("scipy.special", "betainc")
betaln = _late("scipy.special", "betaln")
chdtrc = _late("scipy.special", "chdtrc")
entr = _late("scipy.special", "entr")
expit = _late("scipy.special", "expit")
gammainc = _late("scipy.special", "gammainc")
gammaincc = _late("scipy.special", "gammaincc")
gammaln = _late("scipy.special", "gammaln")
logit = _late("scipy.special", "logit")
logsumexp = _late("scipy.special", "logsumexp")
_many_ndtr = _late("scipy.special", "ndtr")
_many_pdtr = _late("scipy.special", "pdtr")
pdtrc = _late("scipy.special", "pdtrc")
polygamma = _late("scipy.special", "polygamma")
psi = _late("scipy.special", "psi")
softmax = _late("scipy.special", "softmax")
stdtr = _late("scipy.special", "stdtr")
stdtrit = _late("scipy.special", "stdtrit")
xlog1py = _late("scipy.special", "xlog1py")
xlogy = _late("scipy.special", "xlogy")


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
    """`scipy.sparse`, loaded with the first sparse matrix.

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
