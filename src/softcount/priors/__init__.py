"""Beliefs as counts: conjugate pairs, and ways to imagine the counts they start from.

Each object holds one distribution or, with arrays for parameters, one per group (groups first). `update` adds what
was counted and gives a new object; the same objects serve as priors and as posteriors.
"""

from softcount.priors.beta import Beta
from softcount.priors.dirichlet import Dirichlet
from softcount.priors.distribution import Distribution
from softcount.priors.gamma import Gamma
from softcount.priors.normal import NormalInverseChi2, NormalKnownVariance
from softcount.priors.predictive import MultivariateStudentT, NegativeBinomial, StudentT
from softcount.priors.predictive import NormalPredictive as Normal
from softcount.priors.prior_counts import Expert, bdeu, best_concentration, jeffreys
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
