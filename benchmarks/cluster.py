"""COVTYPE on a cluster of processes of this machine, beside the local backend.

    python benchmarks/cluster.py [--workers 1,2] [--rows 464809] [--components 1024] [--epochs 10]
                                 [--shards 2,8 --rounds 1,10]

The paper's split and parameters. For each number of workers: one shard a worker, rows loaded first and
not timed. Time is that of ``fit``, with the seconds of processor time of the busiest worker and of the
client beside it: what the wall clock would show on a machine with nothing else to do. Bytes are what a
worker and the client exchange a round, pickled. Memory is the largest of a worker during the fit less
what it held before its rows came, beside shard + mapped rows + 300 MB. At the end, what was aimed at.

With ``--shards``, also how objective and error depend on the number of shards and on the rounds an
epoch, on the last of the clusters.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Result:
    """What one run came to; times in seconds, memory in MB, errors in per cent."""

    seconds: float
    worker_cpu: float
    client_cpu: float
    objective: float
    error: float
    rounds: int = 0
    round_bytes: int = 0
    epoch_bytes: int = 0
    memory: float = 0.0
    allowed: float = 0.0


@contextmanager
def cluster_of(workers: int) -> Iterator[Client]:
    """So many processes of one thread."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as processes,
        Client(processes) as client,
    ):
        client.wait_for_workers(workers, timeout=120)
        yield client


def placed(client: Client, X: Any, y: Any, parts: int) -> tuple[da.Array, da.Array]:
    """Rows on the workers, in so many partitions that go round them."""
    workers = sorted(client.scheduler_info()["workers"])
    pieces = np.array_split(X, parts)
    futures = [
        client.scatter(piece, workers=[workers[i % len(workers)]], hash=False)
        for i, piece in enumerate(pieces)
    ]
    wait(futures)
    rows = [
        da.from_delayed(future, piece.shape, np.float32)
        for future, piece in zip(futures, pieces, strict=True)
    ]
    labels = [da.from_array(part, chunks=len(part)) for part in np.array_split(y, parts)]
    return da.concatenate(rows), da.concatenate(labels)


def local(split: Any, settings: dict[str, Any]) -> Result:
    """The local backend."""
    X, y, X_test, y_test = split
    AssetClassifier(**(settings | dict(n_components=64, max_iter=1))).fit(X[:4000], y[:4000])
    begun, cpu = time.perf_counter(), time.process_time()
    model = AssetClassifier(**settings).fit(X, y)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    error = 100.0 * (1.0 - model.score(X_test, y_test))
    print(
        f"local:     {seconds:7.1f} s (processor: {cpu:.1f}); objective {model.objective_:.5f}, "
        f"error {error:.2f} %",
        flush=True,
    )
    return Result(seconds, cpu, 0.0, model.objective_, error)


def distributed(workers: int, split: Any, settings: dict[str, Any]) -> Result:
    """One fit with so many workers."""
    X, y, X_test, y_test = split
    with cluster_of(workers) as client:
        warm(settings, client)
        held = client.run(used)
        rows, targets = placed(client, X, y, workers)
        before = client.run(used)
        begun, own = time.perf_counter(), used()[0]
        model = DaskAssetClassifier(**settings).fit(rows, targets)
        seconds, own = time.perf_counter() - begun, used()[0] - own
        after = client.run(used)
        busiest = max(after[w][0] - before[w][0] for w in after)
        memory = max(after[w][1] - held[w][1] for w in after)
    width = max(model.n_components_, model.dual_coef_.shape[1])
    chunk = -(-len(y) // workers)
    allowed = chunk * (X.shape[1] * 4 + 16 + width * 4) / 2**20 + 300
    found = Result(
        seconds,
        busiest,
        own,
        model.objective_,
        100.0 * (1.0 - model.to_local().score(X_test, y_test)),
        model.n_rounds_,
        max(weight for weight, _ in weights),
        max(snapshot for _, snapshot in weights),
        memory,
        allowed,
    )
    weights.clear()
    print(
        f"{workers} workers: {seconds:7.1f} s (processor: worker {busiest:.1f}, client {own:.1f}); "
        f"objective {found.objective:.5f}, error {found.error:.2f} %; {found.rounds} rounds of "
        f"{found.round_bytes} bytes a worker, {found.epoch_bytes} more an epoch; {memory:.0f} MB "
        f"(allowed {allowed:.0f})",
        flush=True,
    )
    return found


def tell_aims(results: dict[int, Result], alone: Result | None) -> None:
    """What was aimed at, and what came of it."""
    first = results[min(results)]
    for workers, found in results.items():
        print(f"{workers} workers:")
        if found is not first:
            wall = found.seconds / first.seconds
            cpu = (found.worker_cpu + found.client_cpu) / (first.worker_cpu + first.client_cpu)
            print(f"  wall clock {wall:.2f} of {min(results)} workers' (two of one: at most 0.65)")
            print(f"  processor time, worker and client one after the other, {cpu:.2f} of theirs")
        if alone is not None:
            apart = found.error - alone.error
            print(f"  error {apart:+.2f} points from the local backend's (at most 0.2)")
        print(f"  {found.round_bytes} bytes a worker and round (at most 65536)")
        print(f"  {found.memory:.0f} MB in the largest worker (shard + V + 300: {found.allowed:.0f})")


def tell_dependence(
    workers: int, split: Any, settings: dict[str, Any], shards: list[int], rounds: list[int]
) -> None:
    """Objective and error by the number of shards and the rounds an epoch."""
    X, y, X_test, y_test = split
    with cluster_of(workers) as client:
        warm(settings, client)
        for count in shards:
            rows, targets = placed(client, X, y, count)
            for each in rounds:
                model = DaskAssetClassifier(**settings, rounds_per_epoch=each).fit(rows, targets)
                error = 100.0 * (1.0 - model.to_local().score(X_test, y_test))
                print(
                    f"{count} shards, {each} rounds an epoch: objective {model.objective_:.5f}, "
                    f"error {error:.2f} %",
                    flush=True,
                )


def numbers(text: str) -> list[int]:
    """1,2 as numbers."""
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    """The local backend, then one line a number of workers, then the aims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=numbers, default=[1, 2])
    parser.add_argument("--rows", type=int, default=data.PAPER["covtype"].train)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--no-local", action="store_true")
    parser.add_argument("--shards", type=numbers, default=[])
    parser.add_argument("--rounds", type=numbers, default=[1, 10])
    arguments = parser.parse_args()
    X, y, X_test, y_test = data.paper_split("covtype", 0)
    split = (X[: arguments.rows], y[: arguments.rows], X_test, y_test)
    paper = data.PAPER["covtype"]
    settings: dict[str, Any] = dict(
        gamma=paper.sigma, lam=paper.lam * paper.train / len(split[1]),
        n_components=arguments.components, max_iter=arguments.epochs, random_state=0,
    )  # fmt: skip
    print(f"{len(split[1])} rows; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
    alone = None if arguments.no_local else local(split, settings)
    fit.ShardedRun = Counted  # type: ignore[misc]
    results = {count: distributed(count, split, settings) for count in arguments.workers}
    tell_aims(results, alone)
    if arguments.shards:
        tell_dependence(max(arguments.workers), split, settings, arguments.shards, arguments.rounds)


if __name__ == "__main__":
    main()
