"""A fit to a file behind a relevance, which the sample of the scan tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block
from asset_svm.families.base import Trained
from asset_svm.families.cells.stored import StoredCells
from asset_svm.families.labels import labelled
from asset_svm.families.observing import Observer
from asset_svm.families.one_map.keeping import Keeper
from asset_svm.families.one_map.windows import WindowFit
from asset_svm.families.relevance.family import learnt_of
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.wrapping import WrappedObserver, inner_settings
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt
from asset_svm.settings import Settings
from asset_svm.tasks import Task


@dataclass(eq=False)
class RelevantWindows:
    """One fit on mapped rows; ``make`` makes it from parameters as those of ``WindowFit``."""

    settings: Settings
    task: Task
    scanned: Scanned
    keeper: Keeper | None
    observer: Observer
    make: Callable[..., WindowFit | StoredCells] = WindowFit

    def run(self) -> Trained[FittedRelevance]:
        """Learn the relevance, or find it again, and train; the rows returned are a sample."""
        summary = self.scanned.summary
        sample = summary.sample if summary.whole is None else summary.whole
        sample = labelled(sample, summary, numeric=self.task.numeric)
        learnt = self._learnt(sample)
        if self.keeper is not None:
            self.keeper.learnt = learnt
        self.inner = self.make(
            inner_settings(self.settings, learnt),
            self.task,
            mapped_scan(learnt, self.scanned),
            self.keeper,
            WrappedObserver(self.observer, learnt),
        )
        trained: Trained[Any] = self.inner.run()
        y, ones = np.asarray(sample.y), np.ones(len(sample))
        rows = Rows(sample.X, y, ones, self.inner.whole.weights(y, ones), np.arange(len(y)))
        return Trained(FittedRelevance(learnt, trained.fitted), rows, sampled=True)

    def _learnt(self, sample: Block) -> Learnt:
        if self.keeper is not None and self.keeper.resumed is not None:
            found = self.keeper.resumed.learnt
            assert found is not None
            return found
        y, ones = np.asarray(sample.y), np.ones(len(sample))
        targets, task = self.scanned.summary.targets, self.task
        if not task.numeric:
            task = task.with_classes(targets.classes)
        task = task.settled(y, ones)
        factor = task.class_weights(y, ones)
        weight = ones if factor is None else factor
        rows = Rows(sample.X, y, ones, weight, np.arange(len(y)))
        return learnt_of(self.settings, task, rows.take(np.flatnonzero(weight)))

    def warn(self) -> None:
        """Warn of rows that are sorted by their targets."""
        self.inner.warn()


def mapped_scan(learnt: Learnt, scanned: Scanned) -> Scanned:
    """What a scan told, of mapped rows."""
    relevance = learnt.relevance
    if relevance is None:
        return scanned
    summary, sample, spread = scanned.summary, scanned.summary.sample, scanned.summary.spread
    width = relevance.width
    mapped = replace(
        summary,
        n_features=width,
        n_bytes=relevance.mapped_bytes(summary.n_rows, summary.n_bytes, sample.X.dtype),
        sample=Block(relevance(sample.X), sample.y),
        spread=spread and Block(relevance(spread.X), spread.y),
    )
    return replace(scanned, source=scanned.source.transformed(relevance, width), summary=mapped)
