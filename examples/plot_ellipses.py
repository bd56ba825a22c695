"""
Three irises
============

A mixture of three correlated components, in the two columns that tell them apart best.
"""

from sklearn.datasets import load_iris

import softcount as sc
from softcount.plot import EllipseDisplay

X = load_iris().data
model = sc.GaussianMixture(3, random_state=0).fit(X)
EllipseDisplay.from_estimator(model, X)
print(f"log-likelihood {model.log_likelihood_:.4f}; {model.agreed_[0]} of {model.agreed_[1]} starts reached it")
