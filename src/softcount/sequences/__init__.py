"""Sequences: read from anywhere, and handed on as the rows of one table, one for each step, with where each begins."""

from softcount.sequences.sources import open_sequences
from softcount.sequences.steps import Sequences

__all__ = ["Sequences", "open_sequences"]
