"""Reading, learning, loading and saving, as the commands want it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcount.cli.data_input import InputFormat, TextSettings, may_be_lines, source_like, source_of
from softcount.errors import DataError, ModelFileError
from softcount.records import dataclass
from softcount.run.progress import Tell, keep_quiet, starts_told

if TYPE_CHECKING:
    import numpy as np

    from softcount.cli.network_options import NetRequest
    from softcount.evaluate.folds import FoldsBeside
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted_model import Fitted
    from softcount.fitted.fitted_net import FittedNet
    from softcount.learn.climb_log import ClimbLog
    from softcount.learn.fit_record import FitRecord, Provenance
    from softcount.learn.kmeans.fit_kmeans import Centres
    from softcount.learn.learned import Learned
    from softcount.learn.plan import Plan
    from softcount.models.declared import Declared
    from softcount.run.threads import Threads
    from softcount.sources.source import Source
    from softcount.table import Key, Schema, Table
    from softcount.table.column_summary import PassSummary, TableSummary

DEFAULT_FOLDS = 5
DEFAULT_STARTS = 10
DEFAULT_CRITERION = "evidence"
MOST_MEMBERSHIPS = 10_000_000
"""Rows times classes up to which the entropy of a mixture's memberships is told."""
READING = "reading"


UNTRIED = (
    "how good the model is on rows held out was not found: with rows without a label, or holes in a block of columns, "
    "every fold takes EM, which needs all rows on one machine. Leave out --engine for that."
)


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What the person asked `fit` for; None where the choice is ours."""

    data: str
    target: str | None = None
    classes: int | str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    form: InputFormat = field(default_factory=InputFormat)
    weight: str | None = None
    prior: Any = None
    estimate: str = "mean"
    holdout: float | None = None
    folds: int | None = None
    calibrate: str | None = None
    seed: int = 0
    criterion: str | None = None
    starts: int | None = None
    jobs: int | None = None
    spill: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    engine: str | None = None
    texts: TextSettings = field(default_factory=TextSettings)
    unlabelled_weight: float | None = None
    net: NetRequest | None = None
    expert: str | None = None
    model: str | None = None
    command: str = ""

    @property
    def of_naive_bayes(self) -> str | None:
        """An option that asks something of naive Bayes, so that it tells the classes unless somebody says otherwise."""
        asked = {name: getattr(self, name) for name in ("prior", "expert", "calibrate", "unlabelled_weight")}
        asked["estimate"] = None if self.estimate == "mean" else self.estimate
        return next((f"--{name.replace('_', '-')}" for name, value in asked.items() if value is not None), None)

    @property
    def decides(self) -> bool:
        """Whether rows held out decide what tells the classes."""
        return self.of_naive_bayes is None if self.model is None else self.model == "auto"

    @property
    def looks_for_classes(self) -> bool:
        """Whether something was asked that only makes sense where the classes are not known."""
        return self.model in ("mixture", "network") or any(
            x is not None for x in (self.classes, self.criterion, self.starts)
        )


# -- reading


def declared(kinds: Mapping[Any, Any]) -> Declared:
    """What --kind asked for. A block's columns are divided by commas; no column at all stands for every other."""
    from softcount.families import FAMILIES
    from softcount.models.declared import read_kinds

    named = {key: kind for key, kind in kinds.items() if key}
    said = read_kinds({FAMILIES[kind].key_in(key) if kind in FAMILIES else key: kind for key, kind in named.items()})
    return replace(said, all_auto=len(named) < len(kinds))


def chosen(table: Table, asked: Declared, runner: Threads, request: FitRequest | None = None) -> tuple[Table, Declared]:
    """The table and what is asked of its columns, once rows have chosen the densities that were left to them."""
    if not asked.leaves_open:
        return table, asked
    from softcount.learn.density_choice import decided
    from softcount.learn.plan import Plan

    plan = Plan(asked) if request is None else plan_of(request, asked)
    table, plan = decided(table, plan, runner, known_classes=request is None or request.target is not None)
    return table, plan.declared


def open_data(data: str, asked: Declared, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    """The table to learn from, its first rows looked at."""
    with may_be_lines(data, form):
        return table_of(source_of(data, form, bytes_read(tell)), asked, form)


def table_of(source: Source, asked: Declared, form: InputFormat, **sides: Any) -> Table:
    """The table of a source, read as it was asked."""
    from softcount.table import open_table

    kinds: Any = asked.forced
    return open_table(source, kinds=kinds, missing=form.words(), **sides)


def open_like(fitted: Learned, data: str, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    """A table to be answered for, read as the model's own was; or documents, where the model reads text."""
    from softcount.table import open_table

    with may_be_lines(data, form) if fitted.schema.texts else nullcontext():
        source = source_like(fitted, data, form, bytes_read(tell))
        return open_table(source, schema=fitted.schema, missing=form.words(fitted.schema.missing))


def bytes_read(tell: Tell) -> Callable[[int, int], None]:
    """What to call as bytes are read."""
    return lambda done, total: tell(READING, done, total)


def read_through(table: Table) -> tuple[Schema, int, dict[Key, int], list[str]]:
    """The schema once every row has been met, the number of rows, the missing cells of each column, and notes."""
    from softcount.run.threads import Threads
    from softcount.table import Contradiction

    while True:
        try:
            with Threads() as threads:
                table.gather_words(threads.map)
                rows = sum(threads.map(lambda task: task().n_rows, table.tasks()))
            return table.settle().schema, rows, table.missing, table.notes
        except Contradiction as why:
            table = table.widened(why)


# -- learning


def fit(request: FitRequest, tell: Tell) -> tuple[Fitted, Evaluation | None, int, Any]:
    """The model that was asked for, how it did on unseen rows (None: not tried), and how many rows it saw.

    Last comes what an expert says beside the data, where one was asked.
    """
    with may_be_lines(request.data, request.form):
        request, asked, table = open_request(request, tell)
    if (why := table.schema.unsaveable) is not None:
        raise DataError(f"{request.data}: {why}")
    from softcount.table.column_summary import PassSummary

    with runner_for(request) as threads:
        table, asked = chosen(table, asked, threads, request)
        summary = PassSummary()
        table = table.watched(summary)
        folds = _folds_beside(request, table)
        fitted, beside = _learned(request, asked, table, threads, tell, folds), None
        summary.closed = True
        if request.expert is not None and not fitted.interrupted:
            request, table, beside = _with_expert(request, fitted, table, asked)
            fitted = _learned(request, asked, table, threads, tell)
        tried = None
        if request.target is not None and not fitted.interrupted:
            fitted, tried = _told(request, asked, fitted, table, threads, folds)
            fitted = _with_doubts(request, fitted, table, tried)
        fitted = replace(fitted, record=fit_record(request, fitted, table, threads, tried, summary))
        return fitted, tried, table.n_rows or 0, beside


def runner_for(request: FitRequest) -> AbstractContextManager[Any]:
    """What runs the passes: threads of this process, or the workers of an engine."""
    if request.engine is None:
        from softcount.run.threads import Threads

        return Threads(request.jobs, request.spill)
    name, _, address = request.engine.partition("=")
    if name == "spark":
        from softcount.cli import NoPandas
        from softcount.run.spark_engine import session_at

        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not NoPandas]  # Spark asks for pandas
        return session_at(address or None, request.jobs)
    from softcount.run.dask_engine import connected

    return connected(address or None, request.jobs)


def _told(
    request: FitRequest, asked: Declared, fitted: Fitted, table: Table, threads: Threads, folds: FoldsBeside | None
) -> tuple[Fitted, Evaluation | None]:
    """The model with what was asked to tell its classes, and how that did on rows held out."""
    if request.model == "averaged":
        return _averaged(request, fitted, table, threads)
    calibrated = None if fitted.calibration is None else request.calibrate
    tried = _evaluated(request, replace(plan_of(request, asked), beside=folds), table, threads, calibrated)
    if request.decides:
        return _decided(request, fitted, table, threads, tried)
    if request.model is None:
        note = f"{request.of_naive_bayes} is for naive Bayes, which tells the classes as the textbook has it."
        fitted = replace(fitted, notes=[*fitted.notes, note])
    return fitted, tried


def fit_record(
    request: FitRequest,
    fitted: Learned,
    table: Table,
    threads: Threads,
    tried: Evaluation | None,
    watched: PassSummary | None = None,
) -> FitRecord:
    """What a report will need: how the model did, what its table looks like, and where it comes from.

    `watched` was shown the rows as the model learned from them.
    """
    from softcount.learn.fit_record import FitRecord as Record

    origin = provenance_of(request)
    criterion = None if fitted.selection is None else request.criterion or DEFAULT_CRITERION
    starts, gains = ((), ()) if fitted.record is None else (fitted.record.starts, fitted.record.gains)
    seen = None if watched is None or table.has_weights or fitted.interrupted else watched.under(fitted.schema)
    # Rows that an engine has are not read here to be summarised.
    summary = None if request.engine is not None else seen or _summary(request, fitted, table, threads)
    return Record(tried, summary, origin, criterion, starts, gains)


def provenance_of(request: FitRequest) -> Provenance:
    """Where a model comes from."""
    from softcount import __version__
    from softcount.files.data_digest import data_digest
    from softcount.learn.fit_record import Provenance as Origin

    digest = None if request.engine is not None else data_digest(request.data)  # which reads all that it holds
    return Origin(__version__, request.command, request.seed, request.data, digest)


def _summary(request: FitRequest, fitted: Learned, table: Table, threads: Threads) -> TableSummary | None:
    """What the columns look like; None where the fit was interrupted, or there are none but one sparse block."""
    from softcount.table.column_summary import summarise

    if fitted.interrupted or table.bag_width is not None:
        return None
    # Rows that are held are not read again; which class a row has does not matter.
    settled = None if table.has_weights else replace(table.settle(), label_remap=None)
    if settled is not None and settled.schema == fitted.schema:
        return summarise(map(settled.recoded, table.chunks(threads.map)), fitted.schema)
    return summarise(_under_schema(request, fitted, table).chunks(threads.map), fitted.schema)


def _with_expert(request: FitRequest, fitted: Fitted, table: Table, asked: Declared) -> tuple[FitRequest, Table, Any]:
    """The request with an expert's beliefs as its prior, its table anew with the levels they name, and both beside."""
    from softcount.bayes.expert_beliefs import expert_beside_data, expert_prior

    prior = expert_prior(request.expert, fitted)
    levels = {key: list(belief.levels) for key, belief in prior.items() if belief.levels is not None}
    again = table_of(table.source, asked, request.form, target=request.target, weight=request.weight, levels=levels)
    again.notes = table.notes
    return replace(request, prior=prior), again, expert_beside_data(request.expert, fitted)


def _with_doubts(request: FitRequest, fitted: Fitted, table: Table, tried: Evaluation | None) -> Fitted:
    """The model with a note on each thing that speaks against it, and the columns that depend on each other."""
    from softcount.evaluate.dependent_columns import measure_dependence
    from softcount.evaluate.model_doubts import doubts

    losses = None if tried is None else (tried.log_loss, tried.baseline_log_loss)
    if request.engine is None:
        columns, pairs = measure_dependence(fitted, _under_schema(request, fitted, table))
        return replace(fitted, notes=[*doubts(fitted, columns, losses), *fitted.notes], dependent=pairs)
    untried = [UNTRIED] if tried is None and request.folds != 0 and fitted.trace else []
    return replace(fitted, notes=[*doubts(fitted, [], losses), *untried, *fitted.notes])


def _under_schema(request: FitRequest, fitted: Learned, table: Table) -> Table:
    """The same rows, read as the model reads them."""
    from softcount.table import open_table

    schema = fitted.schema
    return open_table(table.source, schema=schema, missing=schema.missing, target=request.target, weight=request.weight)


def _decided(
    request: FitRequest, fitted: Fitted, table: Table, threads: Threads, plain: Evaluation | None
) -> tuple[Fitted, Evaluation | None]:
    """The model with what tells its classes best, and how that did on rows held out; `plain` is how it did without."""
    from softcount.evaluate.decide import HowDecided, beside_plain, decided_for
    from softcount.evaluate.judge import judged
    from softcount.table.chunk import Split

    share = None if request.holdout is None else Split(2, request.seed, request.holdout)
    how = HowDecided(folds=request.folds or None, share=share)
    found, held = decided_for(fitted, _under_schema(request, fitted, table), threads, how)
    if found.pool is not None:
        found = beside_plain(found, None if plain is None else plain.log_loss, held)
    if found.pool is None:
        return found, plain
    if held is None or request.folds == 0:
        return found, None
    return found, replace(judged(held, found.shares, by_fold=True), how=_how_held(request, held.folds))


def _averaged(request: FitRequest, fitted: Fitted, table: Table, threads: Threads) -> tuple[Fitted, Evaluation | None]:
    """The model with averaged stars that tell its classes, and how they did on rows held out."""
    from softcount.evaluate.judge import judged
    from softcount.evaluate.known_rows import known_rows
    from softcount.evaluate.learn_stars import StarPlan, held_stars, with_stars
    from softcount.table.chunk import Split

    again, plan = _under_schema(request, fitted, table), StarPlan()
    found = with_stars(fitted, again, threads, plan)
    folds = DEFAULT_FOLDS if request.folds is None else request.folds
    if folds == 0:
        return found, None
    share = None if request.holdout is None else Split(2, request.seed, request.holdout)
    held = held_stars(found, known_rows(found, again, threads), plan, folds, share)
    if held is None:
        return found, None
    return found, replace(judged(held, found.shares, by_fold=True), how=_how_held(request, held.folds))


def _how_held(request: FitRequest, folds: np.ndarray) -> str:
    """In words, which rows were held out."""
    if request.holdout is not None:
        return f"{100 * request.holdout:g} % held out"
    tested, number = len(set(folds.tolist())), request.folds or DEFAULT_FOLDS
    return f"{number}-fold cross-validation" if tested == number else f"{tested} of {number} folds held out"


def open_request(request: FitRequest, tell: Tell) -> tuple[FitRequest, Declared, Table]:
    """The table to learn from, what is asked of its columns, and the request with its target settled.

    Documents in folders are learned from to tell the folder, unless classes are to be looked for.
    """
    from softcount.sources import wording

    source = source_of(request.data, request.form, bytes_read(tell))
    column = request.target if request.model in ("mixture", "network") else None
    if column is not None:
        wording.refuse_unknown(source.keys, column, "target")
        request = replace(request, target=None)
    chosen = None if request.target is not None or request.looks_for_classes else source.default_target
    if chosen in request.kinds:  # declared a feature, or nothing
        chosen = None
    request = replace(request, target=chosen or request.target)
    if request.target is None:
        _refuse_unlabelled(request)
    asked, sides = declared(request.kinds), {"target": request.target, "weight": request.weight}
    table = table_of(source, asked, request.form, **sides)
    kinds, notes = request.texts.kinds(table), table.notes
    if kinds:
        asked = declared({**request.kinds, **kinds})
        table = table_of(source, asked, request.form, **sides)
        table.notes = notes
    if column is not None:
        table.notes.append(
            f"{column!r} is an ordinary column of the {request.model}: ask for it with query --of {column}"
        )
    if chosen:
        table.notes.append("what to predict is 'class', the sub-folder a document is in (or find classes: --classes N)")
    elif request.target is None and source.default_target not in (None, *request.kinds):
        table.notes.append("the sub-folders are not used: classes are looked for")
    return request, asked, table


def _refuse_unlabelled(request: FitRequest) -> None:
    for name in ("holdout", "folds", "calibrate", "unlabelled_weight", "expert"):
        if getattr(request, name) is not None:
            option = name.replace("_", "-")
            raise DataError(
                f"--{option} needs something to predict, and {request.data} has no sub-folders that are its classes. "
                "Name a column: --target COL"
            )


def _folds_beside(request: FitRequest, table: Table) -> FoldsBeside | None:
    """Folds to be counted in the pass that learns, where it is known that they will be asked for."""
    folds = DEFAULT_FOLDS if request.folds is None else request.folds
    if request.target is None or not folds or table.has_weights or request.engine is not None:
        return None
    if request.model == "averaged" or request.holdout is not None:
        return None
    from softcount.evaluate.folds import FoldsBeside as Folds
    from softcount.table.chunk import Split

    return Folds(Split(folds, request.seed))


def _learned(
    request: FitRequest,
    asked: Declared,
    table: Table,
    threads: Threads,
    tell: Tell,
    folds: FoldsBeside | None = None,
) -> Fitted:
    """The model of the target's classes, or of those asked for, or of as many as the criterion likes best."""
    from softcount.evaluate.learn_model import ClassSearch, learn_model

    if request.target is not None:
        plan = replace(plan_of(request, asked, watch=starts_told(tell, "unlabelled rows")), beside=folds)
        return learn_model(table, plan, threads, calibration=request.calibrate)
    from softcount.learn.fit_record import FitRecord
    from softcount.learn.groups import Starts
    from softcount.learn.start_traces import StartTraces

    number = request.classes if isinstance(request.classes, int) else None
    starts = Starts(number or 1, n_init=request.starts or DEFAULT_STARTS, seed=request.seed)
    search = ClassSearch(starts, None if number else request.criterion or DEFAULT_CRITERION)
    watch = StartTraces(starts_told(tell))
    with nullcontext() if request.checkpoint is None else checkpoint_of(request.checkpoint) as log:
        found = learn_model(table, replace(plan_of(request, asked, "row", watch), log=log), threads, search)
    found = replace(found, record=FitRecord(starts=watch.nearest(found.trace[-1]) if found.trace else ()))
    if request.engine is not None:
        return found
    return found if found.interrupted or found.undecided is not None else _with_entropy(request, found, table, threads)


def checkpoint_of(path: str) -> AbstractContextManager[ClimbLog]:
    """The climbs that a checkpoint holds, and those that follow."""
    from softcount.files.checkpoint_file import checkpointed

    return checkpointed(path)


def _with_entropy(request: FitRequest, fitted: Fitted, table: Table, threads: Threads) -> Fitted:
    """The same with how undecided its rows are between the classes; of a long table that is left out."""
    from softcount.learn.evidence import memberships_entropy

    if (table.n_rows or MOST_MEMBERSHIPS) * fitted.n_groups > MOST_MEMBERSHIPS or fitted.estimate == "predictive":
        return fitted
    again = _under_schema(request, fitted, table)
    ready = [fitted.model.prepare(chunk) for chunk in again.chunks(threads.map)]
    return replace(fitted, undecided=memberships_entropy(fitted.model, fitted.estimates, ready, threads))


def plan_of(request: FitRequest, asked: Declared, prior: float | str = 1.0, watch: Any = None) -> Plan:
    """How to fit what was asked for, with this prior where none is named."""
    from softcount.learn.plan import Plan as FitPlan
    from softcount.learn.rules import Stop

    return FitPlan(
        declared=asked,
        prior=prior if request.prior is None else request.prior,
        estimate=request.estimate,  # type: ignore[arg-type]  # one of the words that the option takes
        unlabelled_weight=request.unlabelled_weight,
        stop=Stop(accelerate=True),
        target=request.target,
        watch=watch,
    )


def _evaluated(
    request: FitRequest, plan: Plan, table: Table, threads: Threads, calibration: str | None
) -> Evaluation | None:
    folds = DEFAULT_FOLDS if request.folds is None else request.folds
    if folds == 0:
        return None
    from softcount.evaluate.scores import cross_validate, hold_out

    if request.holdout is not None:
        return hold_out(table, plan, threads, request.holdout, request.seed, calibration)
    return cross_validate(table, plan, threads, folds, request.seed, calibration)


# -- models


class KMeansFile(ModelFileError):
    """A file of k-means where a model of probabilities is wanted; it holds the centres and their columns' names."""

    def __init__(self, path: str, centres: Centres, names: list[str]) -> None:
        super().__init__(
            f"{path}: k-means has centres and no probabilities, which this command needs.\n"
            f"  Look at them with: softcount show {path}     or use them: softcount.load({path!r}).predict(X)"
        )
        self.centres, self.names = centres, names


def is_network(model: Any) -> bool:
    """Whether a model that was loaded is a network."""
    from softcount.fitted.fitted_model import Fitted

    return not isinstance(model, Fitted)


def load_any(path: str) -> Fitted | FittedNet:
    """The model of a file, which must be one of probabilities; a network also from a network file."""
    from softcount.cli.network_options import is_network_file

    return _from_network_file(path) if is_network_file(path) else _from_model_file(path)


def _from_network_file(path: str) -> FittedNet:
    from softcount.estimators.net_files import fitted_from
    from softcount.files.network_file import read_network

    try:
        return fitted_from(read_network(path))
    except DataError as error:
        raise ModelFileError(str(error)) from None


def _from_model_file(path: str) -> Fitted | FittedNet:
    from softcount.files.archive import read
    from softcount.files.centres_part import holds_centres
    from softcount.files.model_file import load_model
    from softcount.files.text_part import refuse_vocabulary
    from softcount.fitted.fitted_model import Fitted

    document, arrays = read(Path(path))
    if holds_centres(document):
        raise _centres(path, document, arrays)
    if "density" in document:
        raise ModelFileError(
            f"{path}: a density, which commands have nothing to say of.\n"
            f"  Use it in Python: softcount.load({path!r}).score_samples(x)"
        )
    if "average" in document:
        raise ModelFileError(
            f"{path}: an average of models, which commands do not ask yet.\n"
            f"  Use it in Python: softcount.load({path!r}).predict_proba(X)"
        )
    if "chain" in document or document.get("model") == "hidden-chain":
        raise ModelFileError(
            f"{path}: a model of sequences, which this command has nothing to say of.\n"
            f"  Use it in Python: softcount.load({path!r})"
        )
    refuse_vocabulary(path, document)
    found = load_model(path, document, arrays)[0]
    if isinstance(found, Fitted):
        return found
    from softcount.fitted.fitted_net import FittedNet  # only who has a network pays for loading it

    return FittedNet.of(found)


def _centres(path: str, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> ModelFileError:
    from softcount.files.centres_part import centres_of

    try:
        centres = centres_of(document, arrays)
        width = centres.centres.shape[1]
        names = document["estimator"]["columns"]["names"] or range(width)
        if len(names) != width:
            raise ModelFileError(f"{width} columns have {len(names)} names.")
    except (ModelFileError, KeyError, TypeError, ValueError) as error:
        return ModelFileError(f"{path}: its centres make no sense ({error}).")
    return KMeansFile(path, centres, [str(name) for name in names])


def save(fitted: Learned, output: str) -> None:
    """Save the model whole or not at all; "-" sends it to standard output."""
    from softcount.files.model_file import save_model

    save_by(lambda path: save_model(fitted, path), output)


def save_by(write: Callable[[Any], None], output: str) -> None:
    """The same of what is written by something that takes a path."""
    if output != "-":
        write(output)
        return
    import tempfile

    from softcount.cli.outputs import put_bytes

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sc"
        write(path)
        put_bytes(path.read_bytes(), output)
