"""HTTP as uvicorn speaks it, with an end to patience; loaded only where a server is run.

The head of a request must come within the time that a body has, or a connection that says nothing would be kept for
ever; and an answer that nobody reads is dropped.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.h11_impl import H11Protocol

from softcount.serve.request_guards import Limits


class PatientConnection(H11Protocol):
    """A connection that is ended when nothing comes, or nothing is taken, for too long."""

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


def patient_with(limits: Limits) -> type[PatientConnection]:
    """Connections with these limits."""
    return type("LimitedConnection", (PatientConnection,), {"limits": limits})
