"""The errors that are ours alone.

ArithmeticError
 └─ NonFiniteError        an iterate or a feature became NaN or infinite
ValueError                every bad parameter or bad input (scikit-learn's convention)
"""

from __future__ import annotations


class NonFiniteError(ArithmeticError):
    """Training met a number that is not finite; no model is returned."""
