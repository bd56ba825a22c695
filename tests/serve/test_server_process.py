"""A server as a process of its own: its address, slow connections, and an end that is asked for."""

import json
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import httpx
import pytest

import softcount as sc
from served_rows import ALIVE, TABLE, body, outputs, tensor

SLOWEST = 60
"""Seconds after which a test has failed."""
GOOD = body(tensor("sex", ["m", "f"], "BYTES"))

# What `softcount serve` runs, with less patience.
IMPATIENT = """
import sys
from softcount.serve.application import Served
from softcount.serve.application import Limits
from softcount.serve.server import find_address, listen, run_server
from softcount.serve.models import open_by_name

listener = listen("127.0.0.1", 0)
served = Served(open_by_name(sys.argv[1:]), Limits(body=100_000, sending=2.0, reading=1.0))
run_server(served, listener, [], lambda: print("Serving at", find_address(listener), file=sys.stderr, flush=True))
"""
LENGTH = f"Content-Length: {len(GOOD)}"
AT_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
COMMAND = AT_TERMINAL + "from softcount.cli import main; main()"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "titanic.sc"
    sc.NaiveBayes().fit(TABLE, ALIVE).save(path)
    return str(path)


class Running:
    """A process that serves, and where."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", *command], stderr=subprocess.PIPE, text=True)
        self.line = self.process.stderr.readline()
        self.address = next(word for word in self.line.split() if word.startswith("http://"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self) -> httpx.Response:
        return httpx.post(f"{self.address}/v2/models/titanic/infer", content=GOOD, timeout=SLOWEST)

    def connected(self) -> socket.socket:
        where = urlsplit(self.address)
        return socket.create_connection((where.hostname, where.port), timeout=SLOWEST)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def accepts(server: Running) -> bool:
    try:
        server.connected().close()
    except OSError:
        return False
    return True


def test_slow_and_endless_connections_are_ended_while_others_are_answered(model):
    head = b"POST /v2/models/titanic/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
    with Running(IMPATIENT, model) as server:
        silent, headless, bodiless, endless = [[server.connected() for _ in range(20)] for _ in range(4)]
        for connection in headless:
            connection.sendall(head)
        for connection in bodiless:
            connection.sendall(head + b"\r\n{")
        for connection in endless:
            connection.sendall(head.replace(b"Content-Length: 5000", b"Transfer-Encoding: chunked") + b"\r\n")
            connection.sendall((b"10000\r\n" + b" " * 65536 + b"\r\n") * 2)
        wanted = sc.load(model).predict_proba({"age": [None] * 2, "sex": ["m", "f"], "deck": [None] * 2})
        assert (outputs(server.ask())["probabilities"] == wanted).all()
        assert {read_all(connection) for connection in (*silent, *headless)} == {b""}
        assert all(read_all(connection).startswith(b"HTTP/1.1 408 ") for connection in bodiless)
        assert all(read_all(connection).startswith(b"HTTP/1.1 408 ") for connection in endless)
        assert server.ask().status_code == 200
        assert server.process.poll() is None


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_its_address_answers_and_ends_when_told(model, stop):
    with Running(COMMAND, "serve", model, "--port", "0") as server:
        assert server.line.startswith("Serving titanic at http://127.0.0.1:") and not server.address.endswith(":0")
        assert server.ask().status_code == 200
        too_long = httpx.post(f"{server.address}/v2/models/titanic/infer", content=b" " * (9 << 20), timeout=SLOWEST)
        assert too_long.status_code == 413
        wrong = httpx.get(f"{server.address}/v2", headers={"host": "evil.example"}, timeout=SLOWEST)
        assert wrong.status_code == 421 and json.loads(wrong.content)["error"]
        begun = server.connected()
        begun.sendall(
            f"POST /v2/models/titanic/infer HTTP/1.1\r\nHost: localhost\r\n{LENGTH}\r\n\r\n".encode() + GOOD[:9]
        )
        assert server.ask().status_code == 200
        server.process.send_signal(stop)
        while accepts(server):
            pass
        begun.sendall(GOOD[9:])
        assert read_all(begun).startswith(b"HTTP/1.1 200 "), "what was begun is finished"
        _, rest = server.process.communicate(timeout=SLOWEST)
        assert server.process.returncode == 0 and rest == "Ended.\n"
