"""Writes the golden files of this format: ``python tests/golden/make.py``; never rewrite old ones.

Those that begin with 0.1.0 are of format 1, which that version wrote.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.storage.container import VERSIONS

X, Y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X = X.astype(np.float32)
COMMON = dict(n_components=16, max_iter=3, random_state=0)
ONLINE = dict(n_components=8, lam=1e-3, random_state=0)
names = np.array(["ham", "spam", "eggs"])[Y]
by_columns = ColumnTransformer(
    [
        ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
        ("encoded", OneHotEncoder(handle_unknown="ignore"), [2]),
    ],
    remainder="passthrough",
)
MODELS = {
    "cells": AssetClassifier(n_cells=3, random_state=0).fit(X, names),
    "classes": AssetClassifier(class_weight={"spam": 2.0}, **COMMON).fit(X, names),
    "columns": make_pipeline(by_columns, AssetClassifier(**COMMON)).fit(X.round(), Y),
    "exact": AssetRegressor(n_cells=1).fit(X[:60], X[:60, 0] + 3),
    "folds": CalibratedClassifierCV(AssetClassifier(**COMMON), cv=2, method="isotonic").fit(X, Y),
    "fourier": AssetClassifier(approximation="fourier", step="robust", **COMMON).fit(X, Y == 1),
    "probability": CalibratedClassifierCV(AssetClassifier(**COMMON), ensemble=False).fit(X, names),
    "regression": AssetRegressor(epsilon=0.05, **COMMON).fit(X, X[:, 0] + 3),
    "relevance": AssetClassifier(relevance="columns", kernel="exponential", **COMMON).fit(X, names),
    "relevance-cells": AssetRegressor(relevance="directions", n_cells=3).fit(X, X @ [1, 2, 0, 0, 1]),
    "scaled": Pipeline([("scale", StandardScaler()), ("svm", AssetClassifier(**COMMON))]).fit(X, Y),
}
RESUMABLE = {
    "cells-online": AssetClassifier(n_cells=2, **ONLINE).partial_fit(X, Y, [0, 1, 2]),
    "regression-resumable": MODELS["regression"],
    "relevance-online": AssetRegressor(relevance="auto", **ONLINE).partial_fit(X, X[:, 0] + 3),
    "sparse-online": AssetClassifier(**ONLINE).partial_fit(sp.csr_matrix(X), Y, [0, 1, 2]),
}

if __name__ == "__main__":
    folder = Path(__file__).parent
    for name, model in (MODELS | RESUMABLE).items():
        path = folder / f"format{VERSIONS['model']}-{name}.asset"
        if path.exists():
            continue
        asset_svm.save(model, path, resumable=name in RESUMABLE)
        extra = {}
        for key, method in (("decisions", "decision_function"), ("probabilities", "predict_proba")):
            if hasattr(model, method):
                extra[key] = getattr(model, method)(X)
        np.savez_compressed(path.with_suffix(".npz"), X=X, predicted=model.predict(X), **extra)
