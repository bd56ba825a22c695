"""softcount diff, merge, export and serve: models compared, merged, and handed to other programs."""

from __future__ import annotations

from typing import Any

import click

from softcount.cli import outputs
from softcount.cli.models import is_network_file, load_estimator, open_model
from softcount.cli.options import Request
from softcount.core.lazy import LazyModule
from softcount.errors import DataError, ModelFileError
from softcount.serve import refuse_without_extra

estimators: Any = LazyModule("softcount.estimators.base")
onnx_graph: Any = LazyModule("softcount.export.onnx_graph")
sql_query: Any = LazyModule("softcount.export.sql_query")
changes: Any = LazyModule("softcount.fitted.compare")
change_pages: Any = LazyModule("softcount.report.comparison")
application: Any = LazyModule("softcount.serve.application")
served_models: Any = LazyModule("softcount.serve.models")
server: Any = LazyModule("softcount.serve.server")


def diff(request: Request) -> None:
    found = changes.model_changes(open_model(request.old), open_model(request.new))
    outputs.write_answer(
        request.json,
        lambda: change_pages.changes_record(found),
        lambda: change_pages.changes_page(found, request.old, request.new),
    )


def merge(request: Request) -> None:
    output, paths = str(request.output), request.models
    if len(paths) < 2:
        raise click.UsageError("give at least two models: softcount merge A B -o C")
    outputs.check_output(output, *paths)
    found = load_estimator(paths[0])
    for path in paths[1:]:
        more = load_estimator(path)
        if type(more) is not type(found) or not hasattr(found, "merge"):
            names = f"{paths[0]} is a {type(found).__name__}, {path} a {type(more).__name__}"
            alike = "both have to be of one kind" if type(more) is not type(found) else "which cannot be merged"
            raise DataError(f"{names}: {alike}.")
        found = found.merge(more)
    outputs.save_model_to(output, found.save)
    if output != outputs.STANDARD:
        rows = getattr(getattr(found, "counts_", None), "rows", None)
        counted = "" if rows is None else f"{rows:,.0f} rows in "
        outputs.print_info(f"Wrote {output}, of {counted}{len(paths)} models.")


def export(request: Request) -> None:
    path, output, form = request.model, request.output, request.to
    if form != "sql" and output is None:
        raise click.UsageError(f"name the output: softcount export {path} --to {form} -o FILE")
    outputs.check_output(output, path)
    found = load_estimator(path)
    if form == "bif":
        if not hasattr(found, "write"):
            raise DataError(
                f"{path} holds {type(found).__name__}, and only networks are written as BIF. Export it with --to sql "
                "or --to onnx, or fit a network: softcount fit DATA --net tan"
            )
        found.write(output)
        outputs.print_info(f"Wrote {output}.")
        return
    if not isinstance(found, estimators.ExportableEstimator):
        raise DataError(
            f"{path} holds {type(found).__name__}, which is not a sum over columns. Naive Bayes, mixtures, k-means and "
            "classifiers can be exported; networks with --to bif. Use it in Python: softcount.load(...)"
        )
    if form == "onnx":
        graph, check = onnx_graph.as_onnx(found)
        content = graph.SerializeToString()
    else:
        columns = [name for names in request.keep for name in names.split(",")]
        text, check = sql_query.as_sql(found, request.dialect, request.table, columns)
        content = text.encode()
    outputs.write_bytes(content, output)
    outputs.print_info(f"{'' if output in (None, outputs.STANDARD) else f'Wrote {output}; '}{check}.")


def serve(request: Request) -> None:
    refuse_without_extra()
    for path in request.models:
        if is_network_file(path):
            raise ModelFileError(f"{path}: a network file has no class to predict. {served_models.learn_class()}")
    found = served_models.open_by_name(request.models)
    for model in found.values():
        model.warm(application.Patience(float("inf")))
    limits = application.Limits(body=request.body_limit << 20, working=request.deadline)
    with server.listen(request.host, request.port) as listener:

        def announce() -> None:
            address = server.find_address(listener)
            outputs.print_message(
                f"Serving {', '.join(found)} at {address} (Open Inference Protocol, /v2). Ctrl+C ends it."
            )

        server.run_server(application.Served(found, limits), listener, {request.host, *request.allow_host}, announce)
    outputs.print_info("Ended.")
