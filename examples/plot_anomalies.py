"""
Rows that fit nowhere
=====================

Bicycles that surprise the model, and the cells that do it. No unit matters: surprise is in nats beyond what is usual.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import AnomalyDisplay

model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
AnomalyDisplay.from_estimator(model, table_path())
