"""NumPy's files as rows: .npy and .npz, memory-mapped, never pickles.

.npy             a matrix; the target is one of its columns, by default the last
.npz with X, y   a matrix and its targets
.npz of scipy    data, indices, indptr, shape of a CSR matrix, and y beside them

Large compressed arrays are unpacked to disk first. The checksum of every array that is read from a .npz
file is compared, once in a process: a map reads the bytes without it. An .npy file has none.
"""

from __future__ import annotations

import errno
import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asset_svm.arrays import Array
from asset_svm.data.array_rows import ArrayRows
from asset_svm.data.compression import filled
from asset_svm.data.source import RowSource
from asset_svm.data.sparse import fault_of
from asset_svm.data.tables import listed
from asset_svm.exceptions import DataError

SMALL_MEMBER = 16 << 20
"""Bytes of a compressed array that are read into memory."""
CSR = ("data", "indices", "indptr", "shape")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What numpy writes; Python unpacks others without a limit of memory."""


def npy_rows(
    path: str | Path,
    *,
    target: str | Sequence[str] | None = None,
    n_features: int | None = None,
    targets: bool = True,
    dtype: npt.DTypeLike = np.float32,
) -> RowSource:
    """The rows of a matrix in a .npy file.

    ``target`` is a column's number, or several, or a .npy file of targets; a matrix of exactly
    ``n_features`` columns has no target. Without ``targets`` theirs are not read, and where none is
    named, nor ``n_features``, all columns are features.
    """
    X = _load_npy(Path(path))
    name, files = str(path), (Path(path),)
    if X.ndim != 2:
        raise DataError(f"{name} has an array of {X.ndim} dimensions; rows need a matrix.")
    _check_numeric(X, name)
    width, target = X.shape[1], _one_text(target)
    beside = target is not None and target.endswith(".npy")
    bare = not targets and (beside or (target is None and n_features is None))
    if bare or (n_features == width and not beside):
        return ArrayRows(X, None, name=name, dtype=dtype, files=files)
    if target is not None and beside:
        y = _targets_of(Path(target))
        return ArrayRows(X, y, name=name, dtype=dtype, files=(*files, Path(target)))
    try:
        columns = [int(each) for each in ("-1" if target is None else target).split(",")]
    except ValueError:
        raise DataError(
            f"{name}: target={target!r} is neither a column's number nor a .npy file."
        ) from None
    for column in columns:
        if not -width <= column < width or width <= len(columns):
            raise DataError(
                f"{name} has {width} columns; target={column} with features is not among them."
            )
    columns = [column % width for column in columns]
    if len(set(columns)) < len(columns):
        raise DataError(f"{name}: target={target!r} names a column twice; name each once.")
    return _ColumnRows(X, columns, targets, name=name, dtype=dtype, files=files)


def _one_text(target: str | Sequence[str] | None) -> str | None:
    """Several targets as one text, with commas."""
    return target if target is None or isinstance(target, str) else ",".join(map(str, target))


class _ColumnRows(ArrayRows):
    """A matrix one or more of whose columns are targets."""

    def __init__(self, X: Array, columns: list[int], targets: bool, **options: Any):
        chosen = columns[0] if len(columns) == 1 else columns
        super().__init__(X, X[:, chosen] if targets else None, **options)
        self.kept = np.delete(np.arange(X.shape[1]), columns)
        self.columns_left_out = columns
        self.n_features = len(self.kept)

    def _features(self, part: Array) -> Array:
        return np.delete(part, self.columns_left_out, axis=1)

    def _column(self, feature: int) -> int:
        return int(self.kept[feature])


def npz_rows(
    path: str | Path,
    *,
    target: str | Sequence[str] | None = None,
    n_features: int | None = None,
    targets: bool = True,
    dtype: npt.DTypeLike = np.float32,
) -> RowSource:
    """The rows of a .npz file: X and y, or a CSR matrix; ``target`` names y or a .npy file."""
    path, name, target = Path(path), str(path), _one_text(target)
    arrays = _Members(path)
    X: Any
    if all(key in arrays for key in CSR):
        X = _csr([arrays[key] for key in CSR], name)
    elif "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise DataError(f"{name}: X has {X.ndim} dimensions; rows need a matrix.")
    else:
        raise DataError(
            f"{name} has the arrays {listed(arrays.names)}; rows need X, or data, indices, indptr "
            "and shape of a CSR matrix."
        )
    _check_numeric(X.data if sp.issparse(X) else X, name)
    y, files = None, [path]
    if targets and target is not None and target.endswith(".npy"):
        y = _targets_of(Path(target))
        files.append(Path(target))
    elif targets and target is not None and target not in arrays:
        raise DataError(f"{name} has no array {target!r}; it has {listed(arrays.names)}.")
    elif targets and (target is not None or "y" in arrays):
        y = _labels(arrays[target or "y"], name)
    elif targets and n_features is None:
        raise DataError(f"{name} has no array y; say where the targets are with target= (--target).")
    names = None
    if "feature_names" in arrays and arrays["feature_names"].shape == (X.shape[1],):
        names = tuple(str(each) for each in arrays["feature_names"])
    return ArrayRows(X, y, name=name, dtype=dtype, feature_names=names, files=tuple(files))


def _csr(parts: list[Array], name: str) -> Any:
    """The CSR matrix of these parts, checked: scipy would read beyond its arrays otherwise."""
    data, indices, indptr, shape = parts
    try:
        m, n = (int(each) for each in shape)
        X = sp.csr_matrix((data, indices, indptr), shape=(m, n), copy=False)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{name} is not a CSR matrix ({error}).") from None
    fault = fault_of(X)
    if fault is not None:
        raise DataError(f"{name} is not a CSR matrix ({fault}).")
    return X


def _targets_of(path: Path) -> Array:
    """The targets in a .npy file of their own."""
    return _labels(_load_npy(path), str(path))


def _labels(y: Array, name: str) -> Array:
    wide = y.ndim == 2 and y.shape[1] > 1
    if not (y.ndim == 1 or wide) or y.dtype.kind not in "biufU":
        raise DataError(
            f"{name}: targets of shape {y.shape} and type {y.dtype} are no column of labels."
        )
    return y


def _check_numeric(X: Array, name: str) -> None:
    if X.dtype.kind not in "biuf":
        raise DataError(f"{name} has values of type {X.dtype}; rows need real numbers.")


def _load_npy(path: Path) -> Array:
    with _told(f"{path} is not a whole .npy file of numbers"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell of a damaged file, which fails in any way: numpy evaluates headers. A disk's errors stay."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise DataError(f"{what} ({error}).") from None


class _Members:
    """The arrays of a .npz file, memory-mapped: large compressed ones from a temporary file."""

    def __init__(self, path: Path):
        self.path = path
        with _told(f"{path} is not a whole .npz file"), zipfile.ZipFile(path) as archive:
            self.infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self.names = sorted(self.infos)

    def __contains__(self, name: str) -> bool:
        return name in self.infos

    def __getitem__(self, name: str) -> Array:
        info = self.infos[name]
        with _told(f"{self.path}: the array {name!r} cannot be read"):
            if info.compress_type not in METHODS:
                raise ValueError("only stored and deflated arrays are read")
            with zipfile.ZipFile(self.path) as archive, archive.open(info) as member:
                shape, fortran, dtype, offset = _npy_header(member)
                if dtype.hasobject:
                    raise ValueError("pickled objects are not read")
                length = math.prod(shape) * dtype.itemsize
                if offset + length != info.file_size:
                    raise ValueError(
                        f"its shape {shape} of {dtype} takes {length} bytes, and there are "
                        f"{info.file_size - offset}"
                    )
                order: Any = "F" if fortran else "C"
                if info.compress_type == zipfile.ZIP_STORED:
                    _check_once(self.path, info.header_offset, _state(self.path), member)
                elif info.file_size <= SMALL_MEMBER:
                    flat = np.frombuffer(filled(cast(BinaryIO, member), length), dtype)
                    return flat.reshape(shape, order=order)
                else:
                    return _unpacked(member, shape, dtype, order)
            with self.path.open("rb") as raw:
                raw.seek(info.header_offset + 26)
                lengths = np.frombuffer(raw.read(4), dtype="<u2")
            start = info.header_offset + 30 + int(lengths.sum()) + offset
            if not shape or 0 in shape:
                return np.zeros(shape, dtype)
            return np.memmap(self.path, dtype, "r", start, shape, order)


def _state(path: Path) -> tuple[int, ...]:
    """The numbers of a file that change with its contents."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


_CHECKED: set[tuple[Any, ...]] = set()


def _check_once(path: Path, place: int, state: tuple[int, ...], member: Any) -> None:
    """Read a stored array to its end, where zipfile compares the checksum."""
    key = (path, place, state)
    if key not in _CHECKED:
        while member.read(1 << 20):
            pass
        _CHECKED.add(key)


def _unpacked(member: Any, shape: tuple[int, ...], dtype: np.dtype[Any], order: Any) -> Array:
    """The numbers that follow in a compressed member, through a file that is gone when they are."""
    try:
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(member, file, 1 << 20)
            file.flush()
            return np.memmap(file, dtype, "r", 0, shape, order)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            error.filename = tempfile.gettempdir()
        raise


def _npy_header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """(shape, Fortran order, dtype, offset of the numbers)."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(member)
    return shape, fortran, dtype, member.tell()
