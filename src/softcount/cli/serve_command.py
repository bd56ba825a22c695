"""softcount serve: models behind HTTP, asked by the Open Inference Protocol."""

from __future__ import annotations

import click

EPILOG = """\b
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


@click.command("serve", epilog=EPILOG, short_help="Answer for models over HTTP, by the Open Inference Protocol.")
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
def command(
    models: tuple[str, ...], host: str, port: int, hosts: tuple[str, ...], body_limit: int, deadline: float
) -> None:
    """Answer for MODELs over HTTP until told to end."""
    from softcount.cli.network_options import is_network_file
    from softcount.cli.outputs import inform, say
    from softcount.errors import ModelFileError
    from softcount.serve.server import address_of, listening, refuse_without_extra, run_server

    refuse_without_extra()
    from softcount.serve.application import Limits, Patience, Served
    from softcount.serve.models import learn_class, served_by_name

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
