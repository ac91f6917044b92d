"""Wall time beside the peers', and beside what the machine can do.

    ASSET_DATA=folder python benchmarks/speed.py [--threads 1] [--sets ...] [--peers ...]

One process, one thread count for everybody, compiled code warm. Times of ours are those of the first
run whose test error is at most the peer's plus 0.05 points (exact solvers: plus 0.3), over the epochs
1, 2, 3, 5, 10, 20, 40; medians of ``--repeats`` fits with different seeds. Slow peers run once.
Results go to a JSON file with commit, CPU, threads and versions.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import datasets as data
from asset_svm import AssetClassifier
from asset_svm.backends.cpu import CpuBackend, CpuRows
from asset_svm.data import GivenOrder, OneVsRestTargets
from asset_svm.feasible import FeasibleSet
from asset_svm.losses import Hinge
from asset_svm.solvers import Average, Driver, ModelAxis, NoWindow, SolverState
from asset_svm.steps import RobustStep

EPOCHS = (1, 2, 3, 5, 10, 20, 40)
SLOW = ("linearsvc", "svc", "sklearnex")
PEERS = ("sgd", "fourier_sgd", *SLOW)
ENDS = {
    "linearsvc": ("ijcnn", "mnist", "adult"),
    "svc": ("ijcnn", "adult"),
    "sklearnex": ("ijcnn", "adult"),
}
"""The sets on which slow peers end within minutes."""
OURS: dict[tuple[str, str], dict[str, Any]] = {
    ("adult", "svc"): dict(n_components=256),
    ("adult", "sklearnex"): dict(n_components=256),
}
"""Other settings than s = 1024, against exact solvers, whose error fewer landmarks reach as well."""


def peer(name: str, paper: data.Paper, m: int, seed: int) -> Any:
    """An estimator for (PL), or for the exact SVM, with the paper's lam and sigma."""
    sgd = dict(alpha=paper.lam, max_iter=20, tol=None, average=True, random_state=seed)
    C = 1.0 / (paper.lam * m)
    if name == "sgd":
        features = Nystroem(gamma=paper.sigma, n_components=1024, random_state=seed)
        return make_pipeline(features, SGDClassifier(**sgd))
    if name == "fourier_sgd":
        features = RBFSampler(gamma=paper.sigma, n_components=1024, random_state=seed)
        return make_pipeline(features, SGDClassifier(**sgd))
    if name == "linearsvc":
        features = Nystroem(gamma=paper.sigma, n_components=1024, random_state=seed)
        return make_pipeline(features, LinearSVC(loss="hinge", C=C, random_state=seed))
    if name == "svc":
        return SVC(C=C, gamma=paper.sigma, cache_size=1000)
    import sklearnex.svm

    return sklearnex.svm.SVC(C=C, gamma=paper.sigma, cache_size=1000)


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and the result."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fit()
    return time.perf_counter() - begun, result


def error(model: Any, X: Any, y: np.ndarray) -> float:
    """Per cent."""
    return 100.0 * (1.0 - model.score(X, y))


def ours(paper: data.Paper, seed: int, epochs: int, threads: int, **options: Any) -> AssetClassifier:
    """Our estimator for the same problem."""
    settings = dict(gamma=paper.sigma, lam=paper.lam, n_components=1024, max_iter=epochs)
    return AssetClassifier(**(settings | options), random_state=seed, n_jobs=threads)


def against(
    name: str, rival: str, threads: int, repeats: int, options: dict[str, Any]
) -> dict[str, Any]:
    """One peer on one set: medians, and the ratio of times."""
    X, y, X_test, y_test = data.paper_split(name, 0)
    paper = data.PAPER[name]
    slack = 0.3 if rival in ("svc", "sklearnex") else 0.05
    runs = 1 if rival in SLOW else repeats
    peers = []
    for seed in range(runs):
        seconds, model = timed(lambda seed=seed: peer(rival, paper, len(y), seed).fit(X, y))
        peers.append((seconds, error(model, X_test, y_test)))
    peer_seconds, peer_error = (float(v) for v in np.median(peers, axis=0))
    for epochs in EPOCHS:
        found = []
        for seed in range(repeats):
            seconds, model = timed(
                lambda seed=seed, epochs=epochs: ours(paper, seed, epochs, threads, **options).fit(X, y)
            )
            found.append((seconds, error(model, X_test, y_test)))
        seconds, ours_error = (float(v) for v in np.median(found, axis=0))
        if ours_error <= peer_error + slack:
            break
    return dict(
        set=name, peer=rival, peer_seconds=peer_seconds, peer_error=peer_error, seconds=seconds,
        error=ours_error, epochs=epochs, ratio=peer_seconds / seconds,
        reached=ours_error <= peer_error + slack,
    )  # fmt: skip


def best_of(function: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest time."""
    return min(timed(function)[0] for _ in range(repeats))


def machine(name: str, threads: int) -> dict[str, Any]:
    """The map against sgemm at its own shapes; the loop against the read bandwidth."""
    X, y, _, _ = data.paper_split(name, 0)
    paper = data.PAPER[name]
    X, y = X[:32768], y[:32768]
    model = ours(paper, 0, 1, threads).fit(X[:4096], y[:4096])
    phi = model.feature_map_
    m, n, s, d = len(X), X.shape[1], phi.basis_dimension, phi.dimension
    rows = CpuRows(phi, X, 512, keep=True)
    rows.fetch(np.arange(m))  # pages of memory are there from now on

    def forget() -> None:
        rows.seen[:] = False
        for start in range(0, m, 512):
            rows.fetch(np.arange(start, min(start + 512, m)))

    flops = 2.0 * m * s * (n + d)
    mapped = best_of(forget, 3)
    block, landmarks = X[:512].copy(), np.ascontiguousarray(X[:s].T)
    values, projection = np.ones((512, s), np.float32), np.ones((s, d), np.float32)
    floor = best_of(lambda: (block @ landmarks, values @ projection), 30) * m / 512
    V = rows.kept
    assert V is not None
    loss = Hinge()
    ball = FeasibleSet(loss.radius(paper.lam, 1.0), None)
    driver = Driver(
        rows,
        OneVsRestTargets((y > 0).astype(np.intp), 2),
        GivenOrder(m),
        ModelAxis.build(loss, [paper.lam], [ball], [RobustStep(ball.size, 1.0, 0.1)]),
        SolverState.zeros(1, d, V.dtype),
        Average(NoWindow()),
        cut=CpuBackend().cut(),
    )
    driver.advance(3 * m)
    loop = best_of(lambda: driver.advance(m), 5)
    read = best_of(lambda: float(_read(V.reshape(-1))), 5)
    return dict(
        set=name, map_gflops=flops / mapped / 1e9, sgemm_gflops=flops / floor / 1e9,
        map_share=floor / mapped, loop_gb=m * d * 4 / loop / 1e9, read_gb=V.nbytes / read / 1e9,
        loop_share=(m * d * 4 / loop) / (V.nbytes / read),
        active=float(driver.take_progress().active[0] / (3 * m + 6 * m)),
    )  # fmt: skip


@numba.njit(fastmath=True)
def _read(values: np.ndarray) -> float:
    """The sum: as fast as one core reads."""
    total = np.float32(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


def stamp(threads: int) -> dict[str, Any]:
    """Where and with what these numbers were measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    versions = {m.__name__: m.__version__ for m in (np, scipy, sklearn, numba)}
    return dict(commit=commit, cpu=cpu, threads=threads, python=platform.python_version(), **versions)


def main() -> None:
    """Print the tables, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="ijcnn,mnist,covtype,adult")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--components", type=int, default=1024, help="our s, but for ``OURS``")
    parser.add_argument("--machine", action="store_true", help="only against the machine")
    parser.add_argument("--output", default="speed.json")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    options = dict(n_components=arguments.components)
    print(stamp(arguments.threads))
    with threadpool_limits(arguments.threads):
        X, y, _, _ = data.paper_split("adult", 0)
        ours(data.PAPER["adult"], 0, 1, arguments.threads).fit(X[:5000], y[:5000])  # compiles
        for name in arguments.sets.split(","):
            results.append(machine(name, arguments.threads))
            print({k: v if isinstance(v, str) else round(v, 3) for k, v in results[-1].items()})
            for rival in [] if arguments.machine else arguments.peers.split(","):
                if name not in ENDS.get(rival, (name,)):
                    continue
                chosen = options | OURS.get((name, rival), {})
                found = against(name, rival, arguments.threads, arguments.repeats, chosen)
                results.append(found | {"settings": chosen})
                print(
                    "{set:8} {peer:12} {peer_seconds:8.2f} s {peer_error:6.2f} %   ours "
                    "{seconds:6.2f} s {error:6.2f} % ({epochs} epochs, s = {s})   {ratio:6.1f}x".format(
                        s=chosen["n_components"], **results[-1]
                    )
                    + ("" if results[-1]["reached"] else "   NOT REACHED"),
                    flush=True,
                )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process {peak:.0f} MB")
    Path(arguments.output).write_text(
        json.dumps(dict(stamp=stamp(arguments.threads), settings=options, results=results), indent=1)
    )


if __name__ == "__main__":
    main()
