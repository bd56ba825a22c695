"""Markov chains on plain arrays: counts of contexts that add, what they predict, and what a chain does in the long run.

A context is the steps just before one, as many as the order; its counts say how often each symbol came next.
"""
