"""Conjugate priors, and rules for prior counts.

Each object holds one distribution or, with arrays for parameters, one per group (groups first). `update` adds counts
and returns a new object; the same classes serve as priors and as posteriors.
"""

from softcount.priors.distribution import Distribution
from softcount.priors.gamma import Gamma
from softcount.priors.normal import NormalInverseChi2, NormalKnownVariance
from softcount.priors.predictive import MultivariateStudentT, NegativeBinomial, Normal, StudentT
from softcount.priors.shares import Beta, Dirichlet, Expert, bdeu, best_concentration, jeffreys
from softcount.priors.wishart import NormalInverseWishart

__all__ = [
    "Beta",
    "Dirichlet",
    "Distribution",
    "Expert",
    "Gamma",
    "MultivariateStudentT",
    "NegativeBinomial",
    "Normal",
    "NormalInverseChi2",
    "NormalInverseWishart",
    "NormalKnownVariance",
    "StudentT",
    "bdeu",
    "best_concentration",
    "jeffreys",
]
