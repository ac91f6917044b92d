"""What is seen of a search while it goes: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from asset_svm import clock
from asset_svm.cli.progress import Display, Watcher
from asset_svm.search import SearchProgress
from asset_svm.search.base import SearchEstimator

LEVELS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, eq=False)
class ScoreLine:
    """The scores over C of one gamma and one epsilon; None where they are not searched."""

    gamma: float | None
    epsilon: float | None
    Cs: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @property
    def best(self) -> int | None:
        """The place of the highest mean; None where there is none yet."""
        return None if np.isnan(self.mean).all() else int(np.nanargmax(self.mean))


def score_lines_of(params: list[dict[str, Any]], mean: Any, deviation: Any) -> list[ScoreLine]:
    """The scores of the candidates of a search, in lines over C."""
    places: dict[tuple[Any, Any], list[int]] = {}
    for i, candidate in enumerate(params):
        places.setdefault((candidate.get("gamma"), candidate.get("epsilon")), []).append(i)
    return [
        ScoreLine(*key, np.array([params[i]["C"] for i in where]), mean[where], deviation[where])
        for key, where in places.items()
    ]


def scored(search: SearchEstimator) -> list[dict[str, Any]]:
    """The candidates that have a score: the time may have ended before the others' turn."""
    results = search.cv_results_
    known = np.isfinite(results["mean_test_score"])
    return [params for params, is_known in zip(results["params"], known, strict=True) if is_known]


def shown_count(search: SearchEstimator) -> str:
    """How many candidates have a score, as text: 50, or 10 of 50."""
    count, total = len(scored(search)), len(search.cv_results_["params"])
    return str(total) if count == total else f"{count} of {total}"


def shown_params(params: dict[str, Any]) -> str:
    """The parameters as text: C=10, gamma=0.5."""
    return ", ".join(f"{name}={shown_value(value)}" for name, value in params.items())


def shown_value(value: Any, digits: int = 4) -> str:
    """A value as text: numbers with fractions in a few digits, all else as it is."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def sparks(values: np.ndarray, low: float, high: float) -> str:
    """A bar for every value between low and high, a dot for what has none."""
    # Squared: what is near the best is to be told apart.
    part = np.clip((values - low) / max(high - low, 1e-300), 0.0, 1.0) ** 2
    return "".join("·" if np.isnan(p) else LEVELS[min(int(p * 8), 7)] for p in part)


def span(seconds: float) -> str:
    """Seconds as people say them: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class SearchDisplay(Watcher):
    """Shows the progress of a search.

    What is being done is told before it is, however long it may take: the guess of that is one of a
    machine with nothing else to do. A terminal sees the seconds pass, too.
    """

    def __init__(self, *, regression: bool = False) -> None:
        super().__init__()
        self.regression = regression
        self.doing = "searching"
        self.live: Live | None = None
        self.last: SearchProgress | None = None

    @contextmanager
    def _drawn(self) -> Iterator[None]:
        with Live(get_renderable=self._seen, console=self.console) as self.live:
            try:
                yield
            finally:
                self.doing = ""

    def foresee(self, maps: int, models: int, seconds: float) -> None:
        """Tell what is ahead, before the first map."""
        self._do(
            f"searching {maps} maps of {models} models each: some {span(seconds)} by their size, on an "
            "idle machine"
        )

    def refit(self) -> None:
        """Tell that the search is over."""
        self._do("training the best model on all rows")
        self.trained = Display(regression=self.regression)

    def train(self, record: dict[str, Any]) -> bool:
        """Show how the best model learns from rows of a file, and return True after Ctrl-C."""
        told, done, total = self.trained.told(record)
        self.doing = f"training the best model on all rows: {told}"
        if self.live is not None:
            self.live.refresh()
        else:
            self._say(told, now=done == total and "sorted" not in record)
        return self.interrupt.asked

    def _do(self, what: str) -> None:
        self.doing = what
        if self.live is not None:
            self.live.refresh()
        else:
            self._say(what, now=True)

    def _seen(self) -> RenderableType:
        """What a terminal shows now."""
        doing = f"{self.doing}, {span(clock.now() - self.begun)} so far" if self.doing else ""
        return Text(doing) if self.last is None else self._table(self.last, doing)

    def __call__(self, progress: SearchProgress) -> bool:
        """Show the scores so far, and return True after Ctrl-C."""
        self.last, self.doing = progress, "searching"
        if self.live is not None:
            self.live.refresh()
        else:
            self._say(self._told(progress), now=self._is_last(progress))
        return self.interrupt.asked

    def _is_last(self, progress: SearchProgress) -> bool:
        return progress.done == progress.total

    def _told(self, progress: SearchProgress) -> str:
        left = f", some {span(progress.seconds_left)} left" if progress.done < progress.total else ""
        return (
            f"{progress.done} of {progress.total} maps, {progress.seconds:.1f} s{left}, best score "
            f"{progress.best_score:.5f} with {shown_params(progress.best_params)}"
        )

    def _table(self, progress: SearchProgress, doing: str) -> Table:
        lines = score_lines_of(progress.params, progress.mean_test_score, progress.std_test_score)
        found = progress.mean_test_score[np.isfinite(progress.mean_test_score)]
        low, high = (found.min(), found.max()) if len(found) else (0.0, 1.0)
        over = f"score over C = {lines[0].Cs[0]:.4g} ... {lines[0].Cs[-1]:.4g}"
        table = Table(title=Text(self._told(progress)), caption=Text(doing) if doing else None)
        named = [name for name in ("gamma", "epsilon") if name in progress.params[0]]
        several = bool(np.nanmax(progress.std_test_score, initial=0.0) > 0.0)  # splits
        for name in (*named, over, "best C", "score", *(["±"] if several else [])):
            table.add_column(Text(name), justify="left" if name == over else "right")
        for line in lines:
            values = [f"{getattr(line, name):.4g}" for name in named]
            best = line.best
            row = [*values, sparks(line.mean, low, high)]
            if best is not None:
                row += [f"{line.Cs[best]:.4g}", f"{line.mean[best]:.5f}"]
                row += [f"{line.deviation[best]:.5f}"] if several else []
            is_best = best is not None and line.mean[best] == progress.best_score
            table.add_row(*(Text(cell) for cell in row), style="bold" if is_best else None)
        return table
