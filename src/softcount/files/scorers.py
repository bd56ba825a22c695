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
from softcount.classify.members import Additive, Aode, Member, NormalsAndTables, ShrunkBlock, WordModel
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


def scorer_from(document: Document, arrays: Arrays, model: ClassModel, known_classes: bool) -> Scorer:
    """Return the scorer after checking it against the model; only a model of known classes can be calibrated."""
    kind = str(document.get("kind"))
    require(kind in SCORERS, f"its scorer {kind!r:.40} is not known to this version.")
    what, check = CHECKS.get(kind, ("its calibration", None))
    infinite = ("log_loss", "plain", "plain_accuracy") if kind == "ensemble" else ()
    found = decode(SCORERS[kind], document, arrays, "scorer", what, infinite=infinite)
    found = found if check is None else check(found, model)
    if found.calibration is not None:
        require(known_classes, "its calibration makes no sense: its classes are not known.")
        _check_calibration(found.calibration, model.groups)
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
        sound = own.by_column and (finite_array(presence, (len(own.cuts.sizes) + len(words),), ENSEMBLE) >= 0).all()
        require(sound, "what scores rows with few cells makes no sense.")
    return replace(found, ensemble=ensemble)


def _check_member(member: Member, columns: EncodedColumns, words: Sequence[int], classes: int) -> None:
    scores = 1 if classes == 2 else classes
    if isinstance(member, WordModel):
        scale, widths = member.scale, [1 + own for own in words]
        require(0 < len(widths) == len(scale.factors), "its words are not those of its texts.")
        for factors, width in zip(scale.factors, widths, strict=True):
            require((finite_array(factors, (width,), ENSEMBLE) >= 0).all(), "what its words weigh makes no sense.")
        finite_array(scale.middle, (len(widths),), ENSEMBLE)
        _check_positive(scale.spread, (len(widths),))
        finite_array(member.coefficients, (1 + sum(widths) + len(widths), scores), ENSEMBLE)
        return
    numbers, cuts = len(member.cuts.edges), member.cuts
    sizes = (*(len(edges) + 1 for edges in cuts.edges), *columns.sizes)
    require(numbers == columns.numbers and cuts.sizes == sizes, "its cuts are not those of its columns.")
    _check_edges(cuts.edges)
    if isinstance(member, Additive):
        _check_terms(member.terms, member.cuts, 2)
        _check_scale(member.scale, numbers)
        lined = len(member.coefficients) > 1 + member.terms.width
        finite_array(member.coefficients, (1 + member.terms.width + (numbers if lined else 0), scores), ENSEMBLE)
    elif isinstance(member, Aode):
        _check_terms(member.terms, member.cuts, 1)
        width = member.terms.width
        finite_array(member.shares, (classes,), ENSEMBLE)
        finite_array(member.alone, (classes, width), ENSEMBLE)
        finite_array(member.given, (classes, width, width), ENSEMBLE)
    else:
        _check_block(member, classes)


def _check_block(member: NormalsAndTables, classes: int) -> None:
    block, columns = member.block, member.columns
    known = columns.dtype == np.int64 and columns.ndim == 1 and len(np.unique(columns)) == len(columns)
    known = known and set(columns.tolist()) <= set(range(len(member.cuts.edges)))
    require(known, "its block is of columns that it does not have.")
    _check_terms(member.terms, member.cuts, 1)
    finite_array(member.tables, (member.terms.width, classes), ENSEMBLE)
    finite_array(member.shares, (classes,), ENSEMBLE)
    width = len(columns)
    _check_scale(block.scale, width)
    finite_array(block.means, (classes, width), ENSEMBLE)
    if not isinstance(block, ShrunkBlock):
        _check_positive(block.variances, (classes, width))
        return
    try:
        np.linalg.cholesky(finite_array(block.covariances, (classes, width, width), ENSEMBLE))
    except np.linalg.LinAlgError:
        raise ModelFileError("the covariances of its block are none.") from None


def _check_edges(edges: Sequence[np.ndarray]) -> None:
    for part in edges:
        rising = finite_array(part, None, "its cuts").ndim == 1 and (np.diff(part) > 0).all()
        require(rising, "its cuts are out of order.")


def _check_terms(terms: Terms, cuts: Binning, most: int) -> None:
    known = set(range(len(cuts.sizes)))
    sound = len(terms.columns) <= MOST_TERMS and terms.sizes == cuts.sizes
    sound = sound and all(0 < len(set(x)) == len(x) <= most and set(x) <= known for x in terms.columns)
    require(sound, "its tables are of columns that it does not have.")


def _check_scale(scale: NumberScale, numbers: int) -> None:
    finite_array(scale.floor, (numbers,), ENSEMBLE)
    finite_array(scale.middle, (numbers,), ENSEMBLE)
    _check_positive(scale.spread, (numbers,))


def _check_positive(spread: np.ndarray, shape: tuple[int, ...]) -> None:
    require((finite_array(spread, shape, ENSEMBLE) > 0).all(), "a spread of its columns is not above zero.")


def _check_aode(scorer: AodeScorer, model: ClassModel) -> AodeScorer:
    found, classes = scorer.counts, model.groups
    columns = EncodedColumns.of(model.schema)
    _check_edges(found.cuts.edges)
    usual = bin_columns(columns, dict(zip(columns.keys[: columns.measured], found.cuts.edges, strict=False)))
    same = len(found.cuts.edges) == len(usual.edges) and found.cuts.sizes == usual.sizes
    same = same and all(map(np.array_equal, found.cuts.edges, usual.edges))
    require(same, "its cuts are not those of its columns.")
    terms = found.pairs.terms
    _check_terms(terms, found.cuts, 1)
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
