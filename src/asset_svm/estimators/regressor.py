"""AssetRegressor."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin

from asset_svm.data import RealTargets
from asset_svm.data.source import RowSource
from asset_svm.settings import checks as check
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.callbacks import with_callbacks
from asset_svm.families.constant import UNEQUAL, quantile_range
from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.streaming import fit_rows
from asset_svm.losses import EpsilonInsensitive

NARROW = 0.03
"""Times the range of the targets: predictions that range over less tell no rows apart."""


@document
class AssetRegressor(ScoresTargets, RegressorMixin, Learner):
    """Kernel support vector regression by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(|y_i - phi(x_i).coef - b| - epsilon, 0), with phi a
    Nystroem or random Fourier approximation of the kernel. With an intercept, the weighted median of
    y is subtracted first and added back: the same problem in a smaller ball.

    Parameters
    ----------
    %(common)s
    epsilon : float, default=0.1
        The half-width of the tube inside which errors do not count.

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetRegressor
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> y = np.sin(X).ravel()
    >>> AssetRegressor(C=10, epsilon=0.01, random_state=0).fit(X, y).score(X, y) > 0.99
    True
    """

    _y_numeric = True

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=0.0,
        C=1.0,
        lam=None,
        epsilon=0.1,
        approximation="nystroem",
        n_components=None,
        landmarks="uniform",
        fourier="iid",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        n_cells=None,
        n_partitions=1,
        step="auto",
        step_scale="auto",
        gradient_sample=1000,
        fit_intercept="auto",
        intercept_bound=None,
        average="auto",
        sampling="auto",
        max_iter=None,
        tol=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        time_limit=None,
        memory_limit=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        device="cpu",
        precision="float32",
        verbose=0,
    ):
        check.keep_parameters(self, locals())

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Train on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or RowSource
            A source (``asset_svm.open_rows``) brings its targets, and may be larger than memory.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if isinstance(X, RowSource):
            return fit_rows(self, X, y, sample_weight)
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, sample_weight=None):
        """Learn from one batch, in constant memory.

        The first rows (``n_components`` of them, 256 at least) settle the map, lam and the steps:
        until they are there the model begins anew with all of them whenever they have doubled. Between
        later calls only ``verbose``, ``n_jobs`` and ``memory_limit`` may be changed to any effect.
        After ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X):
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._decide(X).ravel()

    def _finisher(self, method):
        """From decisions to what ``method`` returns."""
        check.check_choice("method", method, ("predict",))
        return np.ravel

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_not_negative("epsilon", self.epsilon)

    def _encode(self, y, weight, known=None, *, first=True) -> Encoded:
        y = np.asarray(y, dtype=np.float64)
        offset = self._offset if not first else 0.0
        if first and (self._free_intercept or self.n_cells is not None):
            offset = weighted_median(y, weight)
        centred = y - offset
        loss = EpsilonInsensitive(float(self.epsilon))
        return Encoded(RealTargets(centred), loss, float(np.abs(centred).max()), offset)

    def _count_by_class(self, y):
        return np.array([len(y)])

    def _validation_score(self, decisions, y, weight) -> float:
        from sklearn.metrics import r2_score

        return float(r2_score(y, decisions.ravel(), sample_weight=weight))

    def _row_losses(self, decisions, y):
        return np.abs(y - decisions.ravel())

    def _says_of_constant(self, decisions, y, weight):
        found, wanted = quantile_range(decisions.ravel(), weight), quantile_range(y, weight)
        if found > NARROW * wanted or wanted == 0.0:
            return None
        what = (
            f"half of its predictions lie within {found:.2g}, half of the targets within {wanted:.2g}"
        )
        causes, advice = [], ["raise C"]
        if wanted <= 2.0 * self.epsilon:
            causes.append(f"targets within epsilon={self.epsilon:g} of each other count as the same")
            advice = ["lower epsilon"]
        elif self.lam is None and wanted > UNEQUAL * self.C:
            causes.append(f"the targets spread over {wanted / self.C:.2g} times C={self.C:g}")
            advice.append("divide the targets by their spread (TransformedTargetRegressor)")
        return what, causes, advice

    def _importance(self, decisions, y):
        return np.abs(y - decisions.ravel())

    def _split(self, y, seed):
        from sklearn.model_selection import train_test_split

        return train_test_split(
            np.arange(len(y)), test_size=self.validation_fraction, random_state=seed
        )


def weighted_median(y: np.ndarray, weight: np.ndarray) -> float:
    """The smallest y below or at which lies half of the weight."""
    order = np.argsort(y, kind="stable")
    running = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(running, 0.5 * running[-1])]])
