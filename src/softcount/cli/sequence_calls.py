"""Models of sequences, as `softcount show` wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from softcount.cli.models import is_hidden
from softcount.cli.options import InputFormat, SequenceForm
from softcount.cli.read import read_sequences
from softcount.errors import DataError
from softcount.report.page import Page
from softcount.report.sequence_page import add_odd_steps, sequence_document, sequence_page
from softcount.report.transition_picture import decoded_svg, transition_dot, transition_svg


class ShowRequest(Struct, frozen=True):
    """What `show` is asked of a model of sequences: by itself, or how DATA fits it."""

    data: str | None
    layout: SequenceForm
    form: InputFormat
    most: int = 10
    parameters: bool = False


def shown(model: Any, asked: ShowRequest) -> tuple[dict[str, Any], Page]:
    """What a model of sequences holds, as data and as a page; with the steps of DATA that fit worst, and why."""
    if asked.parameters:
        raise DataError("a model of sequences shows its parameters anyway. Leave out --parameters.")
    document, page = sequence_document(model), sequence_page(model)
    if asked.data is None:
        return document, page
    if not is_hidden(model):
        raise DataError("a chain says of every step how surprising it is: softcount explain MODEL DATA.")
    odd = model.anomalies(read_sequences(asked.layout, asked.data, asked.form), asked.most)
    document["anomalies"] = odd.to_pylist()
    add_odd_steps(page, odd)
    return document, page


MOST_DRAWN = 12
"""Sequences whose states are drawn."""


def drawn(model: Any, kind: str, asked: ShowRequest) -> str:
    """A picture: what follows what; with DATA, as SVG, the states of its first sequences under their first number."""
    if asked.data is None or kind == "dot":
        names = model.states_.tolist() if is_hidden(model) else model.contexts_
        table = model.transitions_
        if table.shape != (len(names), len(names)):
            raise DataError("what follows what is drawn of hidden states, and of chains of order 1 without ends.")
        return {"dot": transition_dot, "svg": transition_svg}[kind](names, table)
    if not is_hidden(model):
        raise DataError("a chain has no hidden states to draw: leave out DATA for what follows what.")
    sequences = read_sequences(asked.layout, asked.data, asked.form)
    place = {name: at for at, name in enumerate(model.states_.tolist())}
    paths = model.predict(sequences)[:MOST_DRAWN]
    values = _first_numbers(model, sequences, len(paths))
    codes = [np.array([place[name] for name in path.tolist()], dtype=int) for path in paths]
    return decoded_svg([sequences.called(at) for at in range(len(paths))], codes, values, list(place))


def _first_numbers(model: Any, sequences: Any, count: int) -> list[Any]:
    """The first column of numbers of each sequence; None where the model has none."""
    if not model.fitted_.schema.stored("reals"):
        return [None] * count
    chunks = sequences.chunks(model.fitted_.table(sequences))
    numbers = np.concatenate([chunk.reals[:, 0] for chunk in chunks])
    return np.split(numbers, sequences.starts[1:-1])[:count]
