"""Lazy imports: functions and modules that are loaded on first use. Loading SciPy takes longer than a small fit."""

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


def lazy_function(module: str, name: str) -> Callable[..., Any]:
    """A function that imports its module on the first call.

    >>> lazy_function("math", "hypot")(3.0, 4.0)
    5.0
    """
    found: list[Callable[..., Any]] = []

    def call(*values: Any, **settings: Any) -> Any:
        if not found:
            found.append(getattr(import_module(module), name))
        return found[0](*values, **settings)

    return call


betainc = lazy_function("scipy.special", "betainc")
betaln = lazy_function("scipy.special", "betaln")
chdtrc = lazy_function("scipy.special", "chdtrc")
entr = lazy_function("scipy.special", "entr")
expit = lazy_function("scipy.special", "expit")
gammainc = lazy_function("scipy.special", "gammainc")
gammaincc = lazy_function("scipy.special", "gammaincc")
gammaln = lazy_function("scipy.special", "gammaln")
logit = lazy_function("scipy.special", "logit")
logsumexp = lazy_function("scipy.special", "logsumexp")
_many_ndtr = lazy_function("scipy.special", "ndtr")
_many_pdtr = lazy_function("scipy.special", "pdtr")
pdtrc = lazy_function("scipy.special", "pdtrc")
polygamma = lazy_function("scipy.special", "polygamma")
psi = lazy_function("scipy.special", "psi")
softmax = lazy_function("scipy.special", "softmax")
stdtr = lazy_function("scipy.special", "stdtr")
stdtrit = lazy_function("scipy.special", "stdtrit")
xlog1py = lazy_function("scipy.special", "xlog1py")
xlogy = lazy_function("scipy.special", "xlogy")


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


class LazyModule:
    """A module that is imported when an attribute of it is first used.

    >>> LazyModule("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)  # the next use does not come here
        return found


class _Sparse(LazyModule):
    """`scipy.sparse`, loaded with the first sparse matrix.

    >>> _Sparse("scipy.sparse").issparse([1, 2])
    False
    """

    def issparse(self, data: object) -> bool:
        loaded = sys.modules.get("scipy.sparse")
        return loaded is not None and bool(loaded.issparse(data))


if TYPE_CHECKING:
    from scipy import sparse as sparse
else:
    sparse = _Sparse("scipy.sparse")

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")
arrow_compute: Any = LazyModule("pyarrow._compute")
"""`pyarrow.compute` takes 30 ms to write a documented Python function for each of 300; this is what they call."""
