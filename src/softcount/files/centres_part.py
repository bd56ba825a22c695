"""Centres of k-means as a document and arrays, and back, trusting nothing that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import ModelFileError
from softcount.families.base import number, truth, whole
from softcount.files.archive import Arrays, Document, write

if TYPE_CHECKING:
    from softcount.learn.kmeans.fit import Centres


def save_centres(found: Centres, path: Any, settings: Document) -> None:
    """Write centres and how they were found; `settings` are the estimator's own arguments."""
    document = {
        "centres": {
            "scale": float(found.frame.scale), "unit": bool(found.frame.unit), "inertia": float(found.inertia),
            "converged": bool(found.converged), "agreed": [int(x) for x in found.agreed], "notes": list(found.notes),
            "sizes": None if found.sizes is None else found.sizes.tolist(),
        },
        "estimator": settings,
    }  # fmt: skip
    trace = np.array(found.trace, dtype=np.float64)
    write(path, document, {"centres": found.centres, "anchor": found.frame.anchor, "trace": trace})


def holds_centres(document: Document) -> bool:
    """Whether a model file is one of k-means."""
    return "centres" in document


def centres_of(document: Document, arrays: Arrays) -> Centres:
    """The centres in a file's content, if they make sense."""
    from softcount.learn.kmeans.fit import Centres  # only who has some pays for loading it
    from softcount.learn.kmeans.points import BEYOND, Frame

    about = document["centres"]
    if set(arrays) != {"centres", "anchor", "trace"}:
        raise ModelFileError(f"it has the arrays {sorted(arrays)}, not anchor, centres and trace.")
    centres, anchor, trace = (_finite(name, arrays[name]) for name in ("centres", "anchor", "trace"))
    scale, inertia = number(about["scale"], "its scale"), number(about["inertia"], "its cost")
    if centres.ndim != 2 or not centres.size or anchor.shape != centres.shape[1:] or trace.ndim != 1 or not len(trace):
        raise ModelFileError(
            f"centres of shape {centres.shape} and an anchor of shape {anchor.shape} do not go together."
        )
    if not (np.isfinite(scale) and scale > 0 and np.frexp(scale)[0] == 0.5) or inertia < 0 or trace[-1] != inertia:
        raise ModelFileError("its scale is no power of two, or its cost is not where its trace ends.")
    agreed = [whole(x, 0, 1 << 62, "the starts that agreed") for x in about["agreed"]]
    if len(agreed) != 2 or not 0 <= agreed[0] <= agreed[1] or not all(isinstance(x, str) for x in about["notes"]):
        raise ModelFileError("what it says of its starts makes no sense.")
    frame = Frame(anchor, scale, truth(about["unit"], "unit"))
    if not (np.abs(frame.inside(centres)) <= BEYOND).all():
        raise ModelFileError("its centres are too far from its anchor.")
    if frame.unit and np.abs((centres**2).sum(axis=1) - 1).max() > 1e-9:
        raise ModelFileError("its centres should have length one and do not.")
    converged = truth(about["converged"], "converged")
    sizes = _sizes(about.get("sizes"), len(centres))
    notes, starts = list(about["notes"]), (agreed[0], agreed[1])
    return Centres(centres, frame, inertia, trace.tolist(), converged, starts, notes, sizes)


def _sizes(value: Any, clusters: int) -> np.ndarray | None:
    """The weights of the clusters' rows; files of earlier versions have none."""
    if value is None:
        return None
    sizes = np.array([number(x, "a cluster's size") for x in value])
    if sizes.shape != (clusters,) or not (np.isfinite(sizes) & (sizes >= 0)).all() or not sizes.sum() > 0:
        raise ModelFileError("its clusters' sizes are not one for each.")
    return sizes


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ModelFileError(f"its {name} are not all finite numbers.")
    return array
