"""The page of a fit, which fits on one screen: the verdict, trouble, what matters, and what to do next.

`full_page` has everything: the columns as understood, all models tried, all classes, and all notes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.core.lazy import LazyModule
from softcount.evaluate.warnings import WORSE
from softcount.fitted.explain import influence_meaning
from softcount.pictures.text import (
    cell_width,
    format_count,
    format_list,
    format_loss,
    format_number,
    format_share,
    printable,
    shorten,
)
from softcount.report import classes, evaluation, quality, words
from softcount.report.class_pictures import View
from softcount.report.page import Grid, Heading, Page, PageBlock, format_cell, key_text, render_text
from softcount.run.progress import columns_of_output
from softcount.table.cell_forms import write_cell

if TYPE_CHECKING:
    from softcount.fitted.classes import ColumnContrast
    from softcount.fitted.fitted import Fitted

joint: Any = LazyModule("softcount.report.joint")
networks: Any = LazyModule("softcount.report.network")
sequences: Any = LazyModule("softcount.report.sequences")

LINES = 40
"""Lines of the page."""
TROUBLE_LINES, LEAST_TROUBLE = 20, 6
"""Lines of the verdict and trouble together, so that some columns are shown too, and lines that trouble has anyway."""
SHOWN_COLUMNS, SHOWN_CLASSES, SHOWN_TROUBLE, SHOWN_EDGES, SHOWN_BELIEFS, SHOWN_WORDS = 8, 6, 8, 12, 5, 2
SIDE_BY_SIDE = 2
"""Up to this many classes have a column each in the table of columns that matter."""
WIDE, NARROW, NAMED = 38, 30, 3
"""Most characters of the description of a column in each of two classes, and in one of more; columns that one line
names. On a narrow terminal, descriptions are shorter, but no shorter than `LEAST_WIDTH`."""
LEAST_WIDTH = 16
NAME_WIDTH, CLASS_WIDTH, GAIN_WIDTH = 24, 84, 11
"""Characters of a name in a table, of the description of a class, and of the gain with the blanks around it."""
COLUMNS_FRAME, LEAST_ROWS = 5, 3
"""Lines around the rows of the table of columns, and rows that are shown however many notes there are."""
LEAST_GAIN = 0.0005
"""Nats per row that are shown as 0.001; columns that lower the log-loss by less are not listed."""
EXPERT_LINES = 40
BASELINE = "class shares alone (baseline)"
REPEATED = (
    WORSE,
    "Ensemble: ",
    "Using standard naive Bayes alone",
    "read as missing: ",
    " initialisations reached the best",
)
"""What notes contain whose content stands elsewhere on the page."""


class FitOutcome(Struct, frozen=True):
    """A model that was just fitted, the rows of its table, and the names of its file and data.

    `reading` are the options the data were read with; `beliefs` compares an expert's beliefs with the data.
    """

    fitted: Any
    n_rows: int
    saved: str
    data: str
    reading: tuple[str, ...] = ()
    beliefs: Any = None

    @property
    def files(self) -> tuple[str, str]:
        """The model and the data, with the options it was read with, as one would type them."""
        model = "MODEL" if self.saved == "-" else shlex.quote(self.saved)
        return model, " ".join(["DATA" if self.data == "-" else shlex.quote(self.data), *self.reading])

    @property
    def interrupted(self) -> bool:
        return bool(getattr(getattr(self.fitted, "fitted_", self.fitted), "interrupted", False))

    @property
    def kind(self) -> str:
        """What kind of model it is: "sequences", "joint", "network" or "classes"."""
        if hasattr(self.fitted, "symbols_") or hasattr(self.fitted, "n_states_"):
            return "sequences"
        if hasattr(self.fitted, "trees"):
            return "joint"
        return "network" if hasattr(self.fitted, "net") else "classes"


def fit_record(fit: FitOutcome) -> dict[str, Any]:
    if fit.kind == "sequences":
        return dict(sequences.sequence_record(fit.fitted))
    more: dict[str, Any] = {"saved": fit.saved, "next": suggest_commands(fit)}
    if fit.kind == "network":
        return dict(networks.network_record(fit.fitted, **more))
    if fit.kind == "joint":
        return dict(joint.joint_record(fit.fitted, **more))
    return classes.model_record(fit.fitted, expert=fit.beliefs and fit.beliefs.to_pylist(), **more)


def suggest_commands(fit: FitOutcome) -> list[str]:
    """Name the commands to try next."""
    (model, data), fitted = fit.files, fit.fitted
    if fit.kind == "sequences":
        return [f"softcount explore {model}"]
    if fit.kind == "joint":
        first = shlex.quote(str(fitted.trees.coding.columns[0].key))
        commands = (f"query {model} --of {first}", f"impute {model} {data} -o filled.csv", f"sample {model} -n 100")
        return [f"softcount {command}" for command in (*commands, f"show {model} {data} --anomalies 10")]
    of = ""
    if fit.kind == "network":
        node = shlex.quote(str(fitted.net.graph.names[0] if fitted.target is None else fitted.target))
        of = f" --of {node}" if fitted.target is None else ""
        first = f"query {model} --of {node}"
    else:
        first = f"show {model} {data}" if fitted.classes is None else f"explain {model} {data} --row 1"
    report, predict = f"report {model} {data} -o report.html", f"predict {model} {data}{of} -o predicted.csv"
    return [f"softcount {command}" for command in (first, f"explore {model} {data}", report, predict)]


# -- the page of one screen


def fit_page(fit: FitOutcome) -> Page:
    """Write at most `LINES` lines on a fit."""
    page, end, (model, _) = Page(), Page(), fit.files
    end.heading("Next")
    end.line(*suggest_commands(fit))
    end.heading(f"Saved: {fit.saved}" if fit.saved != "-" else "Saved: the model went to standard output")
    end.line(f"softcount show {model} prints all of it, as does fit --full")
    if fit.kind == "sequences":
        _add_sequences(page, fit)
    elif fit.kind == "joint":
        page.blocks += joint.joint_page(fit.fitted, _table_size(fit), full=False).blocks
    else:
        fitted, is_network = fit.fitted, fit.kind == "network"
        page.heading(f"{(networks if is_network else classes).title_of(fitted)}, from {_table_size(fit)}")
        page.line(*(note for note in fitted.notes if note.startswith(WORSE)))
        if is_network:
            _add_network(page, fit)
        else:
            _add_classes(page, fit, LINES - lines_of(end.blocks) - 1)
    blocks = page.blocks
    while lines_of([*blocks, *end.blocks]) > LINES:
        del blocks[-1]
        while isinstance(blocks[-1], Heading):
            del blocks[-1]
    return Page([*blocks, *end.blocks])


def lines_of(blocks: Sequence[PageBlock]) -> int:
    """How many lines the blocks take, with the rule that a terminal draws below the headings of a table."""
    return render_text(Page(list(blocks))).count("\n") + sum(isinstance(block, Grid) for block in blocks)


def _add_classes(page: Page, fit: FitOutcome, lines: int) -> None:
    """Add what there is to know of a model of classes; the table of columns is cut to fit into so many lines."""
    fitted = fit.fitted
    names = [printable(name) for name in classes.class_names(fitted)]
    (_add_search if fitted.classes is None else _add_verdict)(page, fitted)
    _add_trouble(page, fit)
    if fitted.classes is None:
        _add_found_classes(page, fitted, names)
    elif not classes.is_only_text(fitted):
        _add_columns(page, fitted, names, lines - lines_of(page.blocks) - COLUMNS_FRAME)
    if fitted.schema.texts:
        texts = Page()
        words.add_words(texts, View(fitted, names), brief=True)
        page.blocks += [_cut(block, SHOWN_CLASSES) for block in texts.blocks[: 2 * SHOWN_WORDS]]
    if fit.beliefs is not None:
        _add_beliefs(page, fit.beliefs.to_pylist(), SHOWN_BELIEFS)


def _table_size(fit: FitOutcome) -> str:
    fields = fit.fitted.schema.fields
    used = sum(spec.used for spec in fields)
    columns = format_count(used, "column") if used == len(fields) else f"{used} of {len(fields)} columns"
    return f"{format_count(fit.n_rows, 'row')} and {columns}"


def _add_scores(page: Page, found: Any, name: str, ensemble: Any = None) -> None:
    """Add accuracy and log-loss of the model on held-out rows, of simpler models and of guessing."""
    if found is None:
        page.line("not evaluated on held-out rows (--folds 0, too few labelled rows, merged, or learned in parts)")
        return
    spread = found.log_loss_spread
    lines = [(name, found.accuracy, found.log_loss, f"± {format_number(spread, 2)}" if spread > 0 else "")]
    if ensemble is not None and len(ensemble.names) > 1:
        best = ensemble.tried[0]
        lines.append((f"best single model ({best.name})", best.accuracy, best.log_loss, ""))
    if ensemble is not None and ensemble.plain == ensemble.plain:
        lines.append(("standard naive Bayes", ensemble.plain_accuracy, ensemble.plain, ""))
    lines.append((BASELINE, found.baseline_accuracy, found.baseline_log_loss, ""))
    rows = [(name, format_share(right), format_loss(loss), more) for name, right, loss, more in lines]
    headings = (f"{found.how}, {format_count(found.n_rows, 'row')}", "accuracy", "log-loss", "")
    page.grid(headings, rows, right=headings[1:3])


def _add_verdict(page: Page, fitted: Fitted) -> None:
    """Add how good the model is, what it is, and whether its probabilities are overconfident."""
    found, ensemble = fitted.record.evaluation, fitted.scorer.ensemble
    _add_scores(page, found, "this model", ensemble)
    if ensemble is not None and len(ensemble.names) > 1:
        members = sorted(zip(ensemble.names, ensemble.weights.tolist(), strict=True), key=lambda x: -x[1])
        named = ", ".join(f"{name} {weight:.2f}" for name, weight in members)
        page.line(f"ensemble (weights of the members' log-odds): {named}")
    elif ensemble is not None:
        page.line(f"chosen from {format_count(len(ensemble.tried), 'model')}: {ensemble.names[0]}")
    shares = zip(classes.class_names(fitted), fitted.row_shares.tolist(), fitted.group_rows.tolist(), strict=True)
    ranked = [f"{shorten(x, NARROW)} {format_share(share)}" for x, share, _ in sorted(shares, key=lambda x: -x[2])]
    page.line(f"classes: {format_list(ranked)}")
    if fitted.scorer.calibration:
        evaluation.add_calibration(page, fitted.scorer.calibration, bins=False)
    elif found is not None:
        evaluation.add_overconfidence(page, found, evaluation.REMEDY if ensemble is None else "", bins=False)


def _add_search(page: Page, fitted: Fitted) -> None:
    """Add how the number of classes was chosen, and whether other initialisations agree."""
    trials, line = fitted.selection or [], "the number of classes was given"
    if trials:
        by = evaluation.CRITERIA.get(fitted.record.criterion or "", "").partition(",")[0]
        numbers = [trial.classes for trial in trials]
        line = f"number chosen from {min(numbers)} to {max(numbers)} by {by or 'held-out rows'}"
    if fitted.agreed is not None and fitted.agreed[1] > 1 and fitted.n_groups > 1:
        line += f"; {quality.describe_starts(fitted.agreed)}"
    page.line(line)
    if fitted.interrupted:
        page.line(f"interrupted after {format_count(fitted.n_iter, 'iteration')}: the best so far")
    page.line(*classes.suggest_starts(fitted))


def _add_found_classes(page: Page, fitted: Fitted, names: Sequence[str]) -> None:
    """Add a line for each of the largest classes: its share, and the columns in which it differs most."""
    page.heading("Classes")
    if fitted.n_groups == 1:
        keys = list(fitted.params)[:SHOWN_COLUMNS]
        page.grid(("column", "in all rows"), [(key_text(key), fitted.describe(key)[0]) for key in keys])
        return
    largest = sorted(range(fitted.n_groups), key=lambda group: -fitted.row_shares[group])
    cards, rows = fitted.cards(), []
    for group in largest[: 2 * SHOWN_CLASSES if fitted.n_groups <= 2 * SHOWN_CLASSES else SHOWN_CLASSES]:
        known = [x for x in cards[group].contrasts if x.influence > 0][:4]
        parts = [printable(part) for x in known for part in _name_difference(fitted, x, group)]
        while len(parts) > 1 and len("; ".join(parts)) > CLASS_WIDTH:
            parts.pop()
        rows.append((names[group], format_share(float(fitted.row_shares[group])), "; ".join(parts)))
    shown = [tuple(shorten(cell, CLASS_WIDTH) for cell in row) for row in rows]
    page.blocks.append(Grid(("class", "share", "differs most in"), tuple(shown), (False, True, False)))
    if len(largest) > len(rows):
        rest = format_share(float(sum(fitted.row_shares[group] for group in largest[len(rows) :])))
        page.line(f"and {len(largest) - len(rows)} more with {rest} of the rows")
    ranked = [
        key_text(column)
        for key, value in fitted.influence() if value > 0
        for column in (key if isinstance(key, tuple) else (key,))
    ]  # fmt: skip
    page.line(f"columns that differ most between the classes: {', '.join(ranked[:NAMED])}")


def _name_difference(fitted: Fitted, contrast: ColumnContrast, group: int) -> list[str]:
    """Describe a column in a class; of a block of numbers, the three whose means in the class are farthest out."""
    key, params = contrast.key, fitted.params.get(contrast.key, {})
    if not (isinstance(key, tuple) and "mean" in params and "covariance" in params):
        first, more, _ = contrast.here.partition(" %, ")  # of categories, the most frequent
        return [f"{shorten(key_text(key), NAME_WIDTH)}: {first}{' %' if more else ''}"]
    means, shares = params["mean"], fitted.row_shares
    within = shares @ params["covariance"].diagonal(axis1=1, axis2=2)
    centre = shares @ means
    far = (means[group] - centre) / (within + shares @ (means - centre) ** 2) ** 0.5
    largest = sorted(range(len(key)), key=lambda place: -abs(far[place]))[:3]
    cells = [write_cell(fitted.schema[key[place]].written, float(means[group, place])) for place in largest]
    return [
        f"{shorten(key_text(key[place]), NAME_WIDTH)}: mean {format_cell(cell)}"
        for place, cell in zip(largest, cells, strict=True)
    ]


def _first_items(description: str, most: int) -> str:
    """Cut a description between its items, if it is longer than `most`.

    >>> _first_items("Month-to-month 43 %, Two year 32 %, One year 25 %", 30)
    'Month-to-month 43 %, …'
    """
    items, kept = description.split(", "), description
    while len(kept) > most and len(items) > 1:
        items.pop()
        kept = f"{', '.join(items)}, …"
    return shorten(kept, most)


def _add_columns(page: Page, fitted: Fitted, names: Sequence[str], rows_left: int) -> None:
    """Add the columns that lower the log-loss most, with what they are like in the classes."""
    influence = fitted.influence()
    ranked = [(key, value) for key, value in influence if value >= LEAST_GAIN]
    if fitted.n_groups < 2 or not ranked:
        return
    page.heading(f"Columns that matter most ({influence_meaning(fitted)})")
    chosen = ranked[: min(max(rows_left, LEAST_ROWS), SHOWN_COLUMNS)]
    if fitted.n_groups <= SIDE_BY_SIDE:
        headings, width = ("column", "gain", *names), WIDE
        described = [fitted.describe(key) for key, _ in chosen]
    else:
        headings, width = ("column", "gain", "class", "in this class", "in the others"), NARROW
        cards = zip(fitted.cards(), names, strict=True)
        by_class = [({x.key: x for x in card.contrasts}, name, card) for card, name in cards]
        described = []
        for key, _ in chosen:
            having = [(own[key], name, card) for own, name, card in by_class if key in own]
            contrasts = [(contrast.influence * card.share, name, contrast) for contrast, name, card in having]
            _, name, best = max(contrasts, key=lambda x: x[0])
            described.append([shorten(name, NAME_WIDTH), best.here, best.elsewhere])
    columns = [shorten(key_text(key), NAME_WIDTH) for key, _ in chosen]
    taken = max(map(cell_width, columns)) + GAIN_WIDTH
    if width == NARROW:
        taken += 2 + max(cell_width(cell) for cell in (headings[2], *(cells[0] for cells in described)))
    width = max(min(width, (columns_of_output() - taken) // 2 - 3), LEAST_WIDTH)
    rows = [
        (name, f"{gain:.3f}", *(_first_items(cell, width) for cell in cells))
        for name, (_, gain), cells in zip(columns, chosen, described, strict=True)
    ]
    page.grid([shorten(heading, WIDE) for heading in headings], rows, right=("gain",))
    page.rest(len(influence) - len(chosen), "column that matters", "columns that matter", "less")


def _add_network(page: Page, fit: FitOutcome) -> None:
    fitted = fit.fitted
    if fitted.target is not None:
        _add_scores(page, fitted.record.evaluation, "this network")
    parameters = format_count(fitted.n_parameters, "free parameter")
    page.line(f"BIC {networks.find_figures(fitted)['bic']:,.1f} (smaller is better), {parameters}")
    if fitted.agreed is not None and fitted.agreed[1] > 1:
        page.line(quality.describe_starts(fitted.agreed))
    _add_trouble(page, fit)
    page.heading("Strongest edges (mutual information of the two nodes, in nats)")
    rows = networks.edge_rows(fitted.net.graph, networks.edge_information(fitted), 3)
    page.grid(("from", "to", "nats"), rows[:SHOWN_EDGES], ("nats",))
    page.rest(len(rows) - SHOWN_EDGES, "edge")


def _add_sequences(page: Page, fit: FitOutcome) -> None:
    model = fit.fitted
    whole = sequences.sequence_page(model).blocks
    first = next((at for at, block in enumerate(whole) if isinstance(block, Heading) and at), len(whole))
    page.blocks += whole[:first]
    notes = quality.order_notes(quality.group_notes(model.notes_))
    if notes:
        page.heading("Check")
        page.line(*notes[:SHOWN_TROUBLE])
    rest = whole[first : whole.index(Heading("Notes"))] if Heading("Notes") in whole else whole[first:]
    wide = [isinstance(block, Grid) and len(block.headings) > SHOWN_COLUMNS for block in rest]
    for at, block in enumerate(rest):
        if not wide[at] and not any(wide[at + 1 : at + 2]):
            page.blocks.append(_cut(block, SHOWN_COLUMNS))
    if any(wide) and getattr(model, "order_", 0) == 1:
        page.heading("What follows most often")
        after, shares = [sequences.format_context(name) for name in model.next_symbols_], model.shares_
        places = sorted(range(len(model.contexts_)), key=lambda at: -shares.get(model.contexts_[at], 0.0))
        lines = []
        for at in places[:SHOWN_COLUMNS]:
            row = model.transitions_[at]
            best = sorted(range(len(row)), key=lambda to: -row[to])[:4]
            likely = ", ".join(f"{after[to]} {format_share(float(row[to]))}" for to in best)
            lines.append((sequences.format_context(model.contexts_[at]), likely))
        page.grid(("after", "next"), lines)


def _cut(block: Any, most: int) -> Any:
    """Keep the first rows of a table, and name how many there are."""
    if not isinstance(block, Grid) or len(block.rows) <= most:
        return block
    more = (f"and {len(block.rows) - most} more", *[""] * (len(block.headings) - 1))
    return Grid(block.headings, (*block.rows[:most], more), block.right)


# -- trouble: notes in groups, the most important first, and what is missing or left out


def _add_trouble(page: Page, fit: FitOutcome) -> None:
    fitted = fit.fitted
    notes = [note for note in fitted.notes if not any(words in note for words in REPEATED)]
    lines, mentioned = quality.order_notes(quality.group_notes(notes)), "\n".join(notes)
    by_why: dict[str, list[str]] = {}
    for spec in fitted.schema.fields:
        known = any(x in mentioned for x in (repr(spec.key), spec.why, f"{spec.kind}s"))
        if not (spec.used or spec.declared or known):
            by_why.setdefault(spec.why, []).append(key_text(spec.key))
    lines += [f"left out: {format_list(own, NAMED)} ({why})" for why, own in by_why.items()]
    missing = sorted(((n, key) for key, n in fitted.missing.items() if n > 0), key=lambda x: -x[0])
    if missing:
        cells = format_count(sum(n for n, _ in missing), "missing cell")
        listed = [
            f"{shorten(key_text(key), NAME_WIDTH)} ({format_share(n / fit.n_rows if fit.n_rows else None)})"
            for n, key in missing
        ]
        lines.append(f"{cells}, treated as unknown: {format_list(listed, NAMED)}")
    if lines:
        page.heading("Check")
        shown = [_shorten_names(line) for line in lines[:SHOWN_TROUBLE]]
        most = max(TROUBLE_LINES - lines_of(page.blocks[:-1]), LEAST_TROUBLE)
        while lines_of(shown) > most:
            shown.pop(-2 if missing else -1)
        page.line(*shown)
        page.rest(len(lines) - len(shown), "more note", "more notes", "--full", ":")


def _shorten_names(note: str) -> str:
    """Cut long names in a note, but for those in an option to copy."""
    kept = re.split(r"(--\S+ (?:'[^']*'\S*|\S+))", note)
    for place in range(0, len(kept), 2):
        kept[place] = quality.NAMES.sub(
            lambda match: match[0][0] + shorten(match[0][1:-1], NARROW) + match[0][0], kept[place]
        )
    return "".join(kept)


# -- the full page


def full_page(fit: FitOutcome) -> Page:
    """Write what `show` does, and what is known of the fit alone."""
    if fit.kind == "sequences":
        return Page(sequences.sequence_page(fit.fitted).blocks)
    pages = {"network": networks.network_page, "joint": joint.joint_page}
    page: Page = pages.get(fit.kind, classes.model_page)(fit.fitted)
    if fit.beliefs is not None:
        _add_beliefs(page, fit.beliefs.to_pylist(), EXPERT_LINES)
    page.heading("Saved")
    page.line(f"the model, in {fit.saved}" if fit.saved != "-" else "the model, to standard output")
    page.heading("Next")
    page.line(*suggest_commands(fit))
    return page


def _add_beliefs(page: Page, lines: list[dict[str, Any]], most: int) -> None:
    """Add a line for each belief of an expert: the expert's share, that of the rows, and that of both together."""
    page.heading("Expert and data")
    rows = [
        (
            x["column"], x["level"], x["class"], f"{format_number(x['n'])} of {format_number(x['m'])}",
            *(format_share(x[name]) for name in ("expert", "data", "both")), f"{x['surprise_bits']:+,.1f}",
        )
        for x in lines[:most]
    ]  # fmt: skip
    headings = ("column", "level", "class", "believed", "expert", "data", "both", "surprise")
    page.grid(headings, rows, right=headings[3:])
    page.rest(len(lines) - most, "more", "more", "--json has them all", ":")
    page.line(
        "surprise: how many bits more the data need under the expert's prior than with one prior count per category;",
        "below 0 the expert's prior fits better, far above 0 the data contradict the expert",
    )
