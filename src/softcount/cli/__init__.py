"""The `softcount` command. Each subcommand is in a module of this package, imported when it is asked for.

Only click is imported here: `softcount --help` must answer at once.
"""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

COMMANDS = {
    "fit": ("fit", "Learn a model from a table: classes to predict, or to find."),
    "predict": ("answer", "Predict the class of every row of a table."),
    "impute": ("answer", "Fill the holes of a table by what a model expects there."),
    "evaluate": ("answer", "Say how well a model does on rows whose class is known."),
    "compare": ("other", "Set classifiers side by side on rows held out."),
    "show": ("show_command", "Say what a model holds."),
    "report": ("report_command", "Write all that is known of a model as one page with pictures."),
    "plot": ("plot_command", "Write one picture of a model by itself."),
    "diff": ("other", "Say what changed between two models."),
    "merge": ("other", "Make one model of several: their counts, added."),
    "schema": ("other", "Say how a table is read: the kind of each column, and why."),
    "explain": ("answer", "Say why a row got its class, column by column."),
    "query": ("answer", "Ask for the distribution of columns, given others."),
    "explore": ("explore_command", "Write a page to play with a model, any column from any others."),
    "serve": ("other", "Answer for models over HTTP, by the Open Inference Protocol."),
    "sample": ("answer", "Draw new rows from a model."),
    "generate": ("answer", "Write new text or sequences from a chain."),
    "export": ("other", "Write a model for databases and other programs."),
    "density": ("other", "Say which density fits a column of a table, and draw it."),
    "completion": ("other", "Write what makes a shell complete commands and options."),
    "demo": ("other", "Show the main job on a small table that comes with Softcount."),
}
"""Each command, the module that holds it, and its line in `softcount --help`."""
WORDS = "softcount.words"
"""Where click's context keeps the words of the command line."""

EPILOG = """\b
Example:
  softcount fit adult.csv --target income
  softcount predict adult.sc new.csv -o predicted.csv

DATA is CSV or TSV (also gzipped) or Parquet, a folder or tar file of documents, or - for standard input.
Results go to standard output, messages to standard error.
Exit codes: 0 done, 2 usage, 3 data, 4 model file, 5 resources, 130 interrupted."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, without importing any."""
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words as they were given: a model file says which command made it."""
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, imported now; None where there is no such."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        from softcount.cli.options import loudness_options

        module = import_module(f"softcount.cli.{COMMANDS[cmd_name][0]}")
        found: click.Command = vars(module).get("command") or getattr(module, cmd_name)
        if not any(option.name == "quiet" for option in found.params):
            found.params += loudness_options()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in the help, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, turning every failure into one line on standard error and an exit code."""
        if args is None:  # a process of our own, not a call from Python
            sys.meta_path.insert(0, NoPandas)
            gc.set_threshold(50_000)
            atexit.register(leave_garbage)
            stop_like_ctrl_c()
        if sys.stdout is None or sys.stderr is None:
            from softcount.cli.outputs import replace_closed_streams

            replace_closed_streams()
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        try:
            sys.exit(super().main(args, prog_name, standalone_mode=False, **extra))
        except Exception as error:
            from softcount.cli.outputs import report_failure

            sys.exit(report_failure(error))

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; a reader that closed its end of the pipe has seen enough, which is no failure."""
        from softcount.cli.outputs import ready_streams
        from softcount.core.remedies import in_shell
        from softcount.core.scratch import reserve_room
        from softcount.run.progress import interrupts_end

        reserve_room()
        with in_shell(), ready_streams(), interrupts_end():
            super().invoke(ctx)


def stop_like_ctrl_c() -> None:
    """Being told to end, or losing the terminal, is an interrupt: what was found is kept, temporary files are removed.

    A process that was told to ignore such a signal (nohup) goes on ignoring it.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def leave_garbage() -> None:
    """Look for none at the end; but DuckDB tells on 40 lines what is left of its objects then."""
    if "_duckdb" not in sys.modules:
        gc.freeze()


class NoPandas:
    """Pandas, as if it were not installed: pyarrow imports it to look for frames, which costs 0.2 s for nothing."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Nothing, so that others look for the module; pandas is refused."""
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def say_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    """Say the version and end."""
    if asked and not ctx.resilient_parsing:
        import softcount

        click.echo(f"softcount {softcount.__version__}")
        ctx.exit()


def _with_loudness(group: click.Group) -> click.Group:
    from softcount.cli.options import loudness_options

    group.params += loudness_options()
    return group


@_with_loudness
@click.group(
    "softcount",
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=say_version, help="Say the version."
)
def main() -> None:
    """Generative models by counting: point it at a table, get a model, predictions and reasons."""
