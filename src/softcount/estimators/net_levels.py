"""How many levels a hidden node has, where nobody says: the number under which the table is most probable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import lgamma
from typing import Any

from softcount.errors import DataError
from softcount.learn.evidence import complete_evidence
from softcount.learn.learned import Learned
from softcount.models.declared_net import DeclaredNet

AUTO = "auto"
MOST_LEVELS = 12
PATIENCE = 2
"""Numbers of levels tried beyond the best one."""


def chosen_levels(said: DeclaredNet, fit: Callable[..., Learned]) -> Learned:
    """The fit of what was said; of hidden nodes whose number of levels is to be found, the best one after another."""
    unknown = [key for key, levels in said.hidden.items() if isinstance(levels, str) and levels == AUTO]
    for key, levels in said.hidden.items():
        if isinstance(levels, str) and levels != AUTO:
            raise DataError(f"hidden: {key!r} has a number of levels, their names, or 'auto', not {levels!r}.")
    if not unknown:
        return fit(build=said.build)
    known: dict[Any, Any] = {key: 1 if key in unknown else levels for key, levels in said.hidden.items()}
    best: Learned | None = None
    for key in unknown:
        best, known[key], tried = _best_number(said, fit, known, key)
        listed = ", ".join(f"{levels}: {height:,.1f}" for levels, height in tried.items())
        best = replace(best, notes=[*best.notes, f"{key!r} has {known[key]} levels by evidence ({listed})."])
    assert best is not None
    return best


def _best_number(
    said: DeclaredNet, fit: Callable[..., Learned], known: dict[Any, Any], key: Any
) -> tuple[Learned, int, dict[int, float]]:
    tried: dict[int, float] = {}
    found: dict[int, Learned] = {}
    for levels in range(1, MOST_LEVELS + 1):
        found[levels] = fit(build=replace(said, hidden={**known, key: levels}).build)
        tried[levels] = network_evidence(found[levels]) + lgamma(levels + 1)
        best = max(tried, key=tried.__getitem__)
        if levels - best >= PATIENCE or found[levels].interrupted:
            break
    return found[best], best, tried


def network_evidence(learned: Learned) -> float:
    """Log marginal likelihood of the rows: exact where they are complete, else by Cheeseman and Stutz."""
    nodes = learned.model.nodes
    counts = nodes.stacked(learned.counts)
    whole = complete_evidence(learned.model, learned.imagined, learned.estimates, counts)
    return whole + (learned.log_likelihood or 0.0) - nodes.completed(counts, learned.estimates)
