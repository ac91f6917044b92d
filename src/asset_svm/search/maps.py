"""The lines of a search on one map: every C, split and class trains on the same features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm import clock
from asset_svm.families.epochs import Epochs
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.one_map.maps import draw_map
from asset_svm.families.rows import Rows
from asset_svm.search.scores import scores
from asset_svm.search.splits import Encoding, Split, encode
from asset_svm.settings import Settings
from asset_svm.tasks import Task
from asset_svm.training.folds import ManyModels

SEARCH_EPOCHS = Epochs(least=5, steps=30_000)


@dataclass(frozen=True, eq=False)
class Path:
    """The models of one gamma and epsilon, (splits, Cs, outputs, d + 1) with the intercept last."""

    coefs: np.ndarray
    feature_map: Any


@dataclass(frozen=True, eq=False)
class Found:
    """The scores of one gamma and epsilon, (Cs, splits), and the map of that gamma."""

    scores: np.ndarray
    fit_seconds: float
    score_seconds: float
    in_time: bool
    path: Path | None = None
    drawn: DrawnMap | None = None


@dataclass(eq=False)
class MapSearch:
    """How the lines of one gamma are searched where there is one map for all rows.

    Parameters
    ----------
    rows : Rows
    splits : list of Split
    Cs : array
    scorer : callable, optional
    epochs : int, optional
    """

    rows: Rows
    splits: list[Split]
    Cs: np.ndarray
    scorer: Any
    seed: int
    epochs: int | None = None
    keep_path: bool = False
    centres: Any = None
    """Landmarks of "kmeans", which do not depend on gamma."""

    @property
    def n_rows(self) -> int:
        """The rows that are looked at."""
        return len(self.rows.y)

    def lines(
        self, settings: Settings, task: Task, epsilons: tuple[float, ...] | None, deadline: float
    ) -> Iterator[Found]:
        """What is found for each epsilon, with the gamma of these settings."""
        begun = clock.now()
        rows, backend = self.rows, settings.backend(self.rows.X)
        if self.centres is not None:
            settings = settings.changed(landmarks=self.centres)
        phi = draw_map(settings, backend, rows.X, rows.uneven, self.seed)
        if isinstance(settings.map.landmarks, str) and settings.map.landmarks == "kmeans":
            self.centres = phi.components  # type: ignore[attr-defined]
        drawn = DrawnMap.measured(backend, phi, rows, settings.step, self.seed)
        metric, features = drawn.metric, drawn.rows(backend, rows.X)
        drawn.keep(features)
        # Splits weigh the rows, each in its own way: the order they are visited in has no part in it.
        even = replace(rows, weight=np.ones(len(rows.y)))
        order, _ = even.order(settings.sampling, settings.step, self.seed)
        epochs = SEARCH_EPOCHS.over(len(rows.y), self.epochs)
        for epsilon in epsilons or (None,):
            tried = task if epsilon is None else task.with_epsilon(epsilon)
            encoding = encode(tried, rows, self.splits)
            models = ManyModels(
                features,
                order,
                encoding.splits,
                settings.recipe(encoding.loss, 1.0, 1, self.seed),
                self.Cs,
                epochs,
                metric,
            )
            coef, intercept, in_time = models.train(backend, deadline)
            trained = clock.now()
            found = self._scores(task, features, encoding, coef, intercept)
            ended = clock.now()
            path = None
            if self.keep_path:
                plain = coef.reshape(-1, coef.shape[-1])
                plain = plain if metric is None else metric.apply(plain)
                whole = intercept + encoding.offset[None, :, None]
                whole = whole - phi.drift(plain).reshape(whole.shape)
                parts = np.concatenate([plain.reshape(coef.shape), whole[..., None]], axis=-1)
                path = Path(np.moveaxis(parts, 0, 1), phi)
            yield Found(found, trained - begun, ended - trained, in_time, path, drawn)
            begun = clock.now()

    def _scores(
        self, task: Task, features: Any, encoding: Encoding, coef: np.ndarray, intercept: np.ndarray
    ) -> np.ndarray:
        classes = task.classes
        out = np.empty(coef.shape[:2])
        for f, split in enumerate(self.splits):
            n_Cs, outputs = coef.shape[0], coef.shape[2]
            decisions = np.empty((n_Cs * outputs, len(split.test)))
            for start in range(0, len(split.test), features.look_size):
                part = slice(start, start + features.look_size)
                block = features.open(split.test[part])
                decisions[:, part] = block.margins(coef[:, f].reshape(n_Cs * outputs, -1))
            decisions += (intercept[:, f].ravel() + encoding.offset[f])[:, None]
            shaped = np.moveaxis(decisions.reshape(n_Cs, outputs, -1), 1, 2)
            X = self.rows.X[split.test] if self.scorer is not None else None
            out[:, f] = scores(self.scorer, classes, X, self.rows.y[split.test], shaped)
        return out
