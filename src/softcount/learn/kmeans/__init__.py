"""k-means: its own kernel, seeds and repair of empty clusters."""
