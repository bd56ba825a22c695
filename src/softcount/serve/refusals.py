"""What a request is refused with: a status and a sentence that says where, and what to do."""

from __future__ import annotations


class Refused(Exception):
    """A request that is not answered; `status` is HTTP's number for why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
