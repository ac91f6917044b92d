"""The card's kernels themselves, compiled for the host, against their twins: no card, but g++."""

import ctypes
import shutil
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")

from asset_svm.backends.cuda import blocks, products, sweeps  # noqa: E402
from asset_svm.backends.cuda.sweeps import CudaSweeps, SweepRule, Wave  # noqa: E402
from asset_svm.kernels import FORMULAS, NAMES, Kernel  # noqa: E402
from asset_svm.losses import (  # noqa: E402
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from card import CPU, HostSweeps  # noqa: E402
from emulation import compile_kernel  # noqa: E402
from test_card import close, drivers, is_of_classes, problem  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile the kernel")


class HostKernel:
    """Launches the kernel's thread blocks, here and now."""

    def __init__(self, launch):
        self.launch = launch

    def reserve(self, shared):
        assert shared <= 1 << 17

    def __call__(self, arguments, grid, threads, *, cooperative=False, shared):
        assert threads == 256 and shared <= 1 << 17
        assert grid == 1 or not cooperative  # blocks that wait for each other would wait for ever
        self.launch(ctypes.byref(arguments), grid)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Kernels by their macros, each compiled once."""
    folder, found = tmp_path_factory.mktemp("kernels"), {}

    def kernel(file, name, device, **defines):
        key = (name, *defines.items())
        if key not in found:
            found[key] = HostKernel(compile_kernel(folder, file, name, **defines))
        return found[key]

    return kernel


@pytest.mark.parametrize(
    ("task", "step", "bound", "radius", "C", "K"),
    [
        ("classification", "robust", 3.0, None, 1.0, 2),
        ("classification", "robust", 0.02, 0.3, 1e4, 1),
        ("classification", "strong", None, None, 0.01, 1),
        ("classification", "diagonal", 3.0, None, 1.0, 1),
        ("classification", "directions", None, None, 1.0, 5),
        ("regression", "robust", 3.0, None, 1.0, 2),
        ("regression", "diagonal", 3.0, None, 1.0, 1),
        (SquaredHinge(), "robust", 3.0, None, 1.0, 2),
        (SquaredHinge(), "diagonal", 3.0, None, 1.0, 2),
        (Logistic(), "robust", 0.02, 0.3, 1e4, 1),
        (Logistic(), "diagonal", 3.0, None, 1.0, 1),
        (SquaredEpsilonInsensitive(0.05), "robust", 3.0, None, 1.0, 1),
        (SquaredEpsilonInsensitive(0.05), "directions", 3.0, None, 1.0, 2),
        (Huber(0.5), "diagonal", 3.0, None, 1.0, 2),
        (Pinball((0.1, 0.5, 0.8)), "robust", 3.0, None, 1.0, 3),
        (Pinball((0.1, 0.9)), "diagonal", 3.0, None, 1.0, 2),
    ],
)
def test_the_kernel_follows_the_row_form(compiled, monkeypatch, task, step, bound, radius, C, K):
    """Intercept, clipped b, projection, folds, both metrics; cuts inside blocks and groups of 32."""
    monkeypatch.setattr(blocks, "kernel", compiled)
    one = types.SimpleNamespace(multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: one)
    V, y = problem(task, K)
    here, there = drivers(V, y, CPU, task=task, step=step, C=C, N=400, radius=radius, bound=bound)
    there.make_form = blocks.CudaForm
    for steps in (1, 74, 325):
        here.advance(steps)
        there.advance(steps)
        close(there.state.coef, here.state.coef, 1e-9)
        close(there.state.intercept, here.state.intercept, 1e-9)
    for found, expected in zip(there.model(), here.model(), strict=True):
        close(found, expected, 1e-9)
    found, expected = there.take_progress(), here.take_progress()
    for name in ("loss", "errors", "active"):
        close(getattr(found, name), getattr(expected, name), 1e-9)
    np.testing.assert_array_equal(there.state.steps, here.state.steps)


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(FORMULAS[n], "cuda")])
def test_products_are_finished_to_kernel_values(compiled, name):
    """More columns than threads, a row far away, a row that is not a number."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(300, 3))
    X[3], X[4] = 1e3, np.nan
    kernel = Kernel(name, 0.3)
    A, B = (M * np.sqrt(kernel.formula.rate) for M in (X, Z))
    numbers = [A @ B.T, np.ones(5), np.ones(300), (A**2).sum(axis=1), (B**2).sum(axis=1)]
    sums, rows, columns, left, right = (np.ascontiguousarray(n, dtype=np.float32) for n in numbers)
    out = np.zeros((5, 300), dtype=np.float32)
    finish = compiled(
        "elementwise.cu", "finish", 0, profile=kernel.formula.cuda, VALUE="float", ARGUMENTS="Finish"
    )
    arguments = products._Finish(
        sums=sums.ctypes.data, row_inverse=rows.ctypes.data, column_inverse=columns.ctypes.data,
        left=left.ctypes.data, right=right.ctypes.data, out=out.ctypes.data, width=300,
        sums_stride=300, stride=300, mode=2, amplitude=1.0,
        rounding=kernel.formula.rounding(np.float32),
    )  # fmt: skip
    finish(arguments, 5, 256, shared=0)
    np.testing.assert_allclose(out, kernel(X, Z), atol=2e-5)


def wave(task, real, models=2, seed=0):
    """Cells of unequal sizes in two batches, padded with numbers that must not matter."""
    rng = np.random.default_rng(seed)
    matrices, sizes, first, rows = [], [], [], 0
    for p, members in ((48, (48, 37)), (20, (17, 20, 1))):
        batch = torch.full((len(members), p, p), 1e3, dtype=real)
        for c, m in enumerate(members):
            X = rng.normal(size=(m, 3))
            K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
            batch[c, :m, :m] = torch.from_numpy(K)
            sizes.append(m)
            first.append(rows)
            rows += p
        matrices.append(batch)
    f = rng.normal(size=(models, rows))
    y = np.sign(f) if is_of_classes(task) else f
    wanted = np.ones((len(sizes), models), dtype=np.int32)
    wanted[1, models - 1] = 0
    return Wave(
        matrices, torch.tensor(sizes), torch.tensor(first), torch.from_numpy(y),
        torch.from_numpy(rng.uniform(0.5, 5.0, size=rows)), torch.from_numpy(wanted),
        torch.arange(7, 7 + len(sizes)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("task", "real", "most", "budget", "shared"),
    [
        (SquaredHinge(), torch.float64, 12, 9.0, 48 << 10),
        (SquaredEpsilonInsensitive(0.05), torch.float32, 12, 9.0, 1600),
        (Huber(0.5), torch.float64, 12, 9.0, 48 << 10),
        (Pinball((0.2, 0.7)), torch.float64, 12, 9.0, 48 << 10),
        ("classification", torch.float64, 12, 9.0, 48 << 10),
        ("classification", torch.float32, 1, 9.0, 1 << 10),
        ("regression", torch.float64, 12, 0.3, 48 << 10),
        ("regression", torch.float32, 12, 9.0, 1600),
    ],
)
def test_cells_are_swept_as_by_the_exact_form(compiled, monkeypatch, task, real, most, budget, shared):
    """Losses, all ways to end, a model that is left alone; without shared memory, and some."""
    monkeypatch.setattr(sweeps, "kernel", compiled)
    monkeypatch.setattr(sweeps, "shared_memory", lambda device: shared)
    cells = wave(task, real)
    loss = {"classification": Hinge(), "regression": EpsilonInsensitive(0.1)}.get(task, task)
    for c, K in enumerate(K for batch in cells.matrices for K in batch):
        m, first = int(cells.sizes[c]), int(cells.first[c])
        K.diagonal()[:m] += loss.curvature / cells.cost[first : first + m]
    rule = SweepRule(loss, 0.01, most, budget)
    beta, found = CudaSweeps(real, rule, CPU)(cells)
    expected_beta, expected = HostSweeps(real, rule, CPU)(cells)
    tolerance = 1e-10 if real == torch.float64 else 1e-4
    close(found[..., 1:].numpy(), expected[..., 1:].numpy(), tolerance)
    close(beta.numpy(), expected_beta.numpy(), tolerance)
    np.testing.assert_array_equal(found[..., 0].numpy(), expected[..., 0].numpy())
    assert not beta[-1, 48 : 2 * 48].any() and not found[1, -1].any()
    assert 1 <= expected[..., 0].max() <= most
