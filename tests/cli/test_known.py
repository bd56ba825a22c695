"""Columns and values named on the command line are found in the model, or refused by name."""

from __future__ import annotations

import click
import pytest

from cli.stand_in import NASTY, StandIn
from softcount.cli.models import class_value, column_keys
from softcount.cli.options import find_name
from softcount.cli.query import read_given
from softcount.errors import DataError
from softcount.table.schema import Field, Kind, Schema


def test_a_number_is_a_number_and_a_level_is_the_models_own():
    assert read_given(StandIn(), ["size=2.5", f"colour={NASTY}"]) == {"size": 2.5, "colour": NASTY}


def with_columns(*fields: Field) -> StandIn:
    """A model of these columns and no others."""
    fitted = StandIn(schema=Schema(fields), target=None, classes=None)
    fitted.params = {spec.key: {} for spec in fields}  # type: ignore[misc]
    return fitted


def words(name: object, *levels: object) -> Field:
    return Field(name, Kind.CATEGORICAL, "", levels=levels)


def test_a_level_that_is_a_number_is_found_by_its_text():
    given = read_given(with_columns(words("colour", 1, 2)), ["colour=2"])
    assert given == {"colour": 2} and isinstance(given["colour"], int)


def test_a_level_never_seen_goes_on_as_text():
    assert read_given(StandIn(), ["colour=green"]) == {"colour": "green"}


def test_the_target_is_a_column_one_may_know():
    assert read_given(StandIn(), ["sort=b"]) == {"sort": "b"}


def test_a_name_and_a_value_may_hold_equals_signs():
    fitted = with_columns(words("a=b", "x"), words("a", "y=z"))
    assert read_given(fitted, ["a=b=x"]) == {"a=b": "x"}
    assert read_given(fitted, ["a=y=z"]) == {"a": "y=z"}


def test_a_column_without_a_name_is_found_by_its_number():
    assert read_given(with_columns(Field(1, Kind.REAL, "")), ["1=3"]) == {1: 3.0}


def test_a_column_of_a_block_can_be_asked_about_and_known():
    fitted = with_columns(words("x", 1, 2), words("y", 1, 2))
    fitted.params = {("x", "y"): {}}  # type: ignore[misc]
    assert find_name(column_keys(fitted), "y", "--of") == "y"
    assert read_given(fitted, ["x=2"]) == {"x": 2}


def test_a_misspelt_column_is_refused_with_the_right_name():
    with pytest.raises(DataError, match=r"no column 'sizes'\.\n  Did you mean 'size'"):
        read_given(StandIn(), ["sizes=1"])
    with pytest.raises(DataError, match=r"--of: the model has no column 'zzz'\.\n  It has colour, size, sort"):
        find_name(column_keys(StandIn()), "zzz", "--of")


def test_a_word_for_a_number_is_refused_by_column():
    with pytest.raises(DataError, match="column 'size' holds numbers, and 'big' is neither one nor a range"):
        read_given(StandIn(), ["size=big"])


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_what_is_not_a_finite_number_is_refused(word):
    with pytest.raises(DataError, match="column 'size'"):
        read_given(StandIn(), [f"size={word}"])


def test_a_class_that_is_not_there_is_refused_with_those_that_are():
    assert class_value(StandIn(target=None, classes=None), "1", "--against") == 1
    with pytest.raises(DataError, match=r"no class 'c'\.\n  It has a, b"):
        class_value(StandIn(), "c", "--against")


def test_a_column_given_twice_or_without_a_value_is_a_usage_error():
    with pytest.raises(click.UsageError, match="twice"):
        read_given(StandIn(), ["size=1", "size=2"])
    with pytest.raises(click.UsageError, match="COL=VALUE"):
        read_given(StandIn(), ["size"])
