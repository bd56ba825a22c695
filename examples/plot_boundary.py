"""
Draw the regions of the classes
===============================

Naive Bayes with a variance per class has curved boundaries. The columns that are not
drawn are left missing.
"""

from sklearn.datasets import load_iris

import softcount as sc
from softcount.plot import BoundaryDisplay

data = load_iris(as_frame=True)
model = sc.NaiveBayes().fit(data.data, data.target_names[data.target])
BoundaryDisplay.from_estimator(model, data.data, columns=("petal length (cm)", "petal width (cm)"))
