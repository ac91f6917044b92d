"""AssetClassifierCV."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from asset_svm.estimators.classifier import AssetClassifier
from asset_svm.estimators.vocabulary import FEWER_LOSSES
from asset_svm.search.base import SearchEstimator
from asset_svm.search.documentation import document
from asset_svm.settings import checks as check


def _has_probability(search):
    """Whether probabilities were asked for."""
    return search.probability


@document
class AssetClassifierCV(ClassifierMixin, SearchEstimator):
    """The best AssetClassifier that can be found, without a knob, or by a grid.

    With no part of a grid given, a race over encodings of the columns, kernels, learnt relevance,
    bandwidths, C, one map and cells. Of a grid all values of C and folds train at once, on one map of
    the rows for each gamma; a model skips the rows that are held out from it.

    Parameters
    ----------
    %(search)s
    probability : bool, default=False
        Whether a race turns the decisions that it has held out into ``predict_proba``.
    class_weight : dict, "balanced" or None, default=None
        "balanced" counts the rows that a fold learns from. A race with a ``scoring`` of its own tries
        it by itself.
    multi_class : {"ovr", "ovo"}, default="ovr"
        How more than two classes are separated, as of AssetClassifier.
    %(others)s

    Attributes
    ----------
    %(attributes)s
    classes_ : ndarray of shape (n_classes,), or list of them, one an output

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm import AssetClassifierCV
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> search = AssetClassifierCV(Cs=[0.1, 1, 10, 100, 1000], gammas=[0.1, 1.0, 10.0], random_state=0)
    >>> search = search.fit(X, y)
    >>> search.best_score_ > 0.99
    True
    """

    _model = AssetClassifier
    _answers: ClassVar = {"loss": ("AssetClassifier", *FEWER_LOSSES)}

    def __init__(
        self,
        kernel="auto",
        *,
        Cs="auto",
        gammas="auto",
        cv=None,
        scoring=None,
        refit=True,
        time_limit=None,
        ensemble=True,
        probability=False,
        search_iter=None,
        keep_path=False,
        gamma="scale",
        degree=3,
        coef0=0.0,
        approximation="nystroem",
        n_components=None,
        landmarks="uniform",
        fourier="iid",
        rank=None,
        rank_threshold=None,
        rank_rule="relative",
        relevance="auto",
        encoder="auto",
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
        memory_limit=None,
        class_weight=None,
        multi_class="ovr",
        random_state=None,
        n_jobs=None,
        device="cpu",
        precision="float32",
        verbose=0,
    ):
        check.keep_parameters(self, locals())

    score = SearchEstimator.score  # by ``scoring``, before the mixin's

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True  # which ClassifierMixin has made, after its bases
        return tags

    @available_if(_has_probability)
    def predict_proba(self, X):
        """Probabilities of the classes, with probability=True: sigmoids of the race's own decisions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        self._best("predict_proba")
        return self.calibrated_.predict_proba(self._seen(X))

    def decision_function(self, X):
        """Decisions of the best model, refitted on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decisions : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        return self._best("decision_function").decision_function(self._seen(X))
