"""
Draw the ellipses of a Gaussian mixture
=======================================

Three components fitted to the iris table, drawn in the two columns that separate them
best. The inner ellipse holds half of a component, the outer one 95 %.
"""

from sklearn.datasets import load_iris

import softcount as sc
from softcount.plot import EllipseDisplay

X = load_iris(as_frame=True).data
model = sc.GaussianMixture(3, random_state=0).fit(X)
EllipseDisplay.from_estimator(model, X)
print(f"log-likelihood {model.log_likelihood_:.4f}; {model.agreed_[0]} of {model.agreed_[1]} starts reached it")
