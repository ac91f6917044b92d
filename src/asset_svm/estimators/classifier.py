"""AssetClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin

from asset_svm.data.source import RowSource
from asset_svm.estimators.callbacks import with_callbacks
from asset_svm.estimators.documentation import document
from asset_svm.estimators.files import fit_rows
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.settings import checks as check
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Classification


@document
class AssetClassifier(ScoresTargets, ClassifierMixin, Learner):
    """Kernel support vector classification by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(1 - y_i (phi(x_i).coef + b), 0), with phi a Nystroem
    or random Fourier approximation of the kernel; several classes one-vs-rest, in one pass over
    one map.

    Parameters
    ----------
    %(common)s
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

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=0.0,
        C=1.0,
        lam=None,
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
        class_weight=None,
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
        self._warn(*self._train(X, y, sample_weight))
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
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

    def decision_function(self, X):
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        return self._fitted_task().decisions(self._decide(X))

    def predict(self, X):
        """The class with the largest decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._fitted_task().predict(self._decide(X))

    def _finisher(self, method):
        check.check_choice("method", method, ("predict", "decision_function"))
        task = self._fitted_task()
        return task.predict if method == "predict" else task.decisions

    def _task(self, settings, classes=None, before=None):
        known = classes if before is None else before.classes
        return Classification.of(self.class_weight, known)
