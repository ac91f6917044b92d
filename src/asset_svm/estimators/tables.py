"""TableEncoder: columns of any kind to rows of numbers, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from asset_svm.arrays import Array, Matrix
from asset_svm.data.scan import MOST_CLASSES
from asset_svm.encoding.encoding import Encoding, said
from asset_svm.encoding.frames import as_table, is_frame
from asset_svm.encoding.plan import NUMBERS, SENTENCES, MeansFit, Options, Plan
from asset_svm.encoding.summary import TableSummary
from asset_svm.encoding.table import Table, as_levels
from asset_svm.estimators.validation import all_or_nothing, forget
from asset_svm.exceptions import warn_caller
from asset_svm.families.observing import logger
from asset_svm.families.one_map.trial import some_of
from asset_svm.families.relevance.choice import LEAST_GAIN
from asset_svm.families.relevance.quick import Judged
from asset_svm.families.rows import Rows
from asset_svm.settings import Settings
from asset_svm.settings.checks import is_integer, keep_parameters
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Classification, Outputs, Regression, Task

LOOKED_AT, HELD, FEWEST_LOOKED_AT = 10_000, 0.2, 200
"""Rows that tell how numbers are encoded, the part of them that is held out, and so many at least."""
LOOKED_NUMBERS = 4_000_000
"""Numbers of these rows, at most: of wide tables there are fewer rows, which take less memory."""
FACTORS = (0.0625, 0.25, 1.0)
"""How much narrower than the spread of the rows the kernels of quick fits are."""
LOOK_SEED = 19


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make rows of numbers of a table with categories, gaps, dates and columns of any scale.

    Numbers are scaled, or encoded piecewise linearly between quantiles; a gap is the median, and told
    by a column of its own. Categories and truth values are one-hot, rare levels joined; those of many
    levels, where there are targets, are the mean targets of the rows of a level, in training those of
    rows of other folds; where targets are numbers, levels have their order besides. Dates become time,
    and cycles of year, week and day. Columns of one value, names of rows (a level a row) and sentences
    are left out, with a word in the log.

    Parameters
    ----------
    numbers : {"auto", "standard", "pieces", "robust", "quantile"}, default="auto"
        "standard": mean 0 and variance 1. "pieces": positions in the intervals between quantiles, of
        variance 1 together. "robust": by median and quartiles, far values drawn to 3. "quantile":
        ranks. "auto": where there are targets, "pieces" if quick fits say so on held-out rows, up to
        2000 of 10 000; else "standard".
    n_pieces : int, default=48
        Intervals of "pieces", at most; as many as there are different values, where they are few.
    max_levels : int, default=64
        Columns of more levels have target means; without targets, the most frequent levels have a
        column each, and all others share one.
    categorical : list of str or int, optional
        Columns that are categories, whatever they look like.
    drop : list of str or int, optional
        Columns to leave out.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32

    Attributes
    ----------
    numbers_ : str
        How numbers are encoded.
    columns_ : list of dict
        Of each column of the table: name, kind, what was made of it, and whether it was kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the table has names.

    Notes
    -----
    A level that training rows have not is one of the rare ones, or 0 in every column where there were
    none; its target mean is that of levels seen once. A new gap is the median, or no level. A missing
    column, or text where training rows had numbers, is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import TableEncoder
    >>> table = np.array([[1, "red"], [2, "blue"], [None, "red"], [4, "blue"]], dtype=object)
    >>> TableEncoder(numbers="standard").fit_transform(table).round(1)
    array([[-1.1,  0. ,  0. ,  1. ],
           [-0.3,  0. ,  1. ,  0. ],
           [-0.3,  1. ,  0. ,  1. ],
           [ 1.3,  0. ,  1. ,  0. ]], dtype=float32)
    """

    encoding_: Encoding

    def __init__(
        self,
        *,
        numbers: str = "auto",
        n_pieces: int = 48,
        max_levels: int = 64,
        categorical: Sequence[str | int] | None = None,
        drop: Sequence[str | int] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        keep_parameters(self, locals())

    # scikit-learn's protocol --------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "encoding_" in self.__dict__

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the numbers: the column's, then the piece, the level or the cycle.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.array(self.encoding_.feature_names, dtype=object)

    # Fits ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what to make of the columns.

        Parameters
        ----------
        X : data frame, Arrow table, or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Targets, for the means of categories of many levels: classes, or numbers.

        Returns
        -------
        self
        """
        table = as_table(X, self.unread)
        if y is None:
            return self.learn(table, None, None, named=is_frame(X))
        check_targets(y, numeric=False)
        y = check_array(column_or_1d(y), ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(table, y)
        weight, n_values = np.ones(len(y)), len(np.unique(y))
        if n_values == 1:  # of which every level has the same mean
            return self.learn(table, None, None, named=is_frame(X))
        many = n_values > MOST_CLASSES and y.dtype.kind in "iuf"
        numeric = many or type_of_target(y) == "continuous"
        task = Regression() if numeric else Classification()
        return self.learn(table, task.settled(y, weight), (y, weight), named=is_frame(X))

    def learn(
        self,
        table: Table,
        task: Task | None,
        targets: tuple[Array, Array] | None,
        *,
        named: bool,
        means: bool = True,
    ) -> Self:
        """Learn from a table in memory; ``targets`` are those of a settled task, and weights.

        Without ``means`` they have no part in any number.
        """
        if len(table) == 1:
            raise ValueError("X has n_samples=1, and one row tells nothing of columns; give more.")
        with all_or_nothing(self):
            table = self.given(table)
            y = targets[0] if _makes_steps(task) and targets is not None else None
            summary = TableSummary.of(table, y)

            def fill(filled: MeansFit) -> MeansFit:
                assert task is not None and targets is not None
                share = targets[1] / targets[1].mean()  # smoothing counts rows
                filled.add(table, outputs_of(task, targets[0]), share, whole=True)
                return filled

            self.settle(summary, table, task, targets, fill, named=named, means=means)
        return self

    def settle(
        self,
        summary: TableSummary,
        some: Table,
        task: Task | None,
        targets: tuple[Array, Array] | None,
        fill: Callable[[MeansFit], MeansFit],
        *,
        named: bool,
        means: bool = True,
    ) -> None:
        """Learn from what is known of a table, wherever its rows lie.

        Parameters
        ----------
        summary : TableSummary
            Of all rows.
        some : Table
            Some rows, or all.
        task, targets
            What is learnt from them, and their targets and weights; None where there are none.
        fill : callable
            Who adds all rows to the sums of targets, where means are to be taken.
        named, means : bool
            As for ``learn``.
        """
        numbers = self.chosen(summary, some, task, targets)
        plan = self.planned(summary, task if means else None, numbers)
        found = None
        if task is not None and plan.lacks_means:
            found = fill(means_fit(plan, task)).finish()
        self.adopt(plan.encoding(found), named=named, numbers=numbers)

    def chosen(
        self,
        summary: TableSummary,
        some: Table,
        task: Task | None,
        targets: tuple[Array, Array] | None,
    ) -> str:
        """How numbers are encoded, by ``some`` rows with their targets and weights where it is open."""
        if self.numbers != "auto":
            return str(self.numbers)
        if task is None or targets is None:
            return "standard"
        plans = {name: self.planned(summary, None, name) for name in ("standard", "pieces")}
        if all(each.kind == "levels" for each in summary.columns):
            return "standard"
        functions = {name: plan.encoding() for name, plan in plans.items()}
        if not all(function.width for function in functions.values()):
            return "standard"  # there is nothing to tell
        return better_of(functions, some, task, *targets)

    def planned(self, summary: TableSummary, task: Task | None, numbers: str) -> Plan:
        """What is made of columns that a summary tells of, for targets of a task, or of none."""
        if self.numbers not in ("auto", *NUMBERS):
            choices = ", ".join(("auto", *NUMBERS))
            raise ValueError(f"numbers={self.numbers!r} is not known; choose one of {choices}.")
        for name in ("n_pieces", "max_levels"):
            if not is_integer(getattr(self, name)) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be an integer of at least 1.")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={self.dtype!r} is not a type of rows; use float32 or float64.")
        options = Options(numbers, self.n_pieces, self.max_levels)
        dropped = self._names(summary.names, self.drop, "drop")
        return Plan(summary, options, task is not None, _makes_steps(task), dropped)

    def unread(self, names: Sequence[str]) -> set[str]:
        """The columns to leave out, whatever they hold."""
        return self._names(names, self.drop, "drop")

    def given(self, table: Table, names: Sequence[str] | None = None) -> Table:
        """The table with categories of the columns that were named so, or counted among ``names``."""
        categorical = self._names(names or table.names, self.categorical, "categorical")
        columns = (
            as_levels(column) if name in categorical else column
            for name, column in zip(table.names, table.columns, strict=True)
        )
        return Table(table.names, tuple(columns))

    @staticmethod
    def _names(names: Sequence[str], given: Any, what: str) -> set[str]:
        """The columns that a parameter names, or counts from 0."""
        found: set[str] = set()
        asked: Any = [given] if isinstance(given, str) else () if given is None else given
        for each in asked:
            if is_integer(each) and 0 <= each < len(names):
                found.add(names[each])
            elif isinstance(each, str) and each in names:
                found.add(each)
            else:
                raise ValueError(f"{what} has {each!r}, which is no column of X.")
        return found

    def adopt(self, encoding: Encoding, *, named: bool, numbers: str, quiet: bool = False) -> None:
        """Take an encoding as that of a fit; ``named``: tables have names of columns."""
        if encoding.width == 0:
            raise ValueError(f"No column of X tells rows apart: {'; '.join(said(encoding.notes))}.")
        forget(self)
        self.encoding_, self.numbers_ = encoding, numbers
        self.columns_ = [dict(vars(note)) for note in encoding.notes]
        self.n_features_in_ = len(encoding.notes)
        if named:
            self.feature_names_in_ = np.array(encoding.names, dtype=object)
        if quiet:
            return
        for line in said(encoding.notes):
            logger.info("table: %s", line)
        for note in encoding.notes:
            if note.made == SENTENCES:
                warn_caller(f"The column {note.name!r} is left out: {note.made}.", UserWarning)

    # Rows ---------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Matrix:
        """The numbers of the rows of a table.

        Parameters
        ----------
        X : data frame, Arrow table, or array of shape (n_samples, n_features)

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features_out)
        """
        return self.rows(X)

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """Learn what to make of the columns, and make it of these rows, to learn from.

        Target means are those of rows of other folds, so that no row sees its own target: not what
        ``transform`` makes of the same rows.

        Parameters
        ----------
        X, y
            As for ``fit``.

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features_out)
        """
        return self.fit(X, y).rows(X, learning=True, whole=True)

    def rows(self, X: Any, *, learning: bool = False, whole: bool = False) -> Matrix:
        """The numbers of rows, to predict or to learn from; ``whole``: those that ``learn`` had."""
        check_is_fitted(self)
        return self.encoding_(self.table(X), self.dtype, learning=learning, whole=whole)

    def table(self, X: Any) -> Table:
        """The columns of X by the names of those that were learnt from.

        Where either has no names, they are in the same order, as scikit-learn has it.
        """
        names, named = self.encoding_.names, hasattr(self, "feature_names_in_")
        used = {note.name for note in self.encoding_.notes if note.kept}
        table = as_table(X, (lambda given: set(given) - used) if named and is_frame(X) else None)
        if not (named and is_frame(X)) and table.names != names:
            if len(table.names) != len(names):
                raise ValueError(
                    f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                    f"{len(names)} features as input."
                )
            is_not = "X does not have valid" if named else "X has"
            was = "with" if named else "without"
            warn_caller(
                f"{is_not} feature names, but {type(self).__name__} was fitted {was} feature names",
                UserWarning,
            )
            table = Table(names, table.columns)
        return self.given(table, names)


def better_of(functions: dict[str, Encoding], table: Table, task: Task, y: Array, weight: Array) -> str:
    """Which of two ways to make numbers quick fits learn more from, the first where they are alike."""
    from asset_svm.estimators.regressor import AssetRegressor

    settings = Settings.of(AssetRegressor().get_params(deep=False))
    widest = max(function.width for function in functions.values())
    count = max(min(LOOKED_AT, LOOKED_NUMBERS // widest), FEWEST_LOOKED_AT)
    chosen = some_of(len(y), count, np.random.default_rng(LOOK_SEED))
    if len(chosen) < FEWEST_LOOKED_AT:
        return next(iter(functions))
    out = int(HELD * len(chosen))
    losses = {}
    for name, function in functions.items():
        X = function(table[chosen])
        rows = Rows(X, y[chosen], weight[chosen], weight[chosen], chosen)
        judged = Judged(
            settings, task, rows.take(np.arange(out, len(chosen))), rows.take(np.arange(out)), 0, 0
        )
        losses[name] = min(judged.fit(None, 0, None, factor).loss for factor in FACTORS)
    first, second = losses
    logger.info("table: %s", ", ".join(f"{name} {loss:.4g}" for name, loss in losses.items()))
    return second if losses[second] < (1.0 - LEAST_GAIN) * losses[first] else first


def means_fit(plan: Plan, task: Task) -> MeansFit:
    """Who takes the means of the targets of a task."""
    parts = task.parts if isinstance(task, Outputs) else (task,)
    names = [f"{number} " if len(parts) > 1 else "" for number in range(len(parts))]
    labels = (
        f"{name}{label}".strip()
        for name, part in zip(names, parts, strict=True)
        for label in _shown(part)
    )
    return MeansFit(plan, tuple(labels))


def outputs_of(task: Task, y: Array) -> Array:
    """(rows, outputs) numbers whose means are taken: values, or which class a row has."""
    if isinstance(task, Outputs):
        parts = zip(task.parts, np.asarray(y).T, strict=True)
        return np.hstack([outputs_of(part, own) for part, own in parts])
    if task.classes is None:
        return np.asarray(y, dtype=np.float64)[:, None]
    return (np.asarray(y)[:, None] == _shown(task)).astype(np.float64)


def _shown(task: Task) -> Any:
    """The classes whose means are taken: the second of two, else all; "" stands for numbers."""
    if task.classes is None:
        return ("",)
    return task.classes[1:] if len(task.classes) == 2 else task.classes


def _makes_steps(task: Task | None) -> bool:
    """Whether targets are numbers of one output, which columns may be cut by."""
    return task is not None and task.numeric and not isinstance(task, Outputs)
