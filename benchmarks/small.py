"""Twelve sets of fewer than 2000 rows: ours without an argument beside GridSearchCV of an exact SVM.

    pip install "asset-svm[cli]"
    ASSET_DATA=folder python benchmarks/small.py [--sets iris,...] [--splits 3]

Five sets come with scikit-learn; a quarter of their rows is held out. The others are rows drawn from
larger sets, whose other rows judge, 5000 at most. SVC and SVR have 7 Cs, 7 gammas and 5 folds, and
columns that are standardised, categories a column a level. Scores are accuracy, and R2 of regressions,
of the rows held out; times are of the search and the final model, on the same threads.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

import datasets as data
from asset_svm import AssetClassifierCV, AssetRegressorCV, TableEncoder
from asset_svm.pages import Table
from tabular.base import Rows
from tabular.encoding import encoder

OWN: dict[str, tuple[Callable[..., Any], bool]] = {
    "iris": (load_iris, False),
    "wine": (load_wine, False),
    "breast_cancer": (load_breast_cancer, False),
    "digits": (load_digits, False),
    "diabetes": (load_diabetes, True),
}
"""Sets of scikit-learn, and whether they are regressions."""
DRAWN = {
    "abalone": 1000, "cal_housing": 1000, "protein": 1500, "kin40k": 1500, "letter": 1500,
    "adult_raw": 1500, "diamonds": 900,
}  # fmt: skip
"""Rows that are drawn of other sets."""
MOST_JUDGING = 5000
CS = np.logspace(-1, 3, 7)
GAMMAS = np.logspace(-3, 1.5, 7)
"""Times one over the number of columns."""


def rows_of(name: str, seed: int, threads: int) -> Rows:
    """A split of a set; ``validation`` is empty: both searches hold rows out by themselves."""
    rng, none = np.random.default_rng(seed), np.empty(0, dtype=int)
    if name in OWN:
        read, regression = OWN[name]
        X, y = read(return_X_y=True)
        order, categorical = rng.permutation(len(y)), ()
        count = len(y) * 3 // 4
    else:
        X, y = data.load(name)
        entry = data.SETS[name]
        regression, categorical = entry.regression, entry.categorical
        order, count = rng.permutation(len(y)), DRAWN[name]
    train, test = order[:count], order[count : count + MOST_JUDGING]
    return Rows(X, y, train, none, test, regression, categorical, seed=seed, threads=threads)


def ours(rows: Rows) -> Any:
    """The search without a knob."""
    kind = AssetRegressorCV if rows.regression else AssetClassifierCV
    columns = TableEncoder(categorical=list(rows.categorical)) if rows.categorical else "auto"
    return kind(encoder=columns, random_state=rows.seed, n_jobs=rows.threads)


def grid(rows: Rows) -> Any:
    """All Cs and gammas of scikit-learn's SVM."""
    model = SVR(epsilon=0.1 * float(rows.y[rows.train].std())) if rows.regression else SVC()
    columns = encoder(rows)
    width = columns.fit_transform(rows.X[rows.train]).shape[1]
    name = type(model).__name__.lower()
    scale = float(rows.y[rows.train].std()) if rows.regression else 1.0
    values = {f"{name}__C": CS * scale, f"{name}__gamma": GAMMAS / width}
    return GridSearchCV(make_pipeline(columns, model), values, n_jobs=rows.threads)


METHODS: dict[str, Callable[[Rows], Any]] = {"asset-svm": ours, "GridSearchCV(SVM)": grid}


def run(make: Callable[[Rows], Any], rows: Rows) -> tuple[float, float]:
    """The score on the rows held out, and the seconds of the search."""
    X, y = rows.X[rows.train], rows.y[rows.train]
    begun = time.perf_counter()
    model = make(rows).fit(X, y)
    seconds = time.perf_counter() - begun
    found, held = model.predict(rows.X[rows.test]), rows.y[rows.test]
    score = r2_score(held, found) if is_regressor(model) else np.mean(found == held)
    return float(score), seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all sets, splits and methods, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join([*OWN, *DRAWN]))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for method in METHODS.values():  # compiles, and starts the processes of the grid
        run(method, rows_of("iris", 0, options.threads))
    found = []
    for name in options.sets.split(","):
        scores = np.empty((options.splits, len(METHODS), 2))
        for seed in range(options.splits):
            rows = rows_of(name, seed, options.threads)
            with threadpool_limits(options.threads):
                scores[seed] = [run(method, rows) for method in METHODS.values()]
        print(name, np.round(scores.mean(axis=0), 4).tolist(), flush=True)
        found.append((name, scores))
    print(table(found))


def table(found: Sequence[tuple[str, np.ndarray]]) -> str:
    """A row a set, and the mean of all."""
    rows = [[name, *_row(scores.mean(axis=0), scores)] for name, scores in found]
    mean = np.mean([scores.mean(axis=0) for _, scores in found], axis=0)
    rows.append(["mean", *_row(mean, None)])
    heads = [f"{method}{what}" for method in METHODS for what in (", score", ", s")]
    return Table(["", *heads, "difference"], rows).markdown()


def _row(mean: np.ndarray, scores: np.ndarray | None) -> list[str]:
    cells = [words for score, seconds in mean for words in (f"{score:.4f}", f"{seconds:.1f}")]
    apart = f"{mean[0, 0] - mean[1, 0]:+.4f}"
    if scores is not None and len(scores) > 1:
        pairs = scores[:, 0, 0] - scores[:, 1, 0]
        apart += f" +- {pairs.std(ddof=1) / np.sqrt(len(pairs)):.4f}"
    return [*cells, apart]


if __name__ == "__main__":
    main()
