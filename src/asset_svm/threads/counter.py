"""Numbers that threads of compiled code take, each the next one, without the interpreter.

A counter is an array of one int64. ``take`` in compiled code returns its number and adds 1, as one
operation that no other thread comes between: whoever is ready takes the next piece of work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit

ENOUGH = 1 << 62
"""A counter that is set to this has no number left that anybody would work on."""


def new_counter() -> Array:
    """A counter that begins at 0."""
    return np.zeros(1, dtype=np.int64)


@intrinsic  # type: ignore[untyped-decorator]
def _fetch_and_add(typing: Any, counter: Any, amount: Any) -> Any:
    """counter[0] before ``amount`` was added to it, by one atomic instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, value = signature.args[0], arguments[0]
        array = context.make_array(kind)(context, builder, value)
        pointer = cgutils.gep_inbounds(builder, array.data, 0)
        return builder.atomic_rmw("add", pointer, arguments[1], "seq_cst")

    return types.int64(counter, types.int64), generate


@njit(cache=True, nogil=True)
def take(counter: Array) -> int:
    """The next number of a counter, which no other thread gets."""
    return _fetch_and_add(counter, 1)
