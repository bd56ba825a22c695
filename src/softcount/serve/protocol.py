"""Requests and responses of the Open Inference Protocol: one tensor per column, null for a missing cell."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from softcount.sources import wording


class Refused(Exception):
    """A request that is not answered; `status` is HTTP's number for why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


LARGEST = 1.7976931348623157e308
MOST_CELLS = 1_000_000
"""Cells of a request as the model reads it, and of its answer: about 20 MB of JSON."""
WRITTEN = 10_000
"""Cells written as JSON at a time; other threads wait meanwhile.

249 MB in one piece blocked /v2/health/live for 20 s.
"""


class Tensor(Struct, frozen=True):
    """A tensor's name, datatype and shape; -1 in the shape is any number of rows."""

    name: str
    datatype: str
    shape: tuple[int, ...] = (-1,)

    @property
    def document(self) -> dict[str, Any]:
        """The tensor's entry in the metadata of a model."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


class InferRequest(Struct, frozen=True):
    """A request: cells by column, the wanted outputs (None: all), and its id."""

    cells: Mapping[str, list[Any]]
    n_rows: int
    outputs: Sequence[str] | None = None
    id: str | None = None


class InferResponse(Struct, frozen=True):
    """A response: tensors with their data, and a note about the rows."""

    tensors: Sequence[tuple[Tensor, Sequence[Any]]]
    note: str = ""


def read_request(body: bytes) -> InferRequest:
    document = _document(body)
    given = document.get("inputs")
    if not isinstance(given, list) or not given:
        raise _bad("a request has `inputs`: a list of one tensor for each column.")
    cells: dict[str, list[Any]] = {}
    for place, tensor in enumerate(given, start=1):
        name, column = _column(tensor, place)
        if name in cells:
            raise _bad(f"column {wording.cell(name)} is given twice.")
        cells[name] = column
    lengths = {name: len(column) for name, column in cells.items()}
    first, rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != rows:
            raise _bad(
                f"column {wording.cell(first)} has {rows:,} rows and column {wording.cell(name)} {length:,}. "
                "Every column has a cell for each row, null where it is missing."
            )
    number = document.get("id")
    if number is not None and not _is_text(number):
        raise _bad("`id` is a text.")
    return InferRequest(cells, rows, _read_outputs(document.get("outputs")), number)


def write_response(model: str, request: InferRequest, response: InferResponse) -> bytes:
    known = {tensor.name: (tensor, cells) for tensor, cells in response.tensors}
    wanted = list(known) if request.outputs is None else request.outputs
    for name in wanted:
        if name not in known:
            raise _bad(f"there is no output {wording.cell(name)}. The outputs are {wording.and_others(known)}.")
    document: dict[str, Any] = {"model_name": model}
    if request.id is not None:
        document["id"] = request.id
    if response.note:
        document["parameters"] = {"note": response.note}
    body = bytearray(_json(document)[:-1] + b',"outputs":[')
    for place, name in enumerate(wanted):
        tensor, cells = known[name]
        shape = [request.n_rows if size < 0 else size for size in tensor.shape]
        head = {"name": name, "datatype": tensor.datatype, "shape": shape}
        body += b"," * bool(place) + _json(head)[:-1] + b',"data":['
        for start in range(0, len(cells), WRITTEN):
            body += b"," * bool(start) + _json(cells[start : start + WRITTEN])[1:-1]
        body += b"]}"
    return bytes(body + b"]}")


def _json(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def finite(number: float) -> float:
    """The number, or the largest one for infinity, which JSON cannot hold."""
    return max(-LARGEST, min(LARGEST, number))


# -- checks of a request


def _bad(why: str) -> Refused:
    return Refused(400, why)


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise _bad("the body is not UTF-8. Send JSON in UTF-8.") from None
    except RecursionError:
        raise _bad("the body is nested too deeply.") from None
    except ValueError as error:
        raise _bad(f"the body is not JSON: {str(error)[:200]}.") from None
    if not isinstance(document, dict):
        raise _bad('the body is not a request: send an object with "inputs".')
    return document


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number in JSON; null is a missing cell")


def _read_outputs(listed: Any) -> list[str] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(isinstance(x, dict) and _is_text(x.get("name")) for x in listed):
        raise _bad('`outputs` is a list of {"name": ...}; leave it out for all.')
    names = [x["name"] for x in listed]
    for name, times in Counter(names).items():
        if times > 1:
            raise _bad(f"output {wording.cell(name)} is listed {times:,} times. Name every output once.")
    return names or None


def _column(tensor: Any, place: int) -> tuple[str, list[Any]]:
    """The name and the cells of a tensor."""
    if not isinstance(tensor, dict) or not _is_text(tensor.get("name")):
        raise _bad(f"input {place} has no name: a tensor is an object with name, datatype, shape and data.")
    name, datatype = tensor["name"], tensor.get("datatype")
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise _bad(
            f"column {wording.cell(name)} has the datatype {wording.cell(datatype)}. Use {', '.join(DATATYPES)}."
        )
    cells = _flat(tensor, name)
    fits, means = DATATYPES[datatype]
    for row, cell in enumerate(cells, start=1):
        if cell is not None and not fits(cell):
            raise _bad(
                f"column {wording.cell(name)}, row {row}: {wording.cell(cell)} is not {means}, which {datatype} "
                "says it is. Send null where a cell is missing."
            )
    return name, cells


def _flat(tensor: Mapping[str, Any], name: str) -> list[Any]:
    """The cells of a column, which may come as lists of one cell."""
    shape, cells = tensor.get("shape"), tensor.get("data")
    if not isinstance(cells, list):
        raise _bad(f"column {wording.cell(name)} has no `data`: a list with a cell for each row.")
    if cells and all(isinstance(cell, list) and len(cell) == 1 for cell in cells):
        cells = [cell[0] for cell in cells]
    whole = isinstance(shape, list) and all(type(size) is int for size in shape)
    if not whole or shape not in ([len(cells)], [len(cells), 1]):
        raise _bad(
            f"column {wording.cell(name)} has {len(cells):,} cells and the shape {wording.cell(shape)}. "
            f"A column has the shape [{len(cells)}]; send one tensor for each column."
        )
    if not cells:
        raise _bad(f"column {wording.cell(name)} has no rows. Send at least one.")
    return cells


def _is_text(cell: Any) -> bool:
    """Whether the cell is text that can be encoded, without lone surrogates."""
    if not isinstance(cell, str):
        return False
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_whole(low: int, high: int, cell: Any) -> bool:
    return type(cell) is int and low <= cell <= high


def _is_number(cell: Any) -> bool:
    return (type(cell) is float and math.isfinite(cell)) or (type(cell) is int and abs(cell) <= LARGEST)


DATATYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "BOOL": (lambda cell: type(cell) is bool, "true or false"),
    **{
        f"UINT{bits}": (partial(_is_whole, 0, 2**bits - 1), f"a whole number from 0 to 2^{bits} - 1")
        for bits in (8, 16, 32, 64)
    },
    **{
        f"INT{bits}": (partial(_is_whole, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1), f"a whole number of {bits} bits")
        for bits in (8, 16, 32, 64)
    },
    **dict.fromkeys(("FP16", "FP32", "FP64"), (_is_number, "a finite number")),
    "BYTES": (_is_text, "a text"),
}
"""Every datatype of the protocol: the check of a cell, and a description of valid cells."""
