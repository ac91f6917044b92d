"""Looking on after every epoch of a fit: early stopping, callbacks, the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asset_svm.estimators.base import public_parts
from asset_svm.estimators.callbacks import EpochCallbacks
from asset_svm.estimators.parameters import check_level

logger = logging.getLogger("asset_svm")

Watch = Callable[[dict[str, Any]], bool]
"""Called with a record of the progress; True asks to stop."""


class Monitor:
    """Called by the backend with (epoch, model, record); True asks to stop.

    Parameters
    ----------
    held_out : (X, y, weight), optional
        Rows that early stopping scores.
    watch : callable, optional
        Called with the record; True asks to stop.
    """

    def __init__(self, estimator, backend, phi, metric, encoded, held_out, epochs, X, y, watch=None):
        self.watch, self.epochs = watch, epochs
        self.estimator, self.phi, self.metric, self.encoded = estimator, phi, metric, encoded
        self.callbacks = EpochCallbacks(estimator, epochs, X, y)
        self.held_out, self.best, self.waited = None, None, 0
        if held_out is not None:
            X_out, y_out, weight = held_out
            self.held_out = (backend.held_out(phi, X_out), y_out, weight)

    @property
    def watched(self) -> bool:
        """Whether somebody asks for the model between epochs."""
        return self.watch is not None or self.callbacks.registered

    def __call__(self, epoch, model, record) -> bool:
        """Look at the model after an epoch; may add to its record."""
        coef, intercept = model
        if self.metric is not None:
            coef = self.metric.apply(coef)
        stop = False
        if self.held_out is not None:
            decide, y, weight = self.held_out
            decisions = decide(coef) + (intercept + self.encoded.offset)
            score = self.estimator._validation_score(decisions, y, weight)
            record["validation_score"] = score
            if self.best is None or score > self.best[0]:
                self.best, self.waited = (score, model), 0
            else:
                self.waited += 1
            stop = self.waited >= self.estimator.n_iter_no_change
        if self.estimator.verbose:
            numbers = ", ".join(f"{k} {v:.6g}" for k, v in record.items() if k != "epoch")
            logger.info("epoch %d: %s", epoch, numbers)
        if self.watch is not None:
            stop = self.watch({**record, "epochs": self.epochs}) or stop
        return self.callbacks.epoch_end(self._parts(coef, intercept)) or stop

    def _parts(self, coef, intercept):
        return lambda: public_parts(coef, intercept, self.phi, self.encoded)

    def chosen(self):
        """The model of the best epoch, where there was a contest."""
        return None if self.best is None else self.best[1]

    def finish(self, coef, intercept) -> None:
        """Tell the callbacks that the fit has ended with this model."""
        self.callbacks.fit_end(self._parts(coef, intercept))


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """Let the log be seen while a verbose fit runs, where nobody has set logging up."""
    check_level("verbose", verbose)
    if not verbose:
        yield
        return
    level, handler = logger.level, None
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)
