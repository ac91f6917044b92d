"""The profiles of named kernels, k(x, z) = profile(t) with t = factor u (see ``formula``).

They are written once, for whatever has arithmetic: arrays, tensors of a card, nodes of a graph that is
exported, expressions of C. They may overwrite t, and take what is no operator from ``xp``, which knows
``exp``, ``sqrt``, ``tanh`` and ``clip`` as numpy does. Nothing else of the package is imported here:
``runtime`` predicts by this file alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.kernels.formula import Argument, Values

FARTHEST = -1e6
"""t from which on exp(-a) is 0 in float64."""
SLACK = 8.0
"""Times the machine precision: |x'|^2 + |z'|^2 - 2 x'.z' of equal rows, relative to the first two.
6 were seen with up to 1000 columns, in both types."""


def decay(t: Values, xp: Any = np) -> Values:
    """exp(t): the Gaussian's, and the laplacian's."""
    return xp.exp(t, out=t)


def matern_length(t: Values, freedom: int, xp: Any = np) -> Values:
    """a = sqrt(freedom) gamma r, where t was; far away it is less, where exp(-a) is 0."""
    t = xp.clip(t, FARTHEST, None, out=t)
    t *= -float(freedom)
    return xp.sqrt(t, out=t)


def exponential(t: Values, xp: Any = np) -> Values:
    """exp(-a)."""
    a = matern_length(t, 1, xp)
    a *= -1.0
    return xp.exp(a, out=a)


def matern32(t: Values, xp: Any = np) -> Values:
    """(1 + a) exp(-a)."""
    a = matern_length(t, 3, xp)
    values = xp.exp(-a)
    a += 1.0
    a *= values
    return a


def matern52(t: Values, xp: Any = np) -> Values:
    """(1 + a + a^2/3) exp(-a)."""
    a = matern_length(t, 5, xp)
    values = xp.exp(-a)
    values *= 1.0 + a + a * a / 3.0
    return values


def polynomial(t: Values, degree: float, coef0: float) -> Values:
    """(t + coef0)^degree."""
    t += coef0
    t **= degree
    return t


def sigmoid(t: Values, coef0: float, xp: Any = np) -> Values:
    """tanh(t + coef0)."""
    t += coef0
    return xp.tanh(t, out=t)


@dataclass(frozen=True)
class Profile:
    """A named kernel.

    Parameters
    ----------
    argument : Argument
        What u is.
    factor : callable
        The factor of u, from gamma.
    values : callable
        The profile, from t, degree, coef0 and ``xp``.
    slack : float
        Times the machine precision and |x'|^2 + |z'|^2: squared distances of less count as 0.
    """

    argument: Argument
    factor: Callable[[float], float]
    values: Callable[[Values, float, float, Any], Values]
    slack: float = 0.0


def _minus(gamma: float) -> float:
    return -gamma


def _minus_square(gamma: float) -> float:
    return -(gamma**2)


def _plain(function: Callable[[Values, Any], Values]) -> Callable[[Values, float, float, Any], Values]:
    """A profile without numbers of its own."""
    return lambda t, degree, coef0, xp: function(t, xp)


PROFILES = {
    "rbf": Profile(Argument.SQUARED_DISTANCE, _minus, _plain(decay)),
    "exponential": Profile(Argument.SQUARED_DISTANCE, _minus_square, _plain(exponential), slack=SLACK),
    "matern32": Profile(Argument.SQUARED_DISTANCE, _minus_square, _plain(matern32)),
    "matern52": Profile(Argument.SQUARED_DISTANCE, _minus_square, _plain(matern52)),
    "laplacian": Profile(Argument.ABSOLUTE_DISTANCE, _minus, _plain(decay)),
    "poly": Profile(Argument.PRODUCT, float, lambda t, degree, coef0, xp: polynomial(t, degree, coef0)),
    "sigmoid": Profile(Argument.PRODUCT, float, lambda t, degree, coef0, xp: sigmoid(t, coef0, xp)),
    "linear": Profile(Argument.PRODUCT, lambda gamma: 1.0, lambda t, degree, coef0, xp: t),
}
