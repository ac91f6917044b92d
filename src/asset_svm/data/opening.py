"""``open_rows``: which reader a file needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.data.compression import STANDARD_INPUT, stripped
from asset_svm.data.joined import JoinedRows, matching_files
from asset_svm.data.raw import RawOptions
from asset_svm.data.source import RowSource


@dataclass(frozen=True)
class _Reader:
    """A reader's ``module.name`` in this folder, and which of the parameters of ``open_rows`` it takes.

    One that ``seeks`` needs a plain file, neither compressed nor standard input.
    """

    place: str
    options: tuple[str, ...]
    suffixes: tuple[str, ...]
    seeks: bool = False
    fixed: dict[str, Any] = field(default_factory=dict)

    def __call__(self, path: str | Path, given: dict[str, Any]) -> RowSource:
        """The rows of this file."""
        module, name = self.place.split(".")
        reader = getattr(import_module(f"asset_svm.data.{module}"), name)
        options = {option: given[option] for option in (*self.options, "dtype")}
        rows: RowSource = reader(path, **options, **self.fixed)
        return rows


_TABLE = ("target", "features", "targets", "raw")
_ARRAYS = ("target", "n_features", "targets")
FORMATS = {
    "svmlight": _Reader("svmlight.SvmlightRows", ("n_features", "zero_based"), ()),
    "csv": _Reader("csv.CsvRows", _TABLE, (".csv",)),
    "tsv": _Reader("csv.CsvRows", _TABLE, (".tsv", ".tab"), fixed={"delimiter": "\t"}),
    "parquet": _Reader("parquet.ParquetRows", _TABLE, (".parquet", ".pq"), seeks=True),
    "npy": _Reader("array_files.npy_rows", _ARRAYS, (".npy",), seeks=True),
    "npz": _Reader("array_files.npz_rows", _ARRAYS, (".npz",), seeks=True),
}


def find_format(path: str | Path) -> str:
    """The format by the extension, below that of a compression; without any it is svmlight text.

    LIBSVM's files have no extension of their own (a9a, a9a.t, letter.scale.bz2).
    """
    path = Path(path)
    if path.is_dir():
        return "parquet"
    suffix = stripped(path).suffix.lower()
    return next((name for name, reader in FORMATS.items() if suffix in reader.suffixes), "svmlight")


def open_rows(
    path: str | Path,
    *,
    target: str | int | Sequence[str] | Sequence[int] | None = None,
    format: str | None = None,
    features: tuple[str, ...] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    targets: bool = True,
    dtype: npt.DTypeLike = np.float32,
    raw: RawOptions | None = None,
) -> RowSource:
    """Rows of a file, for ``fit`` and for reading a block at a time.

    Parameters
    ----------
    path : path, pattern of several ("part-*.parquet"), or "-" for standard input
        svmlight text, CSV or TSV with a header (each also .gz, .bz2, .xz), Parquet (a file or a
        folder), .npy, .npz; by extension, and svmlight where there is no known one. Files of a
        pattern follow each other by name.
    target : str, int, or sequence of them, optional
        The target's column (CSV, Parquet), its array (.npz), its number (.npy), or a .npy file of
        targets beside a .npy or .npz file. Several columns, or numbers of them, are a sequence, or
        stand one after the other with commas; arrays of targets may have several columns.
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
    raw : RawOptions, optional
        Read columns as they came, with categories, gaps and dates (CSV, Parquet): the X of blocks are
        tables then.

    Returns
    -------
    source : RowSource

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from asset_svm import AssetClassifier, open_rows
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> path = Path(mkdtemp()) / "moons.npz"
    >>> np.savez(path, X=X, y=y)
    >>> source = open_rows(path)
    >>> model = AssetClassifier(gamma=1.0, C=10, random_state=0).fit(source)
    >>> model.score(X, y) > 0.99
    True
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={np.dtype(dtype)} is not a type of rows; use float32 or float64.")
    if format is not None and format not in FORMATS:
        raise ValueError(f'format="{format}" is not known; choose one of {", ".join(FORMATS)}.')
    if isinstance(target, int | np.integer):
        target = str(target)
    given: dict[str, Any] = {"target": target, "n_features": n_features, "zero_based": zero_based}
    given |= {"targets": targets, "dtype": dtype, "raw": raw}
    piped = str(path) == STANDARD_INPUT
    several = None if piped else matching_files(path)
    if several is not None:
        first = open_rows(several[0], format=format, features=features, **given)
        names = first.feature_names
        others = [open_rows(file, format=format, features=names, **given) for file in several[1:]]
        return JoinedRows([first, *others], str(path))
    if not piped and not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    kind = format or ("svmlight" if piped else find_format(path))
    if FORMATS[kind].seeks and (piped or stripped(Path(path)) != Path(path)):
        what = "standard input" if piped else path
        raise ValueError(f"{what} cannot be read as {kind}, which needs a plain file.")
    if kind != "parquet" and not piped and Path(path).is_dir():
        raise ValueError(f"{path} is a folder; only Parquet is read from folders.")
    if target is not None and kind == "svmlight":
        raise ValueError(f"target={target!r}: svmlight rows begin with their target; leave it out.")
    if raw is not None and "raw" not in FORMATS[kind].options:
        tables = ", ".join(name for name, reader in FORMATS.items() if "raw" in reader.options)
        what = "standard input" if piped else path
        raise ValueError(
            f"{what} is read as {kind}, which has no categories, gaps or dates; only {tables} are "
            "read as they came, and format= (--format) says which of them it is."
        )
    return FORMATS[kind](path, {**given, "features": features})
