"""The errors that are ours alone.

ArithmeticError
 └─ NonFiniteError        an iterate or a feature became NaN or infinite
ValueError                every bad parameter or bad input (scikit-learn's convention)
 ├─ DataError             rows of a file or stream that cannot be read: file, line or row, value
 └─ ModelFileError        a model file that is cut, damaged, foreign or newer than this version
"""

from __future__ import annotations


class NonFiniteError(ArithmeticError):
    """Training met a number that is not finite; no model is returned."""


class DataError(ValueError):
    """A file or stream has rows that cannot be read; says where."""


class ModelFileError(ValueError):
    """A file is not a model that this version can read; says why."""
