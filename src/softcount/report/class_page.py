"""Classes one by one: what sets each apart, who is in it for certain, and which rows fit nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from softcount.report.page import Page, key_text
from softcount.report.plain_text import LONGEST_CELL, counted, listed, number, share, shortened

if TYPE_CHECKING:
    from softcount.fitted.classes import Anomaly, Card, ClassMember, SortedTable
    from softcount.fitted.fitted import Fitted

CARD_COLUMNS = 5
"""How many columns the card of one class names; --json names all."""

TELLING = 0.5
"""Nats above what is usual from which a column is named as a reason, after the first."""

LONGEST_VALUE = 40
"""Text that is given as a reason is cut after so much: documents are long."""


def class_names(fitted: Fitted) -> list[str]:
    """The classes as a person calls them: by level, or by number where they were found."""
    known = fitted.n_groups if fitted.classes is not None else len(fitted.named or ())
    return [str(name) if g < known else f"class {name}" for g, name in enumerate(fitted.names)]


def only_text(fitted: Fitted) -> bool:
    """Whether columns of text are all that the model reads."""
    return bool(fitted.families) and set(fitted.families) <= set(fitted.schema.texts)


def add_cards(page: Page, fitted: Fitted, parameters: bool = False) -> None:
    """What sets each class apart from the rest of the table, in its own order, and its typical row.

    Figures are those of the rows or, with `parameters`, those that rows are scored with. Where text is all there is,
    the words that mark the classes say it already.
    """
    if only_text(fitted):
        return
    figures = zip(class_names(fitted), fitted.row_shares.tolist(), fitted.cards(parameters), strict=True)
    for name, part, card in figures:
        page.heading(f"What sets {name} apart ({share(part)} of the rows)")
        chosen = card.apart[:CARD_COLUMNS]
        telling = [(key_text(x.key), number(x.influence, 3), x.here, x.elsewhere) for x in chosen]
        page.grid(("column", "influence", "here", "elsewhere"), telling, right=("influence",))
        page.line(f"typical row: {_typical(fitted, card)}")


def _typical(fitted: Fitted, card: Card) -> str:
    """The values typical of a class, those of its most telling columns first; words without commas between them."""
    cells: list[tuple[Any, Any]] = []
    keys: list[Any] = [x.key for x in card.apart]
    texts = set(fitted.schema.texts)
    for key in keys:
        value = card.typical[key].replace(",", "") if key in texts else card.typical[key]
        cells += zip(key, value, strict=True) if isinstance(value, tuple) else [(key, value)]
    return listed([f"{key_text(column)} {value_text(value)}" for column, value in cells], most=8)


def value_text(value: Any, digits: int = 4) -> str:
    """A cell as a person reads it; a block's cells in brackets.

    >>> value_text(2.5), value_text(None), value_text(("a", 1.0))
    ('2.5', 'missing', '(a, 1)')
    """
    if value is None:
        return "missing"
    if isinstance(value, tuple):
        return f"({', '.join(value_text(part, digits) for part in value)})"
    return number(value, digits) if isinstance(value, float) else str(value)


# -- a table, sorted into the classes


class SortedRows(NamedTuple):
    """A table's rows, sorted into classes: who is where, what the table is called, and the rows' files if they are."""

    sorting: SortedTable
    data: str
    files: Sequence[str] = ()

    def file(self, row: int) -> dict[str, str]:
        """The file that a row is, where rows are files."""
        return {"file": self.files[row]} if self.files else {}


def add_sorting(page: Page, fitted: Fitted, found: SortedRows) -> None:
    """Who is in which class and how certainly, and the rows that fit worst."""
    from softcount.fitted.classes import relative

    groups, sorting = fitted.n_groups, found.sorting
    page.heading(f"The rows of {found.data}, by their likeliest class")
    rows = [
        (name, number(crowd.rows), share(relative(crowd.entropy, groups)), *map(_members, (crowd.most, crowd.least)))
        for name, crowd in zip(class_names(fitted), sorting.classes, strict=True)
    ]
    page.grid(("class", "rows", "unsure", "surest rows", "least sure rows"), rows, right=("rows", "unsure"))
    unsure = share(relative(sorting.entropy, groups))
    page.line(f"unsure, over all rows: {unsure} (membership entropy; 0 % where every row is sure of its class)")
    if sorting.impossible:
        page.line(f"{counted(sorting.impossible, 'row')} impossible under every class, and in none")
    _add_odd(page, fitted, found)


def _members(members: list[ClassMember]) -> str:
    """Row numbers, counted from 1, each with its probability.

    >>> from softcount.fitted.classes import ClassMember
    >>> _members([ClassMember(0, 1.0), ClassMember(16, 0.5)])
    '1 (100 %), 17 (50.0 %)'
    """
    return ", ".join(f"{member.row + 1} ({share(member.probability)})" for member in members) or "-"


def _add_odd(page: Page, fitted: Fitted, found: SortedRows) -> None:
    if not found.sorting.anomalies:
        return
    names = class_names(fitted)
    page.heading("Rows that fit worst (score: nats of log-density below the usual)")
    rows = [
        (
            str(odd.row + 1),
            *found.file(odd.row).values(),
            "impossible" if odd.score == float("inf") else f"{odd.score:.1f}",
            names[odd.group] if odd.probability > 0 else "none",
            because(odd),
        )
        for odd in found.sorting.anomalies
    ]
    headings = ("row", *found.file(0), "score", "likeliest", "because")
    page.grid(headings, rows, right=("row", "score"))


def because(odd: Anomaly, most: int = 3) -> str:
    """The columns that make a row odd, with what they hold and what they add to its score."""
    first, *others = odd.parts.items()
    telling = [first, *(pair for pair in others if pair[1] >= TELLING)]
    reasons = [_reason(key, part, odd.cells) for key, part in telling[:most]]
    while len(reasons) > 1 and len(", ".join(reasons)) > LONGEST_CELL:  # whole reasons, none cut in mid-number
        reasons.pop()
    return ", ".join(reasons)


def _reason(key: Any, part: float, cells: Mapping[Any, Any]) -> str:
    from softcount.core.counts import ROOT

    held = f" {shortened(value_text(cells[key]), LONGEST_VALUE) or '(empty)'}" if key in cells else ""
    said = "a rare class" if key is ROOT else f"{key_text(key)}{held}"
    return f"{said} (impossible)" if part == float("inf") else f"{said} ({part:+.1f})"


# -- the same as data


def card_document(card: Card, names: Mapping[Any, str]) -> dict[str, Any]:
    """One class as data; `names` are what its columns and blocks are called."""
    return {
        "class": card.name,
        "share": card.share,
        "rows": card.rows,
        "departure": card.departure,
        "typical": {names[key]: value for key, value in card.typical.items()},
        "apart": [
            {"column": names[x.key], "influence": x.influence, "here": x.here, "elsewhere": x.elsewhere}
            for x in card.apart
        ],
    }


def influence_document(fitted: Fitted, cards: list[Card], names: Mapping[Any, str]) -> list[dict[str, Any]]:
    """Every column's influence: summed over the classes, relative to the largest, and class by class."""
    ranked = fitted.influence()
    most = max((value for _, value in ranked), default=0.0)
    each = [{x.key: x.influence for x in card.apart} for card in cards]
    return [
        {
            "column": names[key],
            "value": value,
            "relative": value / most if most > 0 else 0.0,
            "per_class": [far[key] for far in each],
        }
        for key, value in ranked
    ]


def sorting_document(fitted: Fitted, found: SortedRows) -> dict[str, Any]:
    """A table sorted into the classes, as data."""
    from softcount.fitted.classes import relative

    names, groups, sorting = fitted.names, fitted.n_groups, found.sorting
    return {
        "name": found.data,
        "rows": sorting.rows,
        "entropy": sorting.entropy,
        "relative_entropy": relative(sorting.entropy, groups),
        "impossible_rows": sorting.impossible,
        "classes": [
            {
                "class": name,
                "rows": crowd.rows,
                "entropy": crowd.entropy,
                "relative_entropy": relative(crowd.entropy, groups),
                "surest": [_member_document(found, member) for member in crowd.most],
                "least_sure": [_member_document(found, member) for member in crowd.least],
            }
            for name, crowd in zip(names, sorting.classes, strict=True)
        ],
        "anomalies": [_odd_document(fitted, odd) | found.file(odd.row) for odd in sorting.anomalies],
    }


def _member_document(found: SortedRows, member: ClassMember) -> dict[str, Any]:
    return {"row": member.row + 1, "probability": member.probability} | found.file(member.row)


def _odd_document(fitted: Fitted, odd: Anomaly) -> dict[str, Any]:
    from softcount.core.counts import ROOT
    from softcount.fitted.answers import CLASS, labels_in, name_apart

    names = {**labels_in(fitted), ROOT: name_apart(fitted, CLASS)}
    return {
        "row": odd.row + 1,
        "score": odd.score,
        "log_density": odd.log_density,
        "class": fitted.names[odd.group] if odd.probability > 0 else None,
        "reasons": [
            {"column": names[key], "value": odd.cells.get(key), "surprise": part} for key, part in odd.parts.items()
        ],
    }
