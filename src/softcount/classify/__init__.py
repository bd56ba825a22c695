"""Classes told by sums: tables of columns and of pairs, lines of numbers, correlated blocks, and their ensemble."""
