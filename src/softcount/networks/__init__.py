"""Directed graphs of discrete nodes: their structure, exact answers, samples, and structures learned from codes.

Plain arrays in, plain arrays out; what a column means, what a prior imagines and how a table is read is not known here.
A node is a number from 0 on. Its table has an axis for each parent, in the order of the graph, and its own levels last,
so that it is also (parent configurations x levels), the first parent changing slowest. A code is the number of a
level, -1 where the cell was not seen.
"""
