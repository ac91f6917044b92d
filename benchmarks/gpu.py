"""MNIST-E on one NVIDIA card: 10^6 elastically deformed digits, made on the card, learnt there.

    python benchmarks/gpu.py --output folder [--part sweep ... cells] [--rows 1000000]

Prints times per phase beside the measured ceilings of the card, and the error after each pass; writes
gpu.json and gpu.png (test error against time, as the paper's Figure 2). Training digits are deformed
from MNIST's training digits, validation and test digits from two halves of its test digits. The part
"cells" learns COVTYPE (ASSET_DATA) in cells, on the card and on the CPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

import datasets as data
from asset_svm import AssetClassifier
from asset_svm.backends.base import Visits
from asset_svm.backends.cuda import driver as card_driver
from asset_svm.backends.cuda.backend import CudaBackend
from asset_svm.backends.cuda.blocks import BLOCK
from asset_svm.backends.cuda.maps import CardMap
from asset_svm.backends.cuda.products import gram_blocks
from asset_svm.backends.cuda.sweeps import CudaSweeps, Wave
from asset_svm.data import GivenOrder, OneVsRestTargets
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures
from asset_svm.features.cells import grouped
from asset_svm.kernels import Kernel
from asset_svm.losses import Hinge
from asset_svm.solvers import Average, Cut, FractionWindow, ModelAxis, SolverState
from asset_svm.solvers.cells import CellProblem
from asset_svm.steps import RobustStep, StrongStep
from datasets.deformation import SMOOTHNESS, STRENGTH

LAM, GAMMA = 1e-8, 0.01
"""The paper's, for MNIST-E."""
TIME_GOAL = 15.0
"""Seconds of a whole fit, in which the best settings are looked for."""
RESULTS: dict[str, Any] = {}


@contextmanager
def clock() -> Iterator[list[float]]:
    """A list that gains the seconds until the card is done."""
    spent: list[float] = []
    torch.cuda.synchronize()
    begun = time.perf_counter()
    yield spent
    torch.cuda.synchronize()
    spent.append(time.perf_counter() - begun)


def median_time(work: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds, warmed up."""
    work()
    times = []
    for _ in range(repeats):
        with clock() as spent:
            work()
        times += spent
    return sorted(times)[repeats // 2]


def ceilings() -> dict[str, float]:
    """What the card's own library reaches, on random numbers: Tflop/s and TB/s."""
    A = torch.randn(8192, 8192, device="cuda")
    H, big = A.half(), torch.empty(1 << 30, device="cuda")
    big.normal_()
    other = torch.empty_like(big)
    flops = 2 * 8192**3 / 1e12
    return {
        "float32": flops / median_time(lambda: A @ A),
        "float16": flops / median_time(lambda: torch.mm(H, H, out_dtype=torch.float32)),
        "copy": 2 * 4 * big.numel() / 1e12 / median_time(lambda: other.copy_(big)),
    }


def deformed(images: torch.Tensor, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``count`` elastic deformations of random images: (rows of 784, which image each was)."""
    generator = torch.Generator("cuda").manual_seed(seed)
    reach = int(3 * SMOOTHNESS)
    x = torch.arange(-reach, reach + 1, device="cuda", dtype=torch.float32)
    bell = torch.exp(-0.5 * (x / SMOOTHNESS) ** 2)
    bell = (bell / bell.sum()).view(1, 1, 1, -1)
    grid = torch.linspace(-1, 1, 29, device="cuda")[:28] + 1 / 28
    base = torch.stack(torch.meshgrid(grid, grid, indexing="xy"), dim=-1)
    out = torch.empty((count, 784), device="cuda")
    chosen = torch.randint(len(images), (count,), device="cuda", generator=generator)
    for start in range(0, count, 20_000):
        part = chosen[start : start + 20_000]
        noise = torch.rand((2 * len(part), 1, 28, 28), device="cuda", generator=generator) * 2 - 1
        smooth = torch.nn.functional.conv2d(noise, bell, padding=(0, reach))
        smooth = torch.nn.functional.conv2d(smooth, bell.transpose(2, 3), padding=(reach, 0))
        moves = smooth.view(len(part), 2, 28, 28).permute(0, 2, 3, 1) * (STRENGTH * 2 / 28)
        picture = images[part].view(-1, 1, 28, 28)
        moved = torch.nn.functional.grid_sample(picture, base + moves, align_corners=False)
        out[start : start + 20_000] = moved.view(-1, 784)
    return out, chosen


class Digits:
    """MNIST-E: rows on the card, targets on the host."""

    def __init__(self, rows: int):
        X, y = data.load("mnist")
        X = torch.from_numpy(X).cuda()
        self.X, chosen = deformed(X[:60_000], rows, 0)
        self.y = y[:60_000][chosen.cpu().numpy()]
        self.validation = self._held_out(X, y, 60_000, 1)
        self.test = self._held_out(X, y, 65_000, 2)
        self.own = X[60_000:], y[60_000:]

    @staticmethod
    def _held_out(X: torch.Tensor, y: np.ndarray, first: int, seed: int) -> tuple[torch.Tensor, Any]:
        rows, chosen = deformed(X[first : first + 5000], 20_000, seed)
        return rows, y[first : first + 5000][chosen.cpu().numpy()]


def warm_up(digits: Digits) -> None:
    """Have the kernels compiled: seconds, once on a machine, since they are kept on disk."""
    few = slice(0, 2000)
    with clock() as spent:
        for step in ("robust", "metric"):
            for precision in ("float32", "float16"):
                model = AssetClassifier(
                    device="cuda", n_components=300, max_iter=1, step=step, precision=precision
                )
                model.fit(digits.X[few], digits.y[few])
    RESULTS["compilation"] = spent[0]
    print(f"four kernels compiled, or found on disk, and used in {spent[0]:.1f} s", flush=True)


def error(decisions: np.ndarray, y: np.ndarray) -> float:
    """Per cent."""
    return float(100 * np.mean(np.where(decisions > 0, 1, -1) != y))


def sweep(digits: Digits, dimensions: list[int], limits: dict[str, float]) -> None:
    """One exact pass in the given order, both maps, both steps of the paper: time per phase."""
    m, rows = len(digits.y), []
    print(f"\nOne pass over {m} rows, given order; seconds (draw, features, pass; Gram a part of it)")
    for kind in ("fourier", "nystroem"):
        for d in dimensions:
            backend, kernel = CudaBackend(), Kernel("rbf", GAMMA)
            rng = np.random.default_rng(0)
            with clock() as draw:
                if kind == "fourier":
                    phi: Any = FourierFeatures.sample(kernel, 784, d, rng)
                else:
                    phi = backend.nystroem.sample(digits.X, kernel, d, rng)
                mapped = backend.rows(phi, digits.X)
            with clock() as features:
                mapped.fill()
            if kind == "fourier" and d == max(dimensions):
                _from_host(phi, digits)
            flops = 2.0 * m * 784 * d + (0 if kind == "fourier" else 2.0 * m * d * phi.dimension)
            rate = flops / features[0] / 1e12
            test_rows = torch.empty((20_000, mapped.columns), device="cuda")
            CardMap(phi, torch.float32, "float32", backend.device)(digits.test[0], test_rows)
            assert mapped.kept is not None
            gram = _gram_seconds(mapped.kept)
            for step in ("robust", "strong"):
                feasible = FeasibleSet(LAM**-0.5)
                rule: Any = (
                    RobustStep(feasible.size, 1.0, 0.03) if step == "robust" else StrongStep(LAM)
                )
                passes = 3 if d == max(dimensions) else 1
                targets = OneVsRestTargets((digits.y > 0).astype(int), 2)
                driver = backend.driver(
                    Visits(mapped, targets, GivenOrder(m), Cut(BLOCK), length=passes * m),
                    ModelAxis.build(Hinge(), [LAM], [feasible], [rule]),
                    SolverState.zeros(1, phi.dimension, np.float32),
                    Average(FractionWindow(0.5, passes * m)),
                )
                times, errors = [], []
                for _ in range(passes):
                    with clock() as spent:
                        driver.advance(m)
                    times += spent
                    coef = torch.from_numpy(driver.model()[0][0]).float().cuda()
                    f = (test_rows[:, : phi.dimension] @ coef).cpu().numpy()
                    errors.append(error(f, digits.test[1]))
                active = float(driver.take_progress().active[0]) / (passes * m)
                record = dict(
                    map=kind, d=d, rank=phi.dimension, step=step, draw=draw[0], features=features[0],
                    features_tflops=rate, of_float32=rate / limits["float32"], gram=gram,
                    passes=times, errors=errors, active=active,
                )  # fmt: skip
                rows.append(record)
                shown = " ".join(f"{t:.3f}" for t in times)
                print(
                    f"{kind:9s} d={d:5d} {step:7s} draw {draw[0]:.2f}  features {features[0]:.3f} "
                    f"({rate:5.0f} Tflop/s, {rate / limits['float32']:.1f} of float32)  pass {shown} "
                    f"(Gram {gram:.3f}, {active:.0%} active)  error {errors}",
                    flush=True,
                )
            mapped.close()
            del mapped, driver, phi
            torch.cuda.empty_cache()
    RESULTS["sweep"] = rows


def _from_host(phi: Any, digits: Digits) -> None:
    """The features once more, rows in pageable host memory; as halves, beside the first."""
    times = {}
    for name, X in (("card", digits.X), ("host", digits.X.cpu().numpy())):
        again = CudaBackend(precision="float16", memory_limit=1 << 36).rows(phi, X)
        with clock() as spent:
            again.fill()
        times[name] = spent[0]
        again.close()
    RESULTS["from_host"] = times
    print(f"features as halves: {times['card']:.3f} s; rows from the host: {times['host']:.3f} s")


def _gram_seconds(V: torch.Tensor) -> float:
    """Of all Gram blocks of a pass, from those of a chunk."""
    size = min(card_driver.CHUNK, len(V) // BLOCK * BLOCK)
    positions = torch.arange(size, device="cuda")
    return median_time(lambda: gram_blocks(V, positions, BLOCK), 3) * len(V) / size


def precision(digits: Digits, d: int) -> None:
    """What the split products are good for: errors against float64."""
    phi = FourierFeatures.sample(Kernel("rbf", GAMMA), 784, d, np.random.default_rng(0))
    X = digits.X[:1024]
    nu, omega = torch.from_numpy(phi.frequencies).cuda(), torch.from_numpy(phi.phases).cuda()
    exact = (2 / d) ** 0.5 * torch.cos(X.double() @ nu + omega)
    plain = (2 / d) ** 0.5 * torch.cos(X @ nu.float() + omega.float())
    found = {"plain float32 map": _relative(plain, exact)}
    for mode in ("float32", "float16"):
        V = torch.empty((1024, d), device="cuda")
        CardMap(phi, torch.float32, mode, X.device)(X, V)
        found[f"{mode} map"] = _relative(V, exact)
        kept = V.half() if mode == "float16" else V
        G = gram_blocks(kept, torch.arange(1024, device="cuda"), BLOCK)
        blocks = kept.double().view(-1, BLOCK, d)
        found[f"{mode} Gram"] = _relative(G, blocks @ blocks.transpose(1, 2))
    RESULTS["precision"] = found
    print(f"\nRelative errors against float64, d={d}:", {k: f"{v:.1e}" for k, v in found.items()})


def _relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


def fits(digits: Digits) -> None:
    """Whole fits through the estimator, everything counted: rows on the card, and on the host."""
    print("\nWhole fits, everything counted (seconds; test error, %)")
    host = digits.X.cpu().numpy()
    paper = dict(gamma=GAMMA, lam=LAM, step="robust", step_scale=0.03, sampling="given", max_iter=1)
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("fourier 16384, robust, card rows", digits.X, paper | dict(approximation="fourier")),
        ("fourier 16384, robust, host rows", host, paper | dict(approximation="fourier")),
        ("fourier 16384, robust, float16", digits.X,
         paper | dict(approximation="fourier", precision="float16")),
        ("nystroem 16384, robust, card rows", digits.X, paper),
        ("fourier 16384, metric, 3 passes", digits.X,
         dict(gamma=GAMMA, lam=LAM, max_iter=3, approximation="fourier")),
    ]  # fmt: skip
    rows = []
    for name, X, options in cases:
        rows.append(fit(name, digits, X, n_components=16_384, **options)[1])
    RESULTS["fits"] = rows


def fit(name: str, digits: Digits, X: Any, **options: Any) -> tuple[AssetClassifier, dict[str, Any]]:
    """One whole fit, and its errors."""
    model = AssetClassifier(device="cuda", random_state=0, fit_intercept=False, **options)
    with clock() as spent:
        model.fit(X, digits.y)
    record = {"name": name, "seconds": spent[0], "objective": model.objective_, "gap": model.dual_gap_}
    record["epochs"] = [line["seconds"] for line in model.history_]
    for part in ("validation", "test", "own"):
        rows, y = getattr(digits, part)
        record[part] = error(model.decision_function(rows), y)
    print(
        f"{name:40s} {spent[0]:6.2f} s  validation {record['validation']:.2f}  test "
        f"{record['test']:.2f}  MNIST's own {record['own']:.2f}  objective {model.objective_:.4g}",
        flush=True,
    )
    torch.cuda.empty_cache()
    return model, record


def best(digits: Digits, trials: list[dict[str, Any]]) -> None:
    """The lowest validation error among a few settings, and what it gives on the test digits.

    Settings that take longer than ``TIME_GOAL`` are shown, and chosen only where all do.
    """
    print("\nSettings chosen on the validation digits")
    rows = []
    for options in trials:
        name = " ".join(f"{k}={v}" for k, v in options.items())
        rows.append(fit(name, digits, digits.X, **options)[1] | {"options": options})
    quick = [row for row in rows if row["seconds"] <= TIME_GOAL]
    chosen = min(quick or rows, key=lambda row: row["validation"])
    RESULTS["best"] = {"trials": rows, "chosen": chosen}
    print(f"chosen: {chosen['name']}: test {chosen['test']:.2f} % in {chosen['seconds']:.1f} s")


def stream(digits: Digits) -> None:
    """Rows from a memory-mapped file, never kept: what the transfers cost beside the work."""
    options = dict(gamma=GAMMA, lam=LAM, approximation="fourier", n_components=8192, max_iter=1)
    options |= dict(step="robust", step_scale=0.03, sampling="given", memory_limit=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, digits.X.cpu().numpy())
        mapped = np.load(path, mmap_mode="r")
        print("\nRows computed anew at every visit (memory_limit=0), Fourier 8192")
        rows = [
            fit("rows on the card", digits, digits.X, **options)[1],
            fit("rows in a memory-mapped file", digits, mapped, **options)[1],
        ]
    RESULTS["stream"] = rows


def predictions(digits: Digits) -> None:
    """Rows a second, d = 16384."""
    m = len(digits.y)
    options = dict(
        gamma=GAMMA, lam=LAM, n_components=16_384, max_iter=1, step="robust", step_scale=0.03
    )
    few = slice(0, 100_000)
    found = {}
    for kind in ("fourier", "nystroem"):
        model = AssetClassifier(
            device="cuda", random_state=0, fit_intercept=False, approximation=kind, **options
        )
        model.fit(digits.X[few], digits.y[few])
        seconds = median_time(lambda model=model: model.decision_function(digits.X), 3)
        host = digits.X.cpu().numpy()
        from_host = median_time(lambda model=model, host=host: model.decision_function(host), 3)
        found[kind] = {"card": m / seconds, "host": m / from_host}
        print(f"prediction, {kind}: {m / seconds:.3g} rows/s, {m / from_host:.3g} from the host")
    RESULTS["prediction"] = found


class TimedSweeps(CudaSweeps):
    """Sweeps that note their seconds."""

    spent: ClassVar[list[float]] = []

    def __call__(self, wave: Wave) -> tuple[torch.Tensor, torch.Tensor]:
        """Solve, and wait for it."""
        with clock() as seconds:
            found = super().__call__(wave)
        self.spent += seconds
        return found


def cells(settings: list[dict[str, Any]]) -> None:
    """COVTYPE in cells: phases on the card, whole fits and predictions beside the CPU's."""
    X, y, X_test, y_test = data.paper_split("covtype", 0)
    few, rows = slice(0, 20_000), []
    for device in ("cuda", "cpu"):  # kernels are compiled
        AssetClassifier(gamma=128.0, n_cells="auto", device=device).fit(X[few], y[few]).predict(X_test)
    cell_phases(X, y)
    print(f"\nCOVTYPE, {len(y)} rows, {len(y_test)} test rows: cells, everything counted")
    for options in settings:
        for device in ("cuda", "cuda, rows on the card", "cpu"):
            there = "rows on" in device
            fitted, tested = (
                (torch.from_numpy(part).cuda() if there else part) for part in (X, X_test)
            )
            model = AssetClassifier(device=device[:4].strip(","), random_state=0, n_jobs=-1, **options)
            with clock() as spent:
                model.fit(fitted, y)
            with clock() as first:  # sends the model to the card
                decisions = model.decision_function(tested)
            again = median_time(lambda model=model, tested=tested: model.decision_function(tested), 3)
            record = dict(
                device=device, options=options, seconds=spent[0], cells=model.n_cells_,
                error=error(decisions, y_test), objective=model.objective_, gap=model.dual_gap_,
                sweeps=model.n_iter_, prediction=[first[0], again], rate=len(y_test) / again,
            )  # fmt: skip
            rows.append(record)
            print(
                f"{device:24s} {options}: {spent[0]:.2f} s  error {record['error']:.2f} %  objective "
                f"{model.objective_:.5f}  gap {model.dual_gap_:.5f}  {model.n_cells_} cells  "
                f"{model.n_iter_} sweeps  predicts {record['rate']:.3g} rows/s, the first time in "
                f"{first[0]:.2f} s",
                flush=True,
            )
    RESULTS["cells"] = rows


def cell_phases(X: np.ndarray, y: np.ndarray) -> None:
    """Where the time of a fit goes."""
    problem = CellProblem(
        Kernel("rbf", 128.0), X, OneVsRestTargets((y > 0).astype(np.intp), 2), Hinge(),
        np.full(len(y), 10.0), 0.1 / len(y), intercept=False,
    )  # fmt: skip
    backend = CudaBackend(sweeps=TimedSweeps)
    with clock() as upload:
        there = backend.cells(X)
    with clock() as growth:
        partition, of = there.grow(X, round(len(y) / 1000), np.random.default_rng(0))
    groups = grouped(np.arange(len(y)), of, partition.n_cells)
    TimedSweeps.spent.clear()
    with clock() as solution:
        found = there.solve(problem, groups, range(len(groups)))
    swept = sum(TimedSweeps.spent)
    there.close()
    sizes = np.array([len(group) for group in groups])
    phases = dict(
        upload=upload[0], growth=growth[0], sweeps=swept, matrices_and_rest=solution[0] - swept,
        waves=len(TimedSweeps.spent), matrix_bytes=int(4 * (sizes**2).sum()), largest=int(sizes.max()),
        sweeps_at_most=max(one.sweeps for one in found), hard=sum(not one.converged for one in found),
    )  # fmt: skip
    RESULTS["cell_phases"] = phases
    print("\nCOVTYPE in cells, seconds:", {k: round(v, 4) for k, v in phases.items()}, flush=True)


def draw_figure(path: Path) -> None:
    """Test error against seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for kind, marker in (("fourier", "o"), ("nystroem", "s")):
        for step, style in (("robust", "-"), ("strong", "--")):
            rows = [r for r in RESULTS["sweep"] if r["map"] == kind and r["step"] == step]
            x = [r["draw"] + r["features"] + r["passes"][0] for r in rows]
            axes.plot(x, [r["errors"][0] for r in rows], style, marker=marker, label=f"{kind}, {step}")
            for r, seconds in zip(rows, x, strict=True):
                axes.annotate(str(r["d"]), (seconds, r["errors"][0]), fontsize=7)
    axes.plot([7.2 * 3600], [2.7], "k*", label="the paper, d = 16384")
    axes.set(
        xscale="log", yscale="log", xlabel="seconds: draw, features, one pass", ylabel="test error, %"
    )
    axes.set_title("MNIST-E on one card")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)


CELLS: list[dict[str, Any]] = [
    dict(gamma=128.0, C=10.0, n_cells="auto"),
    dict(gamma=128.0, C=10.0, n_cells="auto", n_partitions=4),
]
TRIALS: list[dict[str, Any]] = [
    dict(gamma=0.03, lam=1e-8, n_components=16_384, max_iter=6),
    dict(gamma=0.04, lam=3e-9, n_components=32_768, max_iter=10, precision="float16"),
    dict(
        gamma=0.04, lam=3e-9, n_components=32_768, max_iter=8, precision="float16", landmarks="margin"
    ),
    dict(
        gamma=0.03, lam=3e-9, n_components=32_768, max_iter=8, precision="float16", landmarks="margin"
    ),
    dict(
        gamma=0.04, lam=3e-9, n_components=32_768, max_iter=6, precision="float16", landmarks="kmeans"
    ),
    dict(gamma=0.03, C=10.0, n_cells=100, n_partitions=7),
]


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("sweep", "precision", "fit", "best", "stream", "predict", "cells")
    parser.add_argument("--part", nargs="*", default=parts, choices=parts)
    parser.add_argument("--output", type=Path, default=Path("."))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--trials", type=json.loads, default=TRIALS)
    arguments = parser.parse_args()
    limits = ceilings()
    RESULTS["card"], RESULTS["ceilings"] = torch.cuda.get_device_name(), limits
    print(RESULTS["card"], {k: round(v, 1) for k, v in limits.items()}, flush=True)
    digits: Any = None
    if set(arguments.part) - {"cells"}:
        with clock() as spent:
            digits = Digits(arguments.rows)
        print(f"MNIST-E made in {spent[0]:.1f} s", flush=True)
        warm_up(digits)
    work = dict(
        sweep=lambda: sweep(digits, arguments.dimensions, limits),
        precision=lambda: precision(digits, max(arguments.dimensions)),
        fit=lambda: fits(digits),
        best=lambda: best(digits, arguments.trials),
        stream=lambda: stream(digits),
        predict=lambda: predictions(digits),
        cells=lambda: cells(CELLS),
    )
    try:
        for part in arguments.part:
            work[part]()
    finally:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "gpu.json").write_text(json.dumps(RESULTS, indent=1))
    if "sweep" in arguments.part:
        draw_figure(arguments.output / "gpu.png")


if __name__ == "__main__":
    main()
