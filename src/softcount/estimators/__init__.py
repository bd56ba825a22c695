"""The scikit-learn surface: thin wrappers of one fitted-model object, no maths."""

from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes

__all__ = ["Mixture", "NaiveBayes"]
