"""
Check whether probabilities come true
=====================================

Naive Bayes is overconfident if columns repeat each other: its points lie below the diagonal.
The ensemble of `Classifier` stays near it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

import softcount as sc
from softcount.plot import ReliabilityDisplay

X, y = make_classification(3000, 10, n_informative=3, n_redundant=7, flip_y=0.1, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for model, ax in zip((sc.NaiveBayes(), sc.Classifier()), axes, strict=True):
    ReliabilityDisplay.from_estimator(model.fit(X[:1500], y[:1500]), X[1500:], y[1500:], ax=ax)
    ax.set_title(type(model).__name__)
