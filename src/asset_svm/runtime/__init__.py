"""Prediction from a model file with numpy and safetensors alone: no compiled code, no scikit-learn.

    >>> from asset_svm import runtime  # doctest: +SKIP
    >>> model = runtime.load("shop.asset")  # doctest: +SKIP
    >>> model.predict([{"age": 34, "city": "Bonn"}])  # doctest: +SKIP

    rows           what users pass, as columns
    reading        a file to its description; legacy, those of 0.1.0; transformers, scikit-learn's
    decisions      those of its record: sums, cells, relevance; heads, those of a task
    description    steps, parts and heads: what a model computes
    steps          what stands before a model: the encoder of a table, transformers
    parts          sums, cells, relevance, means; sources, the kernels and features in those
    links          heads: classes, probabilities, numbers, quantiles
    operations     what those compute with, and numpy's way
    model          what ``load`` returns

Of the rest of the package the records of files (``storage``), the functions of columns (``encoding``)
and the formulas of kernels (``kernels.profiles``) are used, none of which has compiled code. Everything
is computed in float64, whatever the type of the rows.
"""

from __future__ import annotations

from pathlib import Path

from asset_svm.runtime.model import (
    Classifier,
    Model,
    OutlierDetector,
    QuantileRegressor,
    Regressor,
    model_of,
)
from asset_svm.runtime.reading import read
from asset_svm.storage.fields import told

__all__ = [
    "Classifier",
    "Model",
    "OutlierDetector",
    "QuantileRegressor",
    "Regressor",
    "load",
]


def load(path: str | Path) -> Model:
    """Read a model file for prediction.

    Parameters
    ----------
    path : path
        As ``asset_svm.save`` and the command write it.

    Returns
    -------
    model : Model
        With ``predict``, ``n_features_in_``, and, where the model has them, ``decision_function``,
        ``predict_proba``, ``predict_log_proba``, ``predict_interval``, ``score_samples``, ``classes_``
        and ``feature_names_in_``.

    Raises
    ------
    ModelFileError
        The file is cut, damaged, something else, or of a newer version.
    """
    with told(path):
        return model_of(read(path))
