"""Objects to JSON and tensors, and back.

    numbers, text, None, lists      as in JSON; "$" begins the key of everything else:
    tuples, other dicts             {"$tuple": [...]}, {"$dict": [[key, value], ...]}
    inf, -inf, nan                  {"$float": "inf"}
    arrays                          {"$tensor": name}, "F": true where columns are contiguous
    arrays of text, or of objects   {"$strings": [...], "dtype": "<U3"}
    types of numbers                {"$dtype": "<f4"}
    CSR matrices                    {"$csr": [data, indices, indptr], "shape": [m, n]}
    objects of known classes        {"$class": name, "fields": {...}}
    what was met before             {"$ref": its "id"}: what was one object stays one

Only the classes of ``classes`` are made, from their fields: a file cannot name any other. A field that
an older file lacks takes its default; one that has been retired since is passed over.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.data.fingerprint import Fingerprint
from asset_svm.data.scan import Summary, TargetSummary
from asset_svm.data.source import Block
from asset_svm.exceptions import ModelFileError
from asset_svm.feasible import FeasibleSet
from asset_svm.features import FourierFeatures, HadamardFeatures, Metric, NystroemFeatures
from asset_svm.features.cells import Node, Partition
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.kernels import Kernel
from asset_svm.losses import LOSSES
from asset_svm.solvers import (
    Average,
    CountWindow,
    FinalWindow,
    FractionWindow,
    NoWindow,
    SolverState,
)
from asset_svm.solvers.average import Segment
from asset_svm.solvers.tallies import Progress, Slopes
from asset_svm.training.plan import StepSizes
from asset_svm.training.recipe import Recipe
from asset_svm.training.stream import OnlineSession, Recent

Array = npt.NDArray[Any]
CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *LOSSES, Average, Block, CountWindow, FeasibleSet, FinalWindow, Fingerprint,
        FourierFeatures, Slopes, StepSizes,
        FractionWindow, HadamardFeatures, Kernel, KernelBasis, Metric, Node, NoWindow,
        NystroemFeatures, OnlineSession, Partition, Progress, Recent, Recipe, Segment, SolverState,
        Summary, TargetSummary,
    )
}  # fmt: skip


RETIRED = {
    ("SolverState", "drift"),
    *(("Metric", name) for name in ("beyond", "steepest", "length", "uneven")),
}
"""Fields that older files have."""


class Encoder:
    """Turns objects into JSON, and collects their arrays in ``tensors``."""

    classes = CLASSES
    prefix = ""
    """Of the names of tensors."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def __call__(self, value: Any, name: str = "root") -> Any:
        """The JSON of a value; ``name`` is for the names of its tensors."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, list):
            return [self(each, f"{name}.{i}") for i, each in enumerate(value)]
        if isinstance(value, tuple):
            return {"$tuple": self(list(value), name)}
        if isinstance(value, dict):
            return self._dict(value, name)
        if id(value) in self._met:
            return {"$ref": self._met[id(value)]}
        self._met[id(value)] = len(self._kept)
        self._kept.append(value)
        return {**self._object(value, name), "id": self._met[id(value)]}

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        if hasattr(value, "on_host"):  # parts of it lie on a card
            value = value.on_host()
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if sp.issparse(value) and value.format == "csr":
            parts = [self(part, f"{name}.csr{i}") for i, part in enumerate(_parts(value))]
            return {"$csr": parts, "shape": list(value.shape), "array": isinstance(value, sp.sparray)}
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        if self.classes.get(type(value).__name__) is type(value):
            fields = {
                field.name: self(getattr(value, field.name), f"{name}.{field.name}")
                for field in dataclasses.fields(value)
                if not field.name.startswith("_")
            }
            return {"$class": type(value).__name__, "fields": fields}
        if callable(value):
            raise ValueError(
                f"{name}={value!r} is a function, and a model file holds numbers only: a callable "
                "kernel cannot be saved."
            )
        raise ValueError(
            f"{name}={value!r} of type {type(value).__name__} cannot be saved; use a plain value."
        )

    def _dict(self, value: dict[Any, Any], name: str) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self(each, f"{name}.{key}") for key, each in value.items()}
        pairs = [[self(k, name), self(v, f"{name}.{i}")] for i, (k, v) in enumerate(value.items())]
        return {"$dict": pairs}

    def _array(self, value: Array, name: str) -> dict[str, Any]:
        if value.dtype.kind in "UO":
            cells = [self(cell, name) for cell in value.ravel().tolist()]
            return {"$strings": cells, "dtype": value.dtype.str, "shape": list(value.shape)}
        if value.dtype.kind not in "biuf":
            raise ValueError(f"{name} is an array of {value.dtype}, which cannot be saved.")
        columns = bool(value.flags.f_contiguous and not value.flags.c_contiguous)
        name = self.prefix + name
        self.tensors[name] = np.ascontiguousarray(value.T if columns else value)
        return {"$tensor": name, "F": True} if columns else {"$tensor": name}


class Decoder:
    """Turns the JSON of ``Encoder`` back into objects."""

    classes = CLASSES
    kinds: tuple[str, ...] = ("tensor", "strings", "dtype", "csr", "class")

    def __init__(self, tensors: dict[str, Array], path: Any):
        self.tensors, self.path = tensors, path
        self._met: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        """The object of a JSON value."""
        if isinstance(value, list):
            return [self(each) for each in value]
        if not isinstance(value, dict):
            return value
        special = [key for key in value if key.startswith("$")]
        if not special:
            return {key: self(each) for key, each in value.items()}
        kind = special[0][1:]
        if kind in self.kinds:
            made = self._met[value["id"]] = getattr(self, f"_{kind}")(value)
            return made
        if kind == "ref":
            return self._met[value["$ref"]]
        if kind == "tuple":
            return tuple(self(value["$tuple"]))
        if kind == "dict":
            return {self(key): self(each) for key, each in value["$dict"]}
        if kind == "float":
            return float(value["$float"])
        raise ModelFileError(f"{self.path} holds {special[0]!r}, which this asset-svm does not know.")

    def _tensor(self, value: dict[str, Any]) -> Array:
        array = self.tensors[value["$tensor"]]
        return array.T if value.get("F") else array

    def _strings(self, value: dict[str, Any]) -> Array:
        return np.array(self(value["$strings"]), dtype=value["dtype"]).reshape(value["shape"])

    def _dtype(self, value: dict[str, Any]) -> np.dtype[Any]:
        return np.dtype(value["$dtype"])

    def _csr(self, value: dict[str, Any]) -> Any:
        cls = sp.csr_array if value["array"] else sp.csr_matrix
        data, indices, indptr = self(value["$csr"])
        return cls((data, indices, indptr), shape=tuple(value["shape"]))

    def _class(self, value: dict[str, Any]) -> Any:
        name, fields = value["$class"], {k: self(v) for k, v in value["fields"].items()}
        fields = {k: v for k, v in fields.items() if (name, k) not in RETIRED}
        cls = self.classes.get(name)
        known = {} if cls is None else {field.name: field for field in dataclasses.fields(cls)}
        odd = [field for field in fields if field not in known]
        if cls is None or odd:
            what = name if cls is None else f"{name}.{odd[0]}"
            raise ModelFileError(f"{self.path} holds {what}, which this asset-svm does not know.")
        made = cls(**{field: each for field, each in fields.items() if known[field].init})
        for field, each in fields.items():
            if not known[field].init:
                setattr(made, field, each)
        return made


def _parts(X: Any) -> tuple[Array, Array, Array]:
    return X.data, X.indices, X.indptr
