"""Estimators and files: fitting to a ``RowSource``, learning online from one, predicting its rows.

Rows that fit in memory are fitted to as arrays are; others are read a window at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor

from asset_svm import clock
from asset_svm.data.fingerprint import Fingerprint, Steady
from asset_svm.data.scan import Scanned, scan
from asset_svm.data.several_targets import columns_of
from asset_svm.data.source import Block, RowSource, widened
from asset_svm.estimators.callbacks import FitObserver
from asset_svm.estimators.encoded import encode_rows
from asset_svm.estimators.inside import (
    adopt,
    encoder_of,
    fit_watched,
    fitted_of,
    in_units,
    predictions_of,
    settings_of,
    take_encoder,
    task_of,
    warn_of,
)
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import all_or_nothing
from asset_svm.exceptions import DataError
from asset_svm.families import Trained, family_of
from asset_svm.families.cells.stored import StoredCells
from asset_svm.families.labels import labelled, whole_labels
from asset_svm.families.observing import Watch, logger, shown
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.one_map.windows import WindowFit
from asset_svm.families.probe import progressive_error
from asset_svm.families.relevance.windows import RelevantWindows
from asset_svm.features.cells import SAMPLE
from asset_svm.memory import available_memory, planned_memory
from asset_svm.settings import Settings
from asset_svm.settings.checks import is_integer
from asset_svm.settings.solving import resolve_cells
from asset_svm.storage.checkpoint import Checkpoint, SavedRun
from asset_svm.tasks import for_targets, has_targets

if TYPE_CHECKING:
    from asset_svm.estimators.calibration import CalibratedClassifier
    from asset_svm.estimators.learner import Learner

Model = TypeVar("Model", bound="Learner")

SAMPLE_ROWS = 8192
"""Rows that the map, the metric and the steps are settled from; more if there are more landmarks."""
RELEVANCE_ROWS = 20_480
"""The same where the relevance of columns is learnt from them."""
SAMPLE_SHARE = 8
"""Of the memory that is planned: the sample that cells are grown from takes at most this part."""
ONLINE_ROWS = 8192
"""Rows of a batch; more if there are more landmarks, which come from the first."""


def fit_rows(
    model: Model,
    source: RowSource | Scanned,
    y: None = None,
    sample_weight: None = None,
    *,
    checkpoint: Checkpoint | None = None,
    watch: Watch | None = None,
    settings: Settings | None = None,
    encoder: TableEncoder | None = None,
    temp_dir: str | Path | None = None,
) -> Model:
    """Fit an estimator to the rows of a source.

    Parameters
    ----------
    model : AssetClassifier, AssetRegressor or AssetOutlierDetector
    source : RowSource or Scanned
    y, sample_weight : None
        A source brings its own targets, and no weights.
    checkpoint : Checkpoint, optional
        Where the run is saved, so that it can be resumed.
    watch : callable, optional
        Called with a record of the progress after every epoch, or window of a stream; returning
        True ends the run, which leaves the model of that moment.
    settings : Settings, optional
        Those of the model, where its parameters are checked already.
    encoder : TableEncoder, optional
        What has made the rows of a scan of a table.
    temp_dir : path, optional
        Where rows go that are sorted into cells and do not fit in memory; by default the system's
        folder for temporary files.

    Returns
    -------
    model
    """
    if y is not None or sample_weight is not None:
        raise ValueError("A row source brings its own targets; leave y and sample_weight out.")
    settings = settings_of(model) if settings is None else settings
    family_of(settings).check(settings)
    if isinstance(source, RowSource) and not has_targets(task_of(model, settings)):
        source = source.unlabelled()
    if checkpoint is not None:
        check_kept(settings)
    resumed = None if checkpoint is None else checkpoint.read_run()
    reread = source.source if isinstance(source, Scanned) else source
    if checkpoint is not None and not reread.rereadable:
        raise ValueError(f"{reread.name} cannot be read again, and so takes no checkpoint.")
    if isinstance(source, Scanned):
        scanned = source
    elif resumed is not None and resumed.summary is not None:
        rows = source.narrowed(resumed.summary.n_features)
        scanned = Scanned(rows, resumed.summary, steady=Steady.of(source.files))
    else:
        scanned = scan_for(
            source,
            n_components=settings.map.n_components,
            n_cells=settings.n_cells,
            relevance=settings.relevance,
            memory_limit=settings.memory_limit,
            random_state=settings.random_state,
            fingerprint=checkpoint is not None,
            too_large=partial(check_streamed, settings),
        )
    if scanned.summary.table is not None:
        encoder = clone(model.encoder) if isinstance(model.encoder, TableEncoder) else TableEncoder()
        task, room = task_of(model, settings), held_bytes(settings.memory_limit)
        scanned = encode_rows(encoder, scanned, task, room, in_units=partial(in_units, model))
    if checkpoint is not None and scanned.held is not None:
        check_kept_in_memory(settings)
    keeper = None if checkpoint is None else _keeper(model, scanned, checkpoint, resumed)
    columns = scanned.source.feature_names
    if scanned.held is not None:
        held = labelled(scanned.held, scanned.summary, numeric=is_regressor(model))
        return fit_watched(
            model,
            held.X,
            held.y,
            watch=watch,
            columns=columns,
            encoder=encoder,
            keeper=keeper,
            settings=settings,
        )
    check_streamed(settings)
    observer = FitObserver(model, watch=watch)
    task = for_targets(task_of(model, settings), np.asarray(scanned.summary.sample.y))
    if is_regressor(model):
        known = scanned.summary.whole or scanned.summary.sample
        seen = np.asarray(known.y, dtype=np.float64)
        task = in_units(model, task, seen, np.ones(len(seen)))[0]
        if task.in_units:
            scanned = scanned.with_targets(lambda y: in_units(model, task, y, np.ones(len(y)))[1])
    with all_or_nothing(model), shown(settings.verbose):
        model.n_features_in_ = scanned.summary.n_features
        make: Any = WindowFit
        if settings.n_cells is not None:
            make = partial(StoredCells, folder=gettempdir() if temp_dir is None else temp_dir)
        if settings.relevance is not None:
            make = partial(RelevantWindows, make=make)
        run: WindowFit | StoredCells | RelevantWindows = make(settings, task, scanned, keeper, observer)
        trained: Trained[Any] = run.run()
        adopt(model, trained.fitted)
        model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        model.encoder_ = None
        if encoder is not None:
            take_encoder(model, encoder)
            adopt(model, trained.fitted)
        elif columns is not None:
            model.feature_names_in_ = np.array(columns, dtype=object)
    run.warn()
    warn_of(model, settings, trained)
    return model


def plain_parameters(model: Any) -> dict[str, Any]:
    """What a resumed run must have in common with the one it goes on with."""
    return {
        name: value if isinstance(value, float | int | str | None) else repr(value)
        for name, value in model.get_params(deep=False).items()
        if name != "verbose"
    }


def _keeper(
    model: Learner, scanned: Scanned, checkpoint: Checkpoint, resumed: SavedRun | None
) -> Keeper:
    """Who saves a run, in memory or by windows."""
    held = scanned.held
    dtype = (scanned.summary.sample if held is None else held).X.dtype
    identity = {**plain_parameters(model), "dtype": str(dtype)}
    if resumed is not None:
        resumed.check(identity, scanned.source.files)
        files = resumed.files
    else:
        files = scanned.files or Fingerprint.of(scanned.source.files)
    return Keeper(checkpoint, identity, files, resumed, scanned.summary if held is None else None)


def check_kept_in_memory(settings: Settings) -> None:
    """Refuse a checkpoint of a run that has nothing to save before its end."""
    if settings.n_cells is not None:
        raise ValueError(
            f"n_cells={settings.n_cells!r} does not go with a checkpoint of rows that fit in memory: "
            "their cells are solved there, without steps; leave one of them out, or set memory_limit "
            "(--memory) lower, and cells are saved as they are solved."
        )


def check_kept(settings: Settings) -> None:
    """Refuse parameters of runs that have no steps to go on with, or are watched by held-out rows."""
    odd = {
        "early_stopping": (settings.early_stopping, True, "held-out rows choose among its models"),
        "warm_start": (settings.warm_start, True, "it goes on from a model that is not there"),
        "device": (settings.device == "cuda", "cuda", "its state lies on the card"),
    }
    for name, (is_odd, value, why) in odd.items():
        if is_odd:
            raise ValueError(
                f"{name}={value!r} does not go with a checkpoint: {why}; leave one of them out."
            )


def check_streamed(settings: Settings) -> None:
    """Refuse parameters that need all rows in memory, where a fit reads them a window at a time.

    Cells are solved whole, and do not take those of runs in epochs.
    """
    of_epochs = {
        "sampling": (settings.sampling == "uniform", settings.sampling, 'set sampling="auto"'),
        "early_stopping": (settings.early_stopping, True, "set max_iter to the epochs you want"),
        "tol": (settings.tol is not None, settings.tol, "set max_iter to the epochs you want"),
        "warm_start": (settings.warm_start, True, "go on learning with partial_fit"),
        "n_components": (
            settings.map.n_components == "auto", "auto", "set n_components to a number"
        ),
        "landmarks": (settings.map.by_margin, "margin", 'choose others, for example "rpcholesky"'),
    }  # fmt: skip
    of_cells = {"device": (settings.device == "cuda", "cuda", 'set device="cpu"')}
    odd: dict[str, tuple[Any, Any, str]] = of_epochs if settings.n_cells is None else of_cells
    for name, (is_odd, value, advice) in odd.items():
        if is_odd:
            raise ValueError(
                f"{name}={value!r} needs all rows in memory, and these are too many for it: a fit "
                f"reads them a window at a time; {advice}, or raise memory_limit (--memory)."
            )


def scan_for(
    source: RowSource,
    *,
    n_components: Any = None,
    n_cells: Any = None,
    relevance: str | None = None,
    memory_limit: float | None = None,
    random_state: Any = None,
    looked_at: int = 0,
    fingerprint: bool = False,
    observe: Callable[[Any], Any] | None = None,
    too_large: Callable[[], Any] | None = None,
) -> Scanned:
    """Scan a source for an estimator with these parameters; rows that fit in memory are held.

    They do where they take at most a quarter of ``memory_limit`` (2 GiB without one); ``too_large``
    is called as soon as they do not. ``looked_at`` are the rows of the larger sample that a search
    has, where there is room for them. ``fingerprint`` tells what the files were.
    """
    least_rows = SAMPLE_ROWS if relevance is None else RELEVANCE_ROWS
    least_rows = max(least_rows, n_components if is_integer(n_components) else 0)
    most_bytes = planned_memory(memory_limit) // SAMPLE_SHARE

    def spread(n_rows: int, n_bytes: int) -> int:
        cells = SAMPLE * resolve_cells(n_cells, n_rows) if n_cells is not None else 0
        wanted = max(cells, looked_at)
        return max(least_rows, min(wanted, most_bytes * n_rows // max(n_bytes, 1)))

    look = partial(
        scan,
        source,
        sample_rows=least_rows,
        spread=spread if n_cells is not None or looked_at else None,
        hold_bytes=held_bytes(memory_limit),
        free=available_memory,
        seed=int(random_state) if is_integer(random_state) else 0,
        observe=observe,
        too_large=too_large,
        fingerprint=fingerprint,
    )
    found = look()
    mixed = [] if found.summary.table is None else found.summary.table.mixed()
    if mixed and source.rereadable:  # numbers among names are names, as they are written
        logger.info("table: some cells of %s are numbers, others not: all are levels", ", ".join(mixed))
        source.settle(dict.fromkeys(mixed, "levels"))
        found = look()
    return found


def held_bytes(memory_limit: float | None) -> int:
    """The bytes of rows that are held in memory."""
    return planned_memory(memory_limit) // 4


def learn_online(
    model: Model, source: RowSource, *, classes: Any = None, watch: Watch | None = None
) -> Model:
    """Learn from a source in one pass, in the order of its rows, by ``partial_fit``.

    Parameters
    ----------
    model : AssetClassifier, AssetRegressor or AssetOutlierDetector
    source : RowSource
    classes : array-like, optional
        All classes there will be; by default those of the first batch.
    watch : callable, optional
        Called with a record after every batch; returning True ends the pass.

    Returns
    -------
    model
    """
    settings = settings_of(model)
    task = task_of(model, settings)
    source = source if has_targets(task) else source.unlabelled()
    size, width = max(ONLINE_ROWS, settings.map.number or 0), source.n_features
    begun, seen, errors = clock.now(), 0, list[float]()
    deadline = settings.deadline(begun)
    with closing(source.windows(size)) as windows:  # type: ignore[type-var]
        for window in windows:
            if window.y is None:
                raise DataError(f"{source.name} has no targets; say where they are with target=.")
            first = seen == 0
            width = width or max(window.X.shape[1], 1)
            X, y = _wide(window.X, width, source, size), whole_labels(window.y, numeric=task.numeric)
            if not first:
                fitted, encoder = fitted_of(model), encoder_of(model)
                rows = X if encoder is None else encoder.rows(X)
                inside = in_units(model, fitted.task, y, np.ones(len(y)))[1]
                errors.append(progressive_error(fitted.task, fitted.decision, rows, inside))
            if first and not task.numeric:
                known = [np.unique(own) for own in columns_of(y)] if y.ndim == 2 else np.unique(y)
                model.partial_fit(X, y, classes=known if classes is None else classes)
            else:
                model.partial_fit(X, y)
            seen += len(y)
            record: dict[str, Any] = {**(model.history_[-1] if model.history_ else {}), "steps": seen}
            record["seconds"] = clock.now() - begun
            record["progressive_error"] = float(np.mean(errors)) if errors else np.nan
            stop = watch is not None and watch(record)
            if stop or clock.now() > deadline:
                break
    if source.feature_names is not None and encoder_of(model) is None:
        model.feature_names_in_ = np.array(source.feature_names, dtype=object)
    return model


def _wide(X: Any, width: int, source: RowSource, size: int) -> Any:
    if not sp.issparse(X) or X.shape[1] == width:
        return X
    if X.shape[1] > width:
        raise DataError(
            f"{source.name} has a row with {X.shape[1]} features, and the first {size} have at most "
            f"{width}; say how many there are with n_features= (--n-features)."
        )
    return widened(X, width)


def predict_rows(
    model: Learner | CalibratedClassifier, source: RowSource
) -> Iterator[tuple[Block, np.ndarray, np.ndarray]]:
    """(block, decisions, predictions), a block at a time.

    Decisions have shape (rows, K). Columns are those of the fit already: nothing is checked again.
    """
    decide, finish, encoder = fitted_of(model).decision, predictions_of(model), encoder_of(model)
    width = model.n_features_in_ if encoder is None else encoder.encoding_.width
    with closing(source.narrowed(width).blocks()) as blocks:  # type: ignore[type-var]
        for block in blocks:
            decisions = decide(block.X)
            yield block, decisions, finish(decisions)
