"""A model as an ONNX file: its inputs, its outputs, and the graph between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import asset_svm
from asset_svm.encoding.summary import DAY
from asset_svm.export.describing import (
    check_one_table,
    description_of,
    label_array,
    table_columns,
    unlike,
)
from asset_svm.export.graph import IR_VERSION, ML_OPSET, OPSET, GraphOperations, Node
from asset_svm.runtime.description import Description
from asset_svm.runtime.links import OfClasses, OneClassOnly, Quantiles, split
from asset_svm.storage.atomic import replacing

GAP = np.iinfo(np.int64).min
"""A time that is missing, as numpy has it."""
BATCH = "rows"
TAKEN = re.compile(r"(label|probabilities|decisions|predictions|interval)(_\d+)?|asset/.*|")


def input_names(columns: Sequence[str]) -> dict[str, str]:
    """The name of the input of each column: its own, unless an output or a node has that."""
    found = {column: column for column in columns if not TAKEN.fullmatch(column)}
    for column in columns:
        if column not in found:
            found[column] = unlike(f"column {column}", found.values())
    return found


class GraphColumns:
    """The columns of a table as inputs of a graph, one each.

    Numbers are float64, NaN for a gap; times int64, microseconds since 1970 (UTC), the least integer
    for a gap; categories text, whole numbers without ".0", "" for a gap.
    """

    def __init__(self, ops: GraphOperations, columns: list[tuple[str, str]]) -> None:
        self.ops, self.kinds = ops, dict(columns)
        self.inputs = input_names(list(self.kinds))

    def numbers(self, name: str) -> Node:
        """(rows, 1): numbers, or times in days."""
        kind = "i" if self.kinds[name] == "time" else "f"
        found = Node(self.ops, self.inputs[name], kind)
        if kind == "f":
            return found
        gap = found == np.array(GAP)
        days = self.ops.number(found) * (1.0 / DAY)
        return self.ops.where(gap, np.nan, days)

    def codes(self, name: str, levels: tuple[str, ...]) -> Node:
        """(rows, 1) of int64: the number of the level."""
        return self.ops.node(
            "LabelEncoder",
            [self.inputs[name]],
            "i",
            domain="ai.onnx.ml",
            keys_strings=[*levels, ""],
            values_int64s=[*range(len(levels)), -1],
            default_int64=len(levels),
        )


@dataclass(frozen=True)
class Output:
    """An output of a graph: its name, its type, and the sizes behind the rows."""

    name: str
    kind: int
    shape: tuple[int, ...] = ()


def to_onnx(
    model: Any, path: str | Path | None = None, *, dtype: Any = None, coverage: float = 0.9
) -> Any:
    """A model as ONNX, which onnxruntime and others predict with.

    Parameters
    ----------
    model : estimator, model of ``asset_svm.runtime``, or path
        What ``asset_svm.save`` takes, or the file that it has written.
    path : path, optional
        Where the file goes, whole or not at all.
    dtype : {numpy.float32, numpy.float64}, optional
        Of the input of a model of numeric rows; by default float64, or float32 where its landmarks are
        rows of that type and no step stands before it. The graph computes in float64.
    coverage : float, default=0.9
        Of the intervals of a regression that has them.

    Returns
    -------
    model : onnx.ModelProto

    Notes
    -----
    Inputs: ``X`` (rows, columns), or for a table one (rows, 1) for each column, by its name: float64,
    NaN for a gap; int64 for a date, microseconds since 1970 in UTC, the least integer for a gap; text
    for a category, a whole number without ".0", "" for a gap.

    Outputs: ``label``, ``probabilities`` and ``decisions`` of a classifier, ``predictions`` of a
    regression or quantiles, and ``interval`` where there are intervals, all of the shapes that the
    methods of the estimator have. Several outputs that are not all of two classes have a number behind
    the name each. Rows with a number that is not finite have decisions that are no numbers.
    """
    description = description_of(model)
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must be between 0 and 1; 0.9 is usual.")
    made = _written(description, dtype, coverage)
    if path is not None:
        with replacing(path) as file:
            file.write(made.SerializeToString())
    return made


def _written(description: Description, dtype: Any, coverage: float) -> Any:
    ops = GraphOperations()
    onnx, proto = ops.onnx, ops.onnx.TensorProto
    helper = onnx.helper
    encoding = check_one_table(description)
    if encoding is None:
        kind = np.dtype(description.dtype if dtype is None else dtype)
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is not a type of rows; use float32 or float64.")
        of = proto.FLOAT if kind == np.float32 else proto.DOUBLE
        inputs = [helper.make_tensor_value_info("X", of, [BATCH, description.n_columns])]
        x: Any = Node(ops, "X", "f")
        x = x if of == proto.DOUBLE else ops.number(x)
    else:
        if dtype is not None:
            raise ValueError(f"dtype={dtype!r} is for rows of numbers, and the model takes a table.")
        columns = table_columns(encoding)
        kinds = {"number": proto.DOUBLE, "time": proto.INT64, "levels": proto.STRING}
        x = GraphColumns(ops, columns)
        inputs = [
            helper.make_tensor_value_info(x.inputs[name], kinds[kind], [BATCH, 1])
            for name, kind in columns
        ]
    outputs = _outputs(ops, description, x, coverage)
    graph = helper.make_graph(
        ops.nodes,
        "asset_svm",
        inputs,
        [helper.make_tensor_value_info(each.name, each.kind, [BATCH, *each.shape]) for each in outputs],
        initializer=list(ops.tensors.values()),
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="asset-svm",
        producer_version=asset_svm.__version__,
    )
    onnx.checker.check_model(made)
    return made


def _outputs(ops: GraphOperations, description: Description, x: Any, coverage: float) -> list[Output]:
    """Write the nodes of all outputs."""
    rows = description.rows(ops, x)
    raw = description.decide(ops, rows)
    heads, double = split(ops, description.heads, raw), ops.onnx.TensorProto.DOUBLE
    found: list[Output] = []

    def give(name: str, value: Node, width: int, kind: int = double) -> None:
        """Name a value as an output: one column is a list, as numpy has it."""
        if width == 0:
            ops.nodes.append(
                ops.onnx.helper.make_node("Squeeze", [value.name, ops.integers(1)], [name], name=name)
            )
        else:
            ops.nodes.append(ops.onnx.helper.make_node("Identity", [value.name], [name], name=name))
        found.append(Output(name, kind, () if width == 0 else (width,)))

    if description.kind.endswith("regressor"):
        values = ops.beside([head.values(ops, own) for head, own in heads])  # type: ignore[union-attr]
        head = heads[0][0]
        width = sum(head.width for head, _ in heads)
        alone = head.alone if isinstance(head, Quantiles) else not description.several
        give("predictions", values, 0 if alone else width)
        if description.intervals is not None:
            reach = description.intervals.widths(ops, rows) * description.intervals.factor(coverage)
            ends = ops.beside([raw - reach, raw + reach])
            give("interval", head.values(ops, ends), 2)  # type: ignore[union-attr]
        return found
    of_classes: list[tuple[OfClasses, Node]] = heads  # type: ignore[assignment]
    groups = [("", of_classes)]
    if description.several and not _is_together(of_classes):
        groups = [(f"_{k}", [each]) for k, each in enumerate(of_classes)]
    for suffix, group in groups:
        flat = description.several and not suffix
        kind, label = _labels(ops, group)
        give(f"label{suffix}", label, len(group) if flat else 0, kind)
        if all(head.has_probabilities for head, _ in group):
            if flat:
                shares = ops.beside([_second(ops, head, own) for head, own in group])
                give(f"probabilities{suffix}", shares, len(group))
            else:
                head, own = group[0]
                give(f"probabilities{suffix}", head.probabilities(ops, own), len(head.classes))  # type: ignore[union-attr]
        if all(head.has_decisions for head, _ in group):
            each = ops.beside([head.decisions(ops, own) for head, own in group])
            width = len(group) if flat else max(len(group[0][0].classes), 2)
            give(f"decisions{suffix}", each, width if flat or width > 2 else 0)
    return found


def _is_together(heads: list[tuple[OfClasses, Node]]) -> bool:
    """Whether outputs are columns of one array: no more than two classes each, of one type."""
    kinds = {label_array(head.classes).dtype.kind for head, _ in heads}
    return all(len(head.classes) <= 2 for head, _ in heads) and len(kinds) == 1


def _labels(ops: GraphOperations, group: list[tuple[OfClasses, Node]]) -> tuple[int, Node]:
    """The type of labels, and (rows, outputs) of them."""
    proto = ops.onnx.TensorProto
    kinds = {"U": proto.STRING, "b": proto.BOOL, "i": proto.INT64, "f": proto.DOUBLE}
    each = []
    for head, own in group:
        classes = label_array(head.classes)
        codes = head.codes(ops, own)
        each.append(ops.node("Gather", [ops.constant(classes), codes.name], "f", axis=0))
    return kinds[classes.dtype.kind], ops.beside(each)


def _second(ops: GraphOperations, head: OfClasses, own: Node) -> Node:
    """(rows, 1): the probability of the second of two classes, or that a label is there."""
    if isinstance(head, OneClassOnly):
        return ops.full(own, np.array([float(head.side > 0.0)]))
    return ops.columns(head.probabilities(ops, own), np.array([1]))  # type: ignore[union-attr]
