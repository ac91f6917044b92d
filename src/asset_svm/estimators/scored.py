"""``score``, with a look at the targets first."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor

from asset_svm.settings.kinds import check_kind, check_targets


class ScoresTargets:
    """Stands before scikit-learn's mixin, whose scores take masked values for values."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of a classifier, R^2 of a regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        check_scored(y, sample_weight, numeric=is_regressor(self))
        return super().score(X, y, sample_weight)  # type: ignore[misc]


def check_scored(y: Any, sample_weight: Any, *, numeric: bool) -> None:
    """Raise where targets or weights are of a kind that cannot be scored."""
    check_targets(y, numeric=numeric)
    check_kind(sample_weight, "sample_weight")
