"""Nonparametric densities of one column or a few: kernel densities and histograms."""
