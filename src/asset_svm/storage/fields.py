"""Fields: one JSON object of a file, field by field, as it is read or written.

A record is said once, by a function that makes an object of its fields:

    def metric(f: Fields, d: int) -> Metric:
        scale = f.array("scale", (None,))
        directions = f.maybe(f.array, "directions", (d, len(scale)))
        return Metric(scale, directions, f.number("rest", 0.0))

    metric(Fields(header, tensors, path), d)       reads it, and checks every field
    Writing.of(write, metric, "metric", found, d)  writes the fields of a metric, in this order

Where it writes, a field is the attribute of its name, or what ``of`` says, of what is written.

A field that is missing, of another kind, or out of its range is a ``ModelFileError`` that names it; so
is an array of another type or shape than the others say it must have. What is read has passed every
check that prediction relies on: compiled loops look at no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from asset_svm.exceptions import ModelFileError
from asset_svm.storage.writing import Writer

Array = npt.NDArray[Any]
FLOATS = ("f4", "f8")
DOUBLE = ("f8",)
INTEGERS = ("i4", "i8")
LABELS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
MOST = 1e300
"""The largest number that counts as finite."""
LARGEST = 2**62
"""The largest integer."""
Shape = tuple[int | None, ...]
Of = str | Callable[[Any], Any] | None
"""The attribute that a field is written from, or a function of what is written; None: its own name."""
T = TypeVar("T")


def shown(value: Any) -> str:
    """The text of a value in an error, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


class Fields:
    """The fields of a JSON object, as they are read.

    Parameters
    ----------
    fields : dict
    tensors : dict of arrays
        All arrays of the file.
    path : path
        The file, for errors.
    place : str
        Where in the file the object is, for errors.
    what : str
        What the file holds, for errors.
    """

    def __init__(
        self,
        fields: Any,
        tensors: dict[str, Array],
        path: str | Path,
        place: str = "",
        what: str = "model",
    ) -> None:
        self.tensors, self.path, self.place, self.what = tensors, path, place, what
        if not isinstance(fields, dict):
            self.refuse(f"is {shown(fields)} instead of an object")
        self.fields: dict[str, Any] = fields

    def refuse(self, why: str, name: str = "") -> NoReturn:
        """Raise for a field, or for the object itself."""
        where = f"{self.place}.{name}".strip(".") or "it"
        raise ModelFileError(f"{self.path} is not a {self.what} that can be read: {where} {why}.")

    def check(self, fits: Any, why: str, name: str = "") -> None:
        """Refuse what is read unless it ``fits``."""
        if not fits:
            self.refuse(why, name)

    def get(self, name: str) -> Any:
        """The JSON of a field."""
        if name not in self.fields:
            self.refuse("is missing", name)
        return self.fields[name]

    def has(self, name: str, of: Of = None) -> bool:
        """Whether there is such a field."""
        return name in self.fields

    def maybe(self, read: Callable[..., T], name: str, *limits: Any, **more: Any) -> T | None:
        """A field that may be null; ``read`` is the method for one that is not."""
        return None if self.get(name) is None else read(name, *limits, **more)

    # Objects and lists --------------------------------------------------------------------------

    def inner(self, fields: Any, name: str) -> Fields:
        """An object that stands where a field is."""
        return Fields(fields, self.tensors, self.path, f"{self.place}.{name}".strip("."), self.what)

    def object(self, name: str) -> Fields:
        """The fields of a field that is an object."""
        return self.inner(self.get(name), name)

    def record(
        self, name: str, make: Callable[..., T], *known: Any, of: Of = None, inline: bool = False
    ) -> T:
        """What a function makes of a field that is an object, and of what is known besides.

        ``inline`` names its arrays as if they stood in this object.
        """
        return make(self.object(name), *known)

    def items(self, name: str, *, of: Of = None, inline: bool = False) -> Fields:
        """The items of a list, as fields by their numbers."""
        found = self.get(name)
        if not isinstance(found, list):
            self.refuse(f"is {shown(found)} instead of a list", name)
        return self.inner({str(i): each for i, each in enumerate(found)}, name)

    def objects(self, name: str) -> list[Fields]:
        """The fields of every object of a list."""
        listed = self.items(name)
        return [listed.object(number) for number in listed.fields]

    def names(self) -> list[str]:
        """The numbers of the items of this list."""
        return list(self.fields)

    def beside(self, known: Sequence[T]) -> list[tuple[str, T]]:
        """The number of every item of this list, and what is known of it."""
        count = len(self.names())
        self.check(count == len(known), f"has {count} entries instead of {len(known)}")
        return list(zip(self.names(), known, strict=True))

    def each(
        self, name: str, kind: str, *limits: Any, of: Of = None, inline: bool = False, **more: Any
    ) -> list[Any]:
        """The items of a list, every one of a kind: "integer", "record", ..."""
        listed = self.items(name, of=of, inline=inline)
        return [getattr(listed, kind)(item, *limits, **more) for item in listed.names()]

    # Numbers and text ---------------------------------------------------------------------------

    def kind(self, kinds: Mapping[str, type[Any]]) -> str:
        """The field "kind", which tells apart what is of these classes."""
        return self.text("kind", tuple(kinds))

    def text(self, name: str, choices: Sequence[str] | None = None, *, of: Of = None) -> Any:
        """Text, one of ``choices`` where there are any."""
        found = self.get(name)
        if not isinstance(found, str) or (choices is not None and found not in choices):
            listed = "text" if choices is None else f"one of {', '.join(choices)}"
            self.refuse(f"is {shown(found)} instead of {listed}", name)
        return found

    def flag(self, name: str, *, of: Of = None) -> bool:
        """True or False."""
        found = self.get(name)
        if not isinstance(found, bool):
            self.refuse(f"is {shown(found)} instead of a truth value", name)
        return found

    def integer(self, name: str, low: int = 0, *, of: Of = None) -> int:
        """An integer of at least ``low``."""
        found = self.get(name)
        if type(found) is not int or not low <= found <= LARGEST:
            self.refuse(f"is {shown(found)} instead of an integer from {low} to {LARGEST}", name)
        return found

    def number(self, name: str, low: float = -math.inf, *, finite: bool = True, of: Of = None) -> Any:
        """A number of at least ``low``; one that is not ``finite`` may be anything."""
        found = self.get(name)
        if not finite and isinstance(found, str) and found in WORDS:
            found = WORDS[found]
        if type(found) not in (int, float):
            self.refuse(f"is {shown(found)} instead of a number", name)
        whole = isinstance(found, int) and abs(found) > LARGEST  # numpy would make an object of it
        if whole or (finite and abs(found) > MOST) or found < low:
            self.refuse(f"is {shown(found)}, out of its range", name)
        return found

    def numbers(
        self, name: str, count: int, low: float = -math.inf, *, finite: bool = True, of: Of = None
    ) -> Any:
        """A number, or an array of one each of ``count`` things."""
        if not isinstance(self.get(name), dict):
            return self.number(name, low, finite=finite)
        found = self.array(name, (count,), finite=finite)
        self.check((found >= low).all() or not finite, "has a number that is out of its range", name)
        return found

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
        of: Of = None,
    ) -> Array:
        """An array of this shape, None in which is any length, and of one of these types.

        ``low`` and ``high`` are what its entries may be, ``high`` not included.
        """
        array = self._tensor(name)
        if array.dtype not in [np.dtype(each) for each in types]:
            self.refuse(f"is an array of {array.dtype} instead of {' or '.join(types)}", name)
        self._hold(array.shape, shape, name)
        if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            self.refuse("has a number that is not finite", name)
        if array.size and (
            (low is not None and array.min() < low) or (high is not None and array.max() >= high)
        ):
            self.refuse(f"has entries from {array.min()} to {array.max()}, out of their range", name)
        return array

    def _hold(self, shape: Sequence[int], wanted: Shape, name: str) -> None:
        if len(shape) != len(wanted) or any(
            want not in (None, length) for want, length in zip(wanted, shape, strict=True)
        ):
            listed = ", ".join("any" if each is None else str(each) for each in wanted)
            self.refuse(f"has the shape {tuple(shape)} instead of ({listed})", name)

    def _tensor(self, name: str) -> Array:
        found = self.get(name)
        if not isinstance(found, dict) or not isinstance(found.get("array"), str):
            self.refuse(f"is {shown(found)} instead of an array", name)
        if found["array"] not in self.tensors:
            self.refuse(f"is the array {shown(found['array'])}, which is missing", name)
        array = self.tensors[found["array"]]
        return array.T if found.get("order") == "F" else array

    def labels(
        self, name: str, count: int | None = None, *, finite: bool = True, of: Of = None
    ) -> Array:
        """A list of labels: an array of numbers, truth values, text, or objects."""
        found = self.get(name)
        if not (isinstance(found, dict) and "texts" in found):
            return self.array(name, (count,), LABELS, finite=finite)
        labels = self.object(name)._texts()
        self._hold(labels.shape, (count,), name)
        return labels

    def targets(self, name: str, count: int) -> Array:
        """Labels of so many rows, in one column or several."""
        found = self.get(name)
        texts = isinstance(found, dict) and "texts" in found
        labels = self.object(name)._texts() if texts else self._tensor(name)
        if labels.ndim != 2:
            return self.labels(name, count)
        self._hold(labels.shape, (count, None), name)
        return labels

    def _texts(self) -> Array:
        """The array of texts or objects that this is."""
        kind, shape = self.text("type"), tuple(self.each("shape", "integer"))
        cells = self.each("texts", "value" if kind == "O" else "text")
        if kind != "O":
            if not (kind.startswith("<U") and kind[2:].isdecimal() and len(kind) < 12):
                self.refuse(f"is {shown(kind)}", "type")
            longest = max(map(len, cells), default=0)
            if not longest <= int(kind[2:]) <= max(longest, 1 << 16):
                self.refuse(f"is {kind} for texts of up to {longest} characters", "type")
        if math.prod(shape) != len(cells):
            self.refuse(f"is {shown(shape)} for {len(cells)} cells", "shape")
        array = np.empty(len(cells), dtype=kind)
        for i, cell in enumerate(cells):
            array[i] = cell
        return array.reshape(shape)

    def rows(
        self,
        name: str,
        n_columns: int | None,
        n_rows: int | None = None,
        *,
        finite: bool = True,
        of: Of = None,
    ) -> Any:
        """A matrix of rows, dense or CSR, of floats."""
        if not self.is_csr(name):
            return self.array(name, (n_rows, n_columns), FLOATS, finite=finite)
        import scipy.sparse as sp  # ``runtime`` reads files without it

        matrix = self.object(name)
        made = sp.csr_array if matrix.text("kind", ("array", "matrix")) == "array" else sp.csr_matrix
        shape, parts = self.csr(name, n_columns, n_rows, finite=finite)
        return made(parts, shape=shape)

    def is_csr(self, name: str) -> bool:
        """Whether a field is a CSR matrix."""
        found = self.get(name)
        return isinstance(found, dict) and "csr" in found

    def csr(
        self, name: str, n_columns: int | None, n_rows: int | None = None, *, finite: bool = True
    ) -> tuple[tuple[int, int], tuple[Array, Array, Array]]:
        """The shape of a CSR matrix, and its data, indices and indptr."""
        matrix = self.object(name)
        shape, parts = tuple(matrix.each("shape", "integer")), matrix.object("csr")
        matrix._hold(shape, (n_rows, n_columns), "shape")
        data = parts.array("data", (None,), FLOATS, finite=finite)
        indices = parts.array("indices", (len(data),), INTEGERS, low=0, high=shape[1])
        indptr = parts.array("indptr", (shape[0] + 1,), INTEGERS, low=0)
        if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
            parts.refuse("does not count the entries of rows", "indptr")
        return shape, (data, indices, indptr)

    # A user's own values ------------------------------------------------------------------------

    def mapping(self, name: str) -> dict[str, Any]:
        """A dict of names to values of a user's own."""
        inside = self.object(name)
        return {each: inside.value(each) for each in inside.fields}

    def value(self, name: str, *, of: Of = None) -> Any:
        """A value of a user's own: plain, or made of arrays, tuples, dicts, slices and types."""
        found = self.get(name)
        if isinstance(found, list):
            return self.each(name, "value")
        if not isinstance(found, dict):
            return found
        inside = self.object(name)
        if "csr" in found:
            return self.rows(name, None, finite=False)
        if "array" in found:
            array = self._tensor(name)
            return array.copy() if array.ndim else array
        if "texts" in found:
            return inside._texts()
        if "number" in found:
            return WORDS[inside.text("number", tuple(WORDS))]
        if "tuple" in found:
            return tuple(inside.each("tuple", "value"))
        if "entries" in found:
            return dict(inside.each("entries", "value"))
        if "slice" in found:
            return slice(*inside.each("slice", "value"))
        if "type" not in found:
            self.refuse(f"is {shown(found)}, which is not known", name)
        code = inside.text("type").lstrip("<|>=")
        inside.check(code in ("b1", *LABELS), f"is {shown(code)}", "type")
        return np.dtype(code).type


def _writes(how: str) -> Callable[..., Any]:
    """A method that writes a field by this method of the writer, and returns its value."""

    def method(self: Writing, name: str, *limits: Any, of: Of = None, **more: Any) -> Any:
        value = self.get(name, of)
        self.fields[name] = getattr(self.write, how)(value, f"{self.name}.{name}")
        return value

    return method


class Writing(Fields):
    """The fields of a JSON object, as they are written: nothing is checked.

    Parameters
    ----------
    write : Writer
    source : object or dict
        What has the fields.
    name : str
        The object's, for the names of its arrays.
    """

    def __init__(self, write: Writer, source: Any, name: str) -> None:
        self.write, self.source, self.name = write, source, name
        self.fields: Any = {}

    @classmethod
    def of(
        cls, write: Writer, make: Callable[..., Any], name: str, source: Any, *known: Any
    ) -> dict[str, Any]:
        """The JSON of what has the fields that ``make`` reads."""
        fields = cls(write, source, name)
        make(fields, *known)
        return fields.fields

    def check(self, fits: Any, why: str, name: str = "") -> None:
        """Nothing: what is written was made by us."""

    def get(self, name: str, of: Of = None) -> Any:
        """The value of a field, on the host where parts of it lie on a card."""
        if callable(of):
            return of(self.source)
        name = of or name
        value = self.source[name] if isinstance(self.source, dict) else getattr(self.source, name)
        return value.on_host() if hasattr(value, "on_host") else value

    def has(self, name: str, of: Any = None) -> bool:
        """Whether there is a value for such a field."""
        held = self.source if isinstance(self.source, dict) else dir(self.source)
        return (of or name) in held

    def maybe(self, read: Callable[..., T], name: str, *limits: Any, **more: Any) -> T | None:
        """Write a field that may be null."""
        if self.get(name, more.get("of")) is not None:
            return read(name, *limits, **more)
        self.fields[name] = None
        return None

    def kind(self, kinds: Mapping[str, type[Any]]) -> str:
        """Write which of these classes the source is of."""
        for kind, cls in kinds.items():
            if isinstance(self.source, cls):
                self.fields["kind"] = kind
                return kind
        raise ValueError(f"A {type(self.source).__name__} cannot be saved.")

    def record(
        self, name: str, make: Callable[..., T], *known: Any, of: Of = None, inline: bool = False
    ) -> T:
        """Write an object."""
        place = self.name if inline else f"{self.name}.{name}"
        inside = Writing(self.write, self.get(name, of), place)
        made = make(inside, *known)
        self.fields[name] = inside.fields
        return made

    def items(self, name: str, *, of: Of = None, inline: bool = False) -> Fields:
        """Write a list, by what is then written of its items."""
        values = {str(i): each for i, each in enumerate(self.get(name, of))}
        inside = Writing(self.write, values, self.name if inline else f"{self.name}.{name}")
        inside.fields = self.fields[name] = _Items()
        return inside

    def names(self) -> list[str]:
        """The numbers of the items."""
        return list(self.source)

    text = flag = integer = number = _writes("number")
    array = labels = targets = _writes("array")

    def numbers(self, name: str, *limits: Any, of: Of = None, **more: Any) -> Any:
        """Write a number, or an array of them."""
        write = self.array if np.ndim(self.get(name, of)) else self.number
        return write(name, of=of)

    rows = _writes("rows")
    mapping = _writes("mapping")
    value = _writes("value")


class _Items(list[Any]):
    """The items of a list, written one after the other."""

    def __setitem__(self, number: Any, value: Any) -> None:
        self.append(value)


@contextmanager
def told(path: str | Path, what: str = "model") -> Iterator[None]:
    """Tell what is wrong with a file in one kind of error, whoever has found it."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RecursionError,
        MemoryError,
    ) as error:
        why = " ".join(repr(error).split())  # an error of a parameter shows its value: anything
        why = why if len(why) <= 300 else f"{why[:300]}..."
        raise ModelFileError(f"{path} is not a {what} that can be read ({why}).") from None
