"""How much is said beside the results: -q and -v, before a command or after it."""

from __future__ import annotations

from typing import Any

import click

KEY = "softcount.loudness"
QUIET, USUAL, LOUD = -1, 0, 1


def _kept(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    wanted = QUIET if param.name == "quiet" else LOUD
    if ctx.meta.setdefault(KEY, wanted) != wanted:
        raise click.UsageError("-q and -v cannot both be given")


def loudness_options() -> list[click.Option]:
    """-q and -v, for a command or for the group of them."""
    told: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True, "callback": _kept}
    return [
        click.Option(["-q", "--quiet"], help="No notes and no progress, errors alone.", **told),
        click.Option(["-v", "--verbose"], help="Also notes of what is normal, such as missing cells.", **told),
    ]


def loudness() -> int:
    """How much was asked to be said."""
    ctx = click.get_current_context(silent=True)
    return USUAL if ctx is None else int(ctx.meta.get(KEY, USUAL))
