"""Looking on after every epoch of a run: early stopping, whoever watches, callbacks, the log."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from asset_svm.backends.base import Backend
from asset_svm.families.observing import Observer, Parts, logger
from asset_svm.families.one_map.fitted import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.features import FeatureMap, Metric
from asset_svm.settings import Settings
from asset_svm.tasks import Task

Array = npt.NDArray[Any]
Model = tuple[Array, Array]


class Monitor:
    """Called by a run with (epoch, model, record); True asks to stop.

    Parameters
    ----------
    held_out : Rows, optional
        Rows that early stopping scores.
    """

    def __init__(
        self,
        settings: Settings,
        task: Task,
        backend: Backend,
        phi: FeatureMap,
        metric: Metric | None,
        held_out: Rows | None,
        epochs: int,
        observer: Observer,
    ):
        self.settings, self.task, self.phi, self.metric = settings, task, phi, metric
        self.watch, self.epochs = observer.watch, epochs
        self.callbacks = observer.epochs(epochs)
        self.held_out = held_out
        self.decide = None if held_out is None else backend.held_out(phi, held_out.X)
        self.best: tuple[float, Model] | None = None
        self.waited = 0

    @property
    def watched(self) -> bool:
        """Whether somebody asks for the model between epochs."""
        return self.watch is not None or self.callbacks.registered

    def __call__(self, epoch: int, model: Model, record: dict[str, Any]) -> bool:
        """Look at the model after an epoch; may add to its record."""
        coef, intercept = model
        if self.metric is not None:
            coef = self.metric.apply(coef)
        stop = False
        if self.held_out is not None and self.decide is not None:
            decisions = self.decide(coef) + (intercept + self.task.offset)
            score = self.task.score(decisions, self.held_out.y, self.held_out.weight)
            record["validation_score"] = score
            if self.best is None or score > self.best[0]:
                self.best, self.waited = (score, model), 0
            else:
                self.waited += 1
            stop = self.waited >= self.settings.n_iter_no_change
        if self.settings.verbose:
            numbers = ", ".join(f"{k} {v:.6g}" for k, v in record.items() if k != "epoch")
            logger.info("epoch %d: %s", epoch, numbers)
        if self.watch is not None:
            stop = self.watch({**record, "epochs": self.epochs}) or stop
        return self.callbacks.epoch_end(self._parts(coef, intercept)) or stop

    def _parts(self, coef: Array, intercept: Array) -> Parts:
        return lambda: FittedMap.so_far(self.task, self.phi, coef, intercept)

    def chosen(self) -> Model | None:
        """The model of the best epoch, where there was a contest."""
        return None if self.best is None else self.best[1]

    def finish(self, coef: Array, intercept: Array) -> None:
        """Tell the callbacks that the fit has ended with this model."""
        self.callbacks.fit_end(self._parts(coef, intercept))
