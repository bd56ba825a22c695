"""Bayes' rule over hypotheses and models: posteriors, marginal likelihoods, and expert beliefs as priors."""
