"""The HTTP application: routes, request limits and metrics."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
import traceback
from asyncio import FIRST_COMPLETED
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from softcount import __version__
from softcount.errors import SoftcountError
from softcount.run.local import Runner, workers
from softcount.serve.models import ServedModel
from softcount.serve.protocol import Refused, read_request, write_response
from softcount.sources import wording

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds up to which requests are counted together."""

Labels = tuple[tuple[str, str], ...]


class ServerMetrics(Struct):
    """Requests by route, model and status; their seconds and rows; and the number under way."""

    requests: Counter[Labels] = field(default_factory=Counter)
    rows: Counter[Labels] = field(default_factory=Counter)
    times: dict[str, list[int]] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    under_way: int = 0

    def add(self, route: str, model: str, status: int, seconds: float) -> None:
        self.requests[("route", route), ("model", model), ("code", str(status))] += 1
        buckets = self.times.setdefault(route, [0] * (len(BUCKETS) + 1))
        for place, edge in enumerate((*BUCKETS, float("inf"))):
            buckets[place] += seconds <= edge
        self.seconds[route] += seconds  # type: ignore[assignment]  # a counter of seconds

    def text(self) -> str:
        """The metrics in the text format of Prometheus."""
        lines = []
        for name, counts in (("requests", self.requests), ("rows", self.rows)):
            lines.append(f"# TYPE softcount_{name}_total counter")
            lines += [f"softcount_{name}_total{_labels(key)} {n}" for key, n in sorted(counts.items())]
        lines += ["# TYPE softcount_requests_under_way gauge", f"softcount_requests_under_way {self.under_way}"]
        lines += ["# TYPE softcount_request_seconds histogram"]
        for route, buckets in sorted(self.times.items()):
            for edge, n in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                lines.append(f"softcount_request_seconds_bucket{_labels((('route', route), ('le', edge)))} {n}")
            lines.append(f"softcount_request_seconds_sum{_labels((('route', route),))} {self.seconds[route]!r}")
            lines.append(f"softcount_request_seconds_count{_labels((('route', route),))} {buckets[-1]}")
        return "\n".join(lines) + "\n"


def _labels(pairs: Labels) -> str:
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in pairs)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


# Limits of every request: allowed hosts, sizes and times.

Task = TypeVar("Task")
Result = TypeVar("Result")
ANY = "*"
DRAINED = 8
"""A body up to this many times too long is read to its end, because a client that still sends reads no answer."""
HELD = 16
"""Largest bodies that the server holds at a time, bodies and answers together: 128 MB by default."""


class Limits(Struct, frozen=True):
    """The largest body, and the seconds that sending it, answering it, and reading the answer may take.

    Bodies and answers that are held at a time have `HELD` times the size of the largest body.
    """

    body: int = 8 << 20
    sending: float = 10.0
    working: float = 30.0
    reading: float = 30.0


class Room:
    """Bytes of requests and answers that the server holds at a time; beyond, a request is refused."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    def take(self, scope: Any, size: int, refuse: bool = True) -> None:
        if refuse and self.held + size > self.most:
            raise Refused(503, "the server is busy with other requests. Ask again in a moment.")
        self.held += size
        scope["held"] = scope.get("held", 0) + size

    def leave(self, scope: Any) -> None:
        self.held -= scope.pop("held", 0)


class Patience(Runner):
    """Runs work in the calling thread, until a deadline after which the answer is no longer needed."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.until = time.monotonic() + seconds

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        for task in tasks:
            if time.monotonic() > self.until:
                raise TimeoutError
            yield work(task)


class Guard:
    """Middleware around the application: checks host and origin, limits the time, counts requests."""

    def __init__(self, app: Any, hosts: Collection[str], served: Served) -> None:
        self.app, self.metrics, self.room, limits = app, served.metrics, served.room, served.limits
        self.hosts = {host.lower() for host in hosts}
        self.longest = limits.sending + limits.working + limits.reading

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        status, began = 0, time.perf_counter()

        async def send_and_note(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self.metrics.under_way += 1
        try:
            async with asyncio.timeout(self.longest):
                refused = self._check_origin(scope)
                await (self.app if refused is None else refusal(refused))(scope, receive, send_and_note)
        except Exception:
            pass  # `refuse_error` has answered, or the client does not read: uvicorn ends the connection
        finally:
            self.metrics.under_way -= 1
            self.room.leave(scope)
            route = getattr(scope.get("endpoint"), "__name__", "other")
            self.metrics.add(route, scope.get("model", ""), status, time.perf_counter() - began)

    def _check_origin(self, scope: Any) -> Refused | None:
        """The reason to refuse a request: a foreign page in a local browser can send one, but cannot name this host."""
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not (ANY in self.hosts or find_host(hosts[0]) in self.hosts):
            return Refused(421, "this server has another name. Use a host name that it was started with.")
        try:
            same = all(urlsplit(value).netloc == hosts[0] for name, value in headers if name == b"origin")
        except ValueError:  # not an address
            same = False
        return None if same else Refused(403, "the request comes from a page of another origin.")


def find_host(header: str) -> str:
    """The host of a Host header, without its port.

    >>> find_host("LOCALHOST:8000"), find_host("[::1]:80"), find_host("a.b")
    ('localhost', '::1', 'a.b')
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def refusal(refused: Refused) -> Response:
    """The error response of the protocol; it ends the connection if more of the request may follow."""
    body = json.dumps({"error": str(refused)}).encode()
    closing = {"connection": "close"} if refused.status in (408, 413, 421, 503) else {}
    return Response(body, refused.status, closing, "application/json")


async def read_body(request: Request, limits: Limits, room: Room) -> bytes:
    """The body of a request, unless it is too long or too slow, or the server holds too many others."""
    headers = request.headers
    too_long = Refused(413, f"the body has more than {limits.body:,} bytes. Send fewer rows at a time.")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "the body is compressed. Send plain JSON.")
    parts, size, length = [], 0, headers.get("content-length", "")
    declared = int(length) if length.isdecimal() and len(length) < 20 else 0
    if declared > limits.body and ("expect" in headers or declared > DRAINED * limits.body):
        raise too_long
    try:
        async with asyncio.timeout(limits.sending):
            async for part in request.stream():
                size += len(part)
                if size <= limits.body:
                    room.take(request.scope, len(part))
                    parts.append(part)
                elif size > DRAINED * limits.body:
                    break
    except TimeoutError:
        raise Refused(408, f"the body did not come within {limits.sending:g} seconds.") from None
    except ClientDisconnect:
        raise Refused(400, "the connection ended before the body did.") from None
    if size > limits.body:
        raise too_long
    return b"".join(parts)


# Routes: health, metadata, predictions, explanations and metrics.

QUICK = 64 << 10
"""Bytes up to which a request is quick: it does not wait behind long ones."""
MOST_LONG = 4
"""Long requests that are worked on at a time: each takes up to some hundreds of MB."""

Answer = tuple[int, bytes]
"""The number of rows, and the body of the response."""


class Served(Struct, dict=True):
    """The models of a server by name, its limits and counts, and the threads that answer."""

    models: Mapping[str, ServedModel]
    limits: Limits = field(default_factory=Limits)
    metrics: ServerMetrics = field(default_factory=ServerMetrics)

    def __post_init__(self) -> None:
        self.quick = ThreadPoolExecutor(max(2, workers(None)), "softcount-quick")
        self.long = ThreadPoolExecutor(min(MOST_LONG, max(1, workers(None) - 1)), "softcount-long")
        self.room = Room(HELD * self.limits.body)

    def model(self, request: Request) -> ServedModel:
        name = request.path_params["model"]
        if name not in self.models:
            raise Refused(404, f"there is no model {wording.cell(name)}. There is {wording.and_others(self.models)}.")
        request.scope["model"] = name
        return self.models[name]

    async def answer(self, request: Request, method: str) -> Response:
        """The response of a method of the model to the rows in the body."""
        model = self.model(request)
        body = await read_body(request, self.limits, self.room)
        lane = self.quick if len(body) <= QUICK else self.long
        patience = Patience(self.limits.working)

        def work() -> Answer:
            rows = read_request(body)
            model.refuse_large(rows)
            return rows.n_rows, write_response(request.scope["model"], rows, getattr(model, method)(rows, patience))

        rows, found = await self._wait_for(request, asyncio.get_running_loop().run_in_executor(lane, work), patience)
        self.metrics.rows[(("model", request.scope["model"]),)] += rows
        self.room.take(request.scope, len(found), refuse=False)  # until it is sent, others are refused
        return Response(found, media_type="application/json")

    async def _wait_for(self, request: Request, answer: asyncio.Future[Answer], patience: Patience) -> Answer:
        """The answer, if it comes in time and the client stays connected; otherwise the work is stopped."""
        gone = asyncio.ensure_future(request.receive())  # the body was read: what is left to come is the end
        try:
            either: set[asyncio.Future[Any]] = {answer, gone}
            done, _ = await asyncio.wait(either, timeout=self.limits.working, return_when=FIRST_COMPLETED)
            if answer in done:
                return answer.result()
        except TimeoutError:
            done = set()
        finally:
            gone.cancel()
        patience.until = -math.inf
        answer.cancel()
        if done:
            raise Refused(499, "the connection ended before the answer.")
        raise Refused(503, f"no answer within {self.limits.working:g} seconds. Send fewer rows at a time.")

    def close(self) -> None:
        for lane in (self.quick, self.long):
            lane.shutdown(wait=False, cancel_futures=True)


async def refuse_error(request: Request, error: Exception) -> Response:
    """Answer an error as a response of the protocol; internal errors are also logged."""
    if isinstance(error, Refused):
        return refusal(error)
    if isinstance(error, SoftcountError):
        return refusal(Refused(400, str(error)))
    if isinstance(error, HTTPException):
        reasons = {404: "there is nothing at this address.", 405: "wrong method: use GET, or POST to infer."}
        return refusal(Refused(error.status_code, reasons.get(error.status_code, str(error.detail))))
    traceback.print_exception(error, file=sys.stderr)
    return refusal(Refused(500, "internal error: a bug in softcount; see its log."))


def application(served: Served, hosts: Collection[str]) -> Guard:
    """The application for uvicorn or a test; `hosts` are the allowed host names."""
    handlers = dict.fromkeys((Refused, SoftcountError, HTTPException, Exception), refuse_error)
    app = Starlette(routes=_routes(served), exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, hosts, served)


def _routes(served: Served) -> list[Route]:
    """All routes; metrics count requests by the names of their functions."""

    async def live(request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(request: Request) -> Response:
        return JSONResponse({"ready": True})

    async def server_metadata(request: Request) -> Response:
        return JSONResponse({"name": "softcount", "version": __version__, "extensions": ["explain"]})

    async def model_metadata(request: Request) -> Response:
        return JSONResponse(served.model(request).metadata(request.path_params["model"]))

    async def model_ready(request: Request) -> Response:
        served.model(request)
        return JSONResponse({"name": request.path_params["model"], "ready": True})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(served.metrics.text(), media_type="text/plain; version=0.0.4")

    async def infer(request: Request) -> Response:
        return await served.answer(request, "infer")

    async def explain(request: Request) -> Response:
        return await served.answer(request, "explain")

    return [
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
        Route("/v2", server_metadata),
        Route("/v2/models/{model}", model_metadata),
        Route("/v2/models/{model}/ready", model_ready),
        Route("/metrics", metrics),
        Route("/v2/models/{model}/infer", infer, methods=["POST"]),
        Route("/v2/models/{model}/explain", explain, methods=["POST"]),
    ]
