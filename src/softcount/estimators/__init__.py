"""The scikit-learn surface: thin wrappers of one fitted-model object, no maths."""

from softcount.estimators.gaussian_mixture import GaussianMixture
from softcount.estimators.k_means import KMeans, SphericalKMeans
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes

__all__ = ["GaussianMixture", "KMeans", "Mixture", "NaiveBayes", "SphericalKMeans"]
