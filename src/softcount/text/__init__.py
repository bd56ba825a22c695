"""Documents to counts of words: how they are read, the words they hold, and the vocabulary that is kept."""

from softcount.text.block import Block, block_of, blocks_of
from softcount.text.gather import Chosen, Gathered
from softcount.text.matrices import matrix_of
from softcount.text.reading import Reading
from softcount.text.words import Words

__all__ = ["Block", "Chosen", "Gathered", "Reading", "Words", "block_of", "blocks_of", "matrix_of"]
