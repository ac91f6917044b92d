"""A user's function of two matrices of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array, Matrix
from asset_svm.exceptions import NonFiniteError
from asset_svm.kernels.formula import (
    Argument,
    BlockFunction,
    Formula,
    Values,
)


@dataclass(frozen=True)
class OwnFormula(Formula):
    """function(X, Z): nothing is known of it, and it may not be made for several threads at a time."""

    function: Callable[[Matrix, Matrix], Any]
    argument: ClassVar[Argument] = Argument.ROWS
    has_gamma: ClassVar[bool] = False
    is_reentrant: ClassVar[bool] = False
    is_symmetric: ClassVar[bool] = False

    @classmethod
    def of(cls, name: Any, gamma: float, degree: float, coef0: float) -> OwnFormula:
        """The formula of a user's function."""
        return cls(gamma, degree, coef0, name)

    @property
    def factor(self) -> NoReturn:
        """Raise: nothing is known of the function."""
        raise self._without_profile()

    @property
    def positive_definite(self) -> bool:
        """A user's function need not be positive definite."""
        return False

    def profile(self, t: Values, xp: Any = np) -> NoReturn:
        """Raise: nothing is known of the function."""
        raise self._without_profile()

    def derivative(self, t: Values, xp: Any = np) -> NoReturn:
        """Raise: nothing is known of the function."""
        raise self._without_profile()

    def _without_profile(self) -> ValueError:
        return ValueError(
            f"kernel={self.function!r} is a function of two matrices, and has no profile; use a kernel "
            "that has a name."
        )

    def against(self, Z: Matrix, dtype: np.dtype[Any]) -> BlockFunction:
        """Prepare calls of the function, whose results are checked."""
        return OwnValues(self.function, Z, dtype)

    def diagonal(self, X: Matrix) -> Array:
        """Return k(x, x), found a row at a time."""
        rows = (X[i : i + 1] for i in range(X.shape[0]))
        dtype = np.dtype(np.float64)
        return np.array([self.against(x, dtype)(x).item() for x in rows])

    def check_values(self, K: Array, X: Matrix) -> None:
        """Raise where it is 0 for all pairs of rows that are not all 0 themselves.

        Of rows and themselves only, that is while a model is trained: a row that is far from every
        landmark, or has no word in common with one, has kernel values of 0 by right, and where all rows
        of a prediction are such their decisions are the intercept.
        """
        if not K.any() and (X != 0).sum():
            raise ValueError(
                f"The callable kernel returned 0 for every pair of {len(K)} rows, even of a row with "
                "itself, and tells none of them apart; it must return the matrix of kernel values."
            )


class OwnValues:
    """A user's kernel, its result checked: a matrix of the right shape, of finite real numbers.

    What is returned is copied, since it may be a matrix that the user keeps, and callers write into
    theirs. A sparse one is made dense, as ``SVC`` does: the plain product of CSR rows is one.
    """

    def __init__(self, function: Callable[[Matrix, Matrix], Any], Z: Matrix, dtype: np.dtype[Any]):
        self.function, self.Z, self.dtype = function, Z, dtype

    def __call__(self, X: Matrix) -> Array:
        """Return k(X, Z)."""
        found = self.function(X, self.Z)
        expected = (X.shape[0], self.Z.shape[0])
        if np.ma.is_masked(found):
            raise ValueError(
                f"The callable kernel returned {int(found.mask.sum())} masked values; it must "
                "return a number for every pair of rows."
            )
        values = _matrix(found)
        if values is None or values.shape != expected:
            what = f"shape {values.shape}" if values is not None and values.ndim else f"{found!r:.60}"
            raise ValueError(
                f"The callable kernel returned {what} for {expected[0]} rows and {expected[1]} "
                f"landmarks; it must return the {expected} matrix of kernel values."
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"The callable kernel returned values of type {values.dtype}; it must return "
                "real numbers."
            )
        with np.errstate(over="ignore"):
            copied = values.astype(self.dtype)
        finite = np.isfinite(copied)
        if not finite.all():
            raise NonFiniteError(
                f"The callable kernel returned values that are not finite in {self.dtype} "
                f"({values[~finite][0]}); it must return finite numbers: mend it, or scale the columns "
                "of X (StandardScaler) if they are too large for it."
            )
        return copied


def _matrix(found: Any) -> Array | None:
    """The array of what a user's function returned; None where there is none."""
    try:
        return np.asarray(found.toarray() if sp.issparse(found) else found)
    except (TypeError, ValueError):  # rows of different lengths
        return None
