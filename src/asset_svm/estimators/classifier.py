"""AssetClassifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner, check_cells
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.tables import TableEncoder
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Classification, Task
from asset_svm.tasks.classification import shares_of


def _has_probabilities(estimator: AssetClassifier) -> bool:
    """Whether decisions are logarithms of odds."""
    return bool(estimator.loss == "logistic")


@document
class AssetClassifier(ScoresTargets, ClassifierMixin, Learner):
    """Kernel support vector classification by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(1 - y_i (phi(x_i).coef + b), 0), with phi a Nystroem
    or random Fourier approximation of the kernel; several classes one-vs-rest, in one pass over
    one map.

    Parameters
    ----------
    %(common)s
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        max(1 - y f, 0), its square, or log(1 + exp(-y f)), of which ``predict_proba`` has the
        probabilities themselves. The latter has no exact cells (``n_cells``).
    class_weight : dict, "balanced" or None, default=None
        Multiplies ``sample_weight`` by the weight of the row's class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    %(attributes)s

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm import AssetClassifier
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> AssetClassifier(gamma=1.0, C=10, random_state=0).fit(X, y).score(X, y) > 0.99
    True
    """

    _methods = ("predict", "decision_function")

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        lam: float | None = None,
        loss: str = "hinge",
        approximation: str | BaseEstimator = "nystroem",
        n_components: int | str | None = None,
        landmarks: str | ArrayLike = "uniform",
        fourier: str = "iid",
        rank: int | None = None,
        rank_threshold: float | None = None,
        rank_rule: str = "relative",
        relevance: str | None = None,
        encoder: str | TableEncoder | None = "auto",
        n_cells: int | str | None = None,
        n_partitions: int = 1,
        step: str = "auto",
        step_scale: str | float = "auto",
        gradient_sample: int = 1000,
        fit_intercept: str | bool = "auto",
        intercept_bound: float | None = None,
        average: str | float | int | None = "auto",
        sampling: str = "auto",
        max_iter: int | None = None,
        tol: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        precision: str = "float32",
        verbose: int = 0,
    ) -> None:
        check.keep_parameters(self, locals())

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch, in constant memory.

        The first call settles the classes, and the first rows (``n_components`` of them, 256 at least)
        the map, lam and the steps: until they are there the model begins anew with all of them
        whenever they have doubled. Between later calls only ``verbose``, ``n_jobs`` and
        ``memory_limit`` may be changed to any effect. After ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes there will be; needed at the first call, may be left out later.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        check_targets(classes, "classes", numeric=False)
        known = None if classes is None else np.unique(classes)
        if "_fitted" in self.__dict__:
            if known is not None and not np.array_equal(known, self.classes_):
                raise ValueError(
                    f"classes={known.tolist()} differ from the {self.classes_.tolist()} of the "
                    "first call to partial_fit; leave classes out or pass the same."
                )
            known = self.classes_
        elif known is None:
            raise ValueError(
                "classes=None at the first call to partial_fit, which cannot know them all from one "
                "batch; pass classes=np.unique(y) of all targets."
            )
        return self._partial_fit(X, y, sample_weight, known)

    def decision_function(self, X: Any) -> np.ndarray:
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        return self._fitted.task.decisions(self._decide(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._predictions(self._decide(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, where ``loss`` is "logistic".

        expit of the decisions; of more than two classes, over their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        learnt = self._fitted.task.loss.kind  # where there is no model, ``__getattr__`` tells
        if learnt != self.loss:
            raise ValueError(
                f'loss="{self.loss}" was set after a fit with the {learnt} loss, whose decisions are '
                "no logarithms of odds; call fit."
            )
        return self._probabilities(self._decide(X))

    def _probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """(rows, classes) from the (rows, K) decisions."""
        return shares_of(expit(decisions.astype(np.float64)))

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """Learning classes: those of ``before``, where a model has begun."""
        known = classes if before is None else before.classes
        task = Classification.of(self.class_weight, known, self.loss)
        if isinstance(before, Classification):
            task = replace(task, loss_name=before.loss_name)
        check_cells(settings, task)
        return task
