"""
Rank the columns by influence
=============================

The divergence of the classes from the whole table, column by column.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import InfluenceDisplay

InfluenceDisplay.from_estimator(sc.NaiveBayes().fit(table_path(), "type"))
