"""The requests on the page about serving get the answers that it shows."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import softcount as sc
from served_rows import app_of, asked
from softcount.demo import table_path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serving.md"


def shown() -> list[tuple[str, str]]:
    """Each curl command on the page, and the answer below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:] if part.startswith("curl ")]
    return [re.fullmatch(r"(.*?')\n(\{.*)", part, re.S).groups() for part in parts]


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_requests_on_the_page_get_the_answers_it_shows(tmp_path):
    sc.NaiveBayes().fit(str(table_path()), "type").save(tmp_path / "bicycles.sc")
    app = app_of([str(tmp_path / "bicycles.sc")])
    examples = shown()
    assert len(examples) == 4
    for command, answer in examples:
        _, _, address, _, content = shlex.split(command)
        found = asked(app, ("POST", urlsplit(address).path, content.encode()))[0].json()
        assert without_numbers(found) == without_numbers(json.loads(answer))
        np.testing.assert_allclose(numbers(found), numbers(json.loads(answer)), rtol=1e-12)


def numbers(document: dict) -> list[float]:
    return [cell for x in document.get("outputs", []) for cell in x["data"] if isinstance(cell, float)]


def without_numbers(document: dict) -> str:
    return re.sub(r"\d\.\d+", "", json.dumps(document))
