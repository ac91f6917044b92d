"""Who looks on while a model is trained: a function that is called with records, and callbacks.

The callbacks are scikit-learn's, and those of an estimator (``estimators.callbacks``); a run that is
nobody's own, such as that of one cell, has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from asset_svm.settings.checks import check_level

logger = logging.getLogger("asset_svm")

Watch = Callable[[dict[str, Any]], bool]
"""A function that is called with a record of the progress; True asks to stop."""
Parts = Callable[[], Any]
"""A function that makes the model so far, a ``Fitted``."""


class FitCallbacks:
    """Callbacks of one fit, in epochs or in partitions and cells; here nobody is told of anything."""

    registered = False
    """Whether there are any."""

    def epoch_end(self, parts: Parts) -> bool:
        """Tell that an epoch has ended; ``parts`` makes the model so far. True asks to stop."""
        return False

    def partition_begin(self, n_cells: int) -> None:
        """Tell that the next partition has so many cells."""

    def cell_begin(self, number: int) -> None:
        """Tell that a cell begins."""

    def cell_end(self, number: int) -> bool:
        """Tell that a cell is solved. True asks to stop."""
        return False

    def partition_end(self, parts: Parts) -> bool:
        """Tell that all cells are solved; ``parts`` makes the model so far. True asks to stop."""
        return False

    def fit_end(self, parts: Parts) -> None:
        """Tell that the fit has ended; ``parts`` makes the model."""


class Observer(Protocol):
    """Who looks on at a fit."""

    @property
    def watch(self) -> Watch | None:
        """The function that is called with records; True asks to stop."""

    def epochs(self, count: int) -> FitCallbacks:
        """The callbacks of a run of so many epochs at most."""

    def partitions(self, count: int) -> FitCallbacks:
        """The callbacks of so many partitions."""


@dataclass(frozen=True)
class Nobody:
    """An observer without callbacks."""

    watch: Watch | None = None

    def epochs(self, count: int) -> FitCallbacks:
        """Return callbacks that tell nobody."""
        return FitCallbacks()

    def partitions(self, count: int) -> FitCallbacks:
        """Return callbacks that tell nobody."""
        return FitCallbacks()


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
