"""The compiled kernels, under the names that `reference` has."""

from softcount.kernels.codes import count_codes_labelled, count_codes_soft, score_codes
from softcount.kernels.posterior import normalise, normalise_weighted
from softcount.kernels.reals import count_reals_labelled, count_reals_soft, score_reals

__all__ = [
    "count_codes_labelled",
    "count_codes_soft",
    "count_reals_labelled",
    "count_reals_soft",
    "normalise",
    "normalise_weighted",
    "score_codes",
    "score_reals",
]
