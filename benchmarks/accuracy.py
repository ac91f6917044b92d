"""Test error and training time on every set, beside what they stand against.

    ASSET_DATA=folder python benchmarks/accuracy.py [--sets covtype,...] [--splits 3] [--choose]

Errors are those of the test part, means over ``--splits`` splits with their standard errors; the
settings are those of ``SETTINGS``, and were found by ``--choose``: the lowest error on an eighth of
the first split's training rows among ``GRID``, where a model trains on the other seven. Times are
wall times of ``fit``. Regressions have standardised columns and targets, epsilon 0.1, and SVR beside
them, with C and gamma chosen likewise, on 20 000 rows at most.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVR

import datasets as data
from asset_svm import AssetClassifier, AssetRegressor
from datasets import ccat

REGRESSIONS = tuple(name for name, part in data.SETS.items() if part.regression)
SVR_ROWS = 20_000

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "covtype": [
        dict(gamma=128.0, C=10.0, n_cells="auto"),
        dict(gamma=128.0, C=10.0, n_cells="auto", n_partitions=4),
    ],
    "ccat": [dict(gamma=0.3, C=10.0, n_cells=1)],
    "mnist": [dict(gamma=0.03, C=3.0, n_cells=16, n_partitions=4)],
    "ijcnn": [dict(gamma=2.0, C=10.0, n_cells="auto", n_partitions=3)],
    "adult": [dict(gamma=0.01, C=3.0, n_components=512, max_iter=3)],
    "letter": [dict(gamma=2.0, C=3.0, n_cells=1)],
    "kin40k": [dict(gamma=0.1, C=100.0, n_cells="auto", n_partitions=4)],
    "protein": [dict(gamma=0.3, C=100.0, n_cells="auto", n_partitions=4)],
    "cal_housing": [dict(gamma=0.3, C=10.0, n_cells="auto", n_partitions=4)],
    "abalone": [dict(gamma=0.03, C=10.0, n_cells=1)],
}
"""The last of each set is the most accurate; earlier ones are faster."""

GRID: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "covtype": ((32.0, 64.0, 128.0), (3.0, 10.0, 30.0)),
    "ccat": ((0.3, 1.0), (1.0, 3.0, 10.0, 30.0)),
    "mnist": ((0.02, 0.03, 0.04), (3.0, 10.0)),
    "ijcnn": ((2.0, 4.0, 8.0), (3.0, 10.0, 30.0)),
    "adult": ((0.01, 0.03, 0.1), (0.3, 1.0, 3.0)),
    "letter": ((1.0, 2.0, 4.0), (3.0, 10.0, 30.0)),
} | {name: ((0.03, 0.1, 0.3), (1.0, 10.0, 100.0)) for name in REGRESSIONS}


def split(name: str, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """X, y, X_test, y_test: the paper's sizes where it has some, else a quarter for the test.

    CCAT has one split, that of its sample: RCV1's own training documents.
    """
    if name == "ccat":
        X, y = data.load(name)
        with np.load(ccat.FILE.path()) as file:
            train, test = np.random.default_rng(seed).permutation(file["train_idx"]), file["test_idx"]
        return X[train], y[train], X[test], y[test]
    if name in data.PAPER:
        return data.paper_split(name, seed)
    X, y = data.load(name)
    count = len(y) * 3 // 4
    if name in REGRESSIONS:
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        y = (y - y.mean()) / y.std()
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[:count]], y[order[:count]], X[order[count:]], y[order[count:]]


def loss(model: Any, X: Any, y: np.ndarray) -> float:
    """Error in per cent, or RMSE."""
    if isinstance(model, AssetRegressor | SVR):
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return 100.0 * (1.0 - model.score(X, y))


def estimator(name: str, settings: dict[str, Any]) -> Any:
    """Ours, for this set."""
    if name in REGRESSIONS:
        return AssetRegressor(epsilon=0.1, random_state=0, **settings)
    return AssetClassifier(random_state=0, **settings)


def choose(name: str, model: Any, most: int | None = None) -> dict[str, float]:
    """gamma and C with the lowest error on rows held out of the training part."""
    X, y, _, _ = split(name, 0)
    X, y = X[:most], y[:most]
    held = len(y) // 8
    found = {}
    for gamma, C in itertools.product(*GRID[name]):
        fitted = clone(model).set_params(gamma=gamma, C=C).fit(X[held:], y[held:])
        found[gamma, C] = loss(fitted, X[:held], y[:held])
        print(f"  {name} gamma {gamma:g} C {C:g}: {found[gamma, C]:.4f}", flush=True)
    gamma, C = min(found, key=lambda pair: found[pair])
    return dict(gamma=gamma, C=C)


def measure(name: str, model: Any, splits: int, most: int | None = None) -> dict[str, Any]:
    """Losses and seconds over the splits."""
    losses, seconds = [], []
    for seed in range(splits):
        X, y, X_test, y_test = split(name, seed)
        X, y = X[:most], y[:most]
        begun = time.perf_counter()
        fitted = clone(model).fit(X, y)
        seconds.append(time.perf_counter() - begun)
        losses.append(loss(fitted, X_test, y_test))
    spread = float(np.std(losses, ddof=1) / np.sqrt(splits)) if splits > 1 else float("nan")
    return dict(loss=float(np.mean(losses)), error=spread, seconds=float(np.mean(seconds)))


def main() -> None:
    """One line a setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETTINGS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--choose", action="store_true", help="search the grid instead")
    parser.add_argument("--output", default="accuracy.json")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets.split(","):
        if arguments.choose:
            print(name, choose(name, estimator(name, SETTINGS[name][-1])), flush=True)
            continue
        for settings in SETTINGS[name]:
            rows.append(dict(set=name, **measure(name, estimator(name, settings), arguments.splits)))
            rows[-1]["settings"] = settings
        if name in REGRESSIONS:
            peer = SVR(epsilon=0.1, cache_size=1000)
            peer.set_params(**choose(name, peer, SVR_ROWS // 4))
            rows.append(dict(set=name, **measure(name, peer, 1, SVR_ROWS)))
            rows[-1]["settings"] = "SVR, " + str({k: getattr(peer, k) for k in ("gamma", "C")})
        for row in rows[-3:]:
            if row["set"] == name:
                print("{set:12} {loss:8.4f} ± {error:.4f}  {seconds:7.1f} s  {settings}".format(**row))
    if rows:
        Path(arguments.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
