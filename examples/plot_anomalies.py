"""
Rows that fit nowhere
=====================

Bicycles of low density under the model, and the cells that cause it. Units do not matter.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import AnomalyDisplay

model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
AnomalyDisplay.from_estimator(model, table_path())
