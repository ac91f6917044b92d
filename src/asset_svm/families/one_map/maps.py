"""From settings and rows to a drawn feature map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from asset_svm.arrays import Array, Matrix
from asset_svm.backends.base import Backend
from asset_svm.backends.device import on_card, on_host
from asset_svm.exceptions import warn_caller
from asset_svm.features import FeatureMap, FourierFeatures, HadamardFeatures, NystroemFeatures
from asset_svm.features.fourier import CosineFeatures
from asset_svm.features.landmarks import Sampler, ScoredRows, uniform_landmarks
from asset_svm.settings import MapSettings, Settings
from asset_svm.settings.landmarks import GivenPoints, candidates, largest_count, sampler_of
from asset_svm.settings.mapping import resolve_components
from asset_svm.settings.solving import own_map

CENTRE_SAMPLE = 1024
"""Fourier features are centred by the mean of so many rows."""
LARGEST_EIGENBASIS = 2048
"""The eigendecomposition of the kernel matrix of so many landmarks is cheap beside the map."""


def draw_map(
    settings: Settings,
    backend: Backend,
    X: Matrix,
    weight: Array | None,
    seed: int,
    *,
    n_components: int | None = None,
    margin: Callable[[int], Sampler] | None = None,
) -> FeatureMap:
    """The map: drawn for these rows, or the one given as ``approximation``.

    ``n_components`` is the number where the parameter of that name has none. ``margin`` makes the
    sampler of landmarks="margin" for a number of them.
    """
    rng = np.random.default_rng([seed, 0])
    if not isinstance(settings.approximation, str):
        return _given_map(settings.approximation, X, weight, seed)
    count = n_components if settings.map.n_components == "auto" else settings.map.number
    if settings.approximation == "fourier":
        count = resolve_components(count)
        return draw_fourier(settings.map, X, weight, rng, count, centred=settings.centred)
    count = resolve_landmarks(settings.map, X, weight, count)
    if settings.map.by_margin and margin is None:
        raise ValueError(
            'landmarks="margin" needs a first fit on rows in memory; choose another, for '
            'example "rpcholesky".'
        )
    by_margin = settings.map.by_margin and margin is not None
    sampler = margin(count) if by_margin and margin else sampler_of(settings.map.landmarks)
    return draw_nystroem(
        settings.map,
        X,
        weight,
        rng,
        count,
        sampler,
        eigenbasis=settings.step == "metric",
        centred=settings.centred,
        features=backend.nystroem,
    )


def _given_map(approximation: Any, X: Matrix, weight: Array | None, seed: int) -> FeatureMap:
    """A map of the user's own, fitted to these rows where it is not fitted yet."""
    given = own_map(approximation)
    if not hasattr(given, "features_"):
        given = clone(given)
        if given.random_state is None:
            given.set_params(random_state=seed)
        given.fit(on_host(X), sample_weight=weight)
    features: FeatureMap = given.features_
    if features.n_features_in != X.shape[1]:
        raise ValueError(
            f"approximation maps rows of {features.n_features_in} features, and X has "
            f"{X.shape[1]}; fit the map on data with the same columns."
        )
    return features


def resolve_landmarks(
    settings: MapSettings, X: Matrix, weight: Array | None, n_components: int | None
) -> int:
    """How many landmarks the Nystroem map has: no more than rows that can be landmarks."""
    if not isinstance(settings.landmarks, str):
        return GivenPoints(settings.landmarks).count
    count = resolve_components(n_components)
    if n_components is None:
        return min(count, largest_count(settings.kernel, X, weight))
    return min(count, candidates(X, weight))


def warn_of_few_landmarks(settings: MapSettings, n_landmarks: int) -> None:
    """Warn where there are fewer than ``n_components`` asks for, once for what a user calls.

    Not where the map is drawn: cells, trials and the candidates of a search draw maps too.
    """
    count = settings.number
    if count is not None and count > n_landmarks:
        warn_caller(
            f"n_components={count} is more than the {n_landmarks} rows that can be landmarks (those "
            "of positive weight that are not held out), and each of them is one; set n_components to "
            f"at most {n_landmarks}.",
            UserWarning,
        )


def draw_nystroem(
    settings: MapSettings,
    X: Matrix,
    weight: Array | None,
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
        settings.kernel_for(X, weight),
        count,
        rng,
        weight=weight,
        sampler=own,
        rank=settings.rank,
        threshold=settings.rank_threshold,
        rule=settings.rank_rule,
        basis="eigen" if eigenbasis and count <= LARGEST_EIGENBASIS else "auto",
        centred=centred,
    )


def draw_fourier(
    settings: MapSettings,
    X: Matrix,
    weight: Array | None,
    rng: np.random.Generator,
    count: int,
    *,
    centred: bool = False,
) -> CosineFeatures:
    """Frequencies of the kind that ``fourier`` names."""
    kernel, n = settings.kernel_for(X, weight), X.shape[1]
    phi: CosineFeatures
    if settings.fourier == "hadamard":
        phi = HadamardFeatures.sample(kernel, n, count, rng)
    else:
        phi = FourierFeatures.sample(kernel, n, count, rng, settings.fourier)
    if not centred:
        return phi
    chosen = np.sort(rng.choice(X.shape[0], min(CENTRE_SAMPLE, X.shape[0]), replace=False))
    return phi.centred(on_host(X[chosen]))
