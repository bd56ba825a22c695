"""What an estimator has to say of hidden states, as Arrow tables: why, what is odd, what comes next, new sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_table, as_frame, sequences_library
from softcount.fitted import states as state_answers
from softcount.fitted.classes import SurpriseMeter
from softcount.fitted.states import FittedStates
from softcount.models.base import DeadEnd
from softcount.sequences import Sequences
from softcount.table.schema import apart, labels


class StateReports:
    """Understanding states: what speaks for them, which steps fit nowhere, and what they will show."""

    n_states_: int
    _library: str | None = None  # whose frames were learned from

    @property
    def states_(self) -> np.ndarray:
        """The names of the states: those that y told, the others numbered."""
        return inputs.class_array(self._fitted.names)

    @property
    def _fitted(self) -> FittedStates:
        raise NotImplementedError

    def _sequences(self, X: Any, weights: Any = None) -> Sequences:
        raise NotImplementedError

    def _ask(self, X: Any, question: Any, weights: Any = None) -> tuple[Sequences, list[Any]]:
        raise NotImplementedError

    def explain(self, X: Any, against: Any = None) -> Any:
        """A frame, a line for each step: what speaks for its likeliest state against the runner-up.

        "(before)" is what the steps before say, "(after)" those after, and each column what it adds itself, in nats;
        they add up exactly to the log-odds given the whole sequence. `against` names another state to compare with.
        """
        other = None if against is None else self._state_of(against)
        sequences, found = self._ask(X, lambda fitted, part: state_answers.explained(fitted, part, other))
        joined = {key: np.concatenate([part[key] for part in found]) for key in found[0]}
        joined |= {key: self.states_[joined[key]] for key in ("state", "against")}
        return as_frame(arrow_table(_called(sequences, joined)), sequences_library(X))

    def _state_of(self, name: Any) -> int:
        names = self._fitted.names
        if name not in names:
            raise DataError(f"there is no state {name!r}. The states are: {', '.join(map(str, names))}.")
        return names.index(name)

    def anomaly_score(self, X: Any) -> list[np.ndarray]:
        """How many nats less likely each step is, after those before it, than is usual; an array for each sequence."""
        sequences, found = self._surprises(X)
        return apart_by_sequence(sequences, np.asarray(sum(found.values())))

    def anomalies(self, X: Any, n: int = 10) -> Any:
        """A frame of the n steps that fit worst: sequence, step, score, reason, and what each column adds.

        "(state)" is what the state itself adds: large where it hardly ever follows the states before.
        """
        check_whole("n, the number of steps,", n, 0)
        sequences, found = self._surprises(X)
        score = np.asarray(sum(found.values()))
        worst = np.argsort(-score, kind="stable")[: int(n)]
        names = list(labels(found).values())
        parts = np.stack([part[worst] for part in found.values()], axis=1)
        shown: dict[Any, Any] = {"score": score[worst], "reason": [names[at] for at in parts.argmax(axis=1)]}
        shown |= {key: parts[:, place] for place, key in enumerate(found)}
        return as_frame(arrow_table(_called(sequences, shown, worst)), sequences_library(X))

    def _surprises(self, X: Any) -> tuple[Sequences, dict[Any, np.ndarray]]:
        fitted, sequences = self._fitted, self._sequences(X)
        meter, table, found = SurpriseMeter.of(fitted.shown), fitted.table(sequences), []
        for chunk in sequences.chunks(table):
            try:
                found.append(state_answers.surprises(fitted, meter, chunk, fitted.chain.prepare(chunk)))
            except DeadEnd as end:
                raise end.at(sequences.place(end.row)) from None
        inputs.warn_of_unseen(table)
        return sequences, {key: np.concatenate([part[key] for part in found]) for key in found[0]}

    def forecast(self, X: Any, h: int = 1, level: float = 0.9) -> Any:
        """A frame of the next h steps of every sequence: the likeliest state, and what each column will show.

        Of a number its mean, and `low` and `high` between which it lies with probability `level`; of a discrete column
        the likeliest level and `p`, its probability.
        """
        check_whole("h, the number of steps,", h, 1)
        if not 0 < level < 1:
            raise DataError(f"level is a probability between 0 and 1, not {level!r}.")
        sequences, found = self._ask(X, lambda fitted, part: state_answers.coming_states(fitted, part, int(h)))
        states = np.concatenate(found).reshape(-1, self.n_states_)
        shown: dict[str, Any] = {
            "sequence": [name for name in sequences.names for _ in range(int(h))],
            "ahead": np.tile(np.arange(1, int(h) + 1), len(sequences)),
            "state": self.states_[states.argmax(axis=1)],
            "p(state)": states.max(axis=1),
        }
        coming = state_answers.coming_values(self._fitted, states, float(level))
        table = arrow_table(shown | {apart(name, shown): values for name, values in coming.items()})
        return as_frame(table, sequences_library(X))

    def forecast_proba(self, X: Any, h: int = 1) -> np.ndarray:
        """(sequences x h x states) probability of each state in the next h steps."""
        check_whole("h, the number of steps,", h, 1)
        return np.concatenate(self._ask(X, lambda fitted, part: state_answers.coming_states(fitted, part, int(h)))[1])

    def sample(self, n: int = 1, length: int = 100, start: Any = None, random_state: Any = None) -> Any:
        """A frame of n new sequences of so many steps: sequence, step, state and every column.

        `start` names a state that the sequences begin in.
        """
        check_whole("n, the number of sequences,", n, 0)
        check_whole("length", length, 1)
        fitted, rng = self._fitted, np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        begin = None if start is None else self._state_of(start)
        paths = [_begun(state_answers.drawn_path(fitted, int(length), rng, begin), begin) for _ in range(int(n))]
        path = np.concatenate([*paths, np.zeros(0, dtype=int)])
        shown: dict[str, Any] = {
            "sequence": np.repeat(np.arange(1, int(n) + 1), int(length)),
            "step": np.tile(np.arange(1, int(length) + 1), int(n)),
            "state": self.states_[path],
        }
        cells = state_answers.drawn_cells(fitted, path, rng)
        table = arrow_table(shown | {apart(name, shown): cells[key] for key, name in labels(cells).items()})
        return as_frame(table, self._library)


def _begun(path: np.ndarray, begin: int | None) -> np.ndarray:
    return path if begin is None else np.concatenate([[begin], path[:-1]])


def apart_by_sequence(sequences: Sequences, values: np.ndarray) -> list[np.ndarray]:
    """Values of all steps, sequence by sequence."""
    return np.split(values, sequences.starts[1:-1])


def _called(sequences: Sequences, values: Mapping[Any, Any], rows: np.ndarray | None = None) -> dict[str, Any]:
    """Columns of steps under their names, after those that say which step of which sequence."""
    rows = np.arange(sequences.n_steps) if rows is None else rows
    at = np.searchsorted(sequences.starts, rows, "right") - 1
    shown: dict[str, Any] = {
        "sequence": [sequences.names[place] for place in at.tolist()], "step": rows - sequences.starts[at] + 1,
    }  # fmt: skip
    names = labels(values)
    return shown | {apart(names[key], shown): values[key] for key in values}
