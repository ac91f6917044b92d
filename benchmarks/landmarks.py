"""Error against the number of components and against time, for every way to choose them.

    ASSET_DATA=folder python benchmarks/landmarks.py [--sets ...] [--sizes 256,1024] [--seeds 1]
        [--rows 30000] [--json FILE] [--figure FILE]
    python benchmarks/landmarks.py --from FILE [--figure FILE]   tables of what was measured before
    ASSET_DATA=folder python benchmarks/landmarks.py --auto      n_components="auto" beside fixed ones

Trained on at most ``--rows`` rows of the training part, five epochs, and scored on the validation part
of the split (at most 20 000 rows); no test row is touched. Seconds are of the processor, not of the
clock: the machine may have other work. "drawing" is the choice of landmarks or frequencies and their
factor, "fit" all of it. Every fit is added to what the file of ``--json`` holds at once, so that a run
may be cut short and another go on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import datasets as data
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.families.one_map import fit
from asset_svm.kernels import Kernel

LANDMARKS = ("uniform", "kmeans", "rpcholesky", "leverage", "margin")
FOURIER = ("iid", "orthogonal", "qmc", "hadamard")
EPOCHS = 5
VALIDATION_ROWS = 20_000
KERNEL_ROWS = 500
SETS_ACROSS = 5
"""In the figure."""
SETTINGS: dict[str, dict[str, Any]] = {
    "ijcnn": dict(gamma=1.0, lam=8.82e-8),
    "adult": dict(gamma=0.01, lam=1e-5),
    "mnist": dict(gamma=0.03, lam=1e-6),
    "covtype": dict(gamma=16.0, lam=1e-6),
    "letter": dict(gamma=1.0, C=10.0),
    "kin40k": dict(C=10.0),
    "protein": dict(C=10.0),
    "cal_housing": dict(C=10.0),
    "abalone": dict(C=10.0),
}
"""IJCNN: of the paper. The others were set beforehand, not tuned: methods are compared, not sets."""


def problem(name: str, seed: int, most: int) -> tuple[Any, tuple[Any, ...]]:
    """The estimator's class, and (X, y, X_validation, y_validation)."""
    X, y = data.load(name)
    order = np.random.default_rng(seed).permutation(len(y))
    if name in data.PAPER:
        first, last = data.PAPER[name].train, len(y) - data.PAPER[name].test
    else:
        first, last = len(y) * 6 // 10, len(y) * 8 // 10
    train, held = order[:first][:most], order[first:last][:VALIDATION_ROWS]
    if name in data.PAPER or name == "letter":
        return AssetClassifier, (X[train], y[train], X[held], y[held])
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = ((X - mean) / np.maximum(spread, 1e-12)).astype(np.float32)
    y = (y - y[train].mean()) / y[train].std()
    return AssetRegressor, (X[train], y[train], X[held], y[held])


def quality(model: Any, X: Any, y: np.ndarray) -> float:
    """Validation error in per cent, or the root mean square error in units of y's deviation."""
    if isinstance(model, AssetClassifier):
        return 100.0 * (1.0 - model.score(X, y))
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


class TimedMaps:
    """Adds up the processor's seconds that fits spend on choosing and drawing maps."""

    def __enter__(self) -> TimedMaps:
        self.seconds, self.choose = 0.0, fit.choose_map

        def timed(*args: Any, **options: Any) -> Any:
            begun = time.process_time()
            found = self.choose(*args, **options)
            self.seconds += time.process_time() - begun
            return found

        fit.choose_map = timed
        return self

    def __exit__(self, *_: object) -> None:
        fit.choose_map = self.choose


def frobenius_error(phi: Any, kernel: Kernel, X: Any) -> float:
    """|K - V V^T|_F / |K|_F for the rows V = phi(X)."""
    V, K = phi(X).astype(np.float64), kernel(X, X)
    return float(np.linalg.norm(K - V @ V.T) / np.linalg.norm(K))


def one(kind: Any, options: dict[str, Any], rows: tuple[Any, ...]) -> dict[str, Any]:
    """One fit, measured."""
    X, y, X_held, y_held = rows
    with warnings.catch_warnings(), TimedMaps() as maps:
        warnings.simplefilter("ignore", ConvergenceWarning)
        begun = time.process_time()
        model = kind(**options, max_iter=EPOCHS).fit(X, y)
        seconds = time.process_time() - begun
    found = dict(error=quality(model, X_held, y_held), drawing=maps.seconds, fit=seconds)
    gamma = model.gamma_ if hasattr(model, "gamma_") else options["gamma"]
    found["frobenius"] = frobenius_error(
        model.feature_map_, Kernel("rbf", float(gamma)), X_held[:KERNEL_ROWS]
    )
    if hasattr(model, "components_"):
        found["trace"], found["components"] = model.approximation_error_, len(model.components_)
    else:
        found["components"] = model.n_components_
    if hasattr(model, "component_search_"):
        found["search"] = model.component_search_
    return found


def gamma_scale(X: Any) -> float:
    """gamma="scale" as a number."""
    return float(1.0 / (X.shape[1] * X.var(dtype=np.float64)))


def runs(sizes: list[int], *, auto: bool) -> list[tuple[str, dict[str, Any]]]:
    """What is fitted on a set: (label, options)."""
    counts: list[Any] = ["auto"] if auto else sizes
    methods = ("uniform",) if auto else LANDMARKS
    found: list[tuple[str, dict[str, Any]]] = [
        (method, dict(landmarks=method, n_components=s)) for s in counts for method in methods
    ]
    if not auto:
        fourier = dict(approximation="fourier")
        found += [
            (f"fourier {kind}", fourier | dict(fourier=kind, n_components=s))
            for s in sizes
            for kind in FOURIER
        ]
    return found


def measure(
    names: list[str], sizes: list[int], seeds: int, most: int, file: Path | None, *, auto: bool
) -> list[dict]:
    """A record a fit, after those that the file has."""
    records = json.loads(file.read_text()) if file is not None and file.exists() else []
    for name in names:
        for seed in range(seeds):
            kind, rows = problem(name, seed, most)
            settings = dict(gamma=gamma_scale(rows[0])) | SETTINGS[name] | dict(random_state=seed)
            for label, options in runs(sizes, auto=auto):
                found = one(kind, settings | options, rows)
                record = dict(set=name, method=label, asked=options["n_components"], seed=seed)
                records.append(record | found)
                if file is not None:
                    file.write_text(json.dumps(records, indent=1) + "\n")
                trace = f"trace {found['trace']:.3f}" if "trace" in found else " " * 11
                print(
                    f"{name:11} {label:18} {found['components']:5d}  error {found['error']:7.3f}  "
                    f"{trace}  kernel {found['frobenius']:.3f}  drawing {found['drawing']:6.2f} s  "
                    f"fit {found['fit']:6.2f} s",
                    flush=True,
                )
                for trial in found.get("search", []):
                    print(
                        f"    {trial['n_components']:5d}  {trial['validation_score']:.4f}", flush=True
                    )
    return records


def figure(records: list[dict], path: str) -> None:
    """Five sets a line: error against components above, against the seconds of the fit below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(record["set"] for record in records))
    methods = list(dict.fromkeys(record["method"] for record in records))
    across, lines = min(len(names), SETS_ACROSS), -(-len(names) // SETS_ACROSS)
    drawing, axes = plt.subplots(
        2 * lines, across, figsize=(3.1 * across, 5.6 * lines + 0.6), squeeze=False
    )
    for place in range(len(names), lines * across):
        for half in range(2):
            axes[2 * (place // across) + half, place % across].set_axis_off()
    for place, name in enumerate(names):
        above, below = axes[2 * (place // across) : 2 * (place // across) + 2, place % across]
        for number, method in enumerate(methods):
            part = [r for r in records if r["set"] == name and r["method"] == method]
            sizes = sorted({r["components"] for r in part})
            error, fit = (
                [middle([r[key] for r in part if r["components"] == s]) for s in sizes]
                for key, middle in (("error", np.mean), ("fit", np.median))
            )
            style = dict(
                marker="o",
                linestyle="--" if "fourier" in method else "-",
                color=f"C{number}",
                label=method,
            )
            above.plot(sizes, error, **style)
            below.plot(fit, error, **style)
        above.set(xscale="log", xlabel="components", title=name)
        above.set_xticks(sorted({r["components"] for r in records if r["set"] == name}))
        above.minorticks_off()
        above.xaxis.set_major_formatter("{x:.0f}")
        below.set(xlabel="processor seconds of the fit")
        for panel in (above, below):
            panel.grid(alpha=0.3)
            if place % across == 0:
                panel.set_ylabel("validation error (%, or RMSE)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="lower center", ncols=5, fontsize="small")
    drawing.tight_layout(rect=(0, 0.05, 1, 1))
    drawing.savefig(path, dpi=90)


def tables(records: list[dict]) -> str:
    """Means over the seeds, and their standard errors for what is learnt, as Markdown."""
    names = list(dict.fromkeys(record["set"] for record in records))
    methods = list(dict.fromkeys(record["method"] for record in records))
    heads = {
        "error": "validation error, % or RMSE",
        "trace": "relative trace error",
        "drawing": "seconds of the processor for the landmarks or frequencies, and their factor",
        "fit": "seconds of the processor for the whole fit",
    }

    def cell(key: str, part: list[dict]) -> str:
        values = [record[key] for record in part if key in record]
        if not values:
            return ""
        digits = 2 if key in ("drawing", "fit") or np.mean(values) > 1 else 3
        # Of seconds the median: the first fit of a run compiles.
        middle = np.median(values) if key in ("drawing", "fit") else np.mean(values)
        text = f"{middle:.{digits}f}"
        if key == "error" and len(values) > 1:
            text += f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"
        return text

    lines = []
    for size in sorted({record["asked"] for record in records}, reverse=True):
        lines += [f"## {size} components", ""]
        for key, head in heads.items():
            lines += [
                f"{head}:",
                "",
                "| | " + " | ".join(names) + " |",
                "|---" * (len(names) + 1) + "|",
            ]
            for method in methods:
                parts = [
                    [r for r in records if (r["set"], r["method"], r["asked"]) == (n, method, size)]
                    for n in names
                ]
                cells = [cell(key, part) for part in parts]
                if any(cells):
                    lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
            lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETTINGS))
    parser.add_argument("--sizes", default="256,1024")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--figure")
    parser.add_argument("--from", dest="known")
    arguments = parser.parse_args()
    if arguments.known:
        records = json.loads(Path(arguments.known).read_text())
    else:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        names = arguments.sets.split(",")
        file = Path(arguments.json) if arguments.json else None
        records = measure(names, sizes, arguments.seeds, arguments.rows, file, auto=arguments.auto)
    print(tables(records))
    if arguments.figure:
        figure(records, arguments.figure)


if __name__ == "__main__":
    main()
