"""
Find the rows that fit worst
============================

The bicycles with the lowest density under a mixture, and the cells that cause it. The
score does not depend on the units of the columns.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import AnomalyDisplay

model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
AnomalyDisplay.from_estimator(model, table_path())
