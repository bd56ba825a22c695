"""Every file written to mislead is read as an expert would read it, or refused with the option that helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import softcount
from first_contact.cases import CASES, Case
from softcount.cli import main
from softcount.errors import DataError
from table.reading import read_table

FILES = Path(__file__).parent / "files"


def in_the_shell(case: Case) -> dict[str, Any]:
    """What `softcount schema` answers."""
    result = CliRunner().invoke(main, ["schema", str(FILES / case.file), *case.options, "--json"])
    if result.exit_code:
        raise DataError(result.stderr)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def in_python(case: Case) -> dict[str, Any]:
    """The same from `softcount.read`."""
    found = read_table(softcount.read(FILES / case.file, **case.how))
    columns = [
        {"column": x.key, "kind": str(x.kind), "used": x.used, "why": x.why, "missing": found.table.missing.get(x.key)}
        for x in found.settled.schema.fields
    ]
    return {"columns": columns, "notes": found.table.notes}


def says_all(text: str, words: tuple[str, ...], ask: Any) -> None:
    """A text says all of these; options are for the shell alone."""
    for wanted in words:
        assert ask is in_python or wanted in text
        assert "--" in wanted or wanted in text
    assert ask is in_the_shell or " --" not in text


@pytest.mark.parametrize("ask", [in_the_shell, in_python])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_misleading_file_is_read_right_or_refused_with_what_helps(case: Case, ask: Any) -> None:
    if case.refused:
        with pytest.raises(DataError) as caught:
            ask(case)
        says_all(str(caught.value), case.refused, ask)
        return
    found = ask(case)
    kinds = {x["column"]: x["kind"] if x["used"] else "left out" for x in found["columns"]}
    assert kinds == case.kinds
    said = "\n".join([*found["notes"], *(x["why"] for x in found["columns"])])
    says_all(said, case.says, ask)
    missing = {x["column"]: x["missing"] for x in found["columns"]}
    assert {key: missing[key] for key in case.missing} == case.missing


def test_every_file_is_of_a_case() -> None:
    assert {path.name for path in FILES.iterdir()} == {case.file for case in CASES}
