"""The card: on a real one (marker cuda), and on torch's CPU device with the kernel's twin."""

import pickle
import warnings
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import r2_score

from asset_svm import (
    AssetClassifier,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    load,
    open_rows,
    save,
)
from asset_svm.backends import device as devices
from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import GivenOrder, UniformOrder
from asset_svm.exceptions import NonFiniteError
from asset_svm.families.one_map.windows import FOR_CARDS
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, HadamardFeatures, Metric, NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge, Huber, Logistic, SquaredHinge
from asset_svm.solvers import Average, Cut, Driver, FractionWindow, ModelAxis, SolverState
from asset_svm.steps import MetricStep, RobustStep, StrongStep
from asset_svm.training.stream import OnlineSession, Recent

torch = pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")

from asset_svm.backends.cuda.backend import CudaBackend  # noqa: E402
from asset_svm.backends.cuda.driver import CardDriver  # noqa: E402
from asset_svm.backends.cuda.maps import CardMap, torch_type  # noqa: E402
from asset_svm.backends.cuda.memory import in_chunks  # noqa: E402
from asset_svm.backends.cuda.nystroem import CardNystroem  # noqa: E402
from asset_svm.backends.cuda.products import gram_blocks  # noqa: E402
from asset_svm.backends.cuda.rows import HeldRows, padded  # noqa: E402
from card import CPU, HostForm  # noqa: E402
from reference.algorithm import asset  # noqa: E402

ON_CARD = pytest.param("cuda", marks=pytest.mark.cuda)
DEVICES = ["cpu", ON_CARD]
M, D = 900, 37


@contextmanager
def ignored():
    """Nobody is warned of cells that are few, or of parameters that they do not use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def device_of(name):
    return CPU if name == "cpu" else torch.device("cuda", 0)


def engine_on(name, **options):
    if name == "cpu":
        return CudaBackend(device=CPU, form=HostForm, **options)
    return CudaBackend(**options)


@pytest.fixture
def card_estimators(request, monkeypatch):
    """device="cuda" on the card, or on torch's CPU device."""
    if request.param == "cpu":
        monkeypatch.setattr(devices, "require_card", lambda: None)
        monkeypatch.setattr(
            devices, "card_backend", lambda limit, precision: engine_on("cpu", memory_limit=limit)
        )
        from asset_svm.settings import solving

        monkeypatch.setattr(solving, "card_backend", devices.card_backend)
    return request.param


class Plain:
    """Mapped rows that are simply there."""

    in_memory = True

    def __init__(self, V):
        self.V, self.dimension, self.dtype = V, V.shape[1], V.dtype

    def fetch(self, rows):
        return self.V, rows


class ManyTargets:
    def __init__(self, y):
        self.y, self.n_models = y, len(y)

    def block(self, rows):
        return self.y[:, rows]


def held(V, device):
    wide = np.zeros((len(V), padded(V.shape[1])), dtype=V.dtype)
    wide[:, : V.shape[1]] = V
    return HeldRows(torch.from_numpy(wide).to(device), V.shape[1], V.dtype)


def is_of_classes(task):
    """Whether a task, or a loss in its place, is one of classes."""
    return task == "classification" or isinstance(task, SquaredHinge | Logistic)


def problem(task, K, seed=0, m=M, d=D):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, d)) / np.sqrt(d)
    if is_of_classes(task):
        return V, np.sign(rng.normal(size=(K, m)) + 2 * (V @ rng.normal(size=(d, K))).T)
    return V, (V @ rng.normal(size=(d, K))).T + 0.1 * rng.normal(size=(K, m))


def drivers(V, y, device, *, task, step, C, N, radius=None, bound=None, weight=None, order=None, r=0.5):
    """The same run on the host, by the row form, and on the device."""
    K, m = y.shape
    lam = 1.0 / (C * m)
    loss = {"classification": Hinge(), "regression": EpsilonInsensitive(0.05)}.get(task, task)
    feasible = FeasibleSet(loss.radius(lam, np.abs(y).max()) if radius is None else radius, bound)
    rng = np.random.default_rng(9)
    if step == "robust":
        rule = RobustStep(feasible.size, 1.3, 0.1)
    elif step == "strong":
        rule = StrongStep(lam)
    elif step == "diagonal":
        rule = MetricStep(feasible.size, 1.3, Metric(1 + rng.random(V.shape[1])), 0.02, N)
    else:
        directions = np.linalg.qr(rng.normal(size=(V.shape[1], 5)))[0]
        metric = Metric(np.linspace(1, 2, 5), directions, 2.0)
        rule = MetricStep(feasible.size, 1.3, metric, 0.02, N)
    axis = ModelAxis.build(loss, [lam] * K, [feasible] * K, [rule] * K)
    order = UniformOrder(m, seed=5) if order is None else order
    common = dict(weight=weight, cut=Cut(256), length=N)

    def parts():
        return SolverState.zeros(K, V.shape[1], V.dtype), Average(FractionWindow(r, N))

    here = Driver(Plain(V), ManyTargets(y), order, axis, *parts(), **common)
    form = dict(card_form=HostForm) if device.type == "cpu" else {}
    there = CardDriver(
        held(V, device), ManyTargets(y), order, axis, *parts(),
        device=device, chunk_size=512, **form, **common,
    )  # fmt: skip
    return here, there


def close(one, other, tolerance):
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max()))


CASES = list(
    product(
        ("classification", "regression"),
        (("robust", None), ("robust", 3.0), ("robust", 0.02), ("strong", None), ("diagonal", 3.0),
         ("directions", None)),
        (None, 0.3),
        (0.01, 1.0, 1e4),
    )
)  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("task", "rule", "radius", "C"), CASES)
def test_every_rule_follows_the_row_form_in_double(device, task, rule, radius, C, K):
    """Projection (radius 0.3) and none, b clipped (bound 0.02) and not, folds (strong, C 0.01)."""
    V, y = problem(task, K)
    N = 1500
    step, bound = rule
    here, there = drivers(
        V, y, device_of(device), task=task, step=step, C=C, N=N, radius=radius, bound=bound
    )
    for steps in (1, 300, 1199):
        here.advance(steps)
        there.advance(steps)
        close(there.state.coef, here.state.coef, 1e-8)
        close(there.state.intercept, here.state.intercept, 1e-8)
    here.settle()
    there.settle()
    for one, other in zip(there.model(), here.model(), strict=True):
        close(one, other, 1e-8)
    np.testing.assert_array_equal(there.state.steps, here.state.steps)
    one, other = there.take_progress(), here.take_progress()
    assert one.steps == other.steps
    for name in ("loss", "errors", "active"):
        close(getattr(one, name), getattr(other, name), 1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_the_card_follows_the_naive_reference(device):
    V, y = problem("classification", 1)
    N = 700
    here, there = drivers(
        V, y, device_of(device), task="classification", step="robust", C=1.0, N=N, bound=3.0
    )
    there.advance(N)
    iterates, averages = asset(
        V, y[0], here.order.rows(0, N), lam=float(here.axis.lam[0]), radius=float(here.axis.radius[0]),
        bound=3.0, d_x=float(here.axis.eta[0]), d_g=1.0, average_from=N // 2 + 1,
    )  # fmt: skip
    close(there.state.coef[0], iterates[-1][0], 1e-9)
    close(there.model()[0][0], averages[-1][0], 1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("step", ["robust", "strong", "diagonal", "directions"])
@pytest.mark.parametrize(("task", "N"), [("classification", 10_000), ("regression", 1000)])
def test_float32_iterates_agree_over_the_first_steps(device, task, N, step):
    """To 1e-4: float32 runs drift apart after a flipped branch, in regression earlier."""
    V, y = problem(task, 1, m=5000)
    bound = None if step == "strong" else 3.0
    here, there = drivers(
        V.astype(np.float32), y, device_of(device),
        task=task, step=step, C=1.0, N=N, bound=bound, order=GivenOrder(5000),
    )  # fmt: skip
    here.advance(N)
    there.advance(N)
    close(there.state.coef, here.state.coef, 1e-4)
    for one, other in zip(there.model(), here.model(), strict=True):
        close(one, other, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_skipped_row_leaves_the_model_and_its_step_count_alone(device):
    V, y = problem("classification", 2)
    weight = np.where(np.arange(M) % 3 == 0, -1.0, np.where(np.arange(M) % 3 == 1, 1.0, 2.5))
    here, there = drivers(
        V, y, device_of(device), task="classification", step="robust", C=1.0, N=800, weight=weight
    )
    here.advance(800)
    there.advance(800)
    close(there.state.coef, here.state.coef, 1e-9)
    np.testing.assert_array_equal(there.state.steps, here.state.steps)
    assert there.state.steps[0] < 800


@pytest.mark.parametrize("device", DEVICES)
def test_where_a_run_is_cut_never_changes_the_iterates(device):
    V, y = problem("classification", 1)
    options = dict(task="classification", step="diagonal", C=1.0, N=1000, bound=1.0)
    whole = drivers(V, y, device_of(device), **options)[1]
    whole.advance(1000)
    cut = drivers(V, y, device_of(device), **options)[1]
    for steps in (7, 93, 412, 488):
        cut.advance(steps)
    close(cut.state.coef, whole.state.coef, 1e-12)
    close(cut.model()[0], whole.model()[0], 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_a_nonfinite_iterate_is_raised(device):
    V, y = problem("classification", 1)
    V[3, 2] = np.inf
    there = drivers(V, y, device_of(device), task="classification", step="robust", C=1.0, N=2000)[1]
    with pytest.raises(NonFiniteError, match="no longer finite"):
        there.advance(2000)


def maps(rng):
    X = rng.normal(size=(700, 13))
    for kind in ("iid", "orthogonal", "qmc"):
        yield X, FourierFeatures.sample(Kernel("rbf", 0.3), 13, 91, rng, kind)
    yield X, HadamardFeatures.sample(Kernel("rbf", 0.3), 13, 91, rng)
    for kernel in (Kernel("exponential", 0.3), Kernel("laplacian", 0.1)):
        yield X.astype(np.float32).astype(float), FourierFeatures.sample(kernel, 13, 301, rng, "qmc")
    for kernel in (
        Kernel("rbf", 0.05),
        Kernel("exponential", 0.2),
        Kernel("matern32", 0.2),
        Kernel("matern52", 0.2),
        Kernel("laplacian", 0.05),
        Kernel("poly", 0.1, 3, 1.0),
        Kernel("sigmoid", 0.01),
        Kernel("linear"),
        Kernel(lambda A, B: np.exp(-0.05 * ((A[:, None] - B[None]) ** 2).sum(-1))),
    ):
        yield X, NystroemFeatures.sample(X, kernel, 60, rng)
    phi = NystroemFeatures.sample(X, Kernel("rbf", 0.05), 60, rng, basis="eigen")
    yield X, phi.in_metric(phi.find_metric(phi(X), None, rng))
    phi = FourierFeatures.sample(Kernel("rbf", 0.3), 13, 300, rng)
    yield X, phi.in_metric(phi.find_metric(phi(X), None, rng))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maps_agree_with_the_host(device, dtype):
    for X, phi in maps(np.random.default_rng(0)):
        exact = phi.lift(np.float64)(phi.basis(np.float64)(X))
        host = phi.lift(dtype)(phi.basis(dtype)(X.astype(dtype)))
        rows = torch.from_numpy(X.astype(dtype)).to(device_of(device))
        out = torch.empty((len(X), phi.dimension), dtype=torch_type(dtype), device=rows.device)
        out.fill_(float("nan"))
        CardMap(phi, torch_type(dtype), "float32", rows.device)(rows, out)
        scale = np.abs(exact).max()
        error = np.abs(out.cpu().numpy() - exact).max() / scale
        # a few times the error of the host's own product: the matrix units cut off what they add
        assert error <= max(8 * np.abs(host - exact).max() / scale, 1e-12), phi


@pytest.mark.cuda
def test_split_products_have_float32_accuracy_whatever_the_scale_of_rows():
    from asset_svm.backends.cuda.products import right_factor

    rng = np.random.default_rng(1)
    A = rng.normal(size=(500, 781)) * 10.0 ** rng.uniform(-20, 15, size=(500, 1))
    B = rng.normal(size=(300, 781)) * 10.0 ** rng.uniform(-15, 15, size=(300, 1))
    a, b = (torch.from_numpy(m).float().cuda() for m in (A, B))
    out = torch.empty((500, 300), device="cuda")
    scale = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    errors = {}
    for precision in ("float32", "float16"):
        right_factor(b, precision)(a, out)
        exact = a.double() @ b.double().T
        errors[precision] = float(((out - exact).abs().cpu().numpy() / scale).max())
    assert errors["float32"] < 2e-6
    assert 1e-5 < errors["float16"] < 2e-3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_blocks_are_those_of_the_rows(device, dtype):
    rng = np.random.default_rng(2)
    V = rng.normal(size=(600, 256)).astype(dtype)
    positions = rng.integers(0, 600, size=512)
    on_device = torch.from_numpy(V).to(device_of(device))
    G = gram_blocks(on_device, torch.from_numpy(positions).to(on_device.device), 256).cpu().numpy()
    for block in range(2):
        rows = V[positions[block * 256 : (block + 1) * 256]].astype(np.float64)
        close(G[block], rows @ rows.T, 1e-12 if dtype == np.float64 else 2e-6)


def digits(m=3000, classes=3):
    rng = np.random.default_rng(4)
    y = rng.integers(0, classes, size=m)
    return (rng.normal(size=(m, 6)) + 1.2 * np.eye(6)[y]).astype(np.float32), y


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("step", ["metric", "robust", "strong"])
def test_a_classifier_on_the_card_matches_one_on_the_host(
    card_estimators, classes, approximation, step
):
    X, y = digits(classes=classes)
    options = dict(
        gamma=0.1, C=10, approximation=approximation, step=step, n_components=200, random_state=0,
        max_iter=10,
    )  # fmt: skip
    here = AssetClassifier(**options).fit(X, y)
    there = AssetClassifier(device="cuda", **options).fit(X, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.03)
    assert there.score(X, y) == pytest.approx(here.score(X, y), abs=0.02)
    assert there.dual_gap_ >= 0
    decisions = there.decision_function(X)
    there.set_params(device="cpu")
    close(decisions, there.decision_function(X), 1e-4)
    assert isinstance(there.map_coef_, np.ndarray) and there.map_coef_.dtype == np.float64


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_a_regressor_on_the_card_matches_one_on_the_host(card_estimators, waves):
    X, y = waves
    options = dict(gamma=1.0, C=10, n_components=100, random_state=0)
    here, there = AssetRegressor(**options), AssetRegressor(device="cuda", **options)
    assert there.fit(X, y).score(X, y) == pytest.approx(here.fit(X, y).score(X, y), abs=0.01)
    single = X.astype(np.float32)
    far = there.fit(single, y + 1e9).predict(single)
    assert far.dtype == np.float64
    assert r2_score(y, far - 1e9) == pytest.approx(here.score(X, y), abs=0.01)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber"])
def test_curved_losses_of_numbers_on_the_card_match_those_on_the_host(card_estimators, waves, loss):
    X, y = waves
    options = dict(gamma=1.0, C=10, loss=loss, epsilon=0.2, n_components=100, random_state=0)
    here, there = AssetRegressor(**options), AssetRegressor(device="cuda", **options)
    with ignored():
        assert there.fit(X, y).objective_ == pytest.approx(here.fit(X, y).objective_, rel=0.03)
    close(there.predict(X), here.predict(X), 0.05)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_curved_losses_of_classes_on_the_card_match_those_on_the_host(card_estimators, loss):
    X, y = digits(classes=3)
    options = dict(gamma=0.1, C=10, loss=loss, n_components=100, random_state=0)
    here, there = AssetClassifier(**options), AssetClassifier(device="cuda", **options)
    with ignored():
        assert there.fit(X, y).objective_ == pytest.approx(here.fit(X, y).objective_, rel=0.03)
    assert there.score(X, y) == pytest.approx(here.score(X, y), abs=0.02)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_quantiles_on_the_card_match_those_on_the_host(card_estimators, waves):
    """Models of one pass have quantiles of their own there too."""
    X, y = waves
    y = y + np.random.default_rng(1).normal(size=len(y))
    options = dict(quantiles=(0.1, 0.5, 0.8), gamma=1.0, n_components=100, random_state=0)
    here = AssetQuantileRegressor(**options)
    there = AssetQuantileRegressor(device="cuda", **options)
    with ignored():
        assert there.fit(X, y).objective_ == pytest.approx(here.fit(X, y).objective_, rel=0.03)
    np.testing.assert_allclose(there.coverage(X, y), here.coverage(X, y), atol=0.02)
    assert there.score(X, y) == pytest.approx(here.score(X, y), abs=0.01)


def test_a_loss_that_the_card_has_not_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(Huber, "cuda", None)
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50.0)
    with pytest.raises(ValueError, match='device="cuda" has no steps for the huber loss'):
        AssetRegressor(loss="huber", device="cuda").fit(X, y)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize(
    "options",
    [
        dict(early_stopping=True),
        dict(tol=0.05),
        dict(time_limit=5.0),
        dict(memory_limit=0),
        dict(average=100),
        dict(average=None),
        dict(landmarks="kmeans"),
        dict(landmarks="margin"),
        dict(n_components="auto"),
        dict(approximation="fourier", fourier="hadamard"),
    ],
)
def test_other_ways_to_run_work_on_the_card_too(card_estimators, options):
    X, y = digits()
    options = dict(n_components=100) | options
    model = AssetClassifier(gamma=0.1, C=10, random_state=0, device="cuda", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.history_


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("relevance", ["columns", "directions"])
@pytest.mark.parametrize("kernel", ["rbf", "exponential"])
def test_relevance_is_the_same_for_the_card(card_estimators, relevance, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7
    options = dict(kernel=kernel, C=10, n_components=150, random_state=0, max_iter=5)
    there = AssetClassifier(device="cuda", relevance=relevance, **options).fit(X, y)
    here = AssetClassifier(relevance=relevance, **options).fit(X, y)
    close(there.relevance_, here.relevance_, 1e-6)
    assert there.objective_ == pytest.approx(here.objective_, rel=0.02)
    close(there.set_params(device="cpu").decision_function(X), there.decision_function(X), 1e-3)


def test_mapped_tensors_are_mapped_rows():
    from asset_svm.features.relevance import Relevance

    rng = np.random.default_rng(0)
    X, shift = rng.normal(size=(50, 4)), rng.normal(size=4)
    for weights in (rng.normal(size=4), rng.normal(size=(2, 4))):
        relevance = Relevance(weights, shift, 1.0)
        close(relevance(torch.from_numpy(X)).numpy(), relevance(X), 1e-12)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_kept_and_recomputed_rows_give_the_same_model(card_estimators):
    X, y = digits()
    options = dict(gamma=0.1, C=10, n_components=100, random_state=0, device="cuda", max_iter=3)
    kept = AssetClassifier(**options).fit(X, y)
    anew = AssetClassifier(memory_limit=0, **options).fit(X, y)
    close(anew.map_coef_, kept.map_coef_, 1e-3)
    assert anew.objective_ == pytest.approx(kept.objective_, rel=1e-3)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_sparse_rows_streams_and_weights_work_on_the_card(card_estimators):
    import scipy.sparse as sp

    X, y = digits()
    options = dict(gamma=0.1, C=10, n_components=100, random_state=0, device="cuda")
    dense = AssetClassifier(**options).fit(X, y, sample_weight=1.0 + (y == 1))
    sparse = AssetClassifier(**options).fit(sp.csr_matrix(X), y, sample_weight=1.0 + (y == 1))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=0.01)
    stream = AssetClassifier(**options)
    for start in range(0, len(y), 500):
        stream.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1, 2])
    assert stream.score(X, y) > 0.6
    dense.partial_fit(X[:300], y[:300])
    assert dense.score(X, y) > 0.6


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_a_fit_of_the_card_goes_on_on_the_host_as_on_the_card(card_estimators):
    """By Algorithm 1 on both, up to when what is due is shrunk."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4200, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7
    options = dict(gamma=0.3, C=100, n_components=150, max_iter=1, step_scale=0.1, warm_start=True)
    there = AssetClassifier(device="cuda", random_state=0, **options).fit(X, y)
    here = pickle.loads(pickle.dumps(there)).set_params(device="cpu").fit(X, y)
    there.fit(X, y)
    np.testing.assert_array_equal(here.component_indices_, there.component_indices_)
    assert np.abs(here.decision_function(X) - there.decision_function(X)).max() < 0.2


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_a_model_of_the_card_is_pickled_without_it(card_estimators):
    X, y = digits()
    model = AssetClassifier(gamma=1.0, n_components=600, random_state=0, device="cuda", step="robust")
    model.fit(X, y)
    assert isinstance(model.feature_map_, CardNystroem)
    copy = pickle.loads(pickle.dumps(model)).set_params(device="cpu")
    assert type(copy.feature_map_) is NystroemFeatures
    close(copy.decision_function(X), model.decision_function(X), 1e-4)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky"])
def test_a_model_of_the_card_is_saved_as_one_of_the_host(card_estimators, landmarks, tmp_path):
    pytest.importorskip("safetensors")
    X, y = digits()
    options = dict(gamma=1.0, n_components=600, random_state=0, landmarks=landmarks, step="robust")
    model = AssetClassifier(device="cuda", **options).fit(X, y)
    assert isinstance(model.feature_map_, CardNystroem)
    save(model, tmp_path / "card.asset", resumable=True)
    copy = load(tmp_path / "card.asset")
    assert copy.device == "cpu" and model.device == "cuda"
    assert type(copy.feature_map_) is NystroemFeatures
    assert copy._fitted.session.phi is copy.feature_map_
    assert copy.approximation_error_ == model.approximation_error_
    close(copy.decision_function(X), model.decision_function(X), 1e-4)
    copy.partial_fit(X[:500], y[:500])
    copy.set_params(device="cuda").partial_fit(X[500:], y[500:])
    assert copy.score(X, y) > 0.6


def test_few_rows_stay_on_the_host():
    X, y = digits()
    cells = AssetClassifier(n_cells=4, gamma=0.1, random_state=0, device="auto").fit(X, y)
    same = AssetClassifier(n_cells=4, gamma=0.1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(cells.decision_function(X), same.decision_function(X))


STREAMED = {
    "classes": lambda **options: AssetClassifier(C=10, class_weight="balanced", **options),
    "numbers": lambda **options: AssetRegressor(C=10, **options),
    "quantiles": lambda **options: AssetQuantileRegressor(C=10, **options),
    "outliers": lambda **options: AssetOutlierDetector(nu=0.2, **options),
    "relevance": lambda **options: AssetClassifier(C=10, relevance="columns", **options),
    "fourier": lambda **options: AssetClassifier(C=10, approximation="fourier", **options),
}


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
@pytest.mark.parametrize("kind", list(STREAMED))
def test_files_larger_than_memory_go_to_the_card_a_window_at_a_time(
    card_estimators, kind, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    y = f if kind in ("numbers", "quantiles") else (f > 0.7).astype(int)
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=y)
    options = dict(
        gamma=0.2, n_components=80, max_iter=2, memory_limit=1000, random_state=0, step_scale=0.1
    )
    windows = []
    learn = OnlineSession.learn

    def seen(self, backend, X, *rest):
        windows.append((type(backend).__name__, X.shape[0]))
        return learn(self, backend, X, *rest)

    monkeypatch.setattr(OnlineSession, "learn", seen)
    here = STREAMED[kind](**options).fit(open_rows(path))
    assert {name for name, _ in windows} == {"CpuBackend"}
    before, windows[:] = [rows for _, rows in windows], []
    there = STREAMED[kind](device="cuda", **options).fit(open_rows(path))
    assert {name for name, _ in windows} == {"CudaBackend"}
    assert [rows for _, rows in windows] == before and len(before) == 2 * 12
    decide = "predict" if kind in ("numbers", "quantiles") else "decision_function"
    one, other = (getattr(m.set_params(device="cpu"), decide)(X) for m in (here, there))
    # What is due is shrunk at other steps; lam of one class is where a search ends.
    close(other, one, 5e-3 if kind == "outliers" else 1e-4)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-2)


@pytest.mark.parametrize("card_estimators", DEVICES, indirect=True)
def test_windows_of_a_card_are_larger_where_memory_allows(card_estimators, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=X[:, 0] > 0)
    rows = []
    learn = OnlineSession.learn

    def seen(self, backend, X, *rest):
        rows.append(X.shape[0])
        return learn(self, backend, X, *rest)

    monkeypatch.setattr(OnlineSession, "learn", seen)
    monkeypatch.setattr("asset_svm.families.one_map.windows.WINDOW_ROWS", 50)
    options = dict(n_components=20, max_iter=1, memory_limit=200_000, random_state=0)
    AssetClassifier(device="cpu", **options).fit(open_rows(path))
    assert rows == [50] * 60
    rows.clear()
    AssetClassifier(device="cuda", **options).fit(open_rows(path))
    assert rows == [50 * FOR_CARDS] * 3 + [3000 - 150 * FOR_CARDS]


def test_cells_of_files_are_the_hosts(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "require_card", lambda: None)
    X, y = digits()
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=y)
    model = AssetClassifier(device="cuda", n_cells=3, memory_limit=1000, random_state=0)
    with pytest.raises(ValueError, match="device='cuda' needs all rows in memory"):
        model.fit(open_rows(path))


def test_the_last_rows_of_a_stream_are_kept_on_the_host():
    recent = Recent.none(1)
    for size in (300, 1500, 200):
        rows = torch.full((size, 2), float(size))
        recent = recent.joined(rows, np.ones((1, size)), np.ones(size))
        assert isinstance(recent.X, np.ndarray)
    np.testing.assert_array_equal(recent.X[:, 0], np.repeat([1500.0, 200.0], [824, 200]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("gamma", [1.0, 1e-3])
def test_landmarks_factored_on_the_card_give_the_same_kernel(device, gamma):
    """gamma 1e-3: K_SS is singular, and something is cut."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 8))
    kernel = Kernel("rbf", gamma)
    backend = engine_on(device)
    there = backend.nystroem.sample(X, kernel, 500, np.random.default_rng(0))
    here = NystroemFeatures.sample(X, kernel, 500, np.random.default_rng(0))
    assert isinstance(there, CardNystroem) == (gamma == 1.0)
    one, other = there(X[:100]), here(X[:100])
    close(one @ one.T, other @ other.T, 1e-6)
    coef = np.ones((1, there.dimension))
    close(there.decision_weights(coef), coef @ there.projection.T, 1e-9)
    assert there.trace_error == pytest.approx(here.trace_error, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_many_landmarks_are_damped_where_they_would_be_cut(device, monkeypatch):
    from asset_svm.backends.cuda import nystroem

    monkeypatch.setattr(nystroem, "LARGEST_EIGEN", 300)
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 3))
    kernel = Kernel("rbf", 0.1)
    there = engine_on(device).nystroem.sample(X, kernel, 500, np.random.default_rng(0))
    assert isinstance(there, CardNystroem)
    v = there(X[:200])
    assert (v**2).sum(axis=1).max() <= 1 + 1e-6
    close(v @ v.T, kernel(X[:200], X[:200]), 1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_the_metric_found_on_the_card_is_the_hosts(device):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(3000, 8))
    weight = rng.uniform(0.5, 2.0, size=3000)
    phi = FourierFeatures.sample(Kernel("rbf", 0.05), 8, 600, rng)
    here = CpuBackend().find_metric(phi, X, weight, 0)
    there = engine_on(device).find_metric(phi, X, weight, 0)
    top = 20  # subspace iteration is exact for the leading ones only
    np.testing.assert_allclose(there.scale[:top], here.scale[:top], rtol=1e-3)
    assert there.rest == pytest.approx(here.rest, rel=0.05)


def test_memory_that_runs_out_makes_blocks_smaller_with_one_warning():
    done = []

    def work(start, stop):
        if stop - start > 1000:
            raise torch.OutOfMemoryError("out of memory")
        done.append((start, stop))

    with pytest.warns(RuntimeWarning, match="blocks of 1000 rows") as caught:
        assert in_chunks(2500, 2000, work) == 1000
    assert len(caught) == 1
    assert done == [(0, 1000), (1000, 2000), (2000, 2500)]


def test_chunks_that_do_not_fit_are_halved_with_one_warning(monkeypatch):
    from asset_svm.backends.cuda import driver

    multiply = driver.gram_blocks

    def too_large(V, positions, block):
        if len(positions) > 256:
            raise torch.OutOfMemoryError("out of memory")
        return multiply(V, positions, block)

    V, y = problem("classification", 1)
    options = dict(task="classification", step="robust", C=1.0, N=700, bound=3.0)
    usual = drivers(V, y, CPU, **options)[1]
    usual.advance(700)
    short = drivers(V, y, CPU, **options)[1]
    short.chunk_size = 1024
    monkeypatch.setattr(driver, "gram_blocks", too_large)
    with pytest.warns(RuntimeWarning, match="blocks of 256 rows") as caught:
        short.advance(700)
    assert len(caught) == 1
    close(short.state.coef, usual.state.coef, 1e-12)


def test_without_a_card_the_error_says_what_to_do(monkeypatch):
    X, y = digits(300)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match='set device="cpu"'):
        AssetClassifier(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="device="):
        AssetClassifier(device="gpu").fit(X, y)
    with pytest.raises(ValueError, match="precision="):
        AssetClassifier(precision="float8").fit(X, y)
    AssetClassifier(device="auto", n_components=50).fit(X, y)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    X, y = digits(300)
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "asset-svm\[cuda\]"'):
        AssetRegressor(device="cuda").fit(X, y)
    AssetRegressor(device="auto", n_components=50).fit(X, y)


@pytest.mark.cuda
def test_tensors_on_the_card_are_taken_as_they_are():
    X, y = digits(classes=2)
    rows = torch.from_numpy(X).cuda()
    options = dict(gamma=0.1, C=10, n_components=200, random_state=0, device="cuda")
    ways = (dict(), dict(early_stopping=True), dict(approximation="fourier", memory_limit=0))
    for given in (*ways, dict(relevance="columns"), dict(relevance="directions", n_cells=4)):
        model = AssetClassifier(**options, **given)
        same = AssetClassifier(**options, **given).fit(X, y)
        model.fit(rows, torch.from_numpy(y).cuda())
        if "n_cells" not in given:
            close(model.map_coef_, same.map_coef_, 1e-3)
        close(model.decision_function(rows), same.decision_function(X), 1e-3)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(rows * float("nan"), y)
    with pytest.raises(ValueError, match="features"):
        model.predict(rows[:, :3])
    with pytest.raises(ValueError, match="2D"):
        model.fit(rows[:, 0], y)
    with pytest.raises(ValueError, match="as many"):
        model.fit(rows, y[:-1])
    with pytest.raises(ValueError, match=r"X\.cpu\(\)"):
        model.set_params(device="cpu").predict(rows)


@pytest.mark.cuda
@pytest.mark.parametrize("landmarks", ["margin", "kmeans"])
def test_landmarks_of_tensors_are_chosen_without_a_copy_to_the_host(landmarks, monkeypatch):
    from asset_svm.families.one_map import maps

    def refuse(X):
        raise AssertionError(f"landmarks={landmarks!r} copied {tuple(X.shape)} to the host")

    monkeypatch.setattr(maps, "on_host", refuse)
    X, y = digits(20_000)
    options = dict(gamma=0.1, C=10, n_components=300, random_state=0, landmarks=landmarks, max_iter=5)
    model = AssetClassifier(device="cuda", **options).fit(torch.from_numpy(X).cuda(), y)
    here = AssetClassifier(**options).fit(X, y)
    assert model.score(X, y) == pytest.approx(here.score(X, y), abs=0.02)


@pytest.mark.cuda
def test_halves_change_little():
    X, y = digits(20_000, classes=2)
    options = dict(gamma=0.1, C=10, n_components=512, random_state=0, device="cuda")
    full = AssetClassifier(**options).fit(X, y)
    half = AssetClassifier(precision="float16", **options).fit(X, y)
    assert half.objective_ == pytest.approx(full.objective_, rel=0.02)
    assert half.score(X, y) == pytest.approx(full.score(X, y), abs=0.005)


@pytest.mark.cuda
def test_over_a_pass_objectives_and_active_counts_agree():
    """1 % and 0.5 % (of the steps): float32 runs drift apart after a flipped branch."""
    V, y = problem("classification", 1, m=100_000, d=200)
    V = V.astype(np.float32)
    for step in ("robust", "strong"):
        here, there = drivers(
            V, y, device_of("cuda"), task="classification", step=step, C=0.01, N=100_000,
            order=GivenOrder(100_000), bound=3.0 if step == "robust" else None,
        )  # fmt: skip
        counts, objectives = [], []
        for driver in (here, there):
            driver.advance(100_000)
            counts.append(driver.take_progress().active[0])
            coef, b = driver.model()
            loss = np.maximum(1 - y[0] * (V @ coef[0] + b[0]), 0).mean()
            objectives.append(loss + 0.5 * here.axis.lam[0] * coef[0] @ coef[0])
        assert counts[1] == pytest.approx(counts[0], rel=0.005)
        assert objectives[1] == pytest.approx(objectives[0], rel=0.01)


@pytest.mark.cuda
def test_rows_of_a_memory_map_are_streamed(tmp_path):
    X, y = digits(40_000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = dict(gamma=0.1, C=10, n_components=128, random_state=0, device="cuda", max_iter=2)
    streamed = AssetClassifier(memory_limit=0, **options).fit(mapped, y)
    kept = AssetClassifier(**options).fit(X, y)
    close(streamed.map_coef_, kept.map_coef_, 1e-3)


@pytest.mark.cuda
def test_a_card_without_room_recomputes_with_a_warning(monkeypatch):
    from asset_svm.backends.cuda.rows import CardRows

    X, y = digits(40_000)
    new = CardRows._new

    def too_small(self, rows):
        if rows == 40_000:
            raise torch.OutOfMemoryError("out of memory")
        return new(self, rows)

    monkeypatch.setattr(CardRows, "_new", too_small)
    model = AssetClassifier(gamma=0.1, n_components=128, random_state=0, device="cuda", max_iter=2)
    with pytest.warns(RuntimeWarning, match="computed anew"):
        model.fit(X, y)
    assert model.score(X, y) > 0.6
