"""What a solver is given, and what it gives back.

The problem is the paper's, min lam/2 |w|^2 + (1/m) sum_i loss(y_i, f(x_i)), for the Gaussian kernel
exp(-gamma |x - z|^2), without a bias. In the C of others, lam = 1/(C m).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and parameters; with ``epsilon`` it is a regression.

    ``limit`` are CPU seconds: a solver that can be stopped raises ``OutOfTimeError`` after so many.
    """

    X: Any
    y: np.ndarray
    gamma: float
    lam: float
    s: int
    epsilon: float | None = None
    limit: float | None = None

    @property
    def C(self) -> float:  # noqa: N802 - the name that everybody knows
        """1 / (lam m)."""
        return 1.0 / (self.lam * len(self.y))

    @property
    def regression(self) -> bool:
        """Whether y is real."""
        return self.epsilon is not None


class OutOfTimeError(Exception):
    """A solver was stopped: it did not end within ``seconds``, the limit of its problem."""

    def __init__(self, seconds: float):
        super().__init__(f"did not end within {seconds:g} s")
        self.seconds = seconds


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model.

    Parameters
    ----------
    seconds : float
        CPU time of training, as in the paper, without reading files.
    decide : function
        From rows to decisions, the bias included.
    basis : int
        Kernel values (or features) that one prediction needs.
    bias : float
        The bias where it cannot be switched off, else 0.
    squared_norm : float, optional
        |w|^2 of solvers whose features are random, where decisions do not tell it.
    """

    seconds: float
    decide: Callable[[Any], np.ndarray]
    basis: int
    bias: float = 0.0
    squared_norm: float | None = None

    def error(self, X: Any, y: np.ndarray) -> float:
        """Misclassified rows in per cent."""
        return 100.0 * float(np.mean((self.decide(X) > 0) != (y > 0)))

    def r2(self, X: Any, y: np.ndarray) -> float:
        """1 - (sum of squared residuals) / (sum of squares)."""
        residual = self.decide(X) - y
        return 1.0 - float(residual @ residual) / float(((y - y.mean()) ** 2).sum())


class Solver(Protocol):
    """A way to train."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def exact(self) -> bool:
        """Whether it uses the kernel itself, and no s."""

    def version(self) -> str | None:
        """Name and version of the software; None where it is not installed."""

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""


def installed(distribution: str, title: str = "") -> str | None:
    """Name and version of a Python distribution, None without it."""
    try:
        return f"{title or distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds (of all threads) and the result.

    Peers that stop at their iteration limit warn, which is no news here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        result = function()
        return time.process_time() - begun, result


def signs(y: np.ndarray) -> np.ndarray:
    """The labels as -1.0 and 1.0."""
    return np.where(np.asarray(y) > 0, 1.0, -1.0)
