"""The server hands the page to whoever has the token and asked for its own host, and answers small questions only."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from explored_models import MODELS
from softcount.explore import make_explorer
from softcount.explore.server import LONGEST, PageServer, make_predictor


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    fitted = MODELS["classifier"]().model.fitted_
    with PageServer(make_explorer(fitted), make_predictor(fitted)) as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server: PageServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    line.request(method, path, body, headers)
    answer = line.getresponse()
    found = answer.status, answer.read(), answer.headers
    line.close()
    return found


def question(server: PageServer, body: Any, **headers: str) -> tuple[int, bytes, Any]:
    return ask(server, "POST", "/predict", body, **{"X-Softcount-Token": server.token, **headers})


def test_the_page_comes_to_who_has_the_token(server: PageServer) -> None:
    status, body, headers = ask(server, "GET", f"/?token={server.token}")
    assert status == 200
    assert body.startswith(b"<!doctype html>")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "connect-src 'self'" in policy and "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"


def test_it_listens_on_this_machine_alone(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/?token=", {}),
        ("/?token=guess", {}),
        ("/?token=%00%ff", {}),
        ("TOKEN", {"Host": "evil.example"}),
        ("TOKEN", {"Host": "127.0.0.1:1"}),
        ("TOKEN", {"Host": "127.0.0.1"}),
        ("TOKEN", {"Origin": "https://evil.example"}),
        ("TOKEN", {"Origin": "null"}),
    ],
)
def test_nobody_else_gets_anything(server: PageServer, path: str, headers: dict[str, str]) -> None:
    status, body, _ = ask(server, "GET", path.replace("TOKEN", f"/?token={server.token}"), **headers)
    assert status == 403
    assert b"html" not in body


def test_a_question_is_answered_as_predict_does(server: PageServer) -> None:
    explored_model = MODELS["classifier"]()
    for row in explored_model.rows[:20].to_dict("records"):
        levels = explored_model.model.levels_
        asked = {
            name: [str(x) for x in levels[name]].index(str(cell)) if name in levels else float(cell)
            for name, cell in row.items()
        }
        status, body, _ = question(server, json.dumps(asked))
        expected = explored_model.model.predict_proba({name: [cell] for name, cell in row.items()})
        assert status == 200
        assert list(json.loads(body).values()) == pytest.approx(expected[0].tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"[" * 50_000, 400),
        (b'{"nobody": 1}', 400),
        (b'{"height": "tall"}', 422),
        (b'{"colour": 99}', 422),
        (b'{"colour": -1}', 422),
        (b'{"colour": true}', 422),
        (b'{"colour": null}', 422),
        (b'{"height": [1]}', 422),
        (b'\xff\xfe{"a": 1}', 400),
        (b" " * (LONGEST + 1), 413),
    ],
)
def test_anything_else_is_refused(server: PageServer, body: bytes, status: int) -> None:
    found, said, _ = question(server, body)
    assert found == status
    assert b"Traceback" not in said


def test_a_question_without_token_or_elsewhere_is_refused(server: PageServer) -> None:
    assert ask(server, "POST", "/predict", b"{}")[0] == 403
    assert question(server, b"{}", Host="evil.example")[0] == 403
    assert question(server, b"{}", Origin="https://evil.example")[0] == 403
    assert ask(server, "POST", "/", b"{}", **{"X-Softcount-Token": server.token})[0] == 404
    assert ask(server, "GET", f"/predict?token={server.token}")[0] == 404
    assert ask(server, "PUT", "/", b"{}")[0] == 501
