"""The `softcount` command. Its subcommands are declared in `commands`; each runs in a module that is loaded then."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from softcount.cli.commands import COMMANDS
from softcount.cli.options import VERBOSITY_OPTIONS, option
from softcount.core.lazy import lazy_function
from softcount.core.remedies import similar

TYPED = "softcount.typed"
"""Where click's context keeps the words of the command line."""

EPILOG = """\b
Example:
  softcount fit adult.csv --target income
  softcount predict adult.sc new.csv -o predicted.csv

DATA is CSV or TSV (also gzipped) or Parquet, a folder or tar file of documents, or - for standard input.
Results go to standard output, messages to standard error.
Exit codes: 0 done, 2 usage, 3 data, 4 model file, 5 resources, 130 interrupted."""

run_command = lazy_function("softcount.cli.outputs", "run_command")
report_failure = lazy_function("softcount.cli.outputs", "report_failure")
replace_closed_streams = lazy_function("softcount.cli.outputs", "replace_closed_streams")


OTHER_WORDS = {
    "train": "fit", "learn": "fit", "cluster": "fit", "classify": "predict", "score": "evaluate", "test": "evaluate",
    "describe": "schema", "info": "show", "summary": "show", "print": "show", "convert": "export", "draw": "plot",
}  # fmt: skip
"""Names of commands in other software, and the command that does it here."""
NEXT_LINE = "\n  "


class CommandGroup(click.Group):
    """The commands in the order of their declaration; every failure is one line on standard error and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = list(args)  # a model file says which command made it
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            other = OTHER_WORDS.get(args[0])
            hint = f"Did you mean {other!r}?" if other else similar(args[0], [*self.commands, "help"])
            raise click.UsageError(f"there is no command {args[0]!r}{hint and NEXT_LINE}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if args is None:  # a process of our own, not a call from Python
            interrupt_on_signals()
        if sys.stdout is None or sys.stderr is None:
            replace_closed_streams()
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        try:
            sys.exit(super().main(args, prog_name, standalone_mode=False, **extra))
        except Exception as error:
            sys.exit(report_failure(error))

    def invoke(self, ctx: click.Context) -> None:
        run_command(lambda: super(CommandGroup, self).invoke(ctx))


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt like Ctrl-C: the best model so far is kept, temporary files are removed.

    A process that was told to ignore such a signal (nohup) goes on ignoring it.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def show_version(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        from softcount import __version__

        click.echo(f"softcount {__version__}")
        ctx.exit()


main = CommandGroup(
    "softcount",
    commands={str(command.name): command for command in COMMANDS},
    params=[
        option("--version", "Show the version.", is_eager=True, expose_value=False, callback=show_version),
        *VERBOSITY_OPTIONS,
    ],
    help="Generative models by counting: from a table to a model, predictions and explanations.",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
