"""Small models of every kind that a file may hold, and rows for each: what is deployed must agree.

``MODELS`` has a function for each name, which trains in a fraction of a second and returns the model
and rows for it to predict.
"""

from __future__ import annotations

import functools
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
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
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    TableEncoder,
)
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.inside import adopt, fitted_of
from asset_svm.families.blend import FittedBlend
from asset_svm.kernels import NAMES

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.asset"))
X, Y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
SINGLE = X.astype(np.float32)
WORDS = np.array(["ham", "spam", "eggs"])[Y]
Z = np.sin(2 * X[:, 0]) + X[:, 1] + 5.0
COMMON = dict(n_components=40, max_iter=2, random_state=0)
KINDS = ("iid", "orthogonal", "qmc", "hadamard")


def sparse_rows():
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((300, 40)) < 0.2, rng.normal(size=(300, 40)), 0.0)
    dense[:, ::7] = 0.0
    return sp.csr_matrix(dense), (dense[:, 1] + dense[:, 2] > 0).astype(int)


def table(seed=0, rows=300):
    """A table with everything: numbers, gaps, few and many levels, truth values, dates."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Bonn", "Ürümqi"], rows, p=[0.5, 0.3, 0.19, 0.01]).astype(object)
    city[rng.random(rows) < 0.1] = None
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, rows),
            "size": rng.exponential(1.0, rows) * 1000,
            "city": city,
            "shop": [f"shop {k}" for k in rng.integers(0, 60, rows)],
            "member": rng.random(rows) < 0.5,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9e7, rows), "s"),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(rows) < 0.05, "when"] = pd.NaT
    return frame


def table_target(frame):
    age = frame["age"].fillna(40.0)
    return np.sin(age / 9) + 0.8 * (frame["city"] == "Rome") + 0.3 * frame["member"] + 3.0


def unseen_table():
    """Rows that have levels and gaps which training rows did not have."""
    frame = table(1, 60)
    frame.loc[3, "city"], frame.loc[4, "shop"] = "Atlantis", "a shop nobody knows"
    frame.loc[5, "shop"], frame.loc[6, "size"] = None, np.nan
    return frame


def on_table(make, target=lambda y: y, **options):
    def train():
        frame = table()
        return make(**options).fit(frame, target(table_target(frame))), unseen_table()

    return train


def of_kernel(name, dtype):
    def train():
        options = dict(kernel=name, gamma=0.1 if name in ("poly", "sigmoid") else "scale", coef0=0.5)
        options |= dict(step="robust") if name in ("poly", "sigmoid", "linear") else {}
        return AssetClassifier(**options, **COMMON).fit(X.astype(dtype), Y), X.astype(dtype)

    return train


def of_fourier(kind, kernel="rbf"):
    options = dict(approximation="fourier", fourier=kind, kernel=kernel, **COMMON)
    return lambda: (AssetClassifier(**options).fit(X, Y), X)


def blend(dtype=np.float64):
    rows = X.astype(dtype)
    models = [
        AssetRegressor(**COMMON).fit(rows, Z),
        AssetRegressor(kernel="matern32", relevance="columns", **COMMON).fit(rows, Z),
        AssetRegressor(n_cells=3, random_state=0).fit(rows, Z),
    ]
    mean = FittedBlend(tuple(map(fitted_of, models)), np.array([0.5, 0.3, 0.2]))
    adopt(models[0], mean)
    return models[0], rows


def pipeline():
    frame = pd.DataFrame(X.round(1), columns=list("abcdef"))
    frame.loc[::9, "a"] = np.nan
    frame["f"] = frame["f"].round()
    parts = ColumnTransformer(
        [
            ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
            ("squeezed", make_pipeline(MinMaxScaler(clip=True), RobustScaler()), ["c"]),
            ("encoded", OneHotEncoder(handle_unknown="ignore", drop="if_binary"), ["f"]),
            ("ranked", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["e"]),
        ],
        remainder=MaxAbsScaler(),
        transformer_weights={"scaled": 2.0},
    )
    return make_pipeline(parts, AssetClassifier(**COMMON)).fit(frame, WORDS), frame


def text_pipeline():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(["x", "y", "z"])[Y]})
    parts = ColumnTransformer(
        [("encoded", OneHotEncoder(), ["b"]), ("scaled", StandardScaler(), ["a"])]
    )
    return make_pipeline(parts, AssetClassifier(**COMMON)).fit(frame, WORDS), frame


def text_with_gaps():
    """Text in which both None and NaN are missing, and what scikit-learn makes of either."""
    one = np.array(["x", "y", "z"], dtype=object)[Y]
    one[::5] = None
    other = one.copy()
    other[1::5] = np.nan
    frame = pd.DataFrame({"a": X[:, 0]}, dtype=object)  # or None would become NaN
    frame["b"], frame["c"] = pd.Series(one, dtype=object), pd.Series(other, dtype=object)
    filled = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder())
    parts = ColumnTransformer(
        [("filled", filled, ["b", "c"]), ("apart", OneHotEncoder(), ["c"])], remainder="passthrough"
    )
    return make_pipeline(parts, AssetClassifier(**COMMON)).fit(frame, WORDS), frame


def folds_of_text():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(["x", "y", "z"])[Y]})
    parts = ColumnTransformer([("encoded", OneHotEncoder(), ["b"])], remainder="passthrough")
    model = make_pipeline(parts, AssetClassifier(**COMMON))
    return CalibratedClassifierCV(model, cv=2).fit(frame, WORDS), frame


def folds_behind_an_encoder():
    frame = table()
    folds = CalibratedClassifierCV(AssetClassifier(**COMMON), cv=2)
    return make_pipeline(TableEncoder(), folds).fit(frame, table_target(frame) > 3.3), unseen_table()


def times_behind_a_scaler():
    """Seconds since 1970, which float32 counts in steps of two minutes."""
    seconds = 1.7e9 + np.random.default_rng(0).uniform(0, 86_400, len(X))
    rows = np.column_stack([seconds, X[:, 0]])
    model = AssetClassifier(approximation="fourier", n_components=200, gamma=30.0, C=10, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(rows, seconds % 7200 > 3600), rows


def large_categories():
    """Numbers of which float32 holds every second one."""
    rows = 20_000_001.0 + np.arange(len(X))[:, None] % 6
    steps = OneHotEncoder(dtype=np.float32), AssetClassifier(n_components=6, random_state=0)
    return make_pipeline(*steps).fit(rows, rows[:, 0] % 2), rows


def encoder_in_a_pipeline():
    frame = table()
    model = make_pipeline(TableEncoder(), StandardScaler(), AssetRegressor(**COMMON))
    return model.fit(frame, table_target(frame)), unseen_table()


def many_cells():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1500, 3))
    return AssetRegressor(n_cells=50, random_state=0).fit(rows, np.sin(rows[:, 0])), rows[:400]


def calibrated(**options):
    model = AssetClassifier(**options, **COMMON).fit(X, WORDS)
    return CalibratedClassifier(model).fit(X, WORDS), X


def missing_class():
    """Cells some of which know two of three classes, or one."""
    rows = np.concatenate([X, X + 30.0, X - 30.0])
    y = np.concatenate([Y, np.minimum(Y, 1), np.zeros(len(Y), dtype=int)])
    online = AssetClassifier(n_cells=3, n_components=20, lam=1e-3, random_state=0)
    return online.partial_fit(rows, y, [0, 1, 2]), rows


MODELS = {
    **{f"{name} {np.dtype(t)}": of_kernel(name, t) for name in NAMES for t in (np.float32, np.float64)},
    **{f"fourier {kind}": of_fourier(kind) for kind in KINDS},
    "fourier laplacian": of_fourier("iid", "laplacian"),
    "fourier exponential": of_fourier("orthogonal", "exponential"),
    "binary": lambda: (AssetClassifier(**COMMON).fit(X, Y == 1), X),
    "far off": lambda: (AssetClassifier(**COMMON).fit(X * 0.01 + 1e3, Y), X * 0.01 + 1e3),
    "sparse": lambda: (AssetClassifier(**COMMON).fit(*sparse_rows()), sparse_rows()[0]),
    "sparse laplacian": lambda: (
        AssetClassifier(kernel="laplacian", **COMMON).fit(*sparse_rows()),
        sparse_rows()[0],
    ),
    "sparse cells": lambda: (
        AssetClassifier(n_cells=3, random_state=0).fit(*sparse_rows()),
        sparse_rows()[0],
    ),
    "cells": lambda: (
        AssetClassifier(n_cells=4, n_partitions=3, random_state=0).fit(SINGLE, Y),
        SINGLE,
    ),
    "cells linear": lambda: (AssetClassifier(n_cells=3, kernel="linear").fit(X, Y), X),
    "cells laplacian": lambda: (AssetClassifier(n_cells=3, kernel="laplacian").fit(X, Y), X),
    "many cells": many_cells,
    "cells of maps": lambda: (
        AssetClassifier(n_cells=3, n_components=20, lam=1e-3, random_state=0).partial_fit(
            X, Y, [0, 1, 2]
        ),
        X,
    ),
    "cells of Fourier maps": lambda: (
        AssetRegressor(
            n_cells=3, n_components=20, lam=1e-3, random_state=0, approximation="fourier"
        ).partial_fit(X, Z),
        X,
    ),
    "cells that lack classes": missing_class,
    "relevant columns": lambda: (
        AssetClassifier(relevance="columns", kernel="exponential", **COMMON).fit(X, Y),
        X,
    ),
    "relevant directions": lambda: (
        AssetRegressor(relevance="directions", n_cells=3, random_state=0).fit(X, Z),
        X,
    ),
    "standard units": lambda: (AssetRegressor(target_transform="standard", **COMMON).fit(X, Z), X),
    "logarithms": lambda: (AssetRegressor(target_transform="log", **COMMON).fit(X, np.exp(Z)), X),
    "huber": lambda: (AssetRegressor(loss="huber", **COMMON).fit(X, Z), X),
    "intervals": lambda: (
        AssetRegressor(intervals=True, target_transform="standard", **COMMON).fit(X, Z),
        X,
    ),
    "pairs": lambda: (AssetClassifier(multi_class="ovo", **COMMON).fit(X, WORDS), X),
    "logistic": lambda: (AssetClassifier(loss="logistic", **COMMON).fit(X, WORDS), X),
    "logistic binary": lambda: (AssetClassifier(loss="logistic", **COMMON).fit(X, Y == 1), X),
    "squared hinge": lambda: (AssetClassifier(loss="squared_hinge", **COMMON).fit(X, Y), X),
    "several numbers": lambda: (
        AssetRegressor(target_transform="standard", **COMMON).fit(X, np.column_stack([Z, X[:, 2]])),
        X,
    ),
    "several classes": lambda: (
        AssetClassifier(loss="logistic", **COMMON).fit(X, np.column_stack([Y, X[:, 0] > 0])),
        X,
    ),
    "labels": lambda: (
        AssetClassifier(loss="logistic", **COMMON).fit(
            X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0, np.ones(len(X))]).astype(int)
        ),
        X,
    ),
    "quantiles": lambda: (
        AssetQuantileRegressor(quantiles=[0.1, 0.5, 0.9], **COMMON).fit(X, Z),
        X,
    ),
    "quantiles in units": lambda: (
        AssetQuantileRegressor(quantiles=[0.2, 0.8], target_transform="log", **COMMON).fit(X, Z + 9),
        X,
    ),
    "one quantile": lambda: (AssetQuantileRegressor(quantiles=0.9, **COMMON).fit(X, Z), X),
    "outliers": lambda: (AssetOutlierDetector(n_components=40, random_state=0).fit(X), X * 1.5),
    "calibrated": calibrated,
    "calibrated pairs": lambda: calibrated(multi_class="ovo"),
    "calibrated folds": lambda: (
        CalibratedClassifierCV(AssetClassifier(**COMMON), cv=2, method="isotonic").fit(X, Y),
        X,
    ),
    "calibrated folds of two": lambda: (
        CalibratedClassifierCV(
            make_pipeline(StandardScaler(), AssetClassifier(**COMMON)), cv=2, method="sigmoid"
        ).fit(X, Y == 1),
        X,
    ),
    "mean": blend,
    "pipeline": pipeline,
    "text pipeline": text_pipeline,
    "text with gaps": text_with_gaps,
    "text in folds": folds_of_text,
    "times behind a scaler": times_behind_a_scaler,
    "large categories": large_categories,
    "table standard": on_table(
        AssetClassifier, lambda y: y > 3.3, encoder=TableEncoder(numbers="standard"), **COMMON
    ),
    "table pieces": on_table(AssetRegressor, encoder=TableEncoder(numbers="pieces"), **COMMON),
    "table robust": on_table(AssetRegressor, encoder=TableEncoder(numbers="robust"), **COMMON),
    "table ranks": on_table(AssetRegressor, encoder=TableEncoder(numbers="quantile"), **COMMON),
    "table named": on_table(
        AssetClassifier,
        lambda y: np.digitize(y, [3.0, 3.7]),
        encoder=TableEncoder(categorical=["member"], drop=["size"], max_levels=30, dtype=np.float64),
        **COMMON,
    ),
    "table intervals": on_table(AssetRegressor, intervals=True, **COMMON),
    "table in a pipeline": encoder_in_a_pipeline,
    "table before folds": folds_behind_an_encoder,
    "table logistic": on_table(
        AssetClassifier, lambda y: np.where(y > 3.3, "yes", "no"), loss="logistic", **COMMON
    ),
}


@functools.cache
def trained(name):
    """The model of a name, and rows for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit has to say is not what is tested
        return MODELS[name]()


@functools.cache
def folder():
    """A folder that is gone when the process ends."""
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@functools.cache
def file_of(name):
    """The path of the file of a model, written once."""
    path = Path(folder().name) / f"{name}.asset"
    asset_svm.save(trained(name)[0], path)
    return path


def arrays(found):
    return found if isinstance(found, list) else [found]


def differ(found, wanted):
    """The largest difference, in parts of the spread; texts and classes must be the same."""
    largest = 0.0
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        assert one.shape == other.shape
        if other.dtype.kind in "fc":
            finite = np.isfinite(other)
            assert np.array_equal(np.isfinite(one), finite)
            if finite.any():
                spread = max(np.ptp(other[finite]), 1e-300)
                largest = max(largest, float(np.abs(one - other)[finite].max() / spread))
        else:
            assert one.dtype.kind == other.dtype.kind
            assert np.array_equal(one, other)
    return largest


def tolerance(name, rows):
    single = getattr(rows, "dtype", None) == np.float32
    encoded = name.startswith("table") and name != "table named"  # encoders make float32
    return 1e-4 if single or encoded else 1e-6
