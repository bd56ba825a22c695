"""Arrow batches kept in a temporary file: what can be read only once, or fits in memory only in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from softcount.sources.arrow_columns import text_bytes
from softcount.sources.bytestream import spool


class _Collected:
    """What Arrow writes, until it is taken away."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.done = 0

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(self.parts[-1])

    def taken(self) -> bytes:
        found = b"".join(self.parts)
        self.parts, self.done = [], self.done + len(found)
        return found

    def flush(self) -> None:
        """Nothing waits."""


class ArrowSpool:
    """Batches in a file of their own in the temporary folder, which goes with this object; read as often as asked.

    Batches may differ in the types of their columns: each stretch of like ones is an Arrow stream. What is read is
    mapped, not copied, so it takes no memory that the system could not take back.
    """

    def __init__(self, batches: Iterable[Any], name: str) -> None:
        self.n_rows, self.text_bytes = 0, 0
        self.schemas: list[Any] = []
        self._starts: list[int] = []
        self._copy = spool(self._written(batches), name)
        self.remove = self._copy.remove_with(self)

    def _written(self, batches: Iterable[Any]) -> Iterator[bytes]:
        import pyarrow as pa

        out, writer = _Collected(), None
        for batch in batches:
            if writer is None or batch.schema != self.schemas[-1]:
                if writer is not None:
                    writer.close()
                    yield out.taken()
                self.schemas.append(batch.schema)
                self._starts.append(out.done)
                writer = pa.ipc.new_stream(pa.PythonFile(out, mode="w"), batch.schema)
            writer.write_batch(batch)
            self.n_rows, self.text_bytes = self.n_rows + batch.num_rows, self.text_bytes + text_bytes(batch)
            yield out.taken()
        if writer is not None:
            writer.close()
            yield out.taken()

    def batches(self) -> Iterator[Any]:
        """All batches in their order."""
        import pyarrow as pa

        with pa.memory_map(self._copy.path) as file:
            for start in self._starts:
                file.seek(start)
                yield from pa.ipc.open_stream(file)
