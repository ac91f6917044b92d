"""Where files come from: the folder ASSET_DATA, else a download that is checked.

A checksum is "md5:..." or "sha256:..." of the file, or "content:..." (SHA-256) of what it holds once
decompressed, where hosts compress the same text differently.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np


class DataMissingError(RuntimeError):
    """A data set is neither under ASSET_DATA nor to be downloaded."""


_FAILED: dict[str, str] = {}
"""Downloads that failed in this process, and why: they are not waited for again."""


@dataclass(frozen=True)
class RemoteFile:
    """A file, and where it is published; ``url`` is "" where it is not."""

    name: str
    url: str = ""
    checksum: str = ""

    def path(self) -> Path:
        """The file on this machine; downloads it the first time where ASSET_DATA lacks it."""
        folder = os.environ.get("ASSET_DATA")
        if folder and (Path(folder) / self.name).exists():
            return Path(folder) / self.name
        if not self.url:
            raise DataMissingError(
                f"{self.name} is not under ASSET_DATA={folder or '(not set)'}, and there is no place "
                "to download it from; put it there."
            )
        if self.name in _FAILED:
            raise DataMissingError(_FAILED[self.name])
        try:
            return self._download()
        except DataMissingError as error:
            _FAILED[self.name] = str(error)
            raise

    def _download(self) -> Path:
        try:
            import pooch
        except ImportError:
            raise DataMissingError(
                f"{self.name} is not under ASSET_DATA, and downloading needs pooch; "
                'run: pip install "asset-svm[paper]"'
            ) from None
        ours = self.checksum.startswith("content:")
        try:
            found = pooch.retrieve(
                self.url,
                None if ours else self.checksum,
                fname=self.name,
                path=pooch.os_cache("asset-svm"),
            )
        except (OSError, ValueError) as error:
            raise DataMissingError(
                f"{self.name} is not under ASSET_DATA, and its download from {self.url} failed: {error}"
            ) from error
        path = Path(found)
        if ours and content_hash(path) != self.checksum:
            path.unlink()
            raise DataMissingError(
                f"{self.url} has not the content it should have ({self.checksum}); it was deleted."
            )
        return path

    def open(self) -> BinaryIO:
        """Its content, decompressed."""
        return opened(self.path())


def opened(path: Path) -> BinaryIO:
    """A file's content, decompressed by its name."""
    ways: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open}
    return cast(BinaryIO, ways.get(path.suffix, open)(path, "rb"))


def content_hash(path: Path) -> str:
    """The checksum of the decompressed file; "" where it cannot be decompressed."""
    digest = hashlib.sha256()
    try:
        with opened(path) as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    except (OSError, EOFError):
        return ""
    return "content:" + digest.hexdigest()


def libsvm_file(kind: str, name: str, content: str) -> RemoteFile:
    """A file of LIBSVM's collection, of the kind "binary", "multiclass" or "regression"."""
    host = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
    return RemoteFile(name, f"{host}/{kind}/{name}", f"content:{content}")


def read_svmlight(files: list[RemoteFile], n_features: int) -> tuple[Any, np.ndarray]:
    """The rows of svmlight files, dense float32."""
    from sklearn.datasets import load_svmlight_file

    parts = []
    for file in files:
        with file.open() as stream:
            parts.append(load_svmlight_file(stream, n_features=n_features, dtype=np.float32))
    return np.vstack([X.toarray() for X, _ in parts]), np.concatenate([y for _, y in parts])


def read_arrays(file: RemoteFile) -> tuple[Any, np.ndarray]:
    """X in float32 and y in float64 of an ``npz``."""
    with np.load(file.path()) as arrays:
        return arrays["X"].astype(np.float32), arrays["y"].astype(np.float64).ravel()


def read_table(
    file: RemoteFile, target: str, categorical: tuple[int, ...], gap: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a CSV file in float32, and the words of its target.

    A category is its number in the order of the column's words; ``gap`` is NaN, in all columns.
    """
    with file.open() as stream:
        lines = list(csv.reader(io.TextIOWrapper(stream, "utf-8", newline="")))
    columns = dict(zip(lines[0], np.array(lines[1:]).T, strict=True))
    y = columns.pop(target)
    X = np.full((len(y), len(columns)), np.nan, dtype=np.float32)
    for place, column in enumerate(columns.values()):
        there = column != gap
        words = column[there]
        X[there, place] = np.unique(words, return_inverse=True)[1] if place in categorical else words
    return X, y
