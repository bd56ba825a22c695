"""Mixtures over any table: classes nobody named, found by EM."""

from __future__ import annotations

from typing import Any

from softcount.estimators.components import AUTO, Components


class Mixture(Components):
    """Classes nobody named (AutoClass, latent classes): columns of any kind, independent given the class.

    The number of classes is looked for (`criterion` says how it is chosen, `selection_` shows what was tried) unless
    `n_components` gives it. Several starts are climbed by EM and the best kept; `notes_` and `agreed_` say how many
    reached it. Classes are reported largest first. `init` is "k-means++", "k-means", "random", "agglomerative",
    memberships (rows x groups), a label for each row, a fitted model, or parameters in the shape of `params_` with
    "weights" beside them; `fixed` holds parameters in that shape where they are. With `kinds="text"` documents in a
    list are sorted by what they are about.

    >>> mixture = Mixture(n_components=2, random_state=0).fit({"x": [1.0, 1.1, 1.2, 1.3, 9.0, 9.1]})
    >>> mixture.predict({"x": [1.05, 8.95]})
    array([0, 1])
    """

    def __init__(
        self,
        n_components: int | str = AUTO,
        kinds: Any = None,
        prior: Any = "row",
        estimate: str = "mean",
        init: Any = "k-means++",
        criterion: str = "evidence",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-8,
        accelerate: bool = True,
        assign: str = "soft",
        fixed: Any = None,
        finish: str | None = None,
        half_steps: bool = False,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.kinds = kinds
        self.prior = prior
        self.estimate = estimate
        self.init = init
        self.criterion = criterion
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.assign = assign
        self.fixed = fixed
        self.finish = finish
        self.half_steps = half_steps
        self.missing = missing
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
