"""Model files: damaged ones, and edited ones whose digest was made anew.

Those of a short soak are in the folder ``models``, since a file tells when it was written, and by what.
``PYTHONPATH=tests python -m soak.model_files`` writes them anew: when the format is another, and
whenever one likes.

A damaged file is refused with a ``ModelFileError``, or is the same model to the last bit. A resealed
one is refused, or is some model, which predicts. Refusals are of one line, whatever the file holds.
The runtime reads every file too: it refuses it likewise, or has a model that predicts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, ModelFileError, NonFiniteError, runtime
from asset_svm.storage import container
from soak.attack import Attack, Case
from soak.mutations import mutated

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = Path(__file__).parent / "models"
COMMON = {"n_components": 16, "max_iter": 2, "random_state": 0}


OTHER_ROWS = ("features as input", "Found unknown categories")
"""What scikit-learn says of rows that a model is not for."""
OF_ROWS = ("The decision of row", "Row ", "X has ")
"""How the runtime begins what it says of those, or of decisions that are too large."""
ROWS = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)


def write_models(folder: Path) -> None:
    """Files of kinds that are not among the golden ones."""
    y = np.arange(50) % 3
    models = {
        "cells": AssetClassifier(n_cells=3, random_state=0).fit(ROWS, y),
        "exact": AssetClassifier(n_cells=1).fit(ROWS, y == 1),
        "poly": AssetClassifier("poly", coef0=1.0, **COMMON).fit(ROWS, y),
        "sparse": AssetClassifier(**COMMON).fit(sp.csr_matrix(ROWS), y),
        "linear": AssetRegressor("linear", **COMMON).fit(ROWS, ROWS[:, 0]),
        "hadamard": AssetClassifier(approximation="fourier", fourier="hadamard", **COMMON).fit(ROWS, y),
        "stream": AssetClassifier(n_cells=2, n_components=8, lam=1e-3, random_state=0).partial_fit(
            ROWS, y, [0, 1, 2]
        ),
        "columns": make_pipeline(
            ColumnTransformer(
                [
                    ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2]),
                    ("names", OneHotEncoder(handle_unknown="ignore"), [3]),
                ],
                remainder="passthrough",
            ),
            CalibratedClassifierCV(AssetClassifier(**COMMON), cv=2, method="isotonic"),
        ).fit(ROWS.round(), y),
    }
    for name, model in models.items():
        asset_svm.save(
            model, folder / f"{name}.asset", resumable=name in ("sparse", "stream", "linear")
        )


class ModelFiles(Attack):
    """Files of every kind of model, and rows to predict."""

    count, patience = 100_000, 30.0

    def prepare(self) -> None:
        """The golden files, and some kinds that are not among them."""
        self.X, folder = ROWS, MODELS if self.fixed else Path()
        if not self.fixed:
            write_models(folder)
        paths = [*sorted(GOLDEN.glob("*.asset")), *sorted(folder.glob("*.asset"))]
        self.contents = [path.read_bytes() for path in paths]
        self.parts = [container.read_any(path, "model") for path in paths]
        self.expected = [asset_svm.load(path).predict(self.X) for path in paths]

    def serve(self, path: Path) -> None:
        """Load a file in the runtime, and predict by every method that it has."""
        try:
            model = runtime.load(path)
        except ModelFileError as error:
            refusal(error)
            return
        for name in model.methods:
            try:
                found = getattr(model, name)(self.X)
            except (ValueError, NonFiniteError) as error:
                said = str(error)
                assert said.startswith(OF_ROWS), said[:500]
                return
            each = found if isinstance(found, list) else [found]
            assert all(len(one) == len(self.X) for one in each), name


class Damaged(ModelFiles):
    """Bits, bytes and cuts."""

    name, short = "damaged", 30_000

    def run(self, case: Case) -> str:
        """Load what is left of a file, and predict."""
        which = int(case.rng.integers(len(self.contents)))
        path = Path("damaged.asset")
        path.write_bytes(mutated(self.contents[which], case.rng, self.contents))
        self.serve(path)
        try:
            model = asset_svm.load(path)
        except ModelFileError as error:
            return refusal(error)
        assert np.array_equal(model.predict(self.X), self.expected[which]), "another model"
        return "the same model"


class Resealed(ModelFiles):
    """Any number, text or array of the file is another, and the digest that of the file."""

    name, short = "resealed", 8000

    def run(self, case: Case) -> str:
        """Edit, seal, load and predict."""
        version, header, tensors = self.parts[case.rng.integers(len(self.parts))]
        header, tensors = json.loads(json.dumps(header)), dict(tensors)
        for _ in range(case.rng.integers(1, 4)):
            if case.rng.random() < 0.5 and tensors:
                edit_tensor(tensors, case.rng)
            else:
                edit_header(header, case.rng)
        path = Path("resealed.asset")
        container.write(path, "model", header, tensors, version=version)
        self.serve(path)
        try:
            model = asset_svm.load(path)
        except ModelFileError as error:
            return refusal(error)
        try:
            assert len(model.predict(self.X)) == len(self.X)
        except NonFiniteError:  # a number is too large, as one could be that was trained
            return "a model without finite decisions"
        except ValueError as error:  # a whole one still: of a pipeline's last step, or other categories
            if any(words in str(error) for words in OTHER_ROWS):
                return "a model of other rows"
            raise
        return "a model"


def refusal(error: ModelFileError) -> str:
    """That it is a sentence that one can read."""
    said = str(error)
    assert "\n" not in said and len(said) < 1000, said[:500]
    return "refused"


def edit_tensor(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    """Another shape, type or number; or it is gone."""
    name = sorted(tensors)[rng.integers(len(tensors))]
    array = tensors[name].copy()
    kind = rng.integers(7)
    if kind == 0:
        del tensors[name]
        return
    if kind == 1:
        array = array[..., :-1] if array.ndim else array.reshape(1)
    elif kind == 2:
        array = array.astype(rng.choice(["?", "i1", "i4", "i8", "u8", "f2", "f4", "f8"]))
    elif kind == 3:
        array = array.T if array.ndim > 1 else array[None]
    elif kind == 4:
        array = np.concatenate([array, array]) if array.ndim else array
    elif array.size:
        values = [0, 1, -1, 10**6, 2**31 - 1, -(2**31)]
        if array.dtype.kind == "f":
            values += [np.nan, np.inf, 1e30]
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = np.array(rng.choice(values)).astype(array.dtype)
    tensors[name] = np.ascontiguousarray(array)


def edit_header(header: Any, rng: np.random.Generator) -> None:
    """One place of the JSON: another value, another's value, or nothing."""
    places = list(_places(header))
    parent, key = places[rng.integers(len(places))]
    kind = rng.integers(6)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        other, name = places[rng.integers(len(places))]
        parent[key] = json.loads(json.dumps(other[name]))
    elif kind == 2 and isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    else:
        values = [None, True, 0, -1, 1, 10**9, 10**30, 0.5, "", "text", [], {}, [[1]], {"$class": "x"}]
        parent[key] = values[rng.integers(len(values))]


def _places(value: Any) -> Any:
    """Every (container, key) of the JSON."""
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, inner in pairs:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


if __name__ == "__main__":
    MODELS.mkdir(exist_ok=True)
    write_models(MODELS)
