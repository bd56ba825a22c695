"""Models of sequences, as `softcount show` wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from softcount.cli.models import is_hidden
from softcount.cli.options import InputFormat, SequenceForm
from softcount.cli.read import read_sequences
from softcount.errors import DataError
from softcount.report.graph import draw_ring, transition_dot
from softcount.report.page import Page
from softcount.report.sequences import add_odd_steps, draw_states, sequence_page, sequence_record


class ShowRequest(Struct, frozen=True):
    """What `show` is asked of a model of sequences: by itself, or how DATA fits it."""

    data: str | None
    layout: SequenceForm
    form: InputFormat
    most: int = 10
    parameters: bool = False


def shown(model: Any, asked: ShowRequest) -> tuple[Any, Page]:
    """What a model of sequences holds, as data and as a page; with the steps of DATA that fit worst, and why."""
    if asked.parameters:
        raise DataError("a model of sequences shows its parameters anyway. Leave out --parameters.")
    page = sequence_page(model)
    if asked.data is None:
        return sequence_record(model), page
    if not is_hidden(model):
        raise DataError("a chain says of every step how surprising it is: softcount explain MODEL DATA.")
    odd = model.anomalies(read_sequences(asked.layout, asked.data, asked.form), asked.most)
    add_odd_steps(page, odd)
    return sequence_record(model, odd), page


MOST_DRAWN = 12
"""Sequences whose states are drawn."""


def drawn(model: Any, kind: str, asked: ShowRequest) -> str:
    """A picture: what follows what; with DATA, as SVG, the states of its first sequences under their first number."""
    if asked.data is None or kind == "dot":
        names = model.states_.tolist() if is_hidden(model) else model.contexts_
        table = model.transitions_
        if table.shape != (len(names), len(names)):
            raise DataError("what follows what is drawn of hidden states, and of chains of order 1 without ends.")
        return transition_dot(names, table) if kind == "dot" else draw_ring(names, table).svg_file()
    if not is_hidden(model):
        raise DataError("a chain has no hidden states to draw: leave out DATA for what follows what.")
    sequences = read_sequences(asked.layout, asked.data, asked.form)
    place = {name: at for at, name in enumerate(model.states_.tolist())}
    paths = model.predict(sequences)[:MOST_DRAWN]
    values = _first_numbers(model, sequences, len(paths))
    codes = [np.array([place[name] for name in path.tolist()], dtype=int) for path in paths]
    titles = [sequences.called(at) for at in range(len(paths))]
    return draw_states(titles, codes, values, list(place)).svg_file()


def _first_numbers(model: Any, sequences: Any, count: int) -> list[Any]:
    """The first column of numbers of each sequence; None where the model has none."""
    if not model.fitted_.schema.stored("reals"):
        return [None] * count
    chunks = sequences.chunks(model.fitted_.table(sequences))
    numbers = np.concatenate([chunk.reals[:, 0] for chunk in chunks])
    return np.split(numbers, sequences.starts[1:-1])[:count]
