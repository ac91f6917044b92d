"""What several outputs cost beside one: one map and one pass, against a model for each.

    python benchmarks/outputs.py [--rows 44000] [--outputs 8]

Made rows like those of a robot arm's inverse dynamics: 21 columns (positions, velocities, accelerations
of 7 joints), smooth functions of them all, noise of a tenth of a standard deviation. Times are medians
of alternating fits in one process, after one fit that compiles.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.svm import SVR

from asset_svm import AssetRegressor

WAYS = {
    "default": {},
    "512 landmarks": {"n_components": 512},
    "cells": {"n_cells": "auto"},
}


def made(n_rows: int, n_outputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their (rows, outputs) targets, of unit variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 21)).astype(np.float32)
    first, second = rng.normal(size=(2, 21, n_outputs)) / np.sqrt(21)
    y = np.sin(2.0 * X @ first) + 0.5 * (X @ second) ** 2
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    return X, y + 0.1 * rng.normal(size=y.shape)


def timed(model: AssetRegressor | SVR, X: np.ndarray, y: np.ndarray) -> float:
    """The seconds of a fit."""
    begun = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begun


def main() -> None:
    """Print a line a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=44_000)
    parser.add_argument("--outputs", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--svr-rows", type=int, default=4000, help="of one fit of SVR, for comparison")
    arguments = parser.parse_args()
    X, y = made(arguments.rows + 4000, arguments.outputs, 0)
    X, y, X_test, y_test = X[:-4000], y[:-4000], X[-4000:], y[-4000:]
    for name, options in WAYS.items():
        models = [AssetRegressor(random_state=0, **options) for _ in range(2)]
        for model, targets in zip(models, (y[:2000, 0], y[:2000]), strict=True):
            model.fit(X[:2000], targets)
        seconds = [
            [timed(model, X, targets) for model, targets in zip(models, (y[:, 0], y), strict=True)]
            for _ in range(arguments.repeats)
        ]
        one, several = np.median(seconds, axis=0)
        alone, together = models[0].predict(X_test), models[1].predict(X_test)[:, 0]
        errors = [float(np.mean((found - y_test[:, 0]) ** 2)) for found in (alone, together)]
        print(
            f"{name:14} one output {one:.2f} s, {arguments.outputs} outputs {several:.2f} s, "
            f"{several / one:.2f} times; squared error of the first {errors[0]:.4f} alone, "
            f"{errors[1]:.4f} with the others; R2 of all {models[1].score(X_test, y_test):.4f}",
            flush=True,
        )
    some = slice(0, arguments.svr_rows)
    seconds_svr = timed(SVR(), X[some], y[some, 0])
    print(f"SVR, one output of {arguments.svr_rows} rows: {seconds_svr:.2f} s")


if __name__ == "__main__":
    main()
