"""One fit to all rows, in memory: the map, epochs of steps on the mapped rows, the fitted model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm.backends.cpu import CpuBackend
from asset_svm.exceptions import warn_caller
from asset_svm.families.base import Fitted, Trained
from asset_svm.families.epochs import Epochs
from asset_svm.families.observing import Observer
from asset_svm.families.one_map.components import choose_map
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.fitted import FittedMap, warm_start
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.one_map.monitor import Monitor
from asset_svm.families.one_map.one_class import lam_for, with_threshold
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.training.certificate import tight_work
from asset_svm.training.pairs import suits_pairs, train_by_pairs
from asset_svm.training.run import Snapshot, train
from asset_svm.training.stopping import Stopping

DEFAULT_EPOCHS = Epochs(least=25, steps=100_000)
"""Where nobody says: at most so many, and fewer where they would gain less than ``FLAT``."""
FLAT = 0.03
"""The part of the objective, and of the errors, that may be left to gain at the end of a default run.
After 3 epochs that cannot be told: the objective may be flat to 1 per cent, and errors be a fourth
more than after 25."""
BESIDE_EIGENVALUES = 3.0
"""A tight bound may take so many times s^3 operations after an eigendecomposition of some 10 s^3."""
ROWS_AT_ZERO = 65_536
"""So many rows tell the objective of coef = 0."""
NOTICED = 0.01
"""Nobody would notice a gap of a smaller part of the objective of coef = 0."""
WORTH_TELLING = 0.1
"""A model whose gap is a larger part of its objective is not what was asked for."""


def fit_batch(
    settings: Settings,
    task: Task,
    rows: Rows,
    begun: float,
    observer: Observer,
    before: Fitted | None = None,
    drawn: DrawnMap | None = None,
    keeper: Keeper | None = None,
) -> Trained[FittedMap]:
    """Train on all rows; parameters as in ``Family.fit``, and ``keeper`` saves the run."""
    seed, held_out, records = settings.draw_seed(), None, None
    if keeper is not None and keeper.resumed is not None:
        seed, records, drawn = keeper.resumed.seed, keeper.resumed.component_search, keeper.drawn
    if settings.early_stopping:
        kept, out = task.split(rows.y, settings.validation_fraction, seed)
        held_out, rows = rows.take(out), rows.take(kept)
        task = task.settled(rows.y, rows.weight)
    encoded, backend, deadline = task.encode(rows.y), settings.backend(rows.X), settings.deadline(begun)
    start = warm_start(settings, before, task, rows.X)
    if start is not None:
        drawn = DrawnMap(start.phi, start.metric)
    elif drawn is None:
        phi, records = choose_map(settings, backend, rows, task, seed, deadline)
        drawn = DrawnMap.measured(backend, phi, rows, settings.step, seed)
    if keeper is not None and keeper.resumed is None:
        keeper.begin(drawn, seed, records)
    lam = lam_for(settings, task, backend, drawn, rows, seed)
    recipe = settings.recipe(encoded.loss, lam, encoded.targets.n_models, seed)
    if getattr(drawn.phi, "eigenvalues", None) is not None:
        worth = BESIDE_EIGENVALUES * drawn.phi.basis_dimension**3
        recipe = replace(recipe, tight_within=max(recipe.tight_within, worth))
    epochs = DEFAULT_EPOCHS.over(len(rows.y), settings.max_iter)
    order = rows.order(settings.sampling, settings.step, seed)
    training = drawn.training(backend, rows, encoded, *order)
    monitor = Monitor(settings, task, drawn, epochs, observer, backend, held_out)
    stopping = Stopping(
        epochs,
        tol=settings.tol,
        deadline=deadline,
        flat=FLAT if settings.max_iter is None and _is_worth_a_look(len(rows.y), epochs) else None,
        least_steps=DEFAULT_EPOCHS.steps,
        after_epoch=monitor,
        chosen=monitor.chosen,
        early=settings.early_stopping,
        watched=monitor.watched,
        keep=keeper,
    )
    solution = None
    open_to_pairs = start is None and _leaves_steps_open(settings, stopping)
    if open_to_pairs and isinstance(backend, CpuBackend) and suits_pairs(recipe, training):
        solution = train_by_pairs(backend, recipe, training)
    if solution is None:
        state = None if start is None else start.state
        saved = None if keeper is None else keeper.state()
        snapshot = None if saved is None else Snapshot(**saved)
        solution = train(backend, recipe, training, stopping, start=state, snapshot=snapshot)
    fitted = FittedMap.solved(
        settings,
        with_threshold(task, training, solution, seed, in_time=settings.time_limit is not None),
        drawn,
        recipe,
        solution,
        rows if start is None else None,
        mean_weight=float(rows.weight.mean()),
        y_max=encoded.y_max,
        steps_before=0 if start is None else start.steps,
        component_search=records,
    )
    if start is not None:
        fitted = replace(fitted, indices=start.indices)
    monitor.finish(solution.coef, solution.intercept)
    return Trained(fitted, rows)


def _is_worth_a_look(m: int, epochs: int) -> bool:
    """Whether a default run over so many rows could end before its last stage."""
    done, stages = 0, Stopping(epochs, flat=FLAT)
    while done + stages.stage(done) < epochs:
        done += stages.stage(done)
    return m * done >= DEFAULT_EPOCHS.steps


def _leaves_steps_open(settings: Settings, stopping: Stopping) -> bool:
    """Whether nobody asks for stochastic steps, or looks at them."""
    asked = (settings.max_iter, settings.step_scale, settings.average, settings.sampling)
    if asked != (None, None, "auto", "auto"):
        return False
    return stopping.tol is None and stopping.end_is_known and not stopping.watched


def objective_at_zero(task: Task, rows: Rows) -> float:
    """The objective of coef = 0, b = 0, by some of the rows where they are many."""
    encoded, index = task.encode(rows.y), np.arange(len(rows.y))
    if len(index) > ROWS_AT_ZERO:
        index = np.random.default_rng(0).choice(index, ROWS_AT_ZERO, replace=False)
    losses = encoded.loss.value(encoded.targets.block(index), np.zeros(len(index)))
    return float((losses @ rows.weight[index]).sum()) / float(rows.weight[index].sum())


def excess(settings: Settings, trained: Trained[FittedMap]) -> float | None:
    """The objective of coef = 0, where a fit ends far above it; None where all is well.

    coef = 0 is a model too: steps were too long for the data then.
    """
    fitted: FittedMap = trained.fitted
    at_zero = objective_at_zero(fitted.task, trained.rows)
    far = fitted.objective > 2.0 * at_zero and fitted.n_iter > 0 and settings.step != "strong"
    return at_zero if far else None


def warn_of_excess(settings: Settings, trained: Trained[FittedMap]) -> None:
    """Warn where the model is worse than none."""
    at_zero = excess(settings, trained)
    if at_zero is not None:
        warn_caller(
            f"The objective {trained.fitted.objective:.3g} is far above that of coef = 0, "
            f"{at_zero:.3g}; scale the columns of X (StandardScaler), raise max_iter, or lower "
            "step_scale.",
            ConvergenceWarning,
        )


def is_apart(settings: Settings, fitted: FittedMap) -> bool:
    """Whether the model is not as near to the optimum as ``tol`` asks for."""
    return settings.tol is not None and fitted.dual_gap > settings.tol * fitted.objective


def is_known_to_be_far(settings: Settings, trained: Trained[FittedMap]) -> bool:
    """Whether a bound that is tight says that the model is far from the optimum.

    Of the paper's steps nothing else is to be expected, nor of a run that was cut short; and next to
    the losses that there were in the beginning a gap may be nothing.
    """
    fitted, rows = trained.fitted, trained.rows
    assert fitted.coef is not None  # only compact models have none
    n_models, dimension = fitted.coef.shape
    within = 0.0 if fitted.session is None else fitted.session.recipe.tight_within
    tight = tight_work(len(rows.y), dimension, n_models) <= within
    cut_short = settings.time_limit is not None or settings.early_stopping
    bounded = settings.intercept_bound is not None  # the gap is that of the problem without it
    if not tight or settings.step != "metric" or cut_short or bounded:
        return False
    gap = fitted.dual_gap
    return bool(
        gap > WORTH_TELLING * fitted.objective and gap > NOTICED * objective_at_zero(fitted.task, rows)
    )


def warn_of_gap(settings: Settings, trained: Trained[FittedMap]) -> None:
    """Warn where ``tol`` was not reached, or, without one, where the model is known to be far off."""
    fitted = trained.fitted
    gap = fitted.dual_gap / max(fitted.objective, 1e-300)
    told = f"The duality gap is {gap:.2g} of the objective after {fitted.n_iter} epochs"
    if is_apart(settings, fitted):
        warn_caller(
            f"{told}, above tol={settings.tol:g}; raise max_iter or tol (SVC's tol is another measure; "
            "tol=None runs the usual epochs).",
            ConvergenceWarning,
        )
    elif settings.tol is None and is_known_to_be_far(settings, trained):
        warn_caller(
            f"{told}: another model fits these rows much better; raise max_iter, lower C, or scale "
            "the columns of X (StandardScaler).",
            ConvergenceWarning,
        )
