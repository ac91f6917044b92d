"""Fitted models: what predicts, and what is known of it.

    task        "classification": classes; "regression": epsilon, centred, offset
    facts       lam, n_iter, steps, step_scale, objective, dual_gap, history, and where there are any
                n_components, approximation_error, compact_error, n_shards, n_rounds
    one map     an expansion, the rows that are landmarks, facts, the trials of n_components="auto"
    cells       kernel, type of the rows, partitions, rows that are support vectors and how many a
                class, facts
    partition   tree, n_cells, shares (n_cells,), mean_weight, n_rows, cells
    tree        its nodes, the root first: centres (c, n) and c children. A child is a cell, its
                number, or the node k, as -1 - k; where there is one cell there is no node
    cell        "constant": values (K,), no_rows (0, n);
                "expansion": an expansion;
                "map": a task, the model on one map, the columns of its classes, the offset

K is the number of decisions: 1 for numbers and for two classes, else that of the classes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.decision import Decision
from asset_svm.families.one_map import FittedMap
from asset_svm.families.one_map.fitted import COMPACTED
from asset_svm.features.cells import Node, Partition
from asset_svm.persistence.maps import read_expansion, read_kernel, write_expansion, write_kernel
from asset_svm.persistence.reading import FLOATS, INTEGERS, Record, shown
from asset_svm.persistence.writing import Writer
from asset_svm.tasks import Classification, Regression, Task

Array = npt.NDArray[Any]
FOR_PREDICTION = (
    "its file was saved for prediction; save the model with resumable=True (asset train --resumable)"
)
MORE_FACTS = ("n_components", "approximation_error", "compact_error", "n_shards", "n_rounds")
"""What some models have besides, as attributes that end in an underscore."""


# Tasks --------------------------------------------------------------------------------------------


def write_task(write: Writer, task: Task, name: str) -> dict[str, Any]:
    """What a model has learnt."""
    if isinstance(task, Regression):
        numbers = {"epsilon": write.number(task.epsilon), "offset": write.number(task.offset)}
        return {"kind": "regression", **numbers, "centred": bool(task.centred)}
    if not isinstance(task, Classification):
        raise ValueError(f"A task of type {type(task).__name__} cannot be saved.")
    return {"kind": "classification", "classes": write.array(task.known, f"{name}.classes")}


def read_task(record: Record, class_weight: Any = None) -> Task:
    """What a model has learnt."""
    if record.text("kind", ("classification", "regression")) == "regression":
        return Regression(
            record.number("epsilon", 0.0), record.flag("centred"), record.number("offset")
        )
    classes = record.labels("classes")
    listed = classes.tolist()
    if not listed or any(isinstance(each, dict | list | tuple) for each in listed):
        record.refuse(f"is {shown(listed)}", "classes")
    if any(not one < other for one, other in pairwise(listed)):
        record.refuse("is not in order, or has a class twice", "classes")
    return Classification(class_weight, classes)


# Facts --------------------------------------------------------------------------------------------


def write_facts(write: Writer, fitted: FittedMap | FittedCells, name: str) -> dict[str, Any]:
    """What is known of a model."""
    numbers = ("lam", "n_iter", "steps", "objective", "dual_gap")
    more = {each: fitted.extra.get(f"{each}_") for each in MORE_FACTS if f"{each}_" in fitted.extra}
    return {
        **{each: write.number(getattr(fitted, each)) for each in numbers},
        "step_scale": write.maybe(getattr(fitted, "step_scale", None)),
        "history": [
            write.mapping(each, f"{name}.history.{i}") for i, each in enumerate(fitted.history)
        ],
        **{each: write.maybe(value) for each, value in more.items()},
    }


def read_facts(record: Record) -> dict[str, Any]:
    """The fields of a fitted model that are known of it."""
    more = {
        each: record.maybe_number(each, finite=False) for each in MORE_FACTS if each in record.fields
    }
    return {
        "lam": record.number("lam", 0.0, finite=False),
        "n_iter": record.integer("n_iter"),
        "steps": record.integer("steps"),
        "objective": record.number("objective", finite=False),
        "dual_gap": record.number("dual_gap", finite=False),
        "history": record.mappings("history"),
        "extra": {f"{each}_": value for each, value in more.items()},
    }


# One map ------------------------------------------------------------------------------------------


def write_one_map(write: Writer, fitted: FittedMap, name: str) -> dict[str, Any]:
    """What predicts of a model on one map."""
    bare, trials = fitted.bare(), fitted.component_search
    return {
        "family": "one map",
        **write_expansion(write, bare.decision, name),
        "landmark_rows": write.array(fitted.indices, f"{name}.landmark_rows"),
        "facts": write_facts(write, bare, f"{name}.facts"),
        "component_search": None
        if trials is None
        else [write.mapping(each, f"{name}.component_search.{i}") for i, each in enumerate(trials)],
    }


def read_one_map(record: Record, task: Task, n_columns: int) -> FittedMap:
    """A model on one map, which predicts."""
    decision = read_expansion(record, n_columns, task.n_models)
    landmarks = getattr(decision.source, "components", None)
    facts = record.record("facts")
    known = read_facts(facts)
    count = None if landmarks is None else landmarks.shape[0]
    return FittedMap(
        task=task,
        coef=decision.weights if landmarks is None else None,
        phi=None,
        decision=decision,
        indices=record.maybe_array("landmark_rows", (count,), INTEGERS, low=0),
        session=None,
        map_key=None,
        step_scale=facts.maybe_number("step_scale"),
        component_search=record.maybe_mappings("component_search"),
        fixed=COMPACTED if "compact_error_" in known["extra"] else FOR_PREDICTION,
        **known,
    )


# Cells --------------------------------------------------------------------------------------------


def write_cells(write: Writer, fitted: FittedCells, name: str) -> dict[str, Any]:
    """What predicts of a model of cells."""
    bare = fitted.bare()
    return {
        "family": "cells",
        "kernel": write_kernel(fitted.kernel),
        "type": np.dtype(fitted.decision.dtype).name,
        "partitions": [
            _write_partition(write, part, f"{name}.partitions.{i}")
            for i, part in enumerate(bare.decision.parts)
        ],
        "support_rows": write.array(fitted.support, f"{name}.support_rows"),
        "n_support": write.array(fitted.n_support, f"{name}.n_support"),
        "facts": write_facts(write, fitted, f"{name}.facts"),
    }


def read_cells(record: Record, task: Task, n_columns: int) -> FittedCells:
    """A model of cells, which predicts."""
    parts = [_read_partition(each, task, n_columns) for each in record.records("partitions")]
    if not parts:
        record.refuse("is empty", "partitions")
    kind = np.dtype(record.text("type", ("float32", "float64")))
    support = record.maybe_array("support_rows", (None,), INTEGERS, low=0)
    counts = None if task.classes is None else len(task.classes)
    if support is not None:
        _check_exact(record, parts, len(support))
    return FittedCells(
        task=task,
        kernel=read_kernel(record.record("kernel")),
        decision=CellDecision(parts, task.n_models, kind),
        seed=0,
        support=support,
        n_support=record.maybe_array("n_support", (counts or 1,), INTEGERS, low=0),
        fixed=FOR_PREDICTION,
        **read_facts(record.record("facts")),
    )


def _check_exact(record: Record, parts: list[CellModels], count: int) -> None:
    """Support vectors are those of one exact cell."""
    decision: Any = parts[0].decisions[0]
    exact = len(parts) == 1 and len(parts[0].decisions) == 1
    if isinstance(decision, Decision):
        exact = exact and decision.source.components.shape[0] == count
    else:
        exact = exact and isinstance(decision, Constant) and decision.X is not None and count == 0
    if not exact:
        record.refuse(f"has {count} rows, which are not those of one exact cell", "support_rows")


def _write_partition(write: Writer, part: CellModels, name: str) -> dict[str, Any]:
    return {
        "tree": _write_tree(write, part.partition, f"{name}.tree"),
        "n_cells": part.partition.n_cells,
        "shares": write.array(part.shares, f"{name}.shares"),
        "mean_weight": write.number(part.mean_weight),
        "n_rows": write.number(part.n_rows),
        "cells": [
            _write_cell(write, each, f"{name}.cells.{i}") for i, each in enumerate(part.decisions)
        ],
    }


def _read_partition(record: Record, task: Task, n_columns: int) -> CellModels:
    cells = [_read_cell(each, task, n_columns) for each in record.records("cells")]
    count = record.integer("n_cells", 1, len(cells))
    if count < len(cells):
        record.refuse(f"has {len(cells)} cells instead of {count}", "cells")
    root = _read_tree(record, count, n_columns)
    shares = record.array("shares", (count,))
    if (shares < 0.0).any():
        record.refuse("has a part below 0", "shares")
    n_rows, mean_weight = record.integer("n_rows"), record.number("mean_weight", 0.0)
    return CellModels(Partition(root, count), cells, shares, mean_weight, n_rows)


def _write_tree(write: Writer, partition: Partition, name: str) -> list[dict[str, Any]]:
    nodes = [partition.root] if isinstance(partition.root, Node) else []
    written = []
    for number, node in enumerate(nodes):  # it grows on the way
        children = []
        for child in node.children:
            children.append(-1 - len(nodes) if isinstance(child, Node) else int(child))
            if isinstance(child, Node):
                nodes.append(child)
        centres = write.array(node.centres, f"{name}.{number}.centres")
        written.append({"centres": centres, "children": children})
    return written


def _read_tree(record: Record, n_cells: int, n_columns: int) -> Any:
    """The root of the tree, every node and cell of which is below one other."""
    records = record.records("tree")
    if not records:
        if n_cells != 1:
            record.refuse(f"has no node for {n_cells} cells", "tree")
        return 0
    nodes = [Node(each.array("centres", (None, n_columns), FLOATS)) for each in records]
    met: set[int] = set()
    for number, (node, each) in enumerate(zip(nodes, records, strict=True)):
        children = each.items("children")
        if not children or len(children) != len(node.centres):
            each.refuse(f"has {len(children)} entries for {len(node.centres)} centres", "children")
        for child in children:
            # A node comes after the one that it is below, so that there is no way round.
            known = isinstance(child, int) and not isinstance(child, bool)
            if (
                not known
                or child in met
                or not (0 <= child < n_cells or number < -1 - child < len(nodes))
            ):
                each.refuse(f"has {shown(child)}, which cannot be below it", "children")
            met.add(child)
        node.children = [child if child >= 0 else nodes[-1 - child] for child in children]
    if len(met) != n_cells + len(nodes) - 1:
        record.refuse("leaves out a cell or a node", "tree")
    return nodes[0]


def _write_cell(write: Writer, decision: Any, name: str) -> dict[str, Any]:
    if isinstance(decision, Constant):
        values = write.array(np.asarray(decision.values), f"{name}.values")
        no_rows = write.rows(decision.X, f"{name}.no_rows")
        return {"kind": "constant", "values": values, "no_rows": no_rows}
    if isinstance(decision, Nested):
        return {
            "kind": "map",
            "task": write_task(write, decision.model.task, f"{name}.task"),
            "model": write_one_map(write, decision.model, f"{name}.model"),
            "columns": write.array(decision.columns, f"{name}.columns"),
            "offset": write.number(decision.offset),
        }
    if not isinstance(decision, Decision):
        raise ValueError(f"A cell of type {type(decision).__name__} cannot be saved.")
    return {"kind": "expansion", **write_expansion(write, decision, name)}


def _read_cell(record: Record, task: Task, n_columns: int) -> Any:
    kind, K = record.text("kind", ("constant", "expansion", "map")), task.n_models
    if kind == "constant":
        no_rows = record.maybe_rows("no_rows", n_columns)
        return Constant(record.array("values", (K,)), no_rows)
    if kind == "expansion":
        decision = read_expansion(record, n_columns, K)
        if not hasattr(decision.source, "components"):
            record.refuse("is no expansion in landmarks", "source")
        return decision
    own = read_task(record.record("task"))
    model = read_one_map(record.record("model"), own, n_columns)
    columns = record.maybe_array("columns", (None,), INTEGERS, low=0, high=K)
    if columns is None:
        fits = own.n_models == K
    else:
        known = 1 if own.classes is None else len(own.classes)
        fits = len(columns) == known == len(set(columns.tolist()))
    if not fits:
        record.refuse(f"does not fit a model of {K} decisions", "columns")
    return Nested(model, columns, K, record.number("offset"))
