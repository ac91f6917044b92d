"""Tables that are given to estimators: whether they are encoded, and what follows for results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from asset_svm.arrays import Array
from asset_svm.data.scan import Scanned
from asset_svm.encoding.encoding import Encoding
from asset_svm.encoding.frames import as_table, is_frame, is_plain
from asset_svm.encoding.plan import SPARSE_PART, MeansFit
from asset_svm.encoding.table import Table
from asset_svm.estimators.tables import TableEncoder, outputs_of
from asset_svm.estimators.validation import check_weight, is_wide
from asset_svm.families.labels import labelled
from asset_svm.families.observing import logger
from asset_svm.settings.kinds import check_targets
from asset_svm.tasks import Task, for_targets, has_targets

InUnits = Callable[[Task, Array, Array], tuple[Task, Array]]


def check_encoder(encoder: Any) -> None:
    """Raise where the parameter is none that there is."""
    if encoder is not None and encoder != "auto" and not isinstance(encoder, TableEncoder):
        raise ValueError(f'encoder={encoder!r} is not known; use "auto", None or a TableEncoder.')


def encoder_for(encoder: Any, X: Any) -> TableEncoder | None:
    """The encoder to fit to X; None where its rows are taken as they are."""
    check_encoder(encoder)
    if isinstance(encoder, TableEncoder):
        return clone(encoder)
    if encoder is None or not is_frame(X) or is_plain(X):
        return None
    return usual_encoder()


def usual_encoder() -> TableEncoder:
    """The encoder of a frame that is not all numbers, where none is given; the log says so."""
    logger.info(
        "table: columns of X are encoded, numbers too, since some are no numbers or have gaps; "
        "encoder=None refuses that, a TableEncoder says how"
    )
    return TableEncoder()


def check_table(
    encoder: TableEncoder,
    task: Task,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    first: bool,
    means: bool = True,
    in_units: InUnits,
) -> tuple[Any, Array, Array]:
    """Encoded rows to learn from, checked targets and weights; ``first`` rows settle the encoder.

    ``in_units`` gives a task the units of its targets, and these in them. A row of weight 0 has no part
    in that, and the numbers of another.
    """
    table, y, weight = checked_columns(encoder, task, X, y, sample_weight, first=first)
    task = for_targets(task, y, first=first)
    some = weight > 0.0
    if not some.any():
        return encoder.rows(table), y, weight
    table = table if some.all() else table[some]
    if first:
        task, inside = in_units(task, y[some], weight[some])
        learnt = task.settled(inside, weight[some]) if has_targets(task) else None
        targets = None if learnt is None else (inside, weight[some])
        encoder.learn(table, learnt, targets, named=is_frame(X), means=means)
    rows = encoder.rows(table, learning=True, whole=True)
    return rows if some.all() else rows[np.maximum(np.cumsum(some) - 1, 0)], y, weight


def checked_columns(
    encoder: TableEncoder, task: Task, X: Any, y: Any, sample_weight: Any, *, first: bool
) -> tuple[Table, Array, Array]:
    """The columns of X as an encoder takes them, and checked targets and weights."""
    table = as_table(X, encoder.unread) if first else encoder.table(X)
    check_targets(y, numeric=task.numeric)
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = y if is_wide(y) else column_or_1d(y, warn=True)
    y = check_array(y, ensure_2d=False, dtype=np.float64 if task.numeric else None, input_name="y")
    check_consistent_length(table, y)
    return table, y, check_weight(sample_weight, y, part=not first)


def by_columns(encoding: Encoding, shares: Array) -> Array:
    """Importances of the user's columns: those of their numbers, added up."""
    return np.bincount(encoding.origins, shares, minlength=len(encoding.notes))


def gradients_by_columns(encoding: Encoding, table: Table, gradients: Array) -> Array:
    """(rows, outputs, columns) gradients by the user's columns; NaN for those of levels.

    A column that was left out has 0.
    """
    found = np.zeros((*gradients.shape[:2], len(encoding.notes)))
    products = gradients * encoding.slopes(table)[:, None, :]
    for number, column in enumerate(encoding.origins):
        found[..., column] += products[..., number]
    return found


def encode_rows(
    encoder: TableEncoder,
    scanned: Scanned,
    task: Task,
    hold_bytes: int,
    *,
    means: bool = True,
    named: bool = True,
    in_units: InUnits,
) -> Scanned:
    """Fit an encoder to a scan of a table, and the rows that it makes, to learn from.

    They are held in memory where they take no more than ``hold_bytes``. Without ``means`` no target has
    a part in them. Columns that are not ``named`` are those of arrays.
    """
    summary, source = scanned.summary, scanned.source
    assert summary.table is not None
    kinds = zip(summary.table.names, summary.table.columns, strict=True)
    source.settle({name: each.kind for name, each in kinds if each.kind})
    classes, some = summary.targets.classes, labelled(summary.sample, summary, numeric=task.numeric)
    task = for_targets(task, np.asarray(some.y))
    task = task if task.numeric or classes is None else task.with_classes(classes)
    task, y = in_units(task, np.asarray(some.y), np.ones(len(some)))

    def fill(filled: MeansFit) -> MeansFit:
        blocks = source.blocks() if scanned.held is None else iter([scanned.held])
        for block in blocks:
            known = labelled(block, summary, numeric=task.numeric)
            y = in_units(task, np.asarray(known.y), np.ones(len(known)))[1]
            filled.add(encoder.given(known.X), outputs_of(task, y), np.ones(len(y)))
        return filled

    learnt = task if has_targets(task) else None
    targets = None if learnt is None else (y, np.ones(len(y)))
    some_table = encoder.given(some.X)
    encoder.settle(summary.table, some_table, learnt, targets, fill, named=named, means=means)
    width = encoder.encoding_.width * (SPARSE_PART if encoder.encoding_.sparse else 1.0)
    n_bytes = width * np.dtype(encoder.dtype).itemsize * summary.n_rows
    if n_bytes > hold_bytes and source.rereadable:
        scanned = replace(scanned, held=None)
    return scanned.transformed(partial(encoder.rows, learning=True))
