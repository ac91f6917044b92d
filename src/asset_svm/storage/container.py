"""The files of asset-svm: safetensors with a JSON header, a version and a digest; no pickle.

    8 bytes, JSON, numbers        as safetensors has it; its metadata are
      format     "asset-svm"
      version    of its kind, an integer; files of a newer one are refused, older ones are read
      kind       "model", "run", "state", "cells", "found"
      header     JSON, see ``writing`` and ``fields``
      digest     SHA-256 of kind, header and all numbers: a changed bit is found

Reading runs nothing of the file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.exceptions import ModelFileError
from asset_svm.storage.atomic import replacing

Array = npt.NDArray[Any]
FORMAT = "asset-svm"
VERSIONS = {"model": 2, "run": 2, "state": 2, "cells": 1, "found": 1}
"""The newest version of each kind, which is written."""


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            'Model files need safetensors, which is not installed; run: pip install "asset-svm[files]"'
        ) from None
    return safetensors


def write(
    path: str | Path, kind: str, header: Any, tensors: dict[str, Array], *, version: int | None = None
) -> None:
    """Write a file that is whole or absent, of the newest version unless another is named."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    metadata = {
        "format": FORMAT,
        "version": str(VERSIONS[kind] if version is None else version),
        "kind": kind,
        "header": text,
        "digest": _digest(kind, text, tensors),
    }
    content = _safetensors().numpy.save(tensors, metadata)
    with replacing(path) as file:
        file.write(content)


def read(path: str | Path, kind: str) -> tuple[Any, dict[str, Array]]:
    """The header and the tensors of a file; ``ModelFileError`` says what is wrong with it."""
    return read_any(path, kind)[1:]


def read_any(path: str | Path, kind: str) -> tuple[int, Any, dict[str, Array]]:
    """The version, the header and the tensors of a file."""
    library, path = _safetensors(), Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    try:
        with library.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            _check_metadata(path, metadata, kind)
            # Copies: arrays of our own lie in memory as those of a run do.
            tensors = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        _check_types(tensors)
    except (library.SafetensorError, UnicodeDecodeError, AttributeError, TypeError) as error:
        # The last two are of types that safetensors knows and numpy does not: BF16, F8_E4M3.
        raise ModelFileError(
            f"{path} is not a whole asset-svm file ({str(error).strip()}); it was cut, damaged, or "
            "is something else."
        ) from None
    text = metadata.get("header", "")
    if _digest(metadata["kind"], text, tensors) != metadata.get("digest"):
        raise ModelFileError(f"{path} is damaged: its contents do not match its digest.")
    try:
        return int(metadata["version"]), json.loads(text), tensors
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is no JSON ({error}).") from None


def _check_metadata(path: Path, metadata: dict[str, str], kind: str) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but not one of asset-svm.")
    version = metadata.get("version", "")
    if not (version.isascii() and version.isdecimal() and len(version) < 10 and int(version) >= 1):
        raise ModelFileError(f"{path} is damaged: its version is {version[:20]!r}.")
    if metadata.get("kind") != kind:
        raise ModelFileError(f"{path} is an asset-svm {metadata.get('kind')} file, not a {kind}.")
    if int(version) > VERSIONS[kind]:
        raise ModelFileError(
            f"{path} has format version {version}, and this asset-svm reads up to {VERSIONS[kind]}; "
            "install a newer asset-svm."
        )


def _check_types(tensors: dict[str, Array]) -> None:
    """Types that another package adds to numpy (ml_dtypes: bfloat16) are none of ours."""
    for name, array in tensors.items():
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name} has the type {array.dtype}")


def _digest(kind: str, header: str, tensors: dict[str, Array]) -> str:
    digest = hashlib.sha256(f"{kind}\n{header}\n".encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
