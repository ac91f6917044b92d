"""One map for all rows, and a linear model on its features.

maps, drawn      a feature map, from settings and rows
components       the choice of a map; ``margin`` looks where landmarks matter
fit              all rows at once
online           a batch after the other
windows          files that are larger than memory
fitted           what any of them leaves
"""

from __future__ import annotations

from asset_svm.families.base import Trained
from asset_svm.families.definite import warn_of_indefinite
from asset_svm.families.one_map.fit import fit_batch, warn_of_excess, warn_of_gap
from asset_svm.families.one_map.fitted import FittedMap
from asset_svm.families.one_map.maps import warn_of_few_landmarks
from asset_svm.families.one_map.online import begin_stream, go_on
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.tasks import Task

__all__ = ["FittedMap", "OneMap"]


class OneMap:
    """The family of models on one map."""

    fit = staticmethod(fit_batch)

    def check(self, settings: Settings) -> None:
        """Raise where a parameter is that of cells, or of the other approximation."""
        instead = {"n_partitions": "partitions are of cells; set n_cells"}
        if settings.approximation == "fourier":
            ours = 'it is for landmarks; leave it out, or set approximation="nystroem"'
            instead |= dict.fromkeys(("landmarks", "rank", "rank_threshold", "rank_rule"), ours)
        elif settings.is_nystroem:
            instead["fourier"] = 'it is for frequencies; leave it out, or set approximation="fourier"'
        for name, value in settings.asked(*instead).items():
            shown = repr(value) if isinstance(value, str | int | float) else "an array"
            raise ValueError(f"{name}={shown} is not used by this model: {instead[name]}.")

    def begin(self, settings: Settings, task: Task, rows: Rows) -> FittedMap:
        """The model of a first batch."""
        return begin_stream(settings, task, rows)

    def go_on(self, settings: Settings, fitted: FittedMap, rows: Rows) -> FittedMap:
        """The model after one batch more."""
        return go_on(settings, fitted, rows)

    def warn(self, settings: Settings, trained: Trained[FittedMap]) -> None:
        """Warn where a model is not what was asked for."""
        landmarks = trained.fitted.landmarks
        if settings.is_nystroem and landmarks is not None:
            warn_of_few_landmarks(settings.map, landmarks.shape[0])
        warn_of_excess(settings, trained)
        if not trained.sampled:
            warn_of_gap(settings, trained)
        warn_of_indefinite(trained.fitted.phi)
