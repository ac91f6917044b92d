"""What predictions are computed with: one list of operations, and numpy's way to do them.

A model is described by parts (``parts``, ``steps``, ``links``) that compute by ``Operations`` alone.
With numpy's they predict; ``export`` has two more, with which the same parts write an ONNX graph and C.

Values are matrices of a row for each row of the input: (rows, width), of float64, truth values or
int64, and have arithmetic, comparisons and ``&``. What is beside them is a number, or an array of numpy
that is known when a model is read, (width,), with which they broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from asset_svm.arrays import Array

if TYPE_CHECKING:
    from asset_svm.encoding.encoding import Encoding
    from asset_svm.runtime.parts import Expansions, Sums, Tree

Value: TypeAlias = Any
"""A matrix with a row for each row: numpy's, or one that will be computed."""
EPSILON = float(np.finfo(np.float64).eps)
L1_BYTES = 1 << 22
"""What |x - z| of some rows and landmarks may take at a time."""


class Operations(Protocol):
    """What parts of a model may do with values."""

    # As numpy has them; ``out`` is where the result may lie.
    def exp(self, x: Value, out: Any = None) -> Value:
        """e^x."""

    def sqrt(self, x: Value, out: Any = None) -> Value:
        """The root."""

    def tanh(self, x: Value, out: Any = None) -> Value:
        """The hyperbolic tangent."""

    def cos(self, x: Value, out: Any = None) -> Value:
        """The cosine."""

    def clip(self, x: Value, low: Any, high: Any, out: Any = None) -> Value:
        """x, not below low and not above high, either of which may be None."""

    def abs(self, x: Value) -> Value:
        """|x|."""

    def expit(self, x: Value) -> Value:
        """1 / (1 + exp(-x))."""

    def log(self, x: Value) -> Value:
        """The logarithm."""

    def isnan(self, x: Value) -> Value:
        """Whether x is no number."""

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        """x where the condition holds, else y."""

    def number(self, x: Value) -> Value:
        """Truth values or integers as float64."""

    def integer(self, x: Value) -> Value:
        """Truth values as int64."""

    def full(self, like: Value, row: Array) -> Value:
        """(rows, width): this row, for every row of another value."""

    def columns(self, x: Value, which: Array) -> Value:
        """Columns by their numbers."""

    def beside(self, values: Sequence[Value]) -> Value:
        """Columns of several values, side by side."""

    def total(self, x: Value) -> Value:
        """(rows, 1): the sum of each row."""

    def largest(self, x: Value) -> Value:
        """(rows, 1): the largest of each row."""

    def smallest(self, x: Value) -> Value:
        """(rows, 1): the smallest of each row."""

    def argmax(self, x: Value) -> Value:
        """(rows, 1) of int64: where the largest of each row is, the first of several."""

    def in_order(self, x: Value) -> Value:
        """Every row from its smallest on."""

    def product(self, x: Value, Z: Array) -> Value:
        """X Z^T."""

    def absolute_distances(self, x: Value, Z: Array) -> Value:
        """(rows, s): |x - z|_1."""

    def interpolated(self, x: Value, places: Array, values: Array) -> Value:
        """(rows, 1) of the piecewise linear function with these values, constant beyond its ends."""

    def finite_rows(self, x: Value) -> Value:
        """Rows that a model is about to take; raises where one has a number that is not finite."""

    def marked(self, found: Value, x: Value) -> Value:
        """The decisions of rows, which are no numbers where nothing was raised for such rows."""

    def numbers(self, x: Value) -> Value:
        """Columns that may have come as text as numbers, which may be missing; raises where not."""

    def equals(self, x: Value, value: Any, apart: bool) -> Value:
        """Whether columns have a value: text, a number, NaN or None, told ``apart`` or one gap."""

    def known(self, x: Value, there: Value, column: int) -> Value:
        """x; raises, or is no number, in rows in which a column has an unknown category."""

    def encoded(self, table: Any, encoding: Encoding, dtype: np.dtype[Any]) -> Value:
        """The numbers of a table, rounded to a type."""

    def sums(self, x: Value, each: Sums) -> Value:
        """(rows, K): weighted sums of kernel values or features."""

    def cell(self, x: Value, tree: Tree) -> Value:
        """(rows, 1) of int64: the cell of each row."""

    def expansions(self, x: Value, cells: Value, each: Expansions) -> Value:
        """(rows, K): the expansion of the cell of each row."""

    def by_cell(
        self, x: Value, cells: Value, functions: Sequence[Callable[[Value], Value]], width: int
    ) -> Value:
        """(rows, width): the function of the cell of each row, at that row."""


def all_finite(x: Array, names: Sequence[str] | None = None) -> Array:
    """Rows of numbers; raises where one is not finite, and says the column's name if it has one."""
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0].tolist()
        raise ValueError(
            f"X has {x[row, column]} in row {row}, column {named(column, names)}, counted from 0; the "
            "model takes finite numbers alone: impute or drop such rows."
        )
    return x


def named(column: int, names: Sequence[str] | None) -> str:
    """A column in an error: its name, or its number where it has none."""
    return str(column) if names is None else repr(names[column])


class NumpyOperations:
    """Predictions by numpy, in float64."""

    exp = staticmethod(np.exp)
    sqrt = staticmethod(np.sqrt)
    tanh = staticmethod(np.tanh)
    cos = staticmethod(np.cos)
    clip = staticmethod(np.clip)
    abs = staticmethod(np.abs)
    isnan = staticmethod(np.isnan)

    def where(self, condition: Array, x: Any, y: Any) -> Array:
        """x where the condition holds, else y; text does not make text of numbers."""
        return np.where(condition, x, y.astype(object) if isinstance(x, str) else y)

    def expit(self, x: Array) -> Array:
        """1 / (1 + exp(-x)), without an overflow."""
        small = np.exp(-np.abs(x))
        return np.asarray(np.where(x >= 0.0, 1.0, small) / (1.0 + small))

    def log(self, x: Array) -> Array:
        """The logarithm; that of 0 is -inf."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(x))

    def number(self, x: Array) -> Array:
        """Truth values or integers as float64."""
        return x.astype(np.float64)

    def integer(self, x: Array) -> Array:
        """Truth values as int64."""
        return x.astype(np.int64)

    def full(self, like: Array, row: Array) -> Array:
        """This row, for every row of another value."""
        return np.repeat(np.reshape(row, (1, -1)), len(like), axis=0)

    def columns(self, x: Array, which: Array) -> Array:
        """Columns by their numbers."""
        return x[:, which]

    def beside(self, values: Sequence[Array]) -> Array:
        """Columns of several values, side by side."""
        return np.concatenate(values, axis=1)

    def total(self, x: Array) -> Array:
        """The sum of each row."""
        return np.asarray(x.sum(axis=1, keepdims=True))

    def largest(self, x: Array) -> Array:
        """The largest of each row."""
        return np.asarray(x.max(axis=1, keepdims=True))

    def smallest(self, x: Array) -> Array:
        """The smallest of each row."""
        return np.asarray(x.min(axis=1, keepdims=True))

    def argmax(self, x: Array) -> Array:
        """Where the largest of each row is."""
        return np.asarray(x.argmax(axis=1)[:, None])

    def in_order(self, x: Array) -> Array:
        """Every row from its smallest on."""
        return np.sort(x, axis=1)

    def product(self, x: Array, Z: Array) -> Array:
        """X Z^T."""
        return np.asarray(x @ Z.T)

    def absolute_distances(self, x: Array, Z: Array) -> Array:
        """|x - z|_1, of some rows at a time."""
        out = np.empty((len(x), len(Z)))
        step = max(L1_BYTES // max(8 * Z.size, 1), 1)
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            np.abs(x[rows, None, :] - Z).sum(axis=2, out=out[rows])
        return out

    def interpolated(self, x: Array, places: Array, values: Array) -> Array:
        """The piecewise linear function."""
        return np.interp(x, places, values)

    def finite_rows(self, x: Array) -> Array:
        """Rows of numbers, all of them finite."""
        return all_finite(self.numbers(x))

    def marked(self, found: Array, x: Array) -> Array:
        """The decisions; rows that are not finite were refused."""
        return found

    def numbers(self, x: Array) -> Array:
        """Columns as float64; a gap is NaN, and text is none."""
        if x.dtype != object:
            return x.astype(np.float64, copy=False)
        for odd in x.ravel().tolist():
            if isinstance(odd, str):
                raise ValueError(f"X has the text {odd[:40]!r} where the model takes numbers.")
        return np.array([np.nan if each is None else each for each in x.ravel()], float).reshape(
            x.shape
        )

    def equals(self, x: Array, value: Any, apart: bool) -> Array:
        """Whether columns have a value."""
        if value is not None and value == value:
            return np.asarray(x == value, dtype=bool)
        if x.dtype != object:
            return np.isnan(x) & (value is not None or not apart)
        cells = x.ravel().tolist()
        none = np.array([each is None for each in cells], dtype=bool)
        if apart and value is None:
            gaps = none
        else:
            gaps = np.array([each != each for each in cells], dtype=bool) | (none & (not apart))
        return gaps.reshape(x.shape)

    def known(self, x: Array, there: Array, column: int) -> Array:
        """x; raises where a row has an unknown category."""
        if not there.all():
            raise ValueError(
                f"Row {int(np.argmin(there))} has a category in column {column} of its encoder that no "
                "training row had; both are counted from 0."
            )
        return x

    def encoded(self, table: Any, encoding: Encoding, dtype: np.dtype[Any]) -> Array:
        """The numbers of a table, rounded to a type."""
        return np.asarray(encoding(table, dtype), dtype=np.float64)

    def sums(self, x: Array, each: Sums) -> Array:
        """Weighted sums of kernel values or features."""
        return np.asarray(each.by_values(self, x))

    def cell(self, x: Array, tree: Tree) -> Array:
        """The cell of each row: down the tree by the nearest centre, node by node."""
        place = np.zeros(len(x), dtype=np.int64)
        while len(tree.first) and (place >= 0).any():
            for node in np.unique(place[place >= 0]):
                rows = np.flatnonzero(place == node)
                at = slice(tree.first[node], tree.first[node] + tree.counts[node])
                near = tree.half[at] - x[rows] @ tree.centres[at].T
                place[rows] = tree.below[at][near.argmin(axis=1)]
        return (-1 - place if len(tree.first) else place)[:, None]

    def expansions(self, x: Array, cells: Array, each: Expansions) -> Array:
        """The expansion of the cell of each row."""

        def of(cell: int) -> Callable[[Array], Array]:
            return lambda rows: each.of_cell(self, rows, cell)

        return self.by_cell(x, cells, [of(cell) for cell in range(each.n_cells)], each.width)

    def by_cell(
        self, x: Array, cells: Array, functions: Sequence[Callable[[Array], Array]], width: int
    ) -> Array:
        """The function of the cell of each row, at that row."""
        out, where = np.empty((len(x), width)), cells[:, 0]
        for cell in np.unique(where):
            rows = np.flatnonzero(where == cell)
            out[rows] = functions[cell](x[rows])
        return out
