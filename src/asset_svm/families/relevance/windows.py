"""A streamed fit behind a relevance, which the sample of the scan tells."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block
from asset_svm.families.base import Trained
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
    """One streamed fit on mapped rows; parameters as those of ``WindowFit``."""

    settings: Settings
    task: Task
    scanned: Scanned
    keeper: Keeper | None
    observer: Observer

    def run(self) -> Trained[FittedRelevance]:
        """Learn the relevance, or find it again, and run all epochs; the rows returned are a sample."""
        sample = labelled(self.scanned.summary.sample, self.scanned.summary, numeric=self.task.numeric)
        learnt = self._learnt(sample)
        if self.keeper is not None:
            self.keeper.learnt = learnt
        self.inner = WindowFit(
            inner_settings(self.settings, learnt),
            self.task,
            mapped_scan(learnt, self.scanned),
            self.keeper,
            WrappedObserver(self.observer, learnt),
        )
        trained = self.inner.run()
        rows = replace(trained.rows, X=sample.X)
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
    summary, sample = scanned.summary, scanned.summary.sample
    width = relevance.width
    mapped = replace(
        summary,
        n_features=width,
        n_bytes=relevance.mapped_bytes(summary.n_rows, summary.n_bytes, sample.X.dtype),
        sample=Block(relevance(sample.X), sample.y),
    )
    return replace(scanned, source=scanned.source.transformed(relevance, width), summary=mapped)
