"""The client's side of a run: which worker has which shard, rounds, and what to do when one is lost.

A shard has a home, the worker that holds its rows and its run; Dask may not move its tasks. When a home
is gone, the shard gets another: its rows are computed again from the user's collections, and its run
is repeated from the last snapshot by the mean models since, which the client keeps. None of this is
seen in the model. When nothing can be done the run ends with a ``ClusterError``.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, futures_of
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError

from asset_svm import clock
from asset_svm.dask.exceptions import ClusterError, GivenUpError
from asset_svm.dask.partitions import ShardRows, join
from asset_svm.dask.work import Assignment, Past, Place, run_certificate, run_round
from asset_svm.problem import CertificateSums
from asset_svm.training.shards import Model, Plan, Report, ShardSnapshot

POLL = 0.5
"""Seconds between two looks at the cluster."""
NAP = 0.002
"""Seconds between the first two looks at futures."""
LATE = 0.02
"""The part of the time that futures took by which their end may be noticed later. Workers may be on
the same machine, and want its processors."""
ANSWER = 5.0
"""Seconds that one look may take: a scheduler that stands still keeps its connections."""
GRACE = 20.0
"""Seconds that a scheduler may be out of reach."""
STARTING = 60.0
"""Seconds that a cluster may be without workers: new ones take their time."""
PAUSE = 0.8
"""Dask stops a worker that takes such a part of its memory limit."""
PROCESS_BYTES = 150_000_000
"""The bytes that a worker takes without any rows."""
MOST_MOVES = 5
"""One shard may lose its home so many times."""
GONE = (OSError, KeyError)
"""Errors of sending to a worker that is no more, whether the scheduler knows or not."""
LOST = (KilledWorker, FutureCancelledError, FuturesCancelledError, CommClosedError)
"""Errors of futures whose results, or workers, are gone."""


class Cluster:
    """A cluster, as seen by a client that waits for it and says when it is gone."""

    def __init__(self, client: Client):
        self.client, self.address = client, client.scheduler.address
        self._missed: float | None = None
        self._generation = client.generation

    def workers(self) -> dict[str, int]:
        """The threads of each worker; nothing while there is none, or no answer."""
        self.check_generation()
        client, found = self.client, None
        if client.status == "running":
            try:
                found = client.sync(client.scheduler.ncores, callback_timeout=ANSWER)
            except OSError:  # timeouts among them: a scheduler may stand still
                found = None
        if found:
            self.heard()
            return dict(found)
        now = clock.now()
        self._missed = self._missed or now
        if client.status in ("closed", "closing"):
            raise self._gone()
        if now - self._missed > (GRACE if found is None else STARTING):
            if found is None:
                raise self._gone()
            raise ClusterError(
                f"The cluster of {self.address} has had no worker for {STARTING:.0f} s; "
                "start workers and fit again."
            )
        return {}

    def some_workers(self) -> dict[str, int]:
        """The threads of each worker, as soon as there is one."""
        while not (found := self.workers()):
            time.sleep(POLL)
        return found

    def thread_memory(self) -> int:
        """The bytes that one thread of any worker may take."""
        workers = self.wait(self.client.scheduler_info, n_workers=-1)["workers"].values()
        limits = [w["memory_limit"] // w["nthreads"] for w in workers if w["memory_limit"]]
        return min(limits, default=1 << 62)

    def heard(self) -> None:
        """Note that the cluster has answered."""
        self._missed = None

    def check_generation(self) -> None:
        """Raise if ``client.restart()`` was called: whatever was on the cluster is not there any more.

        Tasks that are sent in the middle of it are dropped without a word.
        """
        if self.client.generation != self._generation:
            raise ClusterError(
                f"The cluster of {self.address} was restarted (client.restart); the run ends without "
                "a model: fit again."
            )

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"The scheduler {self.address} does not answer; the run ends without a model: start "
            "the cluster again and fit again."
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Turn whatever Dask raises inside because it was closed into one sentence."""
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            self.check_generation()
            if self.client.status == "running":
                raise
            raise self._gone() from error

    def wait(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What a function of Dask returns that would wait without end for a cluster that is gone."""
        answer: list[Any] = []

        def run() -> None:
            try:
                answer.extend((True, function(*args, **options)))
            except BaseException as error:
                answer.extend((False, error))

        thread = threading.Thread(target=run, daemon=True, name="asset-wait")
        thread.start()
        thread.join(POLL)
        while thread.is_alive():
            self.workers()
            thread.join(POLL)
        well, value = answer
        if not well:
            raise value
        return value

    def gather(self, futures: Sequence[Future], told: Callable[[Any], None] | None = None) -> list[Any]:
        """The results of all, in order, while there is a cluster; each is told as it comes."""
        left = list(futures)
        while left:
            self.workers()
            done = finished(left)
            left = [future for future in left if future not in done]
            if told is not None:
                for future in done:
                    told(self.result(future))
        return [self.result(future) for future in futures]

    def result(self, future: Future) -> Any:
        """The result of a future that is done.

        Where its workers die again and again there is a ``GivenUpError``, a ``ClusterError`` where it
        is lost otherwise.
        """
        try:
            return self.wait(future.result)
        except LOST as error:
            self.check_generation()
            if self.client.status != "running":
                raise self._gone() from error
            kind = GivenUpError if isinstance(error, KilledWorker) else ClusterError
            raise kind(
                f"Dask gave up {future.key}: {error}. Rows that were scattered, or whose workers die "
                "again and again, cannot be computed anew; persist collections that know their source."
            ) from error


def finished(futures: Sequence[Future]) -> set[Future]:
    """The futures that are done, failed or given up; none if nothing happens until the next look."""
    begun = clock.now()
    while True:
        found = {future for future in futures if future.done()}
        waited = clock.now() - begun
        if found or waited > POLL:
            return found
        time.sleep(max(NAP, LATE * waited))


@dataclass(eq=False)
class Home:
    """Where a shard is: its rows, its run and the assignment, on one worker."""

    worker: str
    part: Future
    place: Future
    assignment: Future


class ShardedRun:
    """A run on a cluster.

    Parameters
    ----------
    shards : list of ShardRows
        Their ``loaded`` parts are let go of when the shards have homes.
    dtype : dtype
        The type of the rows of all shards.
    """

    def __init__(
        self,
        cluster: Cluster,
        shards: Sequence[ShardRows],
        assignment: Assignment,
        dtype: np.dtype[Any],
    ):
        self.cluster, self.client, self.shards, self.dtype = cluster, cluster.client, shards, dtype
        self.assignment, self.snapshots = assignment, [ShardSnapshot()] * len(shards)
        self.id = uuid4().hex[:8]
        self.means: list[Model | None] = []
        self.moves = Counter[int]()
        self._assignments: dict[str, Future] = {}
        workers = sorted(cluster.some_workers())
        self.homes: dict[int, Home] = {}
        load = dict.fromkeys(workers, 0)
        where = cluster.wait(cluster.client.who_has, futures_of([shard.loaded for shard in shards]))
        for number in sorted(range(len(shards)), key=lambda i: -shards[i].n_rows):
            shard, least = shards[number], min(load.values())
            near = Counter(w for part in shard.loaded for w in where.get(part.key, ()))
            # As many rows on each worker as can be; among equals, where the rows lie already.
            fair = [w for w in workers if load[w] <= least + shard.n_rows // 10]
            worker = max(fair, key=lambda w: (near[w], -load[w], w))
            load[worker] += shard.n_rows
            self._check_room(number, worker)
            try:
                self.homes[number] = self._settle(number, worker, shard.loaded)
            except GONE:
                self._move(number)
        for shard in shards:
            shard.loaded.clear()

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.assignment.plan

    def _key(self, name: str, number: int) -> str:
        return f"asset_{name}-{self.id}-{number}-{self.moves[number]}"

    def _settle(self, number: int, worker: str, parts: Sequence[Delayed]) -> Home:
        """Give a shard this worker for its home."""
        client = self.client
        rows = delayed(join)(list(parts), self.dtype, dask_key_name=self._key("shard", number))
        part = client.compute(rows, workers=[worker])
        place = client.submit(Place, key=self._key("place", number), workers=[worker], pure=False)
        if worker not in self._assignments:
            sent = self.cluster.wait(client.scatter, self.assignment, workers=[worker], hash=False)
            self._assignments[worker] = sent
        return Home(worker, part, place, self._assignments[worker])

    def _check_room(self, number: int, worker: str) -> None:
        """Raise where the rows fill a worker's memory: Dask would stop it, without a word."""
        info = self.cluster.wait(self.client.scheduler_info, n_workers=-1)["workers"].get(worker, {})
        limit = info.get("memory_limit") or float("inf")
        others = [i for i, home in self.homes.items() if home.worker == worker and i != number]
        rows = sum(self.shards[i].n_bytes for i in (*others, number))
        if rows + PROCESS_BYTES > PAUSE * limit:
            raise ClusterError(
                f"Worker {worker} would have to hold {rows / 1e6:.0f} MB of rows, and Dask stops it at "
                f"{PAUSE * limit / 1e6:.0f} MB; add workers or memory, or give float32 rows."
            )

    def _move(self, number: int) -> None:
        """Give a shard whose home is gone another: the worker with the fewest rows."""
        if number in self.homes:
            self._assignments.pop(self.homes[number].worker, None)
        while True:
            self.moves[number] += 1
            if self.moves[number] > MOST_MOVES:
                raise ClusterError(
                    f"Shard {number} lost its worker or its rows {MOST_MOVES + 1} times; look for what "
                    "ends workers (their memory limit?), and make the rows from a source that Dask can "
                    "read again, not by client.scatter."
                )
            workers = sorted(self.cluster.some_workers())
            load = dict.fromkeys(workers, 0)
            for other, home in self.homes.items():
                if other != number and home.worker in load:
                    load[home.worker] += self.shards[other].n_rows
            freest = min(workers, key=lambda w: (load[w], w))
            self._check_room(number, freest)
            try:
                self.homes[number] = self._settle(number, freest, self.shards[number].parts)
                return
            except GONE:  # that one is gone too, and the scheduler does not know yet
                time.sleep(POLL * self.moves[number])

    def _everywhere(self, name: str, function: Callable[..., Any], *told: Any) -> list[Any]:
        """What every shard answers to a function; where one was lost, after it has a new home.

        The function is called with the home of the shard, its number, its past where that is needed,
        and what it is told; ``name`` is that of its tasks.
        """
        answers: dict[int, Any] = {}
        attempts = Counter[int]()

        def submit(number: int, past: Past | None) -> Future:
            home = self.homes[number]
            attempts[number] += 1
            return self.client.submit(
                function,
                home.place,
                home.part,
                home.assignment,
                number,
                past,
                *told,
                key=f"asset_{name}-{number}-{attempts[number]}",
                workers=[home.worker],
                pure=False,
            )

        begins = not self.means
        waiting = {i: submit(i, self._past(i) if begins else None) for i in self.homes}
        while waiting:
            done = finished(list(waiting.values()))
            workers = {} if done else self.cluster.workers()
            for number, future in list(waiting.items()):
                homeless = bool(workers) and self.homes[number].worker not in workers
                if future in done and future.status == "finished":
                    try:
                        answer = self.cluster.wait(future.result, timeout=GRACE)
                    except (*LOST, TimeoutError):  # with its worker, before it came here
                        self._move(number)
                        answer = None
                    if answer is not None:
                        self.cluster.heard()
                        answers[number] = answer
                        del waiting[number]
                        continue
                elif future in done and future.status == "error":
                    error = self.cluster.wait(future.exception, timeout=GRACE)
                    if not isinstance(error, LOST):
                        raise error
                    self._move(number)
                elif homeless or future.status in ("cancelled", "lost"):
                    self._move(number)
                else:
                    continue
                waiting[number] = submit(number, self._past(number))
        return [answers[number] for number in range(len(self.homes))]

    def _past(self, number: int) -> Past:
        snapshot = self.snapshots[number]
        return Past(snapshot, self.means[snapshot.rounds :])

    def round(self, r: int, mean: Model | None) -> list[Report]:
        """Have every shard do round r; their reports, in order."""
        plan = self.plan
        if mean is not None:  # what shards would round it to: half as long to send
            mean = mean[0].astype(self.dtype), mean[1]
        epoch_ends = (r + 1) % max(plan.rounds // plan.epochs, 1) == 0
        keep = plan.n_shards > 1 and epoch_ends and r + 1 < plan.rounds  # a snapshot is taken
        answers = self._everywhere(f"round-{self.id}-{r}", run_round, r, mean, keep)
        self.means.append(mean)
        for number, (_, snapshot) in enumerate(answers):
            if snapshot is not None:
                self.snapshots[number] = snapshot
        return [report for report, _ in answers]

    def certificate_sums(self, model: Model) -> CertificateSums:
        """What the rows of all shards add to the certificate of a model."""
        name = f"certificate-{self.id}"
        first, *others = self._everywhere(name, run_certificate, len(self.means), model)
        return sum(others, start=first)
