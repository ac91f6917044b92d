"""``open_rows``: which reader a file needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from asset_svm.data.compression import STANDARD_INPUT, stripped
from asset_svm.data.joined import JoinedRows, matching_files
from asset_svm.data.source import RowSource

Format = Literal["svmlight", "csv", "tsv", "parquet", "npy", "npz"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
}


def find_format(path: str | Path) -> Format:
    """The format by the extension, below that of a compression; without any it is svmlight text.

    LIBSVM's files have no extension of their own (a9a, a9a.t, letter.scale.bz2).
    """
    path = Path(path)
    if path.is_dir():
        return "parquet"
    return _SUFFIXES.get(stripped(path).suffix.lower(), "svmlight")


def open_rows(
    path: str | Path,
    *,
    target: str | None = None,
    format: Format | None = None,
    features: tuple[str, ...] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    targets: bool = True,
    dtype: npt.DTypeLike = np.float32,
) -> RowSource:
    """Rows of a file, for ``fit`` and for reading a block at a time.

    Parameters
    ----------
    path : path, pattern of several ("part-*.parquet"), or "-" for standard input
        svmlight text, CSV or TSV with a header (each also .gz, .bz2, .xz), Parquet (a file or a
        folder), .npy, .npz; by extension, and svmlight where there is no known one. Files of a
        pattern follow each other by name.
    target : str, optional
        The target's column (CSV, Parquet), its array (.npz), its number (.npy), or a .npy file of
        targets beside a .npy or .npz file.
    format : {"svmlight", "csv", "tsv", "parquet", "npy", "npz"}, optional
        Instead of what the extension says.
    features : tuple of str, optional
        Columns to read as features, by default all but the target (CSV, Parquet).
    n_features : int, optional
        The number of features there must be (svmlight, .npy, .npz).
    zero_based : bool
        Whether svmlight indices count from 0.
    targets : bool
        Whether targets are read. For prediction they need not be there, or may be anything; only
        svmlight rows begin with theirs in any case.
    dtype : dtype
        Of the rows, float32 or float64.

    Returns
    -------
    source : RowSource

    Examples
    --------
    >>> from asset_svm import AssetClassifier, open_rows
    >>> AssetClassifier().fit(open_rows("big.parquet", target="y"))  # doctest: +SKIP
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={np.dtype(dtype)} is not a type of rows; use float32 or float64.")
    if format is not None and format not in get_args(Format):
        raise ValueError(
            f'format="{format}" is not known; choose one of {", ".join(get_args(Format))}.'
        )
    piped = str(path) == STANDARD_INPUT
    several = None if piped else matching_files(path)
    if several is not None:
        options: dict[str, Any] = {"n_features": n_features, "zero_based": zero_based, "dtype": dtype}
        options |= {"target": target, "format": format, "targets": targets}
        first = open_rows(several[0], features=features, **options)
        others = [open_rows(file, features=first.feature_names, **options) for file in several[1:]]
        return JoinedRows([first, *others], str(path))
    if not piped and not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    kind = format or ("svmlight" if piped else find_format(path))
    if kind in ("parquet", "npy", "npz") and (piped or stripped(Path(path)) != Path(path)):
        what = "standard input" if piped else path
        raise ValueError(f"{what} cannot be read as {kind}, which needs a plain file.")
    if kind != "parquet" and not piped and Path(path).is_dir():
        raise ValueError(f"{path} is a folder; only Parquet is read from folders.")
    if target is not None and kind == "svmlight":
        raise ValueError(f"target={target!r}: svmlight rows begin with their target; leave it out.")
    common: dict[str, Any] = {"dtype": dtype}
    if kind == "svmlight":
        from asset_svm.data.svmlight import SvmlightRows

        return SvmlightRows(path, n_features=n_features, zero_based=zero_based, **common)
    common["targets"] = targets
    if kind in ("csv", "tsv"):
        from asset_svm.data.csv import CsvRows

        delimiter = "\t" if kind == "tsv" else ","
        return CsvRows(path, delimiter=delimiter, target=target, features=features, **common)
    if kind == "parquet":
        from asset_svm.data.parquet import ParquetRows

        return ParquetRows(path, target=target, features=features, **common)
    from asset_svm.data.array_files import npy_rows, npz_rows

    if kind == "npy":
        return npy_rows(path, target=target, n_features=n_features, **common)
    return npz_rows(path, target=target, n_features=n_features, **common)
