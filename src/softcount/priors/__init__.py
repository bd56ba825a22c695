"""Conjugate priors, rules for prior counts, and priors made of expert beliefs and older models.

Each object holds one distribution or, with arrays for parameters, one per group (groups first). `update` adds counts
and returns a new object; the same classes serve as priors and as posteriors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcount.priors.distribution import Distribution as Distribution
from softcount.priors.gamma import Gamma
from softcount.priors.normal import NormalInverseChi2, NormalKnownVariance
from softcount.priors.older import Older
from softcount.priors.predictive import MultivariateStudentT as MultivariateStudentT
from softcount.priors.predictive import NegativeBinomial as NegativeBinomial
from softcount.priors.predictive import Normal as Normal
from softcount.priors.predictive import StudentT as StudentT
from softcount.priors.shares import Beta, Dirichlet, Expert
from softcount.priors.shares import bdeu as bdeu
from softcount.priors.shares import best_concentration as best_concentration
from softcount.priors.shares import jeffreys as jeffreys
from softcount.priors.wishart import NormalInverseWishart

__all__ = [
    "Beta",
    "Dirichlet",
    "Expert",
    "Gamma",
    "NormalInverseChi2",
    "NormalInverseWishart",
    "NormalKnownVariance",
    "Older",
    "compare_beliefs",
    "expert_prior",
]

if TYPE_CHECKING:
    from softcount.bayes.expert import compare_beliefs, expert_prior
else:

    def __getattr__(name: str) -> Any:
        if name in ("compare_beliefs", "expert_prior"):  # they take fitted models, of a layer above this one
            return getattr(import_module("softcount.bayes.expert"), name)
        raise AttributeError(f"module 'softcount.priors' has no attribute {name!r}")
