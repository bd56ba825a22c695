"""A server by uvicorn: one process, connections that are not waited for, and an end that lets answers finish."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from softcount.errors import DataError
from softcount.run.base import limit_blas
from softcount.serve.http_application import Served, application

LOCAL = ("localhost", "127.0.0.1", "::1")
KEPT_ALIVE, LAST_ANSWERS = 75, 10
"""Seconds that a connection without a request is kept, and that answers have to finish once the end is asked for."""


def refuse_without_extra() -> None:
    """Raise where what a server runs on is not installed."""
    try:
        import starlette
        import uvicorn  # noqa: F401

        del starlette
    except ImportError:
        raise DataError(
            'a server runs on Starlette and uvicorn, which are not installed: pip install "softcount[serve]"'
        ) from None


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"cannot listen at {host}, port {port}: {why}. Choose another port (0: any), or another address."
        ) from None


def address_of(listener: socket.socket) -> str:
    """Where the server is asked."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(served: Served, listener: socket.socket, hosts: Collection[str], begun: Callable[[], None]) -> None:
    """Answer until the process is told to end; then no more is taken, and what was begun is finished."""
    import uvicorn

    from softcount.serve.patient_connection import patient_with

    class AnnouncedServer(uvicorn.Server):
        """A server that says when it answers."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            begun()

    config = uvicorn.Config(
        application(served, {*LOCAL, *hosts}),
        http=patient_with(served.limits),
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
