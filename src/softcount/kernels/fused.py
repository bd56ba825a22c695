"""The compiled kernels, under the names that `reference` has."""

# ruff: noqa: F401

from softcount.kernels.bags import count_bags_labelled, count_bags_soft, score_bags
from softcount.kernels.blocks import (
    count_centred,
    count_products,
    expect_products,
    expect_squares,
    score_centred,
    score_products,
)
from softcount.kernels.codes import count_codes_labelled, count_codes_soft, posterior_codes, score_codes
from softcount.kernels.labelled_rows import count_labels
from softcount.kernels.patterns import count_patterns, score_patterns
from softcount.kernels.posterior import normalise, normalise_weighted
from softcount.kernels.real_scores import posterior_reals, score_reals
from softcount.kernels.reals import count_reals_labelled, count_reals_soft
