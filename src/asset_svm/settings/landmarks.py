"""From the parameter ``landmarks`` to a sampler: the name of a method, or the user's own points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from asset_svm.features.landmarks import SAMPLERS, Landmarks, Sampler
from asset_svm.kernels import DENSE_LANDMARK_BYTES, Kernel, formula_type
from asset_svm.settings.checks import check_choice
from asset_svm.settings.kinds import check_kind


@dataclass(frozen=True, eq=False)
class GivenPoints:
    """A sampler that returns the user's own points."""

    points: Any

    @property
    def count(self) -> int:
        """The number of points."""
        return int(self.points.shape[0] if sp.issparse(self.points) else len(self.points))

    def __call__(
        self, X: Any, kernel: Kernel, count: int, rng: np.random.Generator, weight: Any = None
    ) -> Landmarks:
        """Return all of them, in the type of X."""
        check_kind(self.points, "landmarks")
        points = check_array(
            self.points, accept_sparse="csr", dtype=X.dtype, input_name="landmarks", copy=True
        )
        if points.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have {points.shape[1]} features, and X has {X.shape[1]}; give landmarks "
                "with the same columns."
            )
        return Landmarks(points)


def sampler_of(landmarks: Any) -> Sampler:
    """The sampler that a name stands for, or one that returns the points given."""
    return SAMPLERS[landmarks] if isinstance(landmarks, str) else GivenPoints(landmarks)


def check_landmarks(landmarks: Any, n_components: Any, *, supervised: bool) -> None:
    """Raise unless it is a method, or points, as many as ``n_components`` says if it says anything."""
    if isinstance(landmarks, str) and landmarks == "margin" and not supervised:
        raise ValueError(
            'landmarks="margin" needs targets to judge rows by, and there are none here; choose '
            'another, for example "rpcholesky", or set it on AssetClassifier or AssetRegressor.'
        )
    names = (*SAMPLERS, "margin") if supervised else tuple(SAMPLERS)
    if isinstance(landmarks, str):
        check_choice("landmarks", landmarks, names)
        return
    if not sp.issparse(landmarks) and np.ndim(landmarks) != 2:
        shown = f"an array of shape {np.shape(landmarks)}" if np.ndim(landmarks) else repr(landmarks)
        raise ValueError(
            f"landmarks={shown} is neither the name of a method nor a matrix of points; choose "
            f"one of {', '.join(names)}, or pass an array of shape (s, n_features)."
        )
    count = GivenPoints(landmarks).count
    if n_components is not None and n_components != count:
        raise ValueError(
            f"n_components={n_components} is not the number of the given landmarks, {count}; leave "
            "n_components out."
        )


def candidates(X: Any, weight: np.ndarray | None) -> int:
    """The number of rows that can be landmarks: those of positive weight."""
    return int(X.shape[0] if weight is None else np.count_nonzero(weight))


def largest_count(kernel: Any, X: Any, weight: np.ndarray | None) -> int:
    """The number of landmarks that there can be: rows of positive weight, and memory for them."""
    allowed = candidates(X, weight)
    if formula_type(kernel).needs_dense_landmarks:
        allowed = min(allowed, max(DENSE_LANDMARK_BYTES // (8 * X.shape[1]), 1))
    return allowed
