"""Fits on a Dask cluster one of whose two workers is killed or frozen on the way: the same model."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.datasets import make_classification

from asset_svm.dask import DaskAssetClassifier
from clusters import two_workers, when_round, when_waiting
from processes import HUNG
from soak.attack import Attack, Case

ROUNDS = {"n_components": 100, "max_iter": 4, "random_state": 0, "rounds_per_epoch": 3}
CELLS = {"n_cells": 8, "C": 10.0, "random_state": 0}


class ClusterFits(Attack):
    """A case is one fit, in rounds or of cells, with one fault at a random moment."""

    name, count, memory = "clusters", 200, None
    patience = HUNG

    @contextmanager
    def session(self) -> Iterator[None]:
        """The cluster, and the models of fits that nothing happened to."""
        self.X, self.y = make_classification(6000, 10, n_informative=6, random_state=0)
        with two_workers() as workers, Client(workers) as self.client:
            self.expected = {
                kind: self._fitted(kind).decision_function(self.X[:500]) for kind in ("rounds", "cells")
            }
            yield

    def _fitted(self, kind: str) -> DaskAssetClassifier:
        X, y = da.from_array(self.X, chunks=(3000, -1)), da.from_array(self.y, chunks=3000)
        return DaskAssetClassifier(**(ROUNDS if kind == "rounds" else CELLS)).fit(X, y)

    def run(self, case: Case) -> str:
        """Fit, and hurt a worker when a certain task is waited for, or a moment later."""
        rng = case.rng
        kind, fault = rng.choice(["rounds", "cells"]), rng.choice(["killed", "frozen"])
        pids = sorted(self.client.run(os.getpid).values())
        victim, delay, pause = int(rng.choice(pids)), rng.uniform(0.0, 0.3), rng.uniform(0.1, 3.0)
        timers: list[threading.Timer] = []

        def later(seconds: float, number: signal.Signals) -> None:
            timers.append(threading.Timer(seconds, _send, (victim, number)))
            timers[-1].start()

        def act() -> None:
            if fault == "killed":
                later(delay, signal.SIGKILL)
            else:
                later(delay, signal.SIGSTOP)
                later(delay + pause, signal.SIGCONT)

        if kind == "rounds":
            moment = when_round(int(rng.integers(1, 10)), act)
        else:
            due = str(rng.choice(["summarise", "solve_cells"]))
            moment = when_waiting(lambda key: key.startswith(due), act)
        with moment:
            model = self._fitted(kind)
        for timer in timers:
            timer.join()
        decisions = model.decision_function(self.X[:500])
        assert np.array_equal(decisions, self.expected[kind]), "another model"
        self._settle(gone=victim if fault == "killed" else None)
        return f"{kind}, a worker {fault}: the same model"

    def _settle(self, gone: int | None) -> None:
        """Two workers again, and none of them the one that was killed, perhaps after the fit."""
        while True:
            self.client.cluster.scale(2)
            pids = self.client.run(os.getpid, on_error="ignore").values()
            if len(pids) == 2 and gone not in pids:
                return
            time.sleep(0.1)


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
