"""The examples of the documentation are what Python prints."""

import doctest
import re
from pathlib import Path

import pytest

import softcount as sc

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")
def test_there_are_pages_with_examples():
    assert {"densities.md", "em.md", "scikit-learn.md"} <= {page.name for page in PAGES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page):
    # The end of a block is the end of what is printed.
    text = re.sub(r"^ *```.*$", "", page.read_text(encoding="utf-8"), flags=re.M)
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")
def test_figures_of_the_classifier_page_are_those_of_the_benchmarks():
    page, benchmarks = (
        (DOCS / name).read_text(encoding="utf-8") for name in ("guide/classifier.md", "benchmarks/classifiers.md")
    )
    behind = page[page.index("## Where it is behind") : page.index("## Comparison with scikit-learn")]
    figures = re.findall(r"(?<![\d.])0?(\.\d+)", behind)
    assert len(figures) >= 10 and all(figure in benchmarks for figure in figures), figures


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")
def test_every_relative_link_of_a_page_leads_to_a_file():
    broken = []
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not link.startswith("http") and not (page.parent / link).exists():
                broken.append(f"{page.relative_to(DOCS)}: {link}")
    assert not broken, broken


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not here")
def test_the_reference_lists_every_public_name():
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.M))
    modules = ("families", "priors", "conditions", "images", "plot")
    public = {name for name in sc.__all__ if not name.startswith("_")} - {*modules, "errors"}
    for module in modules:
        public |= set(getattr(sc, module).__all__)
    assert public - listed == set()
