"""What stands before every answer: who may ask, how much may be sent, and how long anything may take."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from softcount.records import dataclass
from softcount.run.base import AtOnce
from softcount.serve.refusals import Refused
from softcount.serve.server_metrics import ServerMetrics

if TYPE_CHECKING:
    from starlette.requests import Request

Task = TypeVar("Task")
Result = TypeVar("Result")
ANY = "*"
DRAINED = 8
"""A body up to so many times too long is read to its end: who is still sending does not hear an answer."""


HELD = 16
"""Largest bodies that the server holds at a time, bodies and answers together: 128 MB by default."""


@dataclass(frozen=True, slots=True)
class Limits:
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
        """Hold more bytes for a request, if there is room."""
        if refuse and self.held + size > self.most:
            raise Refused(503, "the server holds as much as it can of other requests. Ask again in a moment.")
        self.held += size
        scope["held"] = scope.get("held", 0) + size

    def leave(self, scope: Any) -> None:
        """Hold nothing more for a request."""
        self.held -= scope.pop("held", 0)


class Patience(AtOnce):
    """Runs work where it is called, until a moment: nobody waits for the answer any more."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.until = time.monotonic() + seconds

    def give_up(self) -> None:
        """Begin nothing more."""
        self.until = -math.inf

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, as long as there is time."""
        for task in tasks:
            if time.monotonic() > self.until:
                raise TimeoutError
            yield work(task)


class Guard:
    """Around the whole application: the host that is asked for, the origin, the time, and a count of everything."""

    def __init__(
        self, app: Any, hosts: Collection[str], limits: Limits, metrics: ServerMetrics, room: Room | None = None
    ) -> None:
        self.app, self.metrics, self.room = app, metrics, room or Room(HELD * limits.body)
        self.hosts = {host.lower() for host in hosts}
        self.longest = limits.sending + limits.working + limits.reading

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        status, began = 0, time.perf_counter()

        async def noted(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self.metrics.under_way += 1
        try:
            async with asyncio.timeout(self.longest):
                refused = self._refused(scope)
                await (self.app if refused is None else refusal(refused))(scope, receive, noted)
        except TimeoutError:
            pass  # who does not read the answer is not waited for: uvicorn ends the connection
        finally:
            self.metrics.under_way -= 1
            self.room.leave(scope)
            route = getattr(scope.get("endpoint"), "__name__", "other")
            self.metrics.add(route, scope.get("model", ""), status, time.perf_counter() - began)

    def _refused(self, scope: Any) -> Refused | None:
        """Why the one who asks is refused: another page in a browser here can send requests, but not name this host."""
        said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(said) != 1 or not self._is_ours(host_in(said[0])):
            return Refused(421, "this server is not called so. Ask by a name that it was started with.")
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(_netloc(origin) != said[0] for origin in origins):
            return Refused(403, "asked from a page of another origin.")
        return None

    def _is_ours(self, host: str) -> bool:
        return ANY in self.hosts or host in self.hosts


def _netloc(origin: str) -> str | None:
    """The host and port of an Origin header; None if it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def host_in(said: str) -> str:
    """The host of a Host header, without its port.

    >>> host_in("LOCALHOST:8000"), host_in("[::1]:80"), host_in("a.b")
    ('localhost', '::1', 'a.b')
    """
    try:
        return urlsplit(f"//{said}").hostname or ""
    except ValueError:
        return ""


def refusal(refused: Refused) -> Any:
    """The response that refuses, in the protocol's form; the connection ends, whatever else was sent on it."""
    from starlette.responses import Response

    body = json.dumps({"error": str(refused)}).encode()
    closing = {"connection": "close"} if refused.status in (408, 413, 421, 503) else {}
    return Response(body, refused.status, closing, "application/json")


async def whole_body(request: Request, limits: Limits, room: Room) -> bytes:
    """The body of a request, unless it is too long or too slow, or the server holds too many others."""
    from starlette.requests import ClientDisconnect

    headers = request.headers
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "the body is compressed. Send plain JSON.")
    parts, size, said = [], 0, headers.get("content-length", "")
    declared = int(said) if said.isdecimal() and len(said) < 20 else 0
    if declared > limits.body and ("expect" in headers or declared > DRAINED * limits.body):
        raise _too_long(limits)
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
        raise _too_long(limits)
    return b"".join(parts)


def _too_long(limits: Limits) -> Refused:
    return Refused(413, f"the body has more than {limits.body:,} bytes. Send fewer rows at a time.")
