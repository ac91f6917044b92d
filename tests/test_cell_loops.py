"""Cells by compiled threads: the bits of one after the other, whoever takes which."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import asset_svm.solvers.cell_loops as loops
import asset_svm.solvers.cells as cells_engine
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.data import OneVsRestTargets, RealTargets
from asset_svm.exceptions import NonFiniteError
from asset_svm.families.cells import progress as cell_progress
from asset_svm.families.cells.progress import CellProgress
from asset_svm.families.observing import Nobody
from asset_svm.features.cells import Partition, grouped
from asset_svm.features.clusters import lloyd
from asset_svm.features.descent import kmeans
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.numerics.compiling import lent
from asset_svm.solvers.cell_loops import largest_swept, sweep_cells
from asset_svm.solvers.cell_models import CellSolution
from asset_svm.solvers.cells import CellProblem
from asset_svm.solvers.kernel_matrix import kernel_matrix
from asset_svm.threads.counter import ENOUGH
from asset_svm.threads.granted import grant

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(700, 5)) * (RNG.uniform(size=(700, 5)) < [1, 1, 0.7, 0.2, 1])
ROWS[:, 4] = 2.5
F = np.sin(3 * ROWS[:, 0]) + ROWS[:, 1]
CELLS = np.split(RNG.permutation(700), [1, 18, 50, 51, 300, 320])


def problem(kind="two", dtype=np.float64, kernel="rbf", **options):
    targets, loss = {
        "two": (OneVsRestTargets((F > 0).astype(int), 2), Hinge()),
        "nine": (OneVsRestTargets(np.digitize(F, np.linspace(-1, 1, 8)), 9), Hinge()),
        "real": (RealTargets(F), EpsilonInsensitive(0.1)),
    }[kind]
    cost = np.random.default_rng(1).uniform(0.5, 3.0, size=700)
    found = CellProblem(
        Kernel(kernel, 1.5), ROWS.astype(dtype), targets, loss, cost, 1e-3, intercept=False
    )
    return replace(found, **options)


def finished(work, rows, seed, found):
    """What sweeps have found, or what comes of where they ended."""
    return found if isinstance(found, CellSolution) else work.solve(rows, seed, found)


def assert_same(one, other):
    for name in ("rows", "weights", "intercept", "objective", "dual_gap", "sweeps", "converged"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.definite == other.definite


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("kind", "dtype", "kernel"),
    [
        ("two", np.float64, "rbf"),
        ("two", np.float32, "matern32"),
        ("nine", np.float32, "rbf"),
        ("real", np.float64, "matern32"),
        ("two", np.float32, "exponential"),
        ("real", np.float64, "exponential"),
        ("nine", np.float32, "matern52"),
    ],
)
def test_cells_together_are_the_bits_of_one_after_the_other(kind, dtype, kernel, threads):
    work, seeds = problem(kind, dtype, kernel), range(10, 10 + len(CELLS))
    for rows, seed, found in zip(CELLS, seeds, sweep_cells(work, CELLS, seeds, threads), strict=True):
        assert_same(finished(work, rows, seed, found), work.solve(rows, seed))
        if isinstance(found, CellSolution):
            np.testing.assert_array_equal(found.support, work.X[found.rows])


def test_cells_in_several_lots_are_the_same(monkeypatch):
    work, seeds = problem("nine"), range(len(CELLS))
    monkeypatch.setattr(loops, "MOST_NUMBERS", 9 * 60)
    for rows, seed, found in zip(CELLS, seeds, sweep_cells(work, CELLS, seeds, 2), strict=True):
        assert_same(finished(work, rows, seed, found), work.solve(rows, seed))


def test_what_sweeps_do_not_solve_goes_on_from_where_they_ended(monkeypatch):
    monkeypatch.setattr(cells_engine, "BUDGET", 1e-3)
    work, rows = problem(tol=1e-5), CELLS[-1]
    (ended,) = sweep_cells(work, [rows], [7], 2)
    assert isinstance(ended, list), "solved all the same"
    whole = work.solve(rows, 7)
    assert_same(work.solve(rows, 7, ended), whole)
    assert whole.converged


def test_without_time_every_cell_has_one_sweep_and_its_own_objective():
    work, seeds = problem(deadline=-np.inf, tol=1e-6), range(len(CELLS))
    for rows, seed, found in zip(CELLS, seeds, sweep_cells(work, CELLS, seeds, 2), strict=True):
        assert isinstance(found, CellSolution) and found.sweeps <= 1
        alone = work.solve(rows, seed)
        np.testing.assert_array_equal(found.weights, alone.weights)
        np.testing.assert_allclose(found.objective, alone.objective, rtol=1e-9)
        np.testing.assert_allclose(found.dual_gap, alone.dual_gap, rtol=1e-9, atol=1e-12)


def test_a_kernel_matrix_that_is_not_finite_is_told_by_whoever_solves_the_cell():
    work = problem()
    work = replace(work, X=work.X * 1e200)
    found = sweep_cells(work, CELLS[-1:], [0], 1)
    assert found == [None]
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError, match="scale the columns"):
        work.solve(CELLS[-1], 0)


def test_other_kernels_rows_and_intercepts_are_left_to_others():
    work = problem()
    assert largest_swept(work) > 0
    for other in (
        replace(work, intercept=True),
        replace(work, kernel=Kernel("laplacian")),
        replace(work, X=np.asfortranarray(work.X)),
    ):
        assert largest_swept(other) == 0


def test_who_says_enough_ends_the_sweeps(monkeypatch):
    def at_once(function, threads):
        function(np.array([ENOUGH]))

    monkeypatch.setattr(loops, "together", at_once)
    sweeps = loops._Sweeps(problem(), CELLS, range(len(CELLS)))
    beta, found = sweeps._swept(1, late=False, settle=False)
    assert not beta.any() and not found.any()


def test_rows_that_cannot_be_written_to_compile_nothing_anew(tmp_path):
    work = problem()
    sweep_cells(work, CELLS, range(len(CELLS)), 1)
    compiled = len(loops._solve.signatures)
    np.save(tmp_path / "rows.npy", work.X)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    found = sweep_cells(replace(work, X=X), CELLS, range(len(CELLS)), 1)
    for seed, (one, rows) in enumerate(zip(found, CELLS, strict=True)):
        assert_same(finished(work, rows, seed, one), work.solve(rows, seed))
    assert len(loops._solve.signatures) == compiled
    assert not X.flags.writeable and lent(X).base is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 2, 127, 700])
def test_a_kernel_matrix_by_loops_is_the_kernel(m, dtype):
    X = ROWS[:m].astype(dtype)
    for rows in (X, X * (np.arange(5) == 3), np.ones_like(X)):  # as it is, mostly zeros, all alike
        K = kernel_matrix(Kernel("rbf", 0.7), rows)
        assert K.dtype == dtype and K.shape == (m, m)
        rounding = 2e-6 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(K, rbf_kernel(rows, gamma=0.7), atol=rounding)


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_fit_does_not_depend_on_the_number_of_threads(kind, monkeypatch):
    """Some cells are too large for compiled threads here, and some not solved by sweeps."""
    monkeypatch.setattr("asset_svm.solvers.cell_loops.GROUP", 80)
    monkeypatch.setattr(cells_engine, "BUDGET", 0.02)
    y = np.digitize(F, [-0.5, 0.5]) if kind is AssetClassifier else F
    options = dict(gamma=1.0, C=100.0, n_cells=9, n_partitions=2, random_state=0)
    models = [kind(**options, n_jobs=n_jobs).fit(ROWS, y) for n_jobs in (1, 2, 5)]
    many = np.concatenate([ROWS, ROWS + 0.1])
    first = models[0]
    for model in models[1:]:
        assert model.objective_ == first.objective_
        assert model.dual_gap_ == first.dual_gap_
        for X in (ROWS[:3], many):
            np.testing.assert_array_equal(model._decide(X), first._decide(X))


def test_a_row_alone_is_decided_as_among_many():
    model = AssetClassifier(gamma=1.0, C=10.0, n_cells=9, n_partitions=2, random_state=0)
    model.fit(ROWS, np.digitize(F, [-0.5, 0.5]))
    many = np.concatenate([ROWS, ROWS + 0.1])
    found = model.decision_function(many)
    reference = np.zeros_like(found)
    for part in model.cells_:
        for row, cell in enumerate(part.partition.assign(many)):
            reference[row] += part.decisions[cell](many[row : row + 1])[0] / len(model.cells_)
    np.testing.assert_allclose(found, reference, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(many[:100]), reference[:100], atol=1e-12)
    np.testing.assert_allclose(model.decision_function(many[7:8]), reference[7:8], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tree_does_not_depend_on_the_number_of_threads(dtype):
    X = np.random.default_rng(1).normal(size=(9000, 6)).astype(dtype)
    found = []
    for threads in (1, 2, 5):
        with grant(threads):
            partition, cells = Partition.grow(X, 300, np.random.default_rng(0))
            np.testing.assert_array_equal(partition.assign(X), cells)
            found.append((partition.n_cells, cells))
    for n_cells, cells in found:
        assert n_cells == found[0][0]
        np.testing.assert_array_equal(cells, found[0][1])
    assert np.bincount(found[0][1]).max() < 90


def test_compiled_centres_are_those_of_lloyd():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 7))
    samples = [rng.permutation(900)[:count] for count in (900, 40, 3)]
    starts = [np.arange(0, len(some), step) for some, step in zip(samples, (45, 8, 2), strict=True)]
    for some, start, centres in zip(samples, starts, kmeans(X, samples, starts), strict=True):
        np.testing.assert_allclose(centres, lloyd(X[some], start), atol=1e-12)


def test_centres_whose_squares_overflow_still_tell_rows_apart():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2)) + 20 * rng.integers(2, size=(300, 1))
    X = (1e25 * X).astype(np.float32)
    partition, cells = Partition.grow(X, 2, np.random.default_rng(0))
    assert partition.n_cells == 2
    far = X.sum(axis=1) > 20e25
    assert (cells[far] == cells[far][0]).all() and (cells[~far] != cells[far][0]).all()
    np.testing.assert_array_equal(partition.assign(X), cells)


def test_rows_are_grouped_in_their_order():
    index, of = np.array([5, 3, 9, 1, 7]), np.array([2, 0, 2, 0, 3], dtype=np.int32)
    found = grouped(index, of, 5)
    assert [part.tolist() for part in found] == [[3, 1], [], [5, 9], [7], []]
    assert [len(part) for part in grouped(index[:0], of[:0], 2)] == [0, 0]


def test_cells_begin_all_at_once_unless_somebody_looks_on(monkeypatch):
    def sizes(watch=None, **options):
        progress = CellProgress(AssetClassifier(**options)._settings(), 0.0, Nobody(watch))
        return [len(lot) for lot in progress.lots(100, 4)]

    assert sizes() == [100]
    assert sizes(watch=lambda record: False) == [4, 8, 16, 32, 40]
    assert sizes(time_limit=100.0) == [4, 8, 16, 32, 40]
    monkeypatch.setattr(cell_progress, "INTERVAL", 0.0)
    assert sizes(watch=lambda record: False) == [4] * 25
