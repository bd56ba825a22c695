"""A real browser, one for all tests of a process: Debian's chromium, driven by playwright. Skipped without."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from explored_models import MODELS
from opened_page import OpenedPage

ROOT = Path(__file__).resolve().parent.parent.parent
AXE = ROOT / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
SETTINGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, open until the last test."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=list(SETTINGS))
        yield found
        found.close()


class PagePool:
    """Pages that are open, by how they were opened: those that nobody uses are turned to the next address."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.free: dict[str, list[OpenedPage]] = {}

    def taken(self, how: dict[str, Any]) -> OpenedPage:
        free = self.free.setdefault(repr(sorted(how.items())), [])
        return free.pop() if free else OpenedPage(self.browser, how)

    def given_back(self, page: OpenedPage, how: dict[str, Any]) -> None:
        self.free[repr(sorted(how.items()))].append(page)


@pytest.fixture(scope="session")
def page_pool(browser: Any) -> PagePool:
    return PagePool(browser)


@pytest.fixture
def opened(page_pool: PagePool, tmp_path: Path) -> Iterator[Callable[..., OpenedPage]]:
    """What opens a page from its HTML or address; afterwards it must have asked nothing of any other place and failed
    nowhere, unless the test says otherwise by emptying what was recorded."""
    pages: list[tuple[OpenedPage, dict[str, Any]]] = []

    def opening(html: str | None = None, address: str | None = None, part: str = "", **how: Any) -> OpenedPage:
        if html is not None:
            file = tmp_path / f"page{len(pages)}.html"
            file.write_text(html, encoding="utf-8")
            address = file.as_uri()
        assert address is not None
        pages.append((page_pool.taken(how), how))
        return pages[-1][0].turned_to(address, part)

    yield opening
    for page, how in pages:
        page_pool.given_back(page, how)
    for page, _ in pages:
        page.checked()


@pytest.fixture(scope="session")
def explored_pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], OpenedPage]]:
    """The page of a model by its name, opened once; for tests that only ask and click nothing."""
    pages: dict[str, OpenedPage] = {}

    def opening(name: str) -> OpenedPage:
        if name not in pages:
            file = tmp_path_factory.mktemp("explored") / "page.html"
            file.write_text(MODELS[name]().model.explore().html, encoding="utf-8")
            pages[name] = OpenedPage(browser, {}).turned_to(file.as_uri()).ready()
        return pages[name]

    yield opening
    for page in pages.values():
        page.checked()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what people who cannot see a page, or use a mouse, would stumble over."""
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm install --no-save --prefix .browser axe-core")
    return AXE.read_text(encoding="utf-8")
