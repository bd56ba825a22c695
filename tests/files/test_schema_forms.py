"""How data is read, in a model file: it comes back as it was, and what makes no sense is refused."""

from __future__ import annotations

from typing import Any

import pytest

from softcount.errors import DataError, ModelFileError
from softcount.files.codec import encode
from softcount.files.schema import decode_schema, encode_schema
from softcount.sources.source import FileFormat
from softcount.table.cell_forms import WHOLE, CellForm, NumberForm, TimeForm
from softcount.table.schema import Field, Kind, Schema

FORMS = [
    WHOLE,
    NumberForm("$", "", ".", ",", parentheses=True, digits=2),
    TimeForm("%d.%m.%Y", padded=False),
    TimeForm("%Y-%m-%d %H:%M:%S", typed="timestamp[us, tz=UTC]"),
    None,
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_schema_comes_back_as_it_was(form: CellForm | None) -> None:
    column = Field("x", Kind.REAL, "numbers", missing=("-", "unknown"), written=form)
    read = FileFormat.of(header=False, names=["x", "y"], delimiter="tab", skip_lines=2, comment="#", decimal=",")
    schema = Schema((column,), ("", "NA"), read)
    assert decode_schema(encode_schema(schema, {}), {}) == schema


SENSELESS: list[Any] = [
    {"form": "code", "digits": 1},
    {"form": "number"},
    {**encode(NumberForm(), {}, ""), "digits": 10**9},
    {**encode(NumberForm(), {}, ""), "digits": -1},
    {**encode(NumberForm(), {}, ""), "prefix": 3},
    {**encode(NumberForm(), {}, ""), "more": ""},
    {**encode(TimeForm(), {}, ""), "typed": "struct<a: int32>"},
]


@pytest.mark.parametrize("written", SENSELESS, ids=str)
def test_a_form_that_makes_no_sense_is_refused(written: Any) -> None:
    document = encode_schema(Schema((Field("x", Kind.REAL, "numbers"),)), {})
    document["fields"][0]["written"] = written
    with pytest.raises(ModelFileError, match="makes no sense"):
        decode_schema(document, {})


@pytest.mark.parametrize(
    "form",
    [{"header": "no"}, {"skip_lines": True}, {"delimiter": "abc"}, {"encoding": "rot13"}, {"other": "x"}, []],
    ids=str,
)
def test_a_way_to_read_files_that_makes_no_sense_is_refused(form: Any) -> None:
    document = encode_schema(Schema((Field("x", Kind.REAL, "numbers"),)), {})
    document["form"] = form
    with pytest.raises((ModelFileError, DataError, TypeError)):
        decode_schema(document, {})
