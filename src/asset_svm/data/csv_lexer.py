"""The compiled lexer of CSV text: where records end, and cells whose quotes cannot be.

    cell  = text | '"' (text | '""')* '"' spaces

A quote opens a cell only as its first character, and is a character like others elsewhere. Behind the
quote that closes there is nothing but spaces: text there means that a quote is missing before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.numerics.compiling import njit

Array = npt.NDArray[Any]
START, PLAIN, QUOTED, CLOSED, SPACED = range(5)
LF, CR, SPACE, QUOTE = 10, 13, 32, 34


@njit(cache=True, nogil=True)
def _lex(text: Array, delimiter: int, state: int) -> tuple[int, int, int, int]:
    end, opened, fault = -1, -1, -1
    for i in range(len(text)):
        c = text[i]
        if state == QUOTED:
            if c == QUOTE:
                state = CLOSED
        elif c == delimiter:
            state = START
        elif c in (LF, CR):
            state = START
            if c == LF:
                end = i + 1
        elif c == QUOTE and state == START:
            state, opened = QUOTED, i
        elif c == QUOTE and state == CLOSED:
            state = QUOTED
        elif c == SPACE and state in (CLOSED, SPACED):
            state = SPACED
        else:
            if fault < 0 and state in (CLOSED, SPACED):
                fault = opened
            state = PLAIN
    return end, state, opened, fault


class RecordEnds:
    """Called with the parts of a text in turn: the place behind the last record that ends in each."""

    def __init__(self, delimiter: str):
        self.delimiter, self.state = ord(delimiter), START

    def __call__(self, part: bytes) -> int:
        """The place, or -1 where no record ends."""
        begin = 0
        if self.state != QUOTED and b'"' not in part:  # the end decides, and is found fast
            begin = part.rfind(b"\n") + 1
            self.state = START if begin else self.state
        text = np.frombuffer(part, np.uint8)[begin:]
        end, self.state, _, _ = _lex(text, self.delimiter, self.state)
        return int(end) if end >= 0 else begin or -1


def odd_quote(text: bytes, delimiter: str) -> int:
    """The place of the first quote that never closes, or closes before the end of its cell; or -1."""
    if b'"' not in text:
        return -1
    _, state, opened, fault = _lex(np.frombuffer(text, np.uint8), ord(delimiter), START)
    return int(fault if fault >= 0 else opened if state == QUOTED else -1)
