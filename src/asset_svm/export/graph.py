"""An ONNX graph that is written by computing with it: ``Operations`` whose values are its nodes.

Whoever predicts with numpy writes a graph with these instead. All of it is float64 inside: weights of
landmarks cancel, and float32 would leave some models three digits.

    cell          the scores of all centres by one product; a level of the tree picks those of its node
    expansions    a loop over the cells that the batch meets, each of which gathers its rows, takes a
                  slice of the landmarks, and puts its decisions back: a row costs its own cell alone,
                  and the graph does not grow with the number of cells
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.export.columns import Traced

if TYPE_CHECKING:
    from asset_svm.runtime.parts import Expansions, Sums, Tree

OPSET, IR_VERSION, ML_OPSET = 17, 8, 3
"""Opset 17 of 2022: nothing newer is needed, and every onnxruntime since 1.12 reads it."""
MOST_BYTES = 1_900_000_000
"""Protocol buffers hold 2 GiB."""


def library() -> Any:
    """The module ``onnx``."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError(
            'ONNX files need onnx, which is not installed; run: pip install "asset-svm[onnx]"'
        ) from None
    return onnx


class Node:
    """A value of a graph.

    Parameters
    ----------
    ops : GraphOperations
    name : str
    kind : {"f", "i", "b"}
        float64, int64, or truth values.
    """

    __array_ufunc__ = None  # arrays of numpy leave operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ops: GraphOperations, name: str, kind: str) -> None:
        self.ops, self.name, self.kind = ops, name, kind

    def _with(self, op: str, other: Any, *, turned: bool = False, kind: str = "") -> Node:
        names = [self.name, self.ops.named(other, self.kind)]
        return self.ops.node(op, names[::-1] if turned else names, kind or self.kind)

    def __add__(self, other: Any) -> Node:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> Node:
        return self._with("Add", other)

    def __sub__(self, other: Any) -> Node:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Node:
        return self._with("Sub", other, turned=True)

    def __mul__(self, other: Any) -> Node:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> Node:
        return self._with("Mul", other)

    def __truediv__(self, other: Any) -> Node:
        return self._with("Div", other)

    def __pow__(self, other: Any) -> Node:
        return self._with("Pow", other)

    def __neg__(self) -> Node:
        return self.ops.node("Neg", [self.name], self.kind)

    def __gt__(self, other: Any) -> Node:
        return self._with("Greater", other, kind="b")

    def __ge__(self, other: Any) -> Node:
        return self._with("GreaterOrEqual", other, kind="b")

    def __lt__(self, other: Any) -> Node:
        return self._with("Less", other, kind="b")

    def __eq__(self, other: Any) -> Node:  # type: ignore[override]
        return self._with("Equal", other, kind="b")

    def __and__(self, other: Any) -> Node:
        return self._with("And", other, kind="b")


class GraphOperations(Traced):
    """The nodes of a graph, or of the body of a loop in it, which sees all of those outside."""

    def __init__(self, outer: GraphOperations | None = None) -> None:
        self.onnx = library()
        self.outer = outer
        self.nodes: list[Any] = []
        self.top: GraphOperations = self if outer is None else outer.top
        if outer is None:
            self.tensors: dict[str, Any] = {}
            self.n_names, self.n_bytes = 0, 0
            self._known: dict[Any, str] = {}

    # Names --------------------------------------------------------------------------------------

    def name(self) -> str:
        """A new name."""
        self.top.n_names += 1
        return f"asset/{self.top.n_names}"  # no column has such a name

    def constant(self, array: Array) -> str:
        """The name of an array, which is kept once."""
        array = np.asarray(array)
        text = array.dtype.kind in "UO"
        raw = tuple(array.ravel().tolist()) if text else array.tobytes()
        key = (array.dtype.str, array.shape, raw)
        top = self.top
        if key not in top._known:
            top.n_bytes += array.nbytes
            if top.n_bytes > MOST_BYTES:
                raise ValueError(
                    f"The model has more than {MOST_BYTES / 1e9:g} GB of numbers in float64, and an "
                    "ONNX file holds 2 GB; use fewer landmarks, or asset_svm.runtime."
                )
            name = top._known[key] = f"asset/constant {len(top._known)}"
            made = np.array(array, dtype=object) if text else array
            top.tensors[name] = self.onnx.numpy_helper.from_array(made, name)
        return top._known[key]

    def named(self, value: Any, kind: str = "f") -> str:
        """The name of a node, or of a number or array beside nodes of a kind."""
        if isinstance(value, Node):
            return value.name
        array = np.asarray(value, dtype={"f": np.float64, "i": np.int64, "b": bool}[kind])
        return self.constant(array[None, :] if array.ndim == 1 else array)

    def integers(self, *values: int) -> str:
        """The name of a one-dimensional array of int64."""
        return self.constant(np.array(values, dtype=np.int64))

    def node(
        self, op: str, names: Sequence[str], kind: str, *, domain: str = "", **options: Any
    ) -> Node:
        """Add a node, by the names of what goes in."""
        out = self.name()
        self.nodes.append(
            self.onnx.helper.make_node(op, list(names), [out], name=out, domain=domain, **options)
        )
        return Node(self, out, kind)

    def one(self, op: str, x: Any, *more: str, kind: str = "", **options: Any) -> Node:
        """Add a node of one value, and of constants."""
        return self.node(op, [self.named(x), *more], kind or getattr(x, "kind", "f"), **options)

    # As numpy has them --------------------------------------------------------------------------

    def exp(self, x: Node, out: Any = None) -> Node:
        """e^x."""
        return self.one("Exp", x)

    def sqrt(self, x: Node, out: Any = None) -> Node:
        """The root."""
        return self.one("Sqrt", x)

    def tanh(self, x: Node, out: Any = None) -> Node:
        """The hyperbolic tangent."""
        return self.one("Tanh", x)

    def cos(self, x: Node, out: Any = None) -> Node:
        """The cosine, as a sine: older onnxruntimes have no cosine of float64."""
        return self.one("Sin", x + 0.5 * np.pi)

    def sin(self, x: Node) -> Node:
        """The sine."""
        return self.one("Sin", x)

    def clip(self, x: Node, low: Any, high: Any, out: Any = None) -> Node:
        """x, not below low and not above high."""
        found = x if low is None else x._with("Max", low)
        return found if high is None else found._with("Min", high)

    def abs(self, x: Node) -> Node:
        """|x|."""
        return self.one("Abs", x)

    def expit(self, x: Node) -> Node:
        """1 / (1 + exp(-x))."""
        return self.one("Sigmoid", x)

    def log(self, x: Node) -> Node:
        """The logarithm."""
        return self.one("Log", x)

    def isnan(self, x: Node) -> Node:
        """Whether x is no number."""
        return self.one("IsNaN", x, kind="b")

    def where(self, condition: Node, x: Any, y: Any) -> Node:
        """x where the condition holds, else y."""
        kind = next((each.kind for each in (x, y) if isinstance(each, Node)), "f")
        return self.node("Where", [condition.name, self.named(x, kind), self.named(y, kind)], kind)

    def number(self, x: Node) -> Node:
        """Truth values or integers as float64."""
        return self.one("Cast", x, kind="f", to=self.onnx.TensorProto.DOUBLE)

    def integer(self, x: Node) -> Node:
        """Truth values as int64."""
        return self.one("Cast", x, kind="i", to=self.onnx.TensorProto.INT64)

    def full(self, like: Node, row: Array) -> Node:
        """This row, for every row of another value."""
        row = np.asarray(row).reshape(1, -1)
        kind = "i" if row.dtype.kind == "i" else "f"
        count = self.node("Shape", [like.name], "i", start=0, end=1)
        shape = self.node("Concat", [count.name, self.integers(row.shape[1])], "i", axis=0)
        return self.node("Expand", [self.named(row, kind), shape.name], kind)

    def columns(self, x: Node, which: Array) -> Node:
        """Columns by their numbers."""
        return self.one("Gather", x, self.integers(*np.asarray(which).tolist()), axis=1)

    def beside(self, values: Sequence[Node]) -> Node:
        """Columns of several values, side by side."""
        if len(values) == 1:
            return values[0]
        return self.node("Concat", [each.name for each in values], values[0].kind, axis=1)

    def total(self, x: Node) -> Node:
        """The sum of each row."""
        return self.one("ReduceSum", x, self.integers(1))

    def largest(self, x: Node) -> Node:
        """The largest of each row."""
        return self.one("ReduceMax", x, axes=[1])

    def smallest(self, x: Node) -> Node:
        """The smallest of each row."""
        return self.one("ReduceMin", x, axes=[1])

    def argmax(self, x: Node) -> Node:
        """Where the largest of each row is."""
        return self.one("ArgMax", x, kind="i", axis=1, keepdims=1)

    def in_order(self, x: Node) -> Node:
        """Every row from its smallest on."""
        width = self.node("Shape", [x.name], "i", start=1, end=2)
        out, places = self.name(), self.name()
        self.nodes.append(
            self.onnx.helper.make_node(
                "TopK", [x.name, width.name], [out, places], name=out, axis=1, largest=0
            )
        )
        return Node(self, out, "f")

    def product(self, x: Node, Z: Any) -> Node:
        """X Z^T; a node Z is Z^T, since older onnxruntimes fuse a transpose to what they have not."""
        if isinstance(Z, Node):
            return x._with("MatMul", Z)
        by = self.constant(np.ascontiguousarray(np.asarray(Z, dtype=np.float64).T))
        return self.node("MatMul", [x.name, by], "f")

    def absolute_distances(self, x: Node, Z: Any) -> Node:
        """|x - z|_1: a loop over columns, for all of them at once would take rows s n numbers."""
        if isinstance(Z, Node):
            turned = Z.name
        else:
            turned = self.constant(np.ascontiguousarray(np.asarray(Z, dtype=np.float64).T))
        count = self.node("Shape", [x.name], "i", start=1, end=2)
        size = self.node("Shape", [turned], "i", start=1, end=2)
        rows = self.node("Shape", [x.name], "i", start=0, end=1)
        shape = self.node("Concat", [rows.name, size.name], "i", axis=0)
        begun = self.node("Expand", [self.named(0.0), shape.name], "f")

        def body(ops: GraphOperations, number: str, so_far: Node) -> Node:
            place = ops.node("Unsqueeze", [number, ops.integers(0)], "i")
            column = ops.node("Gather", [x.name, place.name], "f", axis=1)
            landmarks = ops.node("Gather", [turned, place.name], "f", axis=0)
            return so_far + ops.abs(column - landmarks)

        return self.loop(count, begun, body)

    def interpolated(self, x: Node, places: Array, values: Array) -> Node:
        """The piecewise linear function: its pieces are counted that begin at x or before."""
        if len(places) == 1:
            return self.full(x, values[:1])
        x = self.clip(x, float(places[0]), float(places[-1]))
        piece = self.full(x, np.zeros(1, dtype=np.int64))
        if len(places) > 2:
            piece = self.integer(self.total(self.number(x >= places[1:-1])))
        slopes = np.diff(values) / np.diff(places)
        table = np.column_stack([places[:-1], values[:-1], slopes])
        found = self.lookup(piece, table)
        at = [self.columns(found, np.array([k])) for k in range(3)]
        return (x - at[0]) * at[2] + at[1]

    # Steps --------------------------------------------------------------------------------------

    def marked(self, found: Node, x: Node) -> Node:
        """Decisions that are no numbers where rows are not finite."""
        return found + self.total(x - x)

    def lookup(self, codes: Node, table: Array) -> Node:
        """The rows of a table that have these numbers, (rows, 1)."""
        flat = self.node("Squeeze", [codes.name, self.integers(1)], "i")
        by = self.constant(np.asarray(table, dtype=np.float64))
        return self.node("Gather", [by, flat.name], "f", axis=0)

    def rounded(self, x: Node, dtype: np.dtype[Any]) -> Node:
        """Numbers as a type holds them."""
        if dtype == np.float64:
            return x
        return self.number(self.one("Cast", x, to=self.onnx.TensorProto.FLOAT))

    # Decisions ----------------------------------------------------------------------------------

    def sums(self, x: Node, each: Sums) -> Node:
        """Weighted sums of kernel values or features."""
        found: Node = each.by_values(self, x)
        return found

    def cell(self, x: Node, tree: Tree) -> Node:
        """The cell of each row."""
        place = self.full(x, np.zeros(1, dtype=np.int64))
        if len(tree.first) == 0:
            return place
        total = len(tree.centres)
        scores = tree.half - self.product(x, tree.centres)
        scores = self.beside([scores, self.full(x, np.array([np.inf]))])  # of places without a centre
        listed = np.full((len(tree.first), int(tree.counts.max())), total)
        for node, (first, count) in enumerate(zip(tree.first, tree.counts, strict=True)):
            listed[node, :count] = first + np.arange(count)
        below = self.constant(np.append(tree.below, -1).astype(np.int64))
        for _ in range(tree.depth):
            at = self.node("Squeeze", [self.clip(place, 0, None).name, self.integers(1)], "i")
            own = self.node("Gather", [self.constant(listed), at.name], "i", axis=0)
            near = self.node("GatherElements", [scores.name, own.name], "f", axis=1)
            least = self.node("ArgMin", [near.name], "i", axis=1, keepdims=1)
            centre = self.node("GatherElements", [own.name, least.name], "i", axis=1)
            then = self.node("Gather", [below, centre.name], "i", axis=0)
            place = self.where(place >= 0, then, place)
        return -1 - place

    def expansions(self, x: Node, cells: Node, each: Expansions) -> Node:
        """The expansion of the cell of each row: a loop over the cells that there are."""
        by = each.landmarks
        rows, left = by.moved_rows(self, x)
        flat = self.node("Squeeze", [cells.name, self.integers(1)], "i")
        met = self.node("Unique", [flat.name], "i", sorted=0)
        count = self.node("Shape", [met.name], "i")
        begun = self.full(x, np.zeros(each.width))
        first = self.constant(each.first.astype(np.int64))
        parts = {
            "Z": self.constant(np.ascontiguousarray(by.moved.T)),
            "norms": self.constant(by.norms),
            "weights": self.constant(each.weights),
            "intercept": self.constant(each.intercept),
        }

        def body(ops: GraphOperations, number: str, so_far: Node) -> Node:
            cell = ops.node("Gather", [met.name, number], "i", axis=0)
            which = ops.node("NonZero", [ops.node("Equal", [flat.name, cell.name], "b").name], "i")
            which = ops.node("Transpose", [which.name], "i", perm=[1, 0])
            some = ops.node("Squeeze", [which.name, ops.integers(1)], "i")

            def taken(value: Node) -> Node:
                return ops.node("Gather", [value.name, some.name], "f", axis=0)

            ends = [
                ops.node("Unsqueeze", [at.name, ops.integers(0)], "i").name
                for at in (
                    ops.node("Gather", [first, cell.name], "i", axis=0),
                    ops.node("Gather", [first, (cell + 1).name], "i", axis=0),
                )
            ]

            def part(name: str) -> Node:
                axis = ops.integers(1 if name == "Z" else 0)
                return ops.node("Slice", [parts[name], *ends, axis], "f")

            values = by.some(
                ops, taken(rows), None if left is None else taken(left), part("Z"), part("norms")
            )
            own = ops.node("Gather", [parts["intercept"], cell.name], "f", axis=0)
            found = ops.node("MatMul", [values.name, part("weights").name], "f") + own
            return ops.node("ScatterND", [so_far.name, which.name, found.name], "f")

        return self.loop(count, begun, body)

    def by_cell(
        self, x: Node, cells: Node, functions: Sequence[Callable[[Node], Node]], width: int
    ) -> Node:
        """The function of the cell of each row, at that row: the rows of each cell are gathered."""
        out = self.full(x, np.zeros(width))
        flat = self.node("Squeeze", [cells.name, self.integers(1)], "i")
        for cell, function in enumerate(functions):
            same = self.node("Equal", [flat.name, self.integers(cell)], "b")
            which = self.node("NonZero", [same.name], "i")
            which = self.node("Transpose", [which.name], "i", perm=[1, 0])
            some = self.node("Squeeze", [which.name, self.integers(1)], "i")
            found = function(self.node("Gather", [x.name, some.name], "f", axis=0))
            out = self.node("ScatterND", [out.name, which.name, found.name], "f")
        return out

    def loop(
        self, count: Node, begun: Node, body: Callable[[GraphOperations, str, Node], Node]
    ) -> Node:
        """What a value has become after so many turns of a body."""
        onnx, inside = self.onnx, GraphOperations(self)
        number, going, so_far = inside.name(), inside.name(), inside.name()
        found = body(inside, number, Node(inside, so_far, "f"))
        still = inside.node("Identity", [going], "b")
        info, proto = onnx.helper.make_tensor_value_info, onnx.TensorProto
        graph = onnx.helper.make_graph(
            inside.nodes,
            f"body{self.top.n_names}",
            [
                info(number, proto.INT64, []),
                info(going, proto.BOOL, []),
                info(so_far, proto.DOUBLE, None),
            ],
            [info(still.name, proto.BOOL, []), info(found.name, proto.DOUBLE, None)],
        )
        turns = self.node("Squeeze", [count.name], "i")
        always = self.constant(np.array(True))
        return self.node("Loop", [turns.name, always, begun.name], "f", body=graph)
