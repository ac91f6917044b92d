"""The losses by the numbers that compiled loops have for them.

The formulas are those of the losses' own files, put into the loops when these are compiled: numba
inlines the functions that are dispatched here, and the card's compiler is given ``Loss.cuda``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.losses.base import Loss
from asset_svm.losses.epsilon_insensitive import EpsilonInsensitive, tube_excess, tube_slope
from asset_svm.losses.hinge import Hinge, hinge_excess, hinge_slope
from asset_svm.losses.huber import Huber, huber_excess, huber_slope
from asset_svm.losses.logistic import Logistic, logistic_excess, logistic_slope
from asset_svm.losses.pinball import Pinball, pinball_excess, pinball_slope
from asset_svm.losses.squared_epsilon_insensitive import (
    SquaredEpsilonInsensitive,
    squared_tube_excess,
    squared_tube_slope,
)
from asset_svm.losses.squared_hinge import SquaredHinge, squared_hinge_excess, squared_hinge_slope
from asset_svm.numerics.compiling import njit

LOSSES: tuple[type[Any], ...] = (
    Hinge,
    EpsilonInsensitive,
    Pinball,
    SquaredHinge,
    SquaredEpsilonInsensitive,
    Huber,
    Logistic,
)
"""The loss of code 0, 1, ..."""


def loss_of(kind: str, parameter: Callable[[], float]) -> Loss:
    """The loss of this name in model files; ``parameter`` is asked for it where the loss has one."""
    loss = next(loss for loss in LOSSES if loss.kind == kind)
    found: Loss = loss(parameter()) if fields(loss) else loss()
    return found


@njit(cache=True, nogil=True, inline="always")
def scalar_slope(code: int, parameter: float, y: float, f: float) -> float:
    """``Loss.slope`` of one row, for compiled loops."""
    if code == 0:
        return hinge_slope(y, f)
    if code == 1:
        return tube_slope(parameter, y, f)
    if code == 2:
        return pinball_slope(parameter, y, f)
    if code == 3:
        return squared_hinge_slope(y, f)
    if code == 4:
        return squared_tube_slope(parameter, y, f)
    if code == 5:
        return huber_slope(parameter, y, f)
    return logistic_slope(y, f)


@njit(cache=True, nogil=True, inline="always")
def scalar_excess(code: int, parameter: float, y: float, f: float) -> float:
    """loss(y, f) where that is positive, else a number that is not."""
    if code == 0:
        return hinge_excess(y, f)
    if code == 1:
        return tube_excess(parameter, y, f)
    if code == 2:
        return pinball_excess(parameter, y, f)
    if code == 3:
        return squared_hinge_excess(y, f)
    if code == 4:
        return squared_tube_excess(parameter, y, f)
    if code == 5:
        return huber_excess(parameter, y, f)
    return logistic_excess(y, f)


@njit(cache=True, nogil=True, inline="always")
def is_seen(code: int, y: float) -> bool:
    """Whether a model sees a row with this target: ``Loss.kink`` has a side there."""
    return y != 0.0 or not (code == 0 or code == 3 or code == 6)


def loop_arguments(loss: Loss) -> tuple[int, float]:
    """(code, parameter): what compiled code is told of the loss of one model."""
    code, parameter = axis_arguments(loss, 1)
    return code, float(parameter[0])


def axis_arguments(loss: Loss, n_models: int) -> tuple[int, Array]:
    """(code, parameters): what compiled code is told of the loss of K models, one of the table."""
    code = loss.code
    if not (0 <= code < len(LOSSES) and isinstance(loss, LOSSES[code])):
        raise ValueError(
            f"loss={loss!r} with the code {code} is no loss that compiled loops have; add it to "
            "LOSSES, and give it the code of its place there."
        )
    return code, np.resize(np.asarray(loss.parameter, dtype=np.float64), n_models)
