"""The parameters of estimators, each declared once: type, range and meaning.

From a declaration come the check of a value, the Parameters section of the documentation, and the option of the command
line. The default is the one of the estimator's constructor. Nothing heavy is imported here: the command line reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError, ParameterError

AUTO = "auto"
PATH = "path"


class Parameter(Struct, frozen=True):
    """What a parameter may be: a word of `words` (None is one), or a value of a `type` from `least` to `most`.

    `type` is int, float, bool, PATH, or a text for the documentation of a value that is checked elsewhere, or by the
    function `checked`. Parameters of the run, which say nothing about the model, are not `saved`. The command line
    shows `help`; the documentation goes on with `details`.
    """

    type: Any
    help: str
    words: tuple[Any, ...] = ()
    least: float = 0
    above: bool = False
    most: float = inf
    saved: bool = True
    checked: Callable[[str, Any], None] | None = None
    details: str = ""

    @property
    def meaning(self) -> str:
        """The text of the Parameters section."""
        return f"{self.help} {self.details}".strip()

    def check(self, name: str, value: Any) -> None:
        """Raise an error that says what would be right, unless the value is."""
        if (value is None or isinstance(value, str)) and value in self.words:
            return
        if self.checked is not None:
            self.checked(name, value)
        if self.type is None:
            raise DataError(f"{name}={value!r} is not known. Use {either(map(repr, self.words))}.")
        fits: Any = {int: Integral, float: Real, bool: bool, PATH: (str, os.PathLike)}.get(self.type)
        if fits is None:
            return
        if getattr(value, "ndim", 1) == 0:
            value = value.item()  # a number or a truth value of NumPy's
        right = isinstance(value, fits) and (self.type is bool or not isinstance(value, bool))
        if right and self.type in (int, float):
            right = value > self.least if self.above else value >= self.least
            right = right and value <= self.most and (isfinite(value) or self.most == inf)
        if not right:
            raise DataError(f"{name} must be {self.described()}, not {value!r}.")

    def described(self) -> str:
        """What it may be, in words; a limit of 1e300 only means that it is finite."""
        most = "" if self.most >= 1e300 else f" and at most {self.most:g}"
        kinds = {
            int: f"a whole number of at least {self.least:g}{most}",
            float: f"above {self.least:g}{most}" if self.above else f"{self.least:g} or more{most}",
            bool: "True or False",
            PATH: "a path",
        }
        return either([*map(repr, self.words), *([kinds.get(self.type, self.type)] if self.type else [])], last=True)

    @property
    def documented_type(self) -> str:
        """The type as the Parameters section of numpydoc writes it."""
        if self.type is None:
            return "{" + ", ".join(map(repr, self.words)) + "}"
        own = {int: "int", float: "float", bool: "bool", PATH: "str, path"}.get(self.type, self.type)
        return either([own, *map(repr, self.words)])


def either(parts: Any, last: bool = False) -> str:
    """A list in words: "a, b or c"; what comes `last` is put first.

    >>> either(["'a'", "'b'", "None"]), either(["None", "a path"], last=True)
    ("'a', 'b' or None", 'a path or None')
    """
    listed = list(parts)
    listed = [listed[-1], *listed[:-1]] if last else listed
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def check_whole(name: str, value: Any, least: int) -> int:
    """A value as an int; an error unless it is a whole number of at least `least`."""
    Parameter(int, "", least=least).check(name, value)
    return int(value)


def check_jobs(name: str, value: Any) -> None:
    """Raise an error unless a value is a number of threads."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (whole and value != 0):
        raise DataError(f"{name} must be None, a number of threads, or -1 for all cores, not {value!r}.")


OTHER_NAMES = {
    "init_params": ("init",), "reg_covar": ("prior",), "alpha": ("prior",), "var_smoothing": ("prior",),
    "fit_prior": ("class_prior",), "priors": ("class_prior",), "n_iter": ("max_iter",), "eps": ("tol",),
    "n_components": ("n_states", "n_clusters"), "n_clusters": ("n_components", "n_states"), "seed": ("random_state",),
    "n_states": ("n_components", "n_clusters"), "k": ("n_components", "n_clusters", "n_states"),
    "n_classes": ("n_components", "n_states"), "max_features": ("max_words",), "ngram_range": ("ngrams",),
    "token_pattern": ("pattern",), "norm": ("normalize",), "n_features": ("hashing",), "binary": ("weighting",),
    "use_idf": ("weighting",), "smooth_idf": ("idf",), "memory_order": ("order",), "n_bins": ("bins", "cuts"),
    "covariance_type": ("kinds",), "weight_concentration_prior": ("prior",), "tokenizer": ("pattern", "analyzer"),
    "sublinear_tf": ("weighting",), "binarize": ("kinds",), "encoding": ("kinds",), "categorical_features": ("kinds",),
    "edge_list": ("edges",), "scoring": ("criterion",), "smoothing": ("prior",), "pseudocount": ("prior",),
}  # fmt: skip
"""Names of other libraries, mostly scikit-learn, and the parameters that mean it here."""


def remedy(name: str, declared: Mapping[str, Parameter], elsewhere: Mapping[str, str]) -> str:
    """What to use instead of a parameter that an estimator does not have; nothing if no name is near."""
    if name in elsewhere:
        return f" Use {elsewhere[name]}."
    found = [own for own in OTHER_NAMES.get(name, ()) if own in declared]
    if found:
        return f" Use {found[0]}: {declared[found[0]].help.split('. ')[0].rstrip('.')}."
    near = get_close_matches(name, declared, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" It has {', '.join(declared)}."


P = ParamSpec("P")
R = TypeVar("R")
SAMPLE_SIZES = ("n", "size", "num_samples", "n_rows")
"""Names of other libraries for `n_samples` in `sample`."""


def check_arguments(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method raise an error that names its parameters if it is called with others."""
    own = signature(method)
    names = [name for name in own.parameters if name != "self"]

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            own.bind(*args, **kwargs)
        except TypeError:
            where = f"{type(args[0]).__name__}.{method.__name__}"
            takes = f"It has {', '.join(names)}." if names else "It has no parameters."
            if len(args) > len(own.parameters):
                raise ParameterError(f"{where} got too many arguments. {takes}") from None
            wrong = next((name for name in kwargs if name not in names), None)
            if wrong is None:
                raise
            use = "Use n_samples." if wrong in SAMPLE_SIZES and "n_samples" in names else takes
            raise ParameterError(f"{where} has no parameter {wrong!r}. {use}") from None
        return method(*args, **kwargs)

    return checked


HALF_LIFE = Parameter(float, "Rows after which a row counts half.", (None,), above=True, most=1e300)


def _words(help: str, *words: Any, details: str = "") -> Parameter:
    return Parameter(None, help, words, details=details)


def _any(type: str, help: str, details: str = "", saved: bool = True) -> Parameter:
    return Parameter(type, help, saved=saved, details=details)


PARAMETERS: dict[str, Parameter] = {
    # -- what is read
    "kinds": _any(
        "dict, str, family or None",
        "Kinds of columns by name, such as {'zip': 'categorical', ('x', 'y'): 'multinormal', 'id': 'ignore'}, or one "
        "for all columns. 'auto' lets the rows choose a density. The kind of any other column is detected from its "
        "values.",
        "A value is the name of a kind or family, or an object of `softcount.families`. A tuple of columns is a block "
        "with a joint distribution.",
    ),
    "missing": _any(
        "list of str or None",
        "Cells that mean missing, in addition to the usual ones (empty, NA, ?).",
        "None adds nothing. None and NaN in data frames and arrays are always missing.",
    ),
    # -- how counts become parameters
    "prior": _any(
        "float, str, dict or prior",
        "Prior counts per category, or a word ('auto', 'flat', 'jeffreys', 'row'), or priors by column.",
        "With a number a, the probability of a category is (count + a) / (rows + a * categories); a column of numbers "
        "gets a prior rows with the spread of the whole column. 'flat' is 1 and 'jeffreys' is 1/2. 'row' is one prior "
        "row in every class, shared equally by the categories (a = 1 / categories). 'bdeu' is one prior row in the "
        "whole table. 'auto' chooses a for every column by marginal likelihood. A dict has numbers, words or "
        "objects of `softcount.priors` by column.",
    ),
    "estimate": _words(
        "How counts become parameters: maximum likelihood, posterior mode, posterior mean, or the predictive density.",
        "ml", "map", "mean", "predictive",
        details="With n of N rows and prior counts a per category, k categories: 'ml' is n / N, 'map' is "
        "(n + a - 1) / (N + k (a - 1)), 'mean' is (n + a) / (N + k a). 'predictive' integrates over the posterior: "
        "the same shares as 'mean' for categories, and Student's t for numbers with a normal distribution.",
    ),
    "class_prior": _any(
        "array, float, 'uniform' or None",
        "Shares of the classes, if they are not to be estimated from the rows.",
        "An array has a share for each class, in sorted order. A float is the prior count of every class. None uses "
        "the shares among the labelled rows.",
    ),
    "unlabelled_weight": Parameter(
        float,
        "Weight of a row without a label. EM learns from such rows if it is above 0. By default it is 1 in tables of "
        "text and 0 in others.",
        (None,), most=1e300,
    ),
    # -- EM and its initialisations
    "max_iter": Parameter(int, "Maximum number of iterations.", details="An iteration is one pass over the rows."),
    "tol": Parameter(
        float,
        "EM stops once the predicted remaining gain of the objective is below this.",
        details="The remaining gain is predicted from the gain of the next step, divided by the share of the "
        "remaining gain that one step achieves, which is estimated from recent steps. The remaining gain is "
        "compared with `tol` * max(1, abs(objective)). With 0, exactly "
        "`max_iter` plain steps are taken.",
    ),
    "accelerate": Parameter(
        bool,
        "Whether EM takes accelerated steps (Anderson).",
        details="An accelerated step extrapolates the last steps to the point at which EM would settle. It is taken "
        "only if it gains at least as much as the plain step, so the objective never falls.",
    ),
    "n_init": Parameter(int, "Number of initialisations, of which the best is kept.", least=1),
    "init": _any(
        "str, dict, array or model",
        "Initialisation: 'k-means++', 'k-means', 'random' or 'agglomerative'; memberships (rows x components); a label "
        "for each row; a fitted model; or parameters in the shape of `params_` with 'weights' in addition.",
        "'k-means++' draws rows far from each other as centres, 'k-means' moves the centres to the means of their "
        "rows ten times, 'random' draws memberships, 'agglomerative' merges the nearest clusters of 1,000 drawn rows.",
        saved=False,
    ),
    "criterion": _words(
        "Criterion for the number of components: marginal likelihood (Cheeseman-Stutz), BIC, ICL, or the likelihood of "
        "held-out rows.",
        "evidence", "bic", "icl", "cv",
        details="BIC is -2 log-likelihood + parameters * log(rows), and ICL adds twice the entropy of the memberships. "
        "Not used if the number is given.",
    ),
    "assign": _words(
        "Assignment of rows in the E step: by probability, to the best component, or drawn.",
        "soft", "hard", "drawn",
        details="'soft' counts a row in component k with its probability p(k | row), 'hard' counts it whole in the "
        "most probable component (classification EM), and 'drawn' in one drawn from p(k | row) (stochastic EM). "
        "'drawn' takes `max_iter` steps and keeps the best parameters.",
    ),
    "finish": _words(
        "Optimiser of the observed likelihood after EM.", None, "lbfgs",
        details="'lbfgs' maximises the log-likelihood, with the log-prior of `estimate`, from the parameters of EM. It "
        "helps if components overlap, where EM is slow. It needs `tol` above 0, soft assignment and whole steps.",
    ),
    "half_steps": Parameter(
        bool,
        "Whether `trace_` has an entry after the M step and one after the E step.",
        details="The entry after the M step is the lower bound of the log-likelihood that the new parameters reach "
        "with the old memberships. It takes plain steps.",
    ),
    "fixed": _any(
        "dict or None",
        "Parameters that stay fixed, in the shape of `params_` with 'weights' in addition.",
        "EM estimates the others given these.",
    ),
    # -- the run
    "n_jobs": Parameter(
        "int or None", "Number of threads. None or -1 takes all cores.", saved=False, checked=check_jobs,
        details="Results do not depend on it.",
    ),
    "random_state": _any(
        "int, RandomState or None", "Seed of every random choice.",
        "The same seed gives the same model on the same data. None draws a new seed each time.", saved=False,
    ),
    "verbose": Parameter(bool, "Whether a progress bar is shown on a terminal.", saved=False),
    "spill": Parameter(
        PATH,
        "Folder for the rows between passes. By default rows are written to a temporary file only if they do not fit "
        "into memory.",
        (None,), saved=False,
    ),
    "checkpoint": Parameter(
        PATH,
        "File to which a long fit writes its progress. A fit of the same data with the same parameters continues from "
        "it, to a bit-for-bit identical model, and removes it.",
        (None,), saved=False,
    ),
    "engine": _any(
        "Dask client, Spark session or None",
        "Workers that read the files of `X` and count. A Dask or Spark DataFrame is counted where its partitions are.",
        "None counts in this process.", saved=False,
    ),
    # -- classifiers
    "calibration": _words(
        "Correction of the probabilities, learned by cross-validation: one temperature, or a curve for every class. "
        "`explain` shows log-odds before the correction.",
        None, "temperature", "isotonic",
        details="'temperature' divides log-odds by one number; 'isotonic' maps the probability of every class by a "
        "rising curve, and divides by the sum. None leaves probabilities as they are.",
    ),
    "weights": _words(
        "'columns' learns a weight for every column by the conditional likelihood of held-out rows: columns that "
        "repeat each other share one weight, and uninformative ones get 0. See `column_weights_`.",
        None, "columns",
        details="The log-density of a column given the class is multiplied by its weight. None gives every column "
        "the weight 1.",
    ),
    "budget": Parameter(
        float,
        "Seconds after which no further member of the ensemble is tried. The result then depends on the machine.",
        (None,),
    ),
    "cuts": _any("dict or None", "Bin edges by column, such as {'age': [25, 40]}. By default bins follow the classes."),
    "parents": _words(
        "'information' weights each parent by its information about the class.", None, "information",
        details="The weight is the mutual information of the column and the class, in nats. None gives all parents "
        "the same weight.",
    ),
    # -- mixtures
    "n_components": Parameter(int, "Number of components. 'auto' chooses it by `criterion`.", (AUTO,), least=1),
    "covariance_type": _words(
        "Form of the covariances. 'auto' is 'full' for a given number of components, and is chosen together with the "
        "number by `criterion` otherwise.",
        AUTO, "full", "tied", "diag", "tied_diag", "spherical", "tied_spherical",
        details="'full' is a matrix for each component, 'diag' a variance for each column, 'spherical' one variance. "
        "The 'tied' forms are shared by all components.",
    ),
    "weights_init": _any("array or None", "Initial shares of the components, with `means_init`.", saved=False),
    "means_init": _any("array or None", "Initial means (components x columns).", saved=False),
    "precisions_init": _any("array or None", "Initial precisions, with `means_init`.", saved=False),
    "warm_start": Parameter(bool, "Whether a further fit starts from the last one."),
    "n_clusters": Parameter(int, "Number of clusters.", least=1),
    # -- networks
    "edges": _any(
        "list, dict, str or None",
        "Pairs (parent, child), parents by child, text ('A>B, B>C'), the name of a network file, or how to find them: "
        "'naive', 'tan', 'joint' (with y), 'chow-liu', 'search'.",
        "'naive' has edges from the class to every column, 'tan' a tree among the columns in addition, 'joint' all "
        "columns as parents of the class. 'chow-liu' is the tree with the largest likelihood. 'search' climbs by "
        "`criterion`. None is 'tan' with y and 'chow-liu' without.",
    ),
    "hidden": _any(
        "dict, 'auto' or None",
        "Hidden nodes with the number or the names of their categories. 'auto' chooses the number by marginal "
        "likelihood.",
    ),
    "cut": _any("dict or None", "Columns of numbers to discretise, with the number of bins or their edges."),
    "equivalent_sample_size": Parameter(
        float, "Number of prior rows that the prior 'bdeu' adds to every table.",
        details="A table of q parent cells and r categories gets this / (q r) prior counts per cell.",
    ),
    "required": _any("list or str", "Edges that a search keeps.", "Written as `edges` are."),
    "forbidden": _any("list or str", "Edges that a search leaves out.", "Written as `edges` are."),
    "max_parents": Parameter(int, "Maximum number of parents that a search gives a node.", (None,)),
    "memory": _any("int, str or None", "Memory for an exact answer, such as '2GB'. The default is half a gigabyte."),
    # -- sequences
    "n_states": Parameter(int, "Number of hidden states. 'auto' chooses it by `criterion`.", (AUTO,), least=1),
    "transitions": _any(
        "'left-right', array or None", "Which state may follow which: a matrix, zero if impossible.",
        "With 'left-right', a state is followed by itself or by a later state, and sequences start in the first "
        "state. None allows all.",
    ),
    "first": _any("list or None", "Numbers of the states that may come first."),
    "tied": _any("list or None", "A word for each state; states of the same word share their distributions."),
    "order": Parameter(
        int,
        "Number of steps that the next one depends on. 'auto' chooses it by marginal likelihood, 'variable' the length "
        "of each context.",
        (AUTO, "variable"),
        details="'variable' keeps the context tree with the largest posterior probability.",
    ),
    "ends": Parameter(bool, "Whether the beginning and the end of a sequence are states."),
    "symbols": _any("list or None", "All symbols that may occur. None takes the symbols that occur in the "
    "sequences."),
    # -- densities
    "kernel": _any(
        "str", "Kernel: 'gaussian', 'logistic', 'epanechnikov', 'tophat', ...",
        "A density at x is the mean of K((x - row) / h) / h over the rows, with the kernel K and the bandwidth h.",
    ),
    "bandwidth": _any(
        "float, list or str", "A number, or 'scott', 'silverman', 'isj', 'sj', 'sj-dpi', 'ucv', 'cv'.",
        "'scott' is the standard deviation times n ** (-1/5). 'silverman' is 0.9 times the lesser of the standard "
        "deviation and the interquartile range / 1.34, times n ** (-1/5). 'isj' is Botev's improved rule of Sheather "
        "and Jones, for several modes; 'sj' and 'sj-dpi' are the older rules, 'ucv' least squares cross-validation, "
        "'cv' the likelihood of each row given the others. Rules depend on the kernel. A list has one bandwidth for "
        "each column.",
    ),
    "exact": Parameter(bool, "Whether every kernel sum is computed exactly, even for many rows. Otherwise many rows "
    "are binned."),
    "bounds": _any("tuple, list or None", "Ends of a column, such as (0, None), at which the density is reflected."),
    "bins": _any("int, str or tuple", "Number of equal bins, ('count', n), 'count', 'fd', 'blocks', 'mdl' or 'auto'."),
    # -- words
    "weighting": _words(
        "What a cell holds.", "count", "binary", "tf", "idf", "tfidf",
        details="'count' is how often the word occurs in the document, 'binary' whether it does, 'tf' its share of the "
        "words of the document, 'idf' its inverse document frequency if it occurs, 'tfidf' is 'tf' times that.",
    ),
    "idf": _words(
        "Formula of the inverse document frequency.", "smooth", "plain", "plus-one",
        details="For a word that df of N documents hold: 'smooth' is log((N + 1) / (df + 1)) + 1 as in scikit-learn, "
        "'plain' is log(N / df), 'plus-one' is log(N / (df + 1)).",
    ),
    "normalize": _words(
        "Whether rows have length one; 'auto' means so for 'tfidf'.", "auto", "l2", None,
    ),
    "min_count": _any("int", "Minimum number of occurrences of a word that is kept."),
    "min_df": _any("int or float", "Minimum number, or share, of documents that hold a word."),
    "max_df": _any("int or float", "Maximum number, or share, of documents that hold a word."),
    "drop_top": _any("int", "Number of most frequent words to leave out."),
    "max_words": _any("int or None", "Number of most frequent words to keep.", "None keeps all."),
    "stop_words": _any("'english', list or None", "Words to leave out."),
    "ngrams": _any("tuple of int", "Shortest and longest run of words that is counted."),
    "analyzer": _any(
        "{'word', 'char', 'char_wb'}", "Whether words or characters are counted.",
        "'char_wb' counts characters within words, with a space at both ends.",
    ),
    "pattern": _any(
        "str or None", "Regular expression of a word.", "None is two or more word characters, as in scikit-learn.",
    ),
    "lowercase": _any("bool", "Whether words are converted to lower case."),
    "hashing": Parameter(
        int, "Number of columns that words are hashed to, without a vocabulary.", (None,), 1, most=2**31 - 1,
    ),
}  # fmt: skip


NO_PROGRESS = "Has no effect: this fit shows no progress. Every estimator accepts it."
NOTHING_RANDOM = "Has no effect: this fit makes no random choice. Every estimator accepts it."


def varied(name: str, *words: Any, **changed: Any) -> Parameter:
    """The parameter of this name with other words, or another meaning, in one estimator."""
    others = {"details": ""} if "help" in changed else {}
    return replace(PARAMETERS[name], **({"words": words} if words else {}), **(others | changed))


QUIET = {"verbose": varied("verbose", help=NO_PROGRESS)}
SETTLED = {**QUIET, "random_state": varied("random_state", help=NOTHING_RANDOM)}
"""`random_state` and `verbose` of an estimator that uses neither."""
