"""Mixtures of trees over discrete parts and numbers, on plain arrays: parameters, learning and conditionals."""
