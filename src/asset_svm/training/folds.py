"""All models of a search at once: every C, every split and every class, on one map of the rows.

Model (c, f, t) has the C of number c, sees the rows of split f and separates class t:
lam = 1 / (C W_f), W_f the weight of the rows it sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.base import Backend, Visits
from asset_svm.data import Order
from asset_svm.features import Metric
from asset_svm.solvers import (
    Average,
    BlockRows,
    CountWindow,
    Driver,
    ModelAxis,
    NoWindow,
    SolverState,
)
from asset_svm.solvers.average import NEVER
from asset_svm.solvers.many import BLOCK_ROWS, ManyDriver
from asset_svm.steps import GRID
from asset_svm.threads.blas import few_threads
from asset_svm.training.gradients import GradientSample, bulk_of
from asset_svm.training.pilot import choose_step_scale
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import RepeatedTargets

FEWEST_TOGETHER = 5
"""So many models are faster by the blocked form than by loops over rows, by measurement. Both shrink
after the same rows, so that iterates are the same but for rounding."""
PILOT_OUTPUTS = 4
"""At most so many classes take part in pilots."""
NEAR = (8.0, 3.0, 1.2, 0.5, 0.2)
"""The grid of a pilot, times the multiplier expected from the power of 10 before. Started from the
whole grid, pilots for large C jumped to far longer steps in 3 of 8 cases on ADULT, so in 1."""
SAME_POWER = 1e-9
"""A C whose logarithm is closer than this to that of a power of 10 is that power."""


def unit_power(targets: Array, square: float) -> int:
    """The power of 10 of the C at which neither term of (PL) is small beside the other.

    A row with |beta| = C moves its own margin by C k(x, x), and there that is about |y|. What begins at
    it depends on rows and targets alone, not on the Cs that are searched.

    ``square`` is the usual size of k(x, x), or of |v|^2.
    """
    size = np.abs(targets[targets != 0.0])
    if len(size) == 0 or not square > 0.0:
        return 0
    return round(float(np.log10(np.median(size)) - np.log10(square)))


def power_below(C: float) -> int:
    """The exponent of the last power of 10 that is not above C."""
    return int(np.floor(np.log10(C) + SAME_POWER))


@dataclass(frozen=True, eq=False)
class Splits:
    """F splits of the rows, each with its own weights and targets.

    Parameters
    ----------
    weight : array of shape (F, m)
        The weights of (PL); 0 where a split hides the row.
    target : array of shape (T, m)
    own_target : bool
        Whether targets belong to splits (regression), T / F of them to each, those of the first split
        first, instead of target t to class t.
    y_max : array of shape (F,), or (F, outputs)
        The largest |target| that a split sees.
    """

    weight: Array
    target: Array
    own_target: bool
    y_max: Array

    @property
    def count(self) -> int:
        """The number of splits, F."""
        return len(self.weight)

    @property
    def n_outputs(self) -> int:
        """The number of models of one C and split."""
        return len(self.target) // self.count if self.own_target else len(self.target)

    @cached_property
    def seen(self) -> Array:
        """The number of rows of each split."""
        return np.asarray((self.weight > 0.0).sum(axis=1))

    @cached_property
    def total(self) -> Array:
        """The weight of the rows of each split."""
        return np.asarray(self.weight.sum(axis=1))

    @cached_property
    def slope_weight(self) -> Array:
        """The multipliers of slopes: their mean is 1 over the rows of a split, others have -1."""
        mean = self.total / self.seen
        return np.where(self.weight > 0.0, self.weight / mean[:, None], -1.0)

    def targets_of(self, split: int) -> Array:
        """The (outputs, m) targets of a split."""
        return self.target[self.places_of(split)]

    def places_of(self, split: int) -> Array:
        """The numbers of the targets of a split."""
        return np.arange(self.n_outputs) + (split * self.n_outputs if self.own_target else 0)


@dataclass(frozen=True, eq=False)
class ManyModels:
    """K = Cs x splits x outputs models that train on the same mapped rows.

    Parameters
    ----------
    mapped : BlockRows
        The rows, in the metric if there is one.
    recipe : Recipe
        Its ``lam`` is not used: every model has its own.
    """

    mapped: BlockRows
    order: Order
    splits: Splits
    recipe: Recipe
    Cs: Array
    epochs: int
    metric: Metric | None

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of Cs, splits and outputs."""
        return len(self.Cs), self.splits.count, self.splits.n_outputs

    def train(self, backend: Backend, deadline: float = np.inf) -> tuple[Array, Array, bool]:
        """The averaged coef, (Cs, splits, outputs, d), the intercepts, and whether time was enough.

        By the blocked form every model has its own rows; else those of one split train together.
        """
        n_Cs, F, T = self.shape
        together = backend.hides_rows_by_model and n_Cs * F * T >= FEWEST_TOGETHER
        total = self.epochs * self.order.n_rows
        coef = np.zeros((n_Cs, F, T, self.mapped.dimension))
        intercept = np.zeros((n_Cs, F, T))
        with few_threads(0):  # products have one thread each
            backend.map_all(self.mapped)
            sample = GradientSample.draw(self.recipe, self.mapped, self.order.n_rows, self.metric)
            scales = self._step_scales(backend, sample, deadline)
            for splits in [np.arange(F)] if together else np.arange(F)[:, None]:
                axis, sort, split = self._axis(sample, scales, splits)
                if float(axis.radius.max()) == 0.0:
                    continue  # epsilon >= |y|: the solution is 0
                # Models of one class learn from about the same rows: side by side, the products of
                # a group of models leave out all others.
                by_class = np.arange(len(sort)).reshape(-1, T).T.ravel()
                driver: Driver | ManyDriver
                if together:
                    axis, sort, split = axis.take(by_class), sort[by_class], split[by_class]
                    driver = self._blocked(axis, sort, split)
                else:
                    driver = self._alone(backend, axis, splits[0])
                in_time = driver.advance(total, deadline) == total
                if isinstance(driver, Driver):
                    driver.settle()
                found, b = driver.model()
                if together:
                    back = np.argsort(by_class)
                    found, b = found[back], b[back]
                shape = (n_Cs, len(splits), T)
                coef[:, splits], intercept[:, splits] = found.reshape(*shape, -1), b.reshape(shape)
                if not in_time:
                    return coef, intercept, False
        return coef, intercept, True

    def _blocked(self, axis: ModelAxis, sort: Array, split: Array) -> ManyDriver:
        """The driver of models that each have their own rows."""
        average_from = np.array([self._average_from(f) for f in range(self.splits.count)])
        return ManyDriver(
            self.mapped,
            self.order,
            lambda rows: np.take(self.splits.target, rows, axis=1),
            sort,
            self.splits.slope_weight,
            split,
            axis,
            average_from[split],
        )

    def _alone(self, backend: Backend, axis: ModelAxis, split: int) -> Driver:
        """The driver of the models of one split, by the backend's own loop."""
        total = self.epochs * self.order.n_rows
        begin = self._visit_of(split, self._average_from(split))
        visits = Visits(
            self.mapped,
            RepeatedTargets(self.splits.targets_of(split), len(self.Cs)),
            self.order,
            backend.cut(),
            self.splits.slope_weight[split],
            length=total,
            shrink_interval=BLOCK_ROWS,
        )
        state = SolverState.zeros(len(axis.lam), self.mapped.dimension, self.mapped.dtype)
        window = NoWindow() if begin == NEVER else CountWindow(total - begin + 1, total)
        return backend.driver(visits, axis, state, Average(window))

    def _average_from(self, split: int) -> int:
        """The first step that the models of a split average, counted from 1."""
        steps = self.epochs * int(self.splits.seen[split])
        return self.recipe.window(steps, looked_at=False).start(steps) + 1

    def _visit_of(self, split: int, step: int) -> int:
        """The visit of a row, counted from 1, that is this step of a split; NEVER where none is."""
        m, done = self.order.n_rows, 0
        for start in range(0, self.epochs * m, m):
            seen = np.flatnonzero(self.splits.weight[split, self.order.rows(start, start + m)] > 0.0)
            if step <= done + len(seen):
                return start + int(seen[step - done - 1]) + 1
            done += len(seen)
        return NEVER

    def _bounds(self, sample: GradientSample, split: int) -> Array:
        """D_G of each output, from the sampled rows that a split sees."""
        y = self.splits.targets_of(split)[:, sample.rows]
        return sample.bounds(self.recipe, y, self.splits.slope_weight[split, sample.rows])

    def _axis(
        self, sample: GradientSample, scales: Array, splits: Array
    ) -> tuple[ModelAxis, Array, Array]:
        """The models of these splits, and which target and split each has."""
        bounds = [self._bounds(sample, f) for f in splits]
        parts, sort, split = [], [], []
        for C, scale in zip(self.Cs, scales, strict=True):
            for f, bound in zip(splits, bounds, strict=True):
                steps = self.epochs * int(self.splits.seen[f])
                parts.append(self._part(float(C), f, sample, bound, float(scale), steps))
                sort += self.splits.places_of(int(f)).tolist()
                split += [int(f)] * len(bound)
        return ModelAxis.joined(parts), np.array(sort), np.array(split)

    def _part(
        self,
        C: float,
        split: int,
        sample: GradientSample,
        bounds: Array,
        scale: float,
        steps: int,
        some: Array | None = None,
    ) -> ModelAxis:
        """The models of one C and split, or ``some`` of them, for a run of so many steps."""
        y, y_max = self.splits.targets_of(split)[:, sample.rows], self.splits.y_max[split]
        each = y_max.ndim > 0
        bulk = bulk_of(y, self.splits.slope_weight[split, sample.rows], each=each)
        if each and some is not None:
            y_max, bulk = y_max[some], np.asarray(bulk)[some]
        lam = 1.0 / (C * float(self.splits.total[split]))
        loss = self.recipe.loss if some is None else self.recipe.loss.of_models(some)
        recipe = replace(self.recipe, loss=loss, lam=(lam,) * len(bounds))
        sets = recipe.feasible_sets(y_max, sample.kappa, bulk, self.metric)
        sizes = StepSizes(sets, bounds, sample.kappa, bulk, scale)
        return sizes.axis(recipe, self.metric, steps)

    def _step_scales(
        self,
        backend: Backend,
        sample: GradientSample,
        deadline: float,
    ) -> Array:
        """The multiplier of the steps of each C, whichever others are searched beside it.

        Pilots on the first split find those of powers of 10, one after the other from ``unit_power``
        on up and down to the Cs that are searched; between two powers it is interpolated. From the
        deadline on, what is expected from the power before is taken.
        """
        recipe = self.recipe
        if recipe.step == "strong" or recipe.step_scale is not None:
            return np.full(len(self.Cs), recipe.step_scale or 1.0)
        rows = np.flatnonzero(self.splits.weight[0] > 0.0)
        targets = self.splits.targets_of(0)
        some = np.unique(np.linspace(0, len(targets) - 1, PILOT_OUTPUTS).round().astype(int))
        bounds, targets = self._bounds(sample, 0)[some], targets[some]

        def pilot(power: int, grid: tuple[float, ...]) -> float:
            def axis(scale: float, steps: int) -> ModelAxis:
                return self._part(10.0**power, 0, sample, bounds, scale, steps, some)

            return choose_step_scale(
                backend,
                self.mapped,
                RepeatedTargets(targets),
                self.splits.weight[0],
                rows,
                axis,
                total=self.epochs * len(rows),
                seed=recipe.seed,
                average=recipe.usual_average(decaying=True),
                grid=grid,
                deadline=deadline,
            )

        lowest, highest = power_below(self.Cs.min()), -power_below(1.0 / self.Cs.max())
        first = unit_power(targets[:, rows], sample.kappa**2)
        found = {first: pilot(first, GRID)}
        for way, last in ((-1, min(first, lowest)), (1, max(first, highest))):
            for power in range(first + way, last + way, way):
                # Steps grow with D_X = 1 / sqrt(lam); how far they go hardly depends on C.
                expected = found[power - way] * 10.0 ** (-0.5 * way)
                if clock.now() > deadline:
                    found[power] = min(expected, GRID[0])
                else:
                    grid = tuple(min(factor * expected, GRID[0]) for factor in NEAR)
                    found[power] = pilot(power, grid)
        powers = np.array(sorted(found))
        scales = np.log([found[power] for power in powers])
        return np.exp(np.interp(np.log10(self.Cs), powers, scales))
