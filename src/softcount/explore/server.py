"""A server on this machine for an explorer that is too large for a file, or that shows the answers of `predict`.

It listens on 127.0.0.1 only, at a port that the system chooses. A request needs the token that was printed, and must
name this host: another page in the same browser knows neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlsplit

from softcount.errors import DataError, SoftcountError
from softcount.explore.page import ExplorePage, page_html, page_policy
from softcount.fitted.answers import labels_in
from softcount.fitted.fitted import Fitted
from softcount.run.local import Runner
from softcount.table.schema import Key

LONGEST = 64 * 1024
"""Bytes that a question may have."""

Predict = Callable[[dict[str, Any]], dict[str, float]]


class PageServer(ThreadingHTTPServer):
    """A page, what answers its questions, and the token of both."""

    daemon_threads = True

    def __init__(self, page: ExplorePage, predict: Predict | None) -> None:
        super().__init__(("127.0.0.1", 0), PageHandler)
        self.token = token_urlsafe(24)
        self.predict = predict
        asking = None if predict is None else {"token": self.token}
        self.html = page_html(page, asking).encode()
        self.policy = page_policy(reach=predict is not None)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"


class PageHandler(BaseHTTPRequestHandler):
    """One request. Whatever is not exactly what the page asks for is refused."""

    server: PageServer
    server_version = "softcount"
    sys_version = ""
    timeout = 30  # who opens a connection and says nothing is not waited for

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        token = parse_qs(address.query).get("token", [""])[0]
        if not self._known(token):
            return
        if address.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.html)

    def do_POST(self) -> None:
        if not self._known(self.headers.get("X-Softcount-Token", "")):
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/predict" or self.server.predict is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
        elif not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a request must state its length")
        elif int(length) > LONGEST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {LONGEST:,} bytes")
        else:
            self._predict(self.rfile.read(int(length)), self.server.predict)

    def _predict(self, body: bytes, predict: Predict) -> None:
        try:
            question = json.loads(body)
            if not isinstance(question, dict):
                raise ValueError("a request must be a JSON object")
            found = predict(question)
        except SoftcountError as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ValueError, TypeError, KeyError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "this page does not send such requests")
        else:
            self._answer(HTTPStatus.OK, "application/json", json.dumps(found).encode())

    def _known(self, token: str) -> bool:
        """Whether the request has the token and is for this host; refused if not."""
        host = self.headers.get("Host", "")
        hosts = [f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")]
        here = host in hosts and self.headers.get("Origin") in (None, f"http://{host}")
        if here and compare_digest(token.encode(), self.server.token.encode()):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "open the address that was printed")
        return False

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what is left of the question is not read
        self._answer(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.policy,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: questions are private."""


def make_predictor(model: Fitted) -> Predict:
    """Return what turns a question, cells by the names of their columns, into the probability of each class.

    A level comes as its place among the levels, a number as a number, a document as text; anything else is refused.
    """
    keys = {name: key for key, name in labels_in(model).items()}
    leaves = {column: leaf for leaf in model.model.leaves for column in leaf.columns}
    levels = {column: leaf.levels_of(leaf.columns.index(column)) for column, leaf in leaves.items()}

    def cell(key: Key, value: Any) -> Any:
        own = levels[key]
        if own is None:
            if type(value) in ((str,) if key in model.schema.texts else (int, float)):
                return value
        elif type(value) is int and 0 <= value < len(own):
            return own[value]
        raise DataError(f"column {key!r} cannot be given as {value!r}.")

    runner: Any = Runner()

    def predict(question: dict[str, Any]) -> dict[str, float]:
        row = {keys[name]: cell(keys[name], value) for name, value in question.items()}
        table = model.table({spec.key: [row.get(spec.key)] for spec in model.schema.used})
        return dict(zip(map(str, model.names), model.proba(table, runner)[0].tolist(), strict=True))

    return predict
