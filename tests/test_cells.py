"""Cells: exact SVMs of places, against LIBSVM, LIBLINEAR and the one SVM that they are together."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from threadpoolctl import threadpool_limits

import asset_svm.solvers.cells as cells_engine
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.data import OneVsRestTargets, RealTargets
from asset_svm.exceptions import NonFiniteError
from asset_svm.families.cells import Constant, Nested
from asset_svm.features.cells import Partition
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge, best_intercept
from asset_svm.solvers.cells import CellProblem
from asset_svm.solvers.exact_form import solve_cell
from asset_svm.solvers.pair_form import solve_pairs
from asset_svm.threads.granted import grant

KERNEL = Kernel("rbf", 2.0)
MATERN = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}


def rows(m=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(m, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1]
    return X, f, np.where(f + 0.3 * rng.normal(size=m) > 0, 1, -1), f + 0.1 * rng.normal(size=m)


def problem(task, intercept, C=3.0, tol=1e-6, m=300):
    X, _, y, target = rows(m)
    if task == "classification":
        targets, loss = OneVsRestTargets((y > 0).astype(np.intp), 2), Hinge()
    else:
        targets, loss, y = RealTargets(target), EpsilonInsensitive(0.1), target
    return X, y, CellProblem(KERNEL, X, targets, loss, np.full(m, C), 1 / (C * m), intercept, tol)


def solved(cell):
    return cell.solve(np.arange(cell.X.shape[0]), 0)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_with_an_intercept_a_cell_is_libsvms_solution(task):
    X, y, cell = problem(task, intercept=True)
    found = solved(cell)
    assert found.converged
    f = KERNEL(X, X[found.rows]) @ found.weights[0] + found.intercept[0]
    settings = dict(C=3.0, gamma=2.0, tol=1e-8)
    if task == "classification":
        peer = SVC(**settings).fit(X, y).decision_function(X)
    else:
        peer = SVR(epsilon=0.1, **settings).fit(X, y).predict(X)
    np.testing.assert_allclose(f, peer, atol=2e-3)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_without_one_it_is_liblinears_on_the_exact_features(task):
    X, y, cell = problem(task, intercept=False)
    found = solved(cell)
    V = np.linalg.cholesky(KERNEL(X, X) + 1e-10 * np.eye(len(X)))
    settings = dict(C=3.0, fit_intercept=False, tol=1e-8, max_iter=10**6)
    if task == "classification":
        peer = LinearSVC(loss="hinge", **settings).fit(V, y).decision_function(V)
    else:
        peer = LinearSVR(epsilon=0.1, **settings).fit(V, y).predict(V)
    f = KERNEL(X, X[found.rows]) @ found.weights[0]
    np.testing.assert_allclose(f, peer, atol=2e-3)
    assert found.intercept[0] == 0.0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_objective_and_gap_are_those_of_the_returned_model(task, intercept):
    X, y, cell = problem(task, intercept, tol=0.02)
    found = solved(cell)
    K = KERNEL(X, X[found.rows])
    f = K @ found.weights[0] + found.intercept[0]
    square = found.weights[0] @ KERNEL(X[found.rows], X[found.rows]) @ found.weights[0]
    objective = cell.lam / 2 * square + cell.loss.value(y, f).mean()
    assert found.objective[0] == pytest.approx(objective, rel=1e-9)
    exact = solved(problem(task, intercept, tol=1e-9)[2]).objective[0]
    assert -1e-9 <= objective - exact <= found.dual_gap[0] + 1e-9
    assert found.dual_gap[0] <= 0.05 * objective


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.2)])
def test_the_best_intercept_is_the_best_of_a_fine_grid(loss):
    rng = np.random.default_rng(0)
    f, cost = rng.normal(size=50), rng.uniform(0.1, 2.0, size=50)
    y = np.sign(rng.normal(size=50)) if isinstance(loss, Hinge) else rng.normal(size=50)

    def value(b):
        return cost @ loss.value(y, f + b)

    b = best_intercept(loss, y, f, cost)
    assert value(b) <= min(value(t) for t in np.linspace(-4, 4, 4001)) + 1e-12


@pytest.mark.parametrize("kernel", MATERN)
def test_one_cell_of_a_matern_kernel_is_the_svm_of_scikit_learns_kernel(kernel):
    X, _, y, _ = rows(300)
    model = AssetClassifier(kernel, gamma=0.5, C=3.0, n_cells=1, fit_intercept=True, tol=1e-7)
    peer = SVC(kernel=Matern(2.0, nu=MATERN[kernel]), C=3.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        model.fit(X, y).decision_function(X), peer.decision_function(X), atol=2e-3
    )


def test_cells_without_intercept_are_one_svm_of_the_kernel_within_cells():
    X, _, y, _ = rows(400)
    model = AssetClassifier(gamma=2.0, C=3.0, n_cells=5, tol=1e-7, random_state=0).fit(X, y)
    (part,) = model.cells_
    cells = part.partition.assign(X)
    assert len(np.unique(cells)) == part.partition.n_cells == model.n_cells_ > 2
    K = KERNEL(X, X) * (cells[:, None] == cells)
    beta, F = np.zeros(400), np.zeros(400)
    cost = np.full(400, 3.0)
    solve_cell(K, y.astype(float), cost, Hinge(), 1e-8, 10**5, np.inf, 0, beta, F)
    np.testing.assert_allclose(model.decision_function(X), F, atol=1e-3)
    objective = model.lam_ / 2 * beta @ F + np.maximum(1 - y * F, 0).mean()
    assert model.objective_ == pytest.approx(objective, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(1, 300),
    n_cells=st.integers(1, 40),
    n=st.integers(1, 4),
    levels=st.sampled_from([1, 2, 5, 1000]),
    seed=st.integers(0, 100),
)
def test_every_row_has_one_cell_and_finds_it_again(m, n_cells, n, levels, seed):
    """Rows on a lattice: many are the same, and then stay together."""
    X = np.random.default_rng(seed).integers(levels, size=(m, n)).astype(np.float64)
    partition, cells = Partition.grow(X, n_cells, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.unique(cells), np.arange(partition.n_cells))
    np.testing.assert_array_equal(partition.assign(X), cells)
    assert len(partition.assign(X[:0])) == 0
    if n_cells == 1:
        assert partition.n_cells == 1


def test_cells_have_similar_sizes_and_sparse_rows_the_same_ones():
    X = np.random.default_rng(0).normal(size=(5000, 4))
    partition, cells = Partition.grow(X, 50, np.random.default_rng(0))
    assert 30 <= partition.n_cells <= 75
    assert np.bincount(cells).max() <= 200
    there, same = Partition.grow(sparse.csr_matrix(X), 50, np.random.default_rng(0))
    assert there.n_cells == partition.n_cells
    assert (same == cells).mean() > 0.99  # a tie may be rounded the other way


def test_several_classes_and_a_class_that_is_absent_from_a_cell_scores_minus_one():
    """With an intercept: a constant solves its SVM."""
    X, f, _, _ = rows(900)
    y = np.array(["low", "middle", "high"])[np.digitize(f, [-0.7, 0.7])]
    options = dict(gamma=2.0, C=10.0, n_cells=12, fit_intercept=True, random_state=0)
    model = AssetClassifier(**options).fit(X, y)
    assert model.score(X, y) > 0.95
    assert set(model.predict(X)) == {"low", "middle", "high"}
    decisions = model.decision_function(X)
    assert decisions.shape == (900, 3)
    (part,) = model.cells_
    cells, absent = part.partition.assign(X), 0
    for cell in range(model.n_cells_):
        for k, label in enumerate(model.classes_):
            if label not in y[cells == cell]:
                assert (decisions[cells == cell, k] == -1.0).all()
                absent += 1
    assert absent > 0


def small_classes(count, n=20):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(count), 2)
    return 1.5 * rng.normal(size=(count, n))[y] + rng.normal(size=(len(y), n)), y


def test_a_class_that_an_approximated_cell_does_not_know_wins_no_row_there():
    found = np.array([[-3.0, -2.5, -4.0], [-3.0, 0.5, -0.5]])
    decision = Nested(SimpleNamespace(decision=lambda X: found), np.array([0, 2, 3]), 5, 0.0)
    expected = [[-3.0, -4.0, -2.5, -4.0, -4.0], [-3.0, -3.0, 0.5, -0.5, -3.0]]
    np.testing.assert_array_equal(decision(None), expected)


def test_many_classes_of_few_rows_are_learnt_although_cells_part_them():
    """A class that is absent from a cell wins no row there: all others may be below -1."""
    X, y = small_classes(200)
    model = AssetClassifier(n_cells=2, random_state=0).fit(X, y)
    cells = model.cells_[0].partition.assign(X)
    assert any(set(y[cells == cell]) < set(y) for cell in range(2))
    assert model.score(X, y) >= SVC().fit(X, y).score(X, y) - 0.01


def test_without_an_intercept_every_class_is_the_one_svm_of_all_cells():
    """(PL) with the kernel k(x, z) [cell(x) = cell(z)], by LIBLINEAR on its Cholesky factor."""
    X, f, _, _ = rows(200)
    y = np.digitize(f, [-0.7, 0.7])
    model = AssetClassifier(gamma=2.0, C=2.0, n_cells=4, tol=1e-6, random_state=0).fit(X, y)
    cells = model.cells_[0].partition.assign(X)
    kept = [cell for cell in range(4) if len(set(y[cells == cell])) == 2]
    assert kept  # a class is absent there
    K = KERNEL(X, X) * (cells[:, None] == cells)
    V = np.linalg.cholesky(K + 1e-9 * np.eye(len(K)))
    options = dict(loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=10**6)
    inside = np.isin(cells, kept)
    for k in range(3):
        peer = LinearSVC(**options).fit(V, np.where(y == k, 1, -1))
        found = model.decision_function(X)[inside, k]
        np.testing.assert_allclose(found, peer.decision_function(V)[inside], atol=5e-3)


def test_many_classes_with_an_intercept_take_a_few_steps_of_pairs_each(monkeypatch):
    """Not a factor of the kernel matrix a class and step: interior points have no turn."""
    steps, solve = [], cells_engine.solve_pairs
    monkeypatch.setattr(cells_engine, "solve_interior", None)
    monkeypatch.setattr(cells_engine, "solve_pairs", lambda *a: steps.append(solve(*a)) or steps[-1])
    X, y = small_classes(60)
    model = AssetClassifier(n_cells=1, fit_intercept=True, tol=1e-4).fit(X, y)
    assert len(steps) == 60 and max(steps) < 10 * len(y)
    for k in (0, 30):
        peer = SVC(tol=1e-6).fit(X, np.where(y == k, 1, -1)).decision_function(X)
        np.testing.assert_allclose(model.decision_function(X)[:, k], peer, atol=2e-3)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_pairs_end_where_libsvm_does_whatever_the_weights_and_wherever_they_begin(task, real):
    X, _, labels, values = rows(200)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, size=200)
    hinge, y = task == "classification", labels.astype(float) if task == "classification" else values
    K = KERNEL(X, X).astype(real)
    settings = dict(kernel="precomputed", tol=1e-9)
    peer = SVC(**settings) if hinge else SVR(epsilon=0.1, **settings)
    expected = np.zeros(200)
    peer.fit(K, y, sample_weight=weight)
    expected[peer.support_] = peer.dual_coef_[0]

    def dual(beta):
        return y @ beta - (0.0 if hinge else 0.1) * np.abs(beta).sum() - 0.5 * beta @ K @ beta

    low, high = (
        (-weight, weight) if not hinge else (weight * np.minimum(y, 0), weight * np.maximum(y, 0))
    )
    for start in (np.zeros(200), 0.9 * expected):
        beta = start.copy()
        r = y - K.astype(np.float64) @ beta
        solve_pairs(K, y, weight, Hinge() if hinge else EpsilonInsensitive(0.1), 1e-8, 10**6, beta, r)
        assert (low <= beta).all() and (beta <= high).all() and abs(beta.sum()) < 1e-12
        np.testing.assert_allclose(r, y - K.astype(np.float64) @ beta, atol=1e-12)
        np.testing.assert_allclose(dual(beta), dual(expected), rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", ["auto", True])
def test_regression_follows_a_function_that_one_map_of_as_many_landmarks_does_not(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 2))
    y = 100 + np.sin(20 * X[:, 0]) * np.cos(20 * X[:, 1])
    common = dict(gamma=50.0, C=10.0, epsilon=0.01, random_state=0, fit_intercept=fit_intercept)
    local = AssetRegressor(n_cells=20, **common).fit(X[:3000], y[:3000])
    whole = AssetRegressor(n_components=200, **common).fit(X[:3000], y[:3000])
    assert local.score(X[3000:], y[3000:]) > 0.98
    assert whole.score(X[3000:], y[3000:]) < local.score(X[3000:], y[3000:])


def test_a_weight_of_two_is_a_row_twice_and_zero_is_none():
    X, _, y, _ = rows(200)
    weight = np.random.default_rng(1).integers(0, 3, size=200)
    common = dict(gamma=2.0, lam=1e-3, n_cells=1, tol=1e-7, random_state=0)
    weighted = AssetClassifier(**common).fit(X, y, sample_weight=weight)
    repeated = AssetClassifier(**common).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-3)


def test_partitions_are_averaged():
    X, _, y, _ = rows(600)
    model = AssetClassifier(gamma=2.0, n_cells=6, n_partitions=3, random_state=0).fit(X, y)
    assert len(model.cells_) == len(model.history_) == 3
    each = []
    for part in model.cells_:
        cells = part.partition.assign(X)
        each.append([part.decisions[c](X[[i]])[0, 0] for i, c in enumerate(cells)])
    np.testing.assert_allclose(model.decision_function(X), np.mean(each, axis=0), atol=1e-9)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
@pytest.mark.parametrize("n_classes", [2, 4])
def test_large_cells_get_a_map_of_their_own(monkeypatch, n_classes):
    """Above the size whose kernel matrix is solved whole, the cells' (PL) is approximated."""
    X, f, _, _ = rows(1500)
    y = np.digitize(f, [0.0] if n_classes == 2 else [-1.0, 0.0, 1.0])
    common = dict(gamma=2.0, C=3.0, n_cells=4, n_components=150, random_state=0)
    exact = AssetClassifier(**common).fit(X, y)
    monkeypatch.setattr(cells_engine, "LARGEST_CELL", 100)
    nested = AssetClassifier(**common).fit(X, y)
    assert isinstance(nested.cells_[0].decisions[0], Nested)
    assert (nested.predict(X) == exact.predict(X)).mean() > 0.98
    assert nested.objective_ == pytest.approx(exact.objective_, rel=0.05)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
def test_regression_in_large_cells_has_the_same_offset(monkeypatch):
    X, _, _, y = rows(1000)
    common = dict(gamma=2.0, C=3.0, epsilon=0.05, n_cells=3, n_components=150, random_state=0)
    exact = AssetRegressor(**common).fit(X, y + 50)
    monkeypatch.setattr(cells_engine, "LARGEST_CELL", 100)
    nested = AssetRegressor(**common).fit(X, y + 50)
    np.testing.assert_allclose(nested.predict(X), exact.predict(X), atol=0.15)


@pytest.mark.parametrize("kind", ["exact", "nested"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_goes_on_from_a_fit(monkeypatch, n_classes, kind):
    """Half of the classes' border is unknown at first; later batches teach it."""
    if kind == "nested":
        monkeypatch.setattr(cells_engine, "LARGEST_CELL", 50)
    X, f, _, _ = rows(3000)
    y = np.digitize(f, [0.0] if n_classes == 2 else [-0.5, 0.5])
    model = AssetClassifier(gamma=2.0, C=10.0, n_cells=4, random_state=0).fit(X[:600], y[:600])
    before, decisions = model.score(X[2000:], y[2000:]), model.decision_function(X)
    model.partial_fit(X[600:610], y[600:610])
    assert np.abs(model.decision_function(X) - decisions).mean() < 0.3
    for start in range(610, 2000, 200):
        model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert model.score(X[2000:], y[2000:]) > before - 0.01
    assert model.n_iter_ > 1
    assert len(model.history_) >= 7


def test_a_stream_from_its_first_batch():
    X, f, _, target = rows(4000)
    y = f > 0
    model = AssetClassifier(gamma=2.0, n_cells=4, lam=1e-4, random_state=0)
    regressor = AssetRegressor(gamma=2.0, n_cells=4, lam=1e-4, epsilon=0.05, random_state=0)
    for start in range(0, 3000, 500):
        batch = slice(start, start + 500)
        model.partial_fit(X[batch], y[batch], classes=[False, True])
        regressor.partial_fit(X[batch], target[batch] + 20)
    assert model.score(X[3000:], y[3000:]) > 0.95
    assert regressor.score(X[3000:], target[3000:] + 20) > 0.9


def test_a_batch_that_fails_changes_nothing():
    X, f, _, _ = rows(1000)
    y = f > 0
    model = AssetClassifier(gamma=2.0, n_cells=4, lam=1e-4, random_state=0)
    model.partial_fit(X[:500], y[:500], classes=[False, True])
    before = model.decision_function(X)
    broken = np.vstack([X[500:520], np.full((1, 3), 1e200)])
    with pytest.raises(ValueError):
        model.partial_fit(broken, y[500:521], sample_weight=np.full(21, -1.0))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_the_same_model_with_any_number_of_threads_and_after_a_pickle():
    X, _, y, _ = rows(2500)
    models = [
        AssetClassifier(gamma=2.0, n_cells=10, random_state=0, n_jobs=n).fit(X, y) for n in (1, 3)
    ]
    decisions = models[0].decision_function(X)
    np.testing.assert_array_equal(models[1].decision_function(X), decisions)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(models[0])).decision_function(X), decisions)
    few = models[0].decision_function(X[:7])
    np.testing.assert_allclose(few, decisions[:7], atol=1e-9)
    np.testing.assert_allclose(models[0].compiled("decision_function")(X[3]), decisions[3], atol=1e-9)


def test_sparse_rows_and_other_kernels():
    X, _, y, _ = rows(800)
    for kernel in ("rbf", *MATERN, "laplacian", "poly"):
        dense = AssetClassifier(kernel, gamma=1.0, coef0=1.0, n_cells=3, random_state=0).fit(X, y)
        thin = clone(dense).fit(sparse.csr_matrix(X), y)
        assert (dense.predict(X) == thin.predict(sparse.csr_matrix(X))).mean() > 0.99
        assert dense.score(X, y) > 0.85


def test_when_the_time_is_up_every_cell_has_a_model_all_the_same():
    X, _, y, _ = rows(3000)
    model = AssetClassifier(
        gamma=2.0, n_cells=30, n_partitions=50, time_limit=1e-6, random_state=0
    ).fit(X, y)
    assert len(model.cells_) == 1
    assert model.n_iter_ == 1
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_time_is_looked_at_within_a_cell(fit_intercept, ticks, monkeypatch):
    X, _, y, _ = rows(300)
    settings = dict(gamma=0.1, C=1e4, n_cells=1, tol=1e-5, fit_intercept=fit_intercept, random_state=0)
    monkeypatch.setattr("asset_svm.solvers.exact_form.LOOK", 1)  # after every sweep
    AssetClassifier(**settings).fit(X, y)
    alone, begun = ticks.looks, ticks.looks
    model = AssetClassifier(**settings, time_limit=5.0).fit(X, y)
    assert ticks.looks - begun < 15 < alone
    assert model.score(X, y) > 0.5


def test_when_the_time_is_up_no_cell_is_left_with_one_sweep_because_others_were_solved(monkeypatch):
    X, _, _, y = rows(1500)
    settings = dict(gamma=1.0, C=100.0, epsilon=0.01, n_cells=6, tol=1e-4, random_state=0, n_jobs=1)
    whole = AssetRegressor(**settings).fit(X, y)
    now, inside = [0.0], []

    def solve_interior(*arguments, **options):
        inside.append(now[0])
        now[0] += 100.0  # the first that goes on takes all the time
        return interior(*arguments, **options)

    interior = cells_engine.solve_interior
    monkeypatch.setattr(cells_engine, "BUDGET", 20.0)
    monkeypatch.setattr(cells_engine, "solve_interior", solve_interior)

    def tick():
        now[0] += 1e-6
        return now[0]

    monkeypatch.setattr("asset_svm.clock.now", tick)
    cut = AssetRegressor(**settings, time_limit=10.0).fit(X, y)
    assert len(inside) == 1, "the time was not up, or was up before"
    assert whole.objective_ < cut.objective_ < 1.05 * whole.objective_
    assert cut.objective_ - cut.dual_gap_ <= whole.objective_ * (1 + 1e-6)
    one_sweep = AssetRegressor(**settings, time_limit=1e-9).fit(X, y)
    assert one_sweep.objective_ > 1.5 * whole.objective_


@pytest.fixture
def sweeps_take_seconds(monkeypatch):
    """The library's clock, on which a second passes with every sweep of a large cell, and never else.

    Cells are large, whatever their size; what is returned has the sweeps and the rows of every call.
    """
    now, calls = [0.0], []

    def solve(K, *arguments):
        def tick():  # looked at after each sweep, and not before
            now[0] += 1.0
            return now[0]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("asset_svm.clock.now", tick)
            found = solve_cell(K, *arguments)
        calls.append((found[0], len(K)))
        return found

    monkeypatch.setattr("asset_svm.families.cells.trainer.largest_swept", lambda problem: 0)
    monkeypatch.setattr("asset_svm.solvers.exact_form.LOOK", 1)
    monkeypatch.setattr(cells_engine, "solve_cell", solve)
    monkeypatch.setattr(cells_engine, "BUDGET", 100.0)
    monkeypatch.setattr("asset_svm.clock.now", lambda: now[0])
    return calls


def test_large_cells_share_the_time_by_the_squares_of_their_rows(sweeps_take_seconds):
    X, _, _, y = rows(1500)
    settings = dict(gamma=1.0, C=100.0, epsilon=0.01, n_cells=6, tol=1e-4, random_state=0, n_jobs=1)
    whole = AssetRegressor(**settings).fit(X, y)
    alone = sum(sweeps for sweeps, _ in sweeps_take_seconds)
    sweeps_take_seconds.clear()
    limit = alone / 4
    cut = AssetRegressor(**settings, time_limit=limit).fit(X, y)
    assert len(sweeps_take_seconds) == 6, "a cell was not swept, or was again though the time was up"
    work = np.array([size**2 for _, size in sweeps_take_seconds], dtype=float)
    for (sweeps, _), share in zip(sweeps_take_seconds, limit * work / work.sum(), strict=True):
        assert abs(sweeps - share) <= 2  # the one that ends it, and what the one before left over
    assert cut.n_iter_ == max(sweeps for sweeps, _ in sweeps_take_seconds) > 5
    assert whole.objective_ < cut.objective_ < 1.5 * whole.objective_
    assert cut.objective_ - cut.dual_gap_ <= whole.objective_ * (1 + 1e-6)


def test_sweeps_that_were_cut_go_on_where_time_is_left(sweeps_take_seconds):
    _, y, cell = problem("regression", intercept=False, C=3.0, tol=1e-3)
    index = np.arange(len(y))
    cell.solve(index, 0)
    alone = sweeps_take_seconds.pop()[0]
    hurried = CellProblem(**{**vars(cell), "deadline": 1e9})
    for wanted in (3, alone // 2):
        ended = hurried.swept(index, 0, cells_engine.clock.now() + wanted - 0.5)
        assert ended[0].cut and ended[0].sweeps == wanted
        assert sweeps_take_seconds.pop()[0] == wanted
        found = hurried.solve(index, 0, ended)
        more = sweeps_take_seconds.pop()[0]
        assert found.converged and found.sweeps == wanted + more
        assert wanted + more < 1.2 * alone, "it began anew"
    solved_at_once = hurried.swept(index, 0, np.inf)
    assert solved_at_once.converged and solved_at_once.sweeps == alone


def test_a_time_limit_that_is_not_reached_changes_no_cell():
    X, _, y, _ = rows(600)
    settings = dict(gamma=2.0, n_cells=3, random_state=0)
    plain, limited = (
        AssetClassifier(**settings, time_limit=limit).fit(X, y) for limit in (None, 1000.0)
    )
    assert np.array_equal(plain.decision_function(X), limited.decision_function(X))


def test_what_cells_cannot_do_is_said():
    X, _, y, _ = rows(200)
    for bad in (0, 2.5, "many", True):
        with pytest.raises(ValueError, match="n_cells="):
            AssetClassifier(n_cells=bad).fit(X, y)
    with pytest.raises(ValueError, match="n_partitions=0"):
        AssetClassifier(n_cells=2, n_partitions=0).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping=True"):
        AssetClassifier(n_cells=2, early_stopping=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start=True .* set warm_start=False, or n_cells=None"):
        AssetClassifier(n_cells=2, warm_start=True).fit(X, y)
    model = AssetClassifier(n_cells=2).fit(X, y)
    with pytest.raises(ValueError, match="cells"):
        model.certify(X, y)
    with pytest.raises(ValueError, match="cells"):
        model.compact()


def test_a_large_cell_with_one_class_needs_no_kernel_matrix():
    """A hundred thousand copies of a row cannot be split, and their kernel matrix fits nowhere."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((100_000, 2)), rng.normal(30.0, 1.0, size=(500, 2))])
    y = np.r_[np.zeros(100_000, dtype=int), rng.integers(1, 3, size=500)]
    model = AssetClassifier(gamma=1.0, n_cells=50, random_state=0).fit(X, y)
    assert (model.predict(X[:10]) == 0).all()
    assert model.decision_function(X[:1]).tolist() == [[1.0, -1.0, -1.0]]


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
def test_memory_limit_decides_what_is_solved_whole():
    X, _, y, _ = rows(900)
    common = dict(gamma=2.0, n_cells=1, n_components=50, random_state=0)
    whole = AssetClassifier(**common, memory_limit=10 * 900 * 900 * 8).fit(X, y)
    mapped = AssetClassifier(**common, memory_limit=900 * 100 * 8).fit(X, y)
    assert not isinstance(whole.cells_[0].decisions[0], Nested)
    assert isinstance(mapped.cells_[0].decisions[0], Nested)


def test_the_middle_of_the_best_intercepts_is_taken():
    """Balanced classes, every row at its bound: any b in between is optimal, and 0 is sensible."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-1, 1, size=(100, 2)), rng.normal(1, 1, size=(100, 2))])
    y = np.repeat([-1, 1], 100)
    local = AssetClassifier(n_cells=1, C=0.01, gamma=1.0, fit_intercept=True).fit(X, y)
    peer = SVC(C=0.01, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(local.decision_function(X), peer.decision_function(X), atol=0.05)
    flat = AssetRegressor(n_cells=1, fit_intercept=True, epsilon=1.0).fit(
        [[0.0], [1.0], [2.0]], [5.0] * 3
    )
    np.testing.assert_allclose(flat.predict([[0.5]]), 5.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e4, 1e7, 1e10])
def test_enormous_costs_end_in_a_sensible_model(C):
    X, _, _, y = rows(400)
    model = AssetRegressor(gamma=0.5, n_cells=1, C=C, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rounding_that_makes_a_kernel_matrix_indefinite_is_no_error():
    x = np.linspace(0, 6, 400, dtype=np.float32)[:, None]
    model = AssetRegressor(n_cells=1, C=1e3, epsilon=1e-3).fit(x, np.sin(x).ravel())
    assert model.score(x, np.sin(x).ravel()) > 0.999
    X, _, y, _ = rows(300)
    for kernel in ("linear", "sigmoid"):
        for dtype in (np.float32, np.float64):
            AssetClassifier(kernel, n_cells=2, C=10.0, fit_intercept=True).fit(X.astype(dtype), y)


def test_models_that_are_not_finite_are_refused():
    X, _, y, _ = rows(200)
    with pytest.raises(ArithmeticError, match="not finite"):
        AssetClassifier(lambda a, b: (a @ b.T) * np.nan, n_cells=2, fit_intercept=True).fit(X, y)


def test_a_row_of_another_class_does_not_undo_a_cell():
    rng = np.random.default_rng(0)
    centres = np.array([[-20.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    y = rng.integers(3, size=900)
    X = centres[y] + rng.normal(size=(900, 2))
    model = AssetClassifier(n_cells=3, gamma=0.5, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    model.partial_fit(X[y == 2][:1], [0])
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_unit_of_weights_does_not_count_in_a_stream_either(unit):
    X, f, _, _ = rows(600)
    y = np.digitize(f, [-0.5, 0.5])

    def run(w):
        weight = np.full(600, w)
        model = AssetClassifier(gamma=2.0, C=1.0 / w, n_cells=4, random_state=0)
        model.fit(X, y, sample_weight=weight)
        for start in (0, 300):
            batch = slice(start, start + 300)
            model.partial_fit(X[batch], y[batch], sample_weight=weight[batch])
        return model.decision_function(X)

    np.testing.assert_allclose(run(unit), run(1.0), atol=1e-6)


def test_large_numbers_are_told_apart_without_overflow():
    X, _, y, _ = rows(600)
    X[:, 0] *= 1e30
    assert AssetClassifier(n_cells=10).fit(X.astype(np.float32), y).n_cells_ > 5


def test_cells_have_fewer_landmarks_than_asked_for_where_they_have_fewer_rows():
    X, _, y, _ = rows(900)
    model = AssetClassifier(n_cells=2, memory_limit=0, n_components=800, random_state=0).fit(X, y)
    assert isinstance(model.cells_[0].decisions[0], Nested)


def negative_distance(A, B):
    return -((A[:, None] - B[None]) ** 2).sum(axis=-1)


def sigmoid(A, B):
    return np.tanh(0.5 * A @ B.T - 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "fit_intercept"), [(negative_distance, "auto"), (sigmoid, "auto"), (sigmoid, True)]
)
def test_a_kernel_that_is_not_definite_ends_in_a_finite_model_and_a_warning(
    kernel, dtype, fit_intercept
):
    X, _, labels, values = rows(600)
    X = X.astype(dtype)
    options = dict(n_cells=3, C=100.0, fit_intercept=fit_intercept, random_state=0)
    for estimator, y in ((AssetClassifier, labels), (AssetRegressor, values)):
        with pytest.warns(ConvergenceWarning, match="positive semi-definite|duality gap"):
            model = estimator(kernel, **options).fit(X, y)
        assert np.isfinite(model.predict(X)).all() and np.isfinite(model.objective_)


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", ["sigmoid", sigmoid])
def test_no_gap_is_claimed_where_no_svm_is_solved(kernel, fit_intercept):
    X, _, y, _ = rows(300)
    options = dict(gamma=0.5, coef0=-1.0, n_cells=1, fit_intercept=fit_intercept)
    lowest = np.linalg.eigvalsh(sigmoid(X, X))[0]
    assert lowest < -1.0
    with pytest.warns(ConvergenceWarning, match="no positive semi-definite"):
        model = AssetClassifier(kernel, **options).fit(X, y)
    assert np.isnan(model.dual_gap_) and np.isfinite(model.objective_)


def test_a_definite_kernel_of_the_users_own_keeps_its_gap():
    X, _, y, _ = rows(300)
    model = AssetClassifier(lambda A, B: (A @ B.T + 1.0) ** 2, n_cells=2, C=0.01).fit(X, y)
    assert 0.0 <= model.dual_gap_ <= 0.02 * model.objective_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_an_intercept_minus_the_squared_distance_is_the_linear_kernel(dtype):
    """sum beta = 0 leaves 2 x.z of it."""
    X, _, labels, values = rows(300)
    X = X.astype(dtype)
    options = dict(n_cells=1, fit_intercept=True, tol=1e-6)
    model = AssetClassifier(negative_distance, C=0.5, **options).fit(X, labels)
    exact = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-2)
    model = AssetRegressor(negative_distance, C=0.5, epsilon=0.2, **options).fit(X, values)
    exact = SVR(kernel="linear", C=1.0, epsilon=0.2, tol=1e-6).fit(X, values)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-2)


def test_a_warning_of_cells_names_the_line_that_fits():
    X, _, y, _ = rows(300)
    with pytest.warns(ConvergenceWarning, match="positive semi-definite") as told:
        AssetClassifier(negative_distance, n_cells=2, random_state=0).fit(X, y)
    assert [warning.filename for warning in told] == [__file__]


def test_cells_that_are_approximated_are_told_of_once(monkeypatch):
    monkeypatch.setattr(cells_engine, "LARGEST_CELL", 100)
    X, _, y, _ = rows(900)
    options = dict(n_cells=4, n_jobs=2, n_components=40, max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Some cells have a duality gap") as told:
        AssetClassifier(**options).fit(X, y)
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", *MATERN, "laplacian", "poly", "linear"])
def test_definite_kernels_are_not_taken_for_others(kernel, C):
    X, _, labels, values = rows(300)
    for estimator, y in ((AssetClassifier, labels), (AssetRegressor, values)):
        for fit_intercept in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # of gaps
                model = estimator(kernel, n_cells=2, C=C, fit_intercept=fit_intercept).fit(X, y)
            assert all(record["definite"] for record in model.history_)


@pytest.mark.parametrize("count", [1, 5, 16, 37, 64])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_kernel_matrix_of_a_large_cell_has_every_pair_once_and_both_ways(
    count, threads, kind, monkeypatch
):
    monkeypatch.setattr("asset_svm.solvers.kernel_matrix.BLOCK_ROWS", 8)
    monkeypatch.setattr("asset_svm.solvers.kernel_matrix.GROUP", 16)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * (rng.uniform(size=(80, 6)) < 0.5)
    chosen = rng.permutation(80)[:count]
    problem = CellProblem(
        Kernel("rbf", 0.3),
        sparse.csr_matrix(X) if kind == "csr" else X,
        None,
        Hinge(),
        np.ones(80),
        1.0,
        True,
    )
    with grant(threads):
        K = problem.kernel_matrix(chosen)
    np.testing.assert_allclose(K, rbf_kernel(X[chosen], gamma=0.3), atol=1e-12)
    np.testing.assert_allclose(K, K.T, atol=1e-15)


def test_a_kernel_of_the_users_own_is_asked_for_every_pair(monkeypatch):
    monkeypatch.setattr("asset_svm.solvers.kernel_matrix.BLOCK_ROWS", 8)
    monkeypatch.setattr("asset_svm.solvers.kernel_matrix.GROUP", 16)
    X = np.arange(40.0)[:, None]
    lopsided = Kernel(lambda A, B: A - 2.0 * B.T)
    problem = CellProblem(lopsided, X, None, Hinge(), np.ones(40), 1.0, True)
    np.testing.assert_array_equal(problem.kernel_matrix(np.arange(40)), X - 2.0 * X.T)


@pytest.fixture(scope="module")
def wide_cells():
    """Few cells, many columns: BLAS rounds products with them by its number of threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 500))
    y = (X[:, :40].sum(axis=1) > 0).astype(int) + (X[:, 0] > 1)
    return X, AssetClassifier(n_cells=3, n_partitions=2, random_state=0).fit(X[:600], y[:600])


@pytest.mark.parametrize("count", [100, 1500])
@pytest.mark.parametrize("limit", [1, 2, None])
def test_decisions_are_the_same_bits_whatever_blas_may_take_and_whoever_calls(wide_cells, count, limit):
    X, model = wide_cells
    X = X[:count]
    with threadpool_limits(2, user_api="blas"):
        expected = model.decision_function(X)
    classes = model.classes_[expected.argmax(axis=1)]
    with threadpool_limits(limit, user_api="blas"), ThreadPoolExecutor(4) as pool:
        alone = model.decision_function(X)
        decisions = list(pool.map(lambda _: model.decision_function(X), range(8)))
        predictions = list(pool.map(lambda _: model.predict(X), range(4)))
    assert all(np.array_equal(found, expected) for found in [alone, *decisions])
    assert all(np.array_equal(found, classes) for found in predictions)


def test_parameters_that_cells_do_not_use_are_told_in_one_warning():
    X, y = make_moons(200, noise=0.1, random_state=0)
    model = AssetClassifier(n_cells=2, max_iter=5, landmarks="kmeans", random_state=0)
    with pytest.warns(UserWarning, match=r"^landmarks, max_iter changed nothing: .* 2 cells") as told:
        model.fit(X, y)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_partitions": 2}, "n_partitions=2 is not used by this model: .*; set n_cells"),
        ({"approximation": "fourier", "landmarks": "kmeans"}, "landmarks='kmeans' is not used"),
        ({"approximation": "fourier", "rank": 3}, "rank=3 is not used"),
        ({"fourier": "qmc"}, "fourier='qmc' is not used by this model: .*approximation=\"fourier\""),
    ],
)
def test_parameters_of_another_kind_of_model_are_refused_by_name(options, said):
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=said):
        AssetClassifier(**options).fit(X, y)


# Decisions ------------------------------------------------------------------------------------------


def own_function(decision, kernel, x):
    """The decisions of one row by the cell that it lies in, with scikit-learn's kernels."""
    if not hasattr(decision, "weights"):
        return decision.values
    Z = np.asarray(decision.source.components, dtype=float)
    if kernel == "rbf":
        values = rbf_kernel(x, Z, gamma=0.3)
    else:
        values = Matern(1.0 / 0.3, nu=MATERN[kernel])(x, Z)
    return (values @ decision.weights.T + decision.intercept)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", *MATERN])
def test_a_row_is_decided_by_the_kernel_values_of_its_cell(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(1500, 5)) + 10.0).astype(dtype)
    X[:700, 0] -= 8.0
    y = np.where(X[:, 0] < 6.0, 0, np.digitize(X[:, 1], [9.5, 10.5]))  # some cells have one class
    options = dict(gamma=0.3, n_cells=12, n_partitions=2, fit_intercept=True, random_state=0)
    model = AssetClassifier(kernel, C=10.0, **options)
    found = model.fit(X, y).decision_function(X[::5])
    expected = np.zeros_like(found)
    for part in model.cells_:
        for row, cell in enumerate(part.partition.assign(X[::5])):
            x = X[5 * row : 5 * row + 1].astype(float)
            expected[row] += 0.5 * own_function(part.decisions[cell], kernel, x)
    assert any(isinstance(d, Constant) for part in model.cells_ for d in part.decisions)
    scale = max(1.0, *(np.abs(getattr(d, "weights", [0])).sum() for d in model.cells_[0].decisions))
    assert np.abs(found - expected).max() < 50 * np.finfo(dtype).eps * scale


def test_a_row_has_the_same_decision_in_every_batch():
    """To the last bit for any number of threads, and where rows are few; else to rounding."""
    X, _, y, _ = rows(2000)
    model = AssetClassifier(n_cells=8, random_state=0).fit(X, y)
    whole = model.decision_function(X)
    with threadpool_limits(4):
        np.testing.assert_array_equal(model.decision_function(X), whole)
    decide = model.compiled("decision_function")
    few = model.decision_function(X[:200])
    np.testing.assert_allclose(few, whole[:200], rtol=0, atol=1e-12)
    for row in range(0, 200, 17):
        np.testing.assert_array_equal(model.decision_function(X[row : row + 3]), few[row : row + 3])
        np.testing.assert_array_equal(decide(X[row]), few[row])


def test_centres_whose_squares_overflow_are_descended_to():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(600, 3)) * 1e20).astype(np.float32)
    model = AssetClassifier(gamma=1e-40, n_cells=6, random_state=0).fit(X, X[:, 0] > 0)
    assert model.n_cells_ > 3 and model.score(X, X[:, 0] > 0) > 0.95


@pytest.mark.parametrize("factor", [1e154, 1e160, 1e200, 1e305])
def test_rows_whose_squares_overflow_are_refused(factor):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 8))
    with pytest.raises(NonFiniteError):
        AssetClassifier(n_cells=6, gamma=0.1, random_state=0).fit(rows * factor, rows[:, 0] > 0)


def test_cells_too_large_to_be_exact_are_those_of_some_rows_when_the_time_is_up(monkeypatch):
    X, _, y, _ = rows(3000)
    asked = []
    nested = "asset_svm.families.cells.trainer.CellTrainer._approximate"
    monkeypatch.setattr(nested, lambda self, number, index: asked.append(number))
    model = AssetClassifier(
        gamma=2.0, n_cells=4, memory_limit=2_000_000, time_limit=1e-6, random_state=0
    ).fit(X, y)
    assert asked == [] and model.score(X, y) > 0.8
    landmarks = [len(d.source.components) for d in model._fitted.decision.parts[0].decisions]
    assert 0 < max(landmarks) <= 316, "more rows than memory_limit allows were solved"
