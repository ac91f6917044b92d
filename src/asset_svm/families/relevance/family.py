"""The family of models behind a learnt relevance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.families.base import Family, Fitted, Trained
from asset_svm.families.observing import Observer
from asset_svm.families.relevance.fitted import FittedRelevance, mapped_rows
from asset_svm.families.relevance.rounds import learn_relevance
from asset_svm.families.relevance.wrapping import (
    WrappedObserver,
    check_relevance,
    check_width,
    inner_settings,
    peeked_seed,
    unjudging,
)
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Learnt
from asset_svm.settings import Settings
from asset_svm.tasks import Task


@dataclass(frozen=True)
class Relevant:
    """Models of another family, on rows that a learnt relevance maps."""

    inner: Family[Any]

    def fit(
        self,
        settings: Settings,
        task: Task,
        rows: Rows,
        begun: float,
        observer: Observer,
        before: Fitted | None = None,
        drawn: Any = None,
        keeper: Any = None,
        learnt: Learnt | None = None,
    ) -> Trained[FittedRelevance]:
        """Learn the relevance, then train on mapped rows; parameters as in ``Family.fit``.

        ``learnt`` is one to take in place of learning it, where it suits these rows.
        """
        kept = before if isinstance(before, FittedRelevance) else None
        if learnt is not None and not _suits(learnt, settings, rows):
            learnt = None
        if keeper is not None and keeper.resumed is not None:
            learnt = keeper.resumed.learnt
        elif settings.warm_start and kept is not None and _suits(kept.learnt, settings, rows):
            learnt = kept.learnt
        if learnt is None:
            learnt, kept = learnt_of(settings, task, rows), None
        if keeper is not None:
            keeper.learnt = learnt
        options = {} if keeper is None else {"keeper": keeper}
        trained = self.inner.fit(
            inner_settings(settings, learnt),
            task,
            mapped_rows(learnt, rows),
            begun,
            WrappedObserver(observer, learnt),
            None if kept is None else kept.inner,
            drawn,
            **options,
        )
        seen = rows
        if len(trained.rows.y) < len(rows.y):  # early stopping leaves some out
            seen = rows.take(np.searchsorted(rows.index, trained.rows.index))
        return Trained(FittedRelevance(learnt, trained.fitted), seen, trained.sampled)

    def check(self, settings: Settings) -> None:
        """Raise where the kernel has no relevance, or the family behind it refuses a parameter."""
        check_relevance(settings)
        self.inner.check(settings)

    def begin(self, settings: Settings, task: Task, rows: Rows) -> FittedRelevance:
        """The model of a first batch, which settles the relevance."""
        learnt = learnt_of(settings, task, rows)
        inner = self.inner.begin(inner_settings(settings, learnt), task, mapped_rows(learnt, rows))
        return FittedRelevance(learnt, inner)

    def go_on(self, settings: Settings, fitted: FittedRelevance, rows: Rows) -> FittedRelevance:
        """The model after one batch more, with the relevance that it began with."""
        own = inner_settings(settings, fitted.learnt)
        inner = self.inner.go_on(own, fitted.inner, fitted.mapped(rows))
        return FittedRelevance(fitted.learnt, inner, fitted.beginning)

    def warn(self, settings: Settings, trained: Trained[FittedRelevance]) -> None:
        """Warn where the model behind the relevance is not what was asked for."""
        inner = Trained(trained.fitted.inner, trained.rows, trained.sampled)
        self.inner.warn(inner_settings(settings, trained.fitted.learnt), inner)


def learnt_of(settings: Settings, task: Task, rows: Rows) -> Learnt:
    """The relevance for a model on these rows, learnt without those that judge the model."""
    check_width(settings, rows.X)
    seed = peeked_seed(settings)
    learning = rows.take(unjudging(settings, task, rows.y, seed))
    learnt = learn_relevance(settings, task, learning, seed)
    return replace(learnt, asked=str(settings.relevance), kernel=str(settings.map.kernel))


def _suits(learnt: Learnt, settings: Settings, rows: Rows) -> bool:
    """Whether what an earlier fit has learnt is what these settings ask for, of rows like these."""
    asked = (settings.relevance, settings.map.kernel, rows.X.shape[1])
    return asked == (learnt.asked, learnt.kernel, len(learnt.importances))
