"""Chains in model files: counts, alphabet and settings, and back, trusting nothing that is read."""

from __future__ import annotations

from typing import Any

import numpy as np

import softcount
from softcount.chains.counts import Alphabet, ContextCounts, ContextLevel
from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document, naming, write
from softcount.files.json_document import key_of, plain
from softcount.files.model_file import prior_document, prior_from
from softcount.table.schema import MOST_LEVELS, NARROW_LEVELS, Field, Kind, Schema


def save_chain(chain: Any, path: Any) -> None:
    """Write what a chain counted, and its settings."""
    (spec,) = chain.schema_.used
    settings = {
        "order": chain.order, "ends": chain.ends,
        "prior": chain.prior if isinstance(chain.prior, str) else prior_document(chain.prior),
        "symbols": None if chain.symbols is None else [plain(symbol) for symbol in chain.symbols],
    }  # fmt: skip
    about = {
        "settings": settings, "order": chain.order_, "column": plain(spec.key), "missing": list(chain.schema_.missing),
        "symbols": [plain(symbol) for symbol in chain.symbols_],
        "notes": list(chain.input_notes_), "evidence": [[order, height] for order, height in chain.evidence_.items()],
    }  # fmt: skip
    arrays: Arrays = {}
    for back, level in enumerate(chain.counts_.levels):
        arrays |= {f"keys{back}": level.keys, f"counts{back}": level.counts}
    write(path, {"chain": about}, arrays)


def holds_chain(document: Document) -> bool:
    """Whether a model file is one of a chain."""
    return "chain" in document


def load_chain(path: Any, document: Document, arrays: Arrays) -> Any:
    """The chain that was saved."""
    with naming(path, "its chain makes no sense"):
        about, settings = document["chain"], dict(document["chain"]["settings"])
        prior = settings.pop("prior")
        chain = softcount.MarkovChain(prior=prior if isinstance(prior, str) else prior_from(prior), **settings)
        chain._check_settings()
        symbols, order = _symbols(about["symbols"]), about["order"]
        spec = Field(key_of(about["column"]), Kind.CATEGORICAL, "symbols", symbols, wide=len(symbols) > NARROW_LEVELS)
        chain.schema_ = Schema((spec,), tuple(map(str, about["missing"])))
        chain.order_, chain.evidence_ = order, {int(tried): float(height) for tried, height in about["evidence"]}
        chain.input_notes_ = [str(note) for note in about["notes"]]
        if type(order) is not int or order < 0 or (type(chain.order) is int and order != chain.order):
            raise ModelFileError("its order is not that of its settings.")
        chain._keep(_counts(arrays, Alphabet(len(symbols), chain.ends), order))
        return chain


def _symbols(kept: Any) -> tuple[Any, ...]:
    symbols = tuple(key_of(symbol) for symbol in kept)
    plain_ones = all(isinstance(symbol, str | int | float | bool) for symbol in symbols)
    if not 0 < len(symbols) <= MOST_LEVELS + 1 or not plain_ones or len(set(symbols)) != len(symbols):
        raise ModelFileError("its symbols are not all different texts or numbers.")
    return symbols


def _counts(arrays: Arrays, alphabet: Alphabet, order: int) -> ContextCounts:
    alphabet.check_order(order)
    return ContextCounts(alphabet, tuple(_level(arrays, alphabet, back) for back in range(order + 1)))


def _level(arrays: Arrays, alphabet: Alphabet, back: int) -> ContextLevel:
    keys, counts = arrays[f"keys{back}"], arrays[f"counts{back}"]
    if keys.dtype != np.int64 or counts.dtype != np.float64 or keys.ndim != 1 or keys.shape != counts.shape:
        raise ModelFileError("its keys and counts are not one for one.")
    if len(keys) and (keys[0] < 0 or keys[-1] >= alphabet.base ** (back + 1) or (np.diff(keys) <= 0).any()):
        raise ModelFileError("its contexts are not in order, or none of this alphabet.")
    last = keys % alphabet.base
    if ((last < 1) | (last > alphabet.predicted)).any() or not (np.isfinite(counts) & (counts > 0)).all():
        raise ModelFileError("its counts are not those of symbols.")
    if back == 0 and not len(keys):
        raise ModelFileError("nothing was counted.")
    return ContextLevel(keys, counts)
