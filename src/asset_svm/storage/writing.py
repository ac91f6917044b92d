"""Writer: numbers, text and arrays of a model to JSON and tensors.

What stands where is said by records (``fields``). In the JSON

    numbers, text, null, lists      are themselves; "inf", "-inf" and "nan" stand for such numbers
    arrays                          {"array": NAME}; with "order": "F" NAME is its transpose
    arrays of text, or of objects   {"texts": [...], "type": "<U3" or "O", "shape": [...]}
    CSR matrices                    {"csr": {"data", "indices", "indptr"}, "shape": [m, n], "kind": ...}

and where a user's own values stand (parameters, provenance, categories) objects besides:

    inf, -inf, nan                  {"number": "inf"}
    tuples, dicts                   {"tuple": [...]}, {"entries": [[key, value], ...]}
    slices, types                   {"slice": [...]}, {"type": "<f8"}

NAME is that of a tensor. An array that is there twice is written once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import is_sparse

Array = npt.NDArray[Any]
TYPES = tuple(np.dtype(code) for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))
TYPES += tuple(np.dtype(code) for code in ("f2", "f4", "f8"))
"""The types that tensors have."""


class Writer:
    """Turns values into JSON, and collects arrays in ``tensors``.

    Parameters
    ----------
    resumable : bool, default=False
        Whether what learning goes on from is written too.
    """

    def __init__(self, *, resumable: bool = False) -> None:
        self.resumable = resumable
        self.tensors: dict[str, Array] = {}
        self._written: dict[int, tuple[Any, dict[str, Any]]] = {}  # the object keeps its id its own

    def number(self, value: Any, name: str) -> Any:
        """The JSON of a number, which may be infinite or no number, of text, or of a truth value."""
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, float) and not math.isfinite(value):
            return repr(value)
        return value

    def array(self, value: Any, name: str) -> dict[str, Any] | None:
        """The JSON of an array; null where there is none."""
        if value is None:
            return None
        if id(value) not in self._written:
            self._written[id(value)] = (value, self._array(value, name))
        return self._written[id(value)][1]

    def _array(self, value: Array, name: str) -> dict[str, Any]:
        if value.dtype.kind in "UO":
            cells = [self.value(cell, name) for cell in value.ravel().tolist()]
            kind = "O" if value.dtype.kind == "O" else value.dtype.newbyteorder("<").str
            return {"texts": cells, "type": kind, "shape": list(value.shape)}
        native = value.dtype.newbyteorder("=")
        if native not in TYPES:
            raise ValueError(f"{name} is an array of {value.dtype}, which cannot be saved.")
        value = value.astype(native, copy=False)
        columns = bool(value.flags.f_contiguous and not value.flags.c_contiguous)
        self.tensors[name] = np.ascontiguousarray(value.T if columns else value)
        return {"array": name, "order": "F"} if columns else {"array": name}

    def rows(self, value: Any, name: str) -> dict[str, Any] | None:
        """The JSON of a matrix, dense or CSR; null where there is none."""
        if not is_sparse(value):
            return self.array(value, name)
        if id(value) not in self._written:
            parts = {
                part: self.array(getattr(value, part), f"{name}.{part}")
                for part in ("data", "indices", "indptr")
            }
            kind = "array" if type(value).__name__ == "csr_array" else "matrix"
            written = {"csr": parts, "shape": list(value.shape), "kind": kind}
            self._written[id(value)] = (value, written)
        return self._written[id(value)][1]

    def mapping(self, value: dict[str, Any], name: str) -> dict[str, Any]:
        """The JSON of a dict of names to values of a user's own."""
        return {str(key): self.value(each, f"{name}.{key}") for key, each in value.items()}

    def value(self, value: Any, name: str) -> Any:
        """The JSON of a value of a user's own."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": repr(value)}
        if isinstance(value, list):
            return [self.value(each, f"{name}.{i}") for i, each in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": self.value(list(value), name)}
        if isinstance(value, dict):
            pairs = enumerate(value.items())
            return {
                "entries": [[self.value(k, name), self.value(v, f"{name}.{i}")] for i, (k, v) in pairs]
            }
        if isinstance(value, slice):
            return {"slice": self.value([value.start, value.stop, value.step], name)}
        if isinstance(value, np.ndarray):
            return self.array(value, name)
        if is_sparse(value) and value.format == "csr":
            return self.rows(value, name)
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"type": np.dtype(value).str}
        what = f"{name.rpartition('.')[2]}={value!r}"
        if callable(value):
            raise ValueError(
                f"{what} is a function, and a model file holds no code; use a plain value instead."
            )
        raise ValueError(f"{what} of type {type(value).__name__} cannot be saved; use a plain value.")
