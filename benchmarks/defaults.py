"""Every parameter at its default, against OneVsRestClassifier(SVC()) and SVR() at theirs.

Columns and regression targets standardised on the training folds, 5-fold cross-validation; prints
mean scores, their difference, and the ratio of training times in this run.

    ASSET_DATA=folder python benchmarks/defaults.py [--sets iris,wine,...]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import datasets as data
from asset_svm import AssetClassifier, AssetRegressor

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
REGRESSION = {"cal_housing", "abalone", "kin40k", "protein", "diabetes"}
SETS = "iris,wine,breast_cancer,digits,diabetes,letter,cal_housing,abalone,adult"


def rows(name: str) -> tuple[Any, np.ndarray]:
    """X in float64 and y."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else data.load(name)
    return np.asarray(X, dtype=np.float64), y


def evaluate(model: Any, X: Any, y: np.ndarray, folds: Any) -> tuple[float, float]:
    """Mean score and total training time over the folds."""
    scores, seconds = [], 0.0
    for train, test in folds:
        fitted = clone(model)
        begun = time.perf_counter()
        fitted.fit(X[train], y[train])
        seconds += time.perf_counter() - begun
        scores.append(fitted.score(X[test], y[test]))
    return float(np.mean(scores)), seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=SETS)
    print(f"{'set':14}{'ours':>8}{'exact':>8}{'diff':>8}{'exact time / ours':>20}")
    AssetClassifier(max_iter=1).fit(np.eye(4), [0, 1, 0, 1])  # load the compile cache
    for name in parser.parse_args().sets.split(","):
        X, y = rows(name)
        if name in REGRESSION:
            splitter, ours, exact = KFold, AssetRegressor(random_state=0), SVR()
        else:
            splitter, ours = StratifiedKFold, AssetClassifier(random_state=0)
            exact = OneVsRestClassifier(SVC())
        folds = list(splitter(5, shuffle=True, random_state=0).split(X, y))
        results = []
        for model in (ours, exact):
            pipeline = make_pipeline(StandardScaler(), model)
            if name in REGRESSION:
                pipeline = TransformedTargetRegressor(pipeline, transformer=StandardScaler())
            results.append(evaluate(pipeline, X, y, folds))
        (score, seconds), (reference, peer) = results
        ratio = f"{peer:.1f} s / {seconds:.1f} s = {peer / seconds:.1f}"
        print(f"{name:14}{score:8.4f}{reference:8.4f}{score - reference:+8.4f}{ratio:>24}", flush=True)


if __name__ == "__main__":
    main()
