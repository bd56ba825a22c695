"""Markov chains on plain arrays: counts of contexts that add, predictions, and long-run behaviour.

The context of a step consists of the steps just before it, as many as the order. Its counts say how often each symbol
came next.
"""
