"""The paper's own rules at s = 512, 30 epochs, no intercept: test errors, mean of 5 splits.

    ASSET_DATA=folder python benchmarks/paper_rules.py [--splits 5] [--sets ijcnn,adult,mnist]

The paper's Table 3 stopped on the test error; these are errors after a fixed number of epochs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

import datasets as data
from asset_svm import AssetClassifier

RULES = {
    "ASSET_M, average=0.5": dict(step="robust", average=0.5),
    "ASSET*_M, average=0.5": dict(step="strong", average=0.5),
    "ASSET_M, average=100, step_scale=1 (the paper's)": dict(
        step="robust", average=100, step_scale=1.0
    ),
    "ours, step=metric": dict(step="metric", max_iter=10),
}
PAPER_ERROR = {"ijcnn": 1.1, "adult": 15.1, "mnist": 4.0}


def contestants(name: str) -> dict[str, Callable[[int], Any]]:
    """From a seed to an unfitted model, by label."""
    paper = data.PAPER[name]
    options = dict(gamma=paper.sigma, lam=paper.lam, fit_intercept=False, sampling="uniform")
    options |= dict(n_components=512, max_iter=30)
    models: dict[str, Callable[[int], Any]] = {
        label: lambda seed, rule=rule: AssetClassifier(**{**options, **rule}, random_state=seed)
        for label, rule in RULES.items()
    }
    if name == "ijcnn":
        fourier = dict(approximation="fourier", n_components=1024, step="robust")
        models["ASSET_F, d = 1024"] = lambda seed: AssetClassifier(
            **{**options, **fourier}, random_state=seed
        )
        models["RBFSampler + averaged SGDClassifier, d = 1024"] = lambda seed: make_pipeline(
            RBFSampler(gamma=paper.sigma, n_components=1024, random_state=seed),
            SGDClassifier(
                alpha=paper.lam,
                average=True,
                max_iter=30,
                tol=None,
                fit_intercept=False,
                random_state=seed,
            ),
        )
    return models


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", default="ijcnn,adult,mnist")
    parser.add_argument("--only", default="", help="a part of the label of the rows to run")
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        print(f"{name}: the paper {PAPER_ERROR[name]} %", flush=True)
        splits = [data.paper_split(name, seed) for seed in range(arguments.splits)]
        for label, make in contestants(name).items():
            if arguments.only not in label:
                continue
            errors = [
                100 * (1 - make(seed).fit(X, y).score(X_test, y_test))
                for seed, (X, y, X_test, y_test) in enumerate(splits)
            ]
            spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
            print(f"  {label:50}{np.mean(errors):7.2f} % +- {spread:.2f}", flush=True)


if __name__ == "__main__":
    main()
