"""Estimators in model files: the fitted model, centres, chain, density or average, with the estimator's settings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

import softcount
from softcount.chains.counts import Alphabet, ContextCounts, ContextLevel
from softcount.errors import ModelFileError
from softcount.estimators.bag_of_words import load_bag
from softcount.files.archive import naming, read, write
from softcount.files.centres import centres_of, save_centres
from softcount.files.codec import (
    Arrays,
    Document,
    decode,
    encode,
    finite_array,
    key_of,
    nested_document,
    nested_from,
    plain,
)
from softcount.files.model_file import family_document, family_from, load_model, prior_document, prior_from, save_model
from softcount.fitted.fitted import Fitted
from softcount.table.schema import MOST_LEVELS, NARROW_LEVELS, Field, Key, Kind, Schema

KNOWN = ("NaiveBayes", "Classifier", "AveragedStars", "Mixture", "GaussianMixture", "BayesNet", "HiddenMarkov")
CLUSTERING = ("KMeans", "SphericalKMeans")
DENSITIES = ("KernelDensity", "Histogram")
"""The estimators that a file may name: public ones, never a class to import."""
LEFT_OUT = (
    "n_jobs",
    "init",
    "weights_init",
    "means_init",
    "precisions_init",
    "random_state",
    "verbose",
    "spill",
    "checkpoint",
    "engine",
)
"""Settings of the machine or the run, not of the model."""


def save_estimator(estimator: Any, path: Any) -> None:
    """Write an estimator's fitted model, or its centres, and its settings."""
    settings = {
        name: DOCUMENTS.get(name, nested_document)(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in LEFT_OUT
    }
    names = getattr(estimator, "feature_names_in_", None)
    columns = {"n": int(estimator.n_features_in_), "names": None if names is None else [str(x) for x in names]}
    about = {"name": type(estimator).__name__, "settings": settings, "columns": columns}
    if type(estimator).__name__ in CLUSTERING:
        save_centres(estimator.found_, path, about)
    else:
        save_model(estimator.fitted_, path, about)


def _keep_columns(estimator: Any, number: int, names: Sequence[str] | None) -> None:
    estimator.n_features_in_ = number
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def load_kmeans(path: Any, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The k-means estimator that was saved."""
    with naming(path, "its centres make no sense"):
        found, about = centres_of(document, arrays), document["estimator"]
        if about["name"] not in CLUSTERING:
            raise ModelFileError(f"the estimator {about['name']!r} is not known to this version.")
        estimator = getattr(softcount, about["name"])(**about["settings"])
        estimator._check_settings()
        names, number = about["columns"]["names"], about["columns"]["n"]
        named = names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
        if not named or number != found.centres.shape[1] or (names is not None and len(set(names)) != number):
            raise ModelFileError("its estimator was fitted on other columns than its centres have.")
        if estimator.n_clusters != len(found.centres) or estimator._unit != found.frame.unit:
            raise ModelFileError("its settings are not those of its centres.")
        estimator._keep(found)
        _keep_columns(estimator, number, names)
        return estimator


def kinds_document(kinds: Any) -> Any:
    """The user's kinds as JSON: family names with their own settings."""
    if kinds is None or isinstance(kinds, str):
        return kinds
    if not isinstance(kinds, Mapping):
        return family_document(kinds)
    return {"columns": [[plain(key), kinds_document(said)] for key, said in kinds.items()]}


def setting_prior(prior: Any) -> Any:
    """A prior as JSON; that of an older network is in the counts it imagines, and 1 row in the settings."""
    from softcount.networks.network import Network

    return 1.0 if isinstance(prior, Network) or hasattr(prior, "edges_") else prior_document(prior)


def edges_document(edges: Any) -> Any:
    """Edges as JSON: a word, or pairs."""
    if edges is None or isinstance(edges, str):
        return edges
    from softcount.fit.network_structure import graph_of

    return nested_document([tuple(edge) for edge in graph_of(edges).edges])


def edges_from(value: Any) -> Any:
    """Edges back from JSON."""
    return [tuple(key_of(name) for name in edge) for edge in value] if isinstance(value, list) else value


def kinds_from(value: Any) -> Any:
    """The user's kinds back from JSON."""
    if value is None or isinstance(value, str):
        return value
    if "columns" in value:
        return {key_of(key): kinds_from(said) for key, said in value["columns"]}
    return family_from(value, "every column")


DOCUMENTS: dict[str, Callable[[Any], Any]] = {
    "prior": setting_prior, "kinds": kinds_document, "edges": edges_document, "hidden": nested_document,
}  # fmt: skip
READERS: dict[str, Callable[[Any], Any]] = {
    "prior": prior_from, "kinds": kinds_from, "fixed": nested_from, "edges": edges_from, "hidden": nested_from,
    "cut": nested_from, "cuts": nested_from, "required": edges_from, "forbidden": edges_from, "first": nested_from,
    "transitions": nested_from, "tied": nested_from,
}  # fmt: skip
"""How settings that JSON cannot hold as they are become documents, and come back."""


def load_estimator(path: Any) -> Any:
    """The estimator that was saved; a model saved without one gets the estimator that suits it."""
    content = read(path)
    for part, load in OTHER_FILES.items():
        if part in content[0]:
            return load(path, *content)
    fitted, about = load_model(path, *content)
    with naming(path, "its settings make no sense"):
        name = about.get("name", _usual(fitted) if isinstance(fitted, Fitted) else OTHERS[fitted.model.name])
        if name not in KNOWN:
            raise ModelFileError(f"the estimator {name!r} is not known to this version.")
        estimator = _built(name, dict(about["settings"] if "settings" in about else _settings_of(fitted)))
        wanted = name if name in OTHERS.values() else None
        if wanted != OTHERS.get(fitted.model.name) or (name == "AveragedStars") != _has_stars(fitted):
            raise ModelFileError(f"the estimator {name!r} is not one for this model.")
        estimator._keep(fitted if isinstance(fitted, Fitted) else ANSWERING[fitted.model.name](fitted))
        _restore_columns(estimator, about.get("columns"), fitted)
        return estimator


def _built(name: str, settings: dict[str, Any]) -> Any:
    """The estimator of this name with the settings that a file has."""
    settings |= {name: READERS[name](value) for name, value in settings.items() if name in READERS}
    estimator = getattr(softcount, name)(**settings)
    estimator._check_settings()
    return estimator


def _as_network(learned: Any) -> Any:
    """What a network has learned, ready to answer; loaded only where there is one."""
    from softcount.fitted.network import FittedNet

    return FittedNet.of(learned)


def _as_states(learned: Any) -> Any:
    from softcount.fitted.states import FittedStates

    return FittedStates.of(learned)


OTHERS = {"network": "BayesNet", "hidden-chain": "HiddenMarkov"}
"""The estimators of models that are no star, by the name of the model."""
ANSWERING: dict[str, Callable[[Any], Any]] = {"network": _as_network, "hidden-chain": _as_states}


def _usual(fitted: Fitted) -> str:
    """The estimator of a model that was saved without one."""
    if fitted.classes is None:
        return "Mixture"
    return "AveragedStars" if _has_stars(fitted) else "NaiveBayes" if fitted.ensemble is None else "Classifier"


def _has_stars(fitted: Any) -> bool:
    return isinstance(fitted, Fitted) and fitted.aode is not None


def _settings_of(fitted: Any) -> dict[str, Any]:
    """The settings of a model that was saved without an estimator."""
    shared = {"prior": prior_document(fitted.prior), "estimate": fitted.estimate}
    if fitted.model.name == "hidden-chain":
        return shared | {"n_states": fitted.model.states}
    if not isinstance(fitted, Fitted):
        return shared | _net_settings(_as_network(fitted))
    if fitted.classes is None:
        return shared | {"n_components": fitted.n_groups}
    if fitted.aode is not None:
        return {"prior": prior_document(fitted.aode.setting.concentration)}
    return shared if fitted.ensemble is None else {"prior": shared["prior"]}


def _net_settings(fitted: Any) -> dict[str, Any]:
    """The structure of a network as its estimator would be told of it."""
    net, levels = fitted.net, fitted.levels
    hidden = {net.discrete.names[place]: levels[net.discrete.names[place]] for place in net.hidden}
    return {
        "edges": edges_document(net.graph),
        "hidden": nested_document(hidden),
        "cut": nested_document({key: list(map(float, edges)) for key, edges in net.cuts.items()}),
    }


def _restore_columns(estimator: Any, columns: Any, fitted: Any) -> None:
    keys = [spec.key for spec in fitted.schema.fields]
    if columns is None:
        columns = {"n": len(keys), "names": keys if all(isinstance(k, str) for k in keys) else None}
    number, names = int(columns["n"]), columns["names"]
    if (
        (not getattr(fitted, "bag", False) and number != len(keys))
        or number < 0
        or (names is not None and names != keys)
    ):
        raise ModelFileError("its estimator was fitted on other columns than its model has.")
    _keep_columns(estimator, number, names)


# -- chains


class FiledChain(Struct, frozen=True):
    """What a chain counted and its settings; the schema has one column of symbols."""

    settings: dict[str, Any]
    order: int
    column: Key
    missing: tuple[str, ...]
    symbols: tuple[Any, ...]
    notes: list[str]
    evidence: tuple[tuple[int, float], ...]
    levels: tuple[ContextLevel, ...]


def save_chain(chain: Any, path: Any) -> None:
    """Write what a chain counted, and its settings."""
    (spec,) = chain.schema_.used
    prior = chain.prior if isinstance(chain.prior, str) else prior_document(chain.prior)
    symbols = None if chain.symbols is None else [plain(symbol) for symbol in chain.symbols]
    settings = {"order": chain.order, "ends": chain.ends, "prior": prior, "symbols": symbols}
    about = FiledChain(
        settings, chain.order_, spec.key, chain.schema_.missing, tuple(chain.symbols_), list(chain.input_notes_),
        tuple(chain.evidence_.items()), tuple(chain.counts_.levels),
    )  # fmt: skip
    arrays: Arrays = {}
    write(path, {"chain": encode(about, arrays, "chain")}, arrays)


def load_chain(path: Any, document: Document, arrays: Arrays) -> Any:
    """The chain that was saved."""
    with naming(path, "its chain makes no sense"):
        about = decode(FiledChain, document["chain"], arrays, "chain", "its chain", infinite=("evidence",))
        prior = about.settings.pop("prior")
        chain = softcount.MarkovChain(prior=prior if isinstance(prior, str) else prior_from(prior), **about.settings)
        chain._check_settings()
        symbols, order = tuple(map(key_of, about.symbols)), about.order
        plain_ones = all(isinstance(symbol, str | int | float | bool) for symbol in symbols)
        if not 0 < len(symbols) <= MOST_LEVELS + 1 or not plain_ones or len(set(symbols)) != len(symbols):
            raise ModelFileError("its symbols are not all different texts or numbers.")
        spec = Field(about.column, Kind.CATEGORICAL, "symbols", symbols, wide=len(symbols) > NARROW_LEVELS)
        chain.schema_ = Schema((spec,), about.missing)
        chain.order_, chain.evidence_, chain.input_notes_ = order, dict(about.evidence), about.notes
        if order < 0 or (type(chain.order) is int and order != chain.order) or len(about.levels) != order + 1:
            raise ModelFileError("its order is not that of its settings, or of its counts.")
        alphabet = Alphabet(len(symbols), chain.ends)
        alphabet.check_order(order)
        for back, level in enumerate(about.levels):
            _check_level(level, alphabet, back)
        chain._set_counts(ContextCounts(alphabet, about.levels))
        return chain


def _check_level(level: ContextLevel, alphabet: Alphabet, back: int) -> None:
    keys, counts = level.keys, level.counts
    if keys.dtype != np.int64 or counts.dtype != np.float64 or keys.ndim != 1 or keys.shape != counts.shape:
        raise ModelFileError("its keys and counts are not one for one.")
    if len(keys) and (keys[0] < 0 or keys[-1] >= alphabet.base ** (back + 1) or (np.diff(keys) <= 0).any()):
        raise ModelFileError("its contexts are not in order, or none of this alphabet.")
    last = keys % alphabet.base
    if ((last < 1) | (last > alphabet.predicted)).any() or not (np.isfinite(counts) & (counts > 0)).all():
        raise ModelFileError("its counts are not those of symbols.")
    if back == 0 and not len(keys):
        raise ModelFileError("nothing was counted.")


# -- densities


class FiledDensity(Struct, frozen=True):
    """The settings of a density and the columns it was fitted on; its rows or bins are arrays under their own names."""

    name: str
    settings: dict[str, Any]
    columns: int
    names: tuple[str, ...] | None
    plain: bool
    level: int | None


def save_density(estimator: Any, path: Any, arrays: Arrays, level: int | None = None) -> None:
    """Write what a density learned and the settings it has."""
    settings = {name: nested_document(value) for name, value in estimator.get_params(deep=False).items()}
    names = getattr(estimator, "feature_names_in_", None)
    about = FiledDensity(
        type(estimator).__name__, settings, int(estimator.n_features_in_),
        None if names is None else tuple(str(name) for name in names), bool(estimator.plain_column_), level,
    )  # fmt: skip
    write(path, {"density": encode(about, {}, "density")}, arrays)


def load_density(path: Any, document: Document, arrays: Arrays) -> Any:
    """The density that was saved."""
    with naming(path, "its density makes no sense"):
        about = decode(FiledDensity, document["density"], {}, "density", "its density")
        if about.name not in DENSITIES:
            raise ModelFileError(f"the estimator {about.name!r} is not known to this version.")
        estimator = getattr(softcount, about.name)(**{key: key_of(said) for key, said in about.settings.items()})
        if about.columns < 1 or (about.names is not None and len(set(about.names)) != about.columns):
            raise ModelFileError("its columns have other names than columns can have.")
        estimator.plain_column_ = about.plain
        _keep_columns(estimator, about.columns, about.names)
        estimator._restore(arrays, about.level)
        return estimator


def finite(arrays: Arrays, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of a file, if it holds finite numbers, and has this shape where one is said."""
    return finite_array(arrays[name], shape, f"its {name}")


# -- averages: every member is a file of its own inside

MOST_MEMBERS = 1000


class FiledAverage(Struct, frozen=True):
    """What an average is of; member i is the bytes of a model file."""

    by: str
    names: tuple[str, ...]
    weights: np.ndarray
    members: list[np.ndarray]


def save_average(average: Any, path: Any) -> None:
    """Write the members and their weights."""
    members: list[Any] = []
    arrays: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, model in enumerate(average.models_):
            own = os.path.join(folder, f"{place}.sc")
            model.save(own)
            members.append(np.fromfile(own, dtype=np.uint8))
    weights = np.asarray(average.weights_, dtype=np.float64)
    about = FiledAverage(average.by, tuple(average.names_), weights, members)
    write(path, {"average": encode(about, arrays, "average")}, arrays)


def load_average(path: Any, document: Document, arrays: Arrays) -> Any:
    """The average that was saved; members are looked at as files of their own are."""
    with naming(path, "its average makes no sense"):
        about = decode(FiledAverage, document["average"], arrays, "average", "its average")
        named = 0 < len(about.names) == len(about.members) <= MOST_MEMBERS and len(set(about.names)) == len(about.names)
        if not named:
            raise ModelFileError("its members have no names, or one of them twice.")
        weights = finite_array(about.weights, (len(about.names),), "the weights of its members")
        if not (weights >= 0).all() or abs(weights.sum() - 1) >= 1e-9:
            raise ModelFileError("the weights of its members do not sum to one.")
        models = {name: _member(own) for name, own in zip(about.names, about.members, strict=True)}
        return softcount.ModelAverage(models, weights, about.by)


def _member(content: np.ndarray) -> Any:
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ModelFileError("a member is no file.")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "member.sc")
        content.tofile(path)
        if "average" in read(path)[0]:
            raise ModelFileError("a member is itself an average.")
        return load_estimator(path)


OTHER_FILES: dict[str, Callable[[Any, Document, Arrays], Any]] = {
    "centres": load_kmeans, "vocabulary": load_bag, "density": load_density, "average": load_average,
    "chain": load_chain,
}  # fmt: skip
"""How files are loaded that hold no model of classes, states or networks, by the part that tells them."""
