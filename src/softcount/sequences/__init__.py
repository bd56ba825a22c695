"""Sequences from any source, as the rows of one table: a row per step, and the first row of each sequence."""

from softcount.sequences.sources import open_sequences
from softcount.sequences.steps import Sequences

__all__ = ["Sequences", "open_sequences"]
