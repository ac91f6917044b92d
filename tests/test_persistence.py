"""Model files: bitwise round trips, golden files, and a clear word on every bad one."""

import copy
import json
import os
import pickle
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import asset_svm
from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetRegressor,
    FourierMap,
    ModelFileError,
    NystroemMap,
)
from asset_svm.storage import atomic, container

pytest.importorskip("safetensors")
GOLDEN = Path(__file__).parent / "golden"
X, Y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
COMMON = dict(n_components=40, max_iter=2, random_state=0)
NAMES = np.array(["ham", "spam", "eggs"])[Y]


FITTED_MAP = FourierMap(n_components=30, random_state=1).fit(X)
MODELS = {
    "plain": lambda: AssetClassifier(**COMMON).fit(X, Y),
    "binary float32": lambda: AssetClassifier(**COMMON).fit(X.astype(np.float32), Y == 1),
    "names": lambda: AssetClassifier(class_weight={"ham": 2.0}, **COMMON).fit(X, NAMES),
    "objects": lambda: AssetClassifier(**COMMON).fit(X, NAMES.astype(object)),
    "float labels": lambda: AssetClassifier(**COMMON).fit(X, Y + 0.0),
    "sparse": lambda: AssetClassifier(**COMMON).fit(sp.csr_matrix(X), Y),
    "sparse array": lambda: AssetClassifier(**COMMON).fit(sp.csr_array(X), Y),
    "fourier": lambda: AssetClassifier(approximation="fourier", **COMMON).fit(X, Y),
    "strong": lambda: AssetClassifier(step="strong", average=None, **COMMON).fit(X, Y),
    "poly": lambda: AssetClassifier(kernel="poly", coef0=1.0, step="robust", **COMMON).fit(X, Y),
    "exponential": lambda: AssetClassifier(kernel="exponential", **COMMON).fit(X, Y),
    "matern32": lambda: AssetClassifier(kernel="matern32", **COMMON).fit(X, Y),
    "matern52": lambda: AssetClassifier(kernel="matern52", n_cells=3, random_state=0).fit(X, Y),
    "laplacian": lambda: AssetClassifier(kernel="laplacian", average=7, **COMMON).fit(X, Y),
    "compact": lambda: AssetClassifier(rank=10, **COMMON).fit(X, Y).compact(),
    "a map": lambda: AssetClassifier(approximation=NystroemMap(n_components=30), **COMMON).fit(X, Y),
    "a fitted map": lambda: AssetClassifier(approximation=FITTED_MAP, **COMMON).fit(X, Y),
    "a frozen map": lambda: AssetClassifier(approximation=FrozenEstimator(FITTED_MAP), **COMMON).fit(
        X, Y
    ),
    "cells": lambda: AssetClassifier(n_cells=4, n_partitions=2, random_state=0).fit(X, Y),
    "cells online": lambda: AssetClassifier(
        n_cells=3, n_components=20, lam=1e-3, random_state=0
    ).partial_fit(X, Y, [0, 1, 2]),
    "online": lambda: AssetClassifier(n_components=40, lam=1e-3).partial_fit(X, Y, [0, 1, 2]),
}


def round_trip(model, folder, **options):
    path = Path(folder) / "model.asset"
    asset_svm.save(model, path, **options)
    return asset_svm.load(path)


WAYS = [(name, resumable) for name in MODELS for resumable in (False, True)]
WAYS.remove(("compact", True))  # it cannot go on learning


@pytest.mark.parametrize(("name", "resumable"), WAYS)
def test_predictions_after_a_round_trip_are_bitwise_the_same(tmp_path, name, resumable):
    model = MODELS[name]()
    loaded = round_trip(model, tmp_path, resumable=resumable)
    assert type(loaded) is type(model)
    for rows in (X, X.astype(np.float32), sp.csr_matrix(X)):
        assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))
        predicted = loaded.predict(rows)
        assert np.array_equal(predicted, model.predict(rows))
        assert predicted.dtype == model.predict(rows).dtype
    assert loaded.objective_ == model.objective_ and loaded.history_ == model.history_
    plain = {k: v for k, v in model.get_params(deep=False).items() if k != "approximation"}
    assert {k: v for k, v in loaded.get_params(deep=False).items() if k != "approximation"} == plain


@pytest.mark.parametrize(
    "name",
    ["plain", "binary float32", "sparse", "fourier", "strong", "cells", "cells online", "online"],
)
def test_learning_goes_on_bitwise_after_a_round_trip(tmp_path, name):
    model = MODELS[name]()
    loaded = round_trip(model, tmp_path, resumable=True)
    y = (Y == 1) if name == "binary float32" else Y
    rows = sp.csr_matrix(X) if name == "sparse" else X
    for estimator in (model, loaded):
        for part in (slice(0, 150), slice(150, 400)):
            estimator.partial_fit(rows[part], y[part])
    assert loaded.objective_ == model.objective_
    assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))


def test_a_regressor_with_names_of_features(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(6)])
    model = AssetRegressor(epsilon=0.05, **COMMON).fit(frame, X[:, 0] * 3 + 10)
    loaded = round_trip(model, tmp_path)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"c0": "other"}))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()])
def test_a_scaler_is_saved_with_its_model(tmp_path, scaler):
    model = make_pipeline(scaler, AssetClassifier(**COMMON)).fit(X * 1e3 + 5, Y)
    loaded = round_trip(model, tmp_path)
    rows = X * 1e3 + 5
    assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))


def test_what_cannot_be_saved_is_told(tmp_path):
    path = tmp_path / "m.asset"
    model = AssetClassifier(kernel=lambda A, B: np.asarray(A @ B.T), **COMMON).fit(X, Y)
    with pytest.raises(ValueError, match="callable kernel cannot be saved"):
        asset_svm.save(model, path)
    mapped = NystroemMap(kernel=lambda A, B: np.asarray(A @ B.T), n_components=20)
    with pytest.raises(ValueError, match="callable kernel cannot be saved"):
        asset_svm.save(AssetClassifier(approximation=mapped, max_iter=1).fit(X, Y), path)
    with pytest.raises(ValueError, match="A PCA cannot be saved"):
        asset_svm.save(make_pipeline(PCA(3), AssetClassifier(**COMMON)).fit(X, Y), path)
    with pytest.raises(ValueError, match="A StandardScaler predicts nothing"):
        asset_svm.save(make_pipeline(MinMaxScaler(), StandardScaler()).fit(X), path)
    with pytest.raises(ValueError, match=r"AssetClassifierCV cannot be saved.*best_estimator_"):
        asset_svm.save(AssetClassifierCV(Cs=[0.1, 1.0], **COMMON).fit(X, Y), path)
    with pytest.raises(ValueError, match="not fitted"):
        asset_svm.save(AssetClassifier(), path)
    options = {**COMMON, "random_state": np.random.RandomState(0)}
    with pytest.raises(ValueError, match="random_state=RandomState"):
        asset_svm.save(AssetClassifier(**options).fit(X, Y), path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def wide():
    """A model of 20 columns: its 300 landmarks and weights are 50 kB, and a factor of them 720 kB."""
    rows, y = make_classification(400, 20, random_state=0)
    return AssetClassifier(n_components=300, max_iter=1, random_state=0).fit(rows, y), rows, y


def test_a_file_holds_what_prediction_needs_and_no_more(tmp_path, wide):
    """(kernel, landmarks, weights), with as much again for names and the rest."""
    model, rows, _ = wide
    loaded = round_trip(model, tmp_path)
    assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))
    assert os.path.getsize(tmp_path / "model.asset") < 2 * (300 * 20 + 300) * 8


def attributes(model):
    return {name for name in vars(model) if name.endswith("_")}


@pytest.mark.parametrize("name", ["plain", "fourier", "cells", "cells online", "online", "a map"])
def test_a_file_for_prediction_has_every_attribute_that_needs_no_map(tmp_path, name):
    model = MODELS[name]()
    loaded = round_trip(model, tmp_path)
    missing = attributes(model) - attributes(loaded)
    assert missing == set() if "cells" in name else {"feature_map_"} <= missing <= {
        "feature_map_", "map_coef_"
    }  # fmt: skip
    for each in attributes(loaded) - {"cells_", "components_"}:
        assert np.array_equal(getattr(loaded, each), getattr(model, each)), each
    for each in missing:
        with pytest.raises(AttributeError, match=f"{each} is not there.*resumable=True"):
            getattr(loaded, each)
    assert attributes(round_trip(model, tmp_path, resumable=True)) == attributes(model)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
@pytest.mark.parametrize("name", ["plain", "cells", "cells online", "online"])
def test_what_a_file_for_prediction_cannot_do_is_told(tmp_path, name):
    loaded = round_trip(MODELS[name](), tmp_path)
    with pytest.raises(ValueError, match=r"cannot go on learning: .*saved for prediction; .*resumable"):
        loaded.partial_fit(X, Y)
    with pytest.raises(ValueError, match="resumable=True needs a model that can go on learning"):
        asset_svm.save(loaded, tmp_path / "again.asset", resumable=True)
    if "cells" not in name:
        for method in (lambda: loaded.certify(X, Y), loaded.compact):
            with pytest.raises(ValueError, match=r"needs the feature map .*saved for prediction; "):
                method()
        with pytest.raises(ValueError, match=r"warm_start=True goes on .*saved for prediction; "):
            loaded.set_params(warm_start=True).fit(X, Y)
    loaded.set_params(warm_start=False).fit(X, Y)  # begins anew


def test_a_model_goes_on_from_its_file_by_warm_start_and_can_be_certified_and_compacted(tmp_path):
    model = AssetClassifier(warm_start=True, **COMMON).fit(X, Y)
    loaded = round_trip(model, tmp_path, resumable=True)
    assert loaded.certify(X, Y) == model.certify(X, Y)
    both = [each.compact().decision_function(X) for each in (loaded, model)]
    assert np.array_equal(*both)
    both = [each.fit(X, Y).decision_function(X) for each in (loaded, model)]
    assert np.array_equal(*both) and loaded.t_ == model.t_


def test_a_resume_section_of_a_newer_version_leaves_a_model_that_predicts(tmp_path, wide):
    model, rows, y = wide
    path = tmp_path / "m.asset"
    asset_svm.save(model, path, resumable=True)
    header, tensors = container.read(path, "model")
    header["model"]["resume"] = {"version": 2, "of": "another kind"}
    container.write(path, "model", header, tensors)
    loaded = asset_svm.load(path)
    assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))
    with pytest.raises(ValueError, match="of a newer asset-svm; install it"):
        loaded.partial_fit(rows, y)


def test_a_resumable_file_holds_what_learning_needs(tmp_path, wide):
    model, rows, y = wide
    asset_svm.save(model, tmp_path / "whole.asset", resumable=True)
    loaded = asset_svm.load(tmp_path / "whole.asset")
    model = copy.deepcopy(model)
    decisions = [each.partial_fit(rows, y).decision_function(rows) for each in (loaded, model)]
    assert np.array_equal(*decisions)


def table():
    """Three columns of numbers, one of which has a hole, and one of names."""
    rows = X[:, :4].astype(object)
    rows[5, 1] = np.nan
    rows[:, 3] = NAMES
    return rows


def of_columns(*more):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(
        ColumnTransformer([("numbers", numbers, [0, 1, 2]), ("names", OneHotEncoder(), [3]), *more]),
        AssetClassifier(**COMMON),
    )


@pytest.mark.parametrize(
    "make",
    [
        of_columns,
        lambda: CalibratedClassifierCV(of_columns(), ensemble=False, cv=3),
        lambda: CalibratedClassifierCV(of_columns(), ensemble=True, cv=3),
        lambda: make_pipeline(
            SimpleImputer(strategy="most_frequent"), OrdinalEncoder(), AssetClassifier(**COMMON)
        ),
    ],
    ids=["columns", "calibrated", "calibrated on folds", "three steps"],
)
def test_transformers_of_the_common_kinds_are_saved_without_pickle(tmp_path, monkeypatch, make):
    rows = table()
    model = make().fit(rows, Y)
    asset_svm.save(model, tmp_path / "m.asset")
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    loaded = asset_svm.load(tmp_path / "m.asset")
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    assert np.array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows))


@pytest.mark.parametrize(
    ("transformers", "options"),
    [
        (
            [("names", OneHotEncoder(drop="if_binary", sparse_output=False), ["c", "d"])],
            {"remainder": SimpleImputer()},
        ),
        ([("text", "drop", ["c", "d"]), ("b", "passthrough", ["b"])], {"remainder": SimpleImputer()}),
        ([("some", SimpleImputer(), slice("a", "b")), ("none", StandardScaler(), [])], {}),
        ([("some", RobustScaler(), [False, True, False, False])], {"transformer_weights": {"some": 2}}),
        (
            [
                ("a", make_pipeline(SimpleImputer(), RobustScaler()), make_column_selector("a|b")),
                ("d", OrdinalEncoder(encoded_missing_value=-2), [-1]),
            ],
            {"verbose_feature_names_out": False},
        ),
    ],
    ids=["remainder", "passthrough", "slice", "mask", "selector"],
)
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_columns_named_in_any_way_are_those_of_the_saved_model(tmp_path, transformers, options, output):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2].copy(), columns=["a", "b"])
    frame["c"], frame["d"] = NAMES, np.array(["u", None], dtype=object)[Y % 2]
    frame.loc[3, "a"] = np.nan
    by_columns = ColumnTransformer(transformers, sparse_threshold=0.0, **options)
    if output == "pandas":
        by_columns.set_output(transform="pandas")
    model = make_pipeline(by_columns, AssetClassifier(**COMMON)).fit(frame, Y)
    loaded = round_trip(model, tmp_path)
    shuffled = frame[["d", "b", "c", "a"]]
    for rows in (frame, shuffled):
        assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))
    names = (each[:-1].get_feature_names_out().tolist() for each in (loaded, model))
    assert next(names) == next(names)
    again = clone(loaded).fit(frame, Y)
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))


def test_a_transformer_of_no_common_kind_is_refused_by_its_name(tmp_path):
    for other, name in (
        (FunctionTransformer(np.negative), "FunctionTransformer of <ufunc 'negative'>"),
        (PCA(1), "A PCA"),
        (SimpleImputer(add_indicator=True), "SimpleImputer with add_indicator=True"),
        (OneHotEncoder(max_categories=3, handle_unknown="ignore"), "max_categories"),
    ):
        rows = table()
        rows[:, :3] = np.nan_to_num(rows[:, :3].astype(float)).round()
        model = of_columns(("other", other, [0])).fit(rows, Y)
        with pytest.raises(ValueError, match=f"{name}.* cannot be saved"):
            asset_svm.save(model, tmp_path / "m.asset")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.asset"
    asset_svm.save(AssetClassifier(**COMMON).fit(X, Y), path)
    return path.read_bytes()


FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
@FUZZ
def test_a_changed_bit_anywhere_is_found(tmp_path, content, place, bit):
    place %= len(content)
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    path = tmp_path / "damaged.asset"
    path.write_bytes(damaged)
    try:
        asset_svm.load(path)
    except ModelFileError:
        return
    # Some bits say nothing: the header's padding, the order of its keys.
    length = struct.unpack("<Q", content[:8])[0]
    assert place < 8 + length
    before, after = content[8 : 8 + length], bytes(damaged[8 : 8 + length])
    assert json.loads(before) == json.loads(after)


@given(st.binary(max_size=300))
@FUZZ
def test_any_bytes_are_refused(tmp_path, garbage):
    path = tmp_path / "garbage.asset"
    path.write_bytes(garbage)
    with pytest.raises(ModelFileError, match=r"not a whole asset-svm file|not one of asset-svm"):
        asset_svm.load(path)


def test_a_version_that_never_was_is_refused(tmp_path, content):
    path = tmp_path / "zero.asset"
    path.write_bytes(content.replace(b'"version":"2"', b'"version":"0"'))
    with pytest.raises(ModelFileError, match="its version is '0'"):
        asset_svm.load(path)


def test_a_cut_a_foreign_and_a_newer_file_are_told(tmp_path, content, monkeypatch):
    import safetensors.numpy

    path = tmp_path / "m.asset"
    for cut in (0, 7, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ModelFileError, match="cut, damaged"):
            asset_svm.load(path)
    safetensors.numpy.save_file({"w": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="safetensors file, but not one of asset-svm"):
        asset_svm.load(path)
    with monkeypatch.context() as patched:
        patched.setitem(container.VERSIONS, "model", container.VERSIONS["model"] + 1)
        asset_svm.save(AssetClassifier(**COMMON).fit(X, Y), path)
    with pytest.raises(ModelFileError, match="install a newer asset-svm"):
        asset_svm.load(path)
    with pytest.raises(FileNotFoundError, match=r"nothing.asset does not exist"):
        asset_svm.load(tmp_path / "nothing.asset")
    with pytest.raises(ModelFileError, match="is a folder"):
        asset_svm.load(tmp_path)


@pytest.fixture(scope="module")
def sparse_parts(tmp_path_factory):
    """The header and the arrays of a model whose landmarks are sparse."""
    path = tmp_path_factory.mktemp("sparse") / "model.asset"
    asset_svm.save(AssetClassifier(**COMMON).fit(sp.csr_matrix(X), Y), path, resumable=True)
    return container.read(path, "model")


def set_entry(name, value):
    def edit(header, tensors):
        tensors[name].flat[1] = value

    return edit


def shorten(name):
    def edit(header, tensors):
        tensors[name] = np.ascontiguousarray(tensors[name][..., :-1])

    return edit


def retype(name, dtype):
    def edit(header, tensors):
        tensors[name] = tensors[name].astype(dtype)

    return edit


def put(value, *place):
    def edit(header, tensors):
        for key in place[:-1]:
            header = header[key]
        header[place[-1]] = value

    return edit


EDITS = {
    "indptr": set_entry("model.landmarks.indptr", 10**6),
    "index": set_entry("model.landmarks.indices", 10**6),
    "negative index": set_entry("model.landmarks.indices", -1),
    "an entry that is no number": set_entry("model.landmarks.data", np.nan),
    "short weights": shorten("model.weights"),
    "infinite weight": set_entry("model.weights", np.inf),
    "short projection": shorten("model.resume.map.projection"),
    "short state": shorten("model.resume.session.state.direction"),
    "short classes": shorten("model.classes"),
    "classes out of order": set_entry("model.classes", 10),
    "weights of truth values": retype("model.weights", bool),
    "entries of int8": retype("model.landmarks.data", np.int8),
    "text for a matrix": put("text", "model", "model", "weights"),
    "text for classes": put("text", "model", "task", "classes"),
    "other width": put(10**9, "model", "n_columns"),
    "another kernel": put("x" * 10_000, "model", "model", "source", "kernel", "name"),
    "a number beyond every type": put(10**400, "model", "model", "source", "kernel", "gamma"),
    "a list of lists": put([[1]], "model", "model", "weights"),
    "no array of that name": put({"array": "none"}, "model", "model", "weights"),
    "another family": put("forest", "model", "model", "family"),
    "another kind": put("Popen", "model", "kind"),
    "an unknown parameter": put(1, "model", "parameters", "shell"),
    "a bad parameter": put(-1, "model", "parameters", "C"),
    "no model": put(None, "model"),
    "a kernel of another form": put(["rbf"], "model", "resume", "map", "kernel"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_file_with_a_digest_of_its_own_is_refused_at_load(tmp_path, sparse_parts, edit):
    header, tensors = json.loads(json.dumps(sparse_parts[0])), dict(sparse_parts[1])
    tensors = {name: array.copy() for name, array in tensors.items()}
    edit(header, tensors)
    container.write(tmp_path / "m.asset", "model", header, tensors)
    with pytest.raises(ModelFileError, match="not a model that can be read") as caught:
        asset_svm.load(tmp_path / "m.asset")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "children",
    [[0, 1, 2, -1], [0, 1, 2, 4], [0, 1, 2, 2], [0, 1, 2, -2], [0, 1, 2], [0, 1, 2, True]],
    ids=["a way round", "no such cell", "a cell twice", "no such node", "too few", "a truth value"],
)
def test_a_tree_that_is_none_is_refused(tmp_path, children):
    path = tmp_path / "m.asset"
    model = AssetClassifier(n_cells=4, random_state=0).fit(X, Y)
    asset_svm.save(model, path)
    header, tensors = container.read(path, "model")
    (node,) = header["model"]["model"]["partitions"][0]["tree"]
    assert node["children"] == [0, 1, 2, 3]
    node["children"] = children
    container.write(path, "model", header, tensors)
    with pytest.raises(ModelFileError, match=r"tree|children"):
        asset_svm.load(path)


def with_safetensors_header(content, edit):
    """The file with the header of safetensors itself edited."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    edit(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


@pytest.mark.parametrize(("kind", "size"), [("F8_E4M3", 1), ("BF16", 2)])
def test_a_type_that_numpy_has_not_is_refused(tmp_path, content, kind, size):
    def edit(header):
        entry = header["model.weights"]
        begin, end = entry["data_offsets"]
        entry["dtype"], entry["shape"] = kind, [(end - begin) // size]

    path = tmp_path / "m.asset"
    path.write_bytes(with_safetensors_header(content, edit))
    with pytest.raises(ModelFileError):
        asset_svm.load(path)


def test_a_version_of_thousands_of_digits_is_refused(tmp_path, content):
    def edit(header):
        header["__metadata__"]["version"] = "9" * 5000

    path = tmp_path / "m.asset"
    path.write_bytes(with_safetensors_header(content, edit))
    with pytest.raises(ModelFileError):
        asset_svm.load(path)


def test_a_file_without_provenance_is_refused(tmp_path, sparse_parts):
    header, tensors = dict(sparse_parts[0]), sparse_parts[1]
    del header["provenance"]
    container.write(tmp_path / "m.asset", "model", header, tensors)
    with pytest.raises(ModelFileError):
        asset_svm.persistence.read_provenance(tmp_path / "m.asset")


@pytest.mark.parametrize("part", ["kind", "header"])
def test_what_a_damaged_file_says_it_is_is_not_told_in_full(tmp_path, part):
    path = tmp_path / "m.asset"
    asset_svm.save(AssetClassifier(**COMMON).fit(X, Y), path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    if part == "kind":
        head["__metadata__"]["kind"] = "x" * 5000
    else:  # where the table of tensors should be
        head = "y" * 5000
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ModelFileError) as caught:
        asset_svm.load(path)
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


def test_an_old_file_cannot_name_a_class_of_its_choice(tmp_path):
    fitted = {"coef_": {"$class": "Popen", "fields": {"args": "true"}, "id": 0}}
    header = {"model": "AssetClassifier", "params": {}, "fitted": fitted, "scaling": None}
    container.write(tmp_path / "m.asset", "model", {**header, "provenance": {}}, {}, version=1)
    with pytest.raises(ModelFileError, match="holds Popen, which this asset-svm does not know"):
        asset_svm.load(tmp_path / "m.asset")


@pytest.mark.parametrize("part", ["_decision.weights", "feature_map_.projection", "coef_", "classes_"])
def test_an_edited_old_file_is_refused_at_load(tmp_path, part):
    """Its parts are checked as those of today's files are."""
    _, header, tensors = container.read_any(GOLDEN / "0.1.0-sparse-online.asset", "model")
    tensors[part] = np.ascontiguousarray(tensors[part][..., :-1])
    container.write(tmp_path / "m.asset", "model", header, tensors, version=1)
    with pytest.raises(ModelFileError):
        asset_svm.load(tmp_path / "m.asset")


@pytest.mark.parametrize(
    "name", ["0.1.0-sparse-online", "format2-sparse-online", "format2-cells-online"]
)
def test_a_file_of_an_earlier_version_goes_on_learning(name):
    model = asset_svm.load(GOLDEN / f"{name}.asset")
    rows = np.load(GOLDEN / f"{name}.npz")["X"]
    rows = sp.csr_matrix(rows) if "sparse" in name else rows
    assert model.partial_fit(rows, np.arange(rows.shape[0]) % 3).n_iter_ == 2


def test_a_full_disk_keeps_the_old_file(tmp_path, content, monkeypatch):
    path = tmp_path / "m.asset"
    path.write_bytes(content)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        asset_svm.save(AssetClassifier(**COMMON).fit(X, Y), path)
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["m.asset"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs os.mkfifo")
def test_a_link_stays_and_a_pipe_is_written_to(tmp_path):
    model = AssetClassifier(n_components=10, max_iter=1, random_state=0).fit(X, Y)
    there, link, pipe = (tmp_path / name for name in ("there.asset", "link.asset", "pipe"))
    asset_svm.save(model, there)
    link.symlink_to(there)
    before = there.read_bytes()
    asset_svm.save(model.set_params(C=2.0), link)
    assert link.is_symlink() and there.read_bytes() != before
    assert asset_svm.load(there).C == 2.0
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        asset_svm.save(model, pipe, provenance={})
        (tmp_path / "copy.asset").write_bytes(read.result(timeout=60))
    assert pipe.is_fifo() and asset_svm.load(tmp_path / "copy.asset").C == 2.0


def test_another_process_predicts_bitwise_the_same(tmp_path):
    model = AssetClassifier(**COMMON).fit(X, Y)
    asset_svm.save(model, tmp_path / "m.asset")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np, asset_svm; folder = sys.argv[1]\n"
        "model = asset_svm.load(folder + '/m.asset')\n"
        "np.save(folder + '/f.npy', model.decision_function(np.load(folder + '/X.npy')))\n"
        "assert 'pickle' not in vars(sys.modules['asset_svm.persistence'])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert np.array_equal(np.load(tmp_path / "f.npy"), model.decision_function(X))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.asset")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_load_and_predict_as_then(path):
    then = np.load(path.with_suffix(".npz"))
    model = asset_svm.load(path)
    predicted = model.predict(then["X"])
    if predicted.dtype.kind == "f":
        assert np.allclose(predicted, then["predicted"], rtol=1e-4, atol=1e-4)
    else:
        assert np.array_equal(predicted, then["predicted"])
    # The machines' matrix products round differently.
    for name, method in (("decisions", "decision_function"), ("probabilities", "predict_proba")):
        if name in then:
            assert np.allclose(getattr(model, method)(then["X"]), then[name], atol=1e-3)


def test_there_are_golden_files():
    for version in ("0.1.0", f"format{container.VERSIONS['model']}"):
        assert len(list(GOLDEN.glob(f"{version}-*.asset"))) >= 4
