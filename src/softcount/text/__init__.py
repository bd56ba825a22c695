"""Documents to counts of words: how they are read, the words they hold, and the vocabulary that is kept."""

from softcount.text.count_words import WordBlock, block_of
from softcount.text.vocabulary import Chosen, Gathered, matrix_of
from softcount.text.words import Reading, Words

__all__ = ["Chosen", "Gathered", "Reading", "WordBlock", "Words", "block_of", "matrix_of"]
