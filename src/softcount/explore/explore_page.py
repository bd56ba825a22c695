"""The page as one file: the model's document, the code that computes with it, and nothing from anywhere else."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct

from softcount.core import remedies
from softcount.errors import DataError
from softcount.files import atomic_writer
from softcount.fitted.answers import answering_model, dependence_warning
from softcount.fitted.fitted import Fitted
from softcount.pictures.drawing import markup
from softcount.report.html_page import STYLE, content_policy, html_document
from softcount.report.plain_text import counted

SCRIPTS = (
    "numbers.js",
    "calibration.js",
    "words.js",
    "pool.js",
    "star.js",
    "network.js",
    "evidence.js",
    "page.js",
    "begin.js",
)
LARGEST = 3_000_000
"""Bytes that a page may have: more takes a browser seconds to read, and mail to carry."""


class ExplorePage(Struct, frozen=True):
    """A page to play with a model: any column from any others, computed by the page itself.

    `softcount.NaiveBayes().fit(X, y).explore().save("explore.html")`
    """

    title: str
    document: dict[str, Any]
    model_name: str = "model.sc"
    rows: dict[str, Any] | None = None

    @property
    def html(self) -> str:
        """The page as text; refused where it is larger than 3 MB."""
        found = page_html(self)
        size = len(found.encode())
        if size > LARGEST:
            raise DataError(
                f"the page would take {size / 1e6:.1f} MB, and a page of more than {LARGEST / 1e6:.0f} MB is slow to "
                "open and to send.\n  Let a server on this machine answer: "
                + remedies.either(
                    "in a shell, softcount explore MODEL --serve", f"softcount explore {self.model_name} --serve"
                )
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        found = self.html
        with atomic_writer(Path(path)) as file:
            file.write(found)


def explored(model: Any, name: str = "model.sc", rows: Any = None, note: str = "") -> ExplorePage:
    """The page of a fitted model; `name` is the file it is kept in, the first of `rows` can be loaded in the page.

    A `note` says what the model stands for, where it is not itself what the file holds, and `query` does not know it.
    """
    from softcount.explore.given_rows import given_rows

    document = document_of(model)
    if note:
        document |= {"notes": [note, *document["notes"]], "elsewhere": False}
    held = None if rows is None else given_rows(model, rows)
    return ExplorePage(f"Explore {Path(name).stem}", document, name, held)


def document_of(model: Any) -> dict[str, Any]:
    """What the page needs of a model."""
    if isinstance(model, Fitted):
        from softcount.explore.star_document import star_document

        found = star_document(model)
        what = f"{found['target']['name']} and {counted(len(found['columns']), 'column')}"
        lead = f"{what}{_learned(model.counts.rows, 'row')}: any from any others. Model: {answering_model(model)}."
        said = dependence_warning(model)
        return found | {"lead": lead, "notes": [*([said] if said else []), *found["notes"]]}
    if hasattr(model, "net"):
        from softcount.explore.net_document import net_document

        found = net_document(model)
        what = f"A network of {counted(len(found['nodes']) + len(found['leaves']), 'node')}"
        return found | {"lead": f"{what}{_learned(model.counts.rows, 'row')}: any from any others."}
    from softcount.explore.sequence_document import chain_document, states_document

    found = states_document(model.fitted_) if hasattr(model, "fitted_") else chain_document(model)
    steps = model.counts_.rows if hasattr(model, "fitted_") else model.counts_.steps
    what = f"The first {found.pop('steps')} steps of a sequence"
    return found | {"lead": f"{what}{_learned(steps, 'step')}: any from any others, before and after."}


def _learned(rows: float, what: str) -> str:
    return f", learned from {counted(rows, what)}" if rows > 0 else ""


def page_html(page: ExplorePage, asking: dict[str, str] | None = None) -> str:
    """The whole file, however large; `asking` is what a server of ours wants to be told with every question."""
    held = {
        "model": page.document,
        "name": page.model_name,
        "rows": page.rows,
        "sets": page.document["kind"] == "network",
        "elsewhere": page.document.get("elsewhere", True),
        "asking": asking,
    }
    body = _body(page) + f'<script type="application/json" id="model">{_inert(held)}</script>'
    policy = page_policy(reach=asking is not None)
    return html_document(page.title, body, _styles(), [script()], policy)


def page_policy(reach: bool = False) -> str:
    """What a browser may load and run: this page's own style and code; with `reach` it may ask its own server."""
    return content_policy(_styles(), [script()]) + ("; connect-src 'self'" if reach else "")


def _styles() -> list[str]:
    return [STYLE, _asset("explore.css")]


@cache
def _asset(name: str) -> str:
    return files("softcount.explore").joinpath("browser", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All code of the page, in a scope of its own."""
    return '"use strict";\n{\n' + "\n".join(map(_asset, SCRIPTS)) + "}\n"


def _inert(held: dict[str, Any]) -> str:
    """JSON in which nothing can end the element it stands in, or begin another."""
    text = json.dumps(held, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _body(page: ExplorePage) -> str:
    notes = "".join(f'<p class="quiet">{markup(note)}</p>' for note in page.document["notes"])
    rows = "" if page.rows is None else _rows_section(len(page.rows["cells"]))
    return BODY.format(title=markup(page.title), lead=markup(page.document["lead"]), notes=notes, rows=rows)


def _rows_section(count: int) -> str:
    return (
        '<section aria-labelledby="row-title"><h2 id="row-title">A row of the data</h2>'
        f'<div class="row-of"><label>row <input id="row" type="number" min="1" max="{count}" value="1"></label>'
        f'<button type="button" class="button" id="load">Load</button><span class="quiet">of {count:,}</span></div>'
        '<p class="quiet" id="row-note" role="status"></p></section>'
    )


BODY = """<main class="explore"><header><h1>{title}</h1><p class="lead">{lead}</p>{notes}
<noscript><p class="problem">This page computes its answers itself, which needs JavaScript to be allowed.</p></noscript>
</header>
<div class="tools"><fieldset><legend>A click says</legend>
<label><input type="radio" name="mode" value="one" checked>it is this</label>
<label><input type="radio" name="mode" value="several">one of several <span class="quiet">(Shift)</span></label>
<label><input type="radio" name="mode" value="not">not this <span class="quiet">(Alt)</span></label></fieldset>
<span class="quiet">Click again to take it back; drag over a number's bars for a range. Thin marks: with nothing given.
</span></div>
<p class="problem" id="problem" role="alert" hidden></p>
<div class="both"><div class="side" role="region" aria-label="What follows" tabindex="0">
<section id="asked" aria-label="The answer"></section>
<section id="predicted" aria-labelledby="predict-title" hidden><h2 id="predict-title">As predict tells it</h2>
<ul class="bits" id="predict" aria-live="polite"></ul></section>
<section aria-labelledby="given-title"><h2 id="given-title">Given</h2><ul class="chips" id="chips"></ul>
<p class="quiet" id="nothing">Nothing yet: click a bar.</p><p class="quiet" id="evidence" role="status"></p>
<div class="row-of"><button type="button" class="button" id="undo">Undo</button>
<button type="button" class="button" id="clear">Take all back</button></div></section>
{rows}<section class="after" aria-labelledby="why-title"><h2 id="why-title">Why</h2><div id="reasons"></div></section>
<section class="after" aria-labelledby="telling-title"><h2 id="telling-title">What would tell most</h2>
<ul class="bits" id="telling"></ul></section>
<section class="after" aria-labelledby="likeliest-title"><h2 id="likeliest-title">The likeliest row</h2><details>
<summary>All columns together</summary><table><tbody id="likeliest"></tbody></table></details></section>
<section class="after ask-section" id="elsewhere" aria-labelledby="ask-title">
<h2 id="ask-title">The same question elsewhere</h2>
<details><summary>Command and Python</summary><code class="ask" id="shell"></code><code class="ask" id="python"></code>
<p class="quiet" id="left"></p></details><div class="row-of">
<button type="button" class="button" id="copy-shell">Copy command</button>
<button type="button" class="button" id="copy-python">Copy Python</button>
<button type="button" class="button" id="copy-link">Copy link</button>
<span class="quiet" id="copied" role="status"></span></div></section>
</div><div id="cards"></div></div></main>
"""
