"""The scorers of models of classes in a model file.

The codec checks types. This module checks that every part matches the columns and classes of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.classify.aode import MOST_BYTES, bin_columns, pair_bytes, terms_of_all
from softcount.classify.encode import Binning, EncodedColumns, NumberScale
from softcount.classify.features import Terms
from softcount.classify.members import Aode, Member, Multinormal, Normals, Slopes, Tables, Words
from softcount.classify.recipes import ALL_RECIPES, LARGEST
from softcount.errors import ModelFileError
from softcount.files.codec import Arrays, Document, decode, finite_array, key_of, require
from softcount.fitted.calibration import METHODS, Calibration
from softcount.fitted.ensemble_scorers import AodeScorer, EnsembleScorer
from softcount.fitted.scorers import SCORERS, ColumnWeights, LinearWeights, Scorer
from softcount.models.base import ClassModel

MOST_TERMS = 100_000
MOST_STEPS = 10**9
ENSEMBLE, AODE = "its ensemble", "its counts of pairs"


def decode_scorer(document: Document, arrays: Arrays, model: ClassModel, known_classes: bool) -> Scorer:
    """Return the scorer after checking it against the model; only a model of known classes can be calibrated."""
    kind = str(document.get("kind"))
    require(kind in SCORERS, f"its scorer {kind!r:.40} is not known to this version.")
    what, check = CHECKS.get(kind, ("its calibration", None))
    infinite = ("log_loss", "plain", "plain_accuracy") if kind == "ensemble" else ()
    found = decode(SCORERS[kind], document, arrays, "scorer", what, infinite=infinite)
    found = found if check is None else check(found, model)
    calibration = found.calibration
    if calibration is not None:
        require(known_classes, "its calibration makes no sense: its classes are not known.")
        _check_calibration(calibration, model.groups)
    return found


def _check_calibration(found: Calibration, groups: int) -> None:
    wanted = 0 if found.method == "temperature" else 1 if groups == 2 else groups
    sound = groups > 1 and found.method in METHODS and len(found.curves) == wanted and found.rows > 0
    sound = sound and (found.temperature is None) == (wanted > 0) and bool(found.before and found.after)
    require(sound, "its calibration makes no sense.")
    for k, curve in enumerate(found.curves, 1):
        odds, share = (finite_array(x, None, f"curve {k} of its calibration") for x in (curve.odds, curve.share))
        rising = odds.ndim == 1 and odds.shape == share.shape and len(odds) > 0 and bool((np.diff(odds) > 0).all())
        rising = rising and bool(((share > 0) & (share < 1)).all()) and not (np.diff(share) < 0).any()
        require(rising, f"curve {k} of its calibration does not rise from point to point.")


def _check_ensemble(found: EnsembleScorer, model: ClassModel) -> EnsembleScorer:
    ensemble, schema, classes = found.ensemble, model.schema, model.groups
    columns = EncodedColumns.of(schema)
    ensemble = replace(ensemble, tried=tuple(replace(x, setting=key_of(x.setting)) for x in ensemble.tried))
    known = all(name in ALL_RECIPES for name in (*ensemble.names, *(line.name for line in ensemble.tried)))
    known = known and 0 < len(ensemble.names) == len(ensemble.members)
    require(known, f"its ensemble has members {ensemble.names!r:.80}, which this version does not know.")
    weights = finite_array(ensemble.weights, (len(ensemble.names),), ENSEMBLE)
    finite_array(ensemble.bias, (classes,), ENSEMBLE)
    require(weights.min() >= 0 and weights.max() <= LARGEST, "the weights of its ensemble make no sense.")
    blocks = [leaf.setting for leaf in model.leaves if not leaf.columns]  # a sparse table has one
    words = [len(each.levels) for each in (schema.stored("bags") or blocks)]
    for member in ensemble.members:
        _check_member(member, columns, words, classes)
    if ensemble.sparse is not None:
        own, presence = ensemble.sparse.member, ensemble.sparse.presence
        _check_member(own, columns, words, classes)
        sound = own.by_column and (finite_array(presence, (len(columns.keys) + len(words),), ENSEMBLE) >= 0).all()
        require(sound, "the scorer for rows with few cells makes no sense.")
    return replace(found, ensemble=ensemble)


def _check_member(member: Member, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    finite_array(member.bias, (classes,), ENSEMBLE)
    for part in member.parts:
        CHECKED_PARTS[type(part)](part, columns, words, classes)


def _check_tables(part: Tables, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    _check_terms(part.terms, part.cuts, columns, 2)
    finite_array(part.values, (part.terms.width, classes), ENSEMBLE)


def _check_slopes(part: Slopes, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    finite_array(part.values, (_check_scale(part.scale, columns), classes), ENSEMBLE)


def _check_normals(part: Normals, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    shape = classes, _check_scale(part.scale, columns)
    finite_array(part.means, shape, ENSEMBLE)
    _check_positive(part.variances, shape)


def _check_multinormal(part: Multinormal, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    width = _check_scale(part.scale, columns)
    finite_array(part.means, (classes, width), ENSEMBLE)
    try:
        np.linalg.cholesky(finite_array(part.covariances, (classes, width, width), ENSEMBLE))
    except np.linalg.LinAlgError:
        raise ModelFileError("the covariances of its ensemble are not positive definite.") from None


def _check_stars(part: Aode, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    _check_terms(part.terms, part.cuts, columns, 1)
    width = part.terms.width
    finite_array(part.shares, (classes,), ENSEMBLE)
    finite_array(part.alone, (classes, width), ENSEMBLE)
    finite_array(part.given, (classes, width, width), ENSEMBLE)


def _check_words(part: Words, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    scale, widths = part.scale, [1 + own for own in words]
    require(0 < len(widths) == len(scale.factors), "its words are not those of its texts.")
    for factors, width in zip(scale.factors, widths, strict=True):
        require((finite_array(factors, (width,), ENSEMBLE) >= 0).all(), "the weights of its words make no sense.")
    finite_array(scale.middle, (len(widths),), ENSEMBLE)
    _check_positive(scale.spread, (len(widths),))
    finite_array(part.words, (sum(widths), classes), ENSEMBLE)
    finite_array(part.lengths, (len(widths), classes), ENSEMBLE)


CHECKED_PARTS: dict[type, Callable[[Any, EncodedColumns, Sequence[int], int], None]] = {
    Tables: _check_tables,
    Slopes: _check_slopes,
    Normals: _check_normals,
    Multinormal: _check_multinormal,
    Aode: _check_stars,
    Words: _check_words,
}


def _check_edges(edges: Sequence[np.ndarray]) -> None:
    for part in edges:
        rising = finite_array(part, None, "its cuts").ndim == 1 and (np.diff(part) > 0).all()
        require(rising, "its cuts are out of order.")


def _check_terms(terms: Terms, cuts: Binning, columns: EncodedColumns, most: int) -> None:
    """Check tables of at most `most` columns each, and the bins of the numbers."""
    sizes = (*(len(edges) + 1 for edges in cuts.edges), *columns.sizes)
    require(len(cuts.edges) == columns.numbers and cuts.sizes == sizes, "its cuts are not those of its columns.")
    _check_edges(cuts.edges)
    known = set(range(len(cuts.sizes)))
    sound = len(terms.columns) <= MOST_TERMS and terms.sizes == cuts.sizes
    sound = sound and all(0 < len(set(x)) == len(x) <= most and set(x) <= known for x in terms.columns)
    require(sound, "its tables are of columns that it does not have.")


def _check_scale(scale: NumberScale, columns: EncodedColumns) -> int:
    """Return how many numbers are standardised."""
    own = scale.columns
    known = own.dtype == np.int64 and own.ndim == 1 and len(np.unique(own)) == len(own)
    known = known and set(own.tolist()) <= set(range(columns.numbers))
    require(known, "its ensemble is of columns that it does not have.")
    finite_array(scale.floor, (len(own),), ENSEMBLE)
    finite_array(scale.middle, (len(own),), ENSEMBLE)
    _check_positive(scale.spread, (len(own),))
    return len(own)


def _check_positive(spread: np.ndarray, shape: tuple[int, ...]) -> None:
    require((finite_array(spread, shape, ENSEMBLE) > 0).all(), "a spread of its columns is not above zero.")


def _check_aode(scorer: AodeScorer, model: ClassModel) -> AodeScorer:
    found, classes = scorer.counts, model.groups
    columns = EncodedColumns.of(model.schema)
    terms = found.pairs.terms
    _check_terms(terms, found.cuts, columns, 1)
    usual = bin_columns(columns, dict(zip(columns.keys[: columns.measured], found.cuts.edges, strict=False)))
    require(all(map(np.array_equal, found.cuts.edges, usual.edges)), "its cuts are not those of its columns.")
    sound = list(terms.columns) == sorted(terms.columns) and found.setting.concentration > 0
    require(sound, f"{AODE} make no sense.")
    small = not terms.columns or pair_bytes(terms.width, classes) <= MOST_BYTES
    require(small, f"{AODE} take more room than they may.")
    counts = finite_array(found.pairs.counts, (classes, terms.width, terms.width), AODE)
    single = finite_array(found.single, (terms_of_all(found.cuts.sizes).width, classes), AODE)
    sizes = finite_array(found.sizes, (classes,), AODE)
    sound = min(x.min(initial=0.0) for x in (counts, single, sizes)) >= 0
    require(sound, f"{AODE} make no sense: some are below zero.")
    symmetric = np.array_equal(counts, counts.transpose(0, 2, 1))
    require(symmetric, f"{AODE} make no sense: they are not symmetric.")
    return scorer


def _check_column_weights(found: ColumnWeights, model: ClassModel) -> ColumnWeights:
    what = "the weights of its columns"
    finite_array(found.intercept, (model.groups,), what)
    require((finite_array(found.weights, (len(model.leaves),), what) >= 0).all(), f"{what} make no sense.")
    return found


def _check_linear(found: LinearWeights, model: ClassModel) -> LinearWeights:
    what = "its logistic regression"
    sound = found.penalty > 0 and 0 <= found.n_iter <= MOST_STEPS and len(found.weights) == len(model.leaves)
    require(sound, f"{what} makes no sense.")
    for own, leaf in zip(found.weights, model.leaves, strict=True):
        finite_array(own, (model.groups, leaf.family.width(leaf.setting)), what)
    finite_array(found.intercept, (model.groups,), what)
    return found


CHECKS: dict[str, tuple[str, Callable[[Any, ClassModel], Scorer]]] = {
    "column weights": ("the weights of its columns", _check_column_weights),
    "logistic regression": ("its logistic regression", _check_linear),
    "ensemble": (ENSEMBLE, _check_ensemble),
    "AODE": (AODE, _check_aode),
}
"""By kind of scorer: how errors name it, and a check of what its types do not say."""
