"""One class on a million rows: time and AUC, beside the exact one-class SVM and a pipeline.

    python benchmarks/outliers.py [--rows 1000000] [--columns 20] [--components 512] [--nu 0.1]
        [--gamma 0.02] [--spread 2] [--methods asset,exact,pipeline] [--json FILE]

Rows are made: clusters of points near planes of a few dimensions. One in a hundred training rows, and
one in ten test rows, has the columns of as many different rows, so that no column by itself tells it
from the others. All methods have the same kernel. ``exact`` is OneClassSVM on the first 10 000 rows,
``pipeline`` Nystroem and SGDOneClassSVM on all of them. Seconds are of the clock and of ``fit``;
compiled code is warmed up on few rows first.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

from asset_svm import AssetOutlierDetector

CLUSTERS, PLANE = 12, 4
TRAIN_OUTLIERS, TEST_OUTLIERS = 0.01, 0.1
TEST_ROWS = 50_000
EXACT_ROWS = 10_000


def mixed(X: np.ndarray, part: float, rng: np.random.Generator) -> np.ndarray:
    """Put the columns of different rows together in a part of the rows; which are these."""
    chosen = rng.random(len(X)) < part
    count, n = int(chosen.sum()), X.shape[1]
    X[chosen] = X[rng.integers(len(X), size=(count, n)), np.arange(n)]
    return chosen


def make(
    rows: int, columns: int, spread: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from, rows to score, and which of the latter are outliers."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(CLUSTERS, columns))
    planes = rng.normal(size=(CLUSTERS, PLANE, columns)) / np.sqrt(PLANE)
    X = np.empty((rows + TEST_ROWS, columns), dtype=np.float32)
    for start in range(0, len(X), 100_000):
        part = X[start : start + 100_000]
        which = rng.integers(CLUSTERS, size=len(part))
        noise = 0.3 * rng.normal(size=part.shape)
        inside = rng.normal(size=(len(part), PLANE))
        part[:] = centres[which] + np.einsum("ij,ijk->ik", inside, planes[which]) + noise
    train, test = X[:rows], X[rows:]
    mixed(train, TRAIN_OUTLIERS, rng)
    return train, test, mixed(test, TEST_OUTLIERS, rng)


def methods(components: int, nu: float, gamma: float, seed: int) -> dict[str, Any]:
    """What is compared, by its name, and the number of rows that it learns from."""
    nystroem = Nystroem(gamma=gamma, n_components=components, random_state=seed)
    return {
        "asset": (
            AssetOutlierDetector(gamma=gamma, nu=nu, n_components=components, random_state=seed),
            None,
        ),
        "exact": (OneClassSVM(gamma=gamma, nu=nu), EXACT_ROWS),
        "pipeline": (make_pipeline(nystroem, SGDOneClassSVM(nu=nu, random_state=seed)), None),
    }


def main() -> None:
    """Fit and score each method once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--nu", type=float, default=0.1)
    parser.add_argument("--gamma", type=float, default=0.02)
    parser.add_argument("--spread", type=float, default=2.0, help="of the centres of clusters")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default="asset,exact,pipeline")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    X, test, outliers = make(options.rows, options.columns, options.spread, options.seed)
    AssetOutlierDetector(n_components=64, random_state=0).fit(X[:20_000])
    records = []
    chosen = methods(options.components, options.nu, options.gamma, options.seed)
    for name in options.methods.split(","):
        model, rows = chosen[name]
        begun = time.perf_counter()
        model.fit(X[:rows])
        seconds = time.perf_counter() - begun
        scores = model.decision_function(test)
        record = {
            "method": name,
            "rows": rows or options.rows,
            "seconds": round(seconds, 2),
            "auc": round(float(roc_auc_score(~outliers, scores)), 4),
            "outside": round(float((model.decision_function(X[:100_000]) < 0.0).mean()), 4),
        }
        records.append(record)
        print("  ".join(f"{key} {value}" for key, value in record.items()), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({**vars(options), "json": None, "fits": records}, indent=1))


if __name__ == "__main__":
    main()
