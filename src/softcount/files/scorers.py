"""The scorers of models of classes in a model file.

The codec checks types. This module checks that every part matches the columns and classes of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.classify.aode import MOST_BYTES, bin_columns, pair_bytes, terms_of_all
from softcount.classify.encode import Binning, EncodedColumns, NumberScale
from softcount.classify.features import Terms
from softcount.classify.members import Aode, Tables, Words
from softcount.classify.recipes import ALL_RECIPES, LARGEST
from softcount.files.codec import Arrays, Document, decode, key_of, require
from softcount.fitted.ensemble_scorers import AodeScorer, EnsembleScorer
from softcount.fitted.scorers import SCORERS, LinearWeights, Scorer
from softcount.models.base import ClassModel

MOST_TERMS = 100_000
ENSEMBLE, AODE = "its ensemble", "its counts of pairs"


def decode_scorer(document: Document, arrays: Arrays, model: ClassModel, known_classes: bool) -> Scorer:
    """Return the scorer after checking it against the model; only a model of known classes can be calibrated."""
    kind, classes = str(document.get("kind")), model.groups
    require(kind in SCORERS, f"its scorer {kind!r:.40} is not known to this version.")
    what, check = CHECKS.get(kind, ("its calibration", None))
    infinite = ("log_loss", "plain", "plain_accuracy") if kind == "ensemble" else ()
    sizes = {"classes": classes, "leaves": len(model.leaves)}
    found = decode(SCORERS[kind], document, arrays, "scorer", what, infinite, sizes)
    found = found if check is None else check(found, model)
    if (calibration := found.calibration) is not None:
        curves = 0 if calibration.method == "temperature" else 1 if classes == 2 else classes
        sound = known_classes and classes > 1 and len(calibration.curves) == curves
        sound = sound and bool(calibration.before and calibration.after)
        require(sound, "its calibration makes no sense: it is of other classes, or has no figures.")
    return found


def _check_ensemble(found: EnsembleScorer, model: ClassModel) -> EnsembleScorer:
    ensemble, schema = found.ensemble, model.schema
    columns = EncodedColumns.of(schema)
    ensemble = replace(ensemble, tried=tuple(replace(x, setting=key_of(x.setting)) for x in ensemble.tried))
    known = all(name in ALL_RECIPES for name in (*ensemble.names, *(line.name for line in ensemble.tried)))
    known = known and 0 < len(ensemble.names) == len(ensemble.members)
    require(known, f"its ensemble has members {ensemble.names!r:.80}, which this version does not know.")
    require(ensemble.weights.max() <= LARGEST, "the weights of its ensemble make no sense.")
    blocks = [leaf.setting for leaf in model.leaves if not leaf.columns]  # a sparse table has one
    words = [1 + len(each.levels) for each in (schema.stored("bags") or blocks)]
    for member in (*ensemble.members, *([] if ensemble.sparse is None else [ensemble.sparse.member])):
        for part in member.parts:
            if isinstance(part, Words):
                own = 0 < len(words) == len(part.scale.factors) and words == list(map(len, part.scale.factors))
                require(own, "its words are not those of its texts.")
            elif isinstance(part, (Tables, Aode)):
                _check_terms(part.terms, part.cuts, columns, 1 if isinstance(part, Aode) else 2)
            else:
                _check_scale(part.scale, columns)
            covariances = getattr(part, "covariances", np.eye(1))
            require(
                (np.linalg.eigvalsh(covariances) > 0).all(), "covariances of its ensemble are not positive definite."
            )
    if ensemble.sparse is not None:
        sound = ensemble.sparse.member.by_column and len(ensemble.sparse.presence) == len(columns.keys) + len(words)
        require(sound, "the scorer for rows with few cells makes no sense.")
    return replace(found, ensemble=ensemble)


def _check_terms(terms: Terms, cuts: Binning, columns: EncodedColumns, most: int) -> None:
    """Check tables of at most `most` columns each, and the bins of the numbers."""
    sizes = (*(len(edges) + 1 for edges in cuts.edges), *columns.sizes)
    require(len(cuts.edges) == columns.numbers and cuts.sizes == sizes, "its cuts are not those of its columns.")
    require(all((np.diff(edges) > 0).all() for edges in cuts.edges), "its cuts are out of order.")
    known = set(range(len(cuts.sizes)))
    sound = len(terms.columns) <= MOST_TERMS and terms.sizes == cuts.sizes
    sound = sound and all(0 < len(set(x)) == len(x) <= most and set(x) <= known for x in terms.columns)
    require(sound, "its tables are of columns that it does not have.")


def _check_scale(scale: NumberScale, columns: EncodedColumns) -> None:
    own = scale.columns
    known = own.dtype == np.int64 and own.ndim == 1 and len(np.unique(own)) == len(own)
    known = known and set(own.tolist()) <= set(range(columns.numbers))
    require(known, "its ensemble is of columns that it does not have.")


def _check_aode(scorer: AodeScorer, model: ClassModel) -> AodeScorer:
    found = scorer.counts
    columns = EncodedColumns.of(model.schema)
    terms = found.pairs.terms
    _check_terms(terms, found.cuts, columns, 1)
    usual = bin_columns(columns, dict(zip(columns.keys[: columns.measured], found.cuts.edges, strict=False)))
    require(all(map(np.array_equal, found.cuts.edges, usual.edges)), "its cuts are not those of its columns.")
    sound = list(terms.columns) == sorted(terms.columns) and len(found.single) == terms_of_all(found.cuts.sizes).width
    require(sound, f"{AODE} make no sense.")
    small = not terms.columns or pair_bytes(terms.width, model.groups) <= MOST_BYTES
    require(small, f"{AODE} take more room than they may.")
    symmetric = np.array_equal(found.pairs.counts, found.pairs.counts.transpose(0, 2, 1))
    require(symmetric, f"{AODE} make no sense: they are not symmetric.")
    return scorer


def _check_linear(found: LinearWeights, model: ClassModel) -> LinearWeights:
    widths = [leaf.family.width(leaf.setting) for leaf in model.leaves]
    own = [weights.shape[1] for weights in found.weights]
    require(own == widths, "its logistic regression makes no sense: its weights are not those of its columns.")
    return found


CHECKS: dict[str, tuple[str, Callable[[Any, ClassModel], Scorer] | None]] = {
    "column weights": ("the weights of its columns", None),
    "logistic regression": ("its logistic regression", _check_linear),
    "ensemble": (ENSEMBLE, _check_ensemble),
    "AODE": (AODE, _check_aode),
}
"""By kind of scorer: how errors name it, and a check of what its annotations do not say."""
