"""AssetClassifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from asset_svm.estimators.documentation import document
from asset_svm.estimators.learner import Learner, check_cells
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.tables import TableEncoder
from asset_svm.estimators.validation import is_wide
from asset_svm.settings import Settings
from asset_svm.settings import checks as check
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Classification, Outputs, Task, several


def _has_probabilities(estimator: AssetClassifier) -> bool:
    """Whether decisions are logarithms of odds, of classes and not of pairs of them.

    Before a fit nobody knows whether classes are more than two, of which pairs would have none.
    """
    fitted = estimator.__dict__.get("_fitted")
    paired = estimator.multi_class == "ovo" if fitted is None else fitted.task.paired
    return bool(estimator.loss == "logistic" and not paired)


@document
class AssetClassifier(ScoresTargets, ClassifierMixin, Learner):
    """Kernel support vector classification by approximate stochastic subgradients.

    Solves lam/2 |coef|^2 + (1/W) sum_i w_i max(1 - y_i (phi(x_i).coef + b), 0), with phi a Nystroem
    or random Fourier approximation of the kernel; several classes one-vs-rest or in pairs, and
    several outputs (columns of y, of two classes or more), in one pass over one map.

    Parameters
    ----------
    %(common)s
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        max(1 - y f, 0), its square, or log(1 + exp(-y f)), of which ``predict_proba`` has the
        probabilities themselves. The latter has no exact cells (``n_cells``).
    class_weight : dict, "balanced" or None, default=None
        Multiplies ``sample_weight`` by the weight of the row's class. Of several outputs the weights of
        all of a row's classes are multiplied; a list has one entry an output.
    multi_class : {"ovr", "ovo"}, default="ovr"
        How more than two classes are separated: each from the rest, or every two of them by a model of
        their rows alone, which share one map; the class with the most votes wins, as in SVC. Pairs are
        better where a class lies between others, and have more models to train.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of them, one an output
        Of label indicators, columns of 0 and 1, the numbers of the labels.
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
        multi_class: str = "ovr",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        precision: str = "float32",
        verbose: int = 0,
    ) -> None:
        check.keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True  # which ClassifierMixin has made, after its bases
        return tags

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch, in constant memory.

        The first call settles the classes, and the first rows (``n_components`` of them, 256 at least)
        the map, lam and the steps: until they are there the model begins anew with all of them
        whenever they have doubled. Between later calls only ``verbose``, ``n_jobs`` and
        ``memory_limit`` may be changed to any effect; another ``loss`` or ``multi_class`` is refused.
        After ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        classes : array-like of shape (n_classes,), optional
            All classes there will be; needed at the first call, may be left out later. A list of them,
            one an output, where y has several columns.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        known = _checked_classes(classes)
        if "_fitted" in self.__dict__:
            before = self._fitted.task.classes
            if known is not None and _listed(known) != _listed(before):
                raise ValueError(
                    f"classes={_listed(known)} differ from the {_listed(before)} of the "
                    "first call to partial_fit; leave classes out or pass the same."
                )
            known = before
        elif known is None:
            of_each = "[np.unique(column) for column in y.T]" if is_wide(y) else "np.unique(y)"
            raise ValueError(
                "classes=None at the first call to partial_fit, which cannot know them all from one "
                f"batch; pass classes={of_each} of all targets."
            )
        return self._partial_fit(X, y, sample_weight, known)

    def decision_function(self, X: Any) -> Any:
        """phi(x).coef + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            With ``multi_class="ovo"`` those of more than two classes are the votes of pairs, with less
            than a third of a vote for the sum of decisions, by which classes of as many votes are told
            apart. Of several outputs it is an array of shape (n_samples, n_outputs) where each has two
            classes at most, else a list with an array for each output.
        """
        return self._fitted.task.decisions(self._decide(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._predictions(self._decide(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, where ``loss`` is "logistic".

        expit of the decisions; of more than two classes, over their sum. Pairs of classes
        (``multi_class="ovo"``) have none. Of several outputs a label that no row of the fit has, or
        every one, has probability 0 or 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Of several outputs, where each has two classes at most, an array of shape (n_samples,
            n_outputs), of the second class of each; else a list with an array for each output.
        """
        return _exp(self.predict_log_proba(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of the classes, where ``loss`` is "logistic".

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Of several outputs as of ``predict_proba``.
        """
        learnt = self._fitted.task.loss.kind  # where there is no model, ``__getattr__`` tells
        if learnt != self.loss:
            raise ValueError(
                f'loss="{self.loss}" was set after a fit with the {learnt} loss, whose decisions are '
                "no logarithms of odds; call fit."
            )
        return self._log_probabilities(self._decide(X))

    def _probabilities(self, decisions: np.ndarray) -> Any:
        """(rows, classes) from the (rows, K) decisions; a list of them for several outputs."""
        return _exp(self._log_probabilities(decisions))

    def _log_probabilities(self, decisions: np.ndarray) -> Any:
        return self._fitted.task.log_probabilities(decisions)  # type: ignore[attr-defined]

    def _task(self, settings: Settings, classes: Any = None, before: Task | None = None) -> Task:
        """Learning classes: those of ``before``, where a model has begun."""
        known = classes if before is None else before.classes
        listed = isinstance(known, list)
        task = Classification.of(
            self.class_weight, None if listed else known, self.loss, self.multi_class
        )
        begun = before.parts[0] if isinstance(before, Outputs) else before
        if isinstance(begun, Classification):
            task = replace(task, loss_name=begun.loss_name, multi_class=begun.multi_class)
        check_cells(settings, task)
        return several(task, len(known)).with_classes(known) if listed else task


def _exp(logarithms: Any) -> Any:
    """Exp of an array, or of every array of a list."""
    return [np.exp(each) for each in logarithms] if isinstance(logarithms, list) else np.exp(logarithms)


def _checked_classes(classes: Any) -> Any:
    """The classes that were announced, sorted; a list of them where there are several outputs."""
    nested = isinstance(classes, list | tuple) and len(classes) > 0
    if nested and all(np.ndim(each) == 1 for each in classes):
        return [_checked_classes(np.asarray(each)) for each in classes]
    check_targets(classes, "classes", numeric=False)
    return None if classes is None else np.unique(classes)


def _listed(classes: Any) -> list[Any]:
    """Classes as a plain list."""
    return [each.tolist() for each in classes] if isinstance(classes, list) else classes.tolist()
