"""More than two classes: each from the rest, in pairs, or all at once (Crammer and Singer).

    ASSET_DATA=folder python benchmarks/multi_class.py [--sets digits,shells,letter,covtype7]

On the same features of one map (512 uniform landmarks, gamma="scale", columns of unit variance)
liblinear solves all three with the hinge loss, to compare the problems alone; then AssetClassifier's
two ways with as many landmarks and with its defaults, and SVC, which has pairs. Accuracy on rows held
out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_gaussian_quantiles
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import datasets as data
from asset_svm import AssetClassifier, NystroemMap

ROWS = 9000
"""Sets with more rows are cut to so many, a third of which are held out."""


def rows_of(name: str) -> tuple[np.ndarray, ...]:
    """X, X_test, y and y_test, columns of unit variance."""
    if name == "shells":
        X, y = make_gaussian_quantiles(n_samples=14_000, n_features=5, n_classes=4, random_state=0)
        return tuple(train_test_split(X, y, random_state=0))
    X, y = load_digits(return_X_y=True) if name == "digits" else data.load(name)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    parts = train_test_split(X[some], np.asarray(y)[some], test_size=1 / 3, random_state=0)
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]


def machines(C: float) -> dict[str, tuple[bool, Any]]:
    """Whether each takes features instead of rows, and the machine."""
    linear = {"C": C, "max_iter": 500, "random_state": 0}
    ours = {"C": C, "random_state": 0}
    return {
        "features, ovr": (True, LinearSVC(loss="hinge", **linear)),
        "features, ovo": (True, OneVsOneClassifier(LinearSVC(loss="hinge", **linear))),
        "AssetClassifier, 512, ovr": (False, AssetClassifier(n_components=512, **ours)),
        "AssetClassifier, 512, ovo": (
            False, AssetClassifier(n_components=512, multi_class="ovo", **ours)
        ),
        "AssetClassifier, ovr": (False, AssetClassifier(**ours)),
        "AssetClassifier, ovo": (False, AssetClassifier(multi_class="ovo", **ours)),
        "SVC": (False, SVC(C=C)),
        "features, joint": (True, LinearSVC(multi_class="crammer_singer", **linear)),
    }  # fmt: skip


def main() -> None:
    """Print a line a machine and C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="digits,shells,letter,covtype7")
    parser.add_argument("--Cs", default="1,10")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in arguments.sets.split(","):
        X, X_test, y, y_test = rows_of(name)
        phi = NystroemMap(n_components=512, random_state=0).fit(X)
        features = phi.transform(X), phi.transform(X_test)
        print(f"{name}: {len(y)} rows to learn from, {len(y_test)} held out, {len(set(y))} classes")
        for C in map(float, arguments.Cs.split(",")):
            for machine, (mapped, model) in machines(C).items():
                begun = time.perf_counter()
                model.fit(features[0] if mapped else X, y)
                seconds = time.perf_counter() - begun
                score = model.score(features[1] if mapped else X_test, y_test)
                print(
                    f"{name:9} C={C:<4g} {machine:27} {100 * score:6.2f} %  {seconds:6.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
