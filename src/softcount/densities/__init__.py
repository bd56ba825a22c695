"""Densities of one column and of a few, with no shape assumed: sums of kernels, and histograms."""
