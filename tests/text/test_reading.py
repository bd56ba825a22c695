"""How documents are read: settings that make no sense are named, and the rest come in one form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.text import Reading

BAD: dict[str, list[Any]] = {
    "analyzer": ["words", None, ["word"]],
    "ngrams": [2, None, (1,), (2, 1), (0, 1), (1, 2, 3), (1.0, 2.0), "12", (1, 1001), (1, 999_999), (1001, 1001)],
    "pattern": ["(", 5, "(a)(b)"],
    "lowercase": ["no", None, 2],
    "stop_words": ["german", 3, None, ["the", 1]],
    "min_count": [0, 1.5, True, "3"],
    "min_df": [0, -0.1, 1.1, "2", None, True],
    "max_df": [0, 2.0, None],
    "drop_top": [-1, 0.5],
    "max_words": [0, "all", 1.5],
}


@pytest.mark.parametrize("make", [Reading, sc.families.Text])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_a_setting_that_makes_no_sense_is_named(make, name, value):
    with pytest.raises(sc.DataError, match=name):
        make(**{name: value})


@pytest.mark.parametrize("make", [Reading, sc.families.Text])
def test_what_means_the_same_is_the_same(make):
    said = make(
        ngrams=[1, np.int64(2)],
        stop_words={"the", "of"},
        min_count=np.int32(3),
        max_df=np.float32(0.5),
        lowercase=np.True_,
    )
    plain = make(ngrams=(1, 2), stop_words=("of", "the"), min_count=3, max_df=0.5)
    assert said == plain and hash(said) == hash(plain)
    assert type(said.min_count) is int and type(said.max_df) is float and said.lowercase is True
