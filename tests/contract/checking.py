"""What the laws share: models of an example's rows, and what the oracle makes of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

import oracle
import softcount as sc
from contract.examples import Example
from softcount.families.density import Density
from softcount.fitted.fitted import Fitted
from softcount.table import Chunk


def fitted(example: Example, rows: Any, names: Any, how: str = "mean", prior: Any = 1.0) -> Fitted:
    model = sc.NaiveBayes(kinds=example.kinds, estimate=how, prior=prior, n_jobs=1)
    return model.fit(example.table(rows), names).fitted_


def dense(features: Any) -> np.ndarray:
    """Features as an array, also where a family keeps them sparse."""
    return features.toarray() if hasattr(features, "toarray") else features


def public_density(leaf: Any, params: Any) -> Density:
    """The density of parameters in the user's units."""
    setting = replace(leaf.setting, anchor=0.0 * leaf.setting.anchor, scale=np.ones_like(leaf.setting.scale))
    return leaf.family.density(params, setting)


def worked(example: Example, how: str = "mean") -> Fitted:
    """The example's own rows in two classes, by turns."""
    return fitted(example, example.values, ["uv"[i % 2] for i in range(len(example.values))], how)


def chunk_of(model: Fitted, example: Example, rows: Any) -> Chunk:
    return next(model.chunks(model.table(example.table(rows))))


def check_estimates(example: Example, model: Fitted, rows: Any, members: Any, prior: float, how: str) -> None:
    right = oracle_groups(example, model, rows, members, prior, how)
    for key in example.keys:
        for g, group in enumerate(right[key]):
            mine = {name: value[g] for name, value in model.params[key].items()}
            weights, imagined = [row[g] for row in members], 0.0 if how == "ml" else prior
            if example.family.name == "student":
                if model.converged:
                    check_settled(example, mine, group, rows, weights, imagined)
            elif example.family.name.startswith("mixed"):
                if model.converged:
                    check_parts_settled(example, model, mine, group, rows, weights, imagined)
            elif example.family.name == "joint":
                check_joint(mine, group, rows, weights, model.levels[key], prior, how)
            else:
                check_group(mine, group)


def check_joint(mine: Any, right: oracle.Group, rows: Any, weights: Any, levels: Any, prior: float, how: str) -> None:
    """Shares at least as good as the oracle's; the very same where imagined counts keep all of them above nothing."""
    extra = {"ml": 0.0, "map": prior - 1.0}.get(how, prior)
    heights = [oracle.joint_height(rows, weights, group["probability"], levels, extra) for group in (mine, right)]
    assert heights[0] >= heights[1] - 1e-9 * max(1.0, abs(heights[1]))
    if extra >= 0.5:
        np.testing.assert_allclose(mine["probability"], right["probability"], rtol=1e-9, atol=1e-10)


def check_settled(example: Example, mine: Any, step: oracle.Group, rows: Any, weights: Any, imagined: float) -> None:
    """Another step of EM, by the oracle, has next to nothing to gain."""
    if step["spread"] < 1e-20 * step["whole"] + 1e-280:
        return
    cells = example.leaf_cells(rows, example.columns[0])
    heights = [
        oracle.student_height(cells, weights, group | {"whole": step["whole"]}, imagined) for group in (mine, step)
    ]
    assert abs(heights[1] - heights[0]) <= 1e-6 * max(1.0, abs(heights[0]))


def oracle_groups(
    example: Example, model: Fitted, rows: Any, members: Any, prior: float, how: str, before: Any = None
) -> dict[Any, list[oracle.Group]]:
    """What the oracle makes of the rows: each leaf's groups."""
    family = example.family
    cells = {key: example.leaf_cells(rows, key) for key in example.keys}
    if family.name == "spiked":
        return spiked_groups(example, model, rows, members, prior, how)
    if family.name in ("normal", "lognormal"):
        found = oracle.normals(family, [cells[key] for key in example.keys], members, prior, how)
        return dict(zip(example.keys, found, strict=True))
    if family.name == "multinormal":
        key = example.keys[0]
        return {key: oracle.multinormals(family, cells[key], members, prior, how, before)}
    if family.name == "student":
        before = before or [{k: v[g] for k, v in model.params[example.keys[0]].items()} for g in range(2)]
        return {example.keys[0]: oracle.students(family, cells[example.keys[0]], members, prior, how, before)}
    if family.name.startswith("mixed"):
        key = example.keys[0]
        before = before or [{k: v[g] for k, v in model.params[key].items()} for g in range(2)]
        return {key: oracle.mixed_step(cells[key], members, prior, how, before)}
    levels = {leaf.key: known_of(model, leaf) for leaf in model.model.leaves}
    return {key: oracle.estimate(family, cells[key], members, prior, how, levels[key]) for key in example.keys}


def spiked_groups(
    example: Example, model: Fitted, rows: Any, members: Any, prior: float, how: str
) -> dict[Any, list[oracle.Group]]:
    """The shares of the spike, and what the rows beside it say of the other family."""
    family, key = example.family, example.keys[0]
    beside = [(None if cell == family.at else cell,) for (cell,) in rows]  # type: ignore[attr-defined]
    inner = Example(replace(example.plain, family=family.inner))  # type: ignore[attr-defined]
    found = oracle_groups(inner, model, beside, members, prior, how)[key]
    shares = oracle.spike_shares(family, example.leaf_cells(rows, key), members, prior, how)
    return {key: [group | {"spike": share} for group, share in zip(found, shares, strict=True)]}


def known_of(model: Fitted, leaf: Any) -> Any:
    """What the oracle is told of a leaf: its levels, or the cells that were decided, which have tests of their own."""
    if leaf.family.name == "grouped":
        return {"levels": leaf.setting.levels, "group": model.params[leaf.key]["group"][0]}
    if not leaf.family.facts.counts_points:
        return leaf.setting.levels
    return model.imagined.hypers[leaf.key] | {"widths": model.params[leaf.key].get("bandwidth")}


def check_group(mine: dict[str, Any], right: oracle.Group, tolerance: float = 1e-11) -> None:
    """One group's parameters; a variance that is nothing beside its column's is only held above zero."""
    if "covariance" in mine:
        return check_covariance(mine, right, tolerance)
    if "share" in mine:
        return check_parts(mine, right, tolerance)
    unit = max(right.get("whole", 0.0), 1e-300) ** 0.5
    for name, value in mine.items():
        if name == "mean":
            assert abs(value - right["mean"]) <= tolerance * unit + 4e-16 * abs(right["mean"])
        elif name in ("variance", "spread") and right[name] < 1e-20 * unit**2 + 1e-280:
            assert 0 < value <= 1e-20 * unit**2 + (1e-12 * abs(right["mean"])) ** 2 + 1e-250
        elif np.isinf(right[name]).any():
            assert value > 0  # without a bound in the oracle, held below one here
        else:
            least = tolerance if name in ("probability", "shape") else 0.0
            np.testing.assert_allclose(value, right[name], rtol=tolerance, atol=least)


def check_parts(mine: dict[str, Any], right: oracle.Group, tolerance: float) -> None:
    """The parts of one group, each column in units of its own spread."""
    unit = np.sqrt(np.maximum(right["whole"], 1e-300))
    np.testing.assert_allclose(mine["share"], right["share"], rtol=tolerance, atol=tolerance)
    middle = np.array(right["mean"])
    assert np.all(np.abs(mine["mean"] - middle) <= tolerance * unit + 4e-16 * np.abs(middle))
    np.testing.assert_allclose(mine["variance"] / unit**2, right["variance"] / unit**2, rtol=tolerance, atol=tolerance)


def check_parts_settled(
    example: Example, model: Fitted, mine: Any, step: oracle.Group, rows: Any, weights: Any, imagined: float
) -> None:
    """Another step of EM, by the oracle, has next to nothing to gain, unless a floor holds it."""
    if parts_floored(step, model, example.keys[0]):
        return
    cells, how = example.leaf_cells(rows, example.keys[0]), model.imagined.how
    heights = [
        oracle.mixed_height(cells, weights, group | {"whole": step["whole"]}, imagined, how) for group in (mine, step)
    ]
    assert abs(heights[1] - heights[0]) <= 1e-6 * max(1.0, abs(heights[0]))


def parts_floored(group: oracle.Group, model: Fitted, key: Any) -> bool:
    """Whether the least width that a column can tell holds some part."""
    floor, scale = model.imagined.hypers[key]["floor"], model.model.nodes[key].setting.scale
    return bool(np.any(np.array(group["variance"]) <= 2 * floor / scale / scale + 1e-280))


def check_covariance(mine: dict[str, Any], right: oracle.Group, tolerance: float) -> None:
    unit = np.sqrt(np.maximum(right["whole"], 1e-300))
    off = np.abs(mine["mean"] - right["mean"])
    assert np.all(off <= tolerance * unit + 4e-16 * np.abs(right["mean"]))
    wanted = np.array(right["covariance"]) / np.outer(unit, unit)
    if min(right["whole"]) == 0 or np.linalg.eigvalsh(wanted).min() < 1e-9:  # a flat block meets its floor
        own = np.sqrt(np.diagonal(mine["covariance"]))
        assert np.linalg.eigvalsh(mine["covariance"] / np.outer(own, own)).min() > 0
        return
    np.testing.assert_allclose(mine["covariance"] / np.outer(unit, unit), wanted, rtol=tolerance, atol=tolerance)


def condition(group: oracle.Group) -> float:
    """How many times a rounding error of a covariance can grow in its density."""
    if "covariance" not in group:
        return 1.0
    unit = np.sqrt(np.diagonal(group["covariance"]))
    return float(np.linalg.cond(group["covariance"] / np.outer(unit, unit)))
