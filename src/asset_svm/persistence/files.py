"""``save`` and ``load``."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import asset_svm
from asset_svm.exceptions import ModelFileError
from asset_svm.persistence.composed import read_any, read_model, write_any, write_model
from asset_svm.persistence.reading import Array, Record
from asset_svm.persistence.writing import Writer
from asset_svm.storage import container

KIND = "model"
OLD = 1
"""The format of 0.1.0, which named classes."""


def save(
    model: Any,
    path: str | Path,
    *,
    resumable: bool = False,
    provenance: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : AssetClassifier, AssetRegressor, CalibratedClassifierCV, or Pipeline
        Of scikit-learn, a ``Pipeline`` whose last step is one of the others, and a
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
    """
    write = Writer(resumable=resumable)
    header = {
        "model": write_model(write, model, "model"),
        "provenance": write.mapping({**machine(), **(provenance or {})}, "provenance"),
    }
    container.write(path, KIND, header, write.tensors)


def load(path: str | Path) -> Any:
    """Read a model file; executes nothing of it.

    Returns
    -------
    model : estimator
        Of the class that was saved; a plain ``CalibratedClassifierCV`` is a ``CalibratedClassifier``.

    Raises
    ------
    ModelFileError
        The file is cut, damaged, something else, or of a newer version.
    """
    version, header, tensors = container.read_any(path, KIND)
    with _told(path):
        if version == OLD:
            from asset_svm.persistence.legacy import upgraded

            header, tensors = upgraded(header, tensors, path)
        return read_model(Record(header, tensors, path).record("model"))


def read_provenance(path: str | Path) -> dict[str, Any]:
    """What a model file tells of its origin."""
    version, header, tensors = container.read_any(path, KIND)
    with _told(path):
        if version == OLD:
            from asset_svm.persistence.legacy import provenance

            return provenance(header, tensors, path)
        return Record(header, tensors, path).mapping("provenance")


def parts_of(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON and the arrays of a model, or of a transformer, for prediction."""
    write = Writer(resumable=False)
    return write_any(write, model, "model"), write.tensors


def model_of(record: dict[str, Any], tensors: dict[str, Array], path: str | Path) -> Any:
    """The model of such parts; ``path`` is for errors."""
    with _told(path):
        return read_any(Record(record, tensors, path, "model"))[0]


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


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """Tell what is wrong with a file in one kind of error, whoever has found it."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RecursionError,
        MemoryError,
    ) as error:
        why = " ".join(repr(error).split())  # an error of a parameter shows its value: anything
        why = why if len(why) <= 300 else f"{why[:300]}..."
        raise ModelFileError(f"{path} is not a model that can be read ({why}).") from None
