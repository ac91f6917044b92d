"""Slow parsers of svmlight and CSV text that share no code with the library.

Each returns its rows, or None for text that must not be accepted.
"""

from __future__ import annotations

import csv
import io
import re

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _number(token: bytes) -> float | None:
    if not NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if np.isfinite(value) else None


def svmlight_rows(text: bytes) -> list[tuple[float, dict[int, float]]] | None:
    """[(label, {index from 0: value})], indices counting from 1 in the text."""
    rows = []
    for line in text.split(b"\n"):
        if line.endswith(b"\r"):
            line = line[:-1]
        tokens = re.split(rb"[ \t]+", line.split(b"#")[0])
        tokens = [token for token in tokens if token]
        if not tokens:
            continue
        label = _number(tokens[0])
        if label is None:
            return None
        row: dict[int, float] = {}
        last = 0
        for place, token in enumerate(tokens[1:]):
            index, colon, value = token.partition(b":")
            if place == 0 and index == b"qid" and colon:
                if not NUMBER.fullmatch(value):
                    return None
                continue
            number = _number(value)
            if not colon or not re.fullmatch(rb"[0-9]+", index) or number is None:
                return None
            if int(index) <= last or int(index) > 2**27:
                return None
            last = int(index)
            row[last - 1] = number
        rows.append((label, row))
    return rows or None


def csv_rows(text: str, target: str) -> list[tuple[str, list[float]]] | None:
    """[(target, features)]; the first line names the columns."""
    lines = list(csv.reader(io.StringIO(text, newline="")))
    if not lines or target not in lines[0] or len(set(lines[0])) != len(lines[0]):
        return None
    names, rows = lines[0], []
    for cells in lines[1:]:
        if not cells:
            continue
        if len(cells) != len(names):
            return None
        features = []
        for name, cell in zip(names, cells, strict=True):
            if name == target:
                label = cell.strip(" \t")
                continue
            number = _number(cell.strip(" \t").encode())
            if number is None:
                return None
            features.append(number)
        rows.append((label, features))
    return rows or None
