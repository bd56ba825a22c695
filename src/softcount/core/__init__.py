"""Exact sums, counts, special functions, lazy imports and other code that knows nothing of models."""
