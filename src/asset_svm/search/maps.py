"""The lines of a search on one map: every C, split and class trains on the same features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from asset_svm import clock
from asset_svm.arrays import Array
from asset_svm.families.epochs import Epochs
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.search.cost import map_seconds
from asset_svm.search.lines import Found, LineSearch, Path
from asset_svm.search.splits import Encoding, encode, restricted
from asset_svm.settings import Settings
from asset_svm.settings.mapping import DEFAULT_COMPONENTS
from asset_svm.solvers import BlockRows
from asset_svm.solvers.blocks import fetching_threads
from asset_svm.tasks import Task
from asset_svm.threads.team import side_by_side
from asset_svm.training.folds import ManyModels
from asset_svm.training.rows import plain_coef

SEARCH_EPOCHS = Epochs(least=5, steps=30_000)


@dataclass(eq=False)
class MapSearch(LineSearch):
    """The search of lines on one map for all rows.

    Parameters
    ----------
    rows, splits, Cs, scorer, seed
        As in ``LineSearch``.
    epochs : int, optional
        The epochs of every model; None: 5, more on small data.
    keep_path : bool
        Whether the models of a line are kept.
    """

    epochs: int | None = None
    keep_path: bool = False
    centres: Array | None = field(default=None, init=False)
    """Landmarks of "kmeans", which do not depend on gamma."""

    @property
    def n_rows(self) -> int:
        """The number of rows that are looked at."""
        return len(self.rows.y)

    def kept(self, share: float) -> Array:
        """The rows of a round that looks at such a part of them, drawn at random."""
        rng = np.random.default_rng([self.seed, 7])
        return np.sort(rng.permutation(self.n_rows)[: round(share * self.n_rows)])

    def on(self, share: float) -> MapSearch:
        """The search on these rows."""
        if share == 1.0:
            return replace(self)
        kept = self.kept(share)
        splits = restricted(self.splits, kept, self.n_rows)
        return replace(self, rows=self.rows.take(kept), splits=splits)

    def seconds(self, settings: Settings, n_models: int) -> float:
        """A guess of the time that one line takes on all rows."""
        m, n = self.rows.X.shape
        s = min(settings.map.number or DEFAULT_COMPONENTS, m)
        return map_seconds(m, n, s, n_models, SEARCH_EPOCHS.over(m, self.epochs))

    def lines(
        self, settings: Settings, task: Task, epsilons: tuple[float, ...] | None, deadline: float
    ) -> Iterator[Found]:
        """What is found for each epsilon, with the gamma of these settings."""
        begun = clock.now()
        rows, backend = self.rows, settings.backend(self.rows.X)
        if self.centres is not None:
            settings = settings.changed(landmarks=self.centres)
        drawn = DrawnMap.draw(settings, backend, rows, self.seed)
        if isinstance(settings.map.landmarks, str) and settings.map.landmarks == "kmeans":
            self.centres = drawn.phi.components  # type: ignore[attr-defined]
        phi, metric, features = drawn.phi, drawn.metric, drawn.rows(backend, rows.X)
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
            decisions = self._decisions(features, encoding, coef, intercept)
            found = self._scores(task, decisions)
            ended = clock.now()
            path = None
            if self.keep_path:
                plain = plain_coef(coef.reshape(-1, coef.shape[-1]), metric)
                whole = intercept + encoding.offset[None]
                whole = whole - phi.drift(plain).reshape(whole.shape)
                parts = np.concatenate([plain.reshape(coef.shape), whole[..., None]], axis=-1)
                path = Path(np.moveaxis(parts, 0, 1), phi)
            yield Found(found, trained - begun, ended - trained, in_time, path, drawn, decisions)
            begun = clock.now()

    def _scores(self, task: Task, decisions: list[Array]) -> Array:
        """The (Cs, splits) scores of all models on the rows held out from them."""
        each = zip(self.splits, decisions, strict=True)
        return np.stack([self.score(task, split.test, found) for split, found in each], axis=1)

    def _decisions(
        self, features: BlockRows, encoding: Encoding, coef: Array, intercept: Array
    ) -> list[Array]:
        """The (Cs, rows, outputs) decisions of the models of each split on the rows held out."""
        n_Cs, _, outputs, _ = coef.shape
        found = [np.empty((n_Cs * outputs, len(split.test))) for split in self.splits]
        size = features.look_size
        pieces = [(f, start) for f, rows in enumerate(found) for start in range(0, rows.shape[1], size)]

        def decide(number: int) -> None:
            f, start = pieces[number]
            part = slice(start, start + size)
            block = features.open(self.splits[f].test[part])
            found[f][:, part] = block.margins(coef[:, f].reshape(n_Cs * outputs, -1))

        side_by_side(decide, range(len(pieces)), fetching_threads(features))
        for f, decisions in enumerate(found):
            decisions += (intercept[:, f] + encoding.offset[f]).ravel()[:, None]
        return [np.moveaxis(each.reshape(n_Cs, outputs, -1), 1, 2) for each in found]
