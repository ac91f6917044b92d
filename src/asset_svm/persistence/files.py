"""``save`` and ``load``."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

import asset_svm
from asset_svm.persistence.composed import read_any, read_model, write_any, write_model
from asset_svm.storage import container
from asset_svm.storage.fields import Array, Fields, told
from asset_svm.storage.writing import Writer

KIND = "model"
OLD = 1
"""The format of 0.1.0, which named classes."""


def save(
    model: BaseEstimator,
    path: str | Path,
    *,
    resumable: bool = False,
    provenance: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator
        AssetClassifier, AssetRegressor, AssetQuantileRegressor or AssetOutlierDetector. Of
        scikit-learn, a ``Pipeline`` whose last step is one of the others, and a
        ``CalibratedClassifierCV`` of a classifier or of such a pipeline; before them transformers of
        the kinds that ``persistence.transformers`` lists. Those of ``asset_svm.dask`` are saved as the
        plain ones that they become by ``to_local``.
    path : path
        By convention ``*.asset``. Written whole or not at all; an old file stays until then.
    resumable : bool, default=False
        Whether the file holds what ``partial_fit``, ``warm_start``, ``certify`` and ``compact`` need
        too: the map, the state of the solver, and the first rows of a stream that has just begun.
        Without it the file is for prediction, and often a hundredth as large.
    provenance : dict, optional
        What the file shall tell of where the model comes from.

    Notes
    -----
    A model of ``device="cuda"`` is saved as one of the CPU, since a file goes anywhere; after ``load``,
    ``set_params(device="cuda")`` sends it back.

    Raises
    ------
    ValueError
        The model has a part that is not numbers, such as a callable kernel.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm import AssetClassifier, load, save
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = AssetClassifier(random_state=0).fit(X, y)
    >>> path = Path(mkdtemp()) / "moons.asset"
    >>> save(model, path)
    >>> bool((load(path).decision_function(X) == model.decision_function(X)).all())
    True
    """
    write = Writer(resumable=resumable)
    header = {
        "model": write_model(write, model, "model"),
        "provenance": write.mapping({**machine(), **(provenance or {})}, "provenance"),
    }
    container.write(path, KIND, header, write.tensors)


def load(path: str | Path) -> Any:
    """Read a model file; executes nothing of it.

    Parameters
    ----------
    path : path
        A file that ``save``, or ``asset train``, has written.

    Returns
    -------
    model : estimator
        Of the class that was saved; a plain ``CalibratedClassifierCV`` is a ``CalibratedClassifier``.

    Raises
    ------
    ModelFileError
        The file is cut, damaged, something else, or of a newer version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from asset_svm import AssetRegressor, load, save
    >>> path = Path(mkdtemp()) / "line.asset"
    >>> save(AssetRegressor("linear", C=100).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]), path)
    >>> type(load(path)).__name__
    'AssetRegressor'
    """
    version, header, tensors = container.read_any(path, KIND)
    with told(path):
        if version == OLD:
            from asset_svm.persistence.legacy import upgraded

            header, tensors = upgraded(header, tensors, path)
        return read_model(Fields(header, tensors, path).object("model"))


def read_provenance(path: str | Path) -> dict[str, Any]:
    """What a model file tells of its origin."""
    version, header, tensors = container.read_any(path, KIND)
    with told(path):
        if version == OLD:
            from asset_svm.persistence.legacy import provenance

            return provenance(header, tensors, path)
        return Fields(header, tensors, path).mapping("provenance")


def parts_of(model: BaseEstimator) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON and the arrays of a model, or of a transformer, for prediction."""
    write = Writer()
    return write_any(write, model, "model"), write.tensors


def model_of(record: dict[str, Any], tensors: dict[str, Array], path: str | Path) -> BaseEstimator:
    """The model of such parts; ``path`` is for errors."""
    with told(path):
        return read_any(Fields(record, tensors, path, "model"))[0]


def machine() -> dict[str, str]:
    """The versions at work, and the time."""
    return {
        "asset_svm": asset_svm.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit_learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
    }
