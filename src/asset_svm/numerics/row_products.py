"""Matrix products A P in which every number is summed up in one order, by fused steps.

    s_b = fma(A[i, e], P[e, j], ... fma(A[i, b], P[b, j], 0)), 256 terms b ... e at a time
    out[i, j] = (s_0 + s_1) + s_2 + ...

A row is therefore rounded in one way, whatever rows stand beside it, by however many threads, and on
every machine: what "cached or recomputed, resumed or not, bit for bit" rests on. BLAS does not promise
it, and does not keep it: OpenBLAS's float32 kernels for AVX2, which it also takes for a CPU that it
does not know, round the rows of a block of twelve in up to four ways.

A tile of ``ROWS`` x ``WIDE_BYTES`` of the product stays in registers while it runs along k. A panel of
P as wide as a tile is copied first, so that it lies together in the first cache; few rows read P where
it is. Numbers are in benchmarks/notes/products.md.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import lent, njit
from asset_svm.numerics.padding import COLUMNS

_WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
ROWS = 12 if _WIDE else 6
"""The rows of a tile: with two registers each and those of P, nearly all registers there are."""
WIDE_BYTES = 128 if _WIDE else 64
"""The bytes of a row of a tile."""
NARROW_BYTES = 64
"""Those of a tile at the end of a row: 16 numbers of float32, of which padded matrices are made."""
DEPTH = 256
"""A panel goes so far along k: with as many columns as a tile it fills much of the first cache."""
FEW = 6
"""Fewer rows than these do not pay for a copy of P."""
UNROLLED = 2


def _tile(rows: int, n_bytes: int) -> Any:
    """Compiled code for a tile: out = A P, or out += A P, for so many rows and bytes of columns."""

    @intrinsic
    def tile(context, a, p, out, k, a_stride, p_stride, out_stride, onto, unit):  # type: ignore[no-untyped-def]
        address = types.intp
        signature = types.void(
            address, address, address, address, address, address, address, types.boolean, unit
        )

        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            _emit(builder, rows, n_bytes, 8 if unit is types.float64 else 4, *args[:-1])
            return context.get_dummy_value()

        return signature, generate

    return tile


def _emit(
    builder: Any,
    rows: int,
    n_bytes: int,
    size: int,
    a: Any,
    p: Any,
    out: Any,
    k: Any,
    a_stride: Any,
    p_stride: Any,
    out_stride: Any,
    onto: Any,
) -> None:
    """Write the loop along k; addresses and strides are in bytes, ``size`` is that of a number."""
    real = ir.FloatType() if size == 4 else ir.DoubleType()
    lanes, integer = n_bytes // size, k.type
    vector = ir.VectorType(real, lanes)
    name = f"llvm.fma.v{lanes}f{8 * size}"
    fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
    first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    nothing = ir.Constant(vector, ir.Undefined)

    def number(value: int) -> Any:
        return ir.Constant(integer, value)

    def read(address: Any, kind: Any) -> Any:
        value = builder.load(builder.inttoptr(address, kind.as_pointer()))
        value.align = size
        return value

    def everywhere(value: Any) -> Any:
        one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, nothing, first)

    def beginnings(base: Any, stride: Any) -> list[Any]:
        return [builder.add(base, builder.mul(stride, number(i))) for i in range(rows)]

    own, found = beginnings(a, a_stride), beginnings(out, out_stride)
    sums = [cgutils.alloca_once(builder, vector) for _ in range(rows)]
    for total in sums:
        builder.store(ir.Constant(vector, [0.0] * lanes), total)

    def step(at: Any) -> None:
        by = read(builder.add(p, builder.mul(at, p_stride)), vector)
        for total, row in zip(sums, own, strict=True):
            value = everywhere(read(builder.add(row, builder.mul(at, number(size))), real))
            builder.store(builder.call(fma, [value, by, builder.load(total)]), total)

    whole = builder.mul(builder.sdiv(k, number(UNROLLED)), number(UNROLLED))
    with cgutils.for_range_slice(builder, number(0), whole, number(UNROLLED), integer) as (at, _):
        for ahead in range(UNROLLED):
            step(builder.add(at, number(ahead)))
    with cgutils.for_range_slice(builder, whole, k, number(1), integer) as (at, _):
        step(at)
    with builder.if_then(onto):
        for total, place in zip(sums, found, strict=True):
            builder.store(builder.fadd(read(place, vector), builder.load(total)), total)
    for total, place in zip(sums, found, strict=True):
        stored = builder.store(builder.load(total), builder.inttoptr(place, vector.as_pointer()))
        stored.align = size


_whole_wide, _six_wide = _tile(ROWS, WIDE_BYTES), _tile(6, WIDE_BYTES)
_three_wide, _one_wide = _tile(3, WIDE_BYTES), _tile(1, WIDE_BYTES)
_six, _three, _one = _tile(6, NARROW_BYTES), _tile(3, NARROW_BYTES), _tile(1, NARROW_BYTES)


@njit(cache=True, nogil=True)
def _copy_panel(P: Array, start: int, depth: int, left: int, width: int, panel: Array) -> None:
    """Copy P[start : start + depth, left : left + width] to lie together."""
    for q in range(depth):
        row = P[start + q, left : left + width]
        for j in range(width):
            panel[q * width + j] = row[j]


@njit(cache=True, nogil=True)
def set_product(A: Array, P: Array, out: Array) -> None:
    """out = A P, for arrays of one type whose rows are contiguous.

    P and out have a multiple of 16 columns.
    """
    (m, k), n, size = A.shape, P.shape[1], P.itemsize
    if k == 0:
        out[:] = 0
        return
    unit, wide, narrow = P[0, 0], WIDE_BYTES // size, NARROW_BYTES // size
    copies = m >= FEW
    room = np.empty(DEPTH * wide + narrow if copies else 1, P.dtype)
    panel = room[(64 - room.ctypes.data % 64) % 64 // size :]
    a_step, out_step = A.strides[0], out.strides[0]
    for start in range(0, k, DEPTH):
        depth, onto, left = min(DEPTH, k - start), start > 0, 0
        while left < n:
            width = wide if n - left >= wide else narrow
            by, by_step = P.ctypes.data + start * P.strides[0] + left * size, P.strides[0]
            if copies:
                _copy_panel(P, start, depth, left, width, panel)
                by, by_step = panel.ctypes.data, width * size
            a, at, i = A.ctypes.data + start * size, out.ctypes.data + left * size, 0
            if width == wide:
                while m - i >= ROWS:
                    _whole_wide(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + ROWS, a + ROWS * a_step, at + ROWS * out_step
                while m - i >= 6:
                    _six_wide(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 6, a + 6 * a_step, at + 6 * out_step
                while m - i >= 3:
                    _three_wide(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 3, a + 3 * a_step, at + 3 * out_step
                while i < m:
                    _one_wide(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 1, a + a_step, at + out_step
            else:
                while m - i >= 6:
                    _six(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 6, a + 6 * a_step, at + 6 * out_step
                while m - i >= 3:
                    _three(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 3, a + 3 * a_step, at + 3 * out_step
                while i < m:
                    _one(a, by, at, depth, a_step, by_step, out_step, onto, unit)
                    i, a, at = i + 1, a + a_step, at + out_step
            left += width


def product(A: Array, P: Array) -> Array:
    """A P, for a P with a multiple of 16 columns; A is taken in the type of P."""
    if A.shape[1] != P.shape[0] or P.shape[1] % COLUMNS:
        raise ValueError(f"No product of {A.shape} and {P.shape}: tiles would leave the arrays.")
    out = np.empty((A.shape[0], P.shape[1]), dtype=P.dtype)
    set_product(lent(A.astype(P.dtype, copy=False)), lent(P), out)
    return out
