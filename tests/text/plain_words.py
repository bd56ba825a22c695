"""Words, vocabularies and matrices in the plainest Python there is: what the compiled kernels must agree with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from softcount.text import Reading


def words_of(text: str, reading: Reading) -> list[str]:
    """The words of one document, runs of them and runs of characters as scikit-learn says them."""
    low, high = reading.ngrams
    text = text.lower() if reading.lowercase else text
    if reading.analyzer == "word":
        stop = set(reading.stop_words) if not isinstance(reading.stop_words, str) else set()
        found = [word for word in re.findall(reading.pattern or r"(?u)\b\w\w+\b", text) if word not in stop]
        return [" ".join(found[at : at + n]) for n in range(low, high + 1) for at in range(len(found) - n + 1)]
    if reading.analyzer == "char":
        text = re.sub(r"\s\s+", " ", text)
        return [text[at : at + n] for n in range(low, high + 1) for at in range(len(text) - n + 1)]
    grams = []
    for word in text.split():
        word = f" {word} "
        if len(word) < low:
            grams.append(word)
        grams += [word[at : at + n] for n in range(low, high + 1) for at in range(len(word) - n + 1)]
    return grams


def counted(documents: Iterable[str | None], reading: Reading) -> list[Counter[str]]:
    """How often each document holds each of its words; a missing one holds none."""
    return [Counter(words_of(text or "", reading)) for text in documents]


def kept(tables: list[Counter[str]], reading: Reading, n_documents: int) -> list[str]:
    """The words that stay, in the order of their code points."""
    total: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for table in tables:
        total.update(table)
        documents.update(table.keys())
    least = reading.min_df if isinstance(reading.min_df, int) else reading.min_df * n_documents
    most = reading.max_df if isinstance(reading.max_df, int) else reading.max_df * n_documents
    words = [word for word in total if total[word] >= reading.min_count and least <= documents[word] <= most]
    words.sort(key=lambda word: (-total[word], word))
    return sorted(words[reading.drop_top :][: reading.max_words])


def matrix(tables: list[Counter[str]], words: list[str]) -> np.ndarray:
    """Documents times words, every cell of it."""
    return np.array([[table[word] for word in words] for table in tables], np.int64).reshape(len(tables), len(words))
