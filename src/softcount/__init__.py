"""Softcount: generative models by counting.

A table in, a probabilistic model out: naive Bayes when classes are known, AutoClass-style classes when they are not.
Names are loaded when first used, so that `import softcount` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "estimators.naive_bayes": "NaiveBayes",
    "estimators.classifier": "AODE Classifier",
    "estimators.column_choice": "select_columns",
    "estimators.comparison": "compare",
    "estimators.mixture": "Mixture",
    "estimators.gaussian_mixture": "GaussianMixture",
    "estimators.k_means": "KMeans SphericalKMeans",
    "estimators.bag_of_words": "BagOfWords",
    "estimators.densities": "Histogram KernelDensity",
    "estimators.network": "BayesNet",
    "estimators.markov_chain": "MarkovChain",
    "estimators.average": "average",
    "estimators.hidden_markov": "HiddenMarkov",
    "evaluate.density_ranking": "rank_densities",
    "fitted.compare": "model_changes",
    "bayes.hypotheses": "Hypotheses",
    "errors": "DataError DataWarning ModelFileError SoftcountError",
}
_MODULES = ("conditions", "errors", "families", "images", "plot", "priors")
_MOVED = {
    "families": "Bernoulli Binomial Categorical Cut Exponential Geometric Grouped LogNormal Markov Mixed Multinomial "
    "Multinormal Normal Poisson Spiked Student Text",
    "priors": "Beta Dirichlet Expert Gamma NormalInverseChi2 NormalInverseWishart NormalKnownVariance Older "
    "expert_beside_data expert_prior",
    "conditions": "above any_of below between not_",
    "images": "class_maps neighbourhood_accuracy rank_accuracy save_maps",
}
_RENAMED = {
    "AveragedStars": "softcount.AODE",
    "GammaFamily": "softcount.families.Gamma",
    "HistogramFamily": "softcount.families.Histogram",
    "KernelFamily": "softcount.families.Kernel",
    "ModelAverage": "softcount.average(...)",
    "bayes_error": "model.bayes_error()",
    "Counts": "model.counts_",
    "Table": "softcount.read(...)",
}
_HOMES = {name: f"softcount.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AODE",
    "BagOfWords",
    "BayesNet",
    "Classifier",
    "DataError",
    "DataWarning",
    "GaussianMixture",
    "HiddenMarkov",
    "Histogram",
    "Hypotheses",
    "KMeans",
    "KernelDensity",
    "MarkovChain",
    "Mixture",
    "ModelFileError",
    "NaiveBayes",
    "SoftcountError",
    "SphericalKMeans",
    "__version__",
    "average",
    "compare",
    "load",
    "model_changes",
    "rank_densities",
    "read",
    "read_sequences",
    "read_sql",
    "select_columns",
]

if TYPE_CHECKING:
    from softcount import conditions as conditions
    from softcount import errors as errors
    from softcount import families as families
    from softcount import images as images
    from softcount import plot as plot
    from softcount import priors as priors
    from softcount.bayes.hypotheses import Hypotheses
    from softcount.errors import DataError, DataWarning, ModelFileError, SoftcountError
    from softcount.estimators.average import average
    from softcount.estimators.bag_of_words import BagOfWords
    from softcount.estimators.classifier import AODE, Classifier
    from softcount.estimators.column_choice import select_columns
    from softcount.estimators.comparison import compare
    from softcount.estimators.densities import Histogram, KernelDensity
    from softcount.estimators.gaussian_mixture import GaussianMixture
    from softcount.estimators.hidden_markov import HiddenMarkov
    from softcount.estimators.k_means import KMeans, SphericalKMeans
    from softcount.estimators.markov_chain import MarkovChain
    from softcount.estimators.mixture import Mixture
    from softcount.estimators.naive_bayes import NaiveBayes
    from softcount.estimators.network import BayesNet
    from softcount.evaluate.density_ranking import rank_densities
    from softcount.fitted.compare import model_changes
else:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _MODULES:
            return import_module(f"softcount.{name}")
        moved = {own: f"softcount.{home}.{own}" for home, names in _MOVED.items() for own in names.split()} | _RENAMED
        hint = f". Use {moved[name]}." if name in moved else ""
        raise AttributeError(f"module 'softcount' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


def read(path: Any, *, missing: Any = (), only_missing: Any = (), **how: Any) -> Any:
    """A table from a file, several files (a list, or a pattern such as `day-*.csv`) or anything tabular.

    It is encoded once and accepted wherever X is.

    In text files the usual words (`NA`, `?`, ...) mean missing; in frames and other data with real nulls only these do.
    Cells in `missing` mean missing besides; those in `only_missing` instead of the usual words. How a file is
    written is said by `header`, `names`, `delimiter`, `decimal`, `dates`, `encoding`, `skip_lines`, `comment` and
    `file_column`, and remembered by what is fitted.
    """
    import os
    from pathlib import Path

    from softcount.table import open_table
    from softcount.table.schema import with_usual

    if isinstance(path, list | tuple) and path and all(isinstance(x, str) and os.path.isfile(x) for x in path):
        path = [Path(file) for file in path]  # files, and no documents
    only = (only_missing,) if isinstance(only_missing, str) else tuple(only_missing)
    return open_table(path, missing=only or with_usual(missing), **how)


def read_sql(query: str, connection: Any, *, missing: Any = (), only_missing: Any = (), kinds: Any = None) -> Any:
    """A table of the rows that a query gives, accepted wherever X is.

    `connection` is one of DuckDB's, of ADBC, of SQLAlchemy or of any DB-API module; or the path of a SQLite or DuckDB
    file, or a Postgres address. The query is run once, and its rows are kept in a temporary file while the table is
    used. `kinds` says what columns are where looking at them is not enough, or `"ignore"` to leave one out.

    >>> import sqlite3
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE visits (age REAL, town TEXT)")
    >>> _ = base.executemany("INSERT INTO visits VALUES (?, ?)", [(31.5, "Ulm"), (47.5, None), (28.5, "Bonn")])
    >>> read_sql("SELECT * FROM visits", base).n_rows
    3
    """
    from softcount.sources.databases import query_source

    return read(query_source(query, connection), missing=missing, only_missing=only_missing, kinds=kinds)


def read_sequences(data: Any, header: bool | None = None, **how: Any) -> Any:
    """Sequences from lists, columns of lists, long tables, text or folders, accepted wherever sequences are."""
    from softcount.sequences import open_sequences
    from softcount.sources.source import FileFormat

    return open_sequences(data, form=FileFormat(header), **how)


def load(path: Any) -> Any:
    """The model that `save` wrote, as the estimator it was."""
    from softcount.estimators.saving import load_estimator

    return load_estimator(path)
