"""A model of sequences as a person reads it: states or symbols, what follows what, how long it lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.report.discretion import RARE, Discretion
from softcount.report.model_page import add_notes, column_documents
from softcount.report.page import Page, key_text
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    import pyarrow as pa

OPEN = Discretion()
MOST_WORDS = 3
"""Levels of a column that are told of a state in a redacted report."""
MOST_SYMBOLS = 30
"""How many symbols have a line on a page; --json has all."""


def sequence_page(model: Any, told: Discretion = OPEN) -> Page:
    """What a model of sequences holds; redacted, without names of what fewer than five steps were, and notes."""
    page = Page()
    (_add_states if hasattr(model, "n_states_") else _add_chain)(page, model, told)
    if told.shows_cells:
        add_notes(page, model.notes_)
    return page


def symbol_names(chain: Any, told: Discretion) -> Callable[[Any], str]:
    """How a symbol, or a run of them, is called: redacted, only where it came at least five times."""
    if told.shows_cells:
        return context_text
    counts, symbols = chain.counts_, chain.symbols_
    digit = {chain.begin_: 0, **{symbol: at for at, symbol in enumerate(symbols, 1)}, chain.end_: len(symbols) + 1}

    def name(key: Any) -> str:
        run = [digit[symbol] for symbol in (key if isinstance(key, tuple) else (key,))]
        if all(at in (0, len(symbols) + 1) for at in run):
            return context_text(key)  # no symbol, but where a sequence begins or ends
        place = sum(at * counts.alphabet.base**back for back, at in enumerate(reversed(run)))
        level = counts.levels[len(run) - 1]
        return context_text(key) if told.tells(float(level.counts[level.keys == place].sum())) else RARE

    return name


def state_names(model: Any, told: Discretion) -> list[str]:
    """How states are called: redacted, a name only where some steps told it and at least five are in the state."""
    rows = model.occupied_.tolist()
    return [str(name) if told.tells(n) else RARE for name, n in zip(model.states_, rows, strict=True)]


def _shown(model: Any, key: Any, told: Discretion) -> list[str]:
    """What each state shows in a column, in words; redacted, its commonest levels, and of numbers nothing."""
    shown = model.fitted_.shown
    if told.shows_cells:
        return [str(words) for words in shown.describe(key)]
    levels = shown.levels.get(key)
    if levels is None or key not in shown.schema.by_key or shown.schema[key].kind.numeric:
        return ["a number"] * shown.n_groups
    rows = np.asarray(shown.counts.arrays[key].value).sum(axis=0).tolist()
    own = Discretion(True, {key: dict(zip(levels, rows, strict=False))})
    found = []
    for line in np.asarray(shown.params[key]["probability"]):
        best = np.argsort(-line, kind="stable")[:MOST_WORDS]
        found.append(", ".join(f"{own.level(key, levels[at])} {share(float(line[at]))}" for at in best))
    return found


def sequence_document(model: Any) -> dict[str, Any]:
    """The same as data."""
    return _state_document(model) if hasattr(model, "n_states_") else _chain_document(model)


# -- hidden states


def _add_states(page: Page, model: Any, told: Discretion) -> None:
    fitted, names = model.fitted_, state_names(model, told)
    page.heading(f"A hidden Markov model: {counted(model.n_states_, 'state')}")
    page.line(f"from {counted(model.counts_.rows, 'step')}, {counted(model.n_parameters_, 'free parameter')}")
    if model.log_likelihood_ is not None:
        page.line(f"log-likelihood {model.log_likelihood_:,.3f}, BIC {model.bic():,.1f} (smaller is better)")
    if fitted.trace:
        state = "converged" if model.converged_ else "stopped"
        page.line(f"EM {state} after {counted(model.n_iter_, 'iteration')}{_agreed(model.agreed_)}")
    page.heading("States")
    figures = [[share(a), share(b), _steps(c)] for a, b, c in _figures(model)]
    page.grid(
        ["state", "steps", "first", "stays for"],
        [[name, *line] for name, line in zip(names, figures, strict=True)],
        right=["steps", "first", "stays for"],
    )
    page.heading("What follows (row: state, column: the next)")
    lines = [[name, *map(share, row)] for name, row in zip(names, model.transitions_.tolist(), strict=True)]
    page.grid(["state", *names], lines, right=names)
    for key in model.params_:
        said = _shown(model, key, told)
        page.heading(f"{key_text(key)} ({fitted.shown.families[key].title})")
        shown = [said[place] for place in fitted.chain.links.shown]
        page.grid(["state", "shows"], [[name, words] for name, words in zip(names, shown, strict=True)])


def _figures(model: Any) -> list[tuple[float, float, float]]:
    total = model.occupied_.sum()
    return list(zip((model.occupied_ / total).tolist(), model.first_.tolist(), model.durations_.tolist(), strict=True))


def _agreed(agreed: tuple[int, int] | None) -> str:
    return "" if agreed is None or agreed[1] < 2 else f"; {agreed[0]} of {agreed[1]} starts led here"


def _steps(duration: float) -> str:
    return "for ever" if duration == float("inf") else f"{number(duration)} steps"


def _state_document(model: Any) -> dict[str, Any]:
    fitted, names = model.fitted_, [str(name) for name in model.states_]
    return {
        "model": fitted.chain.name,
        "states": [
            {"name": name, "share": a, "first": b, "duration": None if c == float("inf") else c, "stationary": d}
            for name, (a, b, c), d in zip(names, _figures(model), model.stationary().values(), strict=True)
        ],
        "transitions": model.transitions_.tolist(),
        "parameters": {
            key_text(key): {name: value.tolist() for name, value in own.items()} for key, own in model.params_.items()
        },
        "levels": {key_text(key): list(levels) for key, levels in model.levels_.items()},
        "steps": model.counts_.rows,
        "free_parameters": model.n_parameters_,
        "log_likelihood": model.log_likelihood_,
        "bic": model.bic(),
        "columns": column_documents(fitted.schema, fitted.missing),
        "selection": None if model.selection_ is None else model.selection_.to_pylist(),
        "objective": {"name": fitted.objective, "trace": list(fitted.trace)},
        "iterations": model.n_iter_,
        "converged": bool(model.converged_),
        "agreed": model.agreed_,
        "interrupted": fitted.interrupted,
        "notes": list(model.notes_),
    }


def add_odd_steps(page: Page, odd: pa.Table) -> None:
    """The steps that fit worst, and what makes them odd."""
    page.heading("Steps that fit worst (nats less likely than is usual)")
    lines = [
        [str(line["sequence"]), str(line["step"]), number(line["score"]), f"{line['reason']} (+{number(_top(line))})"]
        for line in odd.to_pylist()
    ]
    page.grid(["sequence", "step", "score", "because of"], lines, right=["step", "score"])


def _top(line: dict[str, Any]) -> float:
    own: float = line[line["reason"]]
    return own


# -- chains


def _add_chain(page: Page, model: Any, told: Discretion) -> None:
    name, symbols = symbol_names(model, told), model.symbols_
    page.heading(f"A Markov chain of order {model.order_}: {counted(len(symbols), 'symbol')}")
    ends = ", beginnings and ends as states" if model.ends else ""
    page.line(f"from {counted(model.counts_.steps, 'step')}{ends}; {_prior(model.prior)}")
    lasting = _long_run(model)
    page.heading("What comes in the long run" if lasting else "What comes, as counted")
    runs = model.run_lengths() if lasting else {}
    shares = sorted((lasting or model.shares_).items(), key=lambda pair: -pair[1])[:MOST_SYMBOLS]
    headings = ["symbol", "share", *(["runs of"] if runs else [])]
    lines = [[name(key), share(value), *([_run(runs.get(key))] if runs else [])] for key, value in shares]
    page.grid(headings, lines, right=headings[1:])
    if model.order_ == 1 and len(symbols) <= MOST_SYMBOLS:
        page.heading("What follows (row: symbol, column: the next)")
        names = [name(symbol) for symbol in model.next_symbols_]
        rows = zip(model.contexts_, model.transitions_.tolist(), strict=True)
        lines = [[name(key), *map(share, row)] for key, row in rows]
        page.grid(["after", *names], lines, right=names)


def _prior(prior: Any) -> str:
    if prior == "kneser-ney":
        return "contexts leave a part to shorter ones (Kneser-Ney)"
    return f"{prior} imagined steps to each symbol after every context"


def _run(length: float | None) -> str:
    return "-" if length is None else _steps(length)


def _long_run(model: Any) -> dict[Any, float]:
    from softcount.errors import DataError

    try:
        found: dict[Any, float] = model.stationary()
    except DataError:  # there is no one long run, or too many contexts to work it out
        return {}
    return found


def context_text(key: Any) -> str:
    """A symbol, or some of them, as one reads it; what cannot be seen is in quotes."""
    names = [str(symbol) for symbol in (key if isinstance(key, tuple) else (key,))]
    return " ".join(name if name.strip() else repr(name) for name in names)


def _chain_document(model: Any) -> dict[str, Any]:
    return {
        "model": "chain",
        "order": model.order_,
        "symbols": [str(symbol) for symbol in model.symbols_],
        "steps": model.counts_.steps,
        "ends": model.ends,
        "prior": str(model.prior),
        "evidence": {str(order): height for order, height in model.evidence_.items()},
        "irreducible": model.irreducible_,
        "period": model.period_,
        "shares": {context_text(key): value for key, value in model.shares_.items()},
        "contexts": [context_text(key) for key in model.contexts_] if model.order_ < 2 else None,
        "next": [str(name) for name in model.next_symbols_],
        "transitions": model.transitions_.tolist() if model.order_ < 2 else None,
        "stationary": {context_text(key): value for key, value in _long_run(model).items()},
        "notes": list(model.notes_),
    }
