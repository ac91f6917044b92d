"""What workers do: hold the rows of a shard, run its rounds, add up its part of the certificate.

A ``Place`` is where a shard's run lives between rounds, on the worker that has its rows. It is a cache:
it may be lost, or stand at another round than the one asked for, and then the worker answers ``None``
and is asked again with the shard's past, from which it builds the run anew, bit for bit.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from distributed import get_worker

from asset_svm.backends.cpu import CpuBackend, CpuRows
from asset_svm.dask.partitions import Part
from asset_svm.families.rows import visiting_order
from asset_svm.families.whole import WholeTask
from asset_svm.memory import available_memory
from asset_svm.problem import CertificateSums
from asset_svm.training.certificate import row_sums
from asset_svm.training.rows import TrainingRows
from asset_svm.training.shards import Model, Plan, Report, Shard, ShardSnapshot

SAFE = 0.6
"""Beyond such a part of a worker's memory limit, Dask begins to write data to disk."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """What a worker must know to run any shard, sent to it once.

    Parameters
    ----------
    sampling : {"shuffle", "uniform", "given"}
    mean_weight : float or None
        That of all rows; None where all weights are alike.
    seeds : sequence of int
        Those of the order of visits in each shard.
    memory_limit : int or None
        The bytes that mapped rows may take on a worker.
    """

    plan: Plan
    whole: WholeTask
    sampling: str
    mean_weight: float | None
    seeds: Sequence[int]
    memory_limit: int | None

    def rows(self, backend: CpuBackend, part: Part, number: int) -> TrainingRows:
        """The rows of a shard, in the map of the plan."""
        encoded, weight = self.whole.encode(part.y), self.whole.weights(part.y, part.weight)
        order, slopes = visiting_order(self.sampling, self.seeds[number], weight, self.mean_weight)
        mapped, metric = backend.rows(self.plan.phi, part.X), self.plan.metric
        return TrainingRows(mapped, encoded.targets, order, weight, slopes, encoded.y_max, metric)


@dataclass(frozen=True, eq=False)
class Past:
    """A shard after an earlier round, and the mean models of the rounds since."""

    snapshot: ShardSnapshot
    means: Sequence[Model | None]


@dataclass(eq=False)
class Place:
    """Where the rows and the run of a shard live on a worker."""

    rows: TrainingRows | None = None
    shard: Shard | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __reduce__(self) -> tuple[type[Place], tuple[()]]:
        return Place, ()  # elsewhere, or back from disk, it is empty

    @property
    def kept_bytes(self) -> int:
        """The bytes that mapped rows take here, or will take."""
        return 0 if self._mapped is None else self._mapped.kept_bytes

    @property
    def due_bytes(self) -> int:
        """The bytes among them of rows that are not mapped yet: the process does not hold them yet."""
        mapped = self._mapped
        return 0 if mapped is None else round(mapped.kept_bytes * (1.0 - mapped.seen.mean()))

    @property
    def _mapped(self) -> CpuRows | None:
        mapped = None if self.rows is None else self.rows.mapped
        return mapped if isinstance(mapped, CpuRows) else None

    def at(self, done: int, part: Part, assignment: Assignment, number: int, past: Past | None) -> bool:
        """Whether the run stands after ``done`` rounds, having gone there from the past if given."""
        if self.shard is not None and self.shard.done == done:
            return True
        if past is None:
            return False
        self.rows = self.shard = None  # frees mapped rows before the next are made
        with _room:  # what one shard takes, another that begins beside it must know of
            backend = CpuBackend(memory_limit=_allowance(assignment.memory_limit))
            self.rows = assignment.rows(backend, part, number)
            _places.add(self)
        shard = Shard(backend, assignment.plan, self.rows, past.snapshot)
        for mean in past.means:
            shard.advance(mean)
        self.shard = shard
        return True


_places: weakref.WeakSet[Place] = weakref.WeakSet()
"""The places of this process."""
_room = threading.Lock()


def _allowance(limit: int | None) -> int:
    """Bytes that the mapped rows of one more shard may take in this process.

    A worker's shards share the limit. By default it is what Dask allows the worker before it writes
    data to disk, less what the process holds, or half of what is free where Dask sets no limit. Where
    mapped rows do not fit they are recomputed: the model is the same.
    """
    places = list(_places)
    if limit is not None:
        return max(limit - sum(place.kept_bytes for place in places), 0)
    due = sum(place.due_bytes for place in places)
    worker = get_worker()
    whole = worker.memory_manager.memory_limit
    if not whole:
        return max(available_memory() - due, 0) // 2
    return max(int(SAFE * whole) - worker.monitor.get_process_memory() - due, 0)


def run_round(
    place: Place,
    part: Part,
    assignment: Assignment,
    number: int,
    past: Past | None,
    r: int,
    mean: Model | None,
    keep: bool,
) -> tuple[Report, ShardSnapshot | None] | None:
    """Do round r of a shard from the mean model before it; the snapshot comes where asked for."""
    with place.lock:
        if not place.at(r, part, assignment, number, past):
            return None
        assert place.shard is not None
        report = place.shard.advance(mean)
        return report, place.shard.snapshot() if keep else None


def run_certificate(
    place: Place,
    part: Part,
    assignment: Assignment,
    number: int,
    past: Past | None,
    done: int,
    model: Model,
) -> CertificateSums | None:
    """The shard's part of the certificate of the model after ``done`` rounds."""
    plan = assignment.plan
    with place.lock:
        if not place.at(done, part, assignment, number, past):
            return None
        shard = place.shard
        assert shard is not None
        return row_sums(shard.rows, plan.recipe, model, shard.driver.slopes)
