"""Models of sequences, as the commands want them: learned, loaded, asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.cli.sequence_options import SequenceForm
from softcount.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.cli.data_input import InputFormat
    from softcount.cli.learn import FitRequest
    from softcount.report.page import Page
    from softcount.run.progress import Tell


def sequence_model(path: str) -> Any:
    """The model of sequences that a file holds; None where it holds another one, or is no model file."""
    from softcount.cli.network_options import is_network_file
    from softcount.files.archive import read

    if is_network_file(path):
        return None
    document, _ = read(Path(path))
    if "chain" not in document and document.get("model") != "hidden-chain":
        return None
    from softcount.estimators.saving import load_estimator

    return load_estimator(path)


def is_hidden(model: Any) -> bool:
    """Whether a model of sequences is one of hidden states."""
    return hasattr(model, "n_states_")


def _symbols_in(model: Any) -> Any:
    """The column that a chain is of; None for hidden states, which take all that they know."""
    return None if is_hidden(model) else model.schema_.used[0].key


# -- learning


class SequenceRequest(Struct, frozen=True):
    """How DATA holds sequences, and what to look for in them: hidden states, or what comes after what."""

    layout: SequenceForm
    states: int | str | None = None
    context: int | str | None = None
    symbols: str | None = None
    ends: bool | None = None


def fit_sequences(request: FitRequest, asked: SequenceRequest, tell: Tell) -> Any:
    """A hidden Markov model where states are asked for, otherwise a chain."""
    sequences = asked.layout.read(
        request.data, request.form, request.weight, asked.symbols, lambda done, of: tell("reading", done, of)
    )
    if asked.states is None:
        from softcount.estimators.markov_chain import MarkovChain

        prior: Any = "kneser-ney" if request.prior is None else request.prior
        return MarkovChain(1 if asked.context is None else asked.context, prior, bool(asked.ends)).fit(sequences)
    from softcount.cli.learn import DEFAULT_CRITERION, DEFAULT_STARTS
    from softcount.cli.library_calls import declared
    from softcount.estimators.hidden_markov import HiddenMarkov
    from softcount.run.progress import starts_told

    families = declared(request.kinds)
    kinds: dict[Any, Any] = {**families.families, **{k: "ignore" for k, v in families.forced.items() if v == "ignore"}}
    model = HiddenMarkov(
        asked.states, kinds=kinds or None, prior="row" if request.prior is None else request.prior,
        estimate=request.estimate, criterion=request.criterion or DEFAULT_CRITERION,
        n_init=request.starts or DEFAULT_STARTS, missing=request.form.missing or None, n_jobs=request.jobs,
        random_state=request.seed, checkpoint=request.checkpoint,
    )  # fmt: skip
    model._watch, model._keep_checkpoint = starts_told(tell), True
    return model.fit(sequences, request.target)


# -- asking


def predicted(model: Any, data: str, layout: SequenceForm, form: InputFormat) -> pa.Table:
    """The state of every step with the probability of each; of a chain, what comes next after every sequence."""
    import numpy as np
    import pyarrow as pa

    from softcount.report.answer_page import cells_array

    sequences = layout.read(data, form, column=_symbols_in(model))
    if not is_hidden(model):
        proba, names = model.predict_proba(sequences), [str(name) for name in model.next_symbols_]
        best = [names[at] for at in proba.argmax(axis=1)]
        columns: dict[str, Any] = {"sequence": cells_array(list(sequences.names)), "predicted": best}
        return pa.table(columns | {f"p({name})": proba[:, place] for place, name in enumerate(names)})
    path, proba = np.concatenate(model.predict(sequences)), np.concatenate(model.predict_proba(sequences))
    at = np.repeat(np.arange(len(sequences)), sequences.lengths)
    columns = {
        "sequence": cells_array([sequences.names[place] for place in at.tolist()]),
        "step": np.arange(sequences.n_steps) - sequences.starts[at] + 1,
        "predicted": cells_array(path.tolist()),
    }
    return pa.table(columns | {f"p({name})": proba[:, place] for place, name in enumerate(model.states_)})


def sampled(model: Any, n: int, length: int | None, seed: int) -> pa.Table:
    """New sequences, a row for each step; of a chain, one that goes on for n steps, or n that end."""
    import pyarrow as pa

    from softcount.report.answer_page import cells_array

    if is_hidden(model):
        found: pa.Table = model.sample(n, 100 if length is None else length, random_state=seed)
        return found
    if length is not None:
        raise DataError("--length is for models with hidden states: -n is how many steps a chain goes on for.")
    drawn = model.sample(max(n, 1), random_state=seed)
    each = drawn if model.ends else [drawn]
    numbers = [number for number, steps in enumerate(each, start=1) for _ in steps]
    steps = [step for steps in each for step in range(1, len(steps) + 1)]
    return pa.table({"sequence": numbers, "step": steps, "symbol": cells_array([x for own in each for x in own])})


def generated(chain: Any, n: int, start: str | None, seed: int) -> str:
    """New sequences as text, one on a line: characters close together, other symbols with blanks between them."""
    close = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in chain.symbols_)
    begin: Any = None if start is None else list(start) if close else start.split()
    if begin is not None and not close:
        spelt = {str(symbol): symbol for symbol in chain.symbols_}
        begin = [spelt.get(step, step) for step in begin]
    drawn = chain.sample(n, start=begin, random_state=seed)
    lines = drawn if chain.ends else [drawn]
    return "".join(("" if close else " ").join(map(str, line)) + "\n" for line in lines)


def explained(model: Any, data: str, layout: SequenceForm, form: InputFormat, against: str | None) -> pa.Table:
    """Why each step has its state; of a chain, how surprising each step is after those before it."""
    sequences = layout.read(data, form, column=_symbols_in(model))
    if not is_hidden(model):
        if against is not None:
            raise DataError("--against is for models with states or classes; a chain says what was likeliest.")
        found: pa.Table = model.explain(sequences)
        return found
    names = {str(name): name for name in model.states_.tolist()}
    if against is not None and against not in names:
        raise DataError(f"there is no state {against!r}. The states are: {', '.join(names)}.")
    found = model.explain(sequences, None if against is None else names[against])
    return found


class ShowRequest(Struct, frozen=True):
    """What `show` is asked of a model of sequences: by itself, or how DATA fits it."""

    data: str | None
    layout: SequenceForm
    form: InputFormat
    most: int = 10
    parameters: bool = False


def shown(model: Any, asked: ShowRequest) -> tuple[dict[str, Any], Page]:
    """What a model of sequences holds, as data and as a page; with the steps of DATA that fit worst, and why."""
    from softcount.report.sequence_page import add_odd_steps, sequence_document, sequence_page

    if asked.parameters:
        raise DataError("a model of sequences shows its parameters anyway. Leave out --parameters.")
    document, page = sequence_document(model), sequence_page(model)
    if asked.data is None:
        return document, page
    if not is_hidden(model):
        raise DataError("a chain says of every step how surprising it is: softcount explain MODEL DATA.")
    odd = model.anomalies(asked.layout.read(asked.data, asked.form), asked.most)
    document["anomalies"] = odd.to_pylist()
    add_odd_steps(page, odd)
    return document, page


MOST_DRAWN = 12
"""Sequences whose states are drawn."""


def drawn(model: Any, kind: str, asked: ShowRequest) -> str:
    """A picture: what follows what; with DATA, as SVG, the states of its first sequences under their first number."""
    from softcount.report.transition_picture import decoded_svg, transition_dot, transition_svg

    if asked.data is None or kind == "dot":
        names = model.states_.tolist() if is_hidden(model) else model.contexts_
        table = model.transitions_
        if table.shape != (len(names), len(names)):
            raise DataError("what follows what is drawn of hidden states, and of chains of order 1 without ends.")
        return {"dot": transition_dot, "svg": transition_svg}[kind](names, table)
    if not is_hidden(model):
        raise DataError("a chain has no hidden states to draw: leave out DATA for what follows what.")
    sequences = asked.layout.read(asked.data, asked.form)
    place = {name: at for at, name in enumerate(model.states_.tolist())}
    paths = model.predict(sequences)[:MOST_DRAWN]
    values = _first_numbers(model, sequences, len(paths))
    codes = [_coded(path, place) for path in paths]
    return decoded_svg([sequences.called(at) for at in range(len(paths))], codes, values, list(place))


def _coded(path: Any, place: dict[Any, int]) -> Any:
    import numpy as np

    return np.array([place[name] for name in path.tolist()], dtype=int)


def _first_numbers(model: Any, sequences: Any, count: int) -> list[Any]:
    """The first column of numbers of each sequence; None where the model has none."""
    import numpy as np

    if not model.fitted_.schema.stored("reals"):
        return [None] * count
    chunks = sequences.chunks(model.fitted_.table(sequences))
    numbers = np.concatenate([chunk.reals[:, 0] for chunk in chunks])
    return np.split(numbers, sequences.starts[1:-1])[:count]
