"""The rates of the theorems, on a problem whose optimum is known to 1e-8.

1000 rows of two overlapping classes, d = 64 Fourier features, lam = 0.01, no intercept; 20 seeds of
the order of rows, N over three decades. Theorem 2: f(average over the last N - Nbar) - f*, for several
rho = Nbar/N. Strongly convex: |x^N - x*|^2, which the right side of Theorem 3 bounds, and
f(x^N) - f*, which is O(log N / N). Slopes are of the logarithm of the mean over the seeds against
log N, with 95 % intervals by bootstrap over the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from asset_svm.data import OneVsRestTargets, UniformOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures
from asset_svm.kernels import Kernel, squared_norms
from asset_svm.losses import Hinge
from asset_svm.pages import Line, Paragraph, Part, Section, Table, line_chart
from asset_svm.solvers import Average, Cut, Driver, FractionWindow, ModelAxis, NoWindow, SolverState
from asset_svm.steps import RobustStep, StrongStep, gradient_bound
from experiments.base import Record, Scale, Task, select

name = "rates"
ROWS, DIMENSION, LAM, SEEDS = 1000, 64, 0.01, 20
LENGTHS = tuple(round(10 ** (2 + k / 2)) for k in range(7))
RHOS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, eq=False)
class Known:
    """The problem and its solution; ``gap`` bounds how far ``optimum`` may be from the truth."""

    V: np.ndarray
    y: np.ndarray
    solution: np.ndarray
    optimum: float
    gap: float

    in_memory = True

    @property
    def dimension(self) -> int:
        """d."""
        return self.V.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of V."""
        return self.V.dtype

    def fetch(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows lie in memory."""
        return self.V, rows

    def objective(self, x: np.ndarray) -> float:
        """(PL)."""
        return 0.5 * LAM * float(x @ x) + float(np.maximum(1 - self.y * (self.V @ x), 0).mean())


@lru_cache(maxsize=1)
def known() -> Known:
    """Draw the problem and solve its dual, a box-constrained QP, to a duality gap below 1e-8."""
    rng = np.random.default_rng(12)
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(ROWS, 5)) + 0.5 * y[:, None]
    V = FourierFeatures.sample(Kernel("rbf", 0.2), 5, DIMENSION, rng)(X)
    Z = V * y[:, None]

    def dual(a: np.ndarray) -> tuple[float, np.ndarray]:
        """Of a = m alpha in [0, 1]: the negative dual value times m, and its gradient."""
        w = Z.T @ a / (LAM * ROWS)
        return 0.5 * LAM * ROWS * float(w @ w) - float(a.sum()), Z @ w - 1.0

    options = dict(maxiter=50_000, maxfun=200_000, ftol=1e-16, gtol=1e-12, maxcor=50)
    start = np.full(ROWS, 0.5)
    found = minimize(dual, start, jac=True, bounds=[(0, 1)] * ROWS, method="L-BFGS-B", options=options)
    x = Z.T @ found.x / (LAM * ROWS)
    x, a = _polish(Z, x, found.x)
    problem = Known(V, y, x, 0.0, 0.0)
    value, bound = problem.objective(x), -dual(a)[0] / ROWS
    return Known(V, y, x, value, value - bound)


def _polish(Z: np.ndarray, x: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve the KKT system of the rows at their kink exactly, the others at their bounds."""
    margins = Z @ x
    free = np.abs(margins - 1.0) < 1e-5
    fixed = np.where(free, 0.0, (margins < 1.0).astype(float))
    right = LAM * ROWS * np.ones(free.sum()) - Z[free] @ (Z.T @ fixed)
    inner, *_ = np.linalg.lstsq(Z[free] @ Z[free].T, right, rcond=None)
    a = fixed.copy()
    a[free] = np.clip(inner, 0.0, 1.0)
    return Z.T @ a / (LAM * ROWS), a


def tasks(scale: Scale) -> list[Task]:
    """One a seed and rho, and one a seed for the strong rule; alike in quick and full runs."""
    found = []
    for seed in range(SEEDS):
        for rho in RHOS:
            settings = dict(rho=rho, lengths=LENGTHS)
            found.append(
                Task(name, "ASSET", "synthetic", seed, settings, partial(run, seed, rho), 0.15)
            )
        found.append(
            Task(
                name, "ASSET*", "synthetic", seed, dict(lengths=LENGTHS), partial(run, seed, None), 0.15
            )
        )
    return found


def run(seed: int, rho: float | None) -> dict[str, Any]:
    """Gaps after each N: of the robust rule's average; without ``rho`` of the strong rule's last."""
    problem, loss = known(), Hinge()
    ball = FeasibleSet(loss.radius(LAM, 1.0), None)
    bound = gradient_bound(loss, squared_norms(problem.V), problem.y)
    rule = StrongStep(LAM) if rho is None else RobustStep(ball.size, bound)
    targets = OneVsRestTargets((problem.y > 0).astype(np.intp), 2)
    gaps, distances = [], []
    for length in LENGTHS:
        window = NoWindow() if rho is None else FractionWindow(1.0 - rho, length)
        driver = Driver(
            problem, targets, UniformOrder(ROWS, seed, None),
            ModelAxis.build(loss, (LAM,), [ball], [rule]),
            SolverState.zeros(1, DIMENSION, problem.dtype), Average(window), cut=Cut(512),
                length=length,
        )  # fmt: skip
        driver.advance(length)
        x = driver.model()[0][0]
        gaps.append(problem.objective(x) - problem.optimum)
        distances.append(float(np.sum((x - problem.solution) ** 2)))
    return dict(gaps=gaps, distances=distances, optimum_gap=problem.gap, step=rule.scale)


def bound(length: int, rho: float) -> float:
    """What the proof of Theorem 2 gives for these steps, without rounding up to a C(rho).

    (2 D_X^2 + M^2/2 sum eta_j^2) / sum eta_j over j = Nbar, ..., N, |G| <= M.
    """
    problem = known()
    size = LAM**-0.5
    norms = np.linalg.norm(problem.V, axis=1)
    largest = float(norms.max()) + LAM**0.5
    gradient = gradient_bound(Hinge(), squared_norms(problem.V), problem.y)
    eta = size / gradient / np.sqrt(np.arange(max(int(np.ceil(rho * length)), 1), length + 1))
    return float((2 * size**2 + 0.5 * largest**2 * (eta**2).sum()) / eta.sum())


def slope(curves: np.ndarray, lengths: np.ndarray) -> tuple[float, float, float]:
    """Of log mean(curves) against log lengths, with a 95 % bootstrap interval over the rows."""
    x = np.log(lengths) - np.log(lengths).mean()
    regression = x / (x @ x)
    drawn = np.random.default_rng(0).integers(len(curves), size=(2000, len(curves)))
    slopes = np.log(curves[drawn].mean(axis=1)) @ regression
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(np.log(curves.mean(axis=0)) @ regression), float(low), float(high)


def section(records: Sequence[Record]) -> Section:
    """Curves and slopes."""
    found = select(records, name)
    title = "The theorems: measured rates"
    if not found:
        return Section(title, [])
    lengths = np.array(LENGTHS, float)
    lines, rows = [], []
    for rho in RHOS:
        curves = _curves(select(found, rho=rho), "gaps")
        bounds = np.array([bound(length, rho) for length in LENGTHS])
        at, low, high = slope(curves, lengths)
        lines.append(_line(f"rho = {rho}", lengths, curves))
        worst = float((curves.mean(axis=0) / bounds).max())
        rows.append(
            [f"Theorem 2, f - f*, rho = {rho}", "at most -0.5", f"{at:.3f}", f"{low:.3f} to {high:.3f}",
             f"{worst:.3f}"]
        )  # fmt: skip
    middle = np.array([bound(length, 0.5) for length in LENGTHS])
    lines.append(Line("bound, rho = 0.5", lengths, middle, dashed=True))
    strong = select(found, solver="ASSET*")
    distances, gaps = _curves(strong, "distances"), _curves(strong, "gaps")
    problem = known()
    largest = float(np.linalg.norm(problem.V, axis=1).max()) + LAM**0.5
    limit = max((largest / LAM) ** 2, 1.0 / LAM) / lengths
    measured = {
        "Strongly convex, |x - x*|^2": ("-1", distances, float((distances.mean(axis=0) / limit).max())),
        "Strongly convex, f - f*": ("-1 with a log factor", gaps, None),
        "Strongly convex, (f - f*) / log N": ("-1", gaps / np.log(lengths), None),
    }
    for label, (expected, curves, worst_share) in measured.items():
        at, low, high = slope(curves, lengths)
        share = "" if worst_share is None else f"{worst_share:.3f}"
        rows.append([label, expected, f"{at:.3f}", f"{low:.3f} to {high:.3f}", share])
    optimum = max(record["result"]["optimum_gap"] for record in found)
    charts: list[Part] = [
        line_chart(
            lines, "N", "f - f*", x_scale="log", y_scale="log", title="Theorem 2: ASSET",
            caption="Mean over the seeds; bands are two standard errors.",
        ),
        line_chart(
            [
                _line("|x - x*|^2", lengths, distances),
                _line("f - f*", lengths, gaps),
                Line("bound of |x - x*|^2", lengths, limit, dashed=True),
            ],
            "N", "", x_scale="log", y_scale="log", title="Strongly convex: ASSET*, last iterate",
            caption="The right side of Theorem 3 bounds |x - x*|^2, not f - f* as printed.",
        ),
    ]  # fmt: skip
    text = (
        f"{ROWS} rows, d = {DIMENSION}, lam = {LAM:g}; {len({r['seed'] for r in found})} seeds; the "
        f"optimum is {problem.optimum:.9f}, known to {optimum:.1e} (its dual, solved as a QP). "
        "A theorem bounds from above: a slope may be steeper than it says, not flatter."
    )
    header = ["", "theory", "slope", "95 % interval", "largest share of the bound"]
    return Section(title, [Paragraph(text), *charts, Table(header, rows)])


def _curves(records: Sequence[Record], what: str) -> np.ndarray:
    return np.array([record["result"][what] for record in records])


def _line(label: str, lengths: np.ndarray, curves: np.ndarray) -> Line:
    mean = curves.mean(axis=0)
    spread = 2 * curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else 0 * mean
    return Line(label, lengths, mean, np.maximum(mean - spread, 0.2 * mean), mean + spread)
