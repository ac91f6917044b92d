"""scikit-learn's callback API (``sklearn.callback``, from 1.9 on), and nothing where it is absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "EpochCallbacks", "with_callbacks"]


class EpochCallbacks:
    """The epochs of one fit as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, epochs: int, X: Any, y: Any):
        self.estimator, self.X, self.y = estimator, X, y
        self.left = epochs
        self.present = hasattr(estimator, "_init_callback_context")
        self.registered = bool(getattr(estimator, "_skl_callbacks", ()))
        if self.present:
            self.context = estimator._init_callback_context(max_subtasks=epochs)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
            self._begin()

    def _begin(self) -> None:
        self.left -= 1
        self.task = self.context.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)

    def epoch_end(self, parts: Callable[[], dict[str, Any]]) -> bool:
        """Tell that an epoch has ended; ``parts`` makes the model so far. True asks to stop."""
        if not self.present:
            return False
        stop = self.task.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes=parts
        )
        if self.left and not stop:
            self._begin()
        return bool(stop)

    def fit_end(self, parts: Callable[[], dict[str, Any]]) -> None:
        """Tell that the fit has ended; ``parts`` makes the model."""
        if self.present:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes=parts
            )
