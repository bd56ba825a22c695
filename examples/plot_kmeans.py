"""
k-means goes down
=================

Its cost after every assignment and every update never rises.
"""

import numpy as np

import softcount as sc
from softcount.plot import TraceDisplay

rng = np.random.default_rng(3)
points = np.concatenate([rng.normal(centre, 0.8, (80, 2)) for centre in [(0, 0), (4, 1), (2, 4)]])
model = sc.KMeans(3, init=points[:3], n_init=1).fit(points)
TraceDisplay.from_estimator(model)
