"""
Choose the number of classes
============================

The evidence of each number of classes: the probability of the table with the parameters
integrated out.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import SelectionDisplay

model = sc.Mixture(kinds={"type": "ignore"}, random_state=0).fit(table_path())
SelectionDisplay.from_estimator(model)
