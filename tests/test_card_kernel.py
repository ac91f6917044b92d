"""The card's kernel itself, compiled for the host, against the row form: no card needed, but g++."""

import ctypes
import shutil
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the engine of the card needs torch (extra cuda)")

from asset_svm.engines.cuda import blocks  # noqa: E402
from card import CPU  # noqa: E402
from emulation import compile_kernel  # noqa: E402
from test_card import close, drivers, problem  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile the kernel")


class HostKernel:
    """Launches the kernel's one thread block, here and now."""

    def __init__(self, launch):
        self.launch = launch

    def reserve(self, shared):
        assert shared <= 1 << 17

    def __call__(self, arguments, grid, threads, *, cooperative, shared):
        assert (grid, threads, cooperative) == (1, 256, True)
        self.launch(ctypes.byref(arguments))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Kernels by their macros, each compiled once."""
    folder, found = tmp_path_factory.mktemp("kernels"), {}

    def kernel(file, name, device, **defines):
        key = tuple(defines.items())
        if key not in found:
            found[key] = HostKernel(compile_kernel(folder, **defines))
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
