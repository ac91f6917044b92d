"""The errors that are ours alone, and how warnings are told.

ArithmeticError
 └─ NonFiniteError        an iterate or a feature became NaN or infinite
ValueError                bad parameters and bad input (scikit-learn's convention), but what is of
 │                        a type that can be none, or a name that is none, which is a TypeError
 ├─ DataError             rows of a file or stream that cannot be read: file, line or row, value
 └─ ModelFileError        a model file that is cut, damaged, foreign or newer than this version
"""

from __future__ import annotations

import inspect
import warnings

INSIDE = ("asset_svm", "sklearn.callback")
"""Packages that no warning names: scikit-learn's callbacks stand between a caller and ``fit``."""


class NonFiniteError(ArithmeticError):
    """Training met a number that is not finite; no model is returned."""


class DataError(ValueError):
    """A file or stream has rows that cannot be read; says where."""


LONGEST = 800
"""Characters of a message about a model file."""


class ModelFileError(ValueError):
    """A file is not a model that this version can read; says why."""

    def __init__(self, message: str):
        # A damaged file may hold anything in place of a name, and messages show what they found.
        said = " ".join(message.split())
        super().__init__(said if len(said) <= LONGEST else f"{said[:500]} ... {said[-200:]}")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, naming the line from which this package was called."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None:
        name = str(frame.f_globals.get("__name__"))
        if not any(name == inside or name.startswith(f"{inside}.") for inside in INSIDE):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
