"""AssetClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from asset_svm.data import OneVsRestTargets
from asset_svm.data.source import RowSource
from asset_svm.settings import checks as check
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.callbacks import with_callbacks
from asset_svm.estimators.documentation import document
from asset_svm.settings.kinds import check_targets
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.scored import ScoresTargets
from asset_svm.estimators.streaming import fit_rows
from asset_svm.losses import Hinge

FEWEST_OTHERS = 0.1
"""Of the weight of training rows: where fewer are of other classes, one class for all may be right."""
FEW_ODD, LITTLE_GAIN = 0.05, 0.1
"""A model tells no rows apart where it gives another class to fewer rows than this, and makes nearly
all of the errors that it would make with one class for all."""
BOUNDARY = 0.1
"""Distances, in margins, that count as on the decision boundary: of rows at 1, a tenth as many become
landmarks. Fewer of those is worse (MNIST, s = 512: 4.2 % where exp(-2 distance) draws)."""


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
        return self._fit(X, y, sample_weight)

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
        if hasattr(self, "_decision"):
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
        decisions = self._decide(X)
        return decisions.ravel() if len(self.classes_) == 2 else decisions

    def predict(self, X):
        """The class with the largest decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.classes_[winner(self._decide(X))]

    def _finisher(self, method):
        """From decisions to what ``method`` returns."""
        check.check_choice("method", method, ("predict", "decision_function"))
        classes = self.classes_
        if method == "predict":
            return lambda decisions: classes[winner(decisions)]
        return np.ravel if len(classes) == 2 else np.asarray

    def _encode(self, y, weight, known=None, *, first=True) -> Encoded:
        check_classification_targets(y)
        classes = np.unique(y) if known is None else np.asarray(known)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class ({classes.tolist()[0]!r}); a classifier needs rows of at least "
                "2 classes."
            )
        announced = set(classes.tolist())
        unseen = [label for label in np.unique(y).tolist() if label not in announced]
        if unseen:
            raise ValueError(
                f"y has the class {unseen[0]!r}, which is not among the announced "
                f"{classes.tolist()}; pass all classes to the first call of partial_fit."
            )
        self.classes_ = classes
        targets = OneVsRestTargets(np.searchsorted(classes, y), len(classes))
        return Encoded(targets, Hinge(), 1.0, labels=tuple(classes.tolist()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.class_weight, dict):
            for label, value in self.class_weight.items():
                check.check_not_negative(f"class_weight[{label!r}]", value)
        elif self.class_weight is not None:
            check.check_choice("class_weight", self.class_weight, (None, "balanced"))

    def _check_stream(self) -> None:
        super()._check_stream()
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs the numbers of rows of all classes, and partial_fit '
                "sees one batch at a time; pass a dict of weights."
            )

    def _class_weights(self, y, weight):
        codes = np.searchsorted(self.classes_, y)
        totals = np.bincount(codes, weights=weight, minlength=len(self.classes_))
        factors = self._factors_of_totals(totals)
        return None if factors is None else factors[codes]

    def _factors_of_totals(self, totals):
        """The factor of each class, from the weights of their rows; None where all are 1."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight={self.class_weight} names {unknown[0]!r}, which is not among the "
                    f"classes {self.classes_.tolist()}; leave it out."
                )
            per_class = [self.class_weight.get(label, 1.0) for label in self.classes_.tolist()]
            return np.array(per_class, dtype=np.float64)
        # Of the weighted rows, so that a weight of k counts as k rows.
        present = np.where(totals > 0, totals, np.inf)
        return totals.sum() / (np.count_nonzero(totals) * present)

    def _count_by_class(self, y):
        return np.bincount(np.searchsorted(self.classes_, y), minlength=len(self.classes_))

    def _validation_score(self, decisions, y, weight) -> float:
        predicted = self.classes_[winner(decisions)]
        return float(np.average(predicted == y, weights=weight))

    def _row_losses(self, decisions, y):
        return (self.classes_[winner(decisions)] != y).astype(np.float64)

    def _says_of_constant(self, decisions, y, weight):
        found = winner(decisions)
        usual = np.bincount(found).argmax()
        label, share = self.classes_[usual], weight / weight.sum()
        odd, others = float(share[found != usual].sum()), float(share[y != label].sum())
        wrong = float(share[self.classes_[found] != y].sum())
        if odd > FEW_ODD or others < FEWEST_OTHERS or wrong < (1.0 - LITTLE_GAIN) * others:
            return None
        what = (
            f"{'all' if odd == 0.0 else 'nearly all'} of {len(y)} training rows are given the class "
            f"{label!s}, and {100 * others:.2g} % of them are of others"
        )
        return what, [], ["raise C", "choose another gamma"]

    def _importance(self, decisions, y):
        if decisions.shape[1] == 1:
            distance = np.abs(decisions[:, 0])
        else:  # between the two classes that the row could be of
            second, first = np.partition(decisions, -2, axis=1)[:, -2:].T
            distance = 0.5 * (first - second)
        return 1.0 / (BOUNDARY + distance)

    def _split(self, y, seed):
        from sklearn.model_selection import train_test_split

        rows = np.arange(len(y))
        counts = np.unique(y, return_counts=True)[1]
        stratify = y if counts.min() >= 2 else None
        return train_test_split(
            rows, test_size=self.validation_fraction, random_state=seed, stratify=stratify
        )


def winner(decisions: np.ndarray) -> np.ndarray:
    """The number of the class with the largest decision, from (rows, outputs)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.intp)
    return decisions.argmax(axis=1)
