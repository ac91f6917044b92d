"""Small problems of three columns, and quick estimators, for tests of several files."""

import numpy as np

from asset_svm import AssetClassifier


def frozen(array):
    array.setflags(write=False)
    return array


X = frozen(np.random.default_rng(0).normal(size=(240, 3)))
BINARY = frozen((X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int))
THREE = frozen(np.array(["far", "low", "mid"])[np.digitize(X[:, 0], [-0.5, 0.5])])
REALS = frozen(np.sin(2 * X[:, 0]) + X[:, 1] + 5.0)
WEIGHTS = frozen(np.random.default_rng(5).uniform(0.2, 3.0, size=240))


def quick(kind=AssetClassifier, **parameters):
    """A short, seeded run of the paper's rule; other parameters on top."""
    defaults = {"max_iter": 10, "step": "robust", "step_scale": 0.3, "random_state": 0}
    return kind(**{**defaults, **parameters})


def stream(estimator, rows, y, size, classes=None):
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        extra = {} if classes is None else {"classes": classes}
        estimator.partial_fit(rows[part], y[part], **extra)
    return estimator
