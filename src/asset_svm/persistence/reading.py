"""Record: the fields of one JSON object of a model file, each checked as it is read.

A field that is missing, of another kind, or out of its range is a ``ModelFileError`` that names it; so
is an array of another type or shape than the others say it must have. What is read has passed every
check that prediction relies on: compiled loops look at no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.exceptions import ModelFileError

Array = npt.NDArray[Any]
FLOATS = ("f4", "f8")
DOUBLE = ("f8",)
INTEGERS = ("i4", "i8")
LABELS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
MOST = 1e300
"""Of a number that is finite."""
LARGEST = 2**62
"""Of an integer."""
Shape = tuple[int | None, ...]


def shown(value: Any) -> str:
    """A value in an error, which may be anything."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


class Record:
    """The fields of a JSON object.

    Parameters
    ----------
    fields : dict
    tensors : dict of arrays
        Of the file.
    path : path
        Of the file, for errors.
    place : str
        Where in the file the object is.
    """

    def __init__(
        self, fields: Any, tensors: dict[str, Array], path: str | Path, place: str = ""
    ) -> None:
        self.tensors, self.path, self.place = tensors, path, place
        if not isinstance(fields, dict):
            self.refuse(f"is {shown(fields)} instead of an object")
        self.fields: dict[str, Any] = fields

    def refuse(self, why: str, name: str = "") -> NoReturn:
        """Raise for a field, or for the object itself."""
        raise ModelFileError(
            f"{self.path} is not a model that can be read: {self._placed(name) or 'it'} {why}."
        )

    def _placed(self, name: str) -> str:
        return f"{self.place}.{name}".strip(".")

    def _get(self, name: str) -> Any:
        if name not in self.fields:
            self.refuse("is missing", name)
        return self.fields[name]

    # Objects and lists --------------------------------------------------------------------------

    def record(self, name: str) -> Record:
        """An object."""
        return Record(self._get(name), self.tensors, self.path, self._placed(name))

    def maybe_record(self, name: str) -> Record | None:
        """An object, or None."""
        return None if self._get(name) is None else self.record(name)

    def items(self, name: str) -> list[Any]:
        """A list."""
        found = self._get(name)
        if not isinstance(found, list):
            self.refuse(f"is {shown(found)} instead of a list", name)
        return found

    def records(self, name: str) -> list[Record]:
        """A list of objects."""
        return [
            Record(each, self.tensors, self.path, f"{self._placed(name)}.{i}")
            for i, each in enumerate(self.items(name))
        ]

    def maybe_records(self, name: str) -> list[Record | None]:
        """A list of objects, some of which may be None."""
        return [
            None if each is None else Record(each, self.tensors, self.path, f"{self._placed(name)}.{i}")
            for i, each in enumerate(self.items(name))
        ]

    # Numbers and text ---------------------------------------------------------------------------

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        """Text, one of ``choices`` where there are any."""
        found = self._get(name)
        if not isinstance(found, str) or (choices is not None and found not in choices):
            listed = "text" if choices is None else f"one of {', '.join(choices)}"
            self.refuse(f"is {shown(found)} instead of {listed}", name)
        return found

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found = self.items(name)
        if not all(isinstance(each, str) for each in found):
            self.refuse("has something else than text", name)
        return found

    def flag(self, name: str) -> bool:
        """True or False."""
        found = self._get(name)
        if not isinstance(found, bool):
            self.refuse(f"is {shown(found)} instead of a truth value", name)
        return found

    def integer(self, name: str, low: int = 0, high: int = LARGEST) -> int:
        """An integer in [low, high]."""
        found = self._get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            self.refuse(f"is {shown(found)} instead of an integer from {low} to {high}", name)
        return found

    def maybe_integer(self, name: str, low: int = 0, high: int = LARGEST) -> int | None:
        """An integer, or None."""
        return None if self._get(name) is None else self.integer(name, low, high)

    def number(self, name: str, low: float = -math.inf, *, finite: bool = True) -> Any:
        """A number of at least ``low``; one that is not ``finite`` may be anything."""
        found = self._get(name)
        if not finite and isinstance(found, str) and found in WORDS:
            found = WORDS[found]
        if isinstance(found, bool) or not isinstance(found, int | float):
            self.refuse(f"is {shown(found)} instead of a number", name)
        whole = isinstance(found, int) and abs(found) > LARGEST  # numpy would make an object of it
        if whole or (finite and abs(found) > MOST) or found < low:
            self.refuse(f"is {shown(found)}, out of its range", name)
        return found

    def maybe_number(self, name: str, low: float = -math.inf, *, finite: bool = True) -> Any:
        """A number, or None."""
        return None if self._get(name) is None else self.number(name, low, finite=finite)

    # Arrays -------------------------------------------------------------------------------------

    def array(
        self,
        name: str,
        shape: Shape,
        types: Sequence[str] = DOUBLE,
        *,
        finite: bool = True,
        low: int | None = None,
        high: int | None = None,
    ) -> Array:
        """An array of this shape, None in which is any length, and of one of these types.

        ``low`` and ``high`` are what its entries may be, ``high`` not included.
        """
        array = self._tensor(name)
        if array.dtype not in [np.dtype(each) for each in types]:
            self.refuse(f"is an array of {array.dtype} instead of {' or '.join(types)}", name)
        fits = array.ndim == len(shape)
        if not fits or any(
            want is not None and want != got for want, got in zip(shape, array.shape, strict=True)
        ):
            wanted = ", ".join("any" if each is None else str(each) for each in shape)
            self.refuse(f"is an array of shape {array.shape} instead of ({wanted})", name)
        if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            self.refuse("has a number that is not finite", name)
        if array.size and (
            (low is not None and array.min() < low) or (high is not None and array.max() >= high)
        ):
            self.refuse(f"has entries from {array.min()} to {array.max()}, out of their range", name)
        return array

    def maybe_array(self, name: str, shape: Shape, types: Sequence[str] = DOUBLE, **limits: Any) -> Any:
        """An array, or None."""
        return None if self._get(name) is None else self.array(name, shape, types, **limits)

    def _tensor(self, name: str) -> Array:
        found = self._get(name)
        if not isinstance(found, dict) or not isinstance(found.get("array"), str):
            self.refuse(f"is {shown(found)} instead of an array", name)
        if found["array"] not in self.tensors:
            self.refuse(f"is the array {shown(found['array'])}, which is missing", name)
        array = self.tensors[found["array"]]
        return array.T if found.get("order") == "F" else array

    def labels(self, name: str, count: int | None = None) -> Array:
        """A list of labels: an array of numbers, truth values, text, or objects."""
        found = self._get(name)
        if isinstance(found, dict) and "texts" in found:
            labels = self._texts(name)
            if labels.ndim != 1 or (count is not None and len(labels) != count):
                self.refuse(f"has the shape {labels.shape}", name)
            return labels
        return self.array(name, (count,), LABELS)

    def _texts(self, name: str) -> Array:
        record = self.record(name)
        kind, shape = record.text("type"), [*record.items("shape")]
        cells = [record.plain(f"texts.{i}", each) for i, each in enumerate(record.items("texts"))]
        if kind != "O":
            if not (kind.startswith("<U") and kind[2:].isdecimal() and len(kind) < 12):
                record.refuse(f"is {shown(kind)}", "type")
            longest = max(map(len, record.texts("texts")), default=0)
            if not longest <= int(kind[2:]) <= max(longest, 1 << 16):
                record.refuse(f"is {kind} for texts of up to {longest} characters", "type")
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
            record.refuse(f"is {shown(shape)}", "shape")
        if math.prod(shape) != len(cells):
            record.refuse(f"is {shown(shape)} for {len(cells)} cells", "shape")
        array = np.empty(len(cells), dtype=kind)
        for i, cell in enumerate(cells):
            array[i] = cell
        return array.reshape(shape)

    def rows(
        self, name: str, n_columns: int | None, n_rows: int | None = None, *, finite: bool = True
    ) -> Any:
        """A matrix of rows, dense or CSR, of floats."""
        found = self._get(name)
        if not (isinstance(found, dict) and "csr" in found):
            return self.array(name, (n_rows, n_columns), FLOATS, finite=finite)
        record = self.record(name)
        shape = record.items("shape")
        if len(shape) != 2 or not all(isinstance(n, int) and 0 <= n <= LARGEST for n in shape):
            record.refuse(f"is {shown(shape)}", "shape")
        m, n = shape
        if (n_rows is not None and m != n_rows) or (n_columns is not None and n != n_columns):
            record.refuse(f"is {shown(shape)} instead of ({n_rows}, {n_columns})", "shape")
        parts = record.record("csr")
        data = parts.array("data", (None,), FLOATS, finite=finite)
        indices = parts.array("indices", (len(data),), INTEGERS, low=0, high=n)
        indptr = parts.array("indptr", (m + 1,), INTEGERS, low=0)
        if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
            parts.refuse("does not count the entries of rows", "indptr")
        made = sp.csr_array if record.text("kind", ("array", "matrix")) == "array" else sp.csr_matrix
        return made((data, indices, indptr), shape=(m, n))

    def maybe_rows(self, name: str, n_columns: int | None) -> Any:
        """A matrix of rows, or None."""
        return None if self._get(name) is None else self.rows(name, n_columns)

    # A user's own values ------------------------------------------------------------------------

    def mapping(self, name: str) -> dict[str, Any]:
        """A dict of names to values of a user's own."""
        record = self.record(name)
        return {key: record.plain(key, value) for key, value in record.fields.items()}

    def mappings(self, name: str) -> list[dict[str, Any]]:
        """A list of such dicts."""
        return [
            {key: record.plain(key, value) for key, value in record.fields.items()}
            for record in self.records(name)
        ]

    def maybe_mappings(self, name: str) -> list[dict[str, Any]] | None:
        """A list of such dicts, or None."""
        return None if self._get(name) is None else self.mappings(name)

    def value(self, name: str) -> Any:
        """A value of a user's own."""
        return self.plain(name, self._get(name))

    def plain(self, name: str, value: Any) -> Any:
        """The value of its JSON; ``name`` is for errors."""
        if isinstance(value, list):
            return [self.plain(f"{name}.{i}", each) for i, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        holder = Record({"value": value}, self.tensors, self.path, self._placed(name))
        inside = holder.record("value")
        kinds = [kind for kind in ("number", "tuple", "entries", "slice", "type") if kind in value]
        if "csr" in value:
            return holder.rows("value", None, finite=False)
        if "array" in value:
            array = holder._tensor("value")
            return array.copy() if array.ndim else array
        if "texts" in value:
            return holder._texts("value")
        if not kinds:
            holder.refuse(f"is {shown(value)}, which is not known", "value")
        if kinds[0] == "number":
            return WORDS[inside.text("number", tuple(WORDS))]
        if kinds[0] == "type":
            code = inside.text("type").lstrip("<|>=")
            if code not in ("b1", *LABELS):
                inside.refuse(f"is {shown(code)}", "type")
            return np.dtype(code).type
        listed = [
            inside.plain(f"{kinds[0]}.{i}", each) for i, each in enumerate(inside.items(kinds[0]))
        ]
        if kinds[0] == "tuple":
            return tuple(listed)
        if kinds[0] == "slice":
            return slice(*listed)
        return dict(listed)
