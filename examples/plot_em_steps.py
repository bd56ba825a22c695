"""
Watch EM converge
=================

Two components start in the wrong place and move to the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import softcount as sc
from softcount.plot import EllipseDisplay, LowerBoundDisplay

rng = np.random.default_rng(0)
short = rng.multivariate_normal([2.0, 54.5], [[0.07, 0.4], [0.4, 34.0]], 97)
long = rng.multivariate_normal([4.3, 80.0], [[0.17, 0.9], [0.9, 36.0]], 175)
eruptions = np.concatenate([short, long])

figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained", sharey=True)
start = [[2.5, 85.0], [4.0, 55.0]]
for ax, steps in zip(axes, (0, 2, 5, 30), strict=True):
    model = sc.GaussianMixture(2, means_init=start, max_iter=steps, tol=0, accelerate=False).fit(eruptions)
    EllipseDisplay.from_estimator(model, eruptions, columns=(0, 1), ax=ax)
    ax.set(title=f"after {steps} steps: {model.log_likelihood_:.1f}", xlabel="minutes", ylabel="")

# %%
# The log-likelihood never falls. `LowerBoundDisplay` draws both halves of each iteration.

model = sc.GaussianMixture(2, means_init=start, max_iter=12, tol=0, accelerate=False, half_steps=True).fit(eruptions)
LowerBoundDisplay.from_estimator(model)
