"""
Which columns matter
====================

How far the classes depart from the whole table, column by column, as AutoClass defined it.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import InfluenceDisplay

InfluenceDisplay.from_estimator(sc.NaiveBayes().fit(table_path(), "type"))
