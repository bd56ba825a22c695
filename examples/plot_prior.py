"""
Draw priors and posteriors
==========================

A Beta prior and the posterior after one success and two failures, and a Dirichlet
distribution of three shares.
"""

import matplotlib.pyplot as plt

from softcount.plot import PriorDisplay, SimplexDisplay
from softcount.priors import Beta, Dirichlet

prior = Beta(5, 3)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
PriorDisplay.from_prior(prior, prior.update(successes=1, failures=2), ax=axes[0])
SimplexDisplay.from_prior(Dirichlet([8, 4, 2]), names=["red", "green", "blue"], ax=axes[1])
