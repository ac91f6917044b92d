"""Cells that learn online, from one batch after the other: ``partial_fit``."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from asset_svm.estimators.base import Encoded, inner_intercept
from asset_svm.estimators.cells.decision import CellDecision, CellModels, Constant
from asset_svm.estimators.cells.nested import Nested, nested_estimator, nested_targets
from asset_svm.estimators.cells.partitions import grow_partition, resolve_cells, shares
from asset_svm.estimators.decision import Decision
from asset_svm.estimators.device import on_host
from asset_svm.estimators.maps import resolve_kernel
from asset_svm.estimators.online import add_record
from asset_svm.estimators.rows import Rows
from asset_svm.estimators.session import adopt_model
from asset_svm.features.cells import grouped
from asset_svm.features.nystroem import CHECK_ROWS, NystroemFeatures

EPOCHS = 25
"""That an exact solution stands for."""


def learn_batch_in_cells(estimator: Any, rows: Rows, encoded: Encoded, *, first: bool) -> None:
    """Route a batch to its cells, let their estimators learn from it, and store the model.

    The first batch settles the cells. A cell that ``fit`` solved exactly goes on from there, with its
    support vectors as landmarks.
    """
    estimator._on_card(rows.X)  # says what is missing, or amiss; streams of cells are the host's
    rows = replace(rows, X=on_host(rows.X))
    if first:
        _begin_stream(estimator, rows, encoded)
    objective, gap = _learn(estimator, rows, encoded, estimator._stream_seed)
    estimator.objective_, estimator.dual_gap_ = objective, gap
    estimator.n_iter_, estimator.t_ = estimator.n_iter_ + 1, estimator.t_ + len(rows.y)
    record = {"batch": estimator.n_iter_, "steps": estimator.t_, "objective": objective}
    add_record(estimator, record | {"dual_gap": gap})


def _learn(estimator: Any, rows: Rows, encoded: Encoded, seed: int) -> tuple[float, float]:
    """The objective and the duality gap of the batch, from which all of its cells learn."""
    targets, every = nested_targets(rows.y, encoded), np.arange(len(rows.y))
    known = {} if encoded.labels is None else {"classes": estimator.classes_}
    total = float(rows.weight.sum())
    objective = gap = 0.0
    parts = []
    for part in estimator.cells_:
        decisions = list(part.decisions)
        groups = grouped(every, part.partition.assign(rows.X), part.partition.n_cells)
        for cell, index in enumerate(groups):
            if len(index) == 0:
                continue
            lam = estimator.lam_ / part.shares[cell]
            fresh = nested_estimator(estimator, estimator._cell_kernel, seed + cell, lam)
            model = _learner(estimator, fresh, part, cell, rows.X[index], encoded)
            model.partial_fit(rows.X[index], targets[index], sample_weight=rows.weight[index], **known)
            decisions[cell] = Nested(model, None, encoded.targets.n_models, encoded.offset)
            share = float(rows.weight[index].sum()) / total / len(estimator.cells_)
            objective += share * model.objective_
            gap += share * model.dual_gap_
        parts.append(CellModels(part.partition, decisions, part.shares, part.mean_weight, part.n_rows))
    estimator.cells_ = parts
    for exact in ("support_", "n_support_"):
        estimator.__dict__.pop(exact, None)
    alone = not estimator._cell_kernel.is_reentrant
    estimator._decision = CellDecision(parts, encoded.targets.n_models, rows.X.dtype, alone)
    return objective, gap


def _begin_stream(estimator: Any, rows: Rows, encoded: Encoded) -> None:
    """Partitions of the first batch, with nothing learnt yet."""
    estimator._offset, estimator._stream_seed = encoded.offset, estimator._seed()
    estimator.n_iter_ = estimator.t_ = 0
    kernel = resolve_kernel(estimator, rows.X, rows.uneven)
    count = resolve_cells(estimator.n_cells, len(rows.y))
    nothing = Constant(np.full(encoded.targets.n_models, encoded.offset))
    parts = []
    for number in range(estimator.n_partitions):
        partition, groups = grow_partition(rows.X, count, estimator._stream_seed, number)
        parts.append(CellModels(partition, [nothing] * partition.n_cells, shares(rows.weight, groups)))
    estimator.cells_, estimator._cell_kernel = parts, kernel
    estimator.n_cells_ = int(np.mean([part.partition.n_cells for part in parts]).round())
    estimator.gamma_, estimator.lam_, estimator.history_ = kernel.gamma, estimator._lam(rows), []


def _learner(estimator: Any, fresh: Any, part: CellModels, cell: int, X: Any, encoded: Encoded) -> Any:
    """The estimator that goes on from a cell's decision, a copy; ``fresh`` where there is none.

    An exact solution counts as so many steps as a fit by steps would have taken.
    """
    decision: Any = part.decisions[cell]
    mean_weight = part.mean_weight
    if isinstance(decision, Nested) and decision.columns is None:
        return copy.copy(decision.model)
    K = encoded.targets.n_models
    if isinstance(decision, Decision):
        basis = decision.source
        phi = NystroemFeatures.from_landmarks(
            basis.components, basis.kernel, dtype=X.dtype, basis="eigen", probe=X[:CHECK_ROWS]
        )
        gram = basis.kernel(basis.components, basis.components)
        coef, intercept = decision.weights @ gram @ phi.projection, decision.intercept
    elif isinstance(decision, Nested):
        model, phi = decision.model, decision.model.feature_map_
        coef, intercept = np.zeros((K, phi.dimension)), np.full(K, -1.0)
        both = np.array([[-1.0], [1.0]]) if len(model.classes_) == 2 else np.ones((1, 1))
        coef[decision.columns] = both * model.coef_
        inner = inner_intercept(model, phi, 0.0)
        intercept[decision.columns] = (both * inner[:, None]).ravel()
    else:
        if decision.X is not None:
            weight = np.full(decision.X.shape[0], mean_weight)
            labels = {} if encoded.labels is None else {"classes": estimator.classes_}
            fresh.partial_fit(decision.X, decision.y, sample_weight=weight, **labels)
        return fresh
    fresh.n_features_in_ = estimator.n_features_in_
    if encoded.labels is not None:
        fresh.classes_ = estimator.classes_
    steps = EPOCHS * round(part.shares[cell] * part.n_rows)
    plain = replace(encoded, offset=0.0)
    adopt_model(fresh, phi, coef, intercept - encoded.offset, plain, X.dtype, mean_weight, steps)
    return fresh
