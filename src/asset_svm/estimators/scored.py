"""``score``, with a look at the targets first."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.utils import check_array, column_or_1d

from asset_svm.estimators.validation import check_weight, is_wide
from asset_svm.settings.kinds import check_kind, check_targets


class ScoresTargets:
    """Stands before scikit-learn's mixin, whose scores take masked values for values."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of a classifier, R^2 of a regressor.

        Of several outputs the part of the rows whose classes are all right, or the mean R^2.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        check_scored(y, sample_weight, numeric=is_regressor(self))
        if not is_regressor(self) and is_wide(y):
            return every_right(y, self.predict(X), sample_weight)  # type: ignore[attr-defined]
        return super().score(X, y, sample_weight)  # type: ignore[misc]


def every_right(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """The part of the rows, by weight, of which every output is predicted."""
    y = np.asarray(y.toarray() if sp.issparse(y) else y)
    return float(np.average((y == predicted).all(axis=1), weights=sample_weight))


def check_scored(y: Any, sample_weight: Any, *, numeric: bool) -> None:
    """Raise where targets or weights are of a kind that cannot be scored."""
    check_targets(y, numeric=numeric)
    check_kind(sample_weight, "sample_weight")


def checked_numbers(y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets that are numbers, one a row, and their weights."""
    check_scored(y, sample_weight, numeric=True)
    y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    if len(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows and y has {len(y)}; they must be as many.")
    return y, None if sample_weight is None else check_weight(sample_weight, y)
