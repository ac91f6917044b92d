"""One pass over a ``RowSource``: learning online, and predicting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import scipy.sparse as sp

from asset_svm import clock
from asset_svm.data.source import Block, RowSource, widened
from asset_svm.families.labels import whole_labels
from asset_svm.families.monitor import Watch
from asset_svm.settings.checks import is_integer
from asset_svm.families.probe import progressive_error
from asset_svm.exceptions import DataError

ONLINE_ROWS = 8192
"""Rows of a batch; more if there are more landmarks, which come from the first."""


def learn_online(
    model: Any, source: RowSource, *, classes: Any = None, watch: Watch | None = None
) -> Any:
    """Learn from a source in one pass, in the order of its rows, by ``partial_fit``.

    Parameters
    ----------
    model : AssetClassifier or AssetRegressor
    source : RowSource
    classes : array-like, optional
        All classes there will be; by default those of the first batch.
    watch : callable, optional
        Called with a record after every batch; returning True ends the pass.

    Returns
    -------
    model
    """
    asked = model.n_components if is_integer(model.n_components) else 0
    size, width = max(ONLINE_ROWS, asked), source.n_features
    begun, seen, errors = clock.now(), 0, list[float]()
    deadline = begun + model.time_limit if model.time_limit else np.inf
    with closing(source.windows(size)) as windows:  # type: ignore[type-var]
        for window in windows:
            if window.y is None:
                raise DataError(f"{source.name} has no targets; say where they are with target=.")
            first = seen == 0
            width = width or max(window.X.shape[1], 1)
            X, y = _wide(window.X, width, source, size), whole_labels(model, window.y)
            if not first:
                errors.append(progressive_error(model, model._decision, X, y))
            options: dict[str, Any] = {}
            if first and not model._y_numeric:
                options["classes"] = np.unique(y) if classes is None else classes
            model.partial_fit(X, y, **options)
            seen += len(y)
            record: dict[str, Any] = {**(model.history_[-1] if model.history_ else {}), "steps": seen}
            record["seconds"] = clock.now() - begun
            record["progressive_error"] = float(np.mean(errors)) if errors else np.nan
            stop = watch is not None and watch(record)
            if stop or clock.now() > deadline:
                break
    if source.feature_names is not None:
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


def predict_rows(model: Any, source: RowSource) -> Iterator[tuple[Block, np.ndarray, np.ndarray]]:
    """(block, decisions, predictions), a block at a time.

    Decisions have shape (rows, K). Columns are those of the fit already: nothing is checked again.
    """
    finish = model._finisher("predict")
    with closing(source.narrowed(model.n_features_in_).blocks()) as blocks:  # type: ignore[type-var]
        for block in blocks:
            decisions = model._decision(block.X)
            yield block, decisions, finish(decisions)
