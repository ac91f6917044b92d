"""The runtime: what a file predicts without numba, SciPy and scikit-learn is what the library says."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, DataError, ModelFileError, runtime
from asset_svm.export import describing
from asset_svm.kernels import NAMES, Kernel
from asset_svm.kernels.profiles import PROFILES

pytest.importorskip("safetensors")

from deployable import (
    GOLDEN,
    X,
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
