"""softcount completion: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\b
Examples:
  softcount completion bash >> ~/.bashrc
  softcount completion zsh >> ~/.zshrc
  softcount completion fish > ~/.config/fish/completions/softcount.fish"""


@click.command("completion", epilog=EPILOG, short_help="Write what makes a shell complete commands.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Write the lines that make SHELL complete commands and options of softcount."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # one of click's own
    click.echo(found(ctx.find_root().command, {}, "softcount", "_SOFTCOUNT_COMPLETE").source())
