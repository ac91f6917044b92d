"""Fitting from a ``RowSource``: as arrays where the rows fit in memory, else a window at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from asset_svm.data.scan import Scanned, scan
from asset_svm.data.source import RowSource
from asset_svm.families.constant import warn_of_constant
from asset_svm.families.labels import labelled
from asset_svm.families.monitor import Watch
from asset_svm.settings.checks import is_integer
from asset_svm.families.one_map.windows import WindowFit
from asset_svm.memory import available_memory, planned_memory
from asset_svm.storage.checkpoint import Checkpoint

SAMPLE_ROWS = 8192
"""Rows that the map, the metric and the steps are settled from; more if there are more landmarks."""


def fit_rows(
    model: Any,
    source: RowSource | Scanned,
    y: None = None,
    sample_weight: None = None,
    *,
    checkpoint: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Any:
    """Fit an estimator to the rows of a source.

    Parameters
    ----------
    model : AssetClassifier or AssetRegressor
    source : RowSource or Scanned
    y, sample_weight : None
        A source brings its own targets, and no weights.
    checkpoint : Checkpoint, optional
        The run is streamed then, and can be resumed.
    watch : callable, optional
        Called with a record of the progress after every epoch, or window of a stream; returning
        True ends the run, which leaves the model of that moment.

    Returns
    -------
    model
    """
    if y is not None or sample_weight is not None:
        raise ValueError("A row source brings its own targets; leave y and sample_weight out.")
    model._check_parameters()
    if checkpoint is not None:
        check_streamed(model, checkpoint=True)
    resumed = None if checkpoint is None else checkpoint.read_run()
    reread = source.source if isinstance(source, Scanned) else source
    if checkpoint is not None and not reread.rereadable:
        raise ValueError(f"{reread.name} cannot be read again, and so takes no checkpoint.")
    if isinstance(source, Scanned):
        scanned = source
    elif resumed is not None:
        scanned = Scanned(source.narrowed(resumed.summary.n_features), resumed.summary)
    else:
        scanned = scan_for(
            source,
            n_components=model.n_components,
            memory_limit=model.memory_limit,
            random_state=model.random_state,
            hold=checkpoint is None,
            too_large=partial(check_streamed, model),
        )
    held, names = scanned.held, scanned.source.feature_names
    if checkpoint is None and held is not None:
        held = labelled(model, held, scanned.summary)
        found = model._train(held.X, held.y, None, watch=watch)
        warn = partial(model._warn, *found)
    else:
        check_streamed(model, checkpoint=checkpoint is not None)
        sample = WindowFit(model, scanned, checkpoint, resumed, watch).run()
        warn = partial(warn_of_constant, model, sample.X, np.asarray(sample.y), np.ones(len(sample)))
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    warn()
    return model


def check_streamed(model: Any, *, checkpoint: bool = False) -> None:
    """Refuse parameters that need all rows in memory, where a fit reads them a window at a time."""
    why, instead = "these are too many for it: a fit reads", "raise memory_limit (--memory)"
    if checkpoint:
        why, instead = "a run with a checkpoint reads", "leave the checkpoint out"
    margin = isinstance(model.landmarks, str) and model.landmarks == "margin"
    odd = {
        "sampling": (model.sampling == "uniform", 'set sampling="auto"'),
        "early_stopping": (model.early_stopping, "set max_iter to the epochs you want"),
        "tol": (model.tol is not None, "set max_iter to the epochs you want"),
        "warm_start": (model.warm_start, "go on learning with partial_fit"),
        "n_cells": (model.n_cells is not None, "leave n_cells out"),
        "n_components": (model.n_components == "auto", "set n_components to a number"),
        "landmarks": (margin, 'choose others, for example "rpcholesky"'),
        "device": (model.device == "cuda", 'set device="cpu"'),
    }
    for name, (is_odd, advice) in odd.items():
        if is_odd:
            raise ValueError(
                f"{name}={getattr(model, name)!r} needs all rows in memory, and {why} them a window "
                f"at a time; {advice}, or {instead}."
            )


def scan_for(
    source: RowSource,
    *,
    n_components: Any = None,
    memory_limit: float | None = None,
    random_state: Any = None,
    hold: bool = True,
    observe: Callable[[Any], Any] | None = None,
    too_large: Callable[[], Any] | None = None,
) -> Scanned:
    """Scan a source for an estimator with these parameters; ``hold`` keeps rows that fit in memory.

    They do where they take at most a quarter of ``memory_limit`` (2 GiB without one); ``too_large``
    is called as soon as they do not. Where nothing is held, for a run with a checkpoint, what the
    files were is told.
    """
    return scan(
        source,
        sample_rows=max(SAMPLE_ROWS, n_components if is_integer(n_components) else 0),
        hold_bytes=planned_memory(memory_limit) // 4 if hold else 0,
        free=available_memory,
        seed=int(random_state) if is_integer(random_state) else 0,
        observe=observe,
        too_large=too_large,
        fingerprint=not hold,
    )
