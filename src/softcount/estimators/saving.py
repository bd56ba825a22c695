"""Estimators in model files: the fitted model with the estimator's own settings beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import softcount
from softcount.errors import ModelFileError
from softcount.estimators.average_files import average_from, holds_average, save_average
from softcount.estimators.bag_of_words import load_bag
from softcount.estimators.chain_files import holds_chain, load_chain
from softcount.estimators.density_files import holds_density, load_density
from softcount.files.archive import naming, read
from softcount.files.centres_part import centres_of, holds_centres, save_centres
from softcount.files.json_document import key_of, nested_document, nested_from, plain
from softcount.files.model_file import family_document, family_from, load_model, prior_document, prior_from, save_model
from softcount.files.text_part import holds_vocabulary
from softcount.fitted.fitted import Fitted

KNOWN = ("NaiveBayes", "Classifier", "AveragedStars", "Mixture", "GaussianMixture", "BayesNet", "HiddenMarkov")
CLUSTERING = ("KMeans", "SphericalKMeans")
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
    if getattr(estimator, "average_", None) is not None:
        save_average(estimator.average_, path, about)
    elif type(estimator).__name__ in CLUSTERING:
        save_centres(estimator.found_, path, about)
    else:
        save_model(estimator.fitted_, path, about)


def _keep_columns(estimator: Any, number: int, names: list[str] | None) -> None:
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
    if holds_centres(content[0]):
        return load_kmeans(path, *content)
    if holds_vocabulary(content[0]):
        return load_bag(path, *content)
    if holds_density(content[0]):
        return load_density(path, *content)
    if holds_average(content[0]):
        return load_average(path, *content)
    if holds_chain(content[0]):
        return load_chain(path, *content)
    fitted, about = load_model(path, *content)
    with naming(path, "its settings make no sense"):
        name = about.get("name", _usual(fitted) if isinstance(fitted, Fitted) else OTHERS[fitted.model.name])
        if name not in KNOWN:
            raise ModelFileError(f"the estimator {name!r} is not known to this version.")
        settings = dict(about["settings"] if "settings" in about else _settings_of(fitted))
        estimator = _built(name, settings)
        wanted = "BayesNet" if settings.get("dependence") is not None else name if name in OTHERS.values() else None
        if wanted != OTHERS.get(fitted.model.name) or (name == "AveragedStars") != _has_stars(fitted):
            raise ModelFileError(f"the estimator {name!r} is not one for this model.")
        estimator._keep(fitted if isinstance(fitted, Fitted) else ANSWERING[fitted.model.name](fitted))
        _restore_columns(estimator, about.get("columns"), fitted)
        return estimator


def load_average(path: Any, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The average that was saved, or the mixture that has it."""
    with naming(path, "its average makes no sense"):
        average, about = average_from(document["average"], arrays, load_estimator), document["average"]["mixture"]
        if about is None:
            return average
        mixture = _built("Mixture", dict(about["settings"]))
        best = average.models_[int(average.weights_.argmax())]
        if mixture.n_components != "average" or not all(type(x) is type(mixture) for x in average.models_):
            raise ModelFileError("its members are not the numbers of classes of one mixture.")
        mixture._keep(best.fitted_)
        mixture.average_ = average
        _restore_columns(mixture, about["columns"], best.fitted_)
        return mixture


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
    return "AveragedStars" if _has_stars(fitted) else "NaiveBayes" if fitted.pool is None else "Classifier"


def _has_stars(fitted: Any) -> bool:
    return isinstance(fitted, Fitted) and fitted.stars is not None


def _settings_of(fitted: Any) -> dict[str, Any]:
    """The settings of a model that was saved without an estimator."""
    shared = {"prior": prior_document(fitted.prior), "estimate": fitted.estimate}
    if fitted.model.name == "hidden-chain":
        return shared | {"n_states": fitted.model.states}
    if not isinstance(fitted, Fitted):
        return shared | _net_settings(_as_network(fitted))
    if fitted.classes is None:
        return shared | {"n_components": fitted.n_groups}
    if fitted.stars is not None:
        return {"prior": prior_document(fitted.stars.setting.concentration)}
    return shared if fitted.pool is None else {"prior": shared["prior"]}


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
