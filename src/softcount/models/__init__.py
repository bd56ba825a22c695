"""Structures: which columns depend on what. Parameters and data are passed in."""
