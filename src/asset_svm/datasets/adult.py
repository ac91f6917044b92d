"""ADULT: does a person earn more than 50 000 dollars a year? 48 842 people, 123 binary features.

The files are LIBSVM's a9a and a9a.t, unchanged: the UCI Adult data set (Becker and Kohavi, 1996,
CC BY 4.0) with its continuous attributes cut into quintiles and each attribute made binary
(Platt, 1998). The paper joins both files and splits the rows at random.
"""

from __future__ import annotations

import bz2
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

N_FEATURES = 123


def load_adult(
    *, dtype: npt.DTypeLike = np.float32
) -> tuple[sp.csr_matrix, npt.NDArray[np.int64], int]:
    """All of ADULT.

    Parameters
    ----------
    dtype : dtype, default=float32
        Of the rows.

    Returns
    -------
    X : CSR matrix of shape (48842, 123)
    y : int array of shape (48842,)
        -1 or 1.
    n_train : int
        Rows from this one on are LIBSVM's test part a9a.t.

    Examples
    --------
    >>> from asset_svm import load_adult
    >>> X, y, n_train = load_adult()
    >>> X.shape, n_train, round(float((y > 0).mean()), 3)
    ((48842, 123), 32561, 0.239)
    """
    parts = [_read(name, np.dtype(dtype)) for name in ("a9a.bz2", "a9a.t.bz2")]
    X = sp.vstack([part[0] for part in parts], format="csr")
    y = np.concatenate([part[1] for part in parts])
    return X, y, parts[0][0].shape[0]


def _read(name: str, dtype: np.dtype[Any]) -> tuple[sp.csr_matrix, npt.NDArray[np.int64]]:
    text = bz2.decompress(files("asset_svm.datasets").joinpath(name).read_bytes()).decode()
    rows = [line.split() for line in text.splitlines()]
    y = np.array([int(row[0]) for row in rows])
    # Every feature is 0 or 1, so that "index:1" is all there is of a row.
    columns = [int(item[:-2]) - 1 for row in rows for item in row[1:]]
    lengths = np.cumsum([0] + [len(row) - 1 for row in rows])
    data = np.ones(len(columns), dtype=dtype)
    X = sp.csr_matrix((data, np.array(columns, np.int32), lengths), (len(rows), N_FEATURES))
    return X, y
