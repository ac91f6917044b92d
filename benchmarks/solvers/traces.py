"""Runs of the paper's algorithms that are watched on their way: its Table 3 and Figure 2.

As in the paper: steps with D_X as it is (``step_scale`` 1), rows drawn with replacement (or as they
come), the test error of the average of the last 100 iterates at every checkpoint. Seconds are CPU
time, as in the paper; the clock stands still while the error is taken, and while rows of a stream are
made. On a card, seconds are those of a clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from asset_svm.backends.base import Visits
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import GivenOrder, OneVsRestTargets, UniformOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FeatureMap, FourierFeatures, NystroemFeatures
from asset_svm.kernels import Kernel, squared_norms
from asset_svm.losses import Hinge
from asset_svm.solvers import Average, CountWindow, Cut, Driver, FractionWindow, ModelAxis, SolverState
from asset_svm.solvers.average import Window
from asset_svm.steps import RobustStep, StepRule, StrongStep, gradient_bound
from asset_svm.training.plan import measure
from asset_svm.training.recipe import Recipe, StepKind
from asset_svm.training.rows import TrainingRows
from solvers.base import Problem

WINDOW = 100
"""Iterates that are averaged."""
FIRST_ROWS = 1000
"""From which the length of steps is taken on a card, as from the first block of a stream."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run was after so many steps and CPU seconds; error in per cent."""

    steps: int
    seconds: float
    error: float


class TestRows:
    """The features of the test rows, computed once."""

    __test__ = False  # not a test of pytest's

    def __init__(self, phi: FeatureMap, X: Any, y: np.ndarray):
        self.V, self.positive = phi(X), y > 0

    def error(self, coef: np.ndarray) -> float:
        """Per cent, for coef of shape (1, d)."""
        return 100.0 * float(np.mean((self.V @ coef[0].astype(self.V.dtype) > 0) != self.positive))


def trace(
    problem: Problem,
    test: tuple[Any, np.ndarray],
    step: StepKind,
    seed: int,
    epochs: int,
    checks: int = 10,
) -> list[Checkpoint]:
    """ASSET_M ("robust") or ASSET*_M ("strong") over rows in memory, ``checks`` looks an epoch."""
    if len(problem.y) // checks < WINDOW:
        raise ValueError(
            f"checks={checks} looks in an epoch of {len(problem.y)} rows are nearer to each other than "
            f"the {WINDOW} iterates that are averaged; take at most {len(problem.y) // WINDOW}."
        )
    clock = time.process_time()
    rng = np.random.default_rng([seed, 0])
    phi = NystroemFeatures.sample(problem.X, Kernel("rbf", problem.gamma), problem.s, rng)
    m, backend, loss = len(problem.y), CpuBackend(), Hinge()
    targets = OneVsRestTargets((problem.y > 0).astype(np.intp), 2)
    order = UniformOrder(m, seed, None)
    rows = TrainingRows(backend.rows(phi, problem.X), targets, order, np.ones(m), None, 1.0)
    recipe = Recipe(loss, (problem.lam,), step, 1.0, WINDOW, free_intercept=False, seed=seed)
    axis = measure(recipe, rows).axis(recipe, rows.metric, 0)
    driver = Driver(
        rows.mapped, targets, order, axis, SolverState.zeros(1, phi.dimension, rows.mapped.dtype),
        Average(CountWindow(WINDOW)), cut=backend.cut(),
        length=m * epochs,
    )  # fmt: skip
    spent = time.process_time() - clock
    watched = TestRows(phi, *test)
    found = []
    clock = time.process_time()
    while driver.position < m * epochs:
        driver.advance(min(m // checks, m * epochs - driver.position))
        coef, _ = driver.model()
        spent += time.process_time() - clock
        found.append(Checkpoint(driver.position, spent, watched.error(coef)))
        clock = time.process_time()
    return found


class _Passing:
    """The rows of a stream, a block at a time; features of the block at hand only."""

    in_memory = False

    def __init__(self, phi: FourierFeatures, blocks: Iterator[tuple[np.ndarray, np.ndarray]]):
        self.phi, self.blocks = phi, blocks
        self.dimension, self.dtype = phi.dimension, np.dtype(np.float32)
        self.n_models, self.start, self.seconds = 1, 0, 0.0
        self.V, self.y = np.empty((0, phi.dimension), np.float32), np.empty(0)

    def pull(self) -> int:
        """Take the next block; returns its number of rows."""
        self.start += len(self.y)
        X, y = next(self.blocks)
        clock = time.process_time()
        self.V = self.phi(X)
        self.seconds += time.process_time() - clock
        self.y = np.where(y > 0, 1.0, -1.0)
        return len(y)

    def fetch(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of rows of this block."""
        return self.V, rows - self.start

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Targets of rows of this block."""
        return self.y[None, rows - self.start]


def _ways(
    lam: float, count: int, V: np.ndarray, y: np.ndarray
) -> tuple[FeasibleSet, dict[str, tuple[StepRule, Window]]]:
    """Where iterates may lie, and the algorithms of Figure 2: steps, and what is averaged."""
    loss = Hinge()
    ball = FeasibleSet(loss.radius(lam, 1.0), None)
    robust = RobustStep(ball.size, gradient_bound(loss, squared_norms(V), y))
    last = CountWindow(WINDOW)
    return ball, {
        "ASSET_F": (robust, last),
        "ASSET*_F": (StrongStep(lam), last),
        "ASSET_F, last half": (robust, FractionWindow(0.5, count)),
    }


def stream_trace(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]], count: int, test: tuple[np.ndarray, np.ndarray],
    gamma: float, lam: float, d: int, seed: int, looks: int,
) -> dict[str, list[Checkpoint]]:  # fmt: skip
    """ASSET_F and ASSET*_F side by side in one pass over a stream of ``count`` rows.

    And ASSET_F with the average of the last half in place of the last 100. The features of a block are
    computed once and serve all; their time counts for each.
    """
    rng = np.random.default_rng([seed, 0])
    n_features = test[0].shape[1]
    phi = FourierFeatures.sample(Kernel("rbf", gamma), n_features, d, rng)
    watched = TestRows(phi, *test)
    rows, loss = _Passing(phi, blocks), Hinge()
    size = rows.pull()
    ball, ways = _ways(lam, count, rows.V, rows.y)
    drivers = {
        name: Driver(
            rows, rows, GivenOrder(count), ModelAxis.build(loss, (lam,), [ball], [rule]),
            SolverState.zeros(1, d, rows.dtype), Average(window), cut=Cut(size), length=count,
        )
        for name, (rule, window) in ways.items()
    }  # fmt: skip
    spent = dict.fromkeys(drivers, 0.0)
    found: dict[str, list[Checkpoint]] = {name: [] for name in drivers}
    next_look = 1
    while True:
        end = rows.start + size
        for name, driver in drivers.items():
            clock = time.process_time()
            driver.advance(size)
            spent[name] += time.process_time() - clock
        if end * looks >= count * next_look:
            next_look = end * looks // count + 1
            for name, driver in drivers.items():
                error = watched.error(driver.model()[0])
                found[name].append(Checkpoint(end, spent[name] + rows.seconds, error))
        if end >= count:
            return found
        size = rows.pull()


def card_trace(
    X: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray], gamma: float, lam: float,
    d: int, seed: int, looks: int, backend: Any = None,
) -> dict[str, list[Checkpoint]]:  # fmt: skip
    """``stream_trace`` of the same rows on a card, where all of them lie from the beginning.

    One algorithm after the other; a look counts the features of the rows up to there.
    """
    import torch

    from asset_svm.backends.cuda.backend import CudaBackend
    from asset_svm.backends.cuda.blocks import BLOCK

    backend = CudaBackend() if backend is None else backend

    def now() -> float:
        if backend.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    count, loss = len(y), Hinge()
    rng = np.random.default_rng([seed, 0])
    phi = FourierFeatures.sample(Kernel("rbf", gamma), X.shape[1], d, rng)
    mapped = backend.rows(phi, torch.from_numpy(X).to(backend.device))
    begun = now()
    mapped.fill()
    features = now() - begun
    decide, positive = backend.held_out(phi, test[0]), test[1] > 0
    targets = OneVsRestTargets((y > 0).astype(np.intp), 2)
    first = slice(0, FIRST_ROWS)
    ball, ways = _ways(lam, count, phi(X[first]), np.where(y[first] > 0, 1.0, -1.0))
    found: dict[str, list[Checkpoint]] = {}
    for name, (rule, window) in ways.items():

        def start(rule: StepRule = rule, window: Window = window) -> Driver:
            return backend.driver(
                Visits(mapped, targets, GivenOrder(count), Cut(BLOCK), length=count),
                ModelAxis.build(loss, (lam,), [ball], [rule]),
                SolverState.zeros(1, d, np.float32),
                Average(window),
            )

        start().advance(min(WINDOW, count))  # the kernel is compiled, or read from disk
        driver, spent, found[name] = start(), 0.0, []
        for look in range(1, looks + 1):
            steps = count * look // looks
            begun = now()
            driver.advance(steps - driver.position)
            spent += now() - begun
            error = 100.0 * float(np.mean((decide(driver.model()[0])[:, 0] > 0) != positive))
            found[name].append(Checkpoint(steps, spent + features * steps / count, error))
    mapped.close()
    return found
