"""Which points become landmarks: a sampler each, all of one signature (``base.Sampler``)."""

from asset_svm.features.landmarks.base import Landmarks, Sampler
from asset_svm.features.landmarks.kmeans import kmeans_landmarks
from asset_svm.features.landmarks.leverage import leverage_landmarks
from asset_svm.features.landmarks.rpcholesky import rpcholesky_landmarks
from asset_svm.features.landmarks.scored import ScoredRows
from asset_svm.features.landmarks.uniform import uniform_landmarks

SAMPLERS: dict[str, Sampler] = {
    "uniform": uniform_landmarks,
    "kmeans": kmeans_landmarks,
    "rpcholesky": rpcholesky_landmarks,
    "leverage": leverage_landmarks,
}
"""The samplers that look at nothing but the rows."""

__all__ = [
    "SAMPLERS",
    "Landmarks",
    "Sampler",
    "ScoredRows",
    "kmeans_landmarks",
    "leverage_landmarks",
    "rpcholesky_landmarks",
    "uniform_landmarks",
]
