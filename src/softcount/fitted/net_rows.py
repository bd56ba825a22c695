"""What a network says of whole rows, piece by piece: why a level was chosen, and why a row is odd.

Pieces are taken one after another, in the order of the nodes: what each adds to what those before it said. They add up
exactly. In a star this is what naive Bayes says of each column, whatever the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.fitted.fitted_net import FittedNet, impossible
from softcount.fitted.net_evidence import level_number, with_factors
from softcount.models.net import NetRows
from softcount.networks.row_evidence import Evidence
from softcount.table import Table
from softcount.table.schema import Key


def step_by_step(fitted: FittedNet, ready: NetRows, but: Key | None = None) -> Iterator[tuple[Key, Evidence]]:
    """What the first node shows, then the first two, and so on, parents before children; one node may be left out."""
    net = fitted.net
    number = {net.each[place].key: new for new, place in enumerate(net.places)}
    leaves = {own.node.key: place for place, own in enumerate(net.stacks)}
    factors = net.factors(fitted.compiled, ready)
    found = Evidence(np.full_like(ready.codes, -1))
    for place in net.graph.order:
        key = net.each[place].key
        if key == but:
            continue
        if key in number:
            codes = found.codes.copy()
            codes[:, number[key]] = ready.codes[:, number[key]]
            found = replace(found, codes=codes)
        elif net.parents_of_leaves[leaves[key]]:
            found = with_factors(found, net.parents_of_leaves[leaves[key]], factors[leaves[key]])
        yield key, found


def explained_rows(fitted: FittedNet, table: Table, of: Key, against: Any = None) -> dict[Hashable, np.ndarray]:
    """What the shares of a node's levels and every other node add to the log-odds of its likeliest level.

    What the shares add is under `ROOT`.
    """
    if fitted.is_number(of):
        raise DataError(f"{of!r} is a number, which has no levels to be explained.")
    node = fitted.net.places.index(fitted.net.graph.place(of))
    pieces = [_explained(fitted, ready, node, of, against) for ready, _ in fitted.rows(table)]
    return {key: np.concatenate([piece[key] for piece in pieces]) for key in (pieces[0] if pieces else ())}


def _explained(fitted: FittedNet, ready: NetRows, node: int, of: Key, against: Any) -> dict[Hashable, np.ndarray]:
    before = Evidence(np.full_like(ready.codes, -1))
    shares: dict[Hashable, np.ndarray] = {ROOT: fitted.questions.posterior([node], before)}
    for key, evidence in step_by_step(fitted, ready, but=of):
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
    return found


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
    leaves = {own.node.key: place for place, own in enumerate(net.stacks)}
    factors = net.factors(fitted.compiled, ready)
    found, before = {}, np.zeros(ready.n_rows)
    for key, evidence in step_by_step(fitted, ready):
        logs = fitted.questions.log_evidence(evidence)
        with np.errstate(invalid="ignore"):
            own = np.nan_to_num(before - logs, nan=0.0, posinf=np.inf, neginf=-np.inf)
        before = logs
        if key in number:
            seen = ready.codes[:, number[key]] >= 0
        else:
            place = leaves[key]
            own = own if net.parents_of_leaves[place] else -factors[place][:, 0]
            own = own - net.stacks[place].base(ready.leaves[place])
            seen = net.stacks[place].there(ready.leaves[place])
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
    for own, scope in zip(net.stacks, net.parents_of_leaves, strict=True):
        shares = fitted.questions.posterior(scope, nothing)[0].ravel() if scope else np.ones(1)
        mean = own.node.family.average_surprise(fitted.estimates[own.node.key], own.node.setting)
        found[own.node.key] = float(shares @ np.asarray(mean))
    return found
