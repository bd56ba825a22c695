"""Bayesian networks of discrete nodes: structure, exact inference, sampling and structure learning.

The package takes and returns plain arrays. It knows nothing about columns, priors or file formats.

A node is an integer from 0. Its table has one axis per parent, in the order of the graph, and its own levels as the
last axis. Flattened to (parent configurations x levels), the first parent changes slowest. A code is the number of a
level; -1 marks a missing cell.
"""
