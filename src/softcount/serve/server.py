"""A uvicorn server: one process, time limits on connections, and a shutdown that finishes open requests."""

from __future__ import annotations

import socket
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from softcount.errors import DataError
from softcount.run.local import limit_blas
from softcount.serve.application import Limits, Served, application


class PatientConnection(H11Protocol):
    """A connection that is closed if the client sends or reads nothing for too long."""

    limits = Limits()
    waiting: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        else:
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_waiting()
        if self.transport.is_closing():
            self._drop_later()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._drop_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self.waiting is None:
            self.waiting = self.loop.call_later(self.limits.sending, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _drop_later(self) -> None:
        """Closing waits until all is written: not for ever."""
        self.loop.call_later(self.limits.reading, self.transport.abort)


LOCAL = ("localhost", "127.0.0.1", "::1")
KEPT_ALIVE, LAST_ANSWERS = 75, 10
"""Seconds that an idle connection is kept, and that answers have to finish after a shutdown was requested."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"cannot listen at {host}, port {port}: {why}. Choose another port (0: any), or another address."
        ) from None


def find_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(served: Served, listener: socket.socket, hosts: Collection[str], begun: Callable[[], None]) -> None:
    """Answer until a signal ends the process; then take no more requests and finish the open ones."""

    class AnnouncedServer(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            begun()

    config = uvicorn.Config(
        application(served, {*LOCAL, *hosts}),
        http=type("LimitedConnection", (PatientConnection,), {"limits": served.limits}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=LAST_ANSWERS,
    )
    with limit_blas(), suppress(KeyboardInterrupt):
        try:
            AnnouncedServer(config).run(sockets=[listener])
        finally:
            served.close()
