"""Writes the golden files of this version: ``python tests/golden/make.py``; never rewrite old ones."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor

X, Y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X = X.astype(np.float32)
COMMON = dict(n_components=16, max_iter=3, random_state=0)
names = np.array(["ham", "spam", "eggs"])[Y]
MODELS = {
    "classes": AssetClassifier(class_weight={"spam": 2.0}, **COMMON).fit(X, names),
    "fourier": AssetClassifier(approximation="fourier", step="robust", **COMMON).fit(X, Y == 1),
    "probability": CalibratedClassifierCV(AssetClassifier(**COMMON), ensemble=False).fit(X, names),
    "regression": AssetRegressor(epsilon=0.05, **COMMON).fit(X, X[:, 0] + 3),
    "scaled": Pipeline([("scale", StandardScaler()), ("svm", AssetClassifier(**COMMON))]).fit(X, Y),
    "sparse-online": AssetClassifier(n_components=16, lam=1e-3, random_state=0).partial_fit(
        sp.csr_matrix(X), Y, [0, 1, 2]
    ),
}

if __name__ == "__main__":
    folder = Path(__file__).parent
    for name, model in MODELS.items():
        path = folder / f"{asset_svm.__version__}-{name}.asset"
        if path.exists():
            continue
        asset_svm.save(model, path)
        extra = {}
        for key, method in (("decisions", "decision_function"), ("probabilities", "predict_proba")):
            if hasattr(model, method):
                extra[key] = getattr(model, method)(X)
        np.savez_compressed(path.with_suffix(".npz"), X=X, predicted=model.predict(X), **extra)
