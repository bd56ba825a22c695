"""A mixture that keeps several numbers of classes: densities, samples and queries are asked of their average."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from softcount.estimators.asked_instead import handing_on

ASKED = ("score_samples", "sample", "query")
"""What the average answers by the same name."""
NOT_ASKED = ("bic", "aic", "icl", "description_length")
"""What is of one number of classes."""

with_averages = handing_on(
    "average_", ASKED, NOT_ASKED, "of one number of classes, and these are averaged: see selection_."
)
"""A class decorator: where there is an `average_`, the methods above ask it, or are refused."""


def averaged_numbers(mixture: Any, fits: list[Any]) -> Any:
    """The average of a mixture's fits, each as a mixture of its own with that number of classes."""
    from softcount.estimators.model_average import average

    members = {}
    for fitted in sorted(fits, key=lambda fitted: fitted.n_groups):
        member = clone(mixture).set_params(n_components=fitted.n_groups)
        member._keep(fitted)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(mixture, name):
                setattr(member, name, getattr(mixture, name))
        members[f"{fitted.n_groups} class{'' if fitted.n_groups == 1 else 'es'}"] = member
    return average(members, by=mixture.criterion)
