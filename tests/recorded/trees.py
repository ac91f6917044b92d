"""Results of fits: made by a source tree in a process of its own, kept in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recorded.found import Found, digests

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Result:
    """How a fit ended: with the hashes of its parts, with an error, or skipped for what is missing."""

    hashes: dict[str, str]
    error: str = ""
    skipped: str = ""
    seconds: float = 0.0
    path: Path | None = None

    def found(self) -> Found:
        """The parts themselves."""
        if self.path is None:
            return {}
        with np.load(self.path) as arrays:
            return {name: arrays[name] for name in arrays.files}


def make_fits(names: Iterable[str], folder: Path, source: Path) -> None:
    """Make these fits in this process, and write what they find as they end."""
    import asset_svm
    from recorded.fits import FITS
    from recorded.ways import Place

    home = Path(asset_svm.__file__).resolve()
    if not home.is_relative_to(source.resolve()):
        raise RuntimeError(f"asset_svm is that of {home.parent}, and not of {source}.")
    by_name = {fit.name: fit for fit in FITS}
    folder = folder.resolve()
    with Place() as place:
        for number, name in enumerate(names):
            fit = by_name[name]
            told: dict[str, Any] = {"name": name, "skipped": fit.missing}
            begun = time.perf_counter()
            with (
                tempfile.TemporaryDirectory() as files,
                chdir(files),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                try:
                    found = {} if fit.missing else fit.make(place)
                except Exception as error:
                    traceback.print_exc()
                    found, told["error"] = {}, f"{type(error).__name__}: {error}"
            told["seconds"] = time.perf_counter() - begun
            told["hashes"] = digests(found)
            arrays: dict[str, Any] = {**found}
            np.savez(folder / f"{number}.npz", **arrays)
            (folder / f"{number}.json").write_text(json.dumps(told))


def results_of(source: Path, names: list[str], folder: Path) -> dict[str, Result]:
    """Have a source tree make these fits."""
    folder.mkdir()
    library = source / "asset_svm"
    if not library.is_dir():
        raise FileNotFoundError(f"{source} has no folder asset_svm; give the folder src of a tree.")
    paths = os.pathsep.join([str(source.resolve()), str(TESTS)])
    command = [
        sys.executable,
        "-m",
        "recorded",
        "make",
        "--to",
        str(folder),
        "--new",
        str(source),
        *names,
    ]
    with (folder / "log").open("w") as log:
        code = subprocess.call(
            command, env={**os.environ, "PYTHONPATH": paths}, stdout=log, stderr=subprocess.STDOUT
        )
    results = read_results(folder)
    if code != 0:
        said = (folder / "log").read_text().strip()[-2000:]
        lost = Result({}, error=f"the process ended with {code}: {said}")
        results |= {name: lost for name in names if name not in results}
    return results


def read_results(folder: Path) -> dict[str, Result]:
    """What a process left in its folder."""
    results: dict[str, Result] = {}
    for number in range(len(list(folder.glob("*.json")))):
        told: dict[str, Any] = json.loads((folder / f"{number}.json").read_text())
        name = told.pop("name")
        results[name] = Result(**told, path=folder / f"{number}.npz")
    return results
