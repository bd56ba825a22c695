"""Docstrings of public classes and methods, completed when a class is made from what is declared once.

A class gets its Parameters and Attributes. An attribute whose name ends in "_" is declared once, in the class that has
it: as a property, by `inputs.attribute`, or as `name_: Annotated[type, "Meaning."]` if a method sets it. Classes that
inherit it document it too.

The docstring of a method leaves out parameters that mean the same everywhere, which `ARGUMENTS` or the `_arguments` of
its class declare by name, or by method and name ("forget.X"), and results that `RESULTS` or `RESULTS_OF_METHODS`
declare.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from textwrap import indent
from types import FunctionType
from typing import Any

from softcount.estimators.parameters import Parameter

HEADER = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
"""Title of a section, underlined."""
ENTRY = re.compile(r"\n(?=\S)")
"""Line break before an entry of a section."""
DOCUMENTED = [
    (r"\bSequence\b", "list"), (r"\bKey\b|\bobject\b", "str"), (r"\bAny\b", "object"), (r"\bFrame\b", "DataFrame"),
    (r"\b(np|sc)\.", ""), (r" \| ", " or "), (r"\b(dict|Mapping)\[.*\]", "dict"),
    (r"\btuple\[(\w+), .*\]", r"tuple of \1"), (r"\blist\[tuple.*\]", "list of tuple"),
    (r"\blist\[(\w+)\]", r"list of \1"),
]  # fmt: skip
"""How types of annotations are written in the documentation."""
WIDTH = 116
Arguments = Mapping[str, tuple[str, str]]
"""Type and meaning of parameters of methods, by name; an empty type is that of the plain name, or of the annotation."""
ROWS = "DataFrame, Arrow table, file name or array of shape (n_rows, n_columns)"
PARTIAL_ROWS = (ROWS, "Rows. Cells and columns may be missing.")
IGNORED = ("object", "Ignored; present for pipelines.")
SEQUENCE_WEIGHT = ("array of shape (n_sequences,)", "Weight of each sequence.")
ARGUMENTS: Arguments = {
    "X": (ROWS, "Rows. Cells may be missing."),
    "y": ("array of shape (n_rows,) or str", "Classes, or the name of the column of `X` that holds them."),
    "sample_weight": ("array of shape (n_rows,)", "Weight of each row. A row of weight 2 counts as two equal rows."),
    "against": ("object", "Class, category or state to compare with. By default, the second most probable."),
    "bayes_error.n_samples": ("int", "Rows drawn from the model, at least 2."),
    "class_prior": (
        "dict, array, 'uniform' or 'estimate'", "Shares of the classes among these rows, as in `predict`."
    ),
    "explore.X": ("", "Rows; the page holds the first ones as examples that its reader can load."),
    "folds": ("int", "Number of folds."),
    "forget.X": ("", "Rows or sequences to forget."),
    "given": ("dict", "Values of columns, or conditions on them. The other columns are drawn given these."),
    "key": ("str", "Column of text; None takes all of them."),
    "n": ("int", "Number of rows to return."),
    "n_samples": ("int", "Number of rows."),
    "partial_fit.X": ("", "Further rows, sequences or documents."),
    "path": ("str or path", "File to write."),
    "random_state": ("int, RandomState or None", "Seed of the draws."),
    "report.X": ("", "Rows to compare with those of the fit."),
    "redact": ("bool", "Whether to leave out all cells and the names of categories with fewer than five rows."),
    "**settings": ("", "Further parameters of the constructor."),
}  # fmt: skip
"""Parameters of methods that mean the same in every class, unless its `_arguments` declare them differently."""
RESULTS = {
    "Self": "This estimator.",
    "BestError": "The estimate, with the attributes `error`, `standard_error` and `rows`.",
    "Dependence": "`information`, the conditional mutual information in nats; `g2` with `freedom` degrees of freedom; "
    "`p_value`.",
    "Evaluation": "`accuracy`, `balanced_accuracy`, `log_loss`, `brier`, `auc`, `calibration_error`, the confusion "
    "matrix and further figures.",
    "ExplorePage": '`save("explore.html")` writes it as one file that needs no server.',
    "LikeliestLevels": "`levels`, a dict of the categories by node, and `log_probability`.",
    "NodeTable": "Probabilities of its categories for each configuration of its parents. `print` shows it as a table.",
    "Quadratic": "The coefficients; with one column, `roots` are the values at which both classes are as probable.",
    "Report": '`save("report.html")` writes it; the ending may also be .json or .txt. Printed, it is text.',
    "Threshold": "The threshold with its precision and recall, for `predict(X, threshold=...)`.",
}
"""Meaning of the results of methods, by the annotation."""
RESULTS_OF_METHODS: Arguments = {
    "do": ("", "The changed network."),
    "merge": ("", "A new estimator; neither of the two is changed."),
    "predict": ("ndarray of shape (n_rows,)", "Classes."),
    "predict_proba": ("ndarray of shape (n_rows, n_classes)", "Probabilities in the order of the classes."),
    "anomaly_score": ("ndarray of shape (n_rows,)", "Scores in nats; larger is more anomalous."),
    "log_likelihood": ("float", "Weighted sum of `score_samples(X)`, in nats."),
    "predict_log_proba": ("ndarray of shape (n_rows, n_classes)", "Log-probabilities in the order of the classes."),
    "fit_predict": ("ndarray of shape (n_rows,)", "The same as `predict(X)`."),
    "score": (
        "float",
        "Share of rows whose class is predicted or, without classes, mean log-density per row or sequence.",
    ),
    "score_samples": ("ndarray of shape (n_rows,) or (n_sequences,)", "Log-densities or log-probabilities in nats."),
    "to_logistic": ("", "A new estimator that predicts classes by logistic regression."),
    "stationary": ("dict", "Share of each state or symbol."),
}
"""Type and meaning of the results of methods, by their names; an empty type is that of the annotation."""


def document(cls: type, declared: Mapping[str, Parameter], defaults: Mapping[str, Any]) -> str:
    """The docstring of a class in the form of numpydoc: its own, with Parameters and Attributes after its summary."""
    text = inspect.cleandoc(cls.__doc__ or "")
    first = HEADER.search(text)
    start = len(text) if first is None else first.start()
    parameters = (
        (name, f"{declared[name].documented_type}, default={default!r}", declared[name].meaning)
        for name, default in defaults.items()
    )
    parts = [text[:start].strip(), *sections("Parameters", parameters), *sections("Attributes", attributes_of(cls))]
    return indent("\n\n".join([*parts, text[start:].rstrip()]), "    ").strip() + "\n    "


def document_methods(cls: type, arguments: Arguments, **results: str) -> None:
    """Complete the docstrings of the public methods that a class of this package defines.

    `arguments` and `results` are declared in addition to `ARGUMENTS` and `RESULTS`.
    """
    if not cls.__module__.startswith("softcount."):
        return
    declared, results = {**ARGUMENTS, **arguments}, {**RESULTS, **results}
    for name, own in vars(cls).items():
        method = getattr(own, "__func__", own)
        if not name.startswith("_") and isinstance(method, FunctionType) and method.__doc__:
            annotated = str(method.__annotations__.get("return")).rpartition(".")[2].partition("[")[0]
            kind, meaning = RESULTS_OF_METHODS.get(name, ("", results.get(annotated)))
            meaning = "A fitted estimator." if isinstance(own, classmethod) and annotated == "Self" else meaning
            kind = kind or (cls.__name__ if annotated == "Self" else annotated)
            method.__doc__ = complete(method, declared, f"{kind}\n{wrap(meaning)}" if meaning else "")


def complete(method: FunctionType, declared: Arguments, result: str) -> str:
    """The docstring of a method with the declared parameters that it leaves out, and with its result, if there is one.

    >>> def score(self, X, y, n=3): '''Return the score.'''
    >>> print(complete(score, {"X": ("table", "Rows."), "n": ("int", "Number.")}, ""))
    Return the score.
    <BLANKLINE>
    Parameters
    ----------
    X : table
        Rows.
    n : int, default=3
        Number.
    """
    text = inspect.cleandoc(method.__doc__ or "")
    starts = [*(title.start() for title in HEADER.finditer(text)), len(text)]
    found = [text[start:end].strip() for start, end in pairwise(starts)]
    own: dict[str, str] = {}
    for section in [part for part in found if part.startswith("Parameters\n")]:
        found.remove(section)
        for entry in ENTRY.split(section.partition("-\n")[2]):
            names = entry.partition(" : ")[0].partition("\n")[0]
            own |= dict.fromkeys(names.split(", "), entry)
    entries: dict[str, None] = {}
    for name, default in defaults_of(inspect.unwrap(method)):
        if name in own:
            entries[own[name]] = None
        elif found_here := declared.get(f"{method.__name__}.{name}") or declared.get(name):
            kind, meaning = found_here
            kind = kind or declared.get(name, ("",))[0]
            if not kind and not name.startswith("*"):
                kind = documented_type(method.__annotations__[name])
            entries[f"{name} : {kind}{default}\n{wrap(meaning)}" if kind else f"{name}\n{wrap(meaning)}"] = None
    parts = [text[: starts[0]].strip()]
    if entries:
        parts.append("\n".join(["Parameters", "-" * 10, *entries]))
    if result and not any(part.startswith("Returns\n") for part in found):
        parts.append(f"Returns\n-------\n{result}")
    return "\n\n".join([*parts, *found])


def defaults_of(function: FunctionType) -> Iterator[tuple[str, str]]:
    """Name and documented default of each parameter. `inspect.signature` takes three times as long."""
    code, positional = function.__code__, function.__defaults__ or ()
    names, end = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
    given = dict(zip(names[code.co_argcount - len(positional) :], positional, strict=False))
    given |= function.__kwdefaults__ or {}
    several = code.co_flags & inspect.CO_VARARGS > 0
    shown = [
        *names[1 : code.co_argcount],
        *(f"*{x}" for x in names[end : end + several]),
        *names[code.co_argcount : end],
    ]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        shown.append(f"**{names[end + several]}")
    for name in shown:
        yield name, f", default={given[name]!r}" if name in given else ""


def sections(title: str, entries: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The section with these entries, each a name, a type and a meaning; nothing if there are none."""
    shown = [f"{name} : {kind}\n{wrap(meaning)}" for name, kind, meaning in entries]
    if shown:
        yield "\n".join([title, "-" * len(title), *shown])


@cache
def wrap(text: str) -> str:
    """A text in indented lines. `textwrap` took 5 ms per class at every start."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else f"    {word}"
    return "\n".join(lines)


def attributes_of(cls: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of every attribute that a fit sets; those of a class follow those of its bases."""
    found: dict[str, tuple[str, str, str]] = {}
    for base in reversed(cls.__mro__):
        types = vars(base).get("__annotations__", {})
        for name in [*types, *vars(base)]:
            own = vars(base).get(name)
            if not name.endswith("_") or name.startswith("_"):
                continue
            if own is None:
                kind, meaning = annotated(types[name])
                meaning = meaning or found.get(name, ("", "", ""))[2]  # a class may narrow the type alone
            else:
                made = getattr(own, "fget", None) or getattr(own, "func", None)
                kind = types.get(name) or getattr(made, "__annotations__", {}).get("return", "Any")
                meaning = " ".join((own.__doc__ or "").partition("\n\n")[0].split())
            if meaning:
                found[name] = (name, documented_type(kind), meaning)
    yield from found.values()


@cache
def annotated(annotation: str) -> tuple[str, str]:
    """The type and the meaning that an annotation as text holds: `Annotated[int, "Meaning."]`.

    >>> annotated('Annotated[int, "Number of " "columns."]')
    ('int', 'Number of columns.')
    """
    made = ast.parse(annotation, mode="eval").body
    if isinstance(made, ast.Subscript) and ast.unparse(made.value) == "Annotated" and isinstance(made.slice, ast.Tuple):
        kind, meaning = made.slice.elts
        return ast.unparse(kind), str(ast.literal_eval(meaning))
    return annotation, ""


@cache
def documented_type(annotation: str) -> str:
    """A type as the documentation writes it.

    >>> documented_type("list[str] | None"), documented_type("dict[Key, np.ndarray]"), documented_type("np.ndarray")
    ('list of str or None', 'dict', 'ndarray')
    """
    for pattern, written in DOCUMENTED:
        annotation = re.sub(pattern, written, annotation)
    return annotation
