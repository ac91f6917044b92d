"""Parameters of estimators: kept by constructors, checked by fits.

Every estimator writes out its signature, though most parameters are common: scikit-learn, editors and
type checkers all read it there. A test compares the defaults.

Checks have one sentence shape: name=value, why it cannot be, what to do.

C=-1 is not a positive number; set C to a number above 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from asset_svm import kernels


def keep_parameters(estimator: object, given: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, as they are: scikit-learn's rule."""
    vars(estimator).update((name, value) for name, value in given.items() if name != "self")


def _refuse(name: str, value: Any, why: str, advice: str) -> None:
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    raise ValueError(f"{name}={shown} {why}; {advice}.")


def is_number(value: Any) -> bool:
    """Whether it is a finite real number; a bool is none, and an integer beyond every float neither."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_integer(value: Any) -> bool:
    """Whether it is an integer; a bool is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_positive(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise unless it is a number above 0."""
    if optional and value is None:
        return
    if not is_number(value) or value <= 0:
        _refuse(name, value, "is not a positive number", f"set {name} to a number above 0")


def check_not_negative(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise unless it is a number of at least 0."""
    if optional and value is None:
        return
    if not is_number(value) or value < 0:
        _refuse(name, value, "is not a number of at least 0", f"set {name} to 0 or above")


def check_count(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise unless it is an integer of at least 1."""
    if optional and value is None:
        return
    if not is_integer(value) or value < 1:
        _refuse(name, value, "is not a positive integer", f"set {name} to an integer of at least 1")


def check_epochs(max_iter: Any) -> None:
    """Raise unless it is a number of epochs; SVC's -1 has an answer of its own."""
    if is_integer(max_iter) and max_iter == -1:
        _refuse(
            "max_iter",
            max_iter,
            "is SVC's word for no limit, and epochs have one",
            "set max_iter=None for the usual number, or tol for a required precision",
        )
    check_count("max_iter", max_iter, optional=True)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless it is one of a few values."""
    choices = tuple(choices)
    value = value.item() if isinstance(value, np.generic) else value  # a grid made with numpy
    if not any(type(value) is type(c) and value == c for c in choices):
        listed = ", ".join(f'"{c}"' if isinstance(c, str) else repr(c) for c in choices)
        _refuse(name, value, "is not a known choice", f"choose one of {listed}")


def check_flag(name: str, value: Any) -> None:
    """Raise unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        _refuse(name, value, "is not a truth value", f"set {name} to True or False")


def check_fraction(name: str, value: Any, usual: float = 0.1) -> None:
    """Raise unless it is a number strictly between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        _refuse(name, value, "is not between 0 and 1", f"set {name} to a fraction such as {usual:g}")


def is_jobs(value: Any) -> bool:
    """Whether it is None or an integer other than 0."""
    return value is None or (is_integer(value) and value != 0)


def check_jobs(value: Any) -> None:
    """Raise unless it is a number of jobs."""
    if not is_jobs(value):
        _refuse("n_jobs", value, "is not a number of threads", "set n_jobs to an integer or None")


def check_level(name: str, value: Any) -> None:
    """Raise unless it is an integer of at least 0, or a truth value."""
    if not (isinstance(value, bool | np.bool_) or (is_integer(value) and value >= 0)):
        _refuse(name, value, "is not a level", f"set {name} to 0 or a positive integer")


def check_average(value: Any) -> None:
    """Raise unless it is a float in (0, 1], an integer of at least 1, or None."""
    if value is None or (is_integer(value) and value >= 1):
        return
    if is_number(value) and not is_integer(value) and 0 < value <= 1:
        return
    _refuse(
        "average",
        value,
        "is neither a fraction, nor a count, nor None",
        "set average to a float in (0, 1], to an integer of at least 1, or to None",
    )


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> None:
    """Raise unless these are a kernel and its numbers."""
    if isinstance(kernel, str) and kernel == "precomputed":
        _refuse(
            "kernel",
            kernel,
            "needs all m x m kernel values, which is what this method avoids",
            "pass the rows with kernel='rbf' or a callable, or use sklearn.svm.SVC",
        )
    if not callable(kernel):
        check_choice("kernel", kernel, kernels.NAMES)
    named = isinstance(gamma, str) and gamma in ("scale", "auto")
    if not named and (not is_number(gamma) or gamma <= 0):
        _refuse(
            "gamma",
            gamma,
            'is neither "scale", nor "auto", nor a positive number',
            'set gamma to "scale", "auto" or a number above 0',
        )
    check_not_negative("degree", degree)
    if not is_number(coef0):
        _refuse("coef0", coef0, "is not a number", "set coef0 to a finite number")
