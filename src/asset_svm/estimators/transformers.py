"""NystroemMap and FourierMap: the two kernel approximations as scikit-learn transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from asset_svm.estimators.documentation import document
from asset_svm.estimators.validation import all_or_nothing, check_weight, validate_rows
from asset_svm.families.one_map.maps import (
    draw_fourier,
    draw_nystroem,
    resolve_landmarks,
    warn_of_few_landmarks,
)
from asset_svm.settings import MapSettings
from asset_svm.settings.checks import keep_parameters
from asset_svm.settings.landmarks import sampler_of
from asset_svm.settings.mapping import resolve_components


class _FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What both maps share: a drawn ``features_`` and how it is applied."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    draws_features = True
    """What an estimator knows a map by that is given as its ``approximation``."""

    def _draw(
        self, settings: MapSettings, X: Any, weight: np.ndarray | None, rng: np.random.Generator
    ) -> Any:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight 0 are treated as absent; ``gamma="scale"`` uses the weighted variance.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            settings = MapSettings.of(self.get_params(deep=False), supervised=False)
            X = validate_rows(self, X)
            weight = None if sample_weight is None else check_weight(sample_weight, X)
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            self.features_ = self._draw(settings, X, weight, np.random.default_rng(seed))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Map rows to features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        V : ndarray of shape (n_samples, n_features_out)
            In the type of X (float32 or float64).
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        return self.features_(X)

    @property
    def _n_features_out(self) -> int:
        return self.features_.dimension


@document
class NystroemMap(_FeatureTransformer):
    """Approximate a kernel by landmarks: phi(x) = k(x, S) Q D^(-1/2).

    Parameters
    ----------
    kernel : %(kernels)s or callable, default="rbf"
        A callable f(X, Z) returns the matrix of kernel values, dense or sparse.
    gamma : {"scale", "auto"} or float, default="scale"
        As in ``sklearn.svm.SVC``; of "exponential", "matern32" and "matern52" one over a length, and
        "scale" and "auto" the square roots.
    degree, coef0 : float, default=3 and 0.0
        Of "poly" and "sigmoid".
    n_components : int, default=None
        Landmarks s; all rows, with a warning, where there are fewer. None takes min(rows, 2048).
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"} or array, default="uniform"
        How landmarks are chosen: rows at random; centres of clusters; rows by randomly pivoted
        Cholesky or by ridge leverage scores, both of which look at the kernel; or points of your own.
    rank : int, default=None
        Keep at most this many eigenpairs of the landmarks' kernel matrix.
    rank_threshold : float, default=None
        Drop smaller eigenvalues, relative to the largest; None suits the type of the rows.
    rank_rule : {"relative", "absolute"}, default="relative"
        "absolute" compares eigenvalues with ``rank_threshold`` itself, as in the paper (1e-16).
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (s, n_features)
        The landmarks.
    component_indices_ : ndarray of shape (s,) or None
        The rows of X that they were; None where they are no rows of X.
    approximation_error_ : float
        The relative trace error of the kernel approximation on a sample of 256 rows of X.
    features_ : object
        The drawn map.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from asset_svm import NystroemMap
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> map = NystroemMap(gamma=0.5, n_components=200, random_state=0).fit(X)
    >>> V = map.transform(X)
    >>> bool(np.allclose(V @ V.T, rbf_kernel(X, gamma=0.5), atol=1e-6))  # all rows are landmarks
    True
    """

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        landmarks: str | ArrayLike = "uniform",
        rank: int | None = None,
        rank_threshold: float | None = None,
        rank_rule: str = "relative",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _draw(
        self, settings: MapSettings, X: Any, weight: np.ndarray | None, rng: np.random.Generator
    ) -> Any:
        count = resolve_landmarks(settings, X, weight, settings.number)
        warn_of_few_landmarks(settings, count)
        return draw_nystroem(settings, X, weight, rng, count, sampler_of(settings.landmarks))

    @property
    def components_(self) -> Any:
        """The landmarks."""
        return self.features_.components

    @property
    def component_indices_(self) -> np.ndarray | None:
        """The rows of X that the landmarks were, if they were any."""
        return self.features_.indices

    @property
    def approximation_error_(self) -> float:
        """The relative trace error of the kernel approximation on a sample."""
        return self.features_.trace_error


@document
class FourierMap(_FeatureTransformer):
    """Approximate a kernel by random Fourier features: phi(x) = sqrt(2/d) cos(nu^T x + omega).

    Parameters
    ----------
    kernel : %(spectral)s, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
        As in ``NystroemMap``.
    n_components : int, default=None
        Features d; None takes 2048.
    fourier : {"iid", "orthogonal", "qmc", "hadamard"}, default="iid"
        How frequencies go together: independent; orthogonal in blocks; points of a scrambled Sobol
        sequence; by fast Walsh-Hadamard transforms, for rows of hundreds of dense features. The
        laplacian kernel has "iid" and "qmc".
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : object
        The drawn map, with ``frequencies`` and ``phases``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from asset_svm import FourierMap
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> map = FourierMap(gamma=0.5, n_components=4096, fourier="orthogonal", random_state=0).fit(X)
    >>> V = map.transform(X)
    >>> bool(np.abs(V @ V.T - rbf_kernel(X, gamma=0.5)).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: str | float = "scale",
        n_components: int | None = None,
        fourier: str = "iid",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _draw(
        self, settings: MapSettings, X: Any, weight: np.ndarray | None, rng: np.random.Generator
    ) -> Any:
        return draw_fourier(settings, X, weight, rng, resolve_components(settings.number))
