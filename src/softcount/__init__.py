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
    "estimators.joint_model": "JointModel",
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
    "compare_beliefs expert_prior",
    "conditions": "above any_of below between not_",
    "images": "class_maps neighbourhood_accuracy rank_accuracy save_maps",
}
_RENAMED = {
    "AveragedStars": "softcount.AODE",
    **dict.fromkeys(("GaussianNB", "CategoricalNB", "MultinomialNB", "BernoulliNB"), "softcount.NaiveBayes"),
    **dict.fromkeys(("HMM", "GaussianHMM", "CategoricalHMM"), "softcount.HiddenMarkov"),
    **dict.fromkeys(("BayesianNetwork", "DiscreteBayesianNetwork"), "softcount.BayesNet"),
    "CountVectorizer": "softcount.BagOfWords()",
    "TfidfVectorizer": "softcount.BagOfWords('tfidf')",
    "KDE": "softcount.KernelDensity",
    "LDA": "softcount.Classifier, which has discriminant analysis",
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
    "JointModel",
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
    from softcount.estimators.joint_model import JointModel
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


if TYPE_CHECKING:  # results of the functions below
    from softcount.sequences import Sequences
    from softcount.table import Table


def read(  # noqa: PLR0913 - everything that a file may be
    path: Any,
    *,
    kinds: Any = None,
    target: Any = None,
    weight: Any = None,
    levels: Any = None,
    missing: Any = (),
    only_missing: Any = (),
    header: bool | None = None,
    names: Any = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    encoding: str | None = None,
    skip_lines: int = 0,
    comment: str = "",
    file_column: str | None = None,
    progress: Any = None,
) -> Table:
    """Read a table that every estimator accepts as `X`.

    It is encoded once. Estimators read files and data frames themselves; use `read` to set how a file is written, or to
    fit several models on one table. The model remembers these settings for other files.

    Parameters
    ----------
    path : str, path, list of files, DataFrame, Arrow table, dict or array
        A file (CSV, TSV, JSON Lines, ARFF, Parquet, Arrow or Excel, compressed or not), a pattern such as
        `day-*.csv`, several files, a folder of documents, an address, or data in memory.
    kinds : dict, str or None, default=None
        Kinds of columns by name, such as `{"zip": "categorical", "id": "ignore"}`, or one for all columns.
    target : str, default=None
        Column with the classes, which is then not a feature.
    weight : str, default=None
        Column with the weights of the rows.
    levels : dict, default=None
        Categories by column, if they are known in advance.
    missing : str or list of str, default=()
        Cells that mean missing, in addition to the usual words (empty, `NA`, `?`, ...). In frames and other data with
        nulls only these words and the nulls mean missing.
    only_missing : str or list of str, default=()
        Cells that mean missing instead of the usual words.
    header : bool, default=None
        Whether the first line names the columns. None looks at it.
    names : list of str or str, default=()
        Names of the columns, which replace those of the file; a string is split at commas.
    delimiter : str, default=None
        Character between cells, or "comma", "tab", "semicolon", "bar" or "space". None finds it.
    decimal : {'.', ','}, default=None
        Decimal mark. None finds it.
    dates : {'day-first', 'month-first', 'year-first'}, default=None
        Order of the parts of a date. None finds it.
    encoding : str, default=None
        Encoding of the text, such as "cp1252". None is UTF-8, or cp1252 if the text is not valid UTF-8.
    skip_lines : int, default=0
        Number of first lines to leave out.
    comment : str, default=''
        Leave out lines that begin with this text.
    file_column : str, default=None
        Name of a further column with the file that each row is from.
    progress : callable, default=None
        Called with the bytes read and the bytes in all.

    Returns
    -------
    Table
        The opened table: `n_rows`, `schema`, and whatever an estimator needs.

    See Also
    --------
    read_sql : Reads the rows of a database query.
    read_sequences : Reads sequences of steps.

    Examples
    --------
    >>> table = read({"size": [1.5, 2.5, None], "colour": ["red", "blue", "red"]})
    >>> [(field.key, field.kind.value) for field in table.schema.fields]
    [('size', 'real'), ('colour', 'categorical')]
    """
    import os
    from pathlib import Path

    from softcount.table import open_table
    from softcount.table.schema import with_usual

    if isinstance(path, list | tuple) and path and all(isinstance(x, str) and os.path.isfile(x) for x in path):
        path = [Path(file) for file in path]  # files, and no documents
    only = (only_missing,) if isinstance(only_missing, str) else tuple(only_missing)
    return open_table(
        path, kinds=kinds, target=target, weight=weight, levels=levels, missing=only or with_usual(missing),
        progress=progress, header=header, names=names, delimiter=delimiter, decimal=decimal, dates=dates,
        encoding=encoding, skip_lines=skip_lines, comment=comment, file_column=file_column,
    )  # fmt: skip


def read_sql(query: str, connection: Any, *, missing: Any = (), only_missing: Any = (), kinds: Any = None) -> Table:
    """Read the rows of a database query as a table that every estimator accepts as `X`.

    The query is run once, and its rows are kept in a temporary file while the table is used.

    Parameters
    ----------
    query : str
        A query that answers with rows.
    connection : connection or str
        A connection of DuckDB, ADBC, SQLAlchemy or any DB-API module; or the path of a SQLite or DuckDB file, or a
        Postgres address.
    missing : str or list of str, default=()
        Cells that mean missing, in addition to NULL.
    only_missing : str or list of str, default=()
        Cells that mean missing, as in `read`.
    kinds : dict, str or None, default=None
        Kinds of columns by name, as in `read`; "ignore" leaves a column out.

    Returns
    -------
    Table
        The opened table.

    See Also
    --------
    read : Reads files and data in memory.

    Examples
    --------
    >>> import sqlite3
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE visits (age REAL, town TEXT)")
    >>> _ = base.executemany("INSERT INTO visits VALUES (?, ?)", [(31.5, "Ulm"), (47.5, None), (28.5, "Bonn")])
    >>> read_sql("SELECT * FROM visits", base).n_rows
    3
    """
    from softcount.sources.databases import query_source

    return read(query_source(query, connection), missing=missing, only_missing=only_missing, kinds=kinds)


def read_sequences(  # noqa: PLR0913
    data: Any,
    *,
    sequence: Any = None,
    sort_by: Any = None,
    weight: Any = None,
    weights: Any = None,
    steps: str | None = None,
    columns: Any = None,
    missing: Any = (),
    header: bool | None = None,
) -> Sequences:
    """Read sequences of steps that `MarkovChain` and `HiddenMarkov` accept as `X`.

    The data may be

    - a list of sequences: lists or arrays of symbols or numbers, 2-D arrays or lists of dicts if a step has several
      columns, or data frames. None and NaN are missing steps. Strings are sequences of characters.
    - a column of lists, from Arrow, polars or Parquet; lists of structs have several columns.
    - a long table (a file or a frame) with a row for each step, with `sequence`.
    - a text file, with `steps`: each line is a sequence. A folder of such files: each file is one.

    Parameters
    ----------
    data : list, DataFrame, Arrow column, str or path
        Data in memory, a file or a folder.
    sequence : str, default=None
        Column of a long table that names the sequence of each step. With `steps`, "file" makes a whole file one
        sequence.
    sort_by : str, default=None
        Column of a long table by which the steps of a sequence are sorted: a time or a number.
    weight : str, default=None
        Column of a long table with the weight of the sequence.
    weights : array of shape (n_sequences,), default=None
        Weight of each sequence.
    steps : {'characters', 'words'}, default=None
        Steps of a text.
    columns : list of str, default=None
        Columns that a step has. None takes all.
    missing : str or list of str, default=()
        Cells that mean missing, in addition to the usual words.
    header : bool, default=None
        Whether the first line of a file names the columns. None looks at it.

    Returns
    -------
    Sequences
        The rows of one table, with `names` and `lengths` of the sequences.

    See Also
    --------
    read : Reads tables.
    MarkovChain : Chains of symbols.
    HiddenMarkov : Hidden states with steps of any columns.

    Examples
    --------
    >>> read_sequences(["emma", "ava"]).lengths.tolist()
    [4, 3]
    >>> clicks = {"who": ["b", "a", "b"], "at": [2, 1, 1], "page": ["buy", "home", "home"]}
    >>> found = read_sequences(clicks, sequence="who", sort_by="at")
    >>> found.names, found.lengths.tolist()
    (['b', 'a'], [2, 1])
    """
    from softcount.sequences import open_sequences
    from softcount.sources.source import FileFormat
    from softcount.table.schema import with_usual

    return open_sequences(
        data, sequence=sequence, sort_by=sort_by, weight=weight, weights=weights, steps=steps, columns=columns,
        missing=with_usual(missing), form=FileFormat(header),
    )  # fmt: skip


def load(path: Any) -> Any:
    """Load a model that `save` or the command line wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The estimator that was saved, fitted, with its parameters. A model that the command line saved gets the
        estimator that suits it.

    Raises
    ------
    ModelFileError
        If the file cannot be read, or its contents are inconsistent.

    See Also
    --------
    read : Reads tables.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import softcount as sc
    >>> model = sc.NaiveBayes().fit({"colour": ["red", "red", "blue"]}, ["apple", "apple", "plum"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "fruit.softcount"))
    ...     print(sc.load(os.path.join(folder, "fruit.softcount")).predict({"colour": ["blue"]}))
    ['plum']
    """
    from softcount.estimators.saving import load_estimator

    return load_estimator(path)
