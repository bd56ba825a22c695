"""
How many classes
================

The evidence for each number of classes: how probable the table is, its parameters averaged over.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import SelectionDisplay

model = sc.Mixture(kinds={"type": "ignore"}, random_state=0).fit(table_path())
SelectionDisplay.from_estimator(model)
