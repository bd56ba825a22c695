"""
Draw a tree-augmented network
=============================

Each column may depend on the class and on one other column. The tree with the highest
mutual information given the class is chosen.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import NetworkDisplay

table = table_path()
kinds = {name: "ignore" for name in ("listing", "currency", "price", "weight_kg", "age_years", "frame_cm")}
net = sc.BayesNet.tan(table, "type", kinds=kinds)
NetworkDisplay.from_estimator(net)
