"""
A model on one sheet
====================

Every value of every column stands where its log-odds are. Add the places of a row's cells, and the
answer is read off without a computer.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import NomogramDisplay

model = sc.NaiveBayes().fit(table_path(), "type")
NomogramDisplay.from_estimator(model, classes=("road", "city"))
