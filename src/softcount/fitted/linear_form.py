"""Models whose log-odds are linear, written as weights and intercepts."""

from __future__ import annotations

import numpy as np

from softcount.errors import DataError
from softcount.families import Joint, Text
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node

Part = tuple[np.ndarray, np.ndarray]
"""A leaf's (groups x features) weights and (groups,) share of the intercept."""


def linear_form(model: Fitted) -> Part:
    """(coef, intercept) with softmax(x @ coef.T + intercept) equal to the model's probabilities.

    A normal column is one feature, its value; a 0/1 column one; any other categorical one per level; a multinomial
    block one per count, a text that is there one per word (for Bernoulli words, 1 where the word is there).
    """
    with np.errstate(divide="ignore"):
        intercept = np.log(model.shares)
    coefs = []
    public = model.params
    for leaf in model.star.leaves:
        coef, extra = _linear_leaf(leaf, public[leaf.key])
        coefs.append(coef)
        intercept = intercept + extra
    return np.concatenate(coefs, axis=1), intercept


def _linear_leaf(leaf: Node, params: dict[str, np.ndarray]) -> Part:
    name = leaf.family.name
    if name == "normal" and getattr(leaf.family, "tied", None) in ("classes", "both") and "freedom" not in params:
        return _normal_part(params)
    if isinstance(leaf.family, Text):
        weights = leaf.family.natural(params)
        return weights[:, 1:], weights[:, 0]
    if isinstance(leaf.family, Joint) or name not in ("categorical", "bernoulli", "multinomial"):
        raise DataError(
            f"column {leaf.key!r} ({name}) is not linear in the classes' log-odds. "
            "Linear are multinomial, Bernoulli, text, categorical, and Normal(tied='classes')."
        )
    with np.errstate(divide="ignore"):
        logs = np.log(params["probability"])
    if name != "multinomial" and leaf.setting.levels in ((0, 1), (False, True)):
        return logs[:, 1:] - logs[:, :1], logs[:, 0]
    return logs, np.zeros(len(logs))


def _normal_part(params: dict[str, np.ndarray]) -> Part:
    mean, variance = params["mean"], params["variance"]
    return (mean / variance)[:, None], -(mean**2) / (2 * variance)
