"""What is deployed agrees with the library: the runtime, onnxruntime and C, for every model."""

import ctypes
import shutil

import numpy as np
import pytest

from asset_svm import runtime

pytest.importorskip("safetensors")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from asset_svm.export import to_c, to_onnx
from asset_svm.export.describing import table_columns
from deployable import GOLDEN, MODELS, arrays, differ, file_of, tolerance, trained
from deployed import call, compiled, rows_for, run, session_of, together

METHODS = (
    "predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples",
    "predict_interval",
)  # fmt: skip
OUTPUTS = {
    "label": "predict",
    "predictions": "predict",
    "decisions": "decision_function",
    "probabilities": "predict_proba",
    "interval": "predict_interval",
}
OF_TEXT = ("text pipeline", "text with gaps", "text in folds")
ALIKE = {
    *(f"{name} float32" for name in ("matern52", "poly", "sigmoid", "linear", "laplacian")),
    *(f"{name} float64" for name in ("matern32", "exponential", "rbf")),
    "fourier orthogonal", "fourier qmc", "fourier laplacian", "calibrated folds of two",
    "cells laplacian", "squared hinge", "huber", "table intervals", "sparse cells",
}  # fmt: skip
"""Models that differ little from another one here: told by `make test-slow`."""
FEW = 60
"""Rows that C decides."""


def limit(name, rows):
    """What decisions may differ by: what is exported is in float64, and told to 1e-5."""
    return max(tolerance(name, rows), 1e-5)


def agrees_in_python(name):
    model, rows = trained(name)
    served = runtime.load(file_of(name))
    known = getattr(model, "n_features_in_", None)
    assert served.n_features_in_ == (rows.shape[1] if known is None else known)
    for method in METHODS:
        there = hasattr(model, method) and (method != "predict_interval" or "intervals" in name)
        assert hasattr(served, method) == there, method
        if there:
            wanted = getattr(model, method)(rows)
            assert differ(getattr(served, method)(rows), wanted) < tolerance(name, rows), method
    for one, other in zip(
        arrays(getattr(served, "classes_", [])), arrays(getattr(model, "classes_", [])), strict=True
    ):
        assert np.array_equal(one, other)


def agrees_in_onnx(name):
    model, rows = trained(name)
    found = run(session_of(to_onnx(model)), rows)
    there = {each.partition("_")[0] for each in found}
    for output in sorted(there):
        wanted = getattr(model, OUTPUTS[output])(rows)
        value = together(found, output)
        if output == "label":
            assert np.array_equal(value, wanted) and value.shape == wanted.shape
        else:
            assert differ(value, wanted) < limit(name, rows), output
    assert ("decisions" in there) == hasattr(model, "decision_function")
    assert ("probabilities" in there) == hasattr(model, "predict_proba")


def agrees_in_c(name, folder):
    model, rows = trained(name)
    library = compiled(to_c(file_of(name)), folder)
    encode = runtime.load(file_of(name)).description.encoder
    rows = rows[:FEW]
    count = rows.shape[0]
    given = rows_for(rows, None if encode is None else table_columns(encode.encoding))
    if not hasattr(model, "classes_") and not hasattr(model, "score_samples"):
        wanted = model.predict(rows).reshape(count, -1)
        found, codes = call(library.model_predict, given, wanted.shape[1])
        assert differ(found, wanted) < limit(name, rows) and not any(codes)
        if "intervals" in name:
            found, _ = call(library.model_interval, given, 2)
            assert differ(found, model.predict_interval(rows)) < limit(name, rows)
        return
    predicted = model.predict(rows).reshape(count, -1)
    found, codes = call(library.model_predict, given, predicted.shape[1], ctypes.c_int)
    assert not any(codes)
    heads = runtime.load(file_of(name)).description.heads
    for k, head in enumerate(heads):
        assert np.array_equal(head.classes[found[:, k]].astype(predicted.dtype), predicted[:, k])
    for function, method in (("decisions", "decision_function"), ("probabilities", "predict_proba")):
        assert hasattr(library, f"model_{function}") == hasattr(model, method)
        if name != "labels" and hasattr(model, method):
            wanted = np.column_stack([each for each in arrays(getattr(model, method)(rows))])
            wanted = wanted.reshape(count, -1)
            found, _ = call(getattr(library, f"model_{function}"), given, wanted.shape[1])
            assert differ(found, wanted) < limit(name, rows), function


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if each in ALIKE else each for each in MODELS]
)
def test_what_is_deployed_agrees_with_the_library(name, tmp_path):
    agrees_in_python(name)
    if name not in OF_TEXT:
        agrees_in_onnx(name)
        if shutil.which("gcc"):
            agrees_in_c(name, tmp_path)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files_decide_what_they_did(path, tmp_path):
    known = np.load(path.with_suffix(".npz"), allow_pickle=True)
    served, found = runtime.load(path), run(session_of(to_onnx(path)), known["X"])
    library = compiled(to_c(path), tmp_path) if shutil.which("gcc") else None
    rows = rows_for(known["X"][:FEW], None)
    for key, method in (("decisions", "decision_function"), ("probabilities", "predict_proba")):
        if key in known:
            assert differ(getattr(served, method)(known["X"]), known[key]) < 1e-5
            assert differ(found[key], known[key]) < 1e-5
            if library is not None:
                wanted = known[key][:FEW].reshape(FEW, -1)
                assert differ(call(library[f"model_{key}"], rows, wanted.shape[1])[0], wanted) < 1e-5
    if "label" in found:
        assert np.array_equal(found["label"], known["predicted"])
        assert np.array_equal(served.predict(known["X"]), known["predicted"])
    else:
        assert differ(found["predictions"], known["predicted"]) < 1e-5
        assert differ(served.predict(known["X"]), known["predicted"]) < 1e-5
        if library is not None:
            wanted = known["predicted"][:FEW].reshape(FEW, 1)
            assert differ(call(library.model_predict, rows, 1)[0], wanted) < 1e-5
