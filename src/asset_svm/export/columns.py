"""The functions of columns of a table (``encoding.columns``) by ``Operations``, for graphs and C."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.columns import (
    CLIP,
    FAR,
    PERIODS,
    Clipped,
    ColumnEncoder,
    Cycles,
    Means,
    Number,
    OneHot,
    Pieces,
    Ranked,
    Scaled,
    Steps,
)
from asset_svm.encoding.encoding import Encoding
from asset_svm.runtime.operations import Operations, Value


class Columns(Protocol):
    """The columns of a table that is not there yet."""

    def numbers(self, name: str) -> Value:
        """(rows, 1): numbers, or times in days, that may be missing."""

    def codes(self, name: str, levels: tuple[str, ...]) -> Value:
        """(rows, 1) of int64: the number of the level; len(levels) for others, -1 for a gap."""


class Tracing(Operations, Protocol):
    """Operations whose values are not there yet."""

    def lookup(self, codes: Value, table: Array) -> Value:
        """The rows of a table that have these numbers."""

    def sin(self, x: Value) -> Value:
        """The sine."""

    def rounded(self, x: Value, dtype: np.dtype[Any]) -> Value:
        """Numbers as a type holds them."""


class Traced:
    """What such operations share: nothing can be raised for a row."""

    def finite_rows(self, x: Value) -> Value:
        """Rows that a model is about to take."""
        return x

    def numbers(self, x: Value) -> Value:
        """Columns, which are numbers here."""
        return x

    def equals(self: Any, x: Value, value: Any, apart: bool) -> Value:
        """Whether columns have a value; numbers have one gap, NaN."""
        if value is None or value != value:
            return self.isnan(x)
        if isinstance(value, str):
            raise ValueError(
                f"A step of scikit-learn's compares columns with the text {value[:40]!r}, and the rows "
                "of an exported pipeline have numbers; put a TableEncoder before the model."
            )
        return x == float(value)

    def known(self: Any, x: Value, there: Value, column: int) -> Value:
        """x, which is no number where a column has an unknown category."""
        return self.where(there, x, np.nan)

    def encoded(self: Any, table: Columns, encoding: Encoding, dtype: np.dtype[Any]) -> Value:
        """The numbers of a table."""
        return encoded(self, table, encoding, dtype)


def encoded(ops: Tracing, columns: Columns, encoding: Encoding, dtype: np.dtype[Any]) -> Value:
    """(rows, width) numbers of a table."""
    found = [_part(ops, columns, encoding.names[number], part) for number, part in encoding.parts]
    return ops.rounded(ops.beside(found), dtype)


def _part(ops: Tracing, columns: Columns, name: str, part: ColumnEncoder) -> Value:
    if isinstance(part, Cycles):
        return _cycles(ops, columns.numbers(name), part)
    if isinstance(part, Number):
        x = columns.numbers(name)
        missing = ops.isnan(x)
        found = _number(ops, ops.where(missing, part.fill, x), part)
        return ops.beside([found, ops.number(missing)]) if part.gap else found
    assert isinstance(part, OneHot | Steps | Means)
    count, codes = len(part.names), columns.codes(name, part.names)
    if isinstance(part, OneHot):
        listed = [*range(count), *([count] if part.other else []), *([-1] if part.gap else [])]
        return ops.number(codes == np.array(listed))
    if isinstance(part, Steps):
        known = (codes >= 0) & (codes < count)
        places = ops.where(known, codes, part.middle)
        return ops.number(places > np.arange(count - 1)) * (1.0 / part.scale)
    return ops.lookup(ops.where(codes < 0, count + 1, codes), part.means[-1])


def _number(ops: Operations, x: Value, part: Number) -> Value:
    if isinstance(part, Scaled | Clipped):
        z = ops.clip((x - part.centre) / part.scale, -FAR, FAR)
        if isinstance(part, Scaled):
            return z
        ninth = z * (1.0 / CLIP)
        return z / ops.sqrt(ninth * ninth + 1.0)
    if isinstance(part, Ranked):
        return (ops.interpolated(x, part.edges, part.below) - part.centre) / part.scale
    assert isinstance(part, Pieces)
    places = (x - part.edges[:-1]) / np.diff(part.edges)
    return ops.clip(places, 0.0, 1.0) / part.scale


def _cycles(ops: Tracing, days: Value, part: Cycles) -> Value:
    gap = ops.isnan(days)
    days, found = ops.where(gap, 0.0, days), []
    for period in part.periods:
        angle = days * (2.0 * np.pi / PERIODS[period])
        found += [ops.cos(angle), ops.sin(angle)]
    return ops.where(gap, 0.0, ops.beside(found))
