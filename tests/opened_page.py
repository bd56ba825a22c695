"""A page that is open in a browser, and all that it asked for or failed at."""

from __future__ import annotations

import json
from typing import Any

GRAVE = ("serious", "critical")


class OpenedPage:
    """`page` is playwright's, and is turned to one address after another, which costs a tenth of opening a new one.

    `strange` are requests for anything but the page, `failures` what the console says.
    """

    def __init__(self, browser: Any, how: dict[str, Any]) -> None:
        self.strange: list[str] = []
        self.failures: list[str] = []
        self.address = ""
        self.wanted = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"} | how
        self.page = browser.new_page(**self.wanted)
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("pageerror", lambda error: self.failures.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.failures.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def turned_to(self, address: str, part: str = "") -> OpenedPage:
        """The same page at an address, as if it had just been opened."""
        self.address = "about:blank"
        self.page.goto("about:blank")  # or only what is after # would change, and nothing begin anew
        self.page.set_viewport_size(self.wanted["viewport"])
        self.page.emulate_media(color_scheme=self.wanted["color_scheme"], media="screen")
        self.address = address.split("#")[0]
        self.page.goto(address + part)
        return self

    def _asked(self, url: str) -> None:
        if url.split("#")[0] != self.address:
            self.strange.append(url)

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.failures.append(text)

    def checked(self) -> None:
        """Nothing was asked of any other place, and nothing failed."""
        strange, failures = list(self.strange), list(self.failures)
        self.strange.clear()
        self.failures.clear()
        assert strange == []
        assert failures == []

    def ready(self) -> OpenedPage:
        """The page once its script has begun; functions cannot be waited for where the page forbids strange code."""
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=20_000)
        return self

    def run(self, code: str, given: Any = None) -> Any:
        """What a function of JavaScript makes of something."""
        return self.page.evaluate(code, given)

    def settled(self) -> OpenedPage:
        """The page once nothing in it moves any more."""
        self.run("async () => { await Promise.all(document.getAnimations().map(x => x.finished.catch(() => 0))); }")
        return self

    def grave_faults(self, axe: str, only: list[str] | None = None) -> list[str]:
        """What axe-core finds that is serious or worse, each with the first element it is true of; by some rules."""
        self.settled()
        if not self.run("() => Boolean(window.axe)"):
            self.run(axe)
        how = "{}" if only is None else json.dumps({"runOnly": {"type": "rule", "values": only}})
        found = json.loads(self.run(f"async () => JSON.stringify((await axe.run(document, {how})).violations)"))
        return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found if each["impact"] in GRAVE]

    def close(self) -> None:
        self.page.close()
