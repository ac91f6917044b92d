"""CCAT: documents of RCV1-v2 on corporate matters against the others; a sample, sparse rows.

RCV1 may be used for research and not be passed on, so that there is no download: the sample has to
lie under ASSET_DATA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from datasets.base import DataSet, Paper
from datasets.files import RemoteFile

FILE = RemoteFile("rcv1_ccat_subsets.npz")


def read() -> tuple[Any, np.ndarray]:
    """All 27 613 rows, CSR."""
    with np.load(FILE.path()) as arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
        return X, np.where(arrays["y"] > 0, 1, -1)


DATASET = DataSet(
    "CCAT",
    read,
    Paper(78127, 11575, 11574, 47237, 1.6, 1.28e-6, 1.0),
    note="a sample of RCV1: 21301 rows train and 3156 test, where the paper had 78127 and 11574",
    sizes=(21301, 3156),
)
