"""
Draw clusters and the cost of k-means
=====================================

The regions of three centres, and the cost J after each assignment and each update.
"""

import matplotlib.pyplot as plt
import numpy as np

import softcount as sc
from softcount.plot import ClusterDisplay, TraceDisplay

rng = np.random.default_rng(3)
points = np.concatenate([rng.normal(centre, 0.8, (80, 2)) for centre in [(0, 0), (4, 1), (2, 4)]])
model = sc.KMeans(3, init=points[:3], n_init=1).fit(points)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
ClusterDisplay.from_estimator(model, points, ax=axes[0])
TraceDisplay.from_estimator(model, ax=axes[1])
