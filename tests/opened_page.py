"""A page that is open in a browser, and all that it asked for or failed at."""

from __future__ import annotations

import json
from typing import Any

GRAVE = ("serious", "critical")


class OpenedPage:
    """`page` is playwright's; `strange` are requests for anything but the page, `failures` what the console says."""

    def __init__(self, browser: Any, address: str, part: str, how: dict[str, Any]) -> None:
        self.strange: list[str] = []
        self.failures: list[str] = []
        how.setdefault("viewport", {"width": 1200, "height": 900})
        self.page = browser.new_page(**how)
        self.page.on("request", lambda request: self._asked(request.url, address))
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("pageerror", lambda error: self.failures.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.failures.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.goto(address + part)

    def _asked(self, url: str, address: str) -> None:
        if url.split("#")[0] != address.split("#")[0]:
            self.strange.append(url)

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.failures.append(text)

    def ready(self) -> OpenedPage:
        """The page once its script has begun; functions cannot be waited for where the page forbids strange code."""
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=10_000)
        return self

    def run(self, code: str, given: Any = None) -> Any:
        """What a function of JavaScript makes of something."""
        return self.page.evaluate(code, given)

    def grave_faults(self, axe: str) -> list[str]:
        """What axe-core finds that is serious or worse, each with the first element it is true of."""
        self.page.evaluate(axe)
        found = json.loads(self.page.evaluate("async () => JSON.stringify((await axe.run()).violations)"))
        return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found if each["impact"] in GRAVE]

    def close(self) -> None:
        self.page.close()
