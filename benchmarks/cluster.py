"""COVTYPE on a cluster of processes of this machine, beside the local engine.

    python benchmarks/cluster.py [--workers 1,2] [--rows 464809] [--components 1024] [--epochs 10]

The paper's split and parameters. For each number of workers: one shard a worker, rows loaded first and
not timed. Time is that of ``fit``, with the seconds of processor time of the busiest worker and of the
client beside it: what the wall clock would show on a machine with nothing else to do. Bytes are what a
worker and the client exchange a round, pickled. Memory is the largest of a worker during the fit less
what it held before its rows came, beside shard + mapped rows + 300 MB.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import datasets as data
from asset_svm import AssetClassifier
from asset_svm.dask import DaskAssetClassifier, cluster, fit


def used() -> tuple[float, float]:
    """Seconds of processor time of this process, and the most MB that it ever held."""
    times = os.times()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return times.user + times.system, int(line.split()[1]) / 1024
    raise SystemExit("memory is read from /proc, which this system has not")


def sent(message: Any) -> int:
    """Bytes of a message between the client and a worker."""
    return len(pickle.dumps(message, protocol=5))


class Counted(cluster.ShardedRun):
    """A run that weighs its messages."""

    def round(self, r: int, mean: Any) -> Any:
        """A round, and the bytes of the mean as it was sent, of the largest report and snapshot."""
        before = list(self.snapshots)
        reports = super().round(r, mean)
        new = [s for s, old in zip(self.snapshots, before, strict=True) if s is not old]
        snapshot = max((sent(s) for s in new), default=0)
        weights.append((sent(self.means[-1]) + max(sent(report) for report in reports), snapshot))
        return reports


weights: list[tuple[int, int]] = []


def warm(settings: dict[str, Any], client: Client) -> None:
    """Load what is compiled into every process."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 54), dtype=np.float32)
    y = np.where(X[:, 0] > 0.5, 1, -1)
    count = len(client.scheduler_info()["workers"])
    chunk = 4000 // count
    small = settings | dict(n_components=64, max_iter=1)
    DaskAssetClassifier(**small).fit(
        da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)
    )


def one(workers: int, split: Any, settings: dict[str, Any]) -> None:
    """One fit with so many workers."""
    X, y, X_test, y_test = split
    chunk = -(-len(y) // workers)
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as processes,
        Client(processes) as client,
    ):
        client.wait_for_workers(workers, timeout=120)
        warm(settings, client)
        held = client.run(used)
        scattered = [
            client.scatter(part, workers=[worker], hash=False)
            for worker, part in zip(sorted(held), np.array_split(X, workers), strict=True)
        ]
        labels = np.array_split(y, workers)
        shapes = [part.shape for part in np.array_split(X, workers)]
        rows = da.concatenate(
            [
                da.from_delayed(future, shape, np.float32)
                for future, shape in zip(scattered, shapes, strict=True)
            ]
        )
        targets = da.concatenate([da.from_array(part, chunks=len(part)) for part in labels])
        wait(scattered)
        before = client.run(used)
        begun, own = time.perf_counter(), used()[0]
        model = DaskAssetClassifier(**settings).fit(rows, targets)
        seconds, own = time.perf_counter() - begun, used()[0] - own
        after = client.run(used)
        busiest = max(after[w][0] - before[w][0] for w in after)
        memory = max(after[w][1] - held[w][1] for w in after)
    width = max(model.n_components_, model.dual_coef_.shape[1])
    allowed = chunk * (X.shape[1] * 4 + 16 + width * 4) / 2**20 + 300
    bytes_of_round = max(weight for weight, _ in weights)
    bytes_of_epoch = max(snapshot for _, snapshot in weights)
    weights.clear()
    error = 100.0 * (1.0 - model.to_local().score(X_test, y_test))
    print(
        f"{workers} workers: {seconds:7.1f} s (processor: worker {busiest:.1f}, client {own:.1f}); "
        f"objective {model.objective_:.5f}, error {error:.2f} %; {model.n_rounds_} rounds of "
        f"{bytes_of_round} bytes a worker, {bytes_of_epoch} more an epoch; {memory:.0f} MB "
        f"(allowed {allowed:.0f})",
        flush=True,
    )


def main() -> None:
    """The local engine, then one line a number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rows", type=int, default=data.PAPER["covtype"].train)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--no-local", action="store_true")
    arguments = parser.parse_args()
    X, y, X_test, y_test = data.paper_split("covtype", 0)
    split = (X[: arguments.rows], y[: arguments.rows], X_test, y_test)
    paper = data.PAPER["covtype"]
    settings: dict[str, Any] = dict(
        gamma=paper.sigma, lam=paper.lam * paper.train / len(split[1]),
        n_components=arguments.components, max_iter=arguments.epochs, random_state=0,
    )  # fmt: skip
    print(f"{len(split[1])} rows; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
    if not arguments.no_local:
        AssetClassifier(**(settings | dict(n_components=64, max_iter=1))).fit(X[:4000], y[:4000])
        begun, cpu = time.perf_counter(), time.process_time()
        model = AssetClassifier(**settings).fit(*split[:2])
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        error = 100.0 * (1.0 - model.score(X_test, y_test))
        print(
            f"local:     {seconds:7.1f} s (processor: {cpu:.1f}); objective {model.objective_:.5f}, "
            f"error {error:.2f} %",
            flush=True,
        )
    fit.ShardedRun = Counted  # type: ignore[misc]
    for count in arguments.workers.split(","):
        one(int(count), split, settings)


if __name__ == "__main__":
    main()
