"""From the parameters of an estimator or transformer to a drawn feature map."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.estimators.device import on_card, on_host
from asset_svm.estimators.landmarks import GivenPoints, candidates, largest_count
from asset_svm.estimators.parameters import check_count, check_not_negative, is_integer
from asset_svm.exceptions import warn_caller
from asset_svm.features import FourierFeatures, HadamardFeatures, NystroemFeatures
from asset_svm.features.fourier import CosineFeatures
from asset_svm.features.frequencies import DRAWS
from asset_svm.features.landmarks import Sampler, ScoredRows, uniform_landmarks
from asset_svm.kernels import Kernel, scale_gamma

DEFAULT_COMPONENTS = 2048
FOURIER_KINDS = (*DRAWS, "hadamard")
CENTRE_SAMPLE = 1024
"""Rows whose mean Fourier features are centred by."""
LARGEST_EIGENBASIS = 2048
"""Landmarks up to which the eigendecomposition of their kernel matrix is cheap beside the map."""


def resolve_kernel(estimator: Any, X: Any, weight: np.ndarray | None) -> Kernel:
    """The kernel with its gamma as a number."""
    gamma = estimator.gamma
    if gamma == "auto":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale":
        gamma = scale_gamma(on_host(X), weight)
    coef0, degree = getattr(estimator, "coef0", 0.0), getattr(estimator, "degree", 3)
    return Kernel(estimator.kernel, float(gamma), degree, float(coef0))


def resolve_components(n_components: int | None) -> int:
    """``n_components``, by default 2048: rows whose features do not fit in memory are mapped anew."""
    return DEFAULT_COMPONENTS if n_components is None else int(n_components)


def resolve_landmarks(
    estimator: Any, X: Any, weight: np.ndarray | None, n_components: int | None
) -> int:
    """How many landmarks the Nystroem map has: no more than rows that can be landmarks."""
    if not isinstance(estimator.landmarks, str):
        return GivenPoints(estimator.landmarks).count
    count = resolve_components(n_components)
    if n_components is None:
        return min(count, largest_count(estimator, X, weight))
    return min(count, candidates(X, weight))


def warn_of_few_landmarks(estimator: Any, n_landmarks: int) -> None:
    """Warn where there are fewer than ``n_components`` asks for, once for what a user calls.

    Not where the map is drawn: cells, trials and the candidates of a search draw maps too.
    """
    count = estimator.n_components
    if is_integer(count) and count > n_landmarks:
        warn_caller(
            f"n_components={count} is more than the {n_landmarks} rows that can be landmarks (those "
            "of positive weight that are not held out), and each of them is one; set n_components to "
            f"at most {n_landmarks}.",
            UserWarning,
        )


def draw_nystroem(
    estimator: Any,
    X: Any,
    weight: np.ndarray | None,
    rng: np.random.Generator,
    count: int,
    sampler: Sampler,
    *,
    eigenbasis: bool = False,
    centred: bool = False,
    features: type[NystroemFeatures] = NystroemFeatures,
) -> NystroemFeatures:
    """Landmarks for the rows of X, and their factor; in an eigenbasis where asked and not dear."""
    own = features.own_sampler(sampler, X)
    looks = own is sampler and sampler is not uniform_landmarks and not isinstance(sampler, ScoredRows)
    if looks and on_card(X):
        X = on_host(X)  # where landmarks are chosen by a look at all rows
    return features.sample(
        X,
        resolve_kernel(estimator, X, weight),
        count,
        rng,
        weight=weight,
        sampler=own,
        rank=estimator.rank,
        threshold=estimator.rank_threshold,
        rule=estimator.rank_rule,
        basis="eigen" if eigenbasis and count <= LARGEST_EIGENBASIS else "auto",
        centred=centred,
    )


def draw_fourier(
    estimator: Any,
    X: Any,
    weight: np.ndarray | None,
    rng: np.random.Generator,
    count: int,
    *,
    centred: bool = False,
) -> CosineFeatures:
    """Frequencies of the kind that ``fourier`` names."""
    kernel, n = resolve_kernel(estimator, X, weight), X.shape[1]
    phi: CosineFeatures
    if estimator.fourier == "hadamard":
        phi = HadamardFeatures.sample(kernel, n, count, rng)
    else:
        phi = FourierFeatures.sample(kernel, n, count, rng, estimator.fourier)
    if not centred:
        return phi
    chosen = np.sort(rng.choice(X.shape[0], min(CENTRE_SAMPLE, X.shape[0]), replace=False))
    return phi.centred(on_host(X[chosen]))


def check_rank(estimator: Any) -> None:
    """The parameters of the rank of the Nystroem map."""
    check_count("rank", estimator.rank, optional=True)
    check_not_negative("rank_threshold", estimator.rank_threshold, optional=True)
    if estimator.rank_rule == "absolute" and estimator.rank_threshold is None:
        raise ValueError(
            'rank_rule="absolute" needs a threshold, and rank_threshold=None gives none; '
            "set rank_threshold, for example to the paper's 1e-16."
        )
