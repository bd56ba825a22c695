"""Commands about tables, and about whole models: schema, compare, density, diff, merge, export, serve, demo.

Each imports what it needs when it runs, so that its help is shown at once.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import click

from softcount.cli import options
from softcount.cli.options import InputFormat, suggestion
from softcount.cli.outputs import (
    STANDARD,
    check_output,
    check_plot,
    inform,
    progress,
    put_answer,
    put_bytes,
    save_by,
    say,
)
from softcount.errors import DataError, ModelFileError
from softcount.export import DIALECTS

SCHEMA_EPILOG = """\b
Examples:
  softcount schema adult.csv
  softcount schema adult.csv --kind zip=categorical --missing unknown
  softcount schema adult.csv --kind auto
  softcount schema adult.csv --json | jq '.columns[].kind'
  softcount schema mail/"""


@click.command("schema", epilog=SCHEMA_EPILOG, short_help="Say how a table is read.")
@options.data_argument
@options.kind_option
@options.format_options()
@options.json_option
def schema(data: str, kinds: dict[str, str], form: InputFormat, json_wanted: bool) -> None:
    """Say how the table DATA is read: the kind of each column and why, its levels, and what is missing."""
    from softcount.cli.read import declared, open_data, read_through
    from softcount.fit.classes import choose_densities
    from softcount.learn.settings import Plan
    from softcount.report.quality import schema_page, schema_record
    from softcount.run.local import Threads

    with progress() as tell:
        asked = declared(kinds)
        table = open_data(data, asked, form, tell)
        with Threads() as threads:
            table, _ = choose_densities(table, Plan(asked), threads, known_classes=True)
        found = read_through(table)
    put_answer(lambda: schema_record(*found), lambda: schema_page(*found), json_wanted)


COMPARE_EPILOG = """\b
Examples:
  softcount compare adult.csv --target income
  softcount compare adult.csv --target income --curve         who wins with few rows, who with many
  softcount compare adult.csv --target income --plot curves.svg
  softcount compare adult.csv --target income --json | jq '.models[0]'

Tried are naive Bayes with numbers as they are, cut and under kernels, with a weight for each column, and with a tree
of columns; averaged one-dependence stars; a mixture for every class; what lies between naive Bayes and logistic
regression; the classifier that decides for itself; scikit-learn's logistic regression and gradient boosting. All learn
from the same rows and are asked for the same others: five folds, or above 15,000 rows a third held out once.
Rows without a class are left out."""


@click.command("compare", epilog=COMPARE_EPILOG, short_help="Set classifiers side by side on a table.")
@options.data_argument
@click.option("--target", required=True, metavar="COL", help="The column that holds the classes.")
@options.kind_option
@click.option("--curve", is_flag=True, help="Learn from ever more of the rows, too.")
@click.option("--plot", metavar="FILE", help="Write the learning curves as SVG (- is standard output).")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Folds instead of what the number of rows suggests.")
@options.format_options()
@options.seed_option
@options.json_option
def compare(  # noqa: PLR0913 - one for each option
    data: str,
    target: str,
    kinds: dict[str, str],
    curve: bool,
    plot: str | None,
    folds: int | None,
    form: InputFormat,
    seed: int,
    json_wanted: bool,
) -> None:
    """Set classifiers of a column of DATA side by side, on rows they have not seen."""
    from softcount.cli.read import declared, open_data
    from softcount.estimators.comparison import compare_table
    from softcount.report import comparison as pages

    check_plot(plot, data, json_wanted)
    with progress() as tell:
        table = open_data(data, declared(kinds), form, tell)
        names = {str(key): key for key in table.source.keys}
        if target not in names:
            raise DataError(f"--target: {data} has no column {target!r}.\n  {suggestion(target, names)}")
        found = compare_table(table, names[target], kinds, curve or plot is not None, folds, seed, tell)
    if plot is not None and found.curves is not None:
        put_bytes(found.curves.svg().encode(), plot)
    if plot != STANDARD:
        put_answer(
            lambda: pages.comparison_record(found, target),
            lambda: pages.comparison_page(found, target, plot),
            json_wanted,
        )


DENSITY_EPILOG = """\b
Examples:
  softcount density adult.csv --column age
  softcount density adult.csv --column age --compare         every density, ranked
  softcount density adult.csv --column age --by income --plot age.svg
  softcount density adult.csv --column age --json | jq '.densities[0]'

The candidates are those of --kind auto: normal; lognormal and gamma (if every value is above 0); exponential (if
none is below 0); Student's t; Poisson and geometric (if the values are counts); a spike and a density beside it (if
many values are equal); a histogram, Gaussian kernels, and two to four normals. Each is fitted to four fifths of the
rows and scored on the others, five times. With --by every group has densities of its own. A density is never
narrower than the rounding of the values."""


@click.command("density", epilog=DENSITY_EPILOG, short_help="Say which density fits a column, and draw it.")
@options.data_argument
@click.option("--column", required=True, metavar="COL", help="The column, of numbers.")
@click.option("--by", metavar="COL", help="A column whose levels have densities of their own.")
@click.option("--compare", is_flag=True, help="Show every density that was tried, not the best alone.")
@click.option("--plot", metavar="FILE", help="Write the picture as SVG (- is standard output).")
@options.format_options()
@options.seed_option
@options.json_option
def density(
    data: str,
    column: str,
    by: str | None,
    compare: bool,
    plot: str | None,
    form: InputFormat,
    seed: int,
    json_wanted: bool,
) -> None:
    """Rank densities of a column of DATA by the log-likelihood of rows held out, and draw them."""
    from softcount.cli.read import read_column
    from softcount.evaluate.density_ranking import rank_densities
    from softcount.report.density import DensityReport, density_chart, density_page, density_record

    check_plot(plot, data, json_wanted)
    with progress() as tell:
        values, labels, missing = read_column(data, column, by, form, tell)
        report = DensityReport(column, by, missing, rank_densities(values, labels, seed, tell), compare)
    if plot is not None:
        put_bytes(density_chart(report).draw().svg_file().encode(), plot)
    if plot != STANDARD:
        put_answer(lambda: density_record(report), lambda: density_page(report, plot), json_wanted)


DIFF_EPILOG = """\b
Examples:
  softcount diff monday.sc tuesday.sc
  softcount diff old.sc new.sc --json | jq '.columns[0]'

Columns and levels that came or went, rows, shares of classes, and columns by how far they moved: the share of a
column's probability that lies elsewhere now, 0 % where nothing changed and 100 % where the two have nothing in common.
Classes that were looked for have numbers, which mean nothing in another model: then whole columns are compared."""


@click.command("diff", epilog=DIFF_EPILOG, short_help="Say what changed between two models.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@options.json_option
def diff(old: str, new: str, json_wanted: bool) -> None:
    """Say what changed from the model OLD to the model NEW."""
    from softcount.cli.models import load_any
    from softcount.fitted.compare import model_changes
    from softcount.report.comparison import changes_page, changes_record

    found = model_changes(load_any(old), load_any(new))
    put_answer(lambda: changes_record(found), lambda: changes_page(found, old, new), json_wanted)


MERGE_EPILOG = """\b
Examples:
  softcount merge monday.sc tuesday.sc -o both.sc
  softcount merge shops/*.sc -o all.sc

What models have counted is added, as if one had learned from the rows of all. Naive Bayes, networks without hidden
nodes, Markov chains, densities and bags of words can be merged; classes that were looked for cannot, as those of one
model are not those of another."""


@click.command("merge", epilog=MERGE_EPILOG, short_help="Make one model of several.")
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True)
@options.output_option("Write the model of all rows here.", required=True)
def merge(models: tuple[str, ...], output: str) -> None:
    """Add up what models have counted."""
    from softcount.estimators.saving import load_estimator

    if len(models) < 2:
        raise click.UsageError("give two models at least: softcount merge A B -o C")
    check_output(output, *models)
    found = load_estimator(models[0])
    for path in models[1:]:
        more = load_estimator(path)
        if type(more) is not type(found) or not hasattr(found, "merge"):
            names = f"{models[0]} is a {type(found).__name__}, {path} a {type(more).__name__}"
            alike = "both have to be of one kind" if type(more) is not type(found) else "which cannot be merged"
            raise DataError(f"{names}: {alike}.")
        found = found.merge(more)
    save_by(found.save, output)
    if output != STANDARD:
        rows = getattr(getattr(found, "counts_", None), "rows", None)
        counted = "" if rows is None else f"{rows:,.0f} rows in "
        inform(f"Wrote {output}, of {counted}{len(models)} models.")


EXPORT_EPILOG = """\b
Examples:
  softcount export adult.sc --to sql --dialect postgres --table people --keep id -o score.sql
  softcount export adult.sc --to sql --dialect sqlite | sqlite3 people.db
  softcount export adult.sc --to onnx -o adult.onnx
  softcount export asia.sc --to bif -o asia.bif

A query reads the columns of the model from --table and gives a line for every row: the predicted class, then the
probability of each, as `softcount predict` does; --keep has columns of the table come first. Cells that mean missing,
and levels never seen, are taken as the model takes them. Dates, durations and amounts with a unit go in as numbers
(seconds since 1970, numbers in the unit): the first lines of the query name the columns to cast in a view.

Words of a text are found in DuckDB, Postgres, Spark and BigQuery. A graph takes a tensor for every column: numbers
(dates as seconds since 1970) with NaN for missing, levels as text.

What is exported is first run on 1,000 rows drawn from the model, and the largest difference is said; where the two
differ by more than rounding nothing is written. Naive Bayes, mixtures, k-means, averaged stars and classifiers can be
exported, networks as BIF; a column that no such program can compute is named, with what to do."""


@click.command("export", epilog=EXPORT_EPILOG, short_help="Write a model for other programs.")
@options.model_argument
@click.option("--to", "form", required=True, type=click.Choice(["sql", "onnx", "bif"]), help="What to write.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True, help="The dialect of a query."
)
@click.option("--table", metavar="NAME", default="rows", show_default=True, help="The table that a query reads.")
@click.option("--keep", multiple=True, metavar="COLS", help="Columns of the table that come first (a,b). Repeatable.")
@options.output_option("Write here; a query goes to standard output otherwise.")
def export(model: str, form: str, dialect: str, table: str, keep: tuple[str, ...], output: str | None) -> None:
    """Write MODEL as something that other programs run."""
    from softcount.estimators.base import ExportableEstimator
    from softcount.estimators.saving import load_estimator

    if form != "sql" and output is None:
        raise click.UsageError(f"say where to write: softcount export {model} --to {form} -o FILE")
    check_output(output, model)
    found = load_estimator(model)
    if form == "bif":
        if not hasattr(found, "write"):
            raise DataError(
                f"{model} holds {type(found).__name__}, and only networks are written as BIF. Export it with --to sql "
                "or --to onnx, or fit a network: softcount fit DATA --net tan"
            )
        found.write(output)
        inform(f"Wrote {output}.")
        return
    if not isinstance(found, ExportableEstimator):
        raise DataError(
            f"{model} holds {type(found).__name__}, which is no sum over columns. Naive Bayes, mixtures, k-means and "
            "classifiers can be exported; networks with --to bif. Use it in Python: softcount.load(...)"
        )
    from softcount.export.export_model import as_onnx, as_sql

    written: bytes
    if form == "onnx":
        graph, check = as_onnx(found)
        written = graph.SerializeToString()
    else:
        text, check = as_sql(found, dialect, table, [name for one in keep for name in one.split(",")])
        written = text.encode()
    put_bytes(written, output)
    inform(f"{'' if output in (None, STANDARD) else f'Wrote {output}; '}{check}.")


SERVE_EPILOG = """\b
Examples:
  softcount serve titanic.sc                          at 127.0.0.1, port 8000, until Ctrl+C
  softcount serve titanic.sc spam.sc --port 0         several models, at any port that is free
  softcount serve titanic.sc --host 0.0.0.0 --allow-host models.example.org

A model is asked by the name of its file without the ending, in the Open Inference Protocol (version 2): POST
/v2/models/titanic/infer with one tensor for each column, null where a cell is missing; back come the label of each row,
the probability of each class, and the classes. /v2/models/titanic/explain says why. GET /v2/models/titanic tells its
columns, /v2/health/live and /v2/health/ready whether it answers, /metrics what it counted, for Prometheus.

Served are classifiers, mixtures, networks with a class, models of text, and k-means. Nothing is read from a path or
written by what a client sends. Whoever reaches the address may ask: there are no passwords and no encryption, so beyond
this machine put it behind a proxy that has both."""


@click.command("serve", epilog=SERVE_EPILOG, short_help="Answer for models over HTTP, by the Open Inference Protocol.")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, metavar="N", help="The port; 0: any."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name that clients may ask by, besides localhost and ADDRESS; * for any. May be repeated.",
)
@click.option(
    "--body-limit", type=click.IntRange(1), default=8, show_default=True, metavar="MB", help="The largest request."
)
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an answer may take.",
)
def serve(
    models: tuple[str, ...], host: str, port: int, hosts: tuple[str, ...], body_limit: int, deadline: float
) -> None:
    """Answer for MODELs over HTTP until told to end."""
    from softcount.cli.request import is_network_file
    from softcount.serve import refuse_without_extra

    refuse_without_extra()
    from softcount.serve.application import Limits, Patience, Served
    from softcount.serve.models import learn_class, served_by_name
    from softcount.serve.server import address_of, listening, run_server

    for path in models:
        if is_network_file(path):
            raise ModelFileError(f"{path}: a network file knows no class to predict. {learn_class()}")
    found = served_by_name(models)
    for model in found.values():
        model.warm(Patience(float("inf")))
    limits = Limits(body=body_limit << 20, working=deadline)
    with listening(host, port) as listener:

        def begun() -> None:
            names = ", ".join(found)
            say(f"Serving {names} at {address_of(listener)} (Open Inference Protocol, /v2). Ctrl+C ends it.")

        run_server(Served(found, limits), listener, {host, *hosts}, begun)
    inform("Ended.")


QUESTIONS = {"bicycles": ["--of", "price", "--given", "type=road", "--given", "brakes=disc"]}
"""What is worth asking about a bundled table."""


DEMO_EPILOG = """\b
Examples:
  softcount demo
  softcount demo --keep playground      keep the table and the model, to go on with"""


@click.command("demo", epilog=DEMO_EPILOG, short_help="Show the main job on a small table.")
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--keep", metavar="FOLDER", help="Put the table and the model in this folder and leave them there.")
def demo(name: str | None, keep: str | None) -> None:
    """Run the main job on the table NAME that comes with Softcount, showing each command before it runs."""
    from softcount.demo import TABLES, table_path

    chosen = name or next(iter(TABLES))
    table = table_path(chosen)
    with place(keep) as folder, chdir(folder):
        shutil.copyfile(table, table.name)
        for line in commands(table.name, TABLES[chosen], QUESTIONS.get(chosen)):
            perform(line)


def commands(file: str, target: str, question: list[str] | None = None) -> list[list[str]]:
    """The main job, as one would type it."""
    model = Path(file).stem + ".sc"
    return [
        ["fit", file, "--target", target],
        ["explain", model, file, "--row", "2"],
        ["query", model, *(question or ["--of", target])],
        ["sample", model, "-n", "3"],
    ]


def perform(arguments: list[str]) -> None:
    """Show the command and run it."""
    from softcount.cli import main

    click.echo(f"$ softcount {shlex.join(arguments)}")
    main.main(arguments, prog_name="softcount", standalone_mode=False)
    click.echo()


@contextmanager
def place(keep: str | None) -> Iterator[Path]:
    """The folder to work in: the one to keep, or one that is gone afterwards."""
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    Path(keep).mkdir(parents=True, exist_ok=True)
    yield Path(keep)


SHELLS = ("bash", "zsh", "fish")


COMPLETION_EPILOG = """\b
Examples:
  softcount completion bash >> ~/.bashrc
  softcount completion zsh >> ~/.zshrc
  softcount completion fish > ~/.config/fish/completions/softcount.fish"""


@click.command("completion", epilog=COMPLETION_EPILOG, short_help="Write what makes a shell complete commands.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the lines that make SHELL complete commands and options of softcount."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # one of click's own
    click.echo(found(ctx.find_root().command, {}, "softcount", "_SOFTCOUNT_COMPLETE").source())
