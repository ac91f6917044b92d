"""The compiled parser of svmlight text: bytes to labels and CSR arrays.

    line  = [label (qid:number)? (index:value)*] [# comment]

Tokens are separated by spaces and tabs, lines end in LF or CRLF, empty ones are skipped. Numbers are
decimal, with an optional sign, fraction and exponent. A mantissa below 2^53 with a power of ten up to
22 is exact in one operation (Clinger); any other number is left to Python's ``float``, so that every
number is the nearest to its text.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit

OK, BAD_LABEL, BAD_INDEX, ZERO_INDEX, ORDER, BAD_VALUE, NO_COLON, LARGE_INDEX = range(8)
LARGEST_INDEX = 2**31 - 2
"""The largest index that a CSR matrix can have here."""
EXACT = 2**53
POWERS = 10.0 ** np.arange(23)
LABEL = -1
"""The place of a number that is left to Python, where it is the label of its row."""


@njit(cache=True, nogil=True)
def _number(text: Array, start: int, stop: int, powers: Array) -> tuple[float, int]:
    """(value, 0), (0, 1) for a number left to Python, (0, 2) for what is no number."""
    i, negative = start, False
    if i < stop and (text[i] == 43 or text[i] == 45):
        negative = text[i] == 45
        i += 1
    mantissa, digits, significant, scale = np.int64(0), 0, 0, 0
    while i < stop and 48 <= text[i] <= 57:
        digits += 1
        if significant > 0 or text[i] != 48:
            significant += 1
        if significant <= 18:
            mantissa = mantissa * 10 + (text[i] - 48)
        i += 1
    if i < stop and text[i] == 46:
        i += 1
        while i < stop and 48 <= text[i] <= 57:
            digits += 1
            if significant > 0 or text[i] != 48:
                significant += 1
            if significant <= 18:
                mantissa = mantissa * 10 + (text[i] - 48)
            scale -= 1
            i += 1
    if digits == 0:
        return 0.0, 2
    if i < stop and (text[i] == 101 or text[i] == 69):
        i += 1
        minus = False
        if i < stop and (text[i] == 43 or text[i] == 45):
            minus = text[i] == 45
            i += 1
        if i == stop:
            return 0.0, 2
        exponent = 0
        while i < stop and 48 <= text[i] <= 57:
            exponent = min(exponent * 10 + (text[i] - 48), 100_000)
            i += 1
        scale += -exponent if minus else exponent
    if i != stop:
        return 0.0, 2
    if significant > 18 or mantissa >= EXACT or scale > 22 or scale < -22:
        return 0.0, 1
    value = float(mantissa)
    value = value * powers[scale] if scale >= 0 else value / powers[-scale]
    return (-value if negative else value), 0


@njit(cache=True, nogil=True)
def parse(
    text: Array,
    base: int,
    largest: int,
    powers: Array,
    labels: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    line_of: Array,
    hard: Array,
) -> tuple[int, int, int, int, int, int, int]:
    """Parse whole lines into the arrays given.

    Parameters
    ----------
    text : uint8 array
    base : int
        The index of the first feature, 0 or 1.
    largest : int
        A larger index is an error.
    powers : array
        10^0, ..., 10^22.
    labels, indptr, indices, values, line_of : arrays, large enough
        ``line_of`` gets the line that each row stands on.
    hard : int64 array of shape (h, 4)
        Gets (row, place in values or LABEL, start, stop) of numbers left to Python.

    Returns
    -------
    status, line : int
        Lines counted from 0; the line of the error, or the number of lines.
    start, stop : int
        The offending bytes.
    rows, entries, n_hard : int
    """
    n, i, line = len(text), 0, 0
    rows, entries, n_hard = 0, 0, 0
    indptr[0] = 0
    while i < n:
        end = i
        while end < n and text[end] != 10:
            end += 1
        stop = end
        if stop > i and text[stop - 1] == 13:
            stop -= 1
        token, last = 0, np.int64(-1)
        while i < stop:
            if text[i] == 32 or text[i] == 9:
                i += 1
                continue
            if text[i] == 35:
                break
            begin, colon = i, -1
            while i < stop and text[i] != 32 and text[i] != 9 and text[i] != 35:
                if text[i] == 58 and colon < 0:
                    colon = i
                i += 1
            if token == 0:
                value, kind = _number(text, begin, i, powers)
                if kind == 2:
                    return BAD_LABEL, line, begin, i, rows, entries, n_hard
                if kind == 1:
                    hard[n_hard] = (rows, LABEL, begin, i)
                    n_hard += 1
                labels[rows] = value
            elif colon < 0:
                return NO_COLON, line, begin, i, rows, entries, n_hard
            elif (
                token == 1
                and colon - begin == 3
                and text[begin] == 113
                and text[begin + 1] == 105
                and text[begin + 2] == 100
            ):
                # It groups rows for ranking, and is of no use here; but what is not a number may be
                # an entry behind a separator that is none.
                value, kind = _number(text, colon + 1, i, powers)
                if kind == 2:
                    return BAD_VALUE, line, begin, i, rows, entries, n_hard
            else:
                index = np.int64(0)
                if colon == begin:
                    return BAD_INDEX, line, begin, i, rows, entries, n_hard
                for k in range(begin, colon):
                    if text[k] < 48 or text[k] > 57:
                        return BAD_INDEX, line, begin, i, rows, entries, n_hard
                    index = index * 10 + (text[k] - 48)
                    if index > largest:
                        return LARGE_INDEX, line, begin, i, rows, entries, n_hard
                if index < base:
                    return ZERO_INDEX, line, begin, i, rows, entries, n_hard
                if index <= last:
                    return ORDER, line, begin, i, rows, entries, n_hard
                last = index
                value, kind = _number(text, colon + 1, i, powers)
                if kind == 2:
                    return BAD_VALUE, line, begin, i, rows, entries, n_hard
                if kind == 1:
                    hard[n_hard] = (rows, entries, colon + 1, i)
                    n_hard += 1
                indices[entries] = index - base
                values[entries] = value
                entries += 1
            token += 1
        if token > 0:
            line_of[rows] = line
            rows += 1
            indptr[rows] = entries
        line += 1
        i = end + 1
    return OK, line, 0, 0, rows, entries, n_hard
