"""The compiled lexer of CSV text: where records end, how wide they are, and quotes that cannot be.

    cell  = text | '"' (text | '""')* '"' spaces

A quote opens a cell only as its first character, and is a character like others elsewhere. Behind the
quote that closes there is nothing but spaces: text there means that a quote is missing before.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit

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


@njit(cache=True, nogil=True)
def _record(text: Array, delimiter: int, width: int) -> tuple[bool, int, int, int]:
    """(found, its number, its place, its cells): the first record that has not ``width`` cells.

    Where there is none, and where ``width`` is negative, that at the end of the text. Empty lines are
    no records.
    """
    number, begin, cells, state = 0, 0, 1, START
    for i in range(len(text)):
        c = text[i]
        if state == QUOTED:
            if c == QUOTE:
                state = CLOSED
        elif c in (LF, CR):
            if i > begin:
                if width >= 0 and cells != width:
                    return True, number, begin, cells
                number += 1
            begin, cells, state = i + 1, 1, START
        elif c == delimiter:
            cells, state = cells + 1, START
        elif c == QUOTE and state in (START, CLOSED):
            state = QUOTED
        else:
            state = PLAIN
    return 0 <= width != cells and begin < len(text), number, begin, cells


class RecordEnds:
    """A function that is called with the parts of a text in turn, and finds where records end."""

    def __init__(self, delimiter: str):
        self.delimiter, self.state = ord(delimiter), START

    def __call__(self, part: bytes) -> int:
        """The place behind the last record that ends in this part; -1 where none does."""
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


def odd_record(text: bytes, delimiter: str, width: int) -> tuple[int, int, int]:
    """(number, place, cells) of the first record without ``width`` cells; or (-1, the end, width)."""
    found, number, begin, cells = _record(np.frombuffer(text, np.uint8), ord(delimiter), width)
    return (int(number), int(begin), int(cells)) if found else (-1, len(text), width)


def last_cell(text: bytes, delimiter: str) -> tuple[int, int]:
    """The record and the column in which a text ends, both counted from 0."""
    _, number, _, cells = _record(np.frombuffer(text, np.uint8), ord(delimiter), -1)
    return int(number), int(cells) - 1
