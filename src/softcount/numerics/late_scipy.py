"""What of SciPy is in general use, loaded when it is first called: loading takes longer than fitting a small table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any


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
gammaln = _special("gammaln")
logit = _special("logit")
logsumexp = _special("logsumexp")
ndtr = _special("ndtr")
pdtr = _special("pdtr")
polygamma = _special("polygamma")
psi = _special("psi")
softmax = _special("softmax")
stdtr = _special("stdtr")
stdtrit = _special("stdtrit")
xlog1py = _special("xlog1py")
xlogy = _special("xlogy")


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
