"""Who looks on at the fit of an estimator: a function, and scikit-learn's callbacks (from 1.9 on)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from asset_svm.estimators.validation import face_of
from asset_svm.families.observing import FitCallbacks, Parts, Watch

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn before 1.9
    _with_callbacks = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """The method, after which scikit-learn's callbacks are done, where there are any."""
    return method if _with_callbacks is None else _with_callbacks(method)


class SeenByCallbacks(CallbackSupportMixin):
    """An estimator whose fits scikit-learn's callbacks may look on at."""


class _FitCallbacks(FitCallbacks):
    """One fit, a task of scikit-learn's callbacks, of so many subtasks at most."""

    def __init__(self, estimator: SeenByCallbacks, subtasks: int, X: Any, y: Any):
        self.told = {"estimator": estimator, "X": X, "y": y}
        # Set by scikit-learn's mixin, where its version has callbacks.
        self.registered = bool(getattr(estimator, "_skl_callbacks", ()))
        begin: Any = getattr(estimator, "_init_callback_context", None)
        self.context: Any = None if begin is None else begin(max_subtasks=subtasks)
        self.present = self.context is not None
        if self.context is not None:
            self.context.call_on_fit_task_begin(**self.told)

    def _begin(self, parent: Any, name: str, **options: Any) -> Any:
        task = parent.subcontext(task_name=name, **options)
        task.call_on_fit_task_begin(**self.told)
        return task

    def _end(self, task: Any, parts: Parts | None = None) -> bool:
        made = None if parts is None else lambda: face_of(parts())
        return bool(task.call_on_fit_task_end(**self.told, reconstruction_attributes=made))

    def fit_end(self, parts: Parts) -> None:
        """Tell that the fit has ended; ``parts`` makes the model."""
        if self.present:
            self._end(self.context, parts)


class _Epochs(_FitCallbacks):
    """The epochs of one fit as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: SeenByCallbacks, epochs: int, X: Any, y: Any):
        super().__init__(estimator, epochs, X, y)
        self.left = epochs
        self._next()

    def _next(self) -> None:
        if self.present:
            self.left -= 1
            self.task = self._begin(self.context, "epoch")

    def epoch_end(self, parts: Parts) -> bool:
        """Tell that an epoch has ended; ``parts`` makes the model so far. True asks to stop."""
        if not self.present:
            return False
        stop = self._end(self.task, parts)
        if self.left and not stop:
            self._next()
        return stop


class _Partitions(_FitCallbacks):
    """The partitions of one fit as tasks of scikit-learn's callbacks, their cells as tasks of those.

    Several cells may have begun at a time. There is no model before the cells of a partition are whole.
    """

    def partition_begin(self, n_cells: int) -> None:
        """Tell that the next partition has so many cells."""
        self.cells: dict[int, Any] = {}
        if self.present:
            options = {"max_subtasks": n_cells, "sequential_subtasks": False}
            self.partition = self._begin(self.context, "partition", **options)

    def cell_begin(self, number: int) -> None:
        """Tell that a cell begins."""
        if self.present:
            self.cells[number] = self._begin(self.partition, "cell", task_id=number)

    def cell_end(self, number: int) -> bool:
        """Tell that a cell is solved. True asks to stop."""
        return self.present and self._end(self.cells.pop(number))

    def partition_end(self, parts: Parts) -> bool:
        """Tell that all cells are; ``parts`` makes the model so far. True asks to stop."""
        return self.present and self._end(self.partition, parts)


@dataclass(frozen=True, eq=False)
class FitObserver:
    """Who looks on at one fit of an estimator.

    Parameters
    ----------
    estimator : Learner
    X, y
        The rows, for callbacks that ask for them.
    watch : callable, optional
        Called with records of the progress; True asks to stop.
    """

    estimator: SeenByCallbacks
    X: Any = None
    y: Any = None
    watch: Watch | None = None

    def epochs(self, count: int) -> FitCallbacks:
        """The callbacks of a run of so many epochs at most."""
        return _Epochs(self.estimator, count, self.X, self.y)

    def partitions(self, count: int) -> FitCallbacks:
        """The callbacks of so many partitions."""
        return _Partitions(self.estimator, count, self.X, self.y)
