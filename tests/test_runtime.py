"""The runtime: what a file predicts without numba, SciPy and scikit-learn is what the library says."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

import asset_svm
from asset_svm import (
    AssetClassifier,
    AssetRegressor,
    DataError,
    ModelFileError,
    TableEncoder,
    runtime,
)
from asset_svm.export import describing
from asset_svm.kernels import NAMES, Kernel
from asset_svm.kernels.profiles import PROFILES
from asset_svm.storage import container

pytest.importorskip("safetensors")

from deployable import (
    GOLDEN,
    X,
    Y,
    file_of,
    table,
    trained,
    unseen_table,
)


@pytest.mark.parametrize("name", NAMES)
def test_profiles_are_those_of_the_kernels(name):
    kernel, profile = Kernel(name, 0.7, 3, 0.4), PROFILES[name]
    u = np.linspace(0.0, 9.0, 50)
    found = profile.values(profile.factor(0.7) * u, 3, 0.4, np)
    assert np.allclose(found, kernel.profile(u), rtol=1e-14, atol=0.0)
    assert profile.argument is kernel.argument and profile.factor(0.7) == kernel.formula.factor
    assert profile.slack == getattr(kernel.formula, "slack", 0.0)


def test_neither_numba_nor_scipy_nor_scikit_learn_is_imported():
    program = f"""
import sys
import numpy as np
from asset_svm import runtime
for path in {[str(path) for path in GOLDEN]!r}:
    known = np.load(path.removesuffix("asset") + "npz", allow_pickle=True)
    runtime.load(path).predict(known["X"])
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {{"numba", "llvmlite", "scipy",
      "sklearn", "pandas", "joblib", "threadpoolctl", "pyarrow", "typer", "rich"}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_takes_little_beside_numpy():
    program = """
import time, numpy
best = time.process_time()
import asset_svm.runtime
print(time.process_time() - best)
"""
    times = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.15


# Input ----------------------------------------------------------------------------------------------


def test_a_table_may_come_as_anything_with_names():
    polars = pytest.importorskip("polars")
    served, frame = runtime.load(file_of("table pieces")), unseen_table()
    wanted = served.predict(frame)
    columns = {name: frame[name].tolist() for name in frame}
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    shuffled = frame[list(reversed(frame.columns))].assign(more=1.0)
    arrays = {name: frame[name].to_numpy() for name in frame}
    for given in (columns, rows, shuffled, arrays, polars.from_pandas(frame)):
        assert np.array_equal(served.predict(given), wanted)
    one = served.predict(rows[0])
    assert one.shape == (1,) and one[0] == pytest.approx(wanted[0], abs=1e-12)


def test_folds_may_have_an_encoder_each(tmp_path):
    frame = table()
    y = frame["size"] > frame["size"].median()
    model = CalibratedClassifierCV(AssetClassifier(n_components=20, max_iter=1), cv=2).fit(frame, y)
    path = tmp_path / "folds.asset"
    asset_svm.save(model, path)
    served, rows = runtime.load(path), unseen_table().iloc[:20]
    assert np.allclose(served.predict_proba(rows), model.predict_proba(rows), atol=1e-4)
    with pytest.raises(ValueError, match="one table for each"):
        describing.check_one_table(served.description)


def test_times_may_be_text_of_iso_8601():
    served, frame = runtime.load(file_of("table pieces")), unseen_table()
    wanted = served.predict(frame)
    columns = {name: frame[name].tolist() for name in frame}
    columns["when"] = [None if each != each else f"{each.isoformat()}Z" for each in frame["when"]]
    assert np.array_equal(served.predict(columns), wanted)
    columns["when"][2] = "31.5.2024"
    with pytest.raises(DataError, match=r"'when' has the text '31.5.2024', which is no date"):
        served.predict(columns)


def test_wrong_tables_are_told():
    served, frame = runtime.load(file_of("table pieces")), table(2, 5)
    with pytest.raises(DataError, match="'age' is missing"):
        served.predict(frame.drop(columns="age"))
    with pytest.raises(DataError, match="'age' has the text 'old'"):
        served.predict(frame.assign(age="old"))
    with pytest.raises(ValueError, match="'age'"):
        served.predict(frame.assign(age=np.inf))
    with pytest.raises(DataError, match="Row 1 of X"):
        served.predict([{"age": 1.0}, {"agee": 1.0}])
    with pytest.raises(DataError, match="same length"):
        served.predict({name: [1.0] * (1 + (name == "age")) for name in frame})
    with pytest.raises(ValueError, match="2D"):
        served.predict([1.0, 2.0])
    with pytest.raises(ValueError, match="0 sample"):
        served.predict(frame[:0])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (X[0], "1 dimension instead of 2"),
        (X[:, :5], "5 columns, and the model takes 6"),
        (X[:0], "no rows"),
        ([["a", 1, 1, 1, 1, 1]], "the text 'a' in row 0, column 0"),
        ([[1, 1, 1, None, 1, 1]], "nan in row 0, column 3"),
        ([[1, 1, 1, float("inf"), 1, 1]], "inf in row 0, column 3"),
        ([[1, 2], [3]], "inhomogeneous"),
        ([[{}, 1, 1, 1, 1, 1]], "no number"),
        (np.zeros((2, 6), dtype=complex), "complex"),
        ({"a": [1.0]}, "without names"),
        ([{"a": 1.0}], "without names"),
        (5.0, "0 dimensions"),
        (np.ma.masked_array(X[:2], X[:2] > 0.0), "masked values"),
    ],
)
def test_wrong_rows_are_told(rows, told):
    with pytest.raises(ValueError, match=told):
        runtime.load(file_of("binary")).predict(rows)


def test_columns_are_found_by_their_names():
    model, frame = trained("pipeline")
    served = runtime.load(file_of("pipeline"))
    assert served.feature_names_in_.tolist() == list("abcdef")
    wanted = model.predict(frame)
    assert np.array_equal(served.predict(frame[list("fedcba")]), wanted)
    assert np.array_equal(served.predict({name: frame[name].tolist() for name in frame}), wanted)
    assert np.array_equal(served.predict(frame.to_numpy()), wanted)
    with pytest.raises(DataError, match="'c' is missing"):
        served.predict(frame.drop(columns="c"))


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        StandardScaler(with_mean=False, with_std=False),
        RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False),
        OneHotEncoder(drop=[np.nan, 1.0], handle_unknown="ignore"),
        OneHotEncoder(drop=[2.0, np.nan], handle_unknown="ignore"),
        OneHotEncoder(drop="first", handle_unknown="ignore"),
    ],
    ids=str,
)
def test_transformers_do_what_they_were_told(step, tmp_path):
    rows = np.round(np.abs(X[:, :2])).clip(0.0, 3.0) + 7.0 * isinstance(step, RobustScaler)
    if isinstance(step, OneHotEncoder):
        rows[::5, 0], rows[::7, 1] = np.nan, np.nan
    model = make_pipeline(step, AssetRegressor(n_components=8, random_state=0))
    model.fit(rows, rows[:, 0] == 1.0)
    asset_svm.save(model, tmp_path / "model.asset")
    served = runtime.load(tmp_path / "model.asset")
    assert np.allclose(served.predict(rows), model.predict(rows), rtol=0.0, atol=1e-9)


def test_columns_of_an_encoder_without_names_are_x0_x1(tmp_path):
    rows = X[:, :2]
    model = AssetClassifier(encoder=TableEncoder(), n_components=20, max_iter=1).fit(rows, Y)
    asset_svm.save(model, tmp_path / "model.asset")
    served = runtime.load(tmp_path / "model.asset")
    one, other = rows[0].tolist()
    wanted = served.decision_function(rows[:1])
    for given in ({"x0": one, "x1": other}, {"x1": other, "x0": one}, [{"x1": other, "x0": one}]):
        assert np.array_equal(served.decision_function(given), wanted)
    for given in ({"age": one, "size": other}, [{"x0": one}], {"x0": one, "x1": other, "x2": 1.0}):
        with pytest.raises(ValueError, match=r"without names of columns.* call them x0, x1"):
            served.decision_function(given)


def test_none_is_a_gap_in_dicts_where_steps_were_fitted_to_nan_alone(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(["x", "y", "z"], dtype=object)[Y]})
    frame.loc[::5, "b"], frame.loc[::7, "a"] = np.nan, np.nan
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    parts = ColumnTransformer([("text", filled, ["b"]), ("number", SimpleImputer(), ["a"])])
    model = make_pipeline(parts, AssetClassifier(n_components=20, max_iter=1)).fit(frame, Y)
    asset_svm.save(model, tmp_path / "model.asset")
    served = runtime.load(tmp_path / "model.asset")
    gaps = frame[:12].astype(object)
    rows = gaps.where(gaps.notna(), None).to_dict("records")
    wanted = model.decision_function(frame[:12])
    assert np.allclose(served.decision_function(rows), wanted, atol=1e-6)
    assert np.allclose(served.decision_function(rows[5]), wanted[5], atol=1e-6)
    missing = gaps.astype({"b": "string"})  # pandas.NA
    assert np.allclose(served.decision_function(missing), wanted, atol=1e-6)
    with pytest.raises(ValueError, match="category in column 0"):  # as scikit-learn says
        served.decision_function(gaps.where(gaps.notna(), None))


def test_an_encoder_behind_another_step_is_told_when_a_file_is_loaded(tmp_path):
    own = AssetClassifier(encoder=TableEncoder(), n_components=20, max_iter=1)
    model = make_pipeline(StandardScaler(), own).fit(X, Y)
    asset_svm.save(model, tmp_path / "model.asset")
    with pytest.raises(ModelFileError, match="TableEncoder behind another step is not served"):
        runtime.load(tmp_path / "model.asset")


def test_what_is_wrong_in_a_frame_is_told_by_the_name_of_the_column(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    asset_svm.save(AssetClassifier(n_components=20, max_iter=1).fit(frame, Y), tmp_path / "m.asset")
    served = runtime.load(tmp_path / "m.asset")
    for given in (frame.assign(d=np.nan), {**dict(frame), "d": [None] * len(frame)}):
        with pytest.raises(ValueError, match="nan in row 0, column 'd', counted"):
            served.predict(given)
    columns = {name: frame[name][:2].tolist() for name in frame}
    with pytest.raises(ValueError, match="column 'd', counted from 0, which is no number"):
        served.predict(columns | {"d": [1.0, {}]})
    with pytest.raises(ValueError, match="1 masked value"):
        served.predict(columns | {"d": np.ma.masked_array([1.0, 2.0], [False, True])})


def test_columns_of_numbers_are_taken_at_once(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    asset_svm.save(AssetClassifier(n_components=2, max_iter=1).fit(frame, Y), tmp_path / "m.asset")
    served, many = runtime.load(tmp_path / "m.asset"), pd.concat([frame] * 500)
    columns = {name: many[name].to_numpy() for name in many}
    ways = {"array": many.to_numpy(), "frame": many, "dict": columns}
    times = {}
    for name, rows in ways.items():
        begun = time.process_time()
        served.predict(rows)
        times[name] = time.process_time() - begun
    # Cell by cell they would take 20 times as long.
    assert times["frame"] < 5.0 * times["array"] + 0.1 and times["dict"] < 5.0 * times["array"] + 0.1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("binary", "regressor"),
        ("binary", "outlier detector"),
        ("huber", "classifier"),
        ("huber", "quantile regressor"),
        ("quantiles", "regressor"),
        ("quantiles", "classifier"),
        ("outliers", "classifier"),
        ("outliers", "regressor"),
        ("several numbers", "classifier"),
        ("labels", "regressor"),
    ],
)
def test_a_task_of_another_kind_of_model_is_told(name, kind, tmp_path):
    _, header, tensors = container.read_any(file_of(name), "model")
    header["model"]["kind"] = kind
    container.write(tmp_path / "model.asset", "model", header, tensors)
    with pytest.raises(ModelFileError, match=f"task is not that of a {kind}"):
        runtime.load(tmp_path / "model.asset")
    with pytest.raises(ModelFileError):
        asset_svm.load(tmp_path / "model.asset")


def test_huge_values_are_decided_or_told():
    served = runtime.load(file_of("rbf float64"))
    assert np.isfinite(served.decision_function(np.full((1, 6), 1e200))).all()  # far from everything
    with pytest.raises(ArithmeticError, match="decision of row 0 is not finite"):
        runtime.load(file_of("poly float64")).predict(np.full((1, 6), 1e200))


def test_bad_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.asset does not exist"):
        runtime.load(tmp_path / "none.asset")
    whole = file_of("binary").read_bytes()
    for count in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        cut = tmp_path / "cut.asset"
        cut.write_bytes(whole[:count])
        with pytest.raises(ModelFileError, match=r"cut\.asset"):
            runtime.load(cut)
    changed = bytearray(whole)
    changed[-9] ^= 1
    (tmp_path / "changed.asset").write_bytes(changed)
    with pytest.raises(ModelFileError, match="digest"):
        runtime.load(tmp_path / "changed.asset")


def test_rows_do_not_change_what_others_are_given():
    served = runtime.load(file_of("many cells"))
    rows = trained("many cells")[1]
    whole = served.predict(rows)
    assert np.allclose([served.predict(row[None])[0] for row in rows[:20]], whole[:20], atol=1e-12)
