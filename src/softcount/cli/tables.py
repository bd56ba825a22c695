"""softcount schema, compare and density: commands about tables."""

from __future__ import annotations

from typing import Any

import click

from softcount.cli.options import Request, find_name
from softcount.cli.outputs import STANDARD, check_output, progress, write_answer, write_bytes
from softcount.cli.read import declare_kinds, open_data, read_column, read_through
from softcount.core.lazy import LazyModule
from softcount.fit.classes import choose_families
from softcount.learn.record import Plan
from softcount.report.quality import schema_page, schema_record
from softcount.run.local import Threads

comparison: Any = LazyModule("softcount.estimators.comparison")
comparison_pages: Any = LazyModule("softcount.report.comparison")
densities: Any = LazyModule("softcount.evaluate.density_ranking")
density_pages: Any = LazyModule("softcount.report.density")


def schema(request: Request) -> None:
    with progress() as tell:
        kinds = declare_kinds(request.kind)
        table = open_data(request.data, kinds, request.form, tell)
        if kinds.leaves_open:
            with Threads() as threads:
                table, _ = choose_families(table, Plan(kinds), threads, known_classes=True)
        found = read_through(table)
    write_answer(request.json, schema_record, schema_page, *found)


def compare(request: Request) -> None:
    target, plot = request.target, request.plot
    check_plot(request)
    with progress() as tell:
        table = open_data(request.data, declare_kinds(request.kind), request.form, tell)
        names = {str(key): key for key in table.source.keys}
        key = find_name(names, target, "--target", f"{request.data} has no column")
        curve = request.curve or plot is not None
        found = comparison.compare_table(table, key, request.kind, curve, request.folds, request.seed, tell)
    if plot is not None and found.curves is not None:
        write_bytes(found.curves.svg().encode(), plot)
    if plot != STANDARD:
        write_answer(
            request.json,
            lambda: comparison_pages.comparison_record(found, target),
            lambda: comparison_pages.comparison_page(found, target, plot),
        )


def density(request: Request) -> None:
    check_plot(request)
    with progress() as tell:
        values, labels, missing = read_column(request, tell)
        ranked = densities.rank_densities(values, labels, request.seed, tell)
    found = density_pages.DensityReport(request.column, request.by, missing, ranked, request.compare)
    if request.plot is not None:
        write_bytes(density_pages.density_chart(found).draw().svg_file().encode(), request.plot)
    if request.plot != STANDARD:
        write_answer(
            request.json,
            lambda: density_pages.density_record(found),
            lambda: density_pages.density_page(found, request.plot),
        )


def check_plot(request: Request) -> None:
    check_output(request.plot, request.data)
    if request.plot == STANDARD and request.json:
        raise click.UsageError("--json and --plot - cannot both go to standard output")
