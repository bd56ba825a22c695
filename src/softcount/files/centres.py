"""Centres of k-means as a document and arrays, and back, trusting nothing that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from softcount.errors import ModelFileError
from softcount.files.codec import Arrays, Document, decode, encode, finite_array

if TYPE_CHECKING:
    from softcount.learn.kmeans.fit import Centres


def centres_document(found: Centres, arrays: Arrays) -> Document:
    """Centres, and how they were found, as a part of a model file."""
    trace = [float(x) for x in found.trace]
    return {"centres": encode(replace(found, trace=trace), arrays, "centres")}


def holds_centres(document: Document) -> bool:
    """Whether a model file is one of k-means."""
    return "centres" in document


def centres_of(document: Document, arrays: Arrays) -> Centres:
    """The centres in a file's content, if they make sense."""
    from softcount.learn.kmeans.fit import Centres  # only a file of k-means loads it
    from softcount.learn.kmeans.points import BEYOND

    found = decode(Centres, document["centres"], arrays, "centres", "its centres")
    frame, centres = found.frame, finite_array(found.centres, None, "its centres")
    if centres.ndim != 2 or not centres.size or not found.trace:
        raise ModelFileError(f"centres of shape {centres.shape} make no sense, or have no trace.")
    finite_array(frame.anchor, centres.shape[1:], "its anchor")
    if not (frame.scale > 0 and np.frexp(frame.scale)[0] == 0.5) or found.inertia < 0:
        raise ModelFileError("its scale is no power of two, or its cost is below zero.")
    if found.trace[-1] != found.inertia:
        raise ModelFileError("its cost is not where its trace ends.")
    if not 0 <= found.agreed[0] <= found.agreed[1]:
        raise ModelFileError("the starts that agreed make no sense.")
    if not (np.abs(frame.inside(centres)) <= BEYOND).all():
        raise ModelFileError("its centres are too far from its anchor.")
    if frame.unit and np.abs((centres**2).sum(axis=1) - 1).max() > 1e-9:
        raise ModelFileError("its centres should have length one and do not.")
    if found.sizes is not None:
        sizes = finite_array(found.sizes, (len(centres),), "its clusters' sizes")
        if sizes.min() < 0 or not sizes.sum() > 0:
            raise ModelFileError("its clusters' sizes are below zero, or all zero.")
    return found
