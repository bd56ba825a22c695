"""What a network says of whole rows, piece by piece: why a level was chosen, and why a row is odd.

Pieces are taken one after another, in the order of the nodes: what each adds to what those before it said. They add up
exactly. In a star this is what naive Bayes says of each column, whatever the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.fitted.fitted_net import FittedNet, impossible
from softcount.fitted.net_evidence import level_number, with_factors
from softcount.models.net import NetRows
from softcount.models.number_parts import NumberPart
from softcount.networks.row_evidence import Evidence
from softcount.numerics.late_scipy import xlogy
from softcount.table import Table
from softcount.table.schema import Key
from softcount.table.text_columns import Map


def step_by_step(
    fitted: FittedNet, ready: NetRows, but: Key | None = None
) -> Iterator[tuple[Key, Evidence, np.ndarray]]:
    """What the first node shows, then the first two, and so on, parents before children; one node may be left out.

    With each comes the log-density of the numbers shown so far that depend on no level.
    """
    net = fitted.net
    number = {net.each[place].key: new for new, place in enumerate(net.places)}
    factors, shown = net.factors(fitted.compiled, ready), dict[int, np.ndarray]()
    codes, before = np.full_like(ready.codes, -1), set[Key]()
    for place in net.graph.order:
        key = net.each[place].key
        if key == but:
            continue
        before.add(key)
        if key in number:
            codes = codes.copy()
            codes[:, number[key]] = ready.codes[:, number[key]]
        else:
            leaf = fitted.number(key).leaf
            shown[leaf] = _shown_part(fitted, ready, leaf, before, factors[leaf])
        found, alone = Evidence(codes), np.zeros(ready.n_rows)
        for leaf, logs in shown.items():
            scope = net.parents_of_leaves[leaf]
            found, alone = (with_factors(found, scope, logs), alone) if scope else (found, alone + logs[:, 0])
        yield key, found, alone


def _shown_part(fitted: FittedNet, ready: NetRows, leaf: int, known: set[Key], whole: np.ndarray) -> np.ndarray:
    """The log-densities of a leaf of which only these numbers are known; `whole` are those of all of it."""
    own = fitted.net.stacks[leaf]
    hidden = [place for place, node in enumerate(own.nodes) if node.key not in known]
    if not hidden or not isinstance(own, NumberPart):
        return whole
    found = np.zeros_like(whole)
    own.score(own.hiding(ready.leaves[leaf], hidden), fitted.compiled[1][leaf], found)
    return found


class ExplainedLevels(NamedTuple):
    """What each node adds to the log-odds, those of the shares under `ROOT`; the levels compared, and how probable."""

    parts: dict[Hashable, np.ndarray]
    chosen: np.ndarray
    against: np.ndarray
    probability: np.ndarray


def explained_rows(fitted: FittedNet, table: Table, of: Key, against: Any = None, run: Map = map) -> ExplainedLevels:
    """What the shares of a node's levels and every other node add to the log-odds of its likeliest level.

    Levels are told by their numbers.
    """
    if fitted.is_number(of):
        raise DataError(f"{of!r} is a number, which has no levels to be explained.")
    node = fitted.net.places.index(fitted.net.graph.place(of))
    pieces = [_explained(fitted, ready, node, of, against) for ready, _ in fitted.rows(table, run)]
    parts = {key: np.concatenate([x.parts[key] for x in pieces]) for key in (pieces[0].parts if pieces else ())}
    whole = [np.concatenate([np.zeros(0, np.int64), *(piece[at] for piece in pieces)]) for at in (1, 2, 3)]
    return ExplainedLevels(parts, *whole)


def _explained(fitted: FittedNet, ready: NetRows, node: int, of: Key, against: Any) -> ExplainedLevels:
    before = Evidence(np.full_like(ready.codes, -1))
    shares: dict[Hashable, np.ndarray] = {ROOT: fitted.questions.posterior([node], before)}
    for key, evidence, _ in step_by_step(fitted, ready, but=of):
        shares[key] = fitted.questions.posterior([node], evidence)
    last = next(reversed(shares.values()))
    if (last.sum(axis=1) <= 0).any():
        raise impossible()
    chosen = last.argmax(axis=1)
    other = _runner_up(last, chosen)
    if against is not None:
        other = np.full(len(chosen), level_number(fitted.net.each[fitted.net.places[node]], against))
    rows = np.arange(len(chosen))
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = {key: np.log(own[rows, chosen]) - np.log(own[rows, other]) for key, own in shares.items()}
    found, total = {}, np.zeros(len(chosen))
    for key, own in odds.items():
        with np.errstate(invalid="ignore"):
            found[key] = np.nan_to_num(own - total, nan=0.0, posinf=np.inf, neginf=-np.inf)
        total = own
    return ExplainedLevels(found, chosen, other, last[rows, chosen])


def _runner_up(shares: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    if shares.shape[1] == 1:
        return chosen
    rest = shares.copy()
    rest[np.arange(len(rest)), chosen] = -1.0
    return np.asarray(rest.argmax(axis=1))


def surprises(fitted: FittedNet, table: Table) -> dict[Key, np.ndarray]:
    """What every node adds to how much less likely a row is than is usual, in nats; nothing where it is not seen."""
    usual = usual_surprise(fitted)
    pieces = [_surprises(fitted, ready, usual) for ready, _ in fitted.rows(table)]
    return {key: np.concatenate([piece[key] for piece in pieces]) for key in (pieces[0] if pieces else ())}


def _surprises(fitted: FittedNet, ready: NetRows, usual: dict[Key, float]) -> dict[Key, np.ndarray]:
    net = fitted.net
    number = {net.each[place].key: new for new, place in enumerate(net.places)}
    found, before = {}, np.zeros(ready.n_rows)
    for key, evidence, alone in step_by_step(fitted, ready):
        logs = fitted.questions.log_evidence(evidence) + alone
        with np.errstate(invalid="ignore"):
            own = np.nan_to_num(before - logs, nan=0.0, posinf=np.inf, neginf=-np.inf)
        before = logs
        if key in number:
            seen = ready.codes[:, number[key]] >= 0
        else:
            at = fitted.number(key)
            own = own - at.stack.base(ready.leaves[at.leaf])
            seen = at.stack.there(ready.leaves[at.leaf], at.want)
        found[key] = np.where(seen, own - usual[key], 0.0)
    return found


def usual_surprise(fitted: FittedNet) -> dict[Key, float]:
    """How surprising each node is on average given its parents: the entropy that is left in it."""
    net, found = fitted.net, {}
    nothing = Evidence(np.full((1, len(net.sizes)), -1))
    for new, place in enumerate(net.places):
        family = net.discrete.families[new]
        joint = fitted.questions.posterior(family, nothing)[0]
        parents = joint.sum(axis=-1, keepdims=True)
        share = joint / np.where(parents > 0, parents, 1.0)
        found[net.each[place].key] = float(-xlogy(joint, share).sum())
    for key, scope in net.levels_above.items():
        shares = fitted.questions.posterior(scope, nothing)[0].ravel() if scope else np.ones(1)
        node = net.nodes[key]
        found[key] = float(shares @ np.asarray(node.family.average_surprise(fitted.estimates[key], node.setting)))
    return found
