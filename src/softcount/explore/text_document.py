"""What the page needs to read a document as the model does, and what every word of it says."""

from __future__ import annotations

from typing import Any

from softcount.explore.packed_arrays import packed
from softcount.families.text import WordFigures
from softcount.fitted.fitted import Fitted
from softcount.models.nodes import Node
from softcount.text import Reading


def text_document(model: Fitted, leaf: Node, words: WordFigures, name: str) -> dict[str, Any] | None:
    """The words with what each adds to every class, against the mean of the classes; None where a page cannot read it.

    A page can read words as they are read by default, and runs of words or characters, but no expression of Python's.
    Four bytes a number are enough where only differences between classes count: 300 words are off by 2e-6 together.
    """
    reading: Reading = model.schema[leaf.columns[0]].reading or Reading()
    params = model.estimates[leaf.key]
    public = leaf.family.public(params, leaf.setting)
    linear = leaf.family.linear(public, leaf.setting) if leaf.family.is_product(public) else None
    if linear is None or reading.pattern is not None or leaf.family.lacking(params) is not None:
        return None
    weights, start = linear
    return {
        "name": name,
        "kind": "text",
        "words": [str(word) for word in words.words],
        "logs": packed((weights - weights.mean(axis=0)).T, narrow=True),
        "start": packed(start - start.mean()),
        "once": words.once,
        "reading": {
            "analyzer": reading.analyzer,
            "runs": list(reading.ngrams),
            "lowercase": reading.lowercase,
            "stopped": list(reading.stopped),
        },
    }
