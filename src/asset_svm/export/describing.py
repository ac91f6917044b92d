"""The description of what is exported: an estimator, a served model, or a file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.encoding.encoding import Encoding
from asset_svm.runtime.description import Description
from asset_svm.runtime.model import Model
from asset_svm.runtime.reading import described, read
from asset_svm.storage.fields import Fields, told


def description_of(model: Any) -> Description:
    """The description of a fitted estimator, of what ``runtime.load`` returns, or of a file."""
    if isinstance(model, str | Path):
        return read(model)
    if isinstance(model, Model):
        return model.description
    from asset_svm.persistence import parts_of

    record, tensors = parts_of(model)
    with told("the model"):
        return described(Fields(record, tensors, "the model"))


def table_columns(encoding: Encoding) -> list[tuple[str, str]]:
    """The columns of tables that are used, with their kinds: "number", "time" or "levels"."""
    return [(note.name, note.kind) for note in encoding.notes if note.kept]


def check_one_table(description: Description) -> Encoding | None:
    """The encoding of the tables that a model takes; None where it takes rows of numbers."""
    encode = description.encoder
    if encode is None:
        return None
    if not description.front:
        raise ValueError(
            "A CalibratedClassifierCV of models with encoders of their own has one table for each of "
            "them, and cannot be exported; put a TableEncoder before it in a Pipeline, or set "
            "ensemble=False."
        )
    return encode.encoding


def unlike(name: str, taken: Collection[str]) -> str:
    """A name, or this name with a number, that is none of those taken."""
    found, again = name, 2
    while found in taken:
        found, again = f"{name}_{again}", again + 1
    return found


def label_array(classes: Array, most: int = np.iinfo(np.int64).max) -> Array:
    """Classes as an array of text, float64, truth values or int64, of no integers beyond ``most``."""
    listed = classes.tolist()
    if all(isinstance(each, str) for each in listed):
        return np.array(listed, dtype=str)
    if classes.dtype.kind == "b":
        return classes
    if all(isinstance(each, int) for each in listed):
        far = next((each for each in listed if not -most - 1 <= each <= most), None)
        if far is not None:
            raise ValueError(
                f"The class {far} is beyond {most}, and cannot be exported; number the classes from 0, "
                "or name all by words."
            )
        return np.array(listed, dtype=np.int64)
    if all(isinstance(each, int | float) for each in listed):
        return np.array(listed, dtype=np.float64)
    raise ValueError(
        f"The classes {listed[:5]} are neither all text nor all numbers, and cannot be exported; name "
        "all by words."
    )
