"""Bytes, a little changed: bits, bytes, cuts, pieces moved or taken from another file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ODD = (0, 1, 0x7F, 0x80, 0xFF, *b'\n\r\t ",:.#-+0159eENn')
"""Bytes at which parsers turn."""


def mutated(content: bytes, rng: np.random.Generator, others: Sequence[bytes] = ()) -> bytes:
    """One to four changes at random places."""
    for _ in range(rng.integers(1, 5)):
        content = _changed(bytearray(content), rng, others)
    return content


def _changed(content: bytearray, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    size = len(content)
    if size == 0:
        return bytes(rng.integers(0, 256, 3, dtype=np.uint8))
    place = int(rng.integers(size))
    length = min(int(rng.geometric(0.1)), size - place)
    kind = rng.integers(8)
    if kind == 0:
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        content[place] = int(rng.integers(256))
    elif kind == 2:
        content[place] = int(rng.choice(ODD))
    elif kind == 3:
        content[place:place] = bytes([int(rng.choice(ODD))]) * int(rng.integers(1, 4))
    elif kind == 4:
        del content[place : place + length]
    elif kind == 5:
        target = int(rng.integers(size))
        content[target:target] = content[place : place + length]
    elif kind == 6:
        del content[place:]
    else:
        other = others[rng.integers(len(others))] if others else bytes(content)
        begin = int(rng.integers(len(other)))
        content[place : place + length] = other[begin : begin + length]
    return bytes(content)
