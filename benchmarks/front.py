"""The picture of the README: test error against seconds, beside what people would use instead.

    ASSET_DATA=folder python benchmarks/front.py run FILE     # every run is a line of FILE (JSON)
    python benchmarks/front.py draw FILE docs/figures/front.png

One split of each set, one thread for everybody, and seconds of the processor, so that what else runs on
the machine does not count. Ours in cells have the settings of ``accuracy.py``, which were chosen on
held-out training rows; maps of landmarks (ours and scikit-learn's) the paper's width and lambda; SVC
those of the cells, on some of the rows; trees their defaults, and 500 trees of 127 leaves at 0.05.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

SETS = ("covtype", "ijcnn", "adult")
TITLES = {
    "covtype": "COVTYPE, 464 809 rows",
    "ijcnn": "IJCNN, 113 352 rows",
    "adult": "ADULT, 32 561 rows",
}
STYLE = {
    "asset-svm": ("C3", "o"),
    "asset-svm, cells": ("C1", "D"),
    "LightGBM": ("C2", "^"),
    "HistGradientBoosting": ("C0", "v"),
    "Nystroem + SGDClassifier": ("C4", "s"),
    "SVC": ("0.4", "X"),
}


def methods(name: str) -> Iterator[tuple[str, str, int | None, Callable[[], Any]]]:
    """The family of each method, what it is called, how many rows it gets, and how it is made."""
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    from accuracy import SETTINGS
    from asset_svm import AssetClassifier
    from datasets import PAPER

    paper = PAPER[name]
    for s in (256, 512, 1024):
        map_ = dict(gamma=paper.sigma, n_components=s, random_state=0)
        sgd = dict(alpha=paper.lam, max_iter=20, tol=None, average=True, random_state=0)
        ours = dict(map_, lam=paper.lam, max_iter=3, n_jobs=1)
        yield "asset-svm", f"s = {s}", None, lambda ours=ours: AssetClassifier(**ours)
        yield (
            "Nystroem + SGDClassifier", f"s = {s}", None,
            lambda map_=map_, sgd=sgd: make_pipeline(Nystroem(**map_), SGDClassifier(**sgd)),
        )  # fmt: skip
    for settings in SETTINGS[name]:
        family = "asset-svm, cells" if "n_cells" in settings else "asset-svm"
        said = f"{settings.get('n_partitions', 1)} partitions" if "n_cells" in settings else "chosen"
        made = dict(settings, random_state=0, n_jobs=1)
        yield family, said, None, lambda made=made: AssetClassifier(**made)
    large = dict(n_estimators=500, num_leaves=127, learning_rate=0.05)
    for options in ({}, large):
        made = dict(options, n_jobs=1, random_state=0, verbose=-1)
        said = f"{made.get('n_estimators', 100)} trees"
        yield "LightGBM", said, None, lambda made=made: LGBMClassifier(**made)
    yield (
        "HistGradientBoosting", "100 trees", None,
        lambda: HistGradientBoostingClassifier(random_state=0, early_stopping=False),
    )  # fmt: skip
    kernel = {key: SETTINGS[name][0][key] for key in ("gamma", "C")}
    for rows in (5_000, 20_000):
        yield "SVC", f"{rows} rows", rows, lambda: SVC(**kernel, cache_size=1000)


def run(path: Path) -> None:
    """Fit and score everything that is not in the file yet."""
    from scipy.sparse import issparse

    from datasets import paper_split

    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(r["set"], r["family"], r["name"]) for r in done}
    for name in SETS:
        X, y, X_test, y_test = paper_split(name, 0)
        warm_up(X[:1000], y[:1000])
        for family, said, rows, make in methods(name):
            if (name, family, said) in known:
                continue
            dense = family == "HistGradientBoosting" and issparse(X)
            A, B = (X.toarray(), X_test.toarray()) if dense else (X, X_test)
            start = process_time()
            model = make().fit(A[:rows], y[:rows])
            seconds = process_time() - start
            error = 100 * (1 - model.score(B, y_test))
            record = dict(set=name, family=family, name=said, seconds=seconds, error=error)
            print(record, flush=True)
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def warm_up(X: Any, y: Any) -> None:
    """Load what was compiled, which is no part of a fit."""
    from asset_svm import AssetClassifier

    AssetClassifier(n_components=64, max_iter=2, n_jobs=1).fit(X, y)
    AssetClassifier(n_cells=2, n_jobs=1).fit(X, y)


def draw(path: Path, figure_path: Path) -> None:
    """Error against seconds, a panel a set."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    records = [json.loads(line) for line in path.read_text().splitlines()]
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.1), layout="constrained")
    for ax, name in zip(axes, SETS, strict=True):
        for family, (colour, marker) in STYLE.items():
            part = sorted(
                (r for r in records if r["set"] == name and r["family"] == family),
                key=lambda r: r["seconds"],
            )
            # Settings that were chosen by themselves are no step of a line from few landmarks to many.
            alone = [r for r in part if r["name"] == "chosen"]
            part = [r for r in part if r["name"] != "chosen"]
            ax.plot(
                [r["seconds"] for r in alone], [r["error"] for r in alone], marker, color=colour, ms=8
            )
            ax.plot(
                [r["seconds"] for r in part], [r["error"] for r in part], marker=marker, color=colour,
                label=family, markersize=8, linewidth=1.2, alpha=0.9,
            )  # fmt: skip
        ax.set(xscale="log", title=TITLES[name], xlabel="processor time of the fit")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
        ax.set_ylim(0, None)
        ax.xaxis.set_major_formatter("{x:g} s")
    axes[0].set_ylabel("test error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    labels = ["SVC, 5000 and 20 000 rows" if label == "SVC" else label for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(figure_path, dpi=130)


def main() -> None:
    """Run, or draw what was run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "draw"])
    parser.add_argument("file", type=Path)
    parser.add_argument("figure", type=Path, nargs="?")
    given = parser.parse_args()
    if given.what == "run":
        run(given.file)
    else:
        draw(given.file, given.figure)


if __name__ == "__main__":
    main()
