"""What is seen of a race while it goes: a leaderboard on a terminal, lines elsewhere."""

from __future__ import annotations

import numpy as np
from rich.table import Table
from rich.text import Text

from asset_svm.cli.search_progress import SearchDisplay, span
from asset_svm.search import SearchProgress

MOST_SHOWN = 10
"""The most candidates of a leaderboard on a terminal."""


class RaceDisplay(SearchDisplay):
    """Shows the best candidates of a race so far."""

    said: SearchProgress | None = None
    """What the last line has told."""

    def begin(self, time_limit: float | None) -> None:
        """Tell that the race begins, and what it may take."""
        limit = "" if time_limit is None else f", the model included in {span(time_limit)}"
        self._do(f"racing: encodings, kernels, relevances, cells, bandwidths and Cs{limit}")

    def refit(self) -> None:
        """Tell how the race has ended, and what comes now."""
        if self.live is None and self.last is not None and self.last is not self.said:
            self._say(self._told(self.last), now=True)
        super().refit()

    def _say(self, line: str, *, now: bool) -> None:
        before = self.shown_at
        super()._say(line, now=now)
        if self.shown_at != before:
            self.said = self.last

    def _is_last(self, progress: SearchProgress) -> bool:
        return False  # nobody knows before the end

    def _told(self, progress: SearchProgress) -> str:
        left = "" if np.isnan(progress.seconds_left) else f", {progress.seconds_left:.0f} s left"
        best = progress.best_params
        return (
            f"{progress.done} looks, {progress.seconds:.1f} s{left}, best score "
            f"{progress.best_score:.5f} of {best['rows']} rows: {best['candidate']}"
        )

    def _table(self, progress: SearchProgress, doing: str) -> Table:
        left = "" if np.isnan(progress.seconds_left) else f", {progress.seconds_left:.0f} s left"
        table = Table(
            title=Text(f"{progress.done} looks, {progress.seconds:.1f} s{left}"),
            caption=Text(doing) if doing else None,
        )
        for name in ("candidate", "rows", "score", "±"):
            table.add_column(Text(name), justify="left" if name == "candidate" else "right")
        for number in leading(progress)[:MOST_SHOWN]:
            params = progress.params[number]
            cells = [
                params["candidate"],
                str(params["rows"]),
                f"{progress.mean_test_score[number]:.5f}",
                f"{progress.std_test_score[number]:.5f}",
            ]
            style = "bold" if is_best(progress, number) else None
            table.add_row(*(Text(cell) for cell in cells), style=style)
        return table


def leading(progress: SearchProgress) -> list[int]:
    """The numbers of all candidates: the best, then others, those of more rows first."""
    scores = np.nan_to_num(progress.mean_test_score, nan=-np.inf)

    def place(number: int) -> tuple[bool, int, float]:
        rows = int(progress.params[number]["rows"])
        return not is_best(progress, number), -rows, -float(scores[number])

    return sorted(range(len(scores)), key=place)


def is_best(progress: SearchProgress, number: int) -> bool:
    """Whether a candidate is what would be trained now."""
    return progress.params[number] == progress.best_params
