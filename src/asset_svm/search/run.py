"""The run of a search: rounds of the race, gammas of a round, epsilons of a gamma.

What one gamma is worth is found by ``MapSearch`` or, with cells, by ``CellSearch``; a run says on which
rows and in which order, keeps the table of what was found, and ends when the time is up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.exceptions import FitFailedWarning

from asset_svm import clock
from asset_svm.backends.device import on_host
from asset_svm.exceptions import NonFiniteError, warn_caller
from asset_svm.families.cells.partitions import grow_partition
from asset_svm.families.observing import logger
from asset_svm.families.one_map.drawn import DrawnMap
from asset_svm.families.rows import Rows
from asset_svm.search.cells import CellSearch, tell_of_large_cells
from asset_svm.search.grid import MOST_BEYOND, Grid
from asset_svm.search.journal import Journal
from asset_svm.search.lines import Found
from asset_svm.search.maps import MapSearch
from asset_svm.search.progress import Foreseen, SearchProgress, Watch
from asset_svm.search.race import Round, rounds
from asset_svm.search.results import Line, Table
from asset_svm.search.rows import in_single
from asset_svm.search.scores import Scorer
from asset_svm.search.splits import Split, may_race
from asset_svm.settings import Settings
from asset_svm.tasks import Task

Lines = MapSearch | CellSearch


@dataclass(frozen=True)
class SearchOptions:
    """The parameters that only searches have, but for the candidates.

    Parameters
    ----------
    widens : bool
        Whether gammas beyond the first or last are tried while it is the best.
    """

    refit: bool = True
    keep_path: bool = False
    search_iter: int | None = None
    widens: bool = False


class SearchRun:
    """The run of one search.

    Parameters
    ----------
    settings : Settings
        Those of what is searched for; gamma is that of one candidate after the other.
    task : Task
        Settled by all rows.
    rows : Rows
        As they were given.
    scorer : callable, optional
        By default the estimator's own score.
    begun, deadline : float
        Moments of ``clock.now``.
    watch : callable, optional
        Called with the progress; True asks to stop.
    foreseen : callable, optional
        Called once, with what is ahead.
    journal : Journal, optional
        What keeps lines, and knows those that were found before.
    """

    def __init__(
        self,
        options: SearchOptions,
        settings: Settings,
        task: Task,
        rows: Rows,
        splits: list[Split],
        grid: Grid,
        scorer: Scorer | None,
        seed: int,
        begun: float,
        deadline: float,
        watch: Watch | None,
        foreseen: Foreseen | None = None,
        journal: Journal | None = None,
    ):
        self.options, self.settings, self.task, self.splits = options, settings, task, splits
        self.begun, self.deadline, self.watch, self.foreseen = begun, deadline, watch, foreseen
        self.journal = journal
        if settings.n_cells is None:
            self.rows = replace(rows, X=in_single(rows.X))
            parts = self.rows, splits, grid.Cs, scorer, seed
            self.whole: Lines = MapSearch(*parts, options.search_iter, options.keep_path)
        else:  # searched by the CPU
            self.rows = replace(rows, X=in_single(on_host(rows.X)))
            cells = grow_partition(self.rows.X, settings.cells_of(len(rows.y)), seed, 0)[1]
            self.whole = CellSearch(self.rows, splits, grid.Cs, scorer, seed, cells)
            tell_of_large_cells(cells)
        self.as_given = self.rows.X is rows.X
        self.table = Table(grid, len(splits))
        self.done = self.total = self.beyond = 0
        self.passed = self.ahead = 0.0  # rows of the maps searched, and of all, in parts of all rows
        self.stopped = False
        self.kept: tuple[int, DrawnMap] | None = None

    @property
    def grid(self) -> Grid:
        """The candidates, with gammas that were added on the way."""
        return self.table.grid

    @property
    def ended(self) -> bool:
        """Whether the search was cut short."""
        return self.stopped or self.table.late

    def search(self) -> Table:
        """Search, until the time is up."""
        fixed = 0.0
        if self.grid.gammas is None:
            # "scale" is that of all rows, in every round and split.
            fixed = self.settings.map.kernel_for(self.rows.X, self.rows.uneven).gamma
        left = list(range(len(self.grid.gammas or (fixed,))))
        plan = self._plan(len(left))
        self.total = len(self.grid.epsilons or (0,)) * sum(part.count for part in plan)
        self._foresee(plan)
        for number, part in enumerate(plan):
            if number > 0:
                left = self.table.best_gammas(left, part.count)
            search = self.whole.on(part.share)
            for gamma in left:
                value = (self.grid.gammas or (fixed,))[gamma]
                if self.done and not self._known(value, number) and self._ends():
                    return self.table
                self._gamma(search, gamma, value, number)
            if self.options.widens:
                left = self._go_beyond(search, left, number)
        return self.table

    def take_drawn(self) -> DrawnMap | None:
        """The map of the best gamma, where the refit would draw the same: from all rows as they are."""
        kept, self.kept = self.kept, None
        return None if kept is None or kept[0] != self.table.best_line()[0] else kept[1]

    # Rounds -------------------------------------------------------------------------------------

    def _plan(self, n_gammas: int) -> list[Round]:
        """The rounds of the race, or one where a part of the rows would leave splits without theirs."""
        m = len(self.rows.y)
        plan = rounds(n_gammas, m)
        if len(plan) > 1:
            kept, classifier = self.whole.kept(plan[0].share), not self.task.numeric
            if not may_race(self.splits, kept, self.rows.y, classifier=classifier):
                return [Round(n_gammas, 1.0)]
        return plan

    def _foresee(self, plan: list[Round]) -> None:
        """Tell what is ahead, and about how long it takes."""
        lines, m = len(self.grid.epsilons or (0,)), len(self.rows.y)
        kept = (part.count * len(self.whole.kept(part.share)) for part in plan)
        self.ahead = lines * sum(count / m for count in kept)
        if self.foreseen is not None:
            models = len(self.grid.Cs) * len(self.splits) * self.task.n_models
            seconds = self.ahead * self.whole.seconds(self.settings, models)
            self.foreseen(self.total, models, seconds)

    # Gammas -------------------------------------------------------------------------------------

    def _ends(self) -> bool:
        """Whether the search ends here: it was asked to stop, or its time is up."""
        self.table.late |= clock.now() > self.deadline
        return self.ended

    def _go_beyond(self, search: Lines, left: list[int], round_number: int) -> list[int]:
        """Try gammas beyond the first or last while it is the best; returns all of the round."""
        while (end := self.table.end(left)) is not None and self.beyond < MOST_BEYOND:
            gamma = self.grid.beyond(above=end > 0)
            ends = self.stopped or clock.now() > self.deadline
            if ends and not self._known(gamma, round_number):
                break
            new = self.table.add_gamma(gamma)
            if new == 0:
                left = [number + 1 for number in left]
                if self.kept is not None:
                    self.kept = self.kept[0] + 1, self.kept[1]
            left = sorted([*left, new])
            self.beyond += 1
            self.total += len(self.grid.epsilons or (0,))
            self.ahead += len(self.grid.epsilons or (0,)) * search.n_rows / len(self.rows.y)
            self._gamma(search, new, gamma, round_number)
        return left

    def _known(self, gamma: float, round_number: int) -> list[Found] | None:
        """What was found of a gamma in a search that goes on."""
        epsilons = self.grid.epsilons or (0,)
        if self.journal is None:
            return None
        return self.journal.known(round_number, gamma, len(epsilons))

    def _gamma(self, search: Lines, number: int, gamma: float, round_number: int) -> None:
        known = self._known(gamma, round_number)
        if known is not None:
            for epsilon, found in enumerate(known):
                self._note((number, epsilon), search.n_rows, found, round_number)
            return
        settings = self.settings.changed(gamma=gamma)
        count = settings.map.number
        if count is not None and search.n_rows < len(self.rows.y):
            settings = settings.changed(n_components=min(count, search.n_rows))
        if self.kept is not None:
            self.kept[1].make_way(settings.host().memory())
        try:
            lines = search.lines(settings, self.task, self.grid.epsilons, self.deadline)
            for epsilon, found in enumerate(lines):
                if self.journal is not None:
                    self.journal.keep_line(round_number, gamma, epsilon, search.n_rows, found)
                self._note((number, epsilon), search.n_rows, found, round_number)
                if epsilon + 1 < len(self.grid.epsilons or (0,)) and self._ends():
                    return
        except NonFiniteError as error:
            warn_caller(
                f"The models of gamma={gamma:g} are not finite, and have no score: {error}",
                FitFailedWarning,
            )

    def _note(self, key: tuple[int, int], n_rows: int, found: Found, round_number: int) -> None:
        """Put what was found of a gamma and an epsilon into the table, and tell of it."""
        self.done += 1
        self.passed += n_rows / len(self.rows.y)
        self.table.late |= not found.in_time
        # Models that were cut short are only worth something where there is nothing else.
        if found.in_time or not self.table.lines:
            self.table.lines[key] = Line(
                found.scores, round_number, n_rows, found.fit_seconds, found.score_seconds, found.path
            )
        whole = self.as_given and n_rows == len(self.rows.y)
        if self.options.refit and whole and found.drawn and self.table.best_line()[0] == key[0]:
            self.kept = key[0], found.drawn
        self._tell()

    def _tell(self) -> None:
        """Log how far the search is, and show it to whoever watches."""
        best, means, params = self.table.best_index(), self.table.means(), self.table.params()
        seconds = clock.now() - self.begun
        if self.settings.verbose:
            logger.info(
                "%d of %d searched after %.1f s: best score %.6g with %s",
                self.done, self.total, seconds, means[best], params[best],
            )  # fmt: skip
        if self.watch is not None:
            progress = SearchProgress(
                params,
                means,
                self.table.deviations(),
                params[best],
                float(means[best]),
                self.done,
                self.total,
                seconds,
                seconds * max(self.ahead - self.passed, 0.0) / self.passed,
            )
            self.stopped |= bool(self.watch(progress))
