"""A model of sequences: its record, its page for `show` and for a report, and the states of sequences as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.families.base import family_title
from softcount.fitted.class_answers import column_shape
from softcount.pictures.chart import PAGE, PANEL, Axis, Bars, Cells, Chart, Line, Mark
from softcount.pictures.drawing import Drawing, class_tone, stack
from softcount.pictures.text import format_count, format_number, format_share, printable
from softcount.report.class_pictures import DRAWN_CLASSES, shape_chart, shape_grid
from softcount.report.graph import draw_ring
from softcount.report.page import RARE, Figure, Page, Redaction, key_text, make_grid
from softcount.report.quality import add_notes, add_origin, column_records, describe_starts

if TYPE_CHECKING:
    import pyarrow as pa

REDACTED_LEVELS = 3
"""Categories of a column that a redacted report names for a state."""
PAGE_SYMBOLS, MAP_SYMBOLS, RING_SYMBOLS, RING_ARROWS = 30, 24, 10, 24
"""Symbols on a page, of the heat map and of the ring, and arrows of the ring."""
DRAWN_COLUMNS, PANEL_SYMBOLS = 12, 6
"""Columns whose distribution is drawn, and symbols up to which the heat map is a panel."""
LEAST_ARROW = 0.03
"""Less likely transitions have no arrow in the ring of a report."""


# -- as data


def sequence_record(model: Any, odd: pa.Table | None = None) -> dict[str, Any]:
    """Return what a model of sequences holds as data, and the steps that fit worst if there are any.

    Only a chain of order 1 has `contexts` and `transitions`: those of a higher order can be millions.
    """
    if not hasattr(model, "n_states_"):
        short = model.order_ < 2
        return {
            "model": "chain", "order": model.order_, "symbols": [str(symbol) for symbol in model.symbols_],
            "steps": model.counts_.steps, "ends": model.ends, "prior": str(model.prior), "evidence": model.evidence_,
            "irreducible": model.irreducible_, "period": model.period_,
            "shares": {format_context(key): value for key, value in model.shares_.items()},
            "contexts": [format_context(key) for key in model.contexts_] if short else None,
            "next": [str(name) for name in model.next_symbols_],
            "transitions": model.transitions_ if short else None,
            "stationary": {format_context(key): value for key, value in _find_long_run(model).items()},
            "notes": model.notes_,
        }  # fmt: skip
    fitted, figures = model.fitted_, zip(*_state_figures(model), model.stationary().values(), strict=True)
    states = [
        {"name": str(name), "share": a, "first": b, "duration": None if c == float("inf") else c, "stationary": d}
        for name, (a, b, c, d) in zip(model.states_, figures, strict=True)
    ]
    found = {
        "model": fitted.chain.name, "states": states, "transitions": model.transitions_, "parameters": model.params_,
        "levels": model.levels_, "steps": model.counts_.rows, "free_parameters": model.n_parameters_,
        "log_likelihood": model.log_likelihood_, "bic": model.bic_,
        "columns": column_records(fitted.schema, fitted.missing),
        "selection": None if fitted.selection is None else [
            {"states" if name == "classes" else name: getattr(trial, name)
             for name in trial.__struct_fields__ if name not in ("icl", "cv")}
            for trial in fitted.selection
        ],
        "objective": {"name": fitted.objective, "trace": fitted.trace}, "iterations": model.n_iter_,
        "converged": bool(model.converged_), "agreed": model.agreed_, "interrupted": fitted.interrupted,
        "notes": model.notes_,
    }  # fmt: skip
    return found if odd is None else found | {"anomalies": odd.to_pylist()}


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


def sequence_page(model: Any, full: bool = False, redact: bool = False) -> Page:
    """Write what a model of sequences holds; in `full`, for a report: transitions as pictures, and its origin.

    Redacted, without notes and without names of symbols and states of fewer than five steps.
    """
    page, redaction = Page(), Redaction(redact)
    (_add_states if hasattr(model, "n_states_") else _add_chain)(page, model, redaction, full)
    if not redact:
        add_notes(page, model.notes_)
    record = getattr(getattr(model, "fitted_", None), "record", None)
    if full and record is not None and record.provenance is not None:
        add_origin(page, record, redaction)
    return page


def _add_states(page: Page, model: Any, redaction: Redaction, full: bool) -> None:
    fitted, rows = model.fitted_, model.occupied_.tolist()
    names = [str(name) if redaction.allows(n) else RARE for name, n in zip(model.states_, rows, strict=True)]
    page.heading(f"A hidden Markov model: {format_count(model.n_states_, 'state')}")
    parameters = format_count(model.n_parameters_, "free parameter")
    if full:
        steps = Figure("Steps", format_number(float(model.counts_.rows)), "in training")
        page.facts([Figure("States", str(model.n_states_), parameters), steps])
        _add_transitions(page, names, names, np.asarray(model.transitions_), np.asarray(model.occupied_))
        _add_columns(page, model, names, redaction)
        page.heading("How the fit went")
    page.line(f"from {format_count(model.counts_.rows, 'step')}, {parameters}")
    if model.log_likelihood_ is not None:
        page.line(f"log-likelihood {model.log_likelihood_:,.3f}, BIC {model.bic_:,.1f} (smaller is better)")
    if fitted.trace:
        state = "converged" if model.converged_ else "stopped"
        agreed = model.agreed_
        starts = "" if agreed is None or agreed[1] < 2 else f"; {describe_starts(agreed)}"
        page.line(f"EM {state} after {format_count(model.n_iter_, 'iteration')}{starts}")
    page.heading("States")
    lines = [
        [name, format_share(a), format_share(b), _format_steps(c)]
        for name, a, b, c in zip(names, *_state_figures(model), strict=True)
    ]
    page.grid(["state", "steps", "first", "stays for"], lines, right=None)
    if not full:
        page.heading("Transitions (row: state, column: the next)")
        lines = [[name, *map(format_share, row)] for name, row in zip(names, model.transitions_.tolist(), strict=True)]
        page.grid(["state", *names], lines, right=names)
    for key in model.params_:
        words, places = _describe_column(model, key, redaction), fitted.chain.links.shown
        page.heading(f"{key_text(key)} ({family_title(fitted.shown.families[key])})")
        page.grid(["state", "shows"], [[name, words[at]] for name, at in zip(names, places, strict=True)])


def _add_columns(page: Page, model: Any, names: Sequence[str], redaction: Redaction) -> None:
    """Add panels of what each state emits: densities of numbers, shares of categories."""
    shown, places = model.fitted_.shown, list(model.fitted_.chain.links.shown)
    keys = [key for key in model.params_ if not isinstance(key, tuple)] if redaction.shows_cells else []
    for key in keys[:DRAWN_COLUMNS]:
        try:
            shape = column_shape(shown, key)
        except DataError:  # a family that has no distribution of one column
            continue
        described = shape, names[:DRAWN_CLASSES], shape.heights[places][:DRAWN_CLASSES]
        reading = "The fitted distribution in each state."
        page.picture(key_text(key), shape_chart(*described), shape_grid(*described, redaction), reading, small=True)


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


def _add_chain(page: Page, model: Any, redaction: Redaction, full: bool) -> None:
    name, symbols = _symbol_namer(model, redaction), model.symbols_
    page.heading(f"A Markov chain of order {model.order_}: {format_count(len(symbols), 'symbol')}")
    ends = ", beginnings and ends as states" if model.ends else ""
    prior = f"{model.prior} prior counts of each symbol after every context"
    if model.prior == "kneser-ney":
        prior = "contexts back off to shorter ones (Kneser-Ney)"
    page.line(f"from {format_count(model.counts_.steps, 'step')}{ends}; {prior}")
    if full:
        _add_chain_transitions(page, model, name, redaction)
    long_run = _find_long_run(model)
    page.heading("Stationary distribution" if long_run else "Shares of the symbols, as counted")
    runs = model.run_lengths() if long_run else {}
    shares = sorted((long_run or model.shares_).items(), key=lambda pair: -pair[1])[:PAGE_SYMBOLS]
    lines = [
        [name(key), format_share(value), *([_format_steps(runs.get(key))] if runs else [])] for key, value in shares
    ]
    page.grid(["symbol", "share", *(["runs of"] if runs else [])], lines, right=None)
    if not full:
        _add_chain_transitions(page, model, name, None)


def _add_chain_transitions(page: Page, model: Any, name: Callable[[Any], str], redaction: Redaction | None) -> None:
    """Add the transitions as a table or, of a report, whose `redaction` is given, as pictures."""
    if redaction is None:
        page.heading("Transitions (row: symbol, column: the next)")
    if redaction is not None and (model.order_ == 1 or len(model.contexts_) <= MAP_SYMBOLS):
        rows, columns = list(map(name, model.contexts_)), list(map(name, model.next_symbols_))
        before, after = (np.array([redaction.shows_cells or x != RARE for x in own]) for own in (rows, columns))
        frequency = np.array([model.shares_.get(key, 0.0) for key in model.contexts_])
        rows, columns = list(compress(rows, before)), list(compress(columns, after))
        _add_transitions(page, rows, columns, model.transitions_[np.ix_(before, after)], frequency[before])
    elif model.order_ == 1 and len(model.symbols_) <= PAGE_SYMBOLS:
        names = [name(symbol) for symbol in model.next_symbols_]
        pairs = zip(model.contexts_, model.transitions_.tolist(), strict=True)
        page.grid(["after", *names], [[name(key), *map(format_share, row)] for key, row in pairs], right=names)
    else:
        page.line(f"{format_count(len(model.contexts_), 'context')}: the model file has them all")


def _format_steps(duration: float | None) -> str:
    if duration is None:
        return "-"
    return "for ever" if duration == float("inf") else f"{format_number(duration)} steps"


def format_context(key: Any) -> str:
    """Write a symbol, or several; what cannot be seen is in quotes."""
    names = [str(symbol) for symbol in (key if isinstance(key, tuple) else (key,))]
    return " ".join(name if name.strip() else repr(name) for name in names)


def _symbol_namer(chain: Any, redaction: Redaction) -> Callable[[Any], str]:
    """Return a function that names a symbol, or a run of them; redacted, only if it came at least five times."""
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


def add_odd_steps(page: Page, odd: pa.Table) -> None:
    page.heading("Steps that fit worst (nats of log-probability below the expected value)")
    lines = [
        [
            str(line["sequence"]), str(line["step"]), format_number(line["score"]),
            f"{line['reason']} (+{format_number(line[line['reason']])})",
        ]
        for line in odd.to_pylist()
    ]  # fmt: skip
    page.grid(["sequence", "step", "score", "because of"], lines, right=["step", "score"])


# -- pictures


def _add_transitions(page: Page, rows: list[str], columns: list[str], table: np.ndarray, shares: np.ndarray) -> None:
    """Add transitions as a heat map and as a ring; `shares` are the frequencies of what `rows` name."""
    order = np.argsort(-shares, kind="stable")
    kept = np.sort(order[:MAP_SYMBOLS])
    own = [rows[at] for at in kept]
    both = set(own) & set(columns)
    other = [at for at in range(len(columns)) if columns[at] in own or not both][:MAP_SYMBOLS]
    part = table[kept][:, other]
    texts = [[f"{x:.0%}" if x >= 0.005 else "" for x in line] for line in part]
    x, y = Axis("next", labels=[columns[at] for at in other]), Axis("after", labels=own)
    small = len(own) <= PANEL_SYMBOLS
    width = PANEL if small else PAGE
    chart = Chart("transition probabilities", [Cells(np.sqrt(part), texts)], x, y, width=width, height=26)
    lines = [(name, *map(format_share, line)) for name, line in zip(own, part.tolist(), strict=True)]
    reading = "A row for each state or symbol, a column for the next one; the deeper the shade, the more probable."
    page.picture(
        "Transition probabilities", chart, make_grid(("after", *x.labels), lines, right=x.labels), reading, small
    )
    if len(rows) > len(kept):
        page.line(f"shown are the {len(kept)} most frequent of {len(rows)}")
    ring = [at for at in order if rows[at] in columns][:RING_SYMBOLS]
    if len(ring) < 2:
        return
    names, inner = [rows[at] for at in ring], table[ring][:, [columns.index(rows[at]) for at in ring]]
    likeliest = np.argsort(-inner, axis=None, kind="stable")[:RING_ARROWS]
    arrows = [divmod(int(at), len(names)) for at in likeliest if inner.flat[at] >= LEAST_ARROW]
    lines = [(names[i], names[j], format_share(float(inner[i, j]))) for i, j in arrows]
    rest = (
        f"the {RING_ARROWS} most probable are drawn"
        if len(arrows) == RING_ARROWS
        else f"those below {LEAST_ARROW:.0%} are not drawn"
    )
    grid = make_grid(("from", "to", "probability"), lines, right=("probability",))
    reading = f"The wider an arrow, the more probable the transition; {rest}."
    page.picture("Transition graph", draw_ring(names, inner, arrows), grid, reading, small=True)


def draw_states(
    titles: Sequence[object], paths: Sequence[np.ndarray], values: Sequence[np.ndarray | None], names: Sequence[object]
) -> Drawing:
    """Draw a number of each sequence as a line, and below it the state of every step as a strip of colour.

    `paths` are the numbers of states, `values` the number to draw (NaN if missing) or None.
    """
    charts: list[Drawing] = []
    for title, path, own in zip(titles, paths, values, strict=True):
        strip = 1.0 if own is None else 0.16  # the part of the chart below the line
        marks: list[Mark] = []
        if own is not None:
            there = np.isfinite(own)
            low, high = (own[there].min(), own[there].max()) if there.any() else (0.0, 1.0)
            scaled = strip + (1 - strip) * (own - low) / (high - low or 1.0)
            runs = np.split(np.arange(len(own)), np.flatnonzero(np.diff(there.astype(int))) + 1)
            marks += [Line(run + 1.0, scaled[run], tone="ink", width=1.2) for run in runs if there[run[0]]]
        ends = np.array([0, *(np.flatnonzero(np.diff(path)) + 1), len(path)]) + 0.5
        tones = [class_tone(int(path[int(start)])) for start in ends[:-1]]
        places = np.full(len(tones), 0.45 * strip)
        marks.append(Bars(places, ends[:-1], ends[1:], tones, thick=0.9 * strip, strength=1.0))
        x, y = Axis(ends=(0.5, len(path) + 0.5), ticks={}), Axis(ends=(0.0, 1.0), ticks={})
        legend = [] if charts else [printable(name) for name in names]
        chart = Chart("", marks, x, y, legend, printable(title), 900, 14 if own is None else 90)
        charts.append(chart.draw())
    return stack(charts, f"states of {len(paths)} sequences")
