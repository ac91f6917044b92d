"""Records of what is made of the columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.encoding.columns import (
    PERIODS,
    Clipped,
    ColumnEncoder,
    Cycles,
    Means,
    OneHot,
    Pieces,
    Ranked,
    Scaled,
    Steps,
)
from asset_svm.encoding.encoding import FOLDS, Encoding, Note
from asset_svm.storage.fields import Fields

KINDS: dict[str, type[Any]] = {
    cls.kind: cls for cls in (Scaled, Clipped, Ranked, Pieces, Cycles, OneHot, Steps, Means)
}
OF_LEVELS = ("one-hot", "steps", "means")


def encoding(f: Fields) -> Encoding:
    """The record of all columns."""
    notes = f.each("notes", "record", _note)
    names = [note.name for note in notes]
    f.check(len(set(names)) == len(names), "has a column twice", "notes")
    parts = f.each("parts", "record", _part, notes, of=_parts_of)
    f.check(parts, "has none", "parts")
    return Encoding(tuple(notes), tuple(parts), f.flag("sparse"))


def _parts_of(encoding: Encoding) -> list[dict[str, Any]]:
    return [{"column": column, "function": function} for column, function in encoding.parts]


def _note(f: Fields) -> Note:
    kind = f.text("kind", ("number", "time", "levels", ""))
    return Note(f.text("name"), kind, f.text("made"), f.flag("kept"))


def _part(f: Fields, notes: list[Note]) -> tuple[int, ColumnEncoder]:
    column, function = f.integer("column"), f.record("function", _function)
    f.check(column < len(notes), f"is {column} of {len(notes)}", "column")
    kind = notes[column].kind if column < len(notes) else ""
    fits = (function.kind in OF_LEVELS) == (kind == "levels") and kind != "" and notes[column].kept
    f.check(fits and (function.kind != "cycles" or kind == "time"), "is of another kind", "column")
    return column, function


def _function(f: Fields) -> Any:
    kind = f.kind(KINDS)
    if kind == "cycles":
        return Cycles(tuple(f.each("periods", "text", tuple(PERIODS))))
    if kind == "one-hot":
        return OneHot(_names(f), f.flag("other"), f.flag("gap"))
    if kind == "steps":
        names, middle = _names(f), f.integer("middle")
        f.check(len(names) > 1 and middle < len(names), "is none of the levels", "middle")
        return Steps(names, middle, _scale(f))
    if kind == "means":
        names, outputs = _names(f), tuple(f.each("outputs", "text"))
        return Means(names, f.array("means", (FOLDS + 1, len(names) + 2, len(outputs))), outputs)
    fill, gap = f.number("fill"), f.flag("gap")
    if kind == "pieces":
        return Pieces(fill, gap, _edges(f, 1), _scale(f))
    if kind == "ranked":
        edges = _edges(f, 2)
        below = f.array("below", (len(edges),))
        return Ranked(fill, gap, edges, below, f.number("centre"), _scale(f))
    return KINDS[kind](fill, gap, f.number("centre"), _scale(f))


def _names(f: Fields) -> tuple[str, ...]:
    names = tuple(f.each("names", "text"))
    f.check(len(set(names)) == len(names), "has a level twice", "names")
    return names


def _edges(f: Fields, least: int) -> np.ndarray:
    edges = f.array("edges", (None,))
    f.check(len(edges) >= least and (np.diff(edges) > 0.0).all(), "does not increase", "edges")
    return edges


def _scale(f: Fields) -> float:
    scale: float = f.number("scale", 0.0)
    f.check(scale > 0.0, "is 0", "scale")
    return scale
