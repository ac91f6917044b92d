"""All rows that a search was given, which its best model learns from, in memory or not.

What a search looks at are rows in memory: all of them, or a sample of those of a source. Final models
learn from all of them, wherever they lie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from asset_svm.arrays import Array
from asset_svm.data.scan import Scanned
from asset_svm.data.source import Block, RowSource
from asset_svm.encoding.frames import as_table
from asset_svm.encoding.table import Table
from asset_svm.estimators.encoded import encode_rows
from asset_svm.estimators.files import fit_rows, held_bytes, scan_for
from asset_svm.estimators.inside import encoder_of, fit_watched, in_units, settings_of, task_of
from asset_svm.estimators.learner import Learner
from asset_svm.estimators.tables import TableEncoder
from asset_svm.families.labels import labelled
from asset_svm.families.observing import Watch
from asset_svm.memory import planned_memory
from asset_svm.tasks import Task

SAMPLING = {"n_cells": "auto", "relevance": "auto", "looked_at": 200_000}
"""What the scan of a search draws rows for: any model, and 200 000 of them to look at, where an eighth
of the memory that is planned has room."""
READING = 1e-8
"""Nominal seconds of reading a byte of rows, of text or not."""
CELL_BYTES = 2.0
"""Of the memory that is planned: rows that take more are not tried in cells."""


class AllRows(Protocol):
    """What final models learn from."""

    @property
    def n_rows(self) -> int:
        """Rows that are learnt from."""

    @property
    def reading(self) -> float | None:
        """The seconds of reading them once; None where they are in memory."""

    @property
    def reading_work(self) -> float | None:
        """The same in nominal seconds, which no clock has a part in."""

    @property
    def elsewhere(self) -> bool:
        """Whether others train the final model, which takes no time of the search."""

    def some(self, count: int, task: Task, y: Array, seed: int) -> AllRows:
        """About so many of them, drawn at random; ``y`` are the targets that the search has seen."""

    def teach(self, model: Learner, **options: Any) -> AllRows:
        """Fit a model to them; returns them encoded, for others that take the same encoding."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory, as they were given to ``fit``.

    Parameters
    ----------
    X, y, weight
    index : array
        The places of rows of positive weight.
    encoder : TableEncoder or None
        What has made X.
    """

    X: Any
    y: Any
    weight: Any
    index: Array
    encoder: TableEncoder | None = None
    reading: float | None = None
    reading_work: float | None = None
    elsewhere: bool = False

    @property
    def n_rows(self) -> int:
        """Rows that are learnt from."""
        return len(self.index)

    def some(self, count: int, task: Task, y: Array, seed: int) -> HeldRows:
        """So many of them, of every class some."""
        if task.numeric:
            kept = np.random.default_rng([seed, 24]).permutation(self.n_rows)[:count]
        else:
            kept = task.split(y, 1.0 - count / self.n_rows, seed)[0]
        rows = np.sort(self.index[kept])
        weight = None if self.weight is None else _safe_indexing(self.weight, rows)
        X, own = _safe_indexing(self.X, rows), _safe_indexing(self.y, rows)
        return replace(self, X=X, y=own, weight=weight, index=np.arange(len(rows)))

    def teach(self, model: Learner, **options: Any) -> HeldRows:
        """Fit a model to them; ``options`` are those of ``fit_watched``."""
        given = {"searched": True, "encoder": self.encoder} | options
        fit_watched(model, self.X, self.y, self.weight, **given)
        encoder = encoder_of(model)
        if encoder is None or self.encoder is not None:
            return self
        return replace(self, X=encoder.rows(self.X, learning=True, whole=True), encoder=encoder)


@dataclass(frozen=True, eq=False)
class SourceRows:
    """Rows of a source, which may be too many for memory.

    Parameters
    ----------
    scanned : Scanned
    options : dict
        Of scans of other rows of the source.
    folder : path, optional
        Where rows go that are sorted into cells; by default the system's for temporary files.
    watch : callable, optional
        Called with the progress of final models.
    encoder : TableEncoder or None
        What has made the rows.
    """

    scanned: Scanned
    options: dict[str, Any]
    folder: str | Path | None = None
    watch: Watch | None = None
    encoder: TableEncoder | None = None
    elsewhere: bool = False

    @classmethod
    def scan(
        cls, source: RowSource | Scanned, folder: str | Path | None, watch: Watch | None, **options: Any
    ) -> SourceRows:
        """Look at all rows once; ``options`` are those of ``scan_for``."""
        scanned = source if isinstance(source, Scanned) else scan_for(source, **options)
        return cls(scanned, options, folder, watch)

    @property
    def n_rows(self) -> int:
        """Rows that are learnt from."""
        return self.scanned.summary.n_rows

    @property
    def reading(self) -> float | None:
        """The seconds of reading them once; None where they turn out to fit in memory."""
        return None if self.scanned.held is not None else self.scanned.seconds

    @property
    def reading_work(self) -> float | None:
        """The same in nominal seconds, which no clock has a part in."""
        return None if self.scanned.held is not None else READING * self.scanned.summary.n_bytes

    def sample(self, *, numeric: bool) -> Block:
        """The rows that a search looks at: all, where they are in memory."""
        summary = self.scanned.summary
        some = self.scanned.held or summary.spread or summary.sample
        return labelled(some, summary, numeric=numeric)

    @property
    def fit_in_cells(self) -> bool:
        """Whether a model in cells, which keeps a good part of the rows, is likely to fit in memory."""
        room = planned_memory(self.options.get("memory_limit"))
        return self.scanned.held is not None or self.scanned.summary.n_bytes <= CELL_BYTES * room

    def check_seen(self, classes: Array) -> None:
        """Raise where some classes are not among those of the rows that a search looks at."""
        known = self.scanned.summary.targets.classes
        missing = [] if known is None else [str(each) for each in np.setdiff1d(known, classes)]
        if missing:
            raise ValueError(
                "probability=True takes the decisions of the rows that the search looks at, and these "
                f"have no {', '.join(missing[:5])} among their classes; raise memory_limit (--memory), "
                "or calibrate best_estimator_ with CalibratedClassifierCV."
            )

    def some(self, count: int, task: Task, y: Array, seed: int) -> AllRows:
        """About so many of them: of those that the search has looked at, if they suffice."""
        sample = self.sample(numeric=task.numeric)
        if count <= len(sample):
            held = HeldRows(sample.X, sample.y, None, np.arange(len(sample)), self.encoder)
            return held if count == len(sample) else held.some(count, task, y, seed)
        source = self.scanned.source.part(count / self.n_rows, seed, kept=False)
        return SourceRows.scan(source, self.folder, self.watch, **self.options)

    def teach(self, model: Learner, **options: Any) -> SourceRows:
        """Fit a model to them."""
        del options  # those of rows in memory
        rows = self._encoded(model)
        fit_rows(model, rows.scanned, encoder=rows.encoder, watch=self.watch, temp_dir=self.folder)
        return rows

    def encoder_of(self, model: Learner) -> Any:
        """The encoder of a model of these rows."""
        return _encoder_for(model, table=self.scanned.summary.table is not None)

    def _encoded(self, model: Learner) -> SourceRows:
        """The rows as numbers, as the encoder of the model makes them."""
        scanned, encoder = self.scanned, self.encoder_of(model)
        if self.encoder is not None or not isinstance(encoder, TableEncoder):
            return self
        if scanned.summary.table is None:
            columns = partial(_as_columns, scanned.source.feature_names)
            scanned = scan_for(scanned.source.transformed(columns), **self.options)
        encoder, settings = clone(encoder), settings_of(model)
        scanned = encode_rows(
            encoder,
            scanned,
            task_of(model, settings),
            held_bytes(settings.memory_limit),
            named=scanned.source.feature_names is not None,
            in_units=partial(in_units, model),
        )
        return replace(self, scanned=scanned, encoder=encoder)


@dataclass(frozen=True)
class RowsElsewhere:
    """Rows that lie elsewhere, from which others train the model: a search has a sample of them.

    Parameters
    ----------
    n_rows : int
    table : bool
        Whether they are columns as they came, to be encoded.
    """

    n_rows: int
    table: bool
    reading: float | None = None
    reading_work: float | None = None
    elsewhere: bool = True
    fit_in_cells: bool = True

    def encoder_of(self, model: Learner) -> Any:
        """The encoder of a model of these rows."""
        return _encoder_for(model, table=self.table)

    def check_seen(self, classes: Array) -> None:
        """Raise: the decisions that a search has held out are not those of the final model's rows."""
        del classes
        raise ValueError("probability=True: the model is trained elsewhere; set probability=False.")

    def some(self, count: int, task: Task, y: Array, seed: int) -> RowsElsewhere:
        """All of them: others know how many they can learn from."""
        del count, task, y, seed
        return self

    def teach(self, model: Learner, **options: Any) -> RowsElsewhere:
        """Raise: the rows are not here."""
        raise ValueError("The rows of this search lie elsewhere; set refit=False.")


def _encoder_for(model: Learner, *, table: bool) -> Any:
    """The encoder that a model asks for: columns of a table are encoded in any case."""
    asked = model.get_params(deep=False)["encoder"]
    return TableEncoder() if table and not isinstance(asked, TableEncoder) else asked


def _as_columns(names: tuple[str, ...] | None, X: Any) -> Table:
    """A matrix as a table with these names."""
    table = as_table(X)
    return table if names is None else Table(names, table.columns)
