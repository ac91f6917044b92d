"""JSON and tensors of 0.1.0 to objects.

    numbers, text, None, lists      as in JSON; "$" begins the key of everything else:
    tuples, other dicts             {"$tuple": [...]}, {"$dict": [[key, value], ...]}
    inf, -inf, nan                  {"$float": "inf"}
    arrays                          {"$tensor": name}, "F": true where columns are contiguous
    arrays of text, or of objects   {"$strings": [...], "dtype": "<U3"}
    types of numbers                {"$dtype": "<f4"}
    CSR matrices                    {"$csr": [data, indices, indptr], "shape": [m, n]}
    objects of known classes        {"$class": name, "fields": {...}}
    what was met before             {"$ref": its "id"}: what was one object stays one

Only the classes of ``CLASSES`` are made, from their fields: a file cannot name any other. A field that
an older file lacks takes its default; one that has been retired since is passed over.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.exceptions import ModelFileError
from asset_svm.families.beginning import Beginning
from asset_svm.families.cells import CellDecision, CellModels, Constant, Nested
from asset_svm.families.decision import Decision
from asset_svm.families.rows import Rows
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
from asset_svm.solvers.tallies import Progress
from asset_svm.training.recipe import Recipe
from asset_svm.training.stream import OnlineSession, Recent

Array = npt.NDArray[Any]
CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *LOSSES, Average, Beginning, CellDecision, CellModels, Constant, CountWindow, Decision,
        FinalWindow, FourierFeatures, FractionWindow, HadamardFeatures, Kernel, KernelBasis, Metric,
        Nested, Node, NoWindow, NystroemFeatures, OnlineSession, Partition, Progress, Recent, Recipe,
        Rows, Segment, SolverState,
    )
}  # fmt: skip


RETIRED = {
    ("SolverState", "drift"),
    *(("Metric", name) for name in ("beyond", "steepest", "length", "uneven")),
}
"""Fields of these files that no class has any more."""


class Decoder:
    """Turns JSON into objects."""

    kinds: tuple[str, ...] = ("tensor", "strings", "dtype", "csr", "class")

    def __init__(self, tensors: dict[str, Array], path: Any):
        self.tensors, self.path = tensors, path
        self._met: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        """The object that a JSON value stands for."""
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
        cls = CLASSES.get(name)
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
