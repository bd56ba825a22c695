"""Hidden Markov models: hidden states, found in sequences of any columns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import EmEstimator, SequenceEstimator, progress
from softcount.estimators.docstrings import SEQUENCE_WEIGHT
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute
from softcount.estimators.parameters import AUTO, check_arguments, check_whole, varied
from softcount.estimators.result_frames import Frame, arrow_table, frame_like
from softcount.files.other_models import open_checkpoint, remove_checkpoint
from softcount.fitted import states as state_answers
from softcount.fitted.classes import SurpriseMeter
from softcount.fitted.states import FittedStates
from softcount.learn.hidden_states import fit_auto_states, fit_states, given_state_start, read_steps
from softcount.learn.initialise import start_levels
from softcount.learn.mixture import Starts
from softcount.learn.record import Plan, Stop, prior_levels
from softcount.models.base import ClassModel, DeadEnd
from softcount.models.declare import read_kinds
from softcount.models.hidden_chain import HiddenChain, Links
from softcount.run.local import Threads
from softcount.sequences import Sequences, open_sequences
from softcount.table import code_labels
from softcount.table.schema import Key, Kind, apart, labels

LEFT_RIGHT = "left-right"
STARTS = ("k-means++", "k-means", "random")


def read_links(states: int | None, transitions: Any, first: Any, tied: Any) -> Links:
    """Which states may come first, which may follow which, and which share their distributions.

    Parameters that make no sense raise an error. If the number of states is to be chosen, only this check matters.
    """
    free = Links.free(states or 1)
    nexts, firsts, shown = free.nexts, free.firsts, free.shown
    if isinstance(transitions, str):
        if transitions != LEFT_RIGHT:
            raise DataError(f"transitions={transitions!r} is not known. Use {LEFT_RIGHT!r} or a matrix.")
        nexts, firsts = tuple(tuple(range(state, len(nexts))) for state in range(len(nexts))), (0,)
    elif transitions is not None:
        try:
            matrix = np.asarray(transitions, dtype=float)
        except (TypeError, ValueError):
            raise DataError("transitions must be a matrix of numbers; zero means an impossible transition.") from None
        if matrix.shape != (states, states) or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise DataError(
                f"transitions must be {states} x {states}, zero for impossible transitions and above zero elsewhere, "
                f"not an array of shape {matrix.shape}."
            )
        if not matrix.any(axis=1).all():
            stuck = int(np.argmin(matrix.any(axis=1)))
            raise DataError(f"transitions: nothing may follow state {stuck}. Allow at least the transition to itself.")
        nexts = tuple(tuple(np.flatnonzero(row).tolist()) for row in matrix)
    if first is not None:
        given, most = np.atleast_1d(np.asarray(first)), np.inf if states is None else states - 1
        if not given.size or given.dtype.kind not in "iu" or given.min() < 0 or given.max() > most:
            up_to = "" if states is None else f" to {states - 1}"
            raise DataError(f"first has the numbers of states that may come first, 0{up_to}, not {first!r}.")
        firsts = tuple(sorted(set(given.tolist())))
    if tied is not None:
        if isinstance(tied, str) or len(list(tied)) != states:
            raise DataError(
                f"tied has a word or number for each of {states} states: those with the same share distributions."
            )
        number: dict[Any, int] = {}
        shown = tuple(number.setdefault(word, len(number)) for word in tied)
    return Links(firsts, nexts, shown)


class HiddenMarkov(SequenceEstimator, EmEstimator):
    """Hidden Markov model: each step of a sequence has a hidden state, which depends on the state before it.

    The probability of a sequence is the sum over all paths of hidden states: p(first state), times p(next state |
    state) and p(cells | state) at every step. It is fitted by EM (Baum-Welch). Steps have columns of any kind, missing
    cells, and blocks such as `kinds={("x", "y"): "multinormal"}`. Sequences may have any form that `read_sequences`
    accepts. The state with the most steps is reported first. `selection_` shows which numbers of states were tried.

    See Also
    --------
    MarkovChain : A chain of observed symbols.
    Mixture : Components without an order of rows.
    read_sequences : Reads sequences from tables, files and folders.

    References
    ----------
    .. [1] L. R. Rabiner (1989). "A tutorial on hidden Markov models and selected applications in speech recognition".
       Proceedings of the IEEE 77 (2), 257-286.
    .. [2] L. E. Baum, T. Petrie, G. Soules and N. Weiss (1970). "A maximization technique occurring in the statistical
       analysis of probabilistic functions of Markov chains". Annals of Mathematical Statistics 41 (1), 164-171.

    Examples
    --------
    >>> calm, storm = [1.0, 1.2, 0.9, 1.1] * 5, [9.0, 8.8, 9.3, 9.1] * 5
    >>> model = HiddenMarkov(2, random_state=0).fit([calm + storm, calm, storm + calm])
    >>> model.predict([[1.1, 1.0, 9.2, None, 9.0]])
    [array([0, 0, 1, 1, 1])]
    """

    fitted_: FittedStates
    _arguments: ClassVar = {
        "X": ("list, DataFrame, Arrow table, file name or `read_sequences(...)`", "Sequences."),
        "sample_weight": SEQUENCE_WEIGHT,
        "n_samples": ("int", "Number of sequences."),
        "h": ("int", "Number of steps."),
    }
    _watch: Any = None
    """A function that is called after every iteration, for progress."""
    _keep_checkpoint = False
    """Whether the checkpoint stays after the fit, until the caller has saved the model."""

    _varied: ClassVar = {
        "criterion": varied("criterion", "evidence", "bic", help="Criterion for the number of states."),
        "init": varied(
            "init",
            type="str, dict or model",
            help="Initialisation: 'k-means++', 'k-means', 'random', "
            "parameters in the shape of `parameters_`, or a fitted model.",
        ),
    }

    def __init__(  # noqa: PLR0913
        self,
        n_states: int | str = AUTO,
        kinds: Any = None,
        prior: Any = "row",
        estimate: str = "mean",
        transitions: Any = None,
        first: Any = None,
        tied: Any = None,
        init: Any = "k-means++",
        criterion: str = "evidence",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-8,
        accelerate: bool = True,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
        checkpoint: FilePath | None = None,
    ) -> None:
        self._keep_parameters(locals())

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the states.

        Parameters
        ----------
        X : list, DataFrame, Arrow table, file name or `read_sequences(...)`
            Sequences. Cells of steps may be missing.
        y : list of lists or str, default=None
            States of some steps, None if unknown, as a list for each sequence; or the name of the column that holds
            them. The states of these steps are fixed, and state i is `states_[i]`.

        Raises
        ------
        DataError
            If the transitions forbid a sequence, or `y` does not have the shape of `X`.
        """
        self._check_settings()
        sequences = open_sequences(X, weights=sample_weight, missing=self._missing())
        named, codes, target = _read_known_states(y, sequences)
        sequences = sequences.without_zeros()
        plan = Plan(
            declared=read_kinds(self.kinds), prior=self.prior, estimate=self.estimate, target=target, named=named,
            stop=Stop(self.max_iter, self.tol, self.accelerate), watch=self._watch,
        )  # fmt: skip
        given = self.init if isinstance(self.init, Mapping) else {}
        levels = start_levels({k: v for k, v in given.items() if isinstance(v, Mapping)}) | prior_levels(self.prior)
        declared, keys = plan.declared, sequences.source.keys
        forced = dict(declared.forced)
        if declared.everything is not None:
            forced = {key: declared.everything.facts.reads for key in keys if key != target}
        kinds = {key: Kind.CATEGORICAL for key in levels} | forced
        table = sequences.table(kinds=kinds, levels=levels, missing=self._missing(), target=target, labels=codes)
        checkpoint = inputs.path_of(self.checkpoint)
        with (
            Threads(self.n_jobs) as threads,
            progress(self, plan) as plan,
            nullcontext() if checkpoint is None else open_checkpoint(checkpoint) as log,
        ):
            plan = replace(plan, log=log)
            rows, wanted = read_steps(sequences, table, plan, threads), self._n_states()
            starts = Starts(wanted or 1, self._start(), self.n_init, self.random_state)
            if wanted is None:
                found = fit_auto_states(rows, self._build, plan, starts, threads, self.criterion)
            else:
                found = fit_states(rows, self._build, plan, starts, threads)
        if checkpoint is not None and not (found.interrupted or self._keep_checkpoint):
            remove_checkpoint(checkpoint)
        columns = [spec.key for spec in table.schema.fields]
        self.n_features_in_ = len(columns)
        if all(isinstance(key, str) for key in columns):
            self.feature_names_in_ = np.array(columns, dtype=object)
        self._keep(replace(FittedStates.of(found), target=target))
        self._library = inputs.find_library(X[0] if isinstance(X, (list, tuple)) and X else X)
        return self

    def _build(self, one: ClassModel, states: int) -> HiddenChain:
        links = read_links(states, self.transitions, self.first, self.tied)
        return HiddenChain(one.schema, one.leaves, links, one.kernels)

    def _n_states(self) -> int | None:
        """The number of states: as given, as other parameters imply, or None if it is to be chosen."""
        if self.n_states != AUTO:
            return int(self.n_states)
        given = self.init if isinstance(self.init, Mapping) else {}
        for part in (self.transitions, given.get("transitions"), self.tied, given.get("first")):
            if part is not None and not isinstance(part, str):
                return len(part)
        fitted = self._model_of_init()
        return None if fitted is None else fitted.n_states

    def _model_of_init(self) -> FittedStates | None:
        fitted = getattr(self.init, "fitted_", None)
        return fitted if isinstance(fitted, FittedStates) else None

    def _start(self) -> Any:
        if isinstance(self.init, str):
            if self.init not in STARTS:
                words = ", ".join(map(repr, STARTS))
                raise DataError(f"init={self.init!r} is not known. Use {words}, parameters or a fitted model.")
            return self.init
        if self._model_of_init() is not None:
            return partial(given_state_start, self.init.parameters_)
        if isinstance(self.init, Mapping):
            return partial(given_state_start, self.init)
        raise DataError(f"init is a word, parameters by column or a fitted model, not {self.init!r:.60}.")

    def _check_settings(self) -> None:
        super()._check_settings()
        read_links(self._n_states(), self.transitions, self.first, self.tied)

    # -- learning more

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add the expected counts of further sequences, computed under the model so far.

        Parameters
        ----------
        y : list of lists or str, default=None
            Known states; in the first call only.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, y, sample_weight)
        if y is not None:
            raise DataError("partial_fit adds sequences whose states are not known. Use fit for known ones.")
        self._keep(self.fitted_.with_counts(self.fitted_.counts + self._count_steps(X, sample_weight)))
        return self

    def _count_steps(self, X: Any, sample_weight: Any) -> Counts:
        found: Counts = reduce(add, self._ask(X, FittedStates.count, sample_weight)[1])
        return found

    # -- what was learned

    n_states_: int = attribute("n_states", "Number of states: the given one, or the one chosen.")
    states_: np.ndarray = attribute(
        lambda fitted: inputs.make_class_array(fitted.names), "Names of the states: those of `y`, the others numbered."
    )
    first_: np.ndarray = attribute("first", "Probability of each state to be the first, shape (n_states,).")
    transitions_: np.ndarray = attribute(
        "transitions",
        "Probability of the next state (columns) given the current one (rows), shape (n_states, n_states).",
    )
    durations_: np.ndarray = attribute(
        "durations", "Expected number of steps of a stay in each state, shape (n_states,)."
    )
    occupied_: np.ndarray = attribute(
        "occupied", "Expected number of steps of the fit in each state, shape (n_states,)."
    )
    agreed_: tuple[int, int] | None = attribute(
        "agreed", "Two numbers: initialisations that reached the best optimum, and all initialisations."
    )

    @property
    def parameters_(self) -> dict[Key, Any]:
        """All parameters in the shape that `init` takes: `first`, `transitions`, and the distributions by column."""
        shown = self._fitted.shown.params
        return {"first": self.first_, "transitions": self.transitions_, **shown}

    @property
    def selection_(self) -> Frame | None:
        """A line for each number of states that was tried, with its criteria; None if the number was given."""
        trials = self._fitted.selection
        if trials is None:
            return None
        shown = [part for part in trials[0].__struct_fields__ if part not in ("icl", "cv")]
        names = {name: "states" if name == "classes" else name for name in shown}
        columns = {names[name]: [getattr(trial, name) for trial in trials] for name in shown}
        return self._result(arrow_table(columns))

    def stationary(self) -> dict[Any, float]:
        """Return the stationary distribution: the long-run share of steps in each state.

        Examples
        --------
        >>> model = HiddenMarkov(2, random_state=0).fit([([1.0, 1.1, 0.9] * 2 + [9.0, 9.1, 8.9]) * 9])
        >>> {state: round(share, 2) for state, share in model.stationary().items()}
        {0: 0.65, 1: 0.35}
        """
        return dict(zip(self._fitted.names, map(float, self._fitted.stationary), strict=True))

    # -- asking

    def _ask(self, X: Any, question: Any, weights: Any = None) -> tuple[Sequences, list[Any]]:
        """The sequences, and the answers for each part of them; warns about unseen categories."""
        fitted, sequences = self._fitted, open_sequences(X, weights=weights, missing=self._missing())
        table = fitted.table(sequences)
        with Threads(self.n_jobs) as threads:
            found = fitted.each(sequences, table, threads, lambda part: question(fitted, part))
        inputs.warn_of_unseen(table)
        return sequences, found

    def predict(self, X: Any) -> list[np.ndarray]:
        """Predict the most probable path of states (Viterbi).

        Returns
        -------
        list of ndarray of shape (n_steps,)
            States, an array for each sequence.

        References
        ----------
        .. [1] A. J. Viterbi (1967). "Error bounds for convolutional codes and an asymptotically optimum decoding
           algorithm". IEEE Transactions on Information Theory 13 (2), 260-269.

        Examples
        --------
        >>> model = HiddenMarkov(2, random_state=0).fit([[1.0, 1.1, 0.9] * 5 + [9.0, 9.1, 8.9] * 4])
        >>> model.predict([[1.0, 1.1, 9.0, None]])
        [array([0, 0, 1, 1])]
        """
        sequences, found = self._ask(X, FittedStates.best_paths)
        return _split(sequences, self.states_[np.concatenate([path for path, _ in found])])

    def predict_proba(self, X: Any, filtered: bool = False) -> list[np.ndarray]:
        """Return the probability of each state at each step (forward-backward).

        Parameters
        ----------
        filtered : bool, default=False
            Whether to condition on the steps so far instead of on the whole sequence.

        Returns
        -------
        list of ndarray of shape (n_steps, n_states)
            Probabilities, an array for each sequence.

        Examples
        --------
        >>> model = HiddenMarkov(2, random_state=0).fit([[1.0, 1.1, 0.9] * 5 + [9.0, 9.1, 8.9] * 4])
        >>> model.predict_proba([[1.0, None, 9.0]])[0].round(2)
        array([[1.  , 0.  ],
               [0.49, 0.51],
               [0.  , 1.  ]])
        """
        question = (lambda fitted, part: fitted.filter(part)[0]) if filtered else FittedStates.smooth
        sequences, found = self._ask(X, question)
        return _split(sequences, np.concatenate(found))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-probability of each sequence; a density if there are numbers."""
        return np.concatenate(self._ask(X, FittedStates.sequence_logs)[1])

    def _total(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        sequences, found = self._ask(X, FittedStates.sequence_logs, sample_weight)
        weights = np.ones(len(sequences)) if sequences.weights is None else sequences.weights
        return float(weights @ np.concatenate(found)), float(weights.sum()), float(weights @ sequences.lengths)

    def explain(self, X: Any, against: Any = None) -> Frame:
        """Return the reasons for the most probable state of each step against the second most probable one.

        Returns
        -------
        DataFrame
            A line for each step. `(before)` is the evidence of the previous steps, `(after)` that of the later steps,
            and each column has its own evidence, in nats. The sum is the log-odds given the whole sequence.
        """
        other = None if against is None else self._state_of(against)
        sequences, found = self._ask(X, lambda fitted, part: state_answers.explain_states(fitted, part, other))
        joined = {key: np.concatenate([part[key] for part in found]) for key in found[0]}
        joined |= {key: self.states_[joined[key]] for key in ("state", "against")}
        return _make_step_frame(X, sequences, joined)

    def _state_of(self, name: Any) -> int:
        names = self._fitted.names
        if name not in names:
            raise DataError(f"there is no state {name!r}. The states are: {', '.join(map(str, names))}.")
        return int(names.index(name))

    def anomaly_score(self, X: Any) -> list[np.ndarray]:
        """Return how much less likely each step is than usual, given the steps before it.

        Returns
        -------
        list of ndarray of shape (n_steps,)
            Scores in nats, an array for each sequence; larger is more anomalous.

        Examples
        --------
        >>> model = HiddenMarkov(2, random_state=0).fit([[1.0, 1.1, 0.9] * 5 + [9.0, 9.1, 8.9] * 4])
        >>> int(model.anomaly_score([[1.0, 1.1, 5.0]])[0].argmax())
        2
        """
        sequences, found = self._find_surprises(X)
        return _split(sequences, np.asarray(sum(found.values())))

    def anomalies(self, X: Any, n: int = 10) -> Frame:
        """Return the most anomalous steps.

        Parameters
        ----------
        n : int, default=10
            Number of steps to return.

        Returns
        -------
        DataFrame
            A line for each step, the most anomalous first: `sequence`, `step`, `score`, `reason` (the column that adds
            most), and what each column adds. `(state)` is large if the state hardly ever follows the one before.
        """
        n = check_whole("n, the number of steps,", n, 0)
        sequences, found = self._find_surprises(X)
        score = np.asarray(sum(found.values()))
        worst = np.argsort(-score, kind="stable")[:n]
        names = list(labels(found).values())
        parts = np.stack([part[worst] for part in found.values()], axis=1)
        shown: dict[Any, Any] = {"score": score[worst], "reason": [names[at] for at in parts.argmax(axis=1)]}
        shown |= {key: parts[:, place] for place, key in enumerate(found)}
        return _make_step_frame(X, sequences, shown, worst)

    def _find_surprises(self, X: Any) -> tuple[Sequences, dict[Any, np.ndarray]]:
        fitted, sequences = self._fitted, open_sequences(X, missing=self._missing())
        meter, table, found = SurpriseMeter.of(fitted.shown), fitted.table(sequences), []
        for chunk in sequences.chunks(table):
            try:
                found.append(state_answers.surprises(fitted, meter, chunk, fitted.chain.prepare(chunk)))
            except DeadEnd as end:
                raise end.at(sequences.place(end.row)) from None
        inputs.warn_of_unseen(table)
        return sequences, {key: np.concatenate([part[key] for part in found]) for key in found[0]}

    def forecast(self, X: Any, h: int = 1, level: float = 0.9) -> Frame:
        """Forecast the next steps of every sequence.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the intervals of numbers.

        Returns
        -------
        DataFrame
            A line for each sequence and step: the most probable state and its probability; for a number, its mean and
            the ends `low` and `high` of its interval; for a category, the most probable one and its probability.

        Examples
        --------
        >>> import pandas as pd
        >>> visits = [pd.DataFrame({"x": [1.0, 1.1, 0.9] * 5 + [9.0, 9.1, 8.9] * 4})]
        >>> model = HiddenMarkov(2, random_state=0).fit(visits)
        >>> model.forecast(visits, h=2)[["ahead", "state"]]
           ahead  state
        0      1      1
        1      2      1
        """
        if not 0 < level < 1:
            raise DataError(f"level is a probability between 0 and 1, not {level!r}.")
        sequences, found = self._forecast_states(X, h)
        states, h = found.reshape(-1, self.n_states_), found.shape[1]
        shown: dict[str, Any] = {
            "sequence": [name for name in sequences.names for _ in range(h)],
            "ahead": np.tile(np.arange(1, h + 1), len(sequences)),
            "state": self.states_[states.argmax(axis=1)],
            "p(state)": states.max(axis=1),
        }
        coming = state_answers.forecast_values(self._fitted, states, float(level))
        table = arrow_table(shown | {apart(name, shown): values for name, values in coming.items()})
        return frame_like(X, table)

    def forecast_proba(self, X: Any, h: int = 1) -> np.ndarray:
        """Return the probability of each state in the next steps of every sequence.

        Returns
        -------
        ndarray of shape (n_sequences, h, n_states)
            Probabilities.
        """
        return self._forecast_states(X, h)[1]

    def _forecast_states(self, X: Any, h: int) -> tuple[Sequences, np.ndarray]:
        h = check_whole("h, the number of steps,", h, 1)
        sequences, found = self._ask(X, lambda fitted, part: state_answers.forecast_states(fitted, part, h))
        return sequences, np.concatenate(found)

    @check_arguments
    def sample(
        self, n_samples: int = 1, length: int = 100, start: Any = None, random_state: RandomState = None
    ) -> Frame:
        """Draw sequences from the model.

        Parameters
        ----------
        length : int, default=100
            Steps of each sequence.
        start : str or int, default=None
            State that every sequence begins in.

        Returns
        -------
        DataFrame or Arrow table
            A line for each step: sequence, step, state and every column.
        """
        n_samples, length = check_whole("n_samples", n_samples, 0), check_whole("length", length, 1)
        fitted, rng = self._fitted, inputs.make_generator(random_state)
        begin = None if start is None else self._state_of(start)
        paths = [state_answers.draw_path(fitted, length, rng, begin) for _ in range(n_samples)]
        if begin is not None:
            paths = [np.concatenate([[begin], path[:-1]]) for path in paths]
        path = np.concatenate([*paths, np.zeros(0, dtype=int)])
        shown: dict[str, Any] = {
            "sequence": np.repeat(np.arange(1, n_samples + 1), length),
            "step": np.tile(np.arange(1, length + 1), n_samples),
            "state": self.states_[path],
        }
        cells = state_answers.draw_cells(fitted, path, rng)
        table = arrow_table(shown | {apart(name, shown): cells[key] for key, name in labels(cells).items()})
        return self._result(table)


def _split(sequences: Sequences, values: np.ndarray) -> list[np.ndarray]:
    """Values of all steps, sequence by sequence."""
    return np.split(values, sequences.starts[1:-1])


def _make_step_frame(X: Any, sequences: Sequences, values: Mapping[Any, Any], rows: np.ndarray | None = None) -> Any:
    """A frame of columns of steps, after those that say which step of which sequence."""
    rows = np.arange(sequences.n_steps) if rows is None else rows
    at = np.searchsorted(sequences.starts, rows, "right") - 1
    own: dict[str, Any] = {
        "sequence": [sequences.names[place] for place in at.tolist()], "step": rows - sequences.starts[at] + 1,
    }  # fmt: skip
    names = labels(values)
    return frame_like(X, arrow_table(own | {apart(names[key], own): values[key] for key in values}))


def _read_known_states(y: Any, sequences: Sequences) -> tuple[list[Any] | None, np.ndarray | None, Key | None]:
    """The names of known states and each step's code, or the column they are in."""
    if y is None or isinstance(y, str):
        return None, None, y
    given = [list(part) for part in y]
    if len(given) != len(sequences):
        raise DataError(f"y is of {len(given)} sequences, but there are {len(sequences)}. Give a list for each.")
    for at, (part, length) in enumerate(zip(given, sequences.lengths, strict=True)):
        if len(part) != length:
            raise DataError(f"{sequences.called(at)} has {length} steps, but y has {len(part)} states for it.")
    heavy = [True] * len(given) if sequences.weights is None else (sequences.weights > 0).tolist()
    heavy = heavy if any(heavy) else [True] * len(given)
    classes, codes = code_labels([state for part, kept in zip(given, heavy, strict=True) if kept for state in part])
    return (list(classes), codes, None) if len(classes) else (None, None, None)
