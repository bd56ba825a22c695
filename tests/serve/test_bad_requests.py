"""Requests that are not what they should be: refused in one sentence that says where, and never a fault of ours."""

import asyncio
import json
import random
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from click.testing import CliRunner

from served_rows import TABLE, app_of, asked, body, infer, outputs, tensor
from softcount.cli import main
from softcount.serve import application, models
from softcount.serve.application import Limits, Patience
from softcount.serve.models import ServedClasses, open_served
from softcount.serve.protocol import InferRequest, InferResponse, Tensor, write_response

GOOD = tensor("sex", ["m", "f"], "BYTES")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b"[1]", "not a request"),
        (b"{}", "`inputs`"),
        (b'{"inputs": []}', "`array` of length >= 1 - at `$.inputs`"),
        (b'{"inputs": [7]}', "Expected `object`, got `int` - at `$.inputs[0]`"),
        (b'{"inputs":[{"name":"a","datatype":"FP64","shape":[1],"data":' + b"[" * 100_000, "nested too deeply"),
        (body(tensor("age", [1.0], "FLOAT")), "column 'age' has the datatype 'FLOAT'"),
        (body(tensor("age", [1.0], None)), "Expected `str`, got `null` - at `$.inputs[0].datatype`"),
        (body(tensor("age", [1.5], "INT64")), "column 'age', row 1: 1.5 is not a whole number"),
        (body(tensor("age", [1, 300], "UINT8")), "row 2: 300 is not a whole number from 0 to 2^8 - 1"),
        (body(tensor("age", ["x"])), "row 1: 'x' is not a finite number"),
        (body(tensor("age", [True])), "True is not a finite number"),
        (body(tensor("sex", [3], "BYTES")), "3 is not a text"),
        (body(tensor("sex", ["\ud800"], "BYTES")), "not JSON in UTF-8"),
        (body(tensor("deck", [1], "BOOL")), "1 is not true or false"),
        (body(tensor("age", ["old"], "BYTES")), "column 'age' holds numbers, but row 1 holds 'old'. Send a number"),
        (
            b'{"inputs":[{"name":"age","datatype":"FP64","shape":[1],"data":[NaN]}]}',
            "invalid character (byte 63). A missing cell is null",
        ),
        (
            b'{"inputs":[{"name":"age","datatype":"FP64","shape":[1],"data":[-Infinity]}]}',
            "invalid character (byte 64)",
        ),
        (
            b'{"inputs":[{"name":"age","datatype":"FP64","shape":[1],"data":[1e999]}]}',
            "Number out of range - at `$.inputs[0].data[0]`",
        ),
        (body(tensor("age", [10**400], "FP64")), "is not a finite number"),
        (body(tensor("age", [1.0, 2.0], shape=[3])), "column 'age' has 2 cells and the shape [3]"),
        (body(tensor("age", [1.0, 2.0], shape=[1, 2])), "has the shape [2]"),
        (body(tensor("age", [[1.0], [2.0, 3.0]])), "is not a finite number"),
        (body(tensor("age", [])), "no rows"),
        (body({"name": "age", "datatype": "FP64", "shape": [1]}), "missing required field `data` - at `$.inputs[0]`"),
        (body(tensor("age", [1.0]), GOOD), "column 'age' has 1 rows and column 'sex' 2"),
        (body(GOOD, GOOD), "given twice"),
        (body(tensor("Sex", ["m"], "BYTES")), "the model has no column 'Sex'. Did you mean 'sex'?"),
        (body(tensor("height", [1.0])), "the model has no column 'height'. It has 'age', 'sex', 'deck'"),
        (body(GOOD, id=7), "got `int` - at `$.id`"),
        (body(GOOD, outputs=["label"]), "Expected `object`, got `str` - at `$.outputs[0]`"),
        (body(GOOD, outputs=[{"name": "label"}] * 3), "output 'label' is listed 3 times. Name every output once."),
    ],
)
def test_a_bad_request_is_told_what_is_wrong_with_it(app, content, said):
    response = infer(app, "titanic", content)
    assert response.status_code == 400
    assert list(response.json()) == ["error"] and said in response.json()["error"]


def test_k_means_wants_a_number_in_every_cell(app):
    for content, said in (
        (body(tensor("x", [1.0])), "column 'y' is not sent"),
        (body(tensor("x", [1.0, None]), tensor("y", [1.0, 2.0])), "column 'x', row 2, is missing"),
        (body(tensor("x", ["1"], "BYTES"), tensor("y", [1.0])), "holds '1'"),
    ):
        response = infer(app, "named", content)
        assert response.status_code == 400 and said in response.json()["error"]


def test_text_is_wanted_where_the_model_reads_text(app):
    response = infer(app, "spam", body(tensor("text", [1.0])))
    assert response.status_code == 400 and "row 1 holds 1.0. Send it as BYTES" in response.json()["error"]


def test_other_addresses_and_methods_are_refused_in_the_same_form(app):
    requests = (("GET", "/nowhere", None), ("GET", "/v2/models/titanic/infer", None), ("POST", "/v2", b"{}"))
    found = asked(app, *requests, ("POST", "/v2/models/..%2f..%2fetc/infer", body(GOOD)))
    assert [response.status_code for response in found] == [404, 405, 405, 404]
    assert all(list(response.json()) == ["error"] for response in found)


def test_another_host_and_another_origin_are_refused(app):
    for headers, status in (
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "localhost:99999999"}, 200),
        ({"host": "[::1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "http://localhost"}, 200),
        ({"host": "LOCALHOST:8000"}, 200),
    ):
        response = asked(app, ("GET", "/v2/health/live", None), headers=headers)[0]
        assert response.status_code == status, headers


def test_a_body_that_is_too_long_is_refused_and_one_that_just_fits_is_not(paths):
    content = body(GOOD)
    exact = app_of([paths["titanic"]], Limits(body=len(content)))
    assert infer(exact, "titanic", content).status_code == 200
    for longer in (content + b" ", content * 20):
        response = infer(exact, "titanic", longer)
        assert response.status_code == 413 and "Send fewer rows" in response.json()["error"]


def test_an_answer_of_too_many_cells_is_refused_with_the_rows_that_may_be_sent(app, monkeypatch):
    monkeypatch.setattr(models, "MOST_CELLS", 10)
    for route in ("infer", "explain"):
        response = infer(app, "titanic", body(tensor("age", [1.0] * 4)), route)
        assert response.status_code == 413 and "Send at most 3 rows at a time" in response.json()["error"]
    assert infer(app, "titanic", body(tensor("age", [1.0] * 3))).status_code == 200


def test_an_answer_has_the_id_of_its_request(app):
    answer = infer(app, "titanic", body(tensor("age", [float(age) for age in range(30)]), id="a"))
    assert answer.json()["id"] == "a" and len(answer.json()["outputs"][0]["data"]) == 30


def test_requests_beyond_what_the_server_holds_are_refused(paths, monkeypatch):
    content = body(GOOD)
    monkeypatch.setattr(application, "HELD", 2)
    monkeypatch.setattr(application, "HELD", 2)
    app = app_of([paths["titanic"]], Limits(body=len(content)))
    request = ("POST", "/v2/models/titanic/infer", content)
    found = asked(app, *[request] * 8)
    assert {response.status_code for response in found} == {200, 503}
    assert all("Ask again" in response.json()["error"] for response in found if response.status_code == 503)
    assert app.room.held == 0 and asked(app, request)[0].status_code == 200


def test_compressed_bodies_are_refused(app):
    request = ("POST", "/v2/models/titanic/infer", body(GOOD))
    assert asked(app, request, headers={"content-encoding": "gzip"})[0].status_code == 415


def test_work_past_its_deadline_is_given_up(paths):
    app = app_of([paths["titanic"]], Limits(working=0.0))
    for route in ("infer", "explain"):
        response = infer(app, "titanic", body(GOOD), route)
        assert response.status_code == 503 and "Send fewer rows" in response.json()["error"]


@pytest.mark.parametrize("name", ["titanic", "tree"])
def test_nobody_goes_on_with_what_nobody_waits_for(paths, name):
    model, rows = open_served(paths[name]), InferRequest({}, 20)
    assert model.explain(rows, Patience(60.0)) is not None
    for ask in (model.infer, model.explain):
        with pytest.raises(TimeoutError):
            ask(rows, Patience(-1.0))


def test_work_for_a_client_that_went_away_is_given_up(paths, monkeypatch):
    """A body, then the end of the connection: the answer, which would never come, is no longer worked on."""
    ended = threading.Event()

    def endless(model, asked, runner):
        try:
            for _ in runner.map(lambda task: time.sleep(0.001), count()):
                pass
        finally:
            ended.set()

    monkeypatch.setattr(ServedClasses, "infer", endless)
    app = app_of([paths["titanic"]], Limits(working=3600.0))
    messages = [{"type": "http.request", "body": body(GOOD)}, {"type": "http.disconnect"}]
    scope = {"type": "http", "method": "POST", "path": "/v2/models/titanic/infer", "headers": [(b"host", b"localhost")]}
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(app(scope | {"query_string": b""}, receive, send))).result()
    assert ended.wait(60) and sent[0]["status"] == 499
    assert "499" in app.metrics.text()


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The body with a few bytes changed, or a part of its document replaced by something else."""
    if rng.random() < 0.5:
        found = bytearray(content)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(found))
            found[at : at + rng.randint(0, 3)] = rng.choice(
                [b"", b'"', b"[", b"}", b"9", b"null", bytes([rng.randrange(256)])]
            )
        return bytes(found)
    document = json.loads(content)
    odd = [
        None,
        True,
        -1,
        1e308,
        2**70,
        "",
        "x" * 300,
        "\u0000",
        [],
        {},
        [[1]],
        ["m"],
        {"name": 3},
        "FP64",
        "BYTES",
        "age",
    ]
    part = document
    for _ in range(rng.randint(0, 4)):
        inner = list(part.values()) if isinstance(part, dict) else part if isinstance(part, list) else []
        deeper = [x for x in inner if isinstance(x, dict | list) and x]
        if not deeper:
            break
        part = rng.choice(deeper)
    place = rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
    part[place] = rng.choice(odd)
    return json.dumps(document).encode()


def test_five_hundred_broken_bodies_make_no_fault_and_good_ones_are_answered_meanwhile(app):
    rng = random.Random(5)
    good = body(
        tensor("age", TABLE["age"][:3]),
        tensor("sex", TABLE["sex"][:3], "BYTES"),
        tensor("deck", TABLE["deck"][:3], "INT64"),
    )
    spam = body(tensor("text", ["win money", None], "BYTES"), id="a", outputs=[{"name": "label"}])
    points = body(tensor("x", [0.0, 1.0]), tensor("y", [0.0, 1.0]))
    wanted = outputs(infer(app, "titanic", good))["probabilities"]
    kinds = [("titanic", good), ("chosen", good), ("found", good), ("tree", good), ("spam", spam), ("named", points)]
    statuses = set()
    for _ in range(25):
        broken = [(name, mutated(content, rng)) for name, content in rng.choices(kinds, k=20)]
        requests = [
            ("POST", f"/v2/models/{name}/{rng.choice(['infer', 'explain'])}", content) for name, content in broken
        ]
        *found, healthy = asked(app, *requests, ("POST", "/v2/models/titanic/infer", good))
        for response, (_, _, content) in zip(found, requests, strict=True):
            assert response.status_code in (200, 400), (response.text, content)
            statuses.add(response.status_code)
        assert (outputs(healthy)["probabilities"] == wanted).all()
    assert statuses == {200, 400}


def test_without_what_it_runs_on_the_command_says_what_to_install(paths, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(main, ["serve", paths["titanic"]])
    assert result.exit_code == 3
    assert result.stderr.startswith("error: a server runs on Starlette") and "softcount[serve]" in result.stderr


def test_a_port_that_is_taken_and_a_network_file_are_said_in_a_line(paths, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(main, ["serve", paths["titanic"], "--port", str(taken.getsockname()[1])])
    assert result.exit_code == 3 and "cannot listen at 127.0.0.1" in result.stderr
    result = CliRunner().invoke(main, ["serve", str(tmp_path / "alarm.bif")])
    assert result.exit_code == 4 and "has no class to predict" in result.stderr


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_an_answer_that_is_not_finite_is_an_error_and_not_null(number: float) -> None:
    response = InferResponse([(Tensor("probability", "FP64"), [0.5, number])])
    with pytest.raises(ValueError, match="output probability holds a number that is not finite"):
        write_response("m", InferRequest({}, 2), response)
