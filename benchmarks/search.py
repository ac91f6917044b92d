"""Whole searches: how long they take, how good their answer is, what many models cost beside one.

    ASSET_DATA=folder python benchmarks/search.py [--parts adult,ijcnn,covtype,letter,ratio,agreement]

- adult, ijcnn: C from logspace(-2, 4, 50), 10 folds, s = 512, gamma fixed; LIBSVM's own test rows.
- covtype: 10 values of C and 5 of gamma, one tenth held out, cells; the paper's split, type 1 against
  the rest.
- letter: 26 classes, 10 values of C, 5 folds, s = 1024, beside GridSearchCV(SVC) in the same run.
- ratio: the search for K = 1, 10, 100 and 500 models against that for one, ADULT, s = 512, no refit.
- agreement: test scores of the search's answer and of GridSearchCV(SVC)'s over one grid, 5 splits;
  the larger sets by 3000 of their rows, 2100 of them to learn from.

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
from speed import stamp

FIFTY = np.logspace(-2, 4, 50)
SETS = {"adult": (32561, 0.01), "ijcnn": (49990, 1.0)}
"""Rows of LIBSVM's training file, and gamma."""
COVTYPE_GAMMAS = (16.0, 32.0, 64.0, 128.0, 256.0)


def report(name: str, search: AssetClassifierCV, X: Any, y: np.ndarray) -> dict[str, Any]:
    """The numbers of a finished search."""
    outputs = 1 if len(search.classes_) == 2 else len(search.classes_)
    line = dict(
        part=name,
        models=len(search.cv_results_["params"]) * search.n_splits_ * outputs,
        seconds=search.search_time_ + search.refit_time_,
        search_seconds=search.search_time_,
        refit_seconds=search.refit_time_,
        error=100.0 * (1.0 - search.score(X, y)),
        validation_error=100.0 * (1.0 - search.best_score_),
        **search.best_params_,
    )
    show(line)
    return line


def show(line: dict[str, Any]) -> None:
    """On the screen, with four digits."""
    print({key: round(value, 4) if isinstance(value, float) else value for key, value in line.items()})


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
    search = AssetClassifierCV(
        Cs=10, gammas=None, cv=5, n_components=1024, random_state=seed, n_jobs=threads
    ).fit(X, y)
    line = report("letter", search, X_test, y_test)
    if peer:
        grid = GridSearchCV(SVC(cache_size=500), {"C": np.logspace(-2, 4, 10)}, cv=5, n_jobs=threads)
        begun = time.perf_counter()
        grid.fit(X, y)
        line["peer_seconds"] = time.perf_counter() - begun
        line["peer_error"] = 100.0 * (1.0 - grid.score(X_test, y_test))
        line["times_faster"] = line["peer_seconds"] / line["seconds"]
        show({key: line[key] for key in ("peer_seconds", "peer_error", "times_faster")})
    return line


def ratio(seed: int, threads: int) -> list[dict[str, Any]]:
    """Seconds of the search for K models over those for one: ADULT, s = 512, the same epochs."""
    rows, gamma = SETS["adult"]
    X, y = data.load("adult")
    lines: list[dict[str, Any]] = []
    for n_costs, cv in ((1, 0.1), (10, 0.1), (10, 10), (50, 10)):
        search = AssetClassifierCV(
            Cs=np.logspace(-2, 4, n_costs) if n_costs > 1 else [1.0],
            cv=cv,
            gamma=gamma,
            n_components=512,
            refit=False,
            random_state=seed,
            n_jobs=threads,
        ).fit(X[:rows], y[:rows])
        line = dict(part="ratio", models=n_costs * search.n_splits_, seconds=search.search_time_)
        lines.append(line | dict(ratio=search.search_time_ / (lines or [line])[0]["seconds"]))
        show(lines[-1])
    return lines


LARGER = 3000
"""Rows of the larger sets in ``agreement``, where the exact search of one split takes a minute."""


def agreement_sets() -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    """Sets on which exact searches end, by name."""

    def some(name: str) -> tuple[np.ndarray, np.ndarray]:
        X, y = data.load(name)
        chosen = np.random.default_rng(0).choice(len(y), size=LARGER, replace=False)
        return X[chosen], y[chosen]

    made = dict(n_features=20, n_informative=8, flip_y=0.05, random_state=0)
    return {
        "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
        "wine": lambda: load_wine(return_X_y=True),
        "digits": lambda: load_digits(return_X_y=True),
        f"made, {LARGER} rows": lambda: make_classification(LARGER, **made),
        f"adult, {LARGER} rows": lambda: some("adult"),
        f"ijcnn, {LARGER} rows": lambda: some("ijcnn"),
    }


def agreement(seed: int, threads: int, names: list[str]) -> list[dict[str, Any]]:
    """The answer of the search beside GridSearchCV(SVC)'s over the same grid, mean of 5 splits."""
    Cs, gammas = np.logspace(-2, 4, 7), np.array([0.1, 0.3, 1.0, 3.0])
    lines = []
    for name, read in agreement_sets().items():
        if names and name.partition(",")[0] not in names:
            continue
        X, y = read()
        ours, theirs, seconds = [], [], np.zeros(2)
        for split in range(5):
            A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
            scaler = StandardScaler().fit(A)
            A, B = scaler.transform(A), scaler.transform(B)
            grid = gammas / A.shape[1]
            cv = StratifiedKFold(5, shuffle=True, random_state=split)
            begun = time.perf_counter()
            search = AssetClassifierCV(Cs=Cs, gammas=grid, cv=cv, random_state=seed, n_jobs=threads)
            ours.append(search.fit(A, a).score(B, b))
            middle = time.perf_counter()
            peer = GridSearchCV(SVC(), {"C": Cs, "gamma": grid}, cv=cv, n_jobs=threads)
            theirs.append(peer.fit(A, a).score(B, b))
            seconds += (middle - begun, time.perf_counter() - middle)
        line = dict(
            part="agreement",
            set=name,
            training_rows=len(a),
            ours=float(np.mean(ours)),
            theirs=float(np.mean(theirs)),
            difference=float(np.mean(ours) - np.mean(theirs)),
            seconds=float(seconds[0]) / 5,
            peer_seconds=float(seconds[1]) / 5,
        )
        lines.append(line)
        show(line)
    return lines


def compile_everything() -> None:
    """Searches so small that they cost nothing but compilation."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype(np.float32)
    y = rng.integers(0, 2, 600)
    quick = dict(Cs=20, gammas=None, cv=3, max_iter=1, search_iter=1)
    for rows in (X, X.astype(np.float64)):
        AssetClassifierCV(**quick).fit(rows, y)
        AssetClassifierCV(**(quick | dict(Cs=2))).fit(rows, y)
        AssetClassifierCV(n_cells=2, **quick).fit(rows, y)


def main() -> None:
    """Print the lines, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="adult,ijcnn,covtype,letter,ratio,agreement")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peer", action="store_true", help="letter without GridSearchCV(SVC)")
    parser.add_argument("--sets", default="", help="of agreement: breast_cancer, wine, ...; all")
    parser.add_argument("--output", default="search.json")
    arguments = parser.parse_args()
    seed, threads = arguments.seed, arguments.threads
    parts: dict[str, Callable[[], Any]] = {
        "adult": lambda: fifty("adult", seed, threads),
        "ijcnn": lambda: fifty("ijcnn", seed, threads),
        "covtype": lambda: covtype(seed, threads),
        "letter": lambda: letter(seed, threads, peer=not arguments.no_peer),
        "ratio": lambda: ratio(seed, threads),
        "agreement": lambda: agreement(
            seed, threads, arguments.sets.split(",") if arguments.sets else []
        ),
    }
    print(stamp(threads))
    results: list[dict[str, Any]] = []
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile_everything()
        for name in arguments.parts.split(","):
            found = parts[name]()
            results += found if isinstance(found, list) else [found]
            Path(arguments.output).write_text(
                json.dumps(dict(stamp=stamp(threads), results=results), indent=1) + "\n"
            )


if __name__ == "__main__":
    main()
