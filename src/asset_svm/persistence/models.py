"""Records of fitted models: what predicts, and what is known of it.

K is the number of decisions (1 for numbers and for two classes, else that of the classes, of pairs of
them, or of the quantiles; of several outputs that of all together), n that of columns of the rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from asset_svm.families.cells import CellDecision, CellModels, Constant, FittedCells, Nested
from asset_svm.families.decision import Decision
from asset_svm.families.one_map import FittedMap
from asset_svm.families.one_map.fitted import COMPACTED
from asset_svm.features.cells import Node, Partition
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.storage.fields import FLOATS, INTEGERS, Fields, shown
from asset_svm.storage.maps import kernel, source
from asset_svm.storage.session import quantiles
from asset_svm.tasks import Classification, OneClass, Outputs, Quantiles, Regression, Task
from asset_svm.tasks.classification import LOSSES as OF_CLASSES
from asset_svm.tasks.classification import MULTI_CLASS
from asset_svm.tasks.regression import LOSSES as OF_NUMBERS
from asset_svm.tasks.units import KINDS as UNITS
from asset_svm.tasks.units import Units

FOR_PREDICTION = (
    "its file was saved for prediction; save the model with resumable=True (asset train --resumable)"
)
TASKS: dict[str, type[Any]] = {
    "classification": Classification,
    "regression": Regression,
    "quantiles": Quantiles,
    "one class": OneClass,
    "outputs": Outputs,
}
MORE_FACTS = ("n_components", "approximation_error", "compact_error", "n_shards", "n_rounds")
"""What some models have besides, as attributes that end in an underscore."""


def task(f: Fields) -> Task:
    """What a model has learnt."""
    kind = f.kind(TASKS)
    if kind == "one class":
        nu, offset = f.number("nu", 0.0), f.number("offset")
        f.check(0.0 < nu < 1.0, "is not between 0 and 1", "nu")
        return OneClass(nu, offset)
    if kind == "quantiles":
        levels, alone, centred = quantiles(f), f.flag("alone"), f.flag("centred")
        f.check(not alone or len(levels) == 1, "is not that of one quantile", "alone")
        offset = f.array("offset", (len(levels),))
        return Quantiles(levels, alone, centred, offset, f.maybe(f.record, "units", _units))
    if kind == "outputs":
        parts = tuple(f.each("parts", "record", task))
        alike = len({(type(part), part.loss) for part in parts}) == 1
        ours = alike and isinstance(parts[0], Classification | Regression)
        f.check(ours, "are not outputs of one kind", "parts")
        return Outputs(parts)
    if kind == "regression":
        epsilon, offset = f.number("epsilon", 0.0), f.number("offset")
        centred = f.flag("centred")
        units = f.maybe(f.record, "units", _units) if f.has("units") else None
        loss = f.text("loss", tuple(OF_NUMBERS), of="loss_name") if f.has("loss") else None
        return Regression(epsilon, centred, offset, units, loss or "epsilon_insensitive")
    classes = f.labels("classes")
    listed = classes.tolist()
    known = listed and not any(isinstance(each, dict | list | tuple) for each in listed)
    f.check(known, f"is {shown(listed)}", "classes")
    in_order = all(one < other for one, other in pairwise(listed))
    f.check(in_order, "is not in order, or has a class twice", "classes")
    loss = f.text("loss", tuple(OF_CLASSES), of="loss_name") if f.has("loss") else "hinge"
    multi_class = f.text("multi_class", MULTI_CLASS) if f.has("multi_class") else "ovr"
    return Classification(None, classes, loss, multi_class)


def _units(f: Fields) -> Units:
    kind, mean, scale = f.text("kind", UNITS), f.number("mean"), f.number("scale", 0.0)
    f.check(scale > 0.0, "is 0", "scale")
    return Units(kind, mean, scale)


def _facts(f: Fields) -> dict[str, Any]:
    """What is known of a model, by the names of what it is made of."""
    known = {
        "lam": f.number("lam", 0.0, finite=False),
        "n_iter": f.integer("n_iter"),
        "steps": f.integer("steps"),
        "objective": f.number("objective", finite=False),
        "dual_gap": f.number("dual_gap", finite=False),
        "step_scale": f.maybe(f.number, "step_scale"),
        "history": f.each("history", "mapping"),
    }
    more = [each for each in MORE_FACTS if f.has(each)]
    extra = {f"{each}_": f.maybe(f.number, each, finite=False) for each in more}
    return {**known, "extra": extra}


def _facts_of(fitted: FittedMap | FittedCells) -> dict[str, Any]:
    more = {name.removesuffix("_"): value for name, value in fitted.extra.items()}
    return {"step_scale": None, **vars(fitted), **more}


# One map ------------------------------------------------------------------------------------------


def _expansion(f: Fields, n: int, K: int) -> Decision:
    """The decision function of so many outputs."""
    basis = f.record("source", source, n, inline=True)
    size = basis.components.shape[0] if isinstance(basis, KernelBasis) else len(basis.phases)
    return Decision(basis, f.array("weights", (K, size)), f.array("intercept", (K,)))


def one_map(f: Fields, task: Task, n: int) -> FittedMap:
    """A model on one map, which predicts."""
    f.text("family", ("one map",))
    decision = _expansion(f, n, task.n_models)
    landmarks = getattr(decision.source, "components", None)
    count = None if landmarks is None else landmarks.shape[0]
    rows = f.maybe(f.array, "landmark_rows", (count,), INTEGERS, low=0)
    known = f.record("facts", _facts)
    return FittedMap(
        task=task,
        coef=decision.weights if landmarks is None else None,
        phi=None,
        decision=decision,
        indices=rows,
        session=None,
        map_key=None,
        component_search=f.maybe(f.each, "component_search", "mapping"),
        fixed=COMPACTED if "compact_error_" in known["extra"] else FOR_PREDICTION,
        **known,
    )


def fields_of_one_map(fitted: FittedMap) -> dict[str, Any]:
    """The fields that ``one_map`` writes."""
    bare = fitted.bare()
    return {
        "family": "one map",
        **vars(bare.decision),
        "landmark_rows": fitted.indices,
        "facts": _facts_of(bare),
        "component_search": fitted.component_search,
    }


# Cells --------------------------------------------------------------------------------------------


def cells(f: Fields, task: Task, n: int) -> FittedCells:
    """A model of cells, which predicts."""
    f.text("family", ("cells",))
    own, dtype = f.record("kernel", kernel), np.dtype(f.text("type", ("float32", "float64")))
    parts = f.each("partitions", "record", _partition, task.n_models, n)
    f.check(parts, "is empty", "partitions")
    support = f.maybe(f.array, "support_rows", (None,), INTEGERS, low=0)
    if support is not None:
        count = len(support)
        why = f"has {count} rows, which are not those of one exact cell"
        f.check(_is_exact(parts, count), why, "support_rows")
    counts = 1 if isinstance(task, Outputs) or task.classes is None else len(task.classes)
    n_support = f.maybe(f.array, "n_support", (counts,), INTEGERS, low=0)
    known = f.record("facts", _facts)
    del known["step_scale"]
    decision = CellDecision(parts, task.n_models, dtype)
    return FittedCells(
        task=task,
        kernel=own,
        decision=decision,
        seed=0,
        support=support,
        n_support=n_support,
        fixed=FOR_PREDICTION,
        **known,
    )


def fields_of_cells(fitted: FittedCells) -> dict[str, Any]:
    """The fields that ``cells`` writes."""
    parts = fitted.bare().decision.parts
    return {
        **vars(fitted),
        "family": "cells",
        "type": np.dtype(fitted.decision.dtype).name,
        "partitions": [_fields_of_partition(part) for part in parts],
        "support_rows": fitted.support,
        "facts": _facts_of(fitted),
    }


def _is_exact(parts: list[CellModels], count: int) -> bool:
    """Whether a model is one exact cell with so many support vectors."""
    decision: Any = parts[0].decisions[0]
    if len(parts) > 1 or len(parts[0].decisions) > 1:
        return False
    if isinstance(decision, Decision):
        return int(decision.source.components.shape[0]) == count
    return isinstance(decision, Constant) and decision.X is not None and count == 0


def _partition(f: Fields, K: int, n: int) -> CellModels:
    """A partition; every node of its tree but the first, and every cell, is below one other.

    A child is a cell, its number, or the node k, as -1 - k; where there is one cell there is no node.
    """
    tree, n_cells = f.each("tree", "record", _node, n), f.integer("n_cells", 1)
    shares = f.array("shares", (n_cells,), low=0)
    mean_weight, n_rows = f.number("mean_weight", 0.0), f.integer("n_rows")
    decisions = f.each("cells", "record", _cell, K, n)
    f.check(len(decisions) == n_cells, f"has {len(decisions)} cells instead of {n_cells}", "cells")
    nodes, met = [Node(centres) for centres, _ in tree], set[int]()
    for number, (_, children) in enumerate(tree):
        for child in children:
            # A node comes after the one that it is below, so that there is no way round.
            below = type(child) is int and (0 <= child < n_cells or number < -1 - child < len(tree))
            fits = below and child not in met
            f.check(fits, f"has {shown(child)}, which cannot be below it", f"tree.{number}.children")
            met.add(child)
        nodes[number].children = [each if each >= 0 else nodes[-1 - each] for each in children]
    everything = len(met) == n_cells + len(tree) - 1 if tree else n_cells == 1
    f.check(everything, "leaves out a cell or a node", "tree")
    return CellModels(
        Partition(nodes[0] if nodes else 0, n_cells), decisions, shares, mean_weight, n_rows
    )


def _node(f: Fields, n: int) -> tuple[Any, list[Any]]:
    """The centres of a node, and what is below each of them."""
    centres, children = f.array("centres", (None, n), FLOATS), f.each("children", "value")
    why = f"has {len(children)} entries for {len(centres)} centres"
    f.check(children and len(children) == len(centres), why, "children")
    return centres, children


def _fields_of_partition(part: CellModels) -> dict[str, Any]:
    root = part.partition.root
    nodes, tree = [root] if isinstance(root, Node) else [], []
    for node in nodes:  # it grows on the way
        children = []
        for child in node.children:
            children.append(-1 - len(nodes) if isinstance(child, Node) else int(child))
            if isinstance(child, Node):
                nodes.append(child)
        tree.append({"centres": node.centres, "children": children})
    n_cells = part.partition.n_cells
    return {**vars(part), "tree": tree, "n_cells": n_cells, "cells": part.decisions}


def _cell(f: Fields, K: int, n: int) -> Any:
    kind = f.kind({"constant": Constant, "map": Nested, "expansion": Decision})
    if kind == "constant":
        return Constant(f.array("values", (K,)), f.maybe(f.rows, "no_rows", n, of="X"))
    if kind == "expansion":
        decision = _expansion(f, n, K)
        f.check(isinstance(decision.source, KernelBasis), "is no expansion in landmarks", "source")
        return decision
    own = f.record("task", task, of=lambda cell: cell.model.task)
    model = f.record("model", one_map, own, n, of=lambda cell: fields_of_one_map(cell.model))
    columns = f.maybe(f.array, "columns", (None,), INTEGERS, low=0, high=K)
    fits = own.n_models == K
    if columns is not None:
        known = 1 if own.classes is None else len(own.classes)
        fits = len(columns) == known == len(set(columns.tolist()))
    f.check(fits, f"does not fit a model of {K} decisions", "columns")
    return Nested(model, columns, K, f.numbers("offset", K))
