"""
A tree that naive Bayes lacks
=============================

Each column may depend on one other besides the class; which, is found by how much they say of each other.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import NetworkDisplay

table = table_path()
kinds = {name: "ignore" for name in ("listing", "currency", "price", "weight_kg", "age_years", "frame_cm")}
net = sc.BayesNet.tan(table, "type", kinds=kinds)
NetworkDisplay.from_estimator(net)
