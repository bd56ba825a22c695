"""What tells the classes in a model file: the members of a pool and their weights, and back, trusting nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softcount.classify.encode import CutColumns, NumberScale, WordScale, level_sizes, number_count
from softcount.classify.ensemble import PartialRows, Pool, Tried
from softcount.classify.features import Terms
from softcount.classify.members import (
    Additive,
    BlockAndTables,
    SeparateNormals,
    ShrunkBlock,
    StarsOfCuts,
    StarTables,
    WordLines,
)
from softcount.classify.recipes import ALL_RECIPES, LARGEST
from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document
from softcount.files.filed_numbers import finite_array
from softcount.table.schema import Schema

MOST_TERMS = 100_000


def pool_document(pool: Pool, arrays: Arrays) -> Document:
    """A pool as JSON; what is large goes to `arrays`."""
    arrays["pool/weights"], arrays["pool/bias"] = pool.weights, pool.bias
    members = [_put(member, f"pool/{place}/", arrays) for place, member in enumerate(pool.members)]
    sparse = {}
    if pool.sparse is not None:
        arrays["pool/presence"] = pool.sparse.presence
        sparse = {"sparse": _put(pool.sparse.member, "pool/sparse/", arrays)}
    tried = [[line.name, _plain(line.setting), line.log_loss, line.accuracy, line.weight] for line in pool.tried]
    losses = [None if np.isnan(loss) else float(loss) for loss in (pool.log_loss, pool.plain)]
    return {"names": list(pool.names), "members": members, "tried": tried, "losses": losses, **sparse}


def _plain(setting: Any) -> Any:
    return list(setting) if isinstance(setting, tuple) else setting


def _put(member: Any, at: str, arrays: Arrays) -> Document:
    if isinstance(member, WordLines):
        return _put_words(member, at, arrays)
    kind, parts = next((name, parts) for name, (made_of, parts, _) in KINDS.items() if made_of(member))
    cuts, terms, own = parts(member)
    arrays[at + "edges"] = np.concatenate([np.zeros(0), *cuts.edges])
    for name, array in own.items():
        arrays[at + name] = np.ascontiguousarray(array)
    return {"kind": kind, "cuts": [len(edges) for edges in cuts.edges], "terms": [list(term) for term in terms.columns]}


def _put_words(member: WordLines, at: str, arrays: Arrays) -> Document:
    scale = member.scale
    arrays[at + "factors"] = np.concatenate(scale.factors)
    arrays[at + "middle"], arrays[at + "spread"] = scale.middle, scale.spread
    there = np.flatnonzero(member.coefficients.any(axis=1))  # of very many words most have none
    arrays[at + "places"], arrays[at + "coefficients"] = there, np.ascontiguousarray(member.coefficients[there])
    return {"kind": "words", "counts": scale.counts}


def pool_from(document: Document, arrays: Arrays, schema: Schema, words: Sequence[int], classes: int) -> Pool:
    """The pool of a file, if it is one of these columns, texts of so many words, and classes."""
    names = document["names"]
    if not isinstance(names, list) or not names or any(name not in ALL_RECIPES for name in names):
        raise ModelFileError(f"its classes are told by {names!r}, which this version does not know.")
    members = [
        _words(one, f"pool/{k}/", arrays, words, classes)
        if one["kind"] == "words"
        else _member(one, f"pool/{k}/", arrays, schema, classes)
        for k, one in enumerate(document["members"])
    ]
    weights, bias = finite_array(arrays, "pool/weights", (len(names),)), finite_array(arrays, "pool/bias", (classes,))
    if len(members) != len(names) or weights.min() < 0 or weights.max() > LARGEST:
        raise ModelFileError("the weights of what tells its classes make no sense.")
    held, plain = (float("nan") if loss is None else float(loss) for loss in document["losses"])
    sparse = _sparse(document, arrays, schema, len(words), classes)
    tried = tuple(map(_tried, document["tried"]))
    return Pool(tuple(names), tuple(members), weights, bias, tried, held, plain, sparse)


def _sparse(document: Document, arrays: Arrays, schema: Schema, texts: int, classes: int) -> PartialRows | None:
    """The part that scores rows with few cells; files of an earlier version have none."""
    if "sparse" not in document:
        return None
    member = _member(document["sparse"], "pool/sparse/", arrays, schema, classes)
    presence = finite_array(arrays, "pool/presence", (len(member.cuts.sizes) + texts,))
    if not isinstance(member, Additive) or not member.by_column or (presence < 0).any():
        raise ModelFileError("what scores rows with few cells makes no sense.")
    return PartialRows(member, presence)


def _tried(line: Any) -> Tried:
    name, setting, *figures = line
    if name not in ALL_RECIPES or not all(isinstance(figure, (int, float)) for figure in figures) or len(figures) != 3:
        raise ModelFileError("what was tried to tell its classes makes no sense.")
    return Tried(name, tuple(setting) if isinstance(setting, list) else setting, *map(float, figures))


def _member(document: Document, at: str, arrays: Arrays, schema: Schema, classes: int) -> Any:
    if document["kind"] not in KINDS:
        raise ModelFileError(f"its classes are told by {document['kind']!r}, which this version does not know.")
    cuts = _cuts(document["cuts"], finite_array(arrays, at + "edges"), schema)
    terms = _terms(document["terms"], cuts)
    own = {name.removeprefix(at): finite_array(arrays, name) for name in arrays if name.startswith(at)}
    own["columns"] = arrays.get(at + "columns", np.zeros(0, dtype=np.int64))
    return KINDS[document["kind"]][2](cuts, terms, own, classes)


def _words(document: Document, at: str, arrays: Arrays, words: Sequence[int], classes: int) -> WordLines:
    widths = [1 + own for own in words]
    factors = finite_array(arrays, at + "factors", (sum(widths),))
    middle, spread = (finite_array(arrays, at + name, (len(widths),)) for name in ("middle", "spread"))
    if not widths or (factors < 0).any() or type(document["counts"]) is not bool:
        raise ModelFileError("what its words weigh makes no sense.")
    ends = np.cumsum(widths)[:-1]
    scale = WordScale(tuple(np.split(factors, ends)), middle, _positive(spread), document["counts"])
    places, columns = arrays.get(at + "places", np.zeros(0)), 1 if classes == 2 else classes
    found = np.zeros((1 + sum(widths) + len(widths), columns))
    sound = places.dtype == np.int64 and places.ndim == 1 and (np.diff(places) > 0).all()
    if not sound or (len(places) and not 0 <= places[0] <= places[-1] < len(found)):
        raise ModelFileError("its words are not those of its texts.")
    found[places] = finite_array(arrays, at + "coefficients", (len(places), columns))
    return WordLines(scale, found)


def _cuts(lengths: Any, edges: np.ndarray, schema: Schema) -> CutColumns:
    numbers = number_count(schema)
    whole = isinstance(lengths, list) and all(type(length) is int and length >= 0 for length in lengths)
    if not whole or len(lengths) != numbers or sum(lengths) != len(edges):
        raise ModelFileError("its cuts are not those of its columns.")
    parts = tuple(np.split(edges, np.cumsum(lengths)[:-1])) if lengths else ()
    if any((np.diff(part) <= 0).any() for part in parts):
        raise ModelFileError("its cuts are out of order.")
    return CutColumns(parts, (*(length + 1 for length in lengths), *level_sizes(schema)))


def _terms(columns: Any, cuts: CutColumns) -> Terms:
    known = range(len(cuts.sizes))
    sound = isinstance(columns, list) and len(columns) <= MOST_TERMS
    if not sound or not all(
        isinstance(term, list) and len(term) in (1, 2) and len(set(term)) == len(term) and set(term) <= set(known)
        for term in columns
    ):
        raise ModelFileError("its tables are of columns that it does not have.")
    return Terms(tuple(tuple(term) for term in columns), cuts.sizes)


def _shaped(own: Arrays, name: str, *shape: int) -> np.ndarray:
    if name not in own or own[name].shape != shape:
        raise ModelFileError(f"its {name} are not those of its columns and classes.")
    return own[name]


def _additive(cuts: CutColumns, terms: Terms, own: Arrays, classes: int) -> Additive:
    numbers, columns = len(cuts.edges), 1 if classes == 2 else classes
    scale = _scale(own, numbers)
    lined = len(own.get("coefficients", ())) > 1 + terms.width
    table = _shaped(own, "coefficients", 1 + terms.width + (numbers if lined else 0), columns)
    return Additive(cuts, terms, scale, table)


def _scale(own: Arrays, numbers: int) -> NumberScale:
    floor = _shaped(own, "floor", numbers) if "floor" in own else np.zeros(numbers)  # files of an earlier version
    return NumberScale(floor, _shaped(own, "middle", numbers), _positive(_shaped(own, "spread", numbers)))


def _normals(cuts: CutColumns, terms: Terms, own: Arrays, classes: int) -> BlockAndTables:
    columns = _columns(cuts, own)
    shape = (classes, len(columns))
    variances = _positive(_shaped(own, "variances", *shape))
    normals = SeparateNormals(_scale(own, len(columns)), _shaped(own, "means", *shape), variances)
    return BlockAndTables(cuts, terms, _tables(terms, own, classes), columns, normals, _shaped(own, "shares", classes))


def _columns(cuts: CutColumns, own: Arrays) -> np.ndarray:
    columns, numbers = own["columns"], len(cuts.edges)
    if columns.dtype != np.int64 or len(np.unique(columns)) != len(columns) or not set(columns) <= set(range(numbers)):
        raise ModelFileError("its block is of columns that it does not have.")
    return columns


def _block(cuts: CutColumns, terms: Terms, own: Arrays, classes: int) -> BlockAndTables:
    columns = _columns(cuts, own)
    width = len(columns)
    covariances = _shaped(own, "covariances", classes, width, width)
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise ModelFileError("the covariances of its block are none.") from None
    block = ShrunkBlock(_scale(own, width), _shaped(own, "means", classes, width), covariances)
    return BlockAndTables(cuts, terms, _tables(terms, own, classes), columns, block, _shaped(own, "shares", classes))


def _tables(terms: Terms, own: Arrays, classes: int) -> np.ndarray:
    if any(len(term) > 1 for term in terms.columns):
        raise ModelFileError("its tables are of columns that it does not have.")
    return _shaped(own, "tables", terms.width, classes)


def _positive(spread: np.ndarray) -> np.ndarray:
    if not (spread > 0).all():
        raise ModelFileError("a spread of its columns is not above zero.")
    return spread


def _stars(cuts: CutColumns, terms: Terms, own: Arrays, classes: int) -> StarsOfCuts:
    if any(len(term) > 1 for term in terms.columns):
        raise ModelFileError("its tables are of columns that it does not have.")
    width = terms.width
    stars = StarTables(
        terms, _shaped(own, "shares", classes), _shaped(own, "alone", classes, width),
        _shaped(own, "given", classes, width, width),
    )  # fmt: skip
    return StarsOfCuts(cuts, stars)


def _additive_parts(member: Additive) -> tuple[CutColumns, Terms, Arrays]:
    return member.cuts, member.terms, _scale_parts(member.scale) | {"coefficients": member.coefficients}


def _scale_parts(scale: NumberScale) -> Arrays:
    return {"floor": scale.floor, "middle": scale.middle, "spread": scale.spread}


def _block_parts(member: BlockAndTables) -> tuple[CutColumns, Terms, Arrays]:
    block = member.block
    own = _scale_parts(block.scale) | {"means": block.means}
    own |= {"covariances": block.covariances} if isinstance(block, ShrunkBlock) else {"variances": block.variances}
    own |= {"tables": member.tables, "columns": member.columns.astype(np.int64), "shares": member.shares}
    return member.cuts, member.terms, own


def _stars_parts(member: StarsOfCuts) -> tuple[CutColumns, Terms, Arrays]:
    stars = member.stars
    return member.cuts, stars.terms, {"shares": stars.shares, "alone": stars.alone, "given": stars.given}


KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[..., Any]]] = {
    "tables": (lambda member: isinstance(member, Additive), _additive_parts, _additive),
    "block": (lambda member: isinstance(getattr(member, "block", None), ShrunkBlock), _block_parts, _block),
    "normals": (lambda member: isinstance(getattr(member, "block", None), SeparateNormals), _block_parts, _normals),
    "stars": (lambda member: isinstance(member, StarsOfCuts), _stars_parts, _stars),
}
"""The members that a file may hold: how they are known, taken apart and put together."""
