"""Many models of a search on one pass over the rows: each equals the one that is trained by itself."""

import numpy as np
import pytest

from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import GivenOrder, ShuffledOrder, UniformOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.features import Metric
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.solvers import Average, Cut, Driver, ModelAxis, NoWindow
from asset_svm.solvers.many import ManyDriver
from asset_svm.solvers.state import SolverState
from asset_svm.steps import MetricStep, RobustStep, StrongStep
from asset_svm.threads.granted import grant
from asset_svm.training.folds import ManyModels, Splits
from asset_svm.training.recipe import Recipe
from reference.algorithm import asset

M, D, FOLDS = 60, 7, 3
CS = (0.01, 1.0, 100.0)


class Rows:
    """Mapped rows that are simply there."""

    look_size = 16

    in_memory = True

    def __init__(self, V):
        self.V, self.dimension, self.dtype = V, V.shape[1], V.dtype

    def fetch(self, rows):
        return self.V, rows


class OneTarget:
    n_models = 1

    def __init__(self, y):
        self.y = y

    def block(self, rows):
        return self.y[None, rows]


def many(task, step, *, bound=None, radius=None, metric=None, epochs=4, dtype=np.float64, **options):
    """A driver of CS x FOLDS models, and what each of them is made of."""
    rng = np.random.default_rng(1)
    V = (rng.normal(size=(M, D)) / np.sqrt(D)).astype(dtype)
    y = V @ rng.normal(size=D) * 2 + 0.3 * rng.normal(size=M)
    y = np.where(y > 0, 1.0, -1.0) if task == "classification" else y
    loss = Hinge() if task == "classification" else EpsilonInsensitive(0.05)
    fold = np.arange(M) % FOLDS
    own = rng.uniform(0.5, 1.5, size=M)
    weight = np.where(fold[None, :] == np.arange(FOLDS)[:, None], -1.0, own[None, :])
    lam, sets, rules, split = [], [], [], []
    for C in CS:
        for f in range(FOLDS):
            seen = int((weight[f] >= 0).sum())
            lam.append(1.0 / (C * seen))
            R = loss.radius(lam[-1], float(np.abs(y).max())) if radius is None else radius
            sets.append(FeasibleSet(R, bound))
            if metric is not None:
                rules.append(MetricStep(sets[-1].size, 1.3, metric, 0.3, epochs * seen))
            else:
                rules.append(
                    StrongStep(lam[-1]) if step == "strong" else RobustStep(sets[-1].size, 1.3, 0.5)
                )
            split.append(f)
    axis = ModelAxis.build(loss, lam, sets, rules)
    begin = np.array([epochs * int((weight[f] >= 0).sum()) // 2 for f in split])
    driver = ManyDriver(
        Rows(V),
        ShuffledOrder(M, 3),
        lambda rows: y[None, rows],
        np.zeros(len(lam), dtype=int),
        weight,
        np.array(split),
        axis,
        begin,
        **options,
    )
    return driver, V, y, loss, epochs * M


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("step", "bound", "radius"),
    [("robust", 3.0, None), ("robust", 0.05, 0.3), ("robust", None, None), ("strong", None, None)],
)
@pytest.mark.parametrize("block_rows", [1, 16, 64])
def test_every_fold_equals_a_run_by_itself_on_its_own_rows(task, step, bound, radius, block_rows):
    """Iterates and averages of the naive reference, which is shown only the rows of the fold."""
    driver, V, y, _, total = many(task, step, bound=bound, radius=radius, block_rows=block_rows)
    driver.advance(total)
    order = driver.order.rows(0, total)
    coef, intercept = driver.model()
    axis = driver.axis
    for k, f in enumerate(driver.split):
        own = order[driver.weight[f, order] >= 0]
        iterates, averages = asset(
            V, y, own, lam=axis.lam[k], radius=axis.radius[k], bound=bound, task=task, epsilon=0.05,
            step=step, d_x=0.5 * np.hypot(axis.radius[k], bound or 0.0), d_g=1.3,
            weight=driver.weight[f], average_from=int(driver.average_from[k]),
        )  # fmt: skip
        assert driver.state.steps[k] == len(own)
        for found, (expected, b) in (
            ((driver.state.coef[k], driver.state.intercept[k]), iterates[-1]),
            ((coef[k], intercept[k]), averages[-1]),
        ):
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-9 * scale)
            assert found[1] == pytest.approx(b, abs=1e-9 * max(1.0, abs(b)))


@pytest.mark.parametrize("low_rank", [False, True])
def test_in_a_metric_too_where_the_shrinks_come_after_the_same_rows(low_rank):
    rng = np.random.default_rng(5)
    directions = np.linalg.qr(rng.normal(size=(D, 3)))[0] if low_rank else None
    metric = Metric(np.linspace(1.0, 4.0, 3 if low_rank else D), directions, 4.0 if low_rank else 1.0)
    driver, V, y, loss, total = many(
        "classification", "metric", bound=2.0, metric=metric, block_rows=16
    )
    driver.advance(total)
    order = driver.order.rows(0, total)
    for k, f in enumerate(driver.split):
        seen = driver.weight[f, order] >= 0
        own = order[seen]

        class Own:
            n_rows = len(own)

            def rows(self, start, stop, own=own):
                return own[start:stop]

        axis = driver.axis
        one = ModelAxis(
            loss, *(part[k : k + 1] for part in (axis.lam, axis.radius, axis.bound, axis.eta)),
            axis.power, axis.horizon[k : k + 1], axis.reach, True, metric,
        )  # fmt: skip
        single = Driver(
            Rows(V), OneTarget(y), Own(), one, SolverState.zeros(1, D, V.dtype), Average(NoWindow()),
            cut=Cut(1000), weight=driver.weight[f],
        )  # fmt: skip
        single.shrink_interval = total
        for start in range(0, total, 16):
            single.advance(int(seen[start : start + 16].sum()))
            single.settle()
        np.testing.assert_allclose(driver.state.coef[k], single.state.coef[0], rtol=0, atol=1e-9)
        assert driver.state.intercept[k] == pytest.approx(single.state.intercept[0], abs=1e-9)


def test_groups_threads_and_blocks_change_nothing():
    found = []
    for threads, options in ((1, {}), (1, dict(group=2)), (3, dict(group=4)), (1, dict(block_rows=7))):
        driver, *_, total = many("classification", "robust", bound=2.0, **options)
        with grant(threads):
            driver.advance(total)
        found.append(driver.model()[0])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-11 * np.abs(found[0]).max())


def test_float32_models_follow_float64_ones():
    wide, *_, total = many("classification", "robust", bound=2.0)
    narrow, *_ = many("classification", "robust", bound=2.0, dtype=np.float32)
    wide.advance(total)
    narrow.advance(total)
    scale = np.abs(wide.model()[0]).max(axis=1, keepdims=True)
    np.testing.assert_array_less(np.abs(narrow.model()[0] - wide.model()[0]) / scale, 1e-4)


@pytest.mark.parametrize("order", [GivenOrder(M), ShuffledOrder(M, 3), UniformOrder(M, 3)])
@pytest.mark.parametrize("average", [None, 50, 0.05])
@pytest.mark.parametrize("step", ["robust", "strong"])
def test_splits_together_equal_splits_one_after_the_other(step, average, order):
    """The blocked form with rows hidden by model, and the row loop where they cannot be."""

    class Together(CpuBackend):
        def map_all(self, rows):
            pass

    class Alone(Together):
        hides_rows_by_model = False

    rng = np.random.default_rng(0)
    V = rng.normal(size=(M, D)) / np.sqrt(D)

    signs = np.sign(V @ rng.normal(size=(D, 3)) + 0.2 * rng.normal(size=(M, 3))).T
    fold = np.arange(M) % 4
    weight = np.where(fold[None, :] == np.arange(4)[:, None], 0.0, rng.uniform(0.5, 2.0, size=M))
    recipe = Recipe(Hinge(), (1.0,), step=step, free_intercept=step == "robust", average=average)
    models = ManyModels(
        Rows(V),
        order,
        Splits(weight, signs, False, np.ones(4)),
        recipe,
        np.array(CS),
        3,
        None,
    )
    found = [models.train(backend) for backend in (Together(), Alone())]
    for one, other in zip(found[0][:2], found[1][:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * max(1.0, np.abs(other).max()))
