"""A whole training run, from the paper's objects to a solution with its certificate.

set up     feasible sets, D_G from a sample, step rules (by a pilot if the scale is "auto")
epochs     ``Driver.advance`` an epoch at a time; after each, the stopping rules
certify    objective and duality gap of the averaged model, from one more pass
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.problem import Certificate
from asset_svm.solvers import Average, Driver, ModelAxis, SolverState
from asset_svm.solvers.tallies import Slopes
from asset_svm.training.certificate import (
    LITTLE,
    certify_rows,
    finish,
    look_at,
    run_work,
    settle_intercept,
    tight_work,
)
from asset_svm.training.plan import StepSizes, find_step_sizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows, plain_coef
from asset_svm.training.solution import Solution
from asset_svm.training.stopping import Look, Stopping

SEEN = "epoch", "sampled_objective", "sampled_errors"
"""The names, in the history, of what a look between stages sees."""
MOST_LOOKS = 200
"""The history of a run on tiny data has about so many records."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a run is, after whole epochs: all that it needs to go on from there, beside its rows.

    Parameters
    ----------
    stage : int
        The epochs of the stage that it is in, or that comes next.
    between_stages : bool
        Whether that stage comes next.
    done, renewed, next_check : int
        Epochs that are done; when slopes are forgotten next; when ``tol`` is checked next.
    position : int
        The steps that it has taken.
    """

    sizes: StepSizes
    state: SolverState
    average: Average
    slopes: Slopes
    stage: int
    between_stages: bool
    done: int
    renewed: int
    next_check: int
    position: int
    history: list[dict[str, Any]]
    seconds: float


def train(
    backend: Backend,
    recipe: Recipe,
    rows: TrainingRows,
    stopping: Stopping,
    *,
    start: SolverState | None = None,
    snapshot: Snapshot | None = None,
) -> Solution:
    """Solve (PL) for K models on the same rows.

    ``start`` continues from an earlier state: its iterates and step counts, not its average.
    ``snapshot`` goes on with a run of these rows that was cut.
    """
    total = rows.order.n_rows * stopping.epochs
    with backend.working(rows.mapped):
        if snapshot is not None:
            sizes = snapshot.sizes
        else:
            known = stopping.end_is_known
            sizes = find_step_sizes(backend, recipe, rows, total, decaying=known)
        if sizes.trivial:
            return Solution.trivial(recipe, rows.mapped.dimension, rows.mapped.dtype)
        run = _Epochs(backend, recipe, rows, stopping, sizes, start, snapshot)
        certificate = run.go()
        run.driver.settle()
        chosen = stopping.chosen() if stopping.chosen is not None else None
        if certificate is None or chosen is not None:
            certificate = run.certify(chosen or run.driver.model(), finished=chosen is None)
    return Solution.of(
        run.certified,
        rows.metric,
        certificate,
        sizes,
        rows.mapped.dtype,
        run.done,
        run.driver.position,
        run.history,
    )


class _Epochs:
    """The epochs of a run, with what is looked at between them.

    A run that ``tol`` may end goes in stages of 1, 1, 2, 4, ... epochs, one that ends when it is flat
    in stages of 3, 6, 18, ..., each with steps that decay to 0, so that what is looked at at the end
    of a stage is a finished model.
    """

    def __init__(
        self,
        backend: Backend,
        recipe: Recipe,
        rows: TrainingRows,
        stopping: Stopping,
        sizes: StepSizes,
        start: SolverState | None,
        snapshot: Snapshot | None,
    ):
        self.recipe, self.rows, self.stopping, self.sizes = recipe, rows, stopping, sizes
        self.staged = stopping.end_is_known and recipe.step == "metric"
        self.looks = self.staged and stopping.flat is not None and stopping.tol is None
        self.stage = stopping.stage(0) if self.staged else stopping.epochs
        self.done, self.timed_out, self.renewed = 0, False, 1
        self.next_check = self.stage if self.looks else 1
        self.between_stages = False
        self.history: list[dict[str, Any]] = []
        self.begun = clock.now()
        self.certified: tuple[Array, Array]
        if snapshot is None:
            state = start or SolverState.zeros(
                len(recipe.lam), rows.mapped.dimension, rows.mapped.dtype
            )
            state.clear_segment()
            axis, average = self.plan()
        else:
            self.stage, self.done = snapshot.stage, snapshot.done
            self.renewed, self.next_check = snapshot.renewed, snapshot.next_check
            self.history, self.begun = list(snapshot.history), self.begun - snapshot.seconds
            state, average = snapshot.state, snapshot.average
            axis, _ = self.plan()
        length, form = rows.order.n_rows * stopping.epochs, recipe.form_for(rows.targets)
        visits = rows.visits(backend.cut(), form=form, length=length, ahead=True)
        self.driver = backend.driver(visits, axis, state, average)
        if snapshot is not None:
            self.driver.slopes, self.driver.position = snapshot.slopes, snapshot.position
            if snapshot.between_stages:
                self.driver.restart(*self.plan())

    def plan(self) -> tuple[ModelAxis, Average]:
        """The models with the steps of the stage, and a new average."""
        steps, decaying = self.rows.order.n_rows * self.stage, self.stopping.end_is_known
        sizes = self.sizes.for_part(self.stage / self.stopping.epochs) if self.looks else self.sizes
        axis = sizes.axis(self.recipe, self.rows.metric, steps if decaying else 0)
        window = self.recipe.window(steps, stream=not decaying, looked_at=self.stopping.looked_at)
        return axis, Average(window)

    def snapshot(self) -> Snapshot:
        """Where the run is, to be saved before it goes on."""
        slopes = self.driver.slopes
        assert slopes is not None
        return Snapshot(
            self.sizes,
            self.driver.state,
            self.driver.average,
            slopes,
            self.stage,
            self.between_stages,
            self.done,
            self.renewed,
            self.next_check,
            self.driver.position,
            self.history,
            clock.now() - self.begun,
        )

    def go(self) -> Certificate | None:
        """Run all epochs; the certificate of the last model, if it was needed on the way."""
        m, stopping, driver = self.rows.order.n_rows, self.stopping, self.driver
        epochs, K = stopping.epochs, len(self.recipe.lam)
        # Tiny data run thousands of epochs: looking at each would take longer than learning.
        stride = max(1, epochs // MOST_LOOKS) if m < driver.cut.size else 1
        if stopping.tol is not None:
            stride = 1
        certificate = None
        while self.done < epochs:
            # The dual point is made of late slopes only: early ones are far from it.
            if self.done == 0 or self.done >= self.renewed:
                driver.slopes = Slopes.zeros(K, m)
                self.renewed = max(2 * self.done, 1)
                if self.renewed > epochs // 2 >= self.done:
                    self.renewed = epochs // 2
                if self.done >= epochs // 2:
                    self.renewed = epochs
            count = min(stride, epochs - self.done)
            taken = driver.advance(count * m, stopping.deadline)
            self.done = -(-driver.position // m)  # a deadline may end the first of several
            self.timed_out = clock.now() > stopping.deadline
            record = _record(driver, self.done, clock.now() - self.begun)
            self.history.append(record)
            certificate, ended = None, self.timed_out or self.done == epochs
            if stopping.tol is not None and (self.done >= self.next_check or ended):
                self.next_check = 2 * self.done
                certificate = self.certify(driver.model())
                record["objective"] = float(certificate.objective.sum())
                record["dual_gap"] = float(certificate.dual_gap.sum())
            flat = not ended and self.done >= self.next_check and self._is_flat(record)
            halt = stopping.after_epoch is not None and stopping.after_epoch(
                self.done, driver.model(), record
            )
            over = ended or halt or flat or self._converged(certificate)
            looked = certificate is not None or SEEN[1] in record
            self.between_stages = self.staged and looked
            if self.between_stages and not ended:
                self.stage = stopping.stage(self.done)
                self.next_check = self.done + self.stage
            if self.between_stages and not over:
                driver.restart(*self.plan())
                self.between_stages = False
            if stopping.keep is not None and not ended:
                stopping.keep(self.snapshot, stopped=halt)
            if over:
                break
        average = self.recipe.average
        if self.timed_out and taken < count * m and isinstance(average, int):
            # The end was not announced: average the next k, if they are few.
            driver.advance(average if average <= driver.cut.size else 0)
            certificate = None
        return certificate

    def _is_flat(self, record: dict[str, Any]) -> bool:
        """Whether little is left to gain; the record of a look has the objective it found."""
        if not self.looks:
            return False
        now = look_at(self.rows, self.recipe, self.driver.model(), self.done)
        before = [Look(*(each[name] for name in SEEN)) for each in self.history if SEEN[1] in each]
        record |= dict(zip(SEEN, (now.epoch, now.objective, now.errors), strict=True))
        return bool(before) and self.stopping.is_flat(before[-1], now, self.rows.order.n_rows)

    def _converged(self, certificate: Certificate | None) -> bool:
        tol = self.stopping.tol
        if certificate is None or tol is None:
            return False
        return bool(certificate.dual_gap.sum() <= tol * certificate.objective.sum())

    def certify(self, model: tuple[Array, Array], *, finished: bool = True) -> Certificate:
        """The certificate of a model, tight where ``tol`` needs that and it costs no more than the run.

        It is that of ``certified``, the model with its intercept settled. When the time is up, it is
        computed from as many rows only as were visited.
        """
        if not self.timed_out:
            model = settle_intercept(self.rows, self.recipe, model)
        self.certified = model
        slopes, rows = self.driver.slopes, self.rows
        if self.timed_out and self.driver.position < rows.order.n_rows:
            some = rows.draw(max(self.driver.position, 1000), self.recipe.seed)
            return certify_rows(rows, self.recipe, model, tight=False, among=some)
        if self.timed_out or not finished:
            return certify_rows(rows, self.recipe, model, slopes)
        if self.stopping.tol is None:
            self.certified, found = finish(rows, self.recipe, model, slopes)
            return found
        found = certify_rows(rows, self.recipe, model, slopes, tight=False)
        spent = max(run_work(rows, self.recipe, self.done), LITTLE)
        work = tight_work(rows.order.n_rows, rows.mapped.dimension, len(self.recipe.lam))
        if not self._converged(found) and work <= spent:
            self.certified, found = finish(rows, self.recipe, model, slopes, tight=True)
        return found


def _record(driver: Driver, epoch: int, seconds: float) -> dict[str, Any]:
    """One line of the history, from what the loop saw on its way."""
    coef = plain_coef(driver.state.coef, driver.axis.metric)
    return {
        "epoch": epoch,
        "steps": int(driver.state.steps.max()),
        "seconds": seconds,
        **driver.take_progress().record(driver.axis.lam, coef),
    }
