"""Functions and modules imported on first use. Loading SciPy takes longer than a small fit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any


def lazy_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports its module on the first call.

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
isotonic_regression = lazy_function("scipy.optimize", "isotonic_regression")
logit = lazy_function("scipy.special", "logit")
ndtri = lazy_function("scipy.special", "ndtri")
pdtrc = lazy_function("scipy.special", "pdtrc")
polygamma = lazy_function("scipy.special", "polygamma")
psi = lazy_function("scipy.special", "psi")
softmax = lazy_function("scipy.special", "softmax")
rel_entr = lazy_function("scipy.special", "rel_entr")
stdtr = lazy_function("scipy.special", "stdtr")
stdtrit = lazy_function("scipy.special", "stdtrit")
xlog1py = lazy_function("scipy.special", "xlog1py")
xlogy = lazy_function("scipy.special", "xlogy")


class LazyModule:
    """A module that is imported when one of its attributes is first used.

    >>> LazyModule("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)  # later uses bypass __getattr__
        return found


class _Sparse(LazyModule):
    """`scipy.sparse`, imported with the first sparse matrix.

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
"""Importing `pyarrow.compute` takes 30 ms to wrap 300 functions in Python.

This is the module that the wrappers call.
"""
