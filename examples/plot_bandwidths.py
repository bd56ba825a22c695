"""
Compare bandwidths and a histogram
==================================

The kernel density of 300 numbers with two modes: the bandwidth of the ISJ rule, one that is
too small, and one that is too large. On the right a histogram with given edges.
"""

import matplotlib.pyplot as plt
import numpy as np

import softcount as sc
from softcount.plot import HistogramDisplay, KernelDensityDisplay

rng = np.random.default_rng(0)
numbers = np.concatenate([rng.normal(2.0, 0.3, 100), rng.normal(4.3, 0.4, 200)])
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
density = sc.KernelDensity(bandwidth="isj").fit(numbers)
KernelDensityDisplay.from_estimator(density, bandwidths=[0.03, 0.8], ax=axes[0])
HistogramDisplay.from_estimator(sc.Histogram(bins=[1, 1.5, 2, 2.5, 3, 4, 5, 6]).fit(numbers), ax=axes[1])
