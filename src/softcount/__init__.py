"""Softcount: generative models by counting.

A table in, a probabilistic model out: naive Bayes when classes are known, AutoClass-style classes when they are not.
Names are loaded when first used, so that `import softcount` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "estimators.naive_bayes": "NaiveBayes bayes_error",
    "estimators.classifier": "Classifier AveragedStars",
    "estimators.column_choice": "select_columns",
    "estimators.comparison": "compare",
    "images": "class_maps neighbourhood_accuracy rank_accuracy",
    "report.maps": "save_maps",
    "estimators.mixture": "Mixture",
    "estimators.gaussian_mixture": "GaussianMixture",
    "estimators.k_means": "KMeans SphericalKMeans",
    "estimators.bag_of_words": "BagOfWords",
    "estimators.densities": "KernelDensity Histogram",
    "estimators.network": "BayesNet",
    "estimators.markov_chain": "MarkovChain",
    "estimators.average": "average ModelAverage",
    "evaluate.density_ranking": "rank_densities",
    "estimators.hidden_markov": "HiddenMarkov",
    "families": "Bernoulli Binomial Categorical Cut Exponential GammaFamily Geometric Grouped HistogramFamily "
    "KernelFamily LogNormal Markov Mixed Multinomial Multinormal Normal Poisson Spiked Student Text",
    "priors": "Beta Dirichlet Expert Gamma NormalInverseChi2 NormalInverseWishart NormalKnownVariance",
    "fitted.compare": "model_changes",
    "fitted.conditions": "above any_of below between not_",
    "bayes.expert": "expert_beside_data expert_prior",
    "bayes.hypotheses": "Hypotheses",
    "models.align": "Older",
    "core.counts": "Counts",
    "table": "Table",
    "errors": "DataError DataWarning ModelFileError SoftcountError",
}
_HOMES = {name: f"softcount.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", "load", "read", "read_sequences", "read_sql", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("softcount.plot")
    if name not in _HOMES:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


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
