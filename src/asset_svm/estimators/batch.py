"""One fit to all rows, in memory: the map, epochs of steps on the mapped rows, the stored model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asset_svm.engines.certification import tight_work
from asset_svm.engines.pairs import suits_pairs, train_by_pairs
from asset_svm.engines.task import Stopping, TrainingRows
from asset_svm.engines.training import train
from asset_svm.estimators.base import Encoded
from asset_svm.estimators.drawn import DrawnMap
from asset_svm.estimators.epochs import Epochs
from asset_svm.estimators.fitting import FROM_VALIDATION, forget
from asset_svm.estimators.monitor import Monitor
from asset_svm.estimators.rows import Rows
from asset_svm.estimators.session import keep_session, warm_parts
from asset_svm.exceptions import warn_caller

DEFAULT_EPOCHS = Epochs(least=25, steps=100_000)
BESIDE_EIGENVALUES = 3.0
"""Times s^3 operations, that a tight bound may take after an eigendecomposition of some 10 s^3."""
NOTICED = 0.01
"""Of the objective of coef = 0: a gap below which nobody would notice."""
WORTH_TELLING = 0.1
"""Of the objective: a duality gap beyond which a model is not what was asked for."""


def fit_batch(
    learner: Any,
    rows: Rows,
    encoded: Encoded,
    seed: int,
    begun: float,
    watch: Any = None,
    drawn: DrawnMap | None = None,
) -> tuple[Rows, Encoded]:
    """Train, and store the model on the learner; ``drawn`` is the map of these rows, where it is known.

    Returns the rows that it learnt from, and their targets: early stopping holds some out.
    """
    held_out = None
    if learner.early_stopping:
        kept, out = learner._split(rows.y, seed)
        held_out = (rows.X[out], rows.y[out], rows.weight[out])
        rows = rows.take(kept)
        encoded = learner._encode(rows.y, rows.weight, encoded.labels)
    engine = learner._engine(rows.X)
    deadline = begun + learner.time_limit if learner.time_limit else float("inf")
    told: dict[str, Any] = {}
    phi, metric, start = warm_parts(learner, rows.X, encoded)
    if phi is not None:
        drawn = DrawnMap(phi, metric)
    elif drawn is None:
        phi, told = learner._choose_map(engine, rows, encoded, seed, deadline)
        drawn = DrawnMap.measured(engine, phi, rows, learner._step, seed)
    phi, metric = drawn.phi, drawn.metric
    lam = learner._lam(rows)
    recipe = learner._recipe(encoded.loss, lam, encoded.targets.n_models, seed)
    if getattr(phi, "eigenvalues", None) is not None:
        worth = BESIDE_EIGENVALUES * phi.basis_dimension**3
        recipe = replace(recipe, tight_within=max(recipe.tight_within, worth))
    order, slope_weight = rows.order(learner.sampling, learner._step, seed)
    epochs = DEFAULT_EPOCHS.over(len(rows.y), learner.max_iter)
    training = TrainingRows(
        drawn.rows(engine, rows.X, lead=recipe.leads(order, epochs, metric)),
        encoded.targets,
        order,
        rows.weight,
        slope_weight,
        encoded.y_max,
        metric,
    )
    monitor = Monitor(learner, engine, phi, metric, encoded, held_out, epochs, rows.X, rows.y, watch)
    stopping = Stopping(
        epochs,
        tol=learner.tol,
        deadline=deadline,
        after_epoch=monitor,
        chosen=monitor.chosen,
        early=learner.early_stopping,
        watched=monitor.watched,
    )
    solution = None
    if (
        start is None
        and _leaves_steps_open(learner, stopping)
        and suits_pairs(engine, recipe, training)
    ):
        solution = train_by_pairs(engine, recipe, training)
    if solution is None:
        solution = train(engine, recipe, training, stopping, start=start)
    steps = solution.steps + (learner.t_ if start is not None else 0)
    forget(learner, keep=FROM_VALIDATION)
    learner._store(solution.coef, solution.intercept, phi, encoded)
    learner.__dict__.update(told)
    learner._point_to(rows, start is None)
    keep_session(learner, solution, recipe, phi, metric, float(rows.weight.mean()), encoded, steps)
    learner.n_iter_, learner.t_, learner.lam_ = solution.epochs, steps, lam
    learner.history_ = solution.history
    learner.step_scale_ = solution.step_scale
    learner.objective_ = float(solution.certificate.objective.sum())
    learner.dual_gap_ = float(solution.certificate.dual_gap.sum())
    monitor.finish(solution.coef, solution.intercept)
    return rows, encoded


def _leaves_steps_open(learner: Any, stopping: Stopping) -> bool:
    """Whether nobody asks for stochastic steps, or looks at them."""
    asked = (learner.max_iter, learner.step_scale, learner.average, learner.sampling)
    if asked != (None, "auto", "auto", "auto"):
        return False
    return stopping.tol is None and stopping.end_is_known and not stopping.watched


def objective_at_zero(rows: Rows, encoded: Encoded) -> float:
    """The objective of coef = 0, b = 0."""
    at_zero = 0.0
    for start in range(0, len(rows.y), 65_536):
        index = np.arange(start, min(start + 65_536, len(rows.y)))
        losses = encoded.loss.value(encoded.targets.block(index), np.zeros(len(index)))
        at_zero += float((losses @ rows.weight[index]).sum()) / float(rows.weight.sum())
    return at_zero


def excess(learner: Any, rows: Rows, encoded: Encoded) -> float | None:
    """The objective of coef = 0, where a fit ends far above it; None where all is well.

    coef = 0 is a model too: steps were too long for the data then.
    """
    at_zero = objective_at_zero(rows, encoded)
    far = learner.objective_ > 2.0 * at_zero and learner.n_iter_ > 0 and learner._step != "strong"
    return at_zero if far else None


def warn_of_excess(learner: Any, rows: Rows, encoded: Encoded) -> None:
    """Warn where the model is worse than none."""
    at_zero = excess(learner, rows, encoded)
    if at_zero is not None:
        warn_caller(
            f"The objective {learner.objective_:.3g} is far above that of coef = 0, {at_zero:.3g}; "
            "scale the columns of X (StandardScaler), raise max_iter, or lower step_scale.",
            ConvergenceWarning,
        )


def is_apart(learner: Any) -> bool:
    """Whether the model is not as near to the optimum as ``tol`` asks for."""
    return learner.tol is not None and learner.dual_gap_ > learner.tol * learner.objective_


def is_known_to_be_far(learner: Any, rows: Rows, encoded: Encoded) -> bool:
    """Whether a bound that is tight says that the model is far from the optimum.

    Of the paper's steps nothing else is to be expected, nor of a run that was cut short; and next to
    the losses that there were in the beginning a gap may be nothing.
    """
    n_models, dimension = learner.coef_.shape
    tight = tight_work(len(rows.y), dimension, n_models) <= learner._session.recipe.tight_within
    cut_short = learner.time_limit is not None or learner.early_stopping
    bounded = learner.intercept_bound is not None  # the gap is that of the problem without it
    if not tight or learner._step != "metric" or cut_short or bounded:
        return False
    gap = learner.dual_gap_
    return gap > WORTH_TELLING * learner.objective_ and gap > NOTICED * objective_at_zero(rows, encoded)


def warn_of_gap(learner: Any, rows: Rows, encoded: Encoded) -> None:
    """Warn where ``tol`` was not reached, or, without one, where the model is known to be far off."""
    gap = learner.dual_gap_ / max(learner.objective_, 1e-300)
    told = f"The duality gap is {gap:.2g} of the objective after {learner.n_iter_} epochs"
    if is_apart(learner):
        warn_caller(
            f"{told}, above tol={learner.tol:g}; raise max_iter or tol (SVC's tol is another measure; "
            "tol=None runs the usual epochs).",
            ConvergenceWarning,
        )
    elif learner.tol is None and is_known_to_be_far(learner, rows, encoded):
        warn_caller(
            f"{told}: another model fits these rows much better; raise max_iter, lower C, or scale "
            "the columns of X (StandardScaler).",
            ConvergenceWarning,
        )
