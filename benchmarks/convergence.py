"""How many epochs: steps in the metric against the paper's, and against the exact optimum of (PL).

    ASSET_DATA=folder python benchmarks/convergence.py [--sets ...] [--seeds 5] [--fourier]
    ASSET_DATA=folder python benchmarks/convergence.py --pilot     the chosen scale against the grid
    ASSET_DATA=folder python benchmarks/convergence.py --figure FILE

The paper's lam and sigma, s = 1024 (COVTYPE 512), C = 10 for regression, no intercept, one split. The
"optimum" is the tight lower bound of ``certify`` at the best model of the run, which a longer run of
LinearSVC or LinearSVR on the same features confirms (``--exact``): suboptimalities are against it.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import LinearSVC, LinearSVR

import datasets as data
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.data import OneVsRestTargets, ShuffledOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.kernels import squared_norms
from asset_svm.losses import Hinge
from asset_svm.solvers import Average, Cut, Driver, FractionWindow, ModelAxis, SolverState
from asset_svm.steps import GRID, gradient_bound
from timing import timed_pilot

SETS = "ijcnn,mnist,adult,covtype,kin40k,cal_housing,protein"


def problem(name: str) -> tuple[Any, dict[str, Any], tuple[Any, ...]]:
    """The estimator's class, its options, and (X, y, X_test, y_test)."""
    if name in data.PAPER:
        paper = data.PAPER[name]
        rows = data.paper_split(name, 0)
        s = 512 if name == "covtype" else 1024
        return AssetClassifier, dict(gamma=paper.sigma, lam=paper.lam, n_components=s), rows
    X, y = data.load(name)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = ((X - mean) / np.maximum(spread, 1e-12)).astype(np.float32)
    y = (y - y[train].mean()) / y[train].std()
    return AssetRegressor, dict(C=10.0, n_components=1024), (X[train], y[train], X[test], y[test])


def quality(model: Any, X: Any, y: np.ndarray) -> float:
    """Test error in per cent, or R2."""
    score = model.score(X, y)
    return 100 * (1 - score) if isinstance(model, AssetClassifier) else score


def exact_solution(model: Any, X: Any, y: np.ndarray) -> Any:
    """LIBLINEAR on the features of ``model``, to 1e-4, without intercept."""
    V = model.feature_map_(X).astype(np.float64)
    options = dict(C=1.0 / (model.lam_ * len(y)), fit_intercept=False, tol=1e-4, max_iter=20_000)
    if isinstance(model, AssetClassifier):
        return LinearSVC(loss="hinge", **options).fit(V, y)
    return LinearSVR(epsilon=model.epsilon, **options).fit(V, y)


def table(name: str, seeds: int, fourier: bool, exact: bool) -> None:
    """Print one set's lines."""
    kind, options, (X, y, X_test, y_test) = problem(name)
    options |= dict(fit_intercept=False)
    if fourier:
        options |= dict(approximation="fourier", n_components=1024)
    runs = {
        "paper, 30 epochs": dict(step="robust", step_scale=1.0, max_iter=30),
        "metric, 3 epochs": dict(step="metric", max_iter=3),
        "metric, 5 epochs": dict(step="metric", max_iter=5),
        "metric, 10 epochs": dict(step="metric", max_iter=10),
        "metric, default": dict(step="metric"),
    }
    results: dict[str, list[tuple[float, ...]]] = {label: [] for label in runs}
    for seed in range(seeds):
        models, seconds = {}, {}
        for label, run in runs.items():
            begun = time.perf_counter()
            models[label] = kind(**options, **run, random_state=seed).fit(X, y)
            seconds[label] = time.perf_counter() - begun
        best = models["metric, default"]
        value, gap = best.certify(X, y)
        bound = value - gap
        if exact and seed == 0:
            solver = exact_solution(best, X, y)
            V = best.feature_map_(X).astype(np.float64)
            w = solver.map_coef_.ravel()
            f = V @ w
            losses = (
                np.maximum(1 - y * f, 0)
                if kind is AssetClassifier
                else np.maximum(np.abs(y - f) - best.epsilon, 0)
            )
            objective = best.lam_ / 2 * w @ w + losses.mean()
            score = solver.score(best.feature_map_(X_test), y_test)
            print(
                f"  LIBLINEAR: objective {objective:.5f} ({100 * (objective / bound - 1):+.2f} % of "
                f"our bound), {'error' if kind is AssetClassifier else 'R2'} "
                f"{100 * (1 - score) if kind is AssetClassifier else score:.3f}",
                flush=True,
            )
        for label, model in models.items():
            results[label].append(
                (
                    model.objective_,
                    100 * (model.objective_ / bound - 1),
                    quality(model, X_test, y_test),
                    model.step_scale_,
                    seconds[label],
                )
            )
    for label, rows in results.items():
        objective, sub, score, scale, spent = np.mean(rows, axis=0)
        print(
            f"  {label:18} objective {objective:.5f}  suboptimality {sub:6.2f} %  "
            f"{'error' if kind is AssetClassifier else 'R2'} {score:.3f}  scale {scale:.3f}  "
            f"{spent:.2f} s",
            flush=True,
        )


def pilot(name: str, seeds: int, spent: list[float]) -> None:
    """The pilot's scale against every one of the grid, at the same and at half the epochs."""
    kind, options, (X, y, _, _) = problem(name)
    options |= dict(fit_intercept=False, step="metric")
    grid = [*GRID, GRID[-1] * GRID[1]]
    for epochs in (4, 20):
        for seed in range(seeds):
            common = options | dict(random_state=seed)
            begun = time.perf_counter()
            ours = kind(**common, max_iter=epochs).fit(X, y)
            share = spent[-1] / (time.perf_counter() - begun)

            def best(epochs: int, common: dict[str, Any] = common) -> float:
                fits = (kind(**common, max_iter=epochs, step_scale=c).fit(X, y) for c in grid)
                return min(fit.objective_ for fit in fits)

            half, same = best(epochs // 2), best(epochs)
            print(
                f"  {epochs:2} epochs: objective {ours.objective_:.5f} (scale {ours.step_scale_:.3f}); "
                f"best of the grid {same:.5f}, in half the epochs {half:.5f}: "
                f"{'worse' if ours.objective_ > half else 'better'}; "
                f"pilot {100 * share:.1f} % of the fit",
                flush=True,
            )


@dataclass(frozen=True)
class ConstantStep:
    """eta = scale, always, for a run whose number of steps is known."""

    scale: float
    power: ClassVar[float] = 0.0
    horizon: ClassVar[int] = 0
    reach: ClassVar[float] = np.inf
    metric: ClassVar[None] = None


class Features:
    """Mapped rows that lie in memory."""

    in_memory = True

    def __init__(self, V: np.ndarray):
        self.V, self.dimension, self.dtype = V, V.shape[1], V.dtype

    def fetch(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All of them, and these numbers."""
        return self.V, rows


def constant_steps(model: Any, V: np.ndarray, y: np.ndarray, epochs: int, scale: float) -> float:
    """The objective after constant steps of scale D_X / (D_G sqrt N), H = I, last half averaged."""
    loss, m = Hinge(), len(y)
    ball = FeasibleSet(loss.radius(model.lam_, 1.0), None)
    bound = gradient_bound(loss, squared_norms(V[:1000]), y[:1000])
    rule = ConstantStep(scale * ball.size / bound / (m * epochs) ** 0.5)
    driver = Driver(
        Features(V),
        OneVsRestTargets((y > 0).astype(np.intp), 2),
        ShuffledOrder(m, 0),
        ModelAxis.build(loss, [model.lam_], [ball], [rule]),
        SolverState.zeros(1, V.shape[1], V.dtype),
        Average(FractionWindow(0.5, m * epochs)),
        cut=Cut(512),
    )
    driver.advance(m * epochs)
    coef = driver.model()[0][0]
    return float(model.lam_ / 2 * coef @ coef + loss.value(y, V @ coef).mean())


def figure(path: str, name: str = "ijcnn") -> None:
    """Objective against epochs: the paper's two rules, constant steps, the metric, LIBLINEAR."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kind, options, (X, y, _, _) = problem(name)
    options |= dict(fit_intercept=False, random_state=0)
    epochs = [1, 2, 3, 5, 10, 20, 30]
    curves = {
        "the paper's robust step": dict(step="robust", step_scale=1.0),
        "the paper's strong step": dict(step="strong", average=0.5),
        "robust step, scale by the pilot": dict(step="robust"),
        "step='metric'": dict(step="metric"),
    }
    axes = plt.figure(figsize=(7, 4.5)).gca()
    for label, run in curves.items():
        values = [kind(**options, **run, max_iter=n).fit(X, y).objective_ for n in epochs]
        axes.plot(epochs, values, marker="o", label=label)
        print(label, [round(v, 5) for v in values], flush=True)
    best = kind(**options, step="metric", max_iter=30).fit(X, y)
    value, gap = best.certify(X, y)
    axes.axhline(value - gap, color="black", linestyle=":", label="lower bound (certify)")
    V = best.feature_map_(X)
    scale = min(GRID, key=lambda c: constant_steps(best, V, y, 3, c))
    values = [constant_steps(best, V, y, n, scale) for n in epochs]
    axes.plot(epochs, values, marker="o", label=f"constant steps, best scale of the grid ({scale:g})")
    print("constant steps", scale, [round(v, 5) for v in values], flush=True)
    V = V.astype(np.float64)
    values = []
    for n in epochs:
        solver = LinearSVC(
            loss="hinge", C=1 / (best.lam_ * len(y)), fit_intercept=False, max_iter=n, random_state=0
        )
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = solver.fit(V, y).map_coef_.ravel()
        values.append(best.lam_ / 2 * w @ w + np.maximum(1 - y * (V @ w), 0).mean())
    axes.plot(epochs, values, marker="s", linestyle="--", label="dual coordinate descent (LinearSVC)")
    print("LinearSVC", [round(v, 5) for v in values])
    axes.set(xscale="log", yscale="log", xlabel="epochs", ylabel="objective of (PL)")
    axes.set_title(f"{name.upper()}, s = 1024, the paper's lambda and sigma")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize="small")
    axes.figure.savefig(path, dpi=130, bbox_inches="tight")


def main() -> None:
    """Print the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fourier", action="store_true")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--pilot", action="store_true")
    parser.add_argument("--figure")
    arguments = parser.parse_args()
    if arguments.figure:
        figure(arguments.figure)
        return
    for name in arguments.sets.split(","):
        print(f"{name}{', Fourier d = 1024' if arguments.fourier else ''}", flush=True)
        if arguments.pilot:
            with timed_pilot() as spent:
                pilot(name, arguments.seeds, spent)
            continue
        table(name, arguments.seeds, arguments.fourier, arguments.exact)


if __name__ == "__main__":
    main()
