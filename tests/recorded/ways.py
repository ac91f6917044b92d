"""How a fit is made: from arrays, in batches, from a file, by the command, by a search, on a cluster.

Everything goes through what the library exports, its attributes and its command, so that it runs
unchanged against any source tree. ``asset_svm.cli.main.main``, which the tests call too, stands for the
command; a process of its own for each would take longer than all the fits.
"""

from __future__ import annotations

import gzip
import inspect
import io
import pickle
from collections.abc import Callable, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import asset_svm
from recorded.found import Found, as_array, decide, model_parts, search_parts
from recorded.problems import Problem

Make = Callable[[], Problem]
SMALL: dict[str, Any] = {"n_components": 60, "max_iter": 4, "random_state": 0}
"""Of every fit that says nothing else."""
DEFAULT: Any = object()
"""For a parameter of ``SMALL`` that is left at its default."""


@dataclass(frozen=True)
class Later:
    """A parameter that is made when it is needed."""

    make: Callable[[], Any]

    def __call__(self) -> Any:
        return self.make()


class Place:
    """The working folder for the files of a fit, and a cluster for those that ask for one."""

    folder = Path()

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def client(self) -> Any:
        """Of two workers in this process; nothing leaves it."""
        from distributed import Client, LocalCluster

        cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,
            silence_logs="CRITICAL",
        )
        return self._open.enter_context(Client(self._open.enter_context(cluster)))


@dataclass(frozen=True)
class Fit:
    """A fit by its name, GROUP/NAME, how it is made, and what it needs beside the library."""

    name: str
    make: Callable[[Place], Found]
    needs: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The options that it is about."""
        return self.name.partition("/")[0]

    @property
    def missing(self) -> str:
        """What it needs and is not here; empty where nothing is missing."""
        return next((need for need in self.needs if not _is_here(need)), "")


def _is_here(need: str) -> bool:
    if need != "card":
        return find_spec(need) is not None
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def fit(
    name: str,
    problem: Make,
    kind: str = "AssetClassifier",
    *,
    needs: tuple[str, ...] = (),
    weighted: bool = False,
    show: Callable[[Any, Problem, Place], Found] | None = None,
    **params: Any,
) -> Fit:
    """Of arrays; ``show`` tells what is compared, by default what the model is made of."""

    def make(place: Place) -> Found:
        rows = problem()
        model = new(kind, params)
        model.fit(rows.X, rows.y, **({"sample_weight": rows.weight} if weighted else {}))
        return show(model, rows, place) if show else model_parts(model, rows.X_new)

    return Fit(name, make, needs)


def new(kind: str, params: Mapping[str, Any]) -> Any:
    """An estimator of ``asset_svm``."""
    return getattr(asset_svm, kind)(**settings(params))


def settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a fit: these, and those of ``SMALL``."""
    given = {name: value for name, value in {**SMALL, **params}.items() if value is not DEFAULT}
    return {name: value() if isinstance(value, Later) else value for name, value in given.items()}


regression = partial(fit, kind="AssetRegressor")


# What is looked at beside the model itself --------------------------------------------------------


def compiled(model: Any, rows: Problem, place: Place) -> Found:
    """The plain function for serving, with many rows and with one."""
    function = model.compiled("decision_function" if hasattr(model, "classes_") else "predict")
    return {"decisions": as_array(function(rows.X_new)), "one": as_array(function(rows.X_new[0]))}


def compacted(model: Any, rows: Problem, place: Place) -> Found:
    """The model that predicts from d kernel values."""
    small = model.compact()
    found = {name: as_array(getattr(small, name)) for name in ("dual_coef_", "compact_error_")}
    return {"decisions": as_array(decide(small, rows.X_new)), **found}


def certified(model: Any, rows: Problem, place: Place) -> Found:
    """The objective, and the tight bound."""
    return {"decisions": as_array(model.certify(rows.X, rows.y))}


def saved(model: Any, rows: Problem, place: Place) -> Found:
    """The model from its file, and after it has gone on learning."""
    path = place.folder / "saved.asset"
    options: dict[str, Any] = (
        {"resumable": True} if "resumable" in inspect.signature(asset_svm.save).parameters else {}
    )
    asset_svm.save(model, path, **options)
    return _going_on(asset_svm.load(path), rows)


def pickled(model: Any, rows: Problem, place: Place) -> Found:
    """The same by pickle."""
    return _going_on(pickle.loads(pickle.dumps(model)), rows)


def _going_on(model: Any, rows: Problem) -> Found:
    found = model_parts(model, rows.X_new)
    model.partial_fit(rows.X[:300], rows.y[:300])
    return {**found, "later decisions": as_array(decide(model, rows.X_new))}


def warm(model: Any, rows: Problem, place: Place, **changed: Any) -> Found:
    """A second fit that goes on from the first."""
    first = {"first decisions": as_array(decide(model, rows.X_new))}
    model.set_params(**changed).fit(rows.X, rows.y)
    return {**model_parts(model, rows.X_new), **first}


def searched_components(model: Any, rows: Problem, place: Place) -> Found:
    """The trials of n_components="auto" too."""
    trials = [(t["n_components"], t["validation_score"]) for t in model.component_search_]
    return {**model_parts(model, rows.X_new), "trials": as_array(trials)}


def transformed(model: Any, rows: Problem, place: Place) -> Found:
    """Features of new rows."""
    return {"decisions": as_array(model.transform(rows.X_new))}


def by_hand(
    name: str,
    problem: Make,
    build: Callable[[], Any],
    *,
    keep: bool = False,
    needs: tuple[str, ...] = (),
) -> Fit:
    """A model that holds others of ours; ``keep`` has it saved and loaded."""

    def make(place: Place) -> Found:
        rows, model = problem(), build()
        model.fit(rows.X, rows.y)
        found = {"decisions": as_array(decide(model, rows.X_new))}
        if keep:
            asset_svm.save(model, place.folder / "saved.asset")
            found["loaded"] = as_array(decide(asset_svm.load(place.folder / "saved.asset"), rows.X_new))
        inner = getattr(model, "estimators_", [])
        return found | {f"intercept {k}": as_array(each.intercept_) for k, each in enumerate(inner)}

    return Fit(name, make, needs)


# Streams ------------------------------------------------------------------------------------------


def stream(
    name: str,
    problem: Make,
    kind: str = "AssetClassifier",
    *,
    sizes: tuple[int, ...] = (300, 150, 250),
    fitted: int = 0,
    weighted: bool = False,
    **params: Any,
) -> Fit:
    """Batches of these sizes, after a fit of the first rows where there is one."""

    def make(place: Place) -> Found:
        rows, model = problem(), new(kind, {"max_iter": 4 if fitted else DEFAULT, **params})
        begin = fitted
        if fitted:
            model.fit(rows.X[:fitted], rows.y[:fitted])
        classes = {"classes": np.unique(rows.y)} if kind == "AssetClassifier" else {}
        found: Found = {}
        for number, size in enumerate(sizes):
            part = slice(begin, begin + size)
            weight = {"sample_weight": rows.weight[part]} if weighted else {}
            model.partial_fit(rows.X[part], rows.y[part], **classes, **weight)
            found[f"decisions after batch {number}"] = as_array(decide(model, rows.X_new))
            begin += size
        return {**model_parts(model, rows.X_new), **found}

    return Fit(name, make)


# Searches -----------------------------------------------------------------------------------------


def search(
    name: str,
    problem: Make,
    kind: str = "AssetClassifierCV",
    *,
    fit_options: Callable[[Problem], dict[str, Any]] = lambda rows: {},
    **params: Any,
) -> Fit:
    """A cross-validation, and the model refitted."""

    def make(place: Place) -> Found:
        rows, model = problem(), new(kind, {"search_iter": 3, **params})
        model.fit(rows.X, rows.y, **fit_options(rows))
        return search_parts(model, rows.X_new)

    return Fit(name, make)


# Files --------------------------------------------------------------------------------------------


def write_rows(rows: Problem, format: str, folder: Path) -> Path:
    """The rows to learn from as a file of this extension."""
    path = folder / f"rows.{format}"
    if format == "parts.npy":
        for number, part in enumerate(np.array_split(np.column_stack([rows.X, rows.y]), 3)):
            np.save(folder / f"part-{number}.npy", part)
        return folder / "part-*.npy"
    if format == "npy":
        np.save(path, np.column_stack([rows.X, rows.y]))
    elif format == "npz" and sp.issparse(rows.X):
        X = rows.X
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=rows.y)
    elif format == "npz":
        np.savez(path, X=rows.X, y=rows.y)
    elif format == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = {f"x{k}": rows.X[:, k] for k in range(rows.X.shape[1])}
        pq.write_table(pa.table({**table, "y": rows.y}), path, row_group_size=200)
    elif format == "csv":
        path.write_text(_csv(rows))
    elif format == "svm.gz":
        path.write_bytes(gzip.compress(_svmlight(rows).encode(), mtime=0))
    else:
        path.write_text(_svmlight(rows))
    return path


def _csv(rows: Problem) -> str:
    lines = [",".join([*(f"x{k}" for k in range(rows.X.shape[1])), "y"])]
    for row, target in zip(rows.X.tolist(), rows.y.tolist(), strict=True):
        lines.append(",".join([*map(repr, row), str(target)]))
    return "\n".join(lines) + "\n"


def _svmlight(rows: Problem) -> str:
    X = sp.csr_matrix(rows.X)
    lines = []
    for i, target in enumerate(rows.y.tolist()):
        part = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        lines.append(" ".join([str(target), *(f"{k + 1}:{value!r}" for k, value in pairs)]))
    return "\n".join(lines) + "\n"


def file(
    name: str,
    problem: Make,
    format: str,
    kind: str = "AssetClassifier",
    *,
    needs: tuple[str, ...] = (),
    **params: Any,
) -> Fit:
    """The fit of a row source; a small ``memory_limit`` has it read window by window."""

    def make(place: Place) -> Found:
        rows = problem()
        source = asset_svm.open_rows(write_rows(rows, format, place.folder))
        return model_parts(new(kind, params).fit(source), rows.X_new)

    return Fit(name, make, needs)


def command(
    name: str,
    problem: Make,
    format: str,
    *options: str,
    verb: str = "train",
    needs: tuple[str, ...] = (),
    predicts: bool = False,
    cluster: bool = False,
) -> Fit:
    """The model that ``asset train`` or ``asset tune`` writes, and what ``asset predict`` tells."""

    def make(place: Place) -> Found:
        rows, output = problem(), place.folder / "model.asset"
        path = write_rows(rows, format, place.folder)
        where = ["--dask", place.client.scheduler.address] if cluster else []
        asset(verb, path, "-o", output, *where, *options)
        found = model_parts(asset_svm.load(output), rows.X_new)
        if predicts:
            told = place.folder / "told.csv"
            asset("predict", output, path, "--scores", "-o", told)
            found["told"] = as_array(told.read_text().splitlines())
        return found

    return Fit(name, make, ("typer", "rich", "safetensors", *needs))


def asset(*arguments: str | Path) -> None:
    """The command; raises where it fails."""
    from asset_svm.cli.main import main

    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = main([str(each) for each in arguments])
    if code != 0:
        raise RuntimeError(f"asset {arguments[0]} ended with {code}: {said.getvalue().strip()[-500:]}")


# Clusters -----------------------------------------------------------------------------------------


def cluster(
    name: str,
    problem: Make,
    kind: str = "DaskAssetClassifier",
    *,
    parts: int = 3,
    frame: bool = False,
    weighted: bool = False,
    **params: Any,
) -> Fit:
    """Rows in so many partitions of a Dask collection."""

    def make(place: Place) -> Found:
        import dask.array as da
        import dask.dataframe as dd
        import pandas as pd

        ours, rows = import_module("asset_svm.dask"), problem()
        m, n = rows.X.shape
        size = -(-m // parts)
        X, y, weight = (da.from_array(a, chunks=(size, *a.shape[1:])) for a in _dense(rows))
        if sp.issparse(rows.X):
            X = X.map_blocks(sp.csr_matrix, dtype=rows.X.dtype)
        elif frame:
            columns = [f"x{k}" for k in range(n)]
            X = dd.from_pandas(pd.DataFrame(rows.X, columns=columns), npartitions=parts)
            y = dd.from_pandas(pd.Series(rows.y), npartitions=parts)
        model = getattr(ours, kind)(client=place.client, **settings(params))
        model.fit(X, y, **({"sample_weight": weight} if weighted else {}))
        X_new = pd.DataFrame(rows.X_new, columns=columns) if frame else rows.X_new
        there = X_new if frame or sp.issparse(X_new) else da.from_array(X_new, chunks=(70, n))
        found = {
            "n_shards_": as_array(getattr(model, "n_shards_", 0)),
            "predictions": as_array(model.predict(there)),
        }
        return {**model_parts(model.to_local(), X_new), **found}

    return Fit(name, make, ("distributed", "pandas"))


def cluster_file(name: str, problem: Make, format: str, **params: Any) -> Fit:
    """Rows of a file that workers read."""

    def make(place: Place) -> Found:
        ours: Any = import_module("asset_svm.dask")
        rows = problem()
        X, y = ours.read_rows(str(write_rows(rows, format, place.folder)), client=place.client)
        model = ours.DaskAssetClassifier(client=place.client, **settings(params)).fit(X, y)
        return model_parts(model.to_local(), rows.X_new)

    return Fit(name, make, ("distributed",))


def _dense(rows: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rows.X.toarray() if sp.issparse(rows.X) else rows.X, rows.y, rows.weight
