"""Matrix products A B^T of rows, in the precision asked for.

float64 rows, and any rows on a card of torch's CPU kind, take torch's own product. float32 rows on a
CUDA card take the matrix units, which multiply halves and add up in float32:

- ``precision="float32"``: every number is split into two halves of 11 bits, x = high + low, and
  low.high + high.low + high.high is one product of three times the inner length: 22 bits of the
  operands count, at a third of the half rate, some five times the plain float32 rate.
- ``precision="float16"``: high.high alone: 11 bits.

Each row is scaled by a power of two first, so that no number leaves the range of halves. The matrix
units cut off what they add, and so lose the more the longer a sum is: the small products come first,
and no sum is longer than ``SEGMENT`` numbers; those of segments are added up in float32.

``Finish`` is what is done to the sums in the same pass: nothing, cosines, kernel values of squared
distances.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from asset_svm.backends.cuda.compiler import kernel, structure

Precision = Literal["float32", "float16"]
THREADS = 256
ALIGNMENT = 8
"""Halves: what the matrix units want rows to begin at."""
SEGMENT = 2048
IDENTITY = "return t;"
"""The profile where there is none."""

_Split = structure(
    "_Split",
    "source positions out inverse",
    "stride columns group group_stride row_stride panel expand high again low",
    "",
    ctypes.c_float,
)
_Finish = structure(
    "_Finish",
    "sums row_inverse column_inverse left right out",
    "width sums_stride stride mode",
    "amplitude rounding",
    ctypes.c_float,
)
_VALUES = {torch.float32: "float", torch.float16: "half_bits"}


@dataclass(frozen=True, eq=False)
class Finish:
    """From inner products t to values: "product" t, "cosines" a cos(2 pi (t + right)), "distances"
    the profile of a kernel's formula at min(2 t - left - right, 0), where little counts as 0 (``cut``).
    """

    mode: Literal["product", "cosines", "distances"] = "product"
    left: Tensor | None = None
    right: Tensor | None = None
    amplitude: float = 1.0
    formula: Any = None

    def plain(self, t: Tensor) -> Tensor:
        """Turn t into values by torch's own operations, in place."""
        if self.mode == "cosines":
            assert self.right is not None
            return t.add_(self.right).mul_(2 * torch.pi).cos_().mul_(self.amplitude)
        if self.mode == "distances":
            assert self.left is not None and self.right is not None
            left = self.left[:, None]
            t = cut(t.mul_(2).sub_(left).sub_(self.right), left, self.right, self.formula)
            return self.formula.profile(t, torch)
        return t

    @property
    def rounding(self) -> float:
        """Times left + right, in float32: what counts as a distance of 0."""
        return 0.0 if self.formula is None else float(self.formula.rounding("float32"))

    @property
    def profile(self) -> str:
        """The body of the profile in the card's source."""
        return IDENTITY if self.formula is None else str(self.formula.cuda)


PRODUCT = Finish()


def cut(t: Tensor, left: Tensor, right: Tensor, formula: Any) -> Tensor:
    """t = 2 x.z - left - right in place, but 0 where it is above, or as near as the formula allows."""
    if formula.slack == 0.0:
        return t.clamp_(max=0)
    rounding = formula.slack * torch.finfo(t.dtype).eps
    return t.masked_fill_(t > -rounding * (left + right), 0)


class PlainRight:
    """The right factor B, for torch's own product."""

    def __init__(self, B: Tensor):
        self.B = B

    def __call__(self, A: Tensor, out: Tensor, finish: Finish = PRODUCT) -> None:
        """Compute out = finish(A B^T)."""
        out.copy_(finish.plain(A @ self.B.T))


class SplitRight:
    """The right factor B in halves, for the matrix units.

    Parameters
    ----------
    B : float32 tensor of shape (s, n)
    precision : {"float32", "float16"}
    triangular : bool
        B is lower triangular: segments of zeros are not multiplied.
    """

    def __init__(self, B: Tensor, precision: Precision, *, triangular: bool = False):
        s, n = B.shape
        self.precision, self.s, self.n, self.triangular = precision, s, n, triangular
        self.segment = min(-(-n // ALIGNMENT) * ALIGNMENT, SEGMENT)
        self.inner = -(-n // self.segment) * self.segment
        self.halves, self.inverse = self._split(B, right=True)

    def _split(self, A: Tensor, *, right: bool) -> tuple[Tensor, Tensor]:
        rows = A.shape[0]
        if A.shape[1] % 4 or A.stride(0) % 4 or A.stride(1) != 1 or A.data_ptr() % 16:
            A = torch.nn.functional.pad(A, (0, -A.shape[1] % 4)).contiguous()
        times = 3 if self.precision == "float32" else 1
        padded = -(-rows // ALIGNMENT) * ALIGNMENT if right else rows
        new = torch.zeros if self.inner != self.n or padded != rows else torch.empty
        out = new((padded, times * self.inner), dtype=torch.float16, device=A.device)
        inverse = torch.ones(padded, dtype=torch.float32, device=A.device)
        size = self.segment
        # left: low, high, high; right: high, low, high
        high, again, low = (0, -1, -1)
        if times == 3:
            high, again, low = (0, 2 * size, size) if right else (size, 2 * size, 0)
        split_rows(
            A, None, out, inverse, rows, panel=size, expand=times, high=high, again=again, low=low
        )
        return out, inverse

    def __call__(self, A: Tensor, out: Tensor, finish: Finish = PRODUCT) -> None:
        """Compute out = finish(A B^T)."""
        halves, inverse = self._split(A, right=False)
        width = halves.shape[1] // self.inner * self.segment
        sums = torch.mm(halves[:, :width], self.halves[:, :width].T, out_dtype=torch.float32)
        for i in range(1, self.inner // self.segment):
            part, first = slice(i * width, (i + 1) * width), i * self.segment if self.triangular else 0
            product = torch.mm(halves[:, part], self.halves[first:, part].T, out_dtype=torch.float32)
            sums[:, first:] += product
        arguments = _Finish(
            sums=sums.data_ptr(),
            row_inverse=inverse.data_ptr(),
            column_inverse=self.inverse.data_ptr(),
            left=None if finish.left is None else finish.left.data_ptr(),
            right=None if finish.right is None else finish.right.data_ptr(),
            out=out.data_ptr(),
            width=self.s,
            sums_stride=sums.stride(0),
            stride=out.stride(0),
            mode=("product", "cosines", "distances").index(finish.mode),
            amplitude=finish.amplitude,
            rounding=finish.rounding,
        )
        run = kernel(
            "elementwise.cu", "finish", A.device.index, profile=finish.profile, VALUE=_VALUES[out.dtype]
        )
        run(arguments, len(A), THREADS)


def split_rows(
    A: Tensor,
    positions: Tensor | None,
    out: Tensor,
    inverse: Tensor,
    rows: int,
    *,
    panel: int,
    expand: int = 1,
    high: int = 0,
    again: int = -1,
    low: int = -1,
    group: int | None = None,
    group_stride: int = 0,
) -> None:
    """Split rows of A, those at ``positions`` if given, into halves (see elementwise.cu)."""
    arguments = _Split(
        source=A.data_ptr(),
        positions=None if positions is None else positions.data_ptr(),
        out=out.data_ptr(),
        inverse=inverse.data_ptr(),
        stride=A.stride(0),
        columns=A.shape[1],
        group=rows if group is None else group,
        group_stride=group_stride,
        row_stride=out.stride(-2),
        panel=panel,
        expand=expand,
        high=high,
        again=again,
        low=low,
    )
    run = kernel(
        "elementwise.cu", "split_rows", A.device.index, profile=IDENTITY, VALUE=_VALUES[A.dtype]
    )
    run(arguments, rows, THREADS)


def right_factor(B: Tensor, precision: Precision, *, triangular: bool = False) -> Any:
    """Prepare B for products A B^T."""
    if B.device.type == "cuda" and B.dtype == torch.float32:
        return SplitRight(B, precision, triangular=triangular)
    return PlainRight(B)


def gram_blocks(V: Tensor, positions: Tensor, block: int) -> Tensor:
    """V_B V_B^T of consecutive blocks of the rows of V at ``positions``, (blocks, block, block).

    float32 rows: high.high + high.low + (high.low)^T in one product. Halves need no splitting.
    """
    count, columns = len(positions) // block, V.shape[1]
    if V.device.type != "cuda" or V.dtype == torch.float64:
        rows = V[positions].to(torch.float64 if V.dtype == torch.float64 else torch.float32)
        rows = rows.view(count, block, columns)
        return torch.bmm(rows, rows.transpose(1, 2))
    parts = 1 if V.dtype == torch.float16 else 2
    halves = torch.empty((count, parts * block, columns), dtype=torch.float16, device=V.device)
    inverse = torch.empty(len(positions), dtype=torch.float32, device=V.device)
    split_rows(
        V, positions, halves, inverse, len(positions), panel=columns, group=block,
        group_stride=parts * block * columns, low=block * columns if parts == 2 else -1,
    )  # fmt: skip
    sums = torch.zeros((count, block, parts * block), dtype=torch.float32, device=V.device)
    for start in range(0, columns, SEGMENT):
        part = halves[:, :, start : start + SEGMENT]
        sums += torch.bmm(part[:, :block], part.transpose(1, 2), out_dtype=torch.float32)
    scale = inverse.view(count, block)
    G = sums[:, :, :block]
    if parts == 2:
        cross = sums[:, :, block:]
        G = G + cross + cross.transpose(1, 2)
    return (G * scale[:, :, None] * scale[:, None, :]).contiguous()
