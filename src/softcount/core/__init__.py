"""Exact sums, counts, special functions, lazy imports: code without statistics."""
