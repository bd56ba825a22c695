"""The examples of the documentation are what Python prints."""

import doctest
from pathlib import Path

import pytest

PAGES = [path for path in [Path(__file__).parents[1] / "docs" / "densities.md"] if path.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page):
    text = page.read_text(encoding="utf-8")
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=failures.append)
    assert not failures, "".join(failures)
