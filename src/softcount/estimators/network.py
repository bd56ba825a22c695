"""Bayesian networks as an estimator: learned from tables with missing cells, queried for any node, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

import numpy as np
from msgspec.structs import replace
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from softcount.core.counts import Counts
from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import EmEstimator, TableEstimator, progress, report
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute, needs_all_rows, row_by_row
from softcount.estimators.parameters import check_whole, varied
from softcount.estimators.result_frames import Frame, arrow_table, as_arrow
from softcount.files.bif import read_network, write_network
from softcount.fit import network as network_fit
from softcount.fitted.decisions import BestError
from softcount.fitted.network import FittedNet, as_fitted, re_estimate
from softcount.fitted.network_answers import LikeliestLevels, NodeTable, sampled_query, surprises
from softcount.learn.networks import AUTO, GraphStarts, network_evidence
from softcount.learn.prepare import read_all
from softcount.learn.record import FitRecord, Plan, Stop, retry_wider
from softcount.models.align import align_net_counts, convert_prior_tables, refuse_below_zero, refuse_hidden, unite_nets
from softcount.models.declare import Coded, DeclaredNet, read_kinds
from softcount.models.network import Net
from softcount.networks.elimination import cells_within
from softcount.networks.network import Graph, Network
from softcount.networks.scores import CodeCounts, Dependence, dependence
from softcount.networks.structure_search import bootstrap_edges, tree_edges
from softcount.run.local import Threads
from softcount.sources.frames import is_missing
from softcount.table import Table, open_table, refuse_many_numbers
from softcount.table.column_summary import summarise
from softcount.table.schema import Key, Kind, apart, labels

if TYPE_CHECKING:
    from softcount.report.report import Report

CLASS = "(class)"
"""The node of a class that came without a name."""
STRENGTHS = ("joined", "directed", "compelled")


class BayesNet(EmEstimator, TableEstimator):
    """A Bayesian network of a table's columns, of hidden nodes, and of the class.

    The joint probability of a row is the product over nodes of p(node | parents). The edges are given, or found from
    the rows. Tables are counted, or estimated by EM if cells are missing or nodes are hidden. Any node can be queried
    given any others. A number with categorical children is discretised. Another number with categorical parents has a
    distribution of its kind for each configuration of the parents. A normal number depends linearly on its normal
    parents.

    See Also
    --------
    NaiveBayes : The network in which all columns depend on the class alone.
    AODE : An average over networks with one further parent.
    average : Averages networks by their marginal likelihood.

    References
    ----------
    .. [1] D. Koller and N. Friedman (2009).
       Probabilistic Graphical Models. MIT Press.
    .. [2] D. Heckerman, D. Geiger and D. M. Chickering (1995). "Learning Bayesian networks: the combination of
       knowledge and statistical data". Machine Learning 20, 197-243.
    .. [3] C. K. Chow and C. N. Liu (1968). "Approximating discrete probability distributions with dependence trees".
       IEEE Transactions on Information Theory 14 (3), 462-467.
    .. [4] N. Friedman, D. Geiger and M. Goldszmidt (1997). "Bayesian network classifiers". Machine Learning 29,
       131-163.
    .. [5] S. L. Lauritzen and D. J. Spiegelhalter (1988). "Local computations with probabilities on graphical
       structures and their application to expert systems". Journal of the Royal Statistical Society B 50 (2), 157-224.

    Examples
    --------
    >>> rows = {"Rain": ["yes", "no", "no", None], "Wet": ["yes", "no", None, "yes"]}
    >>> net = BayesNet([("Rain", "Wet")]).fit(rows)
    >>> round(net.query("Rain", {"Wet": "yes"})["yes"], 3)
    0.562
    """

    fitted_: FittedNet
    classes_: Annotated[np.ndarray, "The classes, if the network was fitted with `y`."]
    _arguments: ClassVar = {
        "of": ("str", "Node; by default the class."),
        "other": ("", "A fitted network with the same edges, without hidden nodes."),
    }
    _input_tags: ClassVar = {"allow_nan": True, "string": True, "categorical": True}
    _varied: ClassVar = {
        "criterion": varied("criterion", "bic", "bdeu", help="Score of the edges that edges='search' looks for."),
        "init": varied("init", type="dict, BayesNet or None", help="Tables, or a fitted network, that EM starts from."),
        "prior": varied(
            "prior",
            type="float, str, dict or BayesNet",
            help="Prior counts per category: a number, a word ('row', "
            "'bdeu', ...), priors by node, or another network.",
        ),
    }

    def __init__(  # noqa: PLR0913
        self,
        edges: Any = None,
        hidden: Any = None,
        prior: Any = 1.0,
        estimate: str = "mean",
        init: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        n_init: int = 10,
        accelerate: bool = True,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        kinds: Any = None,
        cut: Any = None,
        equivalent_sample_size: float = 1.0,
        criterion: str = "bic",
        required: Any = (),
        forbidden: Any = (),
        max_parents: int | None = None,
        missing: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the structure, unless it is given, and the tables.

        EM is used if cells are missing or nodes are hidden.

        Parameters
        ----------
        y : array of shape (n_rows,) or str, default=None
            Classes, or the name of the column of `X` that holds them. They become a node, which `predict` predicts.

        Raises
        ------
        DataError
            If the edges contain a cycle or name a column that is not there, or if a table would be too large.
        """
        self._check_settings()
        table, target, classes = self._open(X, y, sample_weight)
        request = self._request(target, classes)
        structure = network_fit.declare_structure(self.edges, target, request.search)
        if structure.graph is not None:
            self._refuse_other_edges(structure.graph)
        with progress(self, request.plan) as plan, Threads(self.n_jobs) as threads:
            fitted = replace(request, plan=plan).learn(table, threads)
        self._refuse_other_edges(fitted.net.graph)
        self._keep(fitted)
        self._keep_rows(table, request)
        return self

    def _open(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Key | None, list[Any] | None]:
        """The table, what the node of the class is called, and its levels where they came as labels."""
        if sparse.issparse(X):
            raise DataError("a network does not take a sparse matrix. Give X.toarray().")
        data = inputs.open_file(inputs.check_rows(self, X, reset=True), self._missing())
        column = y if isinstance(y, str) and inputs.is_table(X) else None
        weights = inputs.read_weights(sample_weight, data)
        classes, codes = (None, None) if y is None or column else inputs.code_weighted_classes(y, data, weights)
        if classes is not None:
            refuse_many_numbers(classes)
        data, weights, codes = inputs.drop_zero_weights(data, weights, codes)
        declared = read_kinds(self.kinds)
        if declared.auto or declared.all_auto:
            raise DataError("kinds: networks do not choose densities automatically ('auto'). Name the kind.")
        forced = inputs.read_kinds_of(data, column) | declared.forced
        levels = {key: own for key, own in self._prior_levels().items() if key in inputs.list_columns(data)}
        opening = partial(
            open_table, data, levels=levels, missing=self._missing(), target=column, labels=codes, weights=weights
        )
        kinds = {key: Kind.CATEGORICAL for key in levels} | forced
        table = opening(kinds=kinds)
        if self.edges is not None and not (isinstance(self.edges, str) and self.edges in network_fit.WORDS):
            # Columns of one value, or that look like names, are left out unless an edge names them.
            named = network_fit.read_graph(self.edges).number
            idle = [spec.key for spec in table.schema.fields if not spec.used and spec.key in named]
            if idle:
                table = opening(kinds=dict.fromkeys(idle, Kind.CATEGORICAL) | kinds)
        inputs.remember_columns(self, table, data)
        target = column
        if y is not None and column is None:
            name = inputs.find_label_name(y, data, declared)
            target = name or apart(CLASS, list(map(str, table.keys)))
        return table, target, classes

    def _prior_levels(self) -> dict[Key, list[Any]]:
        """The levels that a prior, or a network to start from, names: they join those that occur."""
        start = {} if isinstance(self.init, Mapping) else network_fit.named_levels(self.init)
        return {**start, **network_fit.named_levels(self.prior)}

    @property
    def _column_prior(self) -> Any:
        """The prior by column; 1.0 if it is a network, whose tables become prior counts."""
        return 1.0 if isinstance(self.prior, (BayesNet, Network)) else self.prior

    def _request(self, target: Key | None, classes: list[Any] | None) -> network_fit.NetworkRequest:
        stop = Stop(self.max_iter, self.tol, self.accelerate)
        plan = Plan(
            declared=read_kinds(self.kinds), prior=self._column_prior, estimate=self.estimate, stop=stop, target=target
        )
        return network_fit.NetworkRequest(
            plan, self.edges, self._search_settings(), self.hidden, dict(self.cut or {}), self.prior,
            self.equivalent_sample_size,
            GraphStarts(self.n_init, self.random_state, network_fit.make_start(self.init)), classes,
            self._prior_levels().get(target, []),
        )  # fmt: skip

    def _keep(self, fitted: FittedNet) -> None:
        self.fitted_ = fitted
        self._training = None
        if fitted.target is not None and fitted.target in fitted.levels:
            self.classes_ = inputs.make_class_array(list(fitted.levels[fitted.target]))

    def _search_settings(self) -> network_fit.SearchSettings:
        return network_fit.SearchSettings(
            self.criterion, tuple(network_fit.read_graph(self.required).edges if self.required else ()),
            network_fit.read_edges(self.forbidden), self.max_parents, self.equivalent_sample_size,
        )  # fmt: skip

    def _check_settings(self) -> None:
        super()._check_settings()
        self._refuse_idle_sample_size()
        cells_within(self.memory)
        for name, what in (("hidden", "their levels"), ("cut", "where or how often they are cut")):
            if not isinstance(getattr(self, name) or {}, Mapping) and (name, getattr(self, name)) != ("hidden", AUTO):
                raise DataError(f"{name} is a mapping of nodes to {what}, not {getattr(self, name)!r}.")

    def _refuse_other_edges(self, graph: Graph) -> None:
        """Raise an error if edges break `required`, `forbidden` or `max_parents`, which only a search obeys."""
        there = set(graph.edges)
        how = "These settings are for edges='search'."
        for parent, child in network_fit.read_graph(self.required).edges if self.required else ():
            if (parent, child) not in there:
                raise DataError(f"required: the network has no edge from {parent!r} to {child!r}. {how}")
        for parent, child in network_fit.read_edges(self.forbidden):
            if (parent, child) in there:
                raise DataError(f"forbidden: the network has the edge from {parent!r} to {child!r}. {how}")
        for child, parents in zip(graph.names, graph.parents, strict=True):
            if self.max_parents is not None and len(parents) > self.max_parents:
                raise DataError(f"max_parents={self.max_parents}, but {child!r} has {len(parents)} parents. {how}")

    def _refuse_idle_sample_size(self) -> None:
        """Raise an error if an equivalent sample size is set and nothing uses it."""
        if self.equivalent_sample_size == 1.0 or self.criterion == "bdeu":
            return
        other = network_fit.as_fitted_network(self.prior)
        if other is not None and other.counts.rows > 0:
            raise DataError(
                f"equivalent_sample_size={self.equivalent_sample_size!r} does not go with a fitted network as the "
                "prior: its own counts are the weight of the prior. Leave it out, or give a network that was read from "
                "tables."
            )
        words = self.prior.values() if isinstance(self.prior, Mapping) else [self.prior]
        if other is None and not any(isinstance(word, str) and word == "bdeu" for word in words):
            raise DataError(
                f"equivalent_sample_size={self.equivalent_sample_size!r} is for prior='bdeu', for a network as the "
                "prior, or for a search by criterion='bdeu'. Leave it out, or set one of those."
            )

    # -- learning more, and less

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the counts. New categories extend the tables.

        Missing cells and hidden nodes are completed by their expected counts under the network so far.

        Examples
        --------
        >>> net = BayesNet([("Rain", "Wet")]).fit({"Rain": ["yes", "no"], "Wet": ["yes", "no"]})
        >>> net.partial_fit({"Rain": ["yes"], "Wet": ["no"]}).counts_.rows
        3.0
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, y, sample_weight)
        if self.fitted_.net.hidden:
            more = self._count(X, y, sample_weight)
            self._keep(self._estimate(self.fitted_.net, self.fitted_.counts + more))
            return self
        inputs.check_rows(self, X, reset=False)
        return self._add(self._fit_alike(X, y, sample_weight).fitted_)

    def merge(self, other: BayesNet) -> Self:
        """Return a new network with the counts of both."""
        inputs.refuse_unlike(self, other, BayesNet)
        refuse_hidden(self._fitted.net)
        merged = copy(self)
        return merged._add(other.fitted_)

    def forget(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Subtract rows that were learned from.

        Raises
        ------
        DataError
            If a count would fall below zero.
        """
        left = self._fitted.counts - self._count(X, y, sample_weight)
        refuse_below_zero(self._fitted.net, left)
        self._keep(self._estimate(self.fitted_.net, left))
        return self

    def _fit_alike(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """A network of the same edges and bins, of these rows alone; missing cells are completed under this one."""
        fitted = self.fitted_
        kinds = fitted.column_families
        own = {"edges": fitted.net.graph, "cut": dict(fitted.net.cuts), "kinds": kinds, "init": self, "max_iter": 0}
        return type(self)(**self.get_params(deep=False) | own).fit(
            X, y if y is not None else fitted.target, sample_weight
        )

    def _add(self, other: FittedNet) -> Self:
        net = unite_nets(self.fitted_.net, other.net)
        own, theirs = (align_net_counts(x.counts, x.net, net) for x in (self.fitted_, other))
        self._keep(self._estimate(net, own + theirs))
        return self

    def _estimate(self, net: Net, counts: Counts) -> FittedNet:
        known = convert_prior_tables(self.fitted_.imagined.hypers, self.fitted_.net, net)
        prior = self._column_prior
        if isinstance(prior, Mapping):
            prior = {key: own for key, own in prior.items() if key not in known}
        priors = network_fit.network_priors(net, prior, self.equivalent_sample_size)
        return replace(re_estimate(self.fitted_, net, counts, priors, known), record=FitRecord())

    def _count(self, X: Any, y: Any, sample_weight: Any) -> Counts:
        """What rows add to the counts of the network as it is."""
        fitted = self._fitted
        data = inputs.check_rows(self, X, reset=False)
        if y is None and fitted.target is not None and fitted.target in inputs.list_columns(X):
            y = fitted.target
        codes = None if y is None else self._label_codes(y, X)
        table = fitted.table(data, labels=codes, weights=inputs.read_weights(sample_weight, data))
        return fitted.count(table)

    def _label_codes(self, y: Any, X: Any) -> np.ndarray:
        labels = inputs.take_labels(X, y)
        known = {str(level): place for place, level in enumerate(self.classes_.tolist())}
        found = [-1 if is_missing(label) else known.get(str(label)) for label in labels]
        if None in found:
            odd = list(labels)[found.index(None)]
            raise DataError(
                f"row {found.index(None) + 1} has the class {odd!r}, which did not occur in the fit of the network."
            )
        return np.array(found, dtype=np.int32)

    # -- made otherwise than by fitting edges

    @classmethod
    def tan(cls, X: Any, y: Any, **settings: Any) -> Self:
        """Fit a tree-augmented naive Bayes classifier: every column depends on the class and on one other column.

        The tree maximises the sum of the conditional mutual information I(column; parent | class). By default one prior
        row is shared by the categories of each configuration, because the tables are larger than those of naive Bayes.

        Examples
        --------
        >>> rows = {"a": ["x", "x", "y", "y"] * 5, "b": ["u", "v"] * 10, "c": ["u", "v"] * 10}
        >>> net = BayesNet.tan(rows, ["no", "no", "yes", "yes"] * 5)
        >>> net.edges_
        [('(class)', 'a'), ('(class)', 'b'), ('(class)', 'c'), ('b', 'c')]
        >>> net.predict({"a": ["y"], "b": ["u"], "c": ["u"]}).tolist()
        ['yes']
        """
        return cls._find_edges("tan", X, y, prior=settings.pop("prior", "row"), **settings)

    @classmethod
    def chow_liu(cls, X: Any, **settings: Any) -> Self:
        """Fit the tree with the highest likelihood.

        It is the maximum spanning tree of the pairwise mutual information. Columns whose mutual information is 0 get no
        edge.

        Examples
        --------
        >>> rows = {"a": ["x", "x", "y", "y"] * 5, "b": ["u", "v"] * 10, "c": ["u", "v"] * 10}
        >>> BayesNet.chow_liu(rows).edges_
        [('b', 'c')]
        """
        return cls._find_edges("chow-liu", X, None, **settings)

    @classmethod
    def search(cls, X: Any, **settings: Any) -> Self:
        """Search for the network with the best score.

        Parameters
        ----------
        **settings
            Further parameters of the constructor, among them `criterion`, `required`, `forbidden` and `max_parents`.

        Examples
        --------
        >>> rows = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20, "c": ["s", "s", "t", "t"] * 10}
        >>> len(BayesNet.search(rows).edges_)
        1
        """
        return cls._find_edges("search", X, None, **settings)

    @classmethod
    def joint(cls, X: Any, y: Any, **settings: Any) -> Self:
        """Fit the full joint table of the class and all columns.

        Raises
        ------
        DataError
            If the table would be too large.
        """
        return cls._find_edges("joint", X, y, **settings)

    @classmethod
    def _find_edges(cls, word: str, X: Any, y: Any, **settings: Any) -> Self:
        """A fitted network with the edges that were found as its parameter."""
        found = cls(word, **settings).fit(X, y)
        found.edges = found.edges_
        return found

    @classmethod
    def read(cls, path: FilePath) -> Self:
        """Read a network from a BIF file.

        Parameters
        ----------
        path : str or path
            The file, which may be compressed by gzip.
        """
        return cls._of_network(read_network(path))

    @classmethod
    def _of_network(cls, network: Network) -> Self:
        found, fitted = cls(edges=network.graph.edges), as_fitted(network)
        found._keep(fitted)
        found.n_features_in_ = len(fitted.schema.fields)
        found.feature_names_in_ = np.array([str(spec.key) for spec in fitted.schema.fields], dtype=object)
        return found

    def write(self, path: FilePath) -> None:
        """Write the network to a BIF file.

        Parameters
        ----------
        path : str or path
            File to write. It is compressed if the name ends in .gz.

        Raises
        ------
        DataError
            If a node is a number: such a file holds tables of categories only.
        """
        write_network(self.network_, path)

    @property
    def network_(self) -> Network:
        """Graph, categories and tables, as a network file holds them."""
        net, levels = self._fitted.net, self._fitted.levels
        if net.levels_above:
            raise DataError(
                f"{', '.join(map(str, net.levels_above))}: a network file holds tables of categories only. "
                "Cut numbers (cut={...}) or leave them out."
            )
        names = [[str(level) for level in levels[name]] for name in net.graph.names]
        return Network(net.graph, names, self._fitted.compiled[0])

    # -- what was learned

    @property
    def _fitted(self) -> FittedNet:
        check_is_fitted(self, "fitted_")
        room = cells_within(self.memory)
        if self.fitted_.room != room:
            self.fitted_ = replace(self.fitted_, room=room)
        return self.fitted_

    @property
    def nodes(self) -> list[Key]:
        """Names of all nodes."""
        if hasattr(self, "fitted_"):
            return list(self._fitted.net.graph.names)
        if self.edges is None or (isinstance(self.edges, str) and self.edges in network_fit.WORDS):
            raise AttributeError("nodes: the edges are not known before the fit.")
        return list(network_fit.read_graph(self.edges).names)

    edges_: list[tuple[Key, Key]] = attribute("net.graph.edges", "Edges as pairs (parent, child).")

    def table(self, node: Key) -> NodeTable:
        """Return the conditional probability table of a node.

        Parameters
        ----------
        node : str
            Name of a node with categories.

        Raises
        ------
        DataError
            If the node is a number; its parameters are in `params_`.

        Examples
        --------
        >>> net = BayesNet([("Rain", "Wet")], estimate="ml", prior=0).fit({"Rain": ["yes", "no"], "Wet": ["yes", "no"]})
        >>> print(net.table("Wet"))
        Rain     no    yes
        no   1.0000 0.0000
        yes  0.0000 1.0000
        """
        net = self._fitted.net
        place = net.graph.place(node)
        if node not in net.discrete.number:
            raise DataError(f"{node!r} is a number and has no table of levels. Its parameters are params_[{node!r}].")
        known = self._fitted.levels
        parents = {net.graph.names[parent]: known[net.graph.names[parent]] for parent in net.graph.parents[place]}
        return NodeTable(node, parents, known[node], self._fitted.compiled[0][net.discrete.number[node]])

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the rows: exact if they were complete, otherwise by Cheeseman and Stutz."""
        return network_evidence(self._fitted)

    @property
    def class_count_(self) -> np.ndarray:
        """Weight of the rows of each class, shape (n_classes,)."""
        if self._fitted.target is None:
            raise AttributeError("class_count_: the network was learned without a class.")
        return np.asarray(self._fitted.counts[self._fitted.target].sum(axis=0))

    # -- asking

    def query(
        self,
        of: Any = None,
        given: Any = None,
        each: bool = False,
        samples: int | None = None,
        method: str = "weighting",
        random_state: int = 0,
    ) -> Any:
        """Return the distribution of nodes given others.

        Answers are exact (junction tree) unless `samples` is given.

        Parameters
        ----------
        of : str, list of str or None, default=None
            Node. A list asks for the joint distribution of the nodes, None for each node that is not given.
        given : dict, default=None
            Evidence by node: a category, a number, a condition (`between`, `above`, `below`, `any_of`, `not_`), a range
            (low, high), a list of categories, or a dict of categories to likelihoods (virtual evidence).
        each : bool, default=False
            Whether a list asks for the distribution of each node instead of the joint one.
        samples : int, default=None
            Number of samples, for networks in which an exact answer would cost too much.
        method : {'weighting', 'gibbs'}, default='weighting'
            Likelihood weighting, or Gibbs sampling, which suits improbable evidence.
        random_state : int, default=0
            Seed of the samples.

        Returns
        -------
        dict or answer
            Probabilities by category (by tuple of categories for a joint distribution); for a number, an answer with
            `mean`, `variance`, `pdf` and `quantile`; for several nodes one of these by node. Sampled answers have
            `errors`, the standard errors.

        See Also
        --------
        most_probable : The jointly most probable categories.
        do : The network after an intervention.

        Examples
        --------
        >>> net = BayesNet([("Rain", "Wet")]).fit({"Rain": ["yes", "no", "no"], "Wet": ["yes", "no", "yes"]})
        >>> round(net.query("Rain", {"Wet": "yes"})["yes"], 3)
        0.471
        >>> round(net.query(["Rain", "Wet"])["yes", "yes"], 3)
        0.267
        """
        if samples is None:
            return self._fitted.query(of, given, each)
        check_whole("samples", samples, 1)
        return sampled_query(self._fitted, of, given, samples, method, random_state)

    def most_probable(self, given: Any = None) -> LikeliestLevels:
        """Return the jointly most probable categories of all nodes (MAP).

        Parameters
        ----------
        given : dict, default=None
            Evidence by node.

        Examples
        --------
        >>> net = BayesNet([("Rain", "Wet")]).fit({"Rain": ["yes", "no", "no"], "Wet": ["yes", "no", "no"]})
        >>> net.most_probable({"Wet": "yes"}).levels
        {'Rain': 'yes', 'Wet': 'yes'}
        """
        return self._fitted.condition(given).most_probable()

    def independent(self, a: Any, b: Any, given: Any = ()) -> bool:
        """Return whether the graph implies that two nodes are independent given others (d-separation).

        Parameters
        ----------
        a, b : str or list of str
            Nodes.
        given : str or list of str, default=()
            Nodes whose value is known.

        Returns
        -------
        bool
            True if every path between them is blocked.

        Examples
        --------
        >>> net = BayesNet("Rain>Wet, Sprinkler>Wet")
        >>> rows = {"Rain": ["yes", "no", "no"], "Wet": ["yes", "no", "yes"], "Sprinkler": ["no", "no", "yes"]}
        >>> net = net.fit(rows)
        >>> net.independent("Rain", "Sprinkler"), net.independent("Rain", "Sprinkler", given="Wet")
        (True, False)
        """
        known = [given] if isinstance(given, str) else list(given)
        return self._fitted.net.graph.is_separated(a, b, known)

    def dependence(self, X: Any, a: Key, b: Key, given: Any = ()) -> Dependence[Key]:
        """Test on the rows, not on the graph, whether two columns are independent given others.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns)
            Rows. Numbers are discretised as a search for edges does.
        a, b : str
            Columns.
        given : str or list of str, default=()
            Columns to condition on.

        Examples
        --------
        >>> rows = {"a": ["x", "y"] * 10, "b": ["u", "v"] * 10}
        >>> found = BayesNet().dependence(rows, "a", "b")
        >>> round(found.information, 3), found.freedom
        (0.693, 1)
        """
        known = [given] if isinstance(given, str) else list(given)
        rows, _ = clone(self)._code_rows(X, None, None)
        number = {name: place for place, name in enumerate(rows.names)}
        for name in (a, b, *known):
            if name not in number:
                raise DataError(f"the table has no column {name!r}. It has: {', '.join(map(str, rows.names))}.")
        counting = CodeCounts(rows.codes, rows.sizes, rows.weights)
        found = dependence(counting, number[a], number[b], [number[name] for name in known])
        return Dependence(a, b, tuple(known), found.information, found.freedom, found.weight, found.copy)

    def edge_strength(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, replicates: int = 100, exact: bool = False
    ) -> Frame:
        """Return the confidence in each edge: the share of bootstrap samples in which the search finds it.

        Parameters
        ----------
        replicates : int, default=100
            Number of bootstrap samples.
        exact : bool, default=False
            Whether to return the posterior probability of each edge over all trees instead of the bootstrap.

        Returns
        -------
        DataFrame
            A line for each edge. `joined` is the share of samples with the edge in either direction, `directed` in this
            one, and `compelled` with this direction in every equally good network. With `exact` the columns are `node`,
            `other` and `probability`.

        References
        ----------
        .. [1] N. Friedman, M. Goldszmidt and A. Wyner (1999). "Data analysis with Bayesian networks: a bootstrap
           approach". Proceedings of the 15th Conference on Uncertainty in Artificial Intelligence, 196-205.
        .. [2] M. Meila and T. Jaakkola (2006). "Tractable Bayesian learning of tree belief networks". Statistics and
           Computing 16 (1), 77-92.
        """
        rows, target = clone(self)._code_rows(X, y, sample_weight)
        counting, names = CodeCounts(rows.codes, rows.sizes, rows.weights), rows.names
        figures: dict[str, np.ndarray]
        if exact:
            ends, figures = ("node", "other"), {"probability": tree_edges(counting)}
            pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
            pairs.sort(key=lambda pair: -figures["probability"][pair])
        else:
            word = self.edges if isinstance(self.edges, str) and self.edges in network_fit.WORDS else "search"
            if word in ("naive", "joint"):
                raise DataError(f"edges={word!r} do not depend on the rows. Use 'tan', 'chow-liu' or 'search'.")
            found = bootstrap_edges(
                counting, network_fit.make_search(word, rows, target, self._search_settings()), replicates
            )
            ends, figures = ("parent", "child"), {name: getattr(found, name) for name in STRENGTHS}
            pairs = [(int(a), int(b)) for a, b in np.argwhere(found.directed > 0)]
            pairs.sort(key=lambda pair: (-found.joined[pair], -found.directed[pair], pair))
        columns: dict[str, Any] = {end: [names[pair[side]] for pair in pairs] for side, end in enumerate(ends)}
        columns |= {name: [float(values[pair]) for pair in pairs] for name, values in figures.items()}
        return self._result(arrow_table(columns))

    def _code_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Coded, Key | None]:
        """Rows as a search for edges sees them, numbers discretised; and the node of the class."""
        table, target, classes = self._open(X, y, sample_weight)
        request, kept = self._request(target, classes), list[Coded]()

        def keep(found: Coded) -> tuple[Graph, list[str]]:
            kept.append(found)
            return Graph.of([], found.names), []

        def build(opened: Table) -> None:
            with Threads(1) as threads:
                chunks, settled = read_all(opened, request.plan, threads, None)
            request.declare(opened, DeclaredNet(search=keep)).build(settled, chunks.here)

        with Threads(1) as threads:
            retry_wider(table, build, threads, known_classes=False)
        return kept[-1], target

    def do(self, set_to: Mapping[Key, Any] | None = None, **named: Any) -> Self:
        """Return the network after an intervention: edges into the given nodes are removed.

        The answer is causal only if the edges are causal.

        Parameters
        ----------
        set_to : dict, default=None
            Values by node.
        **named
            Values of nodes, as keyword arguments, if their names are Python identifiers.

        References
        ----------
        .. [1] J. Pearl (2009).
           "Causality: Models, Reasoning, and Inference". 2nd edition, Cambridge University Press.

        Examples
        --------
        >>> rows = {"Rain": ["yes", "no", "no"], "Wet": ["yes", "no", "no"]}
        >>> net = BayesNet([("Rain", "Wet")]).fit(rows)
        >>> net.query("Rain")["yes"] == net.do(Wet="yes").query("Rain")["yes"]
        True
        """
        changed = copy(self)
        changed._keep(self._fitted.intervene(cast(dict[Key, Any], {**(set_to or {}), **named})))
        return changed

    # -- whole tables

    def _of(self, of: Key | None) -> Key:
        target = of if of is not None else self._fitted.target
        if target is None:
            raise DataError("name the node to predict: predict(X, 'node'). The network was learned without a class.")
        return target

    @row_by_row
    def predict(self, X: Any, of: Key | None = None) -> np.ndarray:
        """Predict the most probable category of a node, or the expected value of a number, given the rest of each row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Categories or numbers.

        Examples
        --------
        >>> rows = {"Rain": ["yes", "yes", "no", "no"], "Wet": ["yes", "yes", "no", "no"]}
        >>> net = BayesNet([("Rain", "Wet")]).fit(rows)
        >>> net.predict({"Rain": [None, None], "Wet": ["yes", "no"]}, of="Rain").tolist()
        ['yes', 'no']
        """
        node = self._of(of)
        if self._fitted.is_number(node) or node in self._fitted.net.cuts:
            return self._fitted.means(self._read_rows(X), node)
        chosen = self.predict_proba(X, node).argmax(axis=1)
        if node == self._fitted.target:
            return np.asarray(self.classes_[chosen])
        return np.asarray(np.array(list(self._fitted.levels[node]), dtype=object)[chosen])

    @row_by_row
    def predict_proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """Return the probability of every category of a node given the rest of each row.

        Returns
        -------
        ndarray of shape (n_rows, n_categories)
            Probabilities in the order of `classes_`, or of `levels_[of]`.
        """
        table = self._read_rows(X)
        found = self._fitted.proba(table, of=self._of(of))
        inputs.warn_of_unseen(table)
        return found

    @needs_all_rows
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy if `y` is given, otherwise the mean log-probability per row."""
        if y is None or self._fitted.target is None:
            return super().score(X, None, sample_weight)
        return inputs.compute_accuracy(self.predict(X), inputs.check_labels(X, y, self.classes_), sample_weight)

    @row_by_row
    def explain(self, X: Any, of: Key | None = None, against: Any = None) -> Frame:
        """Return what each node adds to the log-odds of the most probable category of a node.

        Nodes are added one after another, parents first. The contribution of a node is the change of the log-odds when
        it is added. The contributions and `(prior)` sum exactly to the log-odds. In a naive Bayes structure they are
        the weights of evidence of the columns.

        Returns
        -------
        DataFrame
            A line for each row, a column for each node.
        """
        table = self._read_rows(X)
        found = self._fitted.explain(table, against, of=self._of(of))
        levels = inputs.make_class_array(list(self._fitted.levels[self._of(of)]))
        return self._result(arrow_table(found.columns(self._fitted, levels)), X)

    def anomalies(self, X: Any, n: int = 10) -> Frame:
        """Return the most anomalous rows.

        Returns
        -------
        DataFrame
            A line for each row, the most anomalous first: `row` (from 0), `score`, `reason` (the node that adds most),
            and what each node adds to the score.
        """
        check_whole("n, the number of rows,", n, 0)
        found = surprises(self._fitted, self._read_rows(X))
        names = list(labels(found).values())
        parts = np.stack(list(found.values()), axis=1)
        score = parts.sum(axis=1)
        worst = np.argsort(-score, kind="stable")[: int(n)]
        shown: dict[str, Any] = {"row": worst, "score": score[worst]}
        shown["reason"] = [names[place] for place in parts[worst].argmax(axis=1)]
        shown |= {apart(name, shown): parts[worst, j] for j, name in enumerate(names)}
        return self._result(arrow_table(shown), X, worst)

    def bayes_error(self, n_samples: int = 100_000, random_state: RandomState = None) -> BestError:
        """Estimate the error rate of the best rule for the class if the network were the truth."""
        target, n_samples = self._of(None), check_whole("n_samples", n_samples, 2)
        if self.fitted_.net.cuts:
            raise DataError(
                "rows drawn from a network hold bins of discretised numbers, which it cannot classify again."
            )
        drawn = as_arrow(self.sample(n_samples, random_state=random_state)).drop_columns([str(target)])
        return BestError.of(iter([self.predict_proba(drawn)]))

    def report(self, X: Any = None, redact: bool = False) -> Report:
        """Return a report on the network with pictures."""
        fitted = self._complete_record()
        if X is None:
            return report.make_report(fitted, None, redact)
        before = fitted.record.table
        summary = summarise(self._read_rows(X).chunks(), fitted.schema, before)
        return report.make_report(fitted, (summary, "the table given"), redact)
