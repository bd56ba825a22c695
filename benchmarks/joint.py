"""The joint model of a table beside Softcount's other models and other people's, question by question.

`joint/density`, `joint/fill`, `joint/each`, `joint/synthetic`, `joint/anomalies` and `joint/speed` are its parts, and
`joint/density,abalone` is one table of a part. All run in one process on one thread; times are the processor's. Large
tables are drawn from, with fixed seeds: the limits are below.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import joint_peers as peers
from benchmarks.joint_tables import Table, read, tables
from benchmarks.timing import Bound, Ratio, Result

DENSITY = (
    "adult", "telco", "titanic", "credit", "mushroom", "car", "abalone", "wine-quality", "diamonds", "wage", "cps",
    "houses", "pima", "covertype", "gss", "soybean", "breast-cancer", "air-quality", "xclara", "abalone-numbers",
    "wine-quality-numbers", "diamonds-numbers", "covertype-numbers", "pima-numbers", "breast-cancer-numbers",
)  # fmt: skip
DENSITY_ROWS, DENSITY_BEHIND = 3_000, 0.02
FILL = (
    "adult", "telco", "titanic", "credit", "heart", "abalone", "wine-quality", "pima", "cps", "houses", "mpg", "wage",
    "breast-cancer", "vote", "car", "mushroom",
)  # fmt: skip
FILL_ROWS, REMOVED, FASTER_FILL = 600, 0.1, 10.0
EACH = ("adult", "titanic", "telco", "credit", "mushroom", "car", "abalone", "cps")
EACH_ROWS, EACH_BEHIND, FASTER_EACH = 6_000, 0.01, 20.0
SYNTHETIC = ("adult", "telco", "titanic", "credit", "breast-cancer", "pima")
SYNTHETIC_ROWS, BINS, AUC_BEHIND = 8_000, 10, 0.01
ANOMALIES = (
    "adult", "telco", "titanic", "credit", "mushroom", "vote", "car", "pima", "abalone", "wine-quality", "cps",
    "covertype", "soybean", "banknote", "insulin", "iris", "wine", "breast-cancer", "digits",
)  # fmt: skip
ANOMALY_ROWS, ANOMALY_SHARE, FINDABLE = 1_000, 0.05, 0.6
"""A class that no peer ranks with an area of so much is not one that stands out: its table is left out of the means."""
SMALL_ROWS = 2_000
"""Rows below which figures are means over several splits."""
SPLITS = 3
FITS = {"titanic": 1.0, "breast-cancer": 1.0, "credit": 1.0, "adult": 8.0}
"""Seconds that a fit may take."""
QUERY_SECONDS, QUERIES = 0.002, 50
TELCO_MEAN, TELCO_OFF = 49.1, 2.0

Fit = Callable[[Any], Any]
"""A frame to a fitted model."""


# -- models of Softcount


def joint(frame: Any) -> Any:
    import softcount as sc

    return sc.JointModel(n_jobs=1, random_state=0).fit(frame)


def mixture(frame: Any) -> Any:
    import softcount as sc

    return sc.Mixture(n_jobs=1, random_state=0).fit(frame)


def tree(frame: Any) -> Any:
    import softcount as sc

    return sc.BayesNet("chow-liu", n_jobs=1, random_state=0).fit(frame)


def normals(frame: Any) -> Any:
    import softcount as sc

    return sc.GaussianMixture("auto", n_init=1, n_jobs=1, random_state=0).fit(frame)


OURS: dict[str, Fit] = {"ours": joint, "Mixture": mixture, "tree": tree}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and its seconds of the processor."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


def spell(figures: Mapping[str, Any], digits: int = 3) -> str:
    return "; ".join(f"{name} {figure:.{digits}f}" for name, figure in figures.items())


def others(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figure for name, figure in figures.items() if name != "ours"}


def seeds(table: Table) -> range:
    return range(SPLITS if len(table) <= SMALL_ROWS else 1)


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every contender over tables or splits, of those that all have."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if all(name in row for row in rows)}


# -- held-out density


def log_density(model: Any, train: Table, test: Table) -> np.ndarray:
    """Log-densities of rows, numbers in their own units.

    A probability of a number, as of a spike or a column of counts, is that of an interval as wide as the rounding. A
    column that a model leaves out because another one determines it has probability 1.
    """
    logs = np.asarray(model.score_samples(test.frame), dtype=np.float64)
    for name in train.numbers:
        logs -= test.frame[name].isin(masses(model, train, test, name)).to_numpy() * np.log(train.steps[name])
    return logs


def masses(model: Any, train: Table, test: Table, name: str) -> Sequence[float]:
    """The values of a column of numbers that the model scores by their probability, not by a density."""
    trees = getattr(model.fitted_, "trees", None)
    if trees is not None:  # a joint model has spikes; probabilities of few values are divided by their distance already
        return [x for own in trees.coding.columns if own.key == name for x in getattr(own, "spikes", ())]
    kind = str(model.kinds_[name])
    if kind in ("spiked", "mixed"):
        return [train.frame[name].mode().iloc[0]]
    return test.frame[name].dropna().tolist() if kind in ("categorical", "poisson", "geometric") else []


def density(wanted: Sequence[str]) -> Iterator[Result]:
    for table in tables(DENSITY, wanted):
        found: list[dict[str, float]] = []
        seconds = 0.0
        for seed in seeds(table):
            train, test = (part.at_most(DENSITY_ROWS) for part in table.without_functions().split(0.8, seed))
            scored, spent = densities(train, test)
            found.append(scored)
            seconds += spent / len(seeds(table))
        figures = means(found)
        behind = max(others(figures).values()) - figures["ours"]
        beside = f"{spell(figures)}; CPU of ours {seconds:.1f} s"
        yield Bound(f"density {table.name}: behind the best", behind, "nats", DENSITY_BEHIND, beside)


def densities(train: Table, test: Table) -> tuple[dict[str, float], float]:
    """Mean log-density per row of everybody, and the seconds of a fit of ours."""
    is_plain = not train.categories and not train.frame.isna().any(axis=None)
    makes = OURS | ({"GaussianMixture": normals} if is_plain else {})  # with missing cells it takes minutes
    found, spent = {}, 0.0
    for name, make in makes.items():
        model, seconds = timed(partial(make, train.frame))
        spent = seconds if name == "ours" else spent
        found[name] = float(log_density(model, train, test).mean())
    if is_plain:
        found["scikit-learn mixture"] = float(peers.gaussian_mixture(train, test).mean())
        found["scikit-learn KDE"] = float(peers.kernel_density(train, test).mean())
    return found, spent


# -- filling missing cells


def removed(table: Table) -> tuple[Table, Any]:
    """The table without a tenth of its cells, and which ones."""
    gone = np.random.default_rng(0).random(table.frame.shape) < REMOVED
    gone &= table.frame.notna().to_numpy()
    return Table(table.name, table.frame.mask(gone), table.target), gone


def fill_with_model(make: Fit, table: Table) -> Any:
    return make(table.frame).impute(table.frame)


def errors_of(table: Table, filled: Any, gone: np.ndarray) -> tuple[float | None, float | None]:
    """RMSE of the removed numbers in deviations of their columns, and the share of removed categories that is right."""
    squares, right = [], []
    for place, name in enumerate(table.frame):
        real, given = table.frame[name][gone[:, place]], filled[name][gone[:, place]]
        if name in table.numbers:
            given = given.astype(float).fillna(table.frame[name].mean())
            squares.append(((given - real).to_numpy(dtype=float) / table.frame[name].std()) ** 2)
        else:
            right.append(given.astype(object).to_numpy() == real.to_numpy(dtype=object))
    rmse = float(np.sqrt(np.concatenate(squares).mean())) if squares else None
    return rmse, float(np.concatenate(right).mean()) if right else None


def fill(wanted: Sequence[str]) -> Iterator[Result]:
    contenders: dict[str, Callable[[Table], Any]] = {
        **{name: partial(fill_with_model, make) for name, make in OURS.items()},
        "KNN": peers.fill_with(peers.neighbours),
        "iterative ridge": peers.fill_with(peers.iterative_ridge),
        "missForest": peers.miss_forest,
        "mean and mode": peers.mean_and_mode,
    }
    rmses, rights, spent = [], [], dict.fromkeys(contenders, 0.0)
    for table in tables(FILL, wanted, FILL_ROWS):
        holed, gone = removed(table)
        rmse, right = {}, {}
        for name, contender in contenders.items():
            filled, seconds = timed(partial(contender, holed))
            spent[name] += seconds
            rmse[name], right[name] = errors_of(table, filled, gone)
        if table.numbers:
            rmses.append(rmse)
            yield Bound(f"fill {table.name}: RMSE", rmse["ours"], "sd", None, spell(others(rmse)))
        if table.categories:
            rights.append(right)
            wrong = {name: 1.0 - share for name, share in right.items()}
            yield Bound(f"fill {table.name}: categories wrong", wrong["ours"], "", None, spell(others(wrong)))
    if rmses:
        figures, count = means(rmses), f"{len(rmses)} tables"
        for name in ("KNN", "iterative ridge"):
            behind = figures["ours"] - figures[name]
            yield Bound(f"fill, RMSE of {count}: behind {name}", behind, "sd", 0.0, spell(figures))
    if rights:
        figures = means(rights)
        behind = figures["missForest"] - figures["ours"]
        work = f"fill, categories right of {len(rights)} tables: behind missForest"
        yield Bound(work, behind, "", 0.0, spell(figures))
    yield Ratio("fill, all tables", 1, spent["ours"], spent["missForest"], "missForest", FASTER_FILL, others(spent))


# -- every column from all others


def answers(make: Fit, train: Table, test: Table) -> dict[str, Any]:
    """Predictions of every column of the held-out rows, by a model that is asked to fill it."""
    model = make(train.frame)
    return {name: model.impute(test.frame.assign(**{name: blank(test, name)}))[name] for name in test.frame}


def blank(table: Table, name: str) -> Any:
    return np.full(len(table), np.nan) if name in table.numbers else np.full(len(table), None, dtype=object)


def boosted(train: Table, test: Table) -> dict[str, Any]:
    return {name: peers.boost(train, test, name) for name in test.frame}


def modes(train: Table, test: Table) -> dict[str, Any]:
    filled = peers.mean_and_mode(train)
    return {
        name: np.full(len(test), filled[name].mean() if name in train.numbers else filled[name].mode()[0], dtype=object)
        for name in test.frame
    }


def each(wanted: Sequence[str]) -> Iterator[Result]:
    contenders: dict[str, Callable[[Table, Table], Any]] = {
        **{name: partial(answers, make) for name, make in OURS.items()},
        "boosting": boosted,
        "mean and mode": modes,
    }
    for table in tables(EACH, wanted, EACH_ROWS):
        train, test = table.split(0.75, 0)
        right: dict[str, dict[str, float]] = {}
        explained: dict[str, dict[str, float]] = {}
        spent = {}
        for name, contender in contenders.items():
            found, spent[name] = timed(partial(contender, train, test))
            right[name], explained[name] = marks(train, test, found)
        shares = {name: float(np.mean(list(own.values()))) for name, own in right.items()}
        behind = shares["boosting"] - shares["ours"]
        most = EACH_BEHIND if table.name == "adult" else None
        yield Bound(f"each {table.name}: categories right, behind boosting", behind, "", most, spell(shares))
        worst = sorted(right["ours"], key=lambda key: right["ours"][key] - right["boosting"][key])[:3]
        detail = ", ".join(f"{key} {right['ours'][key]:.3f} / {right['boosting'][key]:.3f}" for key in worst)
        print(f"each {table.name}: furthest behind boosting: {detail}", flush=True)
        if table.numbers:
            squares = {name: float(np.mean(list(own.values()))) for name, own in explained.items()}
            behind = squares["boosting"] - squares["ours"]
            yield Bound(f"each {table.name}: R2 of numbers, behind boosting", behind, "", None, spell(squares))
        target = FASTER_EACH if table.name == "adult" else None
        yield Ratio(
            f"each {table.name}: fit and answers", 1, spent["ours"], spent["boosting"], "boosting", target,
            {name: spent[name] for name in ("Mixture", "tree")},
        )  # fmt: skip


def marks(train: Table, test: Table, found: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """The share of right categories and the R2 of numbers, by column, over the observed cells."""
    right, explained = {}, {}
    for name in test.frame:
        known = test.frame[name].notna().to_numpy()
        real, given = test.frame[name].to_numpy()[known], np.asarray(found[name])[known]
        if name in test.numbers:
            given = given.astype(float)
            given = np.where(np.isnan(given), train.frame[name].mean(), given)
            squares = ((real - train.frame[name].mean()) ** 2).sum()
            explained[name] = 1.0 - float(((real - given) ** 2).sum() / squares)
        else:
            right[name] = float(np.mean(real.astype(object) == given.astype(object)))
    return right, explained


# -- synthetic rows


def bins(table: Table) -> Callable[[Any], Any]:
    """Frames as codes: categories, and numbers between the deciles of the table; -1 is a missing cell."""
    import pandas as pd

    levels = {name: sorted(table.frame[name].dropna().unique()) for name in table.categories}
    shares = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    edges = {name: np.unique(np.quantile(table.frame[name].dropna(), shares)) for name in table.numbers}

    def code(frame: Any) -> Any:
        found = {}
        for name in table.frame:
            if name not in frame:
                found[name] = np.full(len(frame), -2)
            elif name in edges:
                cells = frame[name].to_numpy(dtype=float)
                found[name] = np.where(np.isnan(cells), -1, np.searchsorted(edges[name], cells, side="right"))
            else:
                found[name] = pd.Categorical(frame[name].astype(object), categories=levels[name]).codes
        return pd.DataFrame(found)

    return code


def distances(real: Any, drawn: Any) -> tuple[float, float]:
    """Mean total variation of the columns, and of the pairs of columns, between observed codes."""
    names = list(real)
    columns = [variation([real[name]], [drawn[name]]) for name in names]
    pairs = [
        variation([real[a], real[b]], [drawn[a], drawn[b]]) for place, a in enumerate(names) for b in names[:place]
    ]
    return float(np.mean(columns)), float(np.mean(pairs))


def variation(real: list[Any], drawn: list[Any]) -> float:
    """Half the sum of the differences of the shares of cells, of rows where all are observed."""
    shares = []
    sizes = [max(a.max(), b.max()) + 1 for a, b in zip(real, drawn, strict=True)]
    for side in (real, drawn):
        codes = np.stack([column.to_numpy() for column in side])
        codes = codes[:, (codes >= 0).all(axis=0)]
        place = np.ravel_multi_index(tuple(codes), tuple(sizes)) if codes.size else np.zeros(0, dtype=int)
        counts = np.bincount(place, minlength=int(np.prod(sizes))).astype(float)
        shares.append(counts / max(1.0, counts.sum()))
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum()) if shares[1].any() else 1.0


def auc(train: Any, test: Table, code: Mapping[str, list[str]]) -> float:
    """ROC AUC on real rows of boosting that learned from other rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    assert test.target is not None
    frame = train.reindex(columns=list(test.frame))
    frame = frame.assign(**{name: frame[name].astype(float) for name in test.numbers})
    known = frame[test.target].notna().to_numpy()
    learned = peers.as_categories(Table(test.name, frame[known], test.target), code).drop(columns=test.target)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    classes = code[test.target]
    model.fit(learned, frame[test.target][known].astype(object) == classes[-1])
    proba = model.predict_proba(peers.as_categories(test, code).drop(columns=test.target))[:, -1]
    return float(roc_auc_score(test.frame[test.target] == classes[-1], proba))


def synthetic(wanted: Sequence[str]) -> Iterator[Result]:
    every: dict[str, list[dict[str, float]]] = {"columns": [], "pairs": [], "auc": []}
    for table in tables(SYNTHETIC, wanted, SYNTHETIC_ROWS):
        found = [one_synthetic(table, seed) for seed in seeds(table)]
        figures = {what: means([own[what] for own in found]) for what in every}
        for what, own in figures.items():
            every[what].append(own)
            yield Bound(f"synthetic {table.name}: {what}", own["ours"], "", None, spell(others(own)))
    if every["auc"]:
        totals, count = {what: means(own) for what, own in every.items()}, len(every["auc"])
        for what in ("columns", "pairs"):
            own = totals[what]
            behind = own["ours"] - own["copula"]
            work = f"synthetic, distance of {what}, {count} tables: behind the copula"
            yield Bound(work, behind, "", 0.0, spell(own))
        own = totals["auc"]
        behind = own["real rows"] - own["ours"]
        yield Bound(f"synthetic, AUC of {count} tables: behind real rows", behind, "", AUC_BEHIND, spell(own))


def one_synthetic(table: Table, seed: int) -> dict[str, dict[str, float]]:
    """Distances to held-out rows, and AUC on them, of rows drawn by every model and of the rows it learned from."""
    train, test = table.split(0.5, seed)
    code = bins(table)
    levels = {name: sorted(table.frame[name].dropna().unique()) for name in table.categories}
    frames = {name: make(train.frame).sample(len(train), random_state=seed) for name, make in OURS.items()}
    frames["copula"] = peers.GaussianCopula().fit(train).sample(len(train), seed)
    frames["real rows"] = train.frame
    found: dict[str, dict[str, float]] = {"columns": {}, "pairs": {}, "auc": {}}
    for name, frame in frames.items():
        found["columns"][name], found["pairs"][name] = distances(code(test.frame), code(frame))
        found["auc"][name] = auc(frame, test, levels)
    return found


# -- anomalies


def mixed_rows(table: Table, own: str) -> tuple[Table, np.ndarray]:
    """Rows of the other classes, and one in twenty of this class, without the column of classes."""
    assert table.target is not None
    rng = np.random.default_rng(0)
    is_own = (table.frame[table.target] == own).to_numpy()
    usual, rare = np.flatnonzero(~is_own), np.flatnonzero(is_own)
    usual = rng.permutation(usual)[:ANOMALY_ROWS]
    rare = rng.permutation(rare)[: max(3, round(ANOMALY_SHARE / (1.0 - ANOMALY_SHARE) * len(usual)))]
    places = np.sort(np.concatenate([usual, rare]))
    frame = table.rows(places).frame.drop(columns=table.target)
    return Table(f"{table.name} {own}", frame.loc[:, frame.nunique() > 1]), is_own[places]


def anomalies(wanted: Sequence[str]) -> Iterator[Result]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    areas, precisions = [], []
    for table in tables(ANOMALIES, wanted):
        sizes = table.frame[table.target].value_counts()
        for own in dict.fromkeys((sizes.index[-1], sizes.index[0])):
            rows, is_rare = mixed_rows(table, own)
            scores = {name: partial(surprise, make, rows) for name, make in OURS.items()}
            cells = peers.complete(rows)
            scores |= {name: partial(detect, cells) for name, detect in peers.detectors()}
            found = {name: score() for name, score in scores.items()}
            area = {name: float(roc_auc_score(is_rare, own)) for name, own in found.items()}
            precision = {name: float(average_precision_score(is_rare, own)) for name, own in found.items()}
            if max(area[name] for name, _ in peers.detectors()) >= FINDABLE:
                areas.append(area)
                precisions.append(precision)
            yield Bound(f"anomalies {rows.name}: AUC", area["ours"], "", None, spell(others(area)))
            yield Bound(f"anomalies {rows.name}: AP", precision["ours"], "", None, spell(others(precision)))
    for what, every in (("ROC AUC", areas), ("average precision", precisions)):
        figures = means(every)
        for name in ("isolation forest", "KNN"):
            behind = figures[name] - figures["ours"]
            work = f"anomalies, mean {what} of {len(every)} tables: behind {name}"
            yield Bound(work, behind, "", 0.0, spell(figures))


def surprise(make: Fit, table: Table) -> np.ndarray:
    """Scores of the rows that the model was fitted to; a row that is impossible is the most anomalous."""
    found = make(table.frame).anomaly_score(table.frame)
    return np.nan_to_num(np.asarray(found, dtype=float), posinf=1e300)


# -- seconds


def speed(wanted: Sequence[str]) -> Iterator[Result]:
    for table in tables(tuple(FITS), wanted):
        rounds = 1 if len(table) > SMALL_ROWS else SPLITS
        fits = [timed(partial(joint, table.frame)) for _ in range(rounds)]
        seconds = min(took for _, took in fits)
        yield Bound(f"speed {table.name}: a fit of {len(table):,} rows", seconds, "s", FITS[table.name])
        if table.target is not None:
            row = table.frame.drop(columns=table.target).iloc[0].dropna().to_dict()
            yield query_time(fits[0][0], table, row)
    telco = read("telco")
    if telco is not None and (not wanted or "telco" in wanted):
        found = joint(telco.frame).query("MonthlyCharges", {"Churn": "Yes", "InternetService": "DSL"})
        own = telco.frame[(telco.frame["Churn"] == "Yes") & (telco.frame["InternetService"] == "DSL")]
        beside = f"the model {found.mean:.1f}, the rows {own['MonthlyCharges'].mean():.1f}"
        yield Bound("telco question: off the mean of the rows", abs(found.mean - TELCO_MEAN), "", TELCO_OFF, beside)


def query_time(model: Any, table: Table, row: dict[str, Any]) -> Bound:
    """Median seconds of asking for the class given all other cells of a row."""
    took = [timed(lambda: model.query(table.target, row))[1] for _ in range(QUERIES + 1)][1:]
    return Bound(f"speed {table.name}: a query", 1e3 * float(np.median(took)), "ms", 1e3 * QUERY_SECONDS)


PARTS: dict[str, Callable[[Sequence[str]], Iterator[Result]]] = {
    "density": density, "fill": fill, "each": each, "synthetic": synthetic, "anomalies": anomalies, "speed": speed,
}  # fmt: skip


def run(rounds: int, words: Sequence[str] = ()) -> Iterator[Result]:
    """The parts that are named, or all; words that are not parts are tables."""
    wanted = [word for word in words if word not in PARTS]
    import_module("sklearn.ensemble")  # only threads of libraries that are loaded are limited
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up()
        for name, part in PARTS.items():
            if name in words or len(wanted) == len(words):
                yield from part(wanted)


def warm_up() -> None:
    """Fit and ask every model once: loops are compiled at their first use."""
    table = read("iris")
    assert table is not None
    for make in OURS.values():
        model = make(table.frame)
        model.score_samples(table.frame)
        model.impute(removed(table)[0].frame)
        model.sample(5, random_state=0)
