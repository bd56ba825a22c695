"""The compiled kernels, under the same names as in `reference`."""

# ruff: noqa: F401

from softcount.kernels.blocks import (
    count_centred,
    count_patterns,
    count_products,
    expect_products,
    expect_squares,
    score_centred,
    score_patterns,
    score_products,
)
from softcount.kernels.codes import (
    count_bags_labelled,
    count_bags_soft,
    count_codes_labelled,
    count_codes_soft,
    posterior_codes,
    score_bags,
    score_codes,
)
from softcount.kernels.posterior import normalise
from softcount.kernels.reals import count_reals_labelled, count_reals_soft, posterior_reals, score_reals
from softcount.kernels.reference import count_labels
