"""
Draw a nomogram of naive Bayes
==============================

Each value of each column stands at its log-odds. Add the log-odds of the cells of a row
to the start value to get the prediction without a computer.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import NomogramDisplay

model = sc.NaiveBayes().fit(table_path(), "type")
NomogramDisplay.from_estimator(model, classes=("road", "city"))
