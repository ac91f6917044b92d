"""Cells on the card: on a card (marker cuda), and on torch's CPU device with the kernel's twin."""

import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import asset_svm.solvers.cells as cells_engine
from asset_svm import AssetClassifier, AssetQuantileRegressor, AssetRegressor, load, save
from asset_svm.backends import device as devices
from asset_svm.data import OneVsRestTargets
from asset_svm.exceptions import NonFiniteError
from asset_svm.features.cells import Partition
from asset_svm.kernels import NAMES, Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.settings import solving
from asset_svm.solvers.cells import CellProblem
from asset_svm.solvers.interior_form import solve_interior as host_interior

torch = pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")

from asset_svm.backends.cuda import cells as card_cells  # noqa: E402
from asset_svm.backends.cuda.backend import CudaBackend  # noqa: E402
from asset_svm.backends.cuda.batches import kernel_values  # noqa: E402
from asset_svm.backends.cuda.clusters import CardClusters  # noqa: E402
from asset_svm.backends.cuda.interior import Duals, solve_interior  # noqa: E402
from asset_svm.backends.cuda.sweeps import CudaSweeps, SweepRule, Wave  # noqa: E402
from asset_svm.backends.cuda.tiles import TILE, Tiles  # noqa: E402
from asset_svm.backends.cuda.transfer import RowFeeder  # noqa: E402
from asset_svm.backends.cuda.tree import CardTree  # noqa: E402
from card import CPU, HostForm, HostSweeps  # noqa: E402
from test_card import DEVICES, close, device_of  # noqa: E402


@pytest.fixture
def on_card(request, monkeypatch):
    """device="cuda" on the card, or on torch's CPU device."""
    if request.param == "cpu":
        play_a_card(monkeypatch)
    return request.param


def play_a_card(monkeypatch):
    """Let torch's CPU device, with the kernels' twins, be the card."""
    monkeypatch.setattr(devices, "require_card", lambda: None)
    monkeypatch.setattr(
        solving, "card_backend", lambda limit, p: CudaBackend(limit, p, CPU, HostForm, HostSweeps)
    )


def places(m=4000, classes=2, n=4, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(m, n)).astype(dtype)
    f = np.sin(4 * X[:, 0]) + np.cos(3 * X[:, 1]) * X[:, 2] + 0.2 * rng.normal(size=m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes)), f


def told(there, here):
    """What a failing comparison shows."""
    return f"card {there.history_}, host {here.history_}"


BOTH = pytest.mark.parametrize("on_card", DEVICES, indirect=True)
OPTIONS = dict(gamma=2.0, C=10.0, n_cells=12, random_state=0)


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_classifier_of_cells_matches_the_hosts(on_card, dtype, classes, partitions):
    X, y, _ = places(classes=classes, dtype=dtype)
    new, labels, _ = places(m=1500, classes=classes, dtype=dtype, seed=1)
    options = OPTIONS | dict(n_partitions=partitions)
    here = AssetClassifier(**options).fit(X, y)
    there = AssetClassifier(device="cuda", **options).fit(X, y)
    assert there.n_cells_ == here.n_cells_, told(there, here)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.01), told(there, here)
    assert there.dual_gap_ <= 0.011 * there.objective_, told(there, here)
    assert there.score(new, labels) == pytest.approx(here.score(new, labels), abs=0.01)
    found = there.decision_function(new)
    assert found.dtype == np.float64
    there.set_params(device="cpu")
    same = np.abs(found - there.decision_function(new)).reshape(len(new), -1).max(axis=1) < 1e-3
    assert same.mean() > 0.999, "the card and the host decide differently from the same model"


@BOTH
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (AssetClassifier, {"loss": "squared_hinge"}),
        (AssetRegressor, {"loss": "squared_epsilon_insensitive"}),
        (AssetRegressor, {"loss": "huber", "epsilon": 0.3, "fit_intercept": True}),
        (AssetQuantileRegressor, {"quantiles": (0.1, 0.5, 0.8)}),
        (AssetQuantileRegressor, {"quantiles": (0.2, 0.7), "fit_intercept": True}),
    ],
)
def test_cells_of_other_losses_match_the_hosts(on_card, estimator, options):
    """Boxes and parameters of every model, the ridge of a curved loss, and what is settled inside."""
    X, y, f = places(m=900)
    targets = y if estimator is AssetClassifier else f
    options = dict(gamma=2.0, C=1.0, n_cells=3, random_state=0) | options
    here = estimator(**options).fit(X, targets)
    there = estimator(device="cuda", **options).fit(X, targets)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.01), told(there, here)
    assert there.dual_gap_ <= 0.011 * there.objective_, told(there, here)
    assert there.score(X, targets) == pytest.approx(here.score(X, targets), abs=0.01)


@BOTH
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_regressor_of_cells_matches_the_hosts(on_card, epsilon):
    X, _, f = places()
    new, _, g = places(m=1000, seed=1)
    options = OPTIONS | dict(epsilon=epsilon, C=1.0)
    here = AssetRegressor(**options).fit(X, f)
    there = AssetRegressor(device="cuda", **options).fit(X, f)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.01), told(there, here)
    assert there.score(new, g) == pytest.approx(here.score(new, g), abs=0.005)
    assert there.predict(new).shape == (1000,)


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        dict(kernel="laplacian"),
        dict(kernel="exponential"),
        dict(kernel="matern32"),
        dict(kernel="matern52"),
        dict(kernel="poly", gamma=0.5, coef0=1.0, degree=2, C=0.1),
        dict(kernel="linear", C=0.1),
        dict(kernel="sigmoid", gamma=0.01, C=0.1),
        dict(fit_intercept=True),
        dict(C=1e4, tol=1e-4),
        dict(memory_limit=0, n_cells=20),
        dict(time_limit=1e-3),
    ],
)
def test_other_kernels_intercepts_and_limits_match_too(on_card, options):
    """C = 1e4: sweeps use up their budget, and the interior-point method goes on."""
    X, y, _ = places(m=2000)
    options = OPTIONS | dict(n_cells=8) | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        here = AssetClassifier(**options).fit(X, y)
        there = AssetClassifier(device="cuda", **options).fit(X, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.02), told(there, here)
    assert there.score(X, y) == pytest.approx(here.score(X, y), abs=0.01)


@BOTH
def test_cells_that_are_too_large_are_fitted_by_steps(on_card, monkeypatch):
    monkeypatch.setattr(cells_engine, "LARGEST_CELL", 160)
    monkeypatch.setattr(cells_engine, "SMALL_CELL", 10)
    X, y, _ = places(m=2000, classes=3)
    options = OPTIONS | dict(n_components=50, max_iter=5)
    there = AssetClassifier(device="cuda", **options).fit(X, y)
    kinds = [type(decision).__name__ for decision in there.cells_[0].decisions]
    assert {"Nested", "Decision"} <= set(kinds), kinds
    assert there.score(X, y) > 0.8
    found = there.decision_function(X)
    there.set_params(device="cpu")
    assert (np.abs(found - there.decision_function(X)).max(axis=1) < 1e-3).mean() > 0.999


@BOTH
def test_sparse_weighted_and_callable_cells_work(on_card):
    X, y, _ = places(m=1500)
    weight = 1.0 + (y == 1)
    there = AssetClassifier(device="cuda", **OPTIONS).fit(X, y, sample_weight=weight)
    here = AssetClassifier(**OPTIONS).fit(X, y, sample_weight=weight)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.01)
    sparse = AssetClassifier(device="cuda", **OPTIONS).fit(sp.csr_matrix(X), y, sample_weight=weight)
    assert sparse.objective_ == pytest.approx(here.objective_, rel=0.02)
    decisions = sparse.decision_function(sp.csr_matrix(X))
    assert (np.abs(decisions - sparse.decision_function(X)) < 1e-3).mean() > 0.999

    def kernel(A, B):
        return np.exp(-2.0 * ((A[:, None] - B[None]) ** 2).sum(-1))

    options = OPTIONS | dict(kernel=kernel, gamma=1.0)
    own = AssetClassifier(device="cuda", **options).fit(X, y, sample_weight=weight)
    assert own.objective_ == pytest.approx(here.objective_, rel=0.01)
    own.decision_function(X)


@BOTH
def test_models_of_cells_are_stored_and_go_on_learning_as_those_of_the_host(on_card, tmp_path):
    X, y, _ = places(m=2000, classes=3)
    model = AssetClassifier(device="cuda", **OPTIONS).fit(X, y)
    found = model.decision_function(X)
    copy = pickle.loads(pickle.dumps(model))
    close(copy.decision_function(X), found, 1e-6)
    pytest.importorskip("safetensors")
    save(model, tmp_path / "cells.asset")
    loaded = load(tmp_path / "cells.asset")
    assert loaded.device == "cpu"
    assert (np.abs(loaded.decision_function(X) - found).max(axis=1) < 1e-3).mean() > 0.999
    model.partial_fit(X[:200], y[:200])
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@BOTH
def test_rows_that_are_all_alike_stay_in_one_cell(on_card):
    X, y = np.ones((600, 3)), np.arange(600) % 2
    model = AssetClassifier(device="cuda", **OPTIONS).fit(X, y)
    assert model.n_cells_ == 1 and np.isfinite(model.decision_function(X)).all()


@BOTH
def test_a_kernel_matrix_that_is_not_finite_is_told(on_card):
    X, y, _ = places(m=400)
    X = X.astype(np.float64) * 1e200
    with pytest.raises((NonFiniteError, ValueError), match="scale the columns"):
        AssetClassifier(device="cuda", kernel="poly", gamma=1.0, n_cells=2).fit(X, y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_cells", [1, 3, 60])
def test_the_tree_is_grown_and_descended_as_on_the_host(device, n_cells):
    X, _, _ = places(m=5000)
    there = device_of(device)
    feeder = RowFeeder(torch.from_numpy(X).to(there), torch.float32, there)
    partition, cells = Partition.grow(X, n_cells, np.random.default_rng(3), CardClusters(feeder))
    _, same = Partition.grow(X, n_cells, np.random.default_rng(3))
    assert (cells == same).mean() > 0.99, "k-means on the card found other centres"
    assert (partition.assign(X) == cells).mean() > 0.999
    found = CardTree(partition, torch.float32, there)(torch.from_numpy(X).to(there))
    assert (found.cpu().numpy() == cells).mean() > 0.999


def test_a_deep_uneven_tree_is_descended_to_every_leaf():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 2)) * 0.01, rng.normal(size=(300, 2)) * 30]).astype("f4")
    partition, cells = Partition.grow(X, 300, rng)
    tree = CardTree(partition, torch.float32, CPU)
    assert tree.depth >= 2
    assert (tree(torch.from_numpy(X)).numpy() == cells).mean() > 0.999


def test_every_row_lies_in_a_tile_of_its_group():
    groups = torch.from_numpy(np.random.default_rng(0).integers(0, 9, size=1000) ** 2)
    tiles = Tiles.of(groups, 90)
    assert tiles.rows.shape[1] == TILE
    assert (groups[tiles.rows] == tiles.group[:, None]).all()
    np.testing.assert_array_equal(np.unique(tiles.rows.numpy()), np.arange(1000))
    assert len(tiles.group) <= 9 + 1000 // TILE
    assert len(Tiles.of(groups[:0], 90).group) == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("device", DEVICES)
def test_kernel_values_of_batches_are_those_of_the_host(device, name):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(3, 20, 5)) + 7, rng.normal(size=(3, 11, 5)) + 7
    kernel = Kernel(name, 0.3, 3, 0.5)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        A, B = (torch.from_numpy(M.astype(dtype)).to(device_of(device)) for M in (X, Z))
        found = kernel_values(kernel, A, B, B.mean(dim=1, keepdim=True)).cpu().numpy()
        for c in range(3):
            close(found[c], kernel(X[c].astype(dtype), Z[c].astype(dtype)), tolerance)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)])
def test_interior_points_of_a_batch_are_those_of_the_host(device, loss, intercept):
    """Unequal sizes, unequal C, an ill-conditioned kernel."""
    rng = np.random.default_rng(0)
    sizes, p = [30, 17, 32], 32
    K, y = np.zeros((3, p, p)), np.zeros((3, p))
    low, high, cost = np.zeros((3, p)), np.zeros((3, p)), np.zeros((3, p))
    for c, (m, C) in enumerate(zip(sizes, (1.0, 1e3, 30.0), strict=True)):
        X = rng.normal(size=(m, 2))
        K[c, :m, :m] = Kernel("rbf", 0.1)(X, X)
        y[c, :m] = np.sign(X[:, 0] + 0.5 * rng.normal(size=m)) if loss.code == 0 else X[:, 0] ** 3
        cost[c, :m] = C
        sided = C * y[c, :m] if loss.code == 0 else np.full(m, C)
        low[c, :m] = np.minimum(sided, 0) if loss.code == 0 else -C
        high[c, :m] = np.maximum(sided, 0)
    there = [torch.from_numpy(a).to(device_of(device)) for a in (K, y, low, high, np.array(sizes))]
    duals = Duals(*there, loss.tube, float(np.finfo(np.float64).eps), intercept)
    beta, steps = (t.cpu().numpy() for t in solve_interior(duals, 1e-8))
    for c, m in enumerate(sizes):
        part = (K[c, :m, :m], y[c, :m], cost[c, :m])
        expected, count = host_interior(*part, loss, 1e-8, intercept=intercept)
        assert abs(int(steps[c]) - count) <= 1, f"{steps[c]} steps, and {count} on the host"
        f, g = part[0] @ beta[c, :m], part[0] @ expected
        np.testing.assert_allclose(f, g, atol=1e-4 * np.abs(g).max())
        assert not beta[c, m:].any()


def test_waves_that_do_not_fit_are_halved_with_the_same_result(on_small_card):
    X, y, _ = places(m=3000)
    usual = AssetClassifier(device="cuda", **OPTIONS).fit(X, y)
    with on_small_card, pytest.warns(RuntimeWarning, match="ran out of memory"):
        short = AssetClassifier(device="cuda", **OPTIONS).fit(X, y)
    close(short.decision_function(X), usual.decision_function(X), 1e-4)


@pytest.fixture
def on_small_card(monkeypatch):
    """A card, played by the CPU, that has no room for more than three matrices at a time."""
    play_a_card(monkeypatch)
    solve = card_cells.CardCells._solve_wave

    def crowded(self, problem, cells, wave, *rest):
        if len(wave) > 3:
            raise torch.OutOfMemoryError("out of memory")
        return solve(self, problem, cells, wave, *rest)

    @contextmanager
    def small():
        with monkeypatch.context() as patch:
            patch.setattr(card_cells.CardCells, "_solve_wave", crowded)
            yield

    return small()


@pytest.mark.cuda
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)], ids=str)
@pytest.mark.parametrize("real", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [5, 100, 1000, 5000])
def test_the_kernel_on_the_card_follows_its_twin(m, real, loss):
    """m = 5000: too large for shared memory. The gap, P and D agree, and so do early sweeps exactly."""
    rng = np.random.default_rng(m)
    X = rng.normal(size=(2, m, 3))
    p = -(-m // 16) * 16
    K = torch.full((2, p, p), torch.nan, dtype=real)
    for c in range(2):
        squares = (X[c] ** 2).sum(1)
        values = np.exp(-2.0 * np.maximum(squares[:, None] + squares - 2 * X[c] @ X[c].T, 0))
        K[c, :m, :m] = torch.from_numpy(values)
    K[:, :m, m:] = 0.0
    y = np.sign(rng.normal(size=(2, 2 * p))) if loss.code == 0 else rng.normal(size=(2, 2 * p))
    parts = (
        np.array([m, m]), np.array([0, p]), y, rng.uniform(0.5, 3, size=2 * p),
        np.ones((2, 2), dtype=np.int32), np.array([3, 9]),
    )  # fmt: skip
    wave = Wave([K], *(torch.from_numpy(part) for part in parts))
    there = Wave([K.cuda()], *(torch.from_numpy(part).cuda() for part in parts))
    for most, tolerance in ((1, 1e-9 if real == torch.float64 else 1e-4), (200, 0.02)):
        rule = SweepRule(loss, 0.01, most, 0.3)
        beta, found = (t.cpu().numpy() for t in CudaSweeps(real, rule, device_of("cuda"))(there))
        expected_beta, expected = (t.numpy() for t in HostSweeps(real, rule, CPU)(wave))
        close(found[..., 1:], expected[..., 1:], tolerance)
        if most == 1:
            close(beta, expected_beta, tolerance)
        else:
            gap = found[..., 1] - found[..., 2]
            assert (gap <= 0.011 * found[..., 1]).all() or (found[..., 0] == expected[..., 0]).all()


@pytest.mark.cuda
def test_hundreds_of_cells_in_one_launch_match_the_hosts():
    X, y, _ = places(m=200_000, n=8)
    options = dict(gamma=4.0, C=10.0, n_cells="auto", random_state=0)
    there = AssetClassifier(device="cuda", **options).fit(X, y)
    here = AssetClassifier(**options).fit(X, y)
    assert there.n_cells_ > 150
    assert there.objective_ == pytest.approx(here.objective_, rel=0.01), told(there, here)
    new, labels, _ = places(m=50_000, n=8, seed=1)
    assert there.score(new, labels) == pytest.approx(here.score(new, labels), abs=0.002)


@pytest.mark.cuda
def test_tensors_on_the_card_are_taken_for_cells_too():
    X, y, _ = places()
    rows = torch.from_numpy(X).cuda()
    same = AssetClassifier(device="cuda", **OPTIONS).fit(X, y)
    model = AssetClassifier(device="cuda", **OPTIONS).fit(rows, torch.from_numpy(y).cuda())
    close(model.decision_function(rows), same.decision_function(X), 1e-4)
    model.partial_fit(rows[:100], y[:100])
    with pytest.raises(ValueError, match=r"X\.cpu\(\)"):
        model.set_params(device="cpu").predict(rows)


def test_what_a_card_solves_is_what_the_host_would():
    """The same solutions from CardCells.solve as from CellProblem.solve, cell by cell."""
    X, y, _ = places(m=1200, classes=3, dtype=np.float64)
    problem = CellProblem(
        Kernel("rbf", 2.0), X, OneVsRestTargets(y, 3), Hinge(), np.full(1200, 5.0), 1e-4, False
    )
    groups = np.split(np.random.default_rng(0).permutation(1200), [7, 150, 400, 407, 1000])
    groups.append(np.flatnonzero(y == 1)[:30])  # one class alone
    cells = card_cells.CardCells(X, CPU, 1 << 30, HostSweeps)
    found = cells.solve(problem, groups, range(len(groups)))
    cells.close()
    for number, (group, one) in enumerate(zip(groups, found, strict=True)):
        other = problem.solve(group, number)
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-8)
        close(one.objective, other.objective, 1e-9)
        assert one.sweeps == other.sweeps and one.converged == other.converged
