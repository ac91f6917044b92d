"""What a search tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asset_svm.arrays import Array


@dataclass(frozen=True, eq=False)
class SearchProgress:
    """The state of a search after another map has been searched.

    Parameters
    ----------
    params : list of dict
        All candidates, in the order of ``cv_results_``.
    mean_test_score, std_test_score : arrays
        Of each; NaN where there is none yet.
    best_params : dict
    best_score : float
    done, total : int
        Maps (gammas, at each round of their race, with each epsilon) that were and are to be searched.
    seconds, seconds_left : float
        Since the search began, and until all maps will be searched, as far as those done tell.
    """

    params: list[dict[str, Any]]
    mean_test_score: Array
    std_test_score: Array
    best_params: dict[str, Any]
    best_score: float
    done: int
    total: int
    seconds: float
    seconds_left: float


Watch = Callable[[SearchProgress], bool | None]
"""Called after every map; True asks to stop."""
Foreseen = Callable[[int, int, float], None]
"""Called once, before the first map, with the number of maps, the models of each and a guess of the
seconds that they take."""
Refitting = Callable[[], None]
"""Called once, before the best model is trained on all rows."""
