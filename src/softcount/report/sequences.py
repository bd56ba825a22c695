"""A model of sequences: its record, its page for `show`, its report, and the states of sequences as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.pictures.chart import PAGE, Axis, Cells, Chart, add_legend
from softcount.pictures.drawing import Drawing, class_tone, fit_text
from softcount.pictures.text import format_count, format_number, format_share, printable
from softcount.report.graph import draw_ring
from softcount.report.page import OPEN, RARE, Heading, Page, Redaction, key_text, make_grid, make_record
from softcount.report.quality import ColumnRecord, add_notes, add_origin, column_records

if TYPE_CHECKING:
    import pyarrow as pa

REDACTED_LEVELS = 3
"""Categories of a column that a redacted report names for a state."""
PAGE_SYMBOLS, MAP_SYMBOLS, RING_SYMBOLS, RING_ARROWS = 30, 24, 10, 24
"""Symbols on a page, of the heat map and of the ring, and arrows of the ring."""
LEAST_ARROW = 0.03
"""Less likely transitions have no arrow in the ring of a report."""


# -- as data


class StatesRecord(Struct, frozen=True):
    model: str
    states: list[dict[str, Any]]
    transitions: list[list[float]]
    parameters: dict[str, dict[str, Any]]
    levels: dict[str, list[Any]]
    steps: float
    free_parameters: int
    log_likelihood: float | None
    bic: float
    columns: list[ColumnRecord]
    selection: list[dict[str, Any]] | None
    objective: dict[str, Any]
    iterations: int
    converged: bool
    agreed: tuple[int, int] | None
    interrupted: bool
    notes: list[str]
    anomalies: list[dict[str, Any]] | UnsetType = UNSET


class ChainRecord(Struct, frozen=True):
    """A Markov chain; `contexts` and `transitions` of a chain of order 1 only."""

    model: str
    order: int
    symbols: list[str]
    steps: float
    ends: bool
    prior: str
    evidence: dict[str, float]
    irreducible: bool
    period: int | None
    shares: dict[str, float]
    contexts: list[str] | None
    next: list[str]
    transitions: list[list[float]] | None
    stationary: dict[str, float]
    notes: list[str]


def sequence_record(model: Any, odd: pa.Table | None = None) -> StatesRecord | ChainRecord:
    """Return what a model of sequences holds as data, and the steps that fit worst if there are any."""
    if not hasattr(model, "n_states_"):
        short = model.order_ < 2
        return make_record(
            ChainRecord, model, model="chain", order=model.order_, symbols=[str(symbol) for symbol in model.symbols_],
            steps=model.counts_.steps, prior=str(model.prior),
            evidence={str(order): height for order, height in model.evidence_.items()},
            irreducible=model.irreducible_, period=model.period_,
            shares={format_context(key): value for key, value in model.shares_.items()},
            contexts=[format_context(key) for key in model.contexts_] if short else None,
            next=[str(name) for name in model.next_symbols_],
            transitions=model.transitions_.tolist() if short else None,
            stationary={format_context(key): value for key, value in _find_long_run(model).items()},
            notes=list(model.notes_),
        )  # fmt: skip
    fitted, figures = model.fitted_, zip(*_state_figures(model), model.stationary().values(), strict=True)
    states = [
        {"name": str(name), "share": a, "first": b, "duration": None if c == float("inf") else c, "stationary": d}
        for name, (a, b, c, d) in zip(model.states_, figures, strict=True)
    ]
    params = {key_text(key): {x: value.tolist() for x, value in own.items()} for key, own in model.params_.items()}
    return make_record(
        StatesRecord, model, model=fitted.chain.name, states=states, transitions=model.transitions_.tolist(),
        parameters=params, levels={key_text(key): list(levels) for key, levels in model.levels_.items()},
        steps=model.counts_.rows, free_parameters=model.n_parameters_, log_likelihood=model.log_likelihood_,
        bic=model.bic(), columns=column_records(fitted.schema, fitted.missing),
        selection=None if model.selection_ is None else model.selection_.to_pylist(),
        objective={"name": fitted.objective, "trace": list(fitted.trace)}, iterations=model.n_iter_,
        converged=bool(model.converged_), agreed=model.agreed_, interrupted=fitted.interrupted,
        notes=list(model.notes_), anomalies=UNSET if odd is None else odd.to_pylist(),
    )  # fmt: skip


def _state_figures(model: Any) -> tuple[list[float], list[float], list[float]]:
    """Return the shares of the steps, the probabilities to begin, and the durations of the states."""
    shares = model.occupied_ / model.occupied_.sum()
    return shares.tolist(), model.first_.tolist(), model.durations_.tolist()


def _find_long_run(model: Any) -> dict[Any, float]:
    try:
        found: dict[Any, float] = model.stationary()
    except DataError:  # there is no single long run, or there are too many contexts
        return {}
    return found


# -- as a page


def sequence_page(model: Any, redaction: Redaction = OPEN) -> Page:
    """Write what a model of sequences holds; redacted, without notes and names of what fewer than five steps were."""
    page = Page()
    (_add_states if hasattr(model, "n_states_") else _add_chain)(page, model, redaction)
    if redaction.shows_cells:
        add_notes(page, model.notes_)
    return page


def _add_states(page: Page, model: Any, redaction: Redaction) -> None:
    fitted, names = model.fitted_, _state_names(model, redaction)
    page.heading(f"A hidden Markov model: {format_count(model.n_states_, 'state')}")
    parameters = format_count(model.n_parameters_, "free parameter")
    page.line(f"from {format_count(model.counts_.rows, 'step')}, {parameters}")
    if model.log_likelihood_ is not None:
        page.line(f"log-likelihood {model.log_likelihood_:,.3f}, BIC {model.bic():,.1f} (smaller is better)")
    if fitted.trace:
        state = "converged" if model.converged_ else "stopped"
        agreed = model.agreed_
        starts = "" if agreed is None or agreed[1] < 2 else f"; {agreed[0]} of {agreed[1]} starts led here"
        page.line(f"EM {state} after {format_count(model.n_iter_, 'iteration')}{starts}")
    page.heading("States")
    lines = [
        [name, format_share(a), format_share(b), _format_steps(c)]
        for name, a, b, c in zip(names, *_state_figures(model), strict=True)
    ]
    page.grid(["state", "steps", "first", "stays for"], lines, right=None)
    page.heading("What follows (row: state, column: the next)")
    lines = [[name, *map(format_share, row)] for name, row in zip(names, model.transitions_.tolist(), strict=True)]
    page.grid(["state", *names], lines, right=names)
    for key in model.params_:
        words = _describe_column(model, key, redaction)
        page.heading(f"{key_text(key)} ({fitted.shown.families[key].title})")
        places = fitted.chain.links.shown
        page.grid(["state", "shows"], [[name, words[at]] for name, at in zip(names, places, strict=True)])


def _describe_column(model: Any, key: Any, redaction: Redaction) -> list[str]:
    """Describe a column in each state; redacted, its commonest categories, and nothing about numbers."""
    shown = model.fitted_.shown
    if redaction.shows_cells:
        return [str(words) for words in shown.describe(key)]
    levels = shown.levels.get(key)
    if levels is None or key not in shown.schema.by_key or shown.schema[key].kind.numeric:
        return ["a number"] * shown.n_groups
    rows = np.asarray(shown.counts.arrays[key].value).sum(axis=0).tolist()
    own, found = Redaction(True, {key: dict(zip(levels, rows, strict=False))}), []
    for line in np.asarray(shown.params[key]["probability"]):
        best = np.argsort(-line, kind="stable")[:REDACTED_LEVELS]
        found.append(", ".join(f"{own.level(key, levels[at])} {format_share(float(line[at]))}" for at in best))
    return found


def _add_chain(page: Page, model: Any, redaction: Redaction) -> None:
    name, symbols = _symbol_namer(model, redaction), model.symbols_
    page.heading(f"A Markov chain of order {model.order_}: {format_count(len(symbols), 'symbol')}")
    ends = ", beginnings and ends as states" if model.ends else ""
    prior = f"{model.prior} imagined steps to each symbol after every context"
    if model.prior == "kneser-ney":
        prior = "contexts leave a part to shorter ones (Kneser-Ney)"
    page.line(f"from {format_count(model.counts_.steps, 'step')}{ends}; {prior}")
    long_run = _find_long_run(model)
    page.heading("What comes in the long run" if long_run else "What comes, as counted")
    runs = model.run_lengths() if long_run else {}
    shares = sorted((long_run or model.shares_).items(), key=lambda pair: -pair[1])[:PAGE_SYMBOLS]
    lines = [
        [name(key), format_share(value), *([_format_steps(runs.get(key))] if runs else [])] for key, value in shares
    ]
    page.grid(["symbol", "share", *(["runs of"] if runs else [])], lines, right=None)
    if model.order_ == 1 and len(symbols) <= PAGE_SYMBOLS:
        page.heading("What follows (row: symbol, column: the next)")
        names = [name(symbol) for symbol in model.next_symbols_]
        rows = zip(model.contexts_, model.transitions_.tolist(), strict=True)
        page.grid(["after", *names], [[name(key), *map(format_share, row)] for key, row in rows], right=names)


def _format_steps(duration: float | None) -> str:
    if duration is None:
        return "-"
    return "for ever" if duration == float("inf") else f"{format_number(duration)} steps"


def format_context(key: Any) -> str:
    """Write a symbol, or several; what cannot be seen is in quotes."""
    names = [str(symbol) for symbol in (key if isinstance(key, tuple) else (key,))]
    return " ".join(name if name.strip() else repr(name) for name in names)


def _symbol_namer(chain: Any, redaction: Redaction) -> Callable[[Any], str]:
    """Return what names a symbol, or a run of them; redacted, only if it came at least five times."""
    if redaction.shows_cells:
        return format_context
    counts, symbols = chain.counts_, chain.symbols_
    digit = {chain.begin_: 0, **{symbol: at for at, symbol in enumerate(symbols, 1)}, chain.end_: len(symbols) + 1}

    def name(key: Any) -> str:
        run = [digit[symbol] for symbol in (key if isinstance(key, tuple) else (key,))]
        if all(at in (0, len(symbols) + 1) for at in run):
            return format_context(key)  # no symbol, but the beginning or end of a sequence
        place = sum(at * counts.alphabet.base**back for back, at in enumerate(reversed(run)))
        level = counts.levels[len(run) - 1]
        return format_context(key) if redaction.allows(float(level.counts[level.keys == place].sum())) else RARE

    return name


def _state_names(model: Any, redaction: Redaction) -> list[str]:
    rows = model.occupied_.tolist()
    return [str(name) if redaction.allows(n) else RARE for name, n in zip(model.states_, rows, strict=True)]


def add_odd_steps(page: Page, odd: pa.Table) -> None:
    page.heading("Steps that fit worst (nats less likely than is usual)")
    lines = [
        [
            str(line["sequence"]), str(line["step"]), format_number(line["score"]),
            f"{line['reason']} (+{format_number(line[line['reason']])})",
        ]
        for line in odd.to_pylist()
    ]  # fmt: skip
    page.grid(["sequence", "step", "score", "because of"], lines, right=["step", "score"])


# -- the report


def sequence_report(model: Any, redact: bool = False) -> Page:
    redaction = Redaction(redact)
    short = sequence_page(model, redaction)
    page = Page(short.blocks[:1])
    page.line("What follows what, as counted and estimated; the tables below the pictures have every figure.")
    page.heading("What follows what")
    _add_transitions(page, model, redaction)
    page.heading("All figures")
    for block in short.blocks[1:]:
        page.blocks.append(replace(block, level=2) if isinstance(block, Heading) else block)
    record = getattr(getattr(model, "fitted_", None), "record", None)
    if record is not None:
        add_origin(page, record, redaction)
    return page


def _add_transitions(page: Page, model: Any, redaction: Redaction) -> None:
    if not hasattr(model, "n_states_") and model.order_ != 1 and len(model.contexts_) > MAP_SYMBOLS:
        page.line(f"{len(model.contexts_):,} contexts are too many to draw: the model file has them all")
        return
    rows, columns, table, shares = _find_transitions(model, redaction)
    order = np.argsort(-shares, kind="stable")
    kept = np.sort(order[:MAP_SYMBOLS])
    own = [rows[at] for at in kept]
    other = [at for at in range(len(columns)) if columns[at] in own] if set(own) & set(columns) else range(len(columns))
    other = list(other)[:MAP_SYMBOLS]
    part = table[kept][:, other]
    texts = [[f"{x:.0%}" if x >= 0.005 else "" for x in line] for line in part]
    x, y = Axis("comes", labels=[columns[at] for at in other]), Axis("after", labels=own)
    chart = Chart("transitions in shades", [Cells(np.sqrt(part), texts)], x, y, width=PAGE, height=26)
    lines = [(name, *map(format_share, line)) for name, line in zip(own, part.tolist(), strict=True)]
    grid = make_grid(("after", *x.labels), lines, right=x.labels)
    reading = "A line for what was there, a column for what comes next; the deeper, the likelier."
    page.picture("What follows", chart, grid, reading)
    if len(rows) > len(kept):
        page.line(f"shown are the {len(kept)} most frequent of {len(rows)}")
    both = [at for at in order if rows[at] in columns][:RING_SYMBOLS]
    if len(both) > 1:
        ends = [columns.index(rows[at]) for at in both]
        _add_ring(page, [rows[at] for at in both], table[both][:, ends])


def _add_ring(page: Page, names: list[str], inner: np.ndarray) -> None:
    order = np.argsort(-inner, axis=None, kind="stable")[:RING_ARROWS]
    arrows = [divmod(int(at), len(names)) for at in order if inner.flat[at] >= LEAST_ARROW]
    lines = [(names[i], names[j], format_share(float(inner[i, j]))) for i, j in arrows]
    rest = f"the {RING_ARROWS} likeliest are drawn" if len(arrows) == RING_ARROWS else f"from {LEAST_ARROW:.0%} on"
    reading = f"Arrows are as wide as they are likely; {rest}."
    grid = make_grid(("from", "to", "probability"), lines, right=("probability",))
    page.picture("As a graph", draw_ring(names, inner, arrows), grid, reading)


def _find_transitions(model: Any, redaction: Redaction) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Return names of what was and what comes, the probabilities between, and how frequent the former are."""
    if hasattr(model, "n_states_"):
        names = _state_names(model, redaction)
        return names, names, np.asarray(model.transitions_), np.asarray(model.occupied_)
    name = _symbol_namer(model, redaction)
    before, after = (
        [redaction.shows_cells or name(key) != RARE for key in x] for x in (model.contexts_, model.next_symbols_)
    )
    contexts = [key for key, kept in zip(model.contexts_, before, strict=True) if kept]
    columns = [name(key) for key, kept in zip(model.next_symbols_, after, strict=True) if kept]
    shares = np.array([model.shares_.get(key, 0.0) for key in contexts])
    return [name(key) for key in contexts], columns, np.asarray(model.transitions_)[np.ix_(before, after)], shares


# -- the states of sequences

WIDTH, LEFT, LINE, STRIP = 900.0, 60.0, 90.0, 14.0


def draw_states(
    titles: Sequence[object], paths: Sequence[np.ndarray], values: Sequence[np.ndarray | None], names: Sequence[object]
) -> Drawing:
    """Draw a number of each sequence as a line, and below it the state of every step as a strip of colour.

    `paths` are the numbers of states, `values` the number to draw (NaN if missing) or None.
    """
    drawing, top = Drawing(WIDTH, 0.0, f"states of {len(paths)} sequences"), 8.0
    for title, path, own in zip(titles, paths, values, strict=True):
        drawing.text(LEFT, top + 12, fit_text(printable(title), 480))
        top += 18
        step = (WIDTH - LEFT - 10) / len(path)
        if own is not None:
            known = own[np.isfinite(own)]
            low, spread = (float(known.min()), float(np.ptp(known)) or 1.0) if len(known) else (0.0, 1.0)
            x = LEFT + step * (np.arange(len(own)) + 0.5)
            y = top + (LINE - 14) * (1 - (own - low) / spread)
            for run in np.split(np.arange(len(own)), np.flatnonzero(np.diff(np.isfinite(own).astype(int))) + 1):
                if np.isfinite(own[run[0]]):
                    drawing.line(zip(x[run], y[run], strict=True), "ink", 1.2)
            top += LINE - 10
        for a, b in pairwise([0, *(np.flatnonzero(np.diff(path)) + 1).tolist(), len(path)]):
            drawing.box((LEFT + a * step, top + 4), ((b - a) * step, STRIP), class_tone(int(path[a])))
        top += STRIP + 12
    drawing.height = top + 8 + add_legend(drawing, [printable(name) for name in names], (LEFT, top + 8), WIDTH - LEFT)
    return drawing
