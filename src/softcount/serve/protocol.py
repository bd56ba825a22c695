"""Requests and responses of the Open Inference Protocol: one tensor per column, null for a missing cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from softcount.sources import wording


class Refused(Exception):
    """A request that is not answered; `status` is HTTP's number for why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


LARGEST = 1.7976931348623157e308
MOST_CELLS = 1_000_000
"""Cells of a request as the model reads it, and of its answer: about 20 MB of JSON."""


class Tensor(Struct, frozen=True):
    """A tensor's name, datatype and shape; -1 in the shape is any number of rows."""

    name: str
    datatype: str
    shape: tuple[int, ...] = (-1,)


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


class _Input(Struct, frozen=True):
    """A column in the body of a request; its cells may come as lists of one cell."""

    name: str
    datatype: str
    shape: list[int]
    data: list[Any]


class _Output(Struct, frozen=True):
    name: str


class _Body(Struct, frozen=True):
    inputs: Annotated[list[_Input], Meta(min_length=1)]
    outputs: list[_Output] | None = None
    id: str | None = None


def read_request(body: bytes) -> InferRequest:
    """Read the body of a request; one that is not as the protocol has it is refused with the place of the error."""
    try:
        document = msgspec.json.decode(body, type=_Body)
    except RecursionError:
        raise Refused(400, "the body is nested too deeply.") from None
    except msgspec.ValidationError as error:
        raise Refused(400, f"the body is not a request: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, f"the body is not JSON in UTF-8: {error}. A missing cell is null.") from None
    cells: dict[str, list[Any]] = {}
    for tensor in document.inputs:
        if tensor.name in cells:
            raise Refused(400, f"column {wording.cell(tensor.name)} is given twice.")
        cells[tensor.name] = _read_cells(tensor)
    lengths = {name: len(column) for name, column in cells.items()}
    first, rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != rows:
            raise Refused(
                400,
                f"column {wording.cell(first)} has {rows:,} rows and column {wording.cell(name)} {length:,}. "
                "Every column has a cell for each row, null where it is missing.",
            )
    names = [output.name for output in document.outputs or ()]
    for name, times in Counter(names).items():
        if times > 1:
            raise Refused(400, f"output {wording.cell(name)} is listed {times:,} times. Name every output once.")
    return InferRequest(cells, rows, names or None, document.id)


def _read_cells(tensor: _Input) -> list[Any]:
    column, cells = f"column {wording.cell(tensor.name)}", tensor.data
    if tensor.datatype not in DATATYPES:
        raise Refused(400, f"{column} has the datatype {wording.cell(tensor.datatype)}. Use {', '.join(DATATYPES)}.")
    if cells and all(isinstance(cell, list) and len(cell) == 1 for cell in cells):
        cells = [cell[0] for cell in cells]
    if tensor.shape not in ([len(cells)], [len(cells), 1]):
        raise Refused(
            400,
            f"{column} has {len(cells):,} cells and the shape {wording.cell(tensor.shape)}. "
            f"A column has the shape [{len(cells)}]; send one tensor for each column.",
        )
    if not cells:
        raise Refused(400, f"{column} has no rows. Send at least one.")
    fits, means = DATATYPES[tensor.datatype]
    for row, cell in enumerate(cells, start=1):
        if cell is not None and not fits(cell):
            raise Refused(
                400,
                f"{column}, row {row}: {wording.cell(cell)} is not {means}, which {tensor.datatype} says it is. "
                "Send null where a cell is missing.",
            )
    return cells


def write_response(model: str, request: InferRequest, response: InferResponse) -> bytes:
    known = {tensor.name: (tensor, cells) for tensor, cells in response.tensors}
    wanted = list(known) if request.outputs is None else request.outputs
    for name in wanted:
        if name not in known:
            raise Refused(400, f"there is no output {wording.cell(name)}. The outputs are {wording.and_others(known)}.")
    outputs = []
    for name in wanted:
        tensor, cells = known[name]
        if any(isinstance(cell, float) and not math.isfinite(cell) for cell in cells):
            raise ValueError(f"output {name} holds a number that is not finite")  # JSON would have null in its place
        shape = [request.n_rows if size < 0 else size for size in tensor.shape]
        outputs.append({"name": name, "datatype": tensor.datatype, "shape": shape, "data": cells})
    parameters = {"note": response.note} if response.note else None
    document = {"model_name": model, "id": request.id, "parameters": parameters, "outputs": outputs}
    # A million numbers take 0.12 s, in which other threads wait.
    return msgspec.json.encode({key: value for key, value in document.items() if value is not None})


def clip(number: float) -> float:
    """The number, or the largest one for infinity, which JSON cannot hold."""
    return max(-LARGEST, min(LARGEST, number))


# -- cells of each datatype


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
    "BYTES": (lambda cell: type(cell) is str, "a text"),
}
"""Every datatype of the protocol: the check of a cell, and a description of valid cells."""
