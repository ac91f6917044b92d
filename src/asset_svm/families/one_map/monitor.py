"""Looking on after every epoch of a run: early stopping, whoever watches, callbacks, the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.families.observing import Observer, Parts, logger
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fitted import FittedMap
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.training.rows import plain_coef

Model = tuple[Array, Array]


class Monitor:
    """Called by a run with (epoch, model, record); True asks to stop.

    Parameters
    ----------
    held_out : Rows, optional
        The rows that early stopping scores, by the decisions of ``backend``.
    """

    def __init__(
        self,
        settings: Settings,
        task: Task,
        drawn: DrawnMap,
        epochs: int,
        observer: Observer,
        backend: Backend | None = None,
        held_out: Rows | None = None,
    ):
        self.settings, self.task, self.drawn = settings, task, drawn
        self.watch, self.epochs = observer.watch, epochs
        self.callbacks = observer.epochs(epochs)
        self.held_out = held_out
        self.decide: Callable[[Array], Array] | None = None
        if backend is not None and held_out is not None:
            self.decide = backend.held_out(drawn.phi, held_out.X)
        self.best: tuple[float, Model] | None = None
        self.waited = 0

    @property
    def watched(self) -> bool:
        """Whether somebody asks for the model between epochs."""
        return self.watch is not None or self.callbacks.registered

    def __call__(self, epoch: int, model: Model, record: dict[str, Any]) -> bool:
        """Look at the model after an epoch; may add to its record."""
        coef, intercept, stop = plain_coef(model[0], self.drawn.metric), model[1], False
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
        return lambda: FittedMap.so_far(self.task, self.drawn.phi, coef, intercept)

    def chosen(self) -> Model | None:
        """The model of the best epoch, where there was a contest."""
        return None if self.best is None else self.best[1]

    def finish(self, coef: Array, intercept: Array) -> None:
        """Tell the callbacks that the fit has ended with this model."""
        self.callbacks.fit_end(self._parts(coef, intercept))
