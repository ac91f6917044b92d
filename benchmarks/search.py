"""Whole searches: how long they take, how good their answer is, what many models cost beside one.

    ASSET_DATA=folder python benchmarks/search.py [--parts adult,ijcnn,covtype,letter,ratio,agreement]

- adult, ijcnn: C from logspace(-2, 4, 50), 10 folds, s = 512, gamma fixed; LIBSVM's own test rows.
- covtype: 10 values of C and 5 of gamma, one tenth held out, cells; the paper's split, type 1 against
  the rest.
- letter: 26 classes, 10 values of C, 5 folds, beside GridSearchCV of sklearn.svm.SVC in the same run.
- ratio: K models against one, ADULT, s = 512: seconds of the stepping only, features at hand.
- agreement: test scores of the search's answer and of GridSearchCV(SVC)'s over one grid, 5 splits.

Times include the map, the search and the refit. Errors are test errors after refit. Compiled code is
warm. Results go to a JSON file with commit, CPU, threads and versions.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import datasets as data
from asset_svm import AssetClassifierCV
from asset_svm.data import ShuffledOrder
from asset_svm.features import Metric
from asset_svm.features.threads import few_threads
from asset_svm.losses import Hinge
from asset_svm.solvers import ModelAxis
from asset_svm.solvers.many import ManyDriver
from asset_svm.steps import MetricStep
from asset_svm.feasible import FeasibleSet
from speed import stamp

FIFTY = np.logspace(-2, 4, 50)
SETS = {"adult": (32561, 0.01), "ijcnn": (49990, 1.0)}
"""Rows of LIBSVM's training file, and gamma."""
COVTYPE_GAMMAS = (16.0, 32.0, 64.0, 128.0, 256.0)


def report(name: str, search: AssetClassifierCV, X: Any, y: np.ndarray) -> dict[str, Any]:
    """The numbers of a finished search."""
    line = dict(
        part=name,
        models=len(search.cv_results_["params"]) * search.n_splits_,
        seconds=search.search_time_ + search.refit_time_,
        search_seconds=search.search_time_,
        refit_seconds=search.refit_time_,
        error=100.0 * (1.0 - search.score(X, y)),
        validation_error=100.0 * (1.0 - search.best_score_),
        **search.best_params_,
    )
    print({key: round(value, 3) if isinstance(value, float) else value for key, value in line.items()})
    return line


def fifty(name: str, seed: int, threads: int) -> dict[str, Any]:
    """50 Cs, 10 folds."""
    rows, gamma = SETS[name]
    X, y = data.load(name)
    search = AssetClassifierCV(
        Cs=FIFTY, cv=10, gamma=gamma, n_components=512, random_state=seed, n_jobs=threads
    )
    return report(name, search.fit(X[:rows], y[:rows]), X[rows:], y[rows:])


def covtype(seed: int, threads: int) -> dict[str, Any]:
    """Cells."""
    X, y, X_test, y_test = data.paper_split("covtype", seed)
    search = AssetClassifierCV(
        Cs=10, gammas=COVTYPE_GAMMAS, cv=0.1, n_cells="auto", random_state=seed, n_jobs=threads
    )
    return report("covtype", search.fit(X, y), X_test, y_test)


def letter(seed: int, threads: int, *, peer: bool) -> dict[str, Any]:
    """26 classes, beside the exact SVM."""
    X, y = data.load("letter")
    X, y, X_test, y_test = X[:15000], y[:15000], X[15000:], y[15000:]
    search = AssetClassifierCV(Cs=10, cv=5, random_state=seed, n_jobs=threads).fit(X, y)
    line = report("letter", search, X_test, y_test)
    if peer:
        grid = GridSearchCV(SVC(cache_size=500), {"C": np.logspace(-2, 4, 10)}, cv=5, n_jobs=threads)
        begun = time.perf_counter()
        grid.fit(X, y)
        line["peer_seconds"] = time.perf_counter() - begun
        line["peer_error"] = 100.0 * (1.0 - grid.score(X_test, y_test))
        line["times_faster"] = line["peer_seconds"] / line["seconds"]
        print({key: line[key] for key in ("peer_seconds", "peer_error", "times_faster")})
    return line


def ratio(seed: int, threads: int) -> list[dict[str, Any]]:
    """Seconds of one epoch of K models, over those of one: the blocked form, and loops over rows."""
    raise NotImplementedError


def agreement(seed: int, threads: int) -> list[dict[str, Any]]:
    """The answer of the search beside GridSearchCV's, mean of 5 splits."""
    raise NotImplementedError
