"""Naive Bayes of the rows of a database, counted where they are unless something takes the rows themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from softcount.cli.data_input import database_query

if TYPE_CHECKING:
    from softcount.cli.library_calls import FitRequest
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted_model import Fitted
    from softcount.run.progress import Tell

UNTRIED = "the model was not tried on rows held out, which are in the database: --folds 5 reads them out and tries it"


def fit(request: FitRequest, tell: Tell) -> tuple[Fitted, Evaluation | None, int, Any]:
    """As `library_calls.fit`, but counted inside a database where that can be."""
    from softcount.cli import library_calls as library

    counted, said = counted_in_database(request)
    return library.fit(request, tell, said) if counted is None else (counted[0], None, counted[1], None)


def counted_in_database(request: FitRequest) -> tuple[tuple[Fitted, int] | None, list[str]]:
    """The model that a database counted and its rows; or None, and a note why they are read out.

    Of data that are in no database nothing is said.
    """
    elsewhere = request.target is None or request.engine is not None or request.model == "mixture"
    found = None if elsewhere else database_query(request.data, request.form)
    if found is None:
        return None, []
    from softcount.export.database_rows import TITLES, ReadOut
    from softcount.sources.queries import opened, vendor_of

    database, query = found
    with opened(database) as connection:
        try:
            return _counted(request, connection, query), []
        except ReadOut as reason:
            vendor = vendor_of(connection)
            return None, [f"rows were read out of {TITLES.get(vendor, vendor)}: {reason}"]


def _counted(request: FitRequest, connection: Any, query: str) -> tuple[Fitted, int]:
    from softcount.cli import library_calls as library
    from softcount.evaluate.learn_model import learn_model
    from softcount.export.counting_inside import ClassRequest, counted_inside
    from softcount.export.database_rows import Database, ReadOut, dialect_of
    from softcount.learn.fit_record import FitRecord
    from softcount.run.threads import Threads

    assert request.target is not None
    dialect = dialect_of(connection)
    reason = _takes_rows(request)
    if reason is not None:
        raise ReadOut(reason)
    asked = library.declared(request.kinds)
    base, plan = Database(connection, dialect, query, request.weight, zeros=True), library.plan_of(request, asked)
    with Threads(request.jobs) as threads:

        def learn(rows: Any) -> Fitted:
            return learn_model(library.table_of(rows, asked, request.form, target=request.target), plan, threads)

        fitted, rows = counted_inside(base, ClassRequest(request.target, plan, request.form.words(), learn))
    notes = [*fitted.notes, *([] if request.folds == 0 else [UNTRIED]), *library.textbook_notes(request)]
    return replace(fitted, notes=notes, record=FitRecord(provenance=library.provenance_of(request))), rows


def _takes_rows(request: FitRequest) -> str | None:
    """What was asked for that counts are not enough for; None where they are."""
    if request.decides:
        return "what tells the classes is decided by rows held out (--model naive-bayes is counted inside)"
    if request.model == "averaged":
        return "averaged stars count pairs of columns"
    for name in ("holdout", "folds", "calibrate", "expert"):
        if getattr(request, name):
            return f"--{name} takes the rows themselves"
    return "words are counted here" if request.texts.settings else None
