"""Warnings about a fitted model: dependent columns, overconfidence, and poor fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from softcount.core import remedies
from softcount.fitted.fitted import DependentPairs, Fitted
from softcount.networks.scores import CodeCounts, Dependence, dependence, dependent_pairs
from softcount.pictures.text import format_loss
from softcount.sources.wording import and_others
from softcount.table import Chunk, Table
from softcount.table.discretise import equal_count
from softcount.table.schema import Field, Key

FEW_ROWS = 5
"""Rows of a class below which little is learned of it, and nothing can be checked."""
WORSE = "worse than guessing"
"""How the first of all warnings begins."""
DEPENDENT = ("counts it twice", "depend on each other")


def find_warnings(fitted: Fitted, columns: Sequence[str], losses: tuple[float, float] | None) -> list[str]:
    """Warnings about a model of known classes; `columns` are notes on columns that depend on each other.

    `losses` are the cross-validated log-losses of the model and of predicting the class shares.
    """
    notes = [*class_notes(fitted), *columns]
    if losses is None or not losses[0] > losses[1]:
        return notes
    own, guessing = map(format_loss, losses)
    worse = f"{WORSE}: cross-validated log-loss {own}; predicting the class shares has {guessing}."
    return [f"{worse} {_cause(fitted, notes)}", *notes]


def class_notes(fitted: Fitted) -> list[str]:
    """Classes with too few rows, or as many as rows, or whose name means missing in a text file."""
    rows, names = fitted.group_rows, fitted.names
    if len(rows) > 2 and len(rows) >= 0.5 * rows.sum():
        return [
            f"the target has {len(rows):,} different values in {rows.sum():,.0f} rows: it may be a number or an "
            "identifier rather than classes. Name another target, or group its values into a few classes first."
        ]
    single = [names[g] for g in np.flatnonzero(rows <= 1)]
    few = [names[g] for g in np.flatnonzero((rows > 1) & (rows < FEW_ROWS))]
    notes = [
        *_describe_sizes(single, "one row", "its predictions cannot be checked on held-out rows"),
        *_describe_sizes(few, f"fewer than {FEW_ROWS} rows", "its estimates are uncertain"),
    ]
    # Labels given separately are classes whatever they say; such words in a table's cells are missing values.
    words = [name for name in names if isinstance(name, str) and name.strip() in fitted.schema.missing]
    if words:
        named = f"{and_others(words)} {'is' if len(words) == 1 else 'are'}"
        notes.append(
            f"{named} a class here, but means missing in a text file. If it means missing here, give None instead."
        )
    return notes


def _describe_sizes(names: Sequence[object], size: str, so: str) -> list[str]:
    if not names:
        return []
    who = f"class {names[0]!r} has" if len(names) == 1 else f"{len(names)} classes have"
    listed = "" if len(names) == 1 else f"{' each' * (size == 'one row')} ({and_others(names)})"
    return [f"{who} {size}{listed}: {so if len(names) == 1 else so.replace('its', 'their', 1)}."]


def _cause(fitted: Fitted, others: Sequence[str]) -> str:
    """The likeliest reason, and the remedy."""
    rows, ensemble = fitted.group_rows, remedies.either("Classifier", "--model auto")
    if not fitted.scorer.is_naive:
        return "The columns may carry no information on the classes, or there are too few rows to find it."
    if rows.sum() < 2 * FEW_ROWS * len(rows):
        return f"Likeliest cause: few rows, {rows.sum() / len(rows):.1f} per class."
    if any(words in note for note in others for words in DEPENDENT):
        cause, remedy = "columns that depend on each other (below), which naive Bayes ignores", "leave some out"
    elif not any(spec.kind.numeric for spec in fitted.schema.used):
        cause, remedy = "the columns carry little information on the classes", "use other columns"
    else:
        cause = "numbers that do not follow the assumed distribution"
        remedy = remedies.either("kinds='auto'", "--kind auto")
    return f"Likeliest cause: {cause}. Try {ensemble}, or {remedy}."


# Warnings about columns that depend on each other within the classes, which naive Bayes ignores.

MOST_CELLS = 1_000_000
"""Pairs of columns are not examined in larger tables: that would take longer than the fit."""
FEW_CELLS = 200_000
"""Cells that are enough to find strong pairs."""
MOST_COLUMNS = 100
MOST_LEVELS = 64
"""Columns with more categories are left out: chance alone shows much in them."""
INTERVALS = 5
"""Bins of a numeric column."""
WORTH_SAYING = 0.05
"""Least mutual information in nats."""
CHANCE = 0.001
"""How often chance may show as much in any pair of the table."""
STRONG = 0.1
"""Nats from which on answers about two columns are far off if they are taken as independent: a correlation of 0.43."""
MOST_PAIRS = 5
ENOUGH = 10
"""Rows of every category, or of every class, with which perfect prediction of the class is no chance."""
REMEDY = "naive Bayes assumes that columns are independent within a class; a network models such pairs"


def strong_pairs(fitted: Fitted, table: Table) -> DependentPairs | None:
    """The pairs of columns that depend on each other strongly within the classes, by rows evenly spaced.

    None if there are too many columns.
    """
    found = _count_codes(fitted, table, FEW_CELLS)
    if found is None:
        return None
    keys, counting, *_ = found
    return _keep_strong(_find_informative(counting, fitted, keys), keys)


def _keep_strong(worth: Iterable[Dependence[int]], keys: Sequence[Key]) -> DependentPairs:
    return tuple((keys[x.a - 1], keys[x.b - 1], x.information) for x in worth if x.information >= STRONG)


def measure_dependence(fitted: Fitted, table: Table) -> tuple[list[str], DependentPairs | None]:
    """Notes on columns that depend on each other within the classes, and the pairs that do so strongly.

    Of a table of more than `MOST_CELLS` cells the first rows are examined, and there are no notes. None if the pairs
    were not examined.
    """
    found = _count_codes(fitted, table)
    if found is None:
        return [], None
    keys, counting, apart, whole, some = found
    # The ensemble has notes on what it leaves out, so that only strong pairs are needed: some rows show them.
    pairing = counting if fitted.scorer.is_naive else some
    worth = _find_informative(pairing, fitted, keys)
    strong = _keep_strong(worth, keys)
    if not whole:
        return [], strong
    notes = _notes_on_class(counting, keys, apart)
    pairs = _pair_notes(worth, keys, counting) if fitted.scorer.is_naive else []
    if pairs:
        notes += [*pairs, f"{REMEDY}: " + remedies.either("BayesNet.tan(X, y)", "--net tan")]
    return notes, strong


def _pair_notes(worth: Sequence[Dependence[int]], keys: Sequence[Key], counting: CodeCounts) -> list[str]:
    """Notes on the most dependent pairs; of equal columns, each once."""
    notes: list[str] = []
    copies: set[Key] = set()
    for pair in worth:
        first, second, same = keys[pair.a - 1], keys[pair.b - 1], False
        note = f"{first!r} and {second!r} depend on each other within the classes ({pair.information:.2f} nats)."
        if pair.copy:
            forth, back = _follows(counting, pair.a, pair.b)
            if not forth:
                first, second = second, first
            same = forth and back
            how = "repeats" if same else "is determined by"
            note = f"{second!r} {how} {first!r}: naive Bayes counts it twice."
        if not copies & {first, second}:
            notes.append(note)
            copies |= {second} if same else set()
        if len(notes) == MOST_PAIRS:
            break
    return notes


def _count_codes(
    fitted: Fitted, table: Table, most: int | None = None
) -> tuple[list[Key], CodeCounts, set[Key], bool, CodeCounts] | None:
    """Columns, counts of the class (node 0) and of them, and those whose numbers separate the classes.

    Then whether all rows were counted, and counts of some rows, evenly spaced. None if there are too many pairs or
    none. With `most`, all is of rows evenly spaced, of so many cells.
    """
    texts = set(fitted.schema.texts)
    plain = [spec for spec in fitted.schema.used if spec.key not in texts]
    fields = [spec for spec in plain if spec.kind.numeric or 1 < len(spec.levels) <= MOST_LEVELS]
    if not 1 <= len(fields) <= MOST_COLUMNS:
        return None
    chunks: list[Chunk] = []
    for task in table.tasks():
        if sum(chunk.n_rows for chunk in chunks) * len(fields) > MOST_CELLS:
            whole = False
            break
        chunks.append(task())
    else:
        whole = True
    rows = sum(chunk.n_rows for chunk in chunks)
    some_rows = slice(None, None, 1 if most is None else max(1, -(-rows * len(fields) // most)))
    labels = np.concatenate([np.asarray(chunk.labels, dtype=np.int64) for chunk in chunks])[some_rows]
    weights = np.concatenate([chunk.row_weights for chunk in chunks])[some_rows]
    places = fitted.schema.places
    cells = {spec.key: np.concatenate([x.column(places[spec.key]) for x in chunks])[some_rows] for spec in fields}
    codes = np.stack([labels, *(_codes(spec, cells[spec.key], weights) for spec in fields)], axis=1)
    sizes = [int(column.max(initial=0)) + 1 for column in codes.T]
    numeric = [spec for spec in fields if spec.kind.numeric and most is None]
    apart = {spec.key for spec in numeric if _is_apart(cells[spec.key], labels)}
    step = -(-codes.size // FEW_CELLS)
    counting = CodeCounts(codes, sizes, weights)
    some = counting if step == 1 else CodeCounts(codes[::step], sizes, weights[::step])
    return [spec.key for spec in fields], counting, apart, whole, some


def _is_apart(cells: np.ndarray, labels: np.ndarray) -> bool:
    """Whether each class has a range of numbers to itself, with enough rows for that to be no chance."""
    there = np.isfinite(cells) & (labels >= 0)
    order = np.lexsort((labels[there], cells[there]))
    cells, labels = cells[there][order], labels[there][order]
    sizes = np.bincount(labels)
    met = sizes[sizes > 0]
    changes = np.flatnonzero(np.diff(labels))
    apart = len(changes) == len(met) - 1 and bool((cells[changes] < cells[changes + 1]).all())
    return apart and len(met) > 1 and int(met.min()) >= ENOUGH


def _notes_on_class(counting: CodeCounts, keys: Sequence[Key], apart: Collection[Key]) -> list[str]:
    """Columns that predict the class without error, which may be known only once the class is."""
    found = []
    for place, key in enumerate(keys, start=1):
        pair = dependence(counting, 0, place)
        sure = pair.copy and pair.p_value * len(keys) < CHANCE
        forth, back = _follows(counting, 0, place) if sure else (False, False)
        if key in apart or (back and (forth or counting.sizes[place] * ENOUGH <= pair.weight)):
            how = "matches the class exactly" if forth and back else "predicts the class without error"
            leak = f"a leak, unless it is known before the class (to leave it out: {remedies.kind(key, 'ignore')})"
            found.append(f"column {key!r} {how}: {leak}")
    return found


def _follows(counting: CodeCounts, a: int, b: int) -> tuple[bool, bool]:
    """Whether b follows from a, and a from b."""
    seen = counting.counts((a, b)) > 0
    return bool(seen.sum(axis=1).max() <= 1), bool(seen.sum(axis=0).max() <= 1)


def _codes(spec: Field, cells: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A column as codes, -1 if it is missing or has an unseen category."""
    if not spec.kind.numeric:
        own = cells.astype(np.int64)
        return np.where(own > len(spec.levels), 0, own) - 1
    there = np.isfinite(cells)
    edges = equal_count(cells[there], weights[there], INTERVALS)
    return np.where(there, np.searchsorted(edges, cells), -1)


def _find_informative(counting: CodeCounts, fitted: Fitted, keys: Sequence[Key]) -> list[Dependence[int]]:
    """Pairs of enough information, by more than chance; those of one block are modelled together."""
    pairs = dependent_pairs(counting, 0)
    block = {column: leaf.key for leaf in fitted.model.leaves for column in leaf.columns}
    return [
        pair
        for pair in pairs
        if pair.information >= WORTH_SAYING
        and pair.p_value * len(pairs) < CHANCE
        and block.get(keys[pair.a - 1]) != block.get(keys[pair.b - 1])
    ]
