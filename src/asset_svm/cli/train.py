"""``asset train``: a file in, a model out."""

from __future__ import annotations

import logging
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from asset_svm.cli.cluster import check_dask, connected
from asset_svm.cli.options import UsageError, parse_params, parse_seconds, parse_size, parse_value
from asset_svm.cli.progress import Display
from asset_svm.cli.scaling import KINDS, ColumnScaling
from asset_svm.cli.scores import Scores
from asset_svm.cli.scoring import rows_for, score_rows
from asset_svm.cli.tables import model_lines, score_lines, show
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.data.opening import open_rows
from asset_svm.data.scan import Scanned, Summary
from asset_svm.data.source import RowSource
from asset_svm.estimators import AssetClassifier, AssetRegressor
from asset_svm.estimators.passing import learn_online
from asset_svm.estimators.streaming import fit_rows, scan_for, target_type
from asset_svm.persistence import save, scaler_of, scaler_parts
from asset_svm.storage.checkpoint import Checkpoint

TASKS = ("auto", "classification", "regression")
INTERRUPTED = 130


@dataclass
class Training:
    """The options of a run, as written."""

    parameters: dict[str, Any]
    data: str
    test: str | None
    output: str | None
    task: str
    target: str | None
    format: str | None
    zero_based: bool
    n_features: int | None
    dtype: str
    scale: str
    online: bool
    classes: str | None
    memory: str | None
    time_limit: str | None
    checkpoint: str | None
    every: str
    resume: bool
    seed: int
    jobs: int | None
    report: str | None
    dask: str | None
    verbose: bool

    def run(self) -> None:
        """Train, save, tell."""
        self._check()
        if self.verbose:
            logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        else:
            logging.basicConfig(level=logging.WARNING, format="asset: %(message)s", stream=sys.stderr)
        begun = time.perf_counter()
        self.scaler: Any = None
        self.store: Checkpoint | None = None
        self.summary: Summary | None = None
        if self.dask is not None:
            source, estimator = self._fit_on_cluster(self.dask)
        else:
            options = {"target": self.target, "n_features": self.n_features, **self._reading}
            source = open_rows(self.data, **options)
            estimator = self._learn_online(source) if self.online else self._fit(source)
        seconds = time.perf_counter() - begun
        model = estimator
        if self.scaler is not None:
            model = Pipeline([("scale", self.scaler), ("svm", estimator)])
        path = self._save(model, source)
        scores = None
        if self.test is not None:
            scores = score_rows(model, rows_for(model, self.test, target=self.target, **self._reading))
        self._tell(estimator, path, seconds, scores)
        if self.report is not None:
            self._write_report(model, source, path, seconds, scores)
        if self.store is not None and not self.display.interrupt.asked:
            self.store.remove()
        if self.display.interrupt.asked:
            where = f", the checkpoint in {self.store.folder}" if self.store is not None else ""
            print(f"asset: interrupted; the model so far is in {path}{where}.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED)

    # Options ------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self.task not in TASKS:
            raise UsageError(f"--task {self.task}: choose one of {', '.join(TASKS)}.")
        if self.scale not in KINDS:
            raise UsageError(f"--scale {self.scale}: choose one of {', '.join(KINDS)}.")
        if self.dtype not in ("float32", "float64"):
            raise UsageError(f"--dtype {self.dtype}: choose float32 or float64.")
        if self.resume and self.checkpoint is None:
            raise UsageError("--resume needs --checkpoint DIR, where the run was saved.")
        if self.checkpoint is not None and self.data == STANDARD_INPUT:
            raise UsageError("--checkpoint: standard input cannot be read again; save it to a file.")
        if self.checkpoint is not None and self.online:
            raise UsageError("--checkpoint does not go with --online, which is one pass.")
        if self.scale != "none" and self.online:
            raise UsageError(f"--scale {self.scale} needs a pass of its own, and --online makes one.")
        if self.classes is not None and not self.online:
            raise UsageError("--classes goes with --online; other runs find the classes themselves.")
        if self.dask is not None:
            self._check_cluster()
        for option, path in (("-o", self.output), ("--report", self.report)):
            if path is not None and not Path(path).resolve().parent.is_dir():
                raise UsageError(f"{option} {path}: there is no folder {Path(path).parent}.")
        if self.test is not None and not Path(self.test).exists():
            raise FileNotFoundError(f"{self.test} does not exist.")
        self.params = parse_params(self.parameters)
        self.params |= {"random_state": self.seed, "n_jobs": self.jobs, "verbose": int(self.verbose)}
        if self.time_limit is not None:
            self.params["time_limit"] = parse_seconds(self.time_limit, "--time-limit")
        if self.memory is not None:
            # Half for mapped rows; rows themselves, their copies and the libraries have the rest.
            self.params["memory_limit"] = parse_size(self.memory) // 2
        self._model("classification")._check_parameters()

    def _check_cluster(self) -> None:
        """Options that do not go with ``--dask``."""
        check_dask()
        if self.data == STANDARD_INPUT:
            raise UsageError("--dask: workers cannot read standard input; save it to a file.")
        for option, given in (
            ("--online", self.online),
            ("--checkpoint", self.checkpoint is not None),
            ("--time-limit", self.time_limit is not None),
        ):
            if given:
                raise UsageError(f"{option} does not go with --dask; leave one of them out.")

    @property
    def _reading(self) -> dict[str, Any]:
        return {"format": self.format, "zero_based": self.zero_based, "dtype": np.dtype(self.dtype)}

    def _model(self, task: str) -> Any:
        params = dict(self.params)
        classifier, regressor = AssetClassifier, AssetRegressor
        if self.dask is not None:
            from asset_svm.dask import DaskAssetClassifier, DaskAssetRegressor

            classifier, regressor = DaskAssetClassifier, DaskAssetRegressor
        if task == "regression":
            if "class_weight" in params:
                raise UsageError("--class-weight is for classification.")
            return regressor(**params)
        params.pop("epsilon", None)
        return classifier(**params)

    def _task(self, summary: Summary) -> str:
        if self.task != "auto":
            return self.task
        return "classification" if summary.targets.classifies else "regression"

    # Learning -----------------------------------------------------------------------------------

    def _fit(self, source: RowSource) -> Any:
        if self.checkpoint is not None:
            every = parse_seconds(self.every, "--every")
            self.store = Checkpoint(self.checkpoint, every=every, resume=self.resume)
        saved = None if self.store is None else self.store.read_run()
        if saved is not None and self.store is not None:
            before, now = self.store.notes["options"], self._notes()["options"]
            for name in (name for name in now if now[name] != before[name]):
                raise UsageError(f"--{name} {now[name]}: the run to resume has {before[name]}.")
            scaler = self.store.notes["scaler"]
            self.scaler = None if scaler is None else scaler_of(scaler)
            scanned = Scanned(source.narrowed(saved.summary.n_features), saved.summary)
            if self.scaler is not None:
                scanned = Scanned(scanned.source.transformed(self.scaler.transform), saved.summary)
            print(f"asset: going on with the run in {self.store.folder}.", file=sys.stderr)
        else:
            if self.resume:
                print(f"asset: no run in {self.checkpoint}; beginning one.", file=sys.stderr)
            scanned = self._scan(source)
        self.summary = scanned.summary
        task = self._task(self.summary)
        if self.store is not None:
            self.store.notes = self._notes()
        model = self._model(task)
        self.display = Display(self.summary.n_rows, regression=task == "regression")
        with self.display.shown() as watch:
            return fit_rows(model, scanned, checkpoint=self.store, watch=watch)

    def _fit_on_cluster(self, where: str) -> tuple[RowSource, Any]:
        """The source, and the plain estimator."""
        from asset_svm.dask.files import RowFiles

        files = RowFiles(self.data, target=self.target, n_features=self.n_features, **self._reading)
        with connected(where, self.jobs) as client:
            scaling = None if self.scale == "none" else ColumnScaling(self.scale)
            self.summary, scaling = files.scan(client, scaling)
            if scaling is not None:
                self.scaler = scaling.finish(self.summary.n_features)
            task = self._task(self.summary)
            model = self._model(task).set_params(client=client)
            target_type(model, self.summary.targets)
            transform = None if self.scaler is None else self.scaler.transform
            X, y = files.collections(self.summary, transform)
            self.display = Display(self.summary.n_rows, regression=task == "regression")
            with self.display.shown() as watch:
                model._fit(X, y, None, watch=watch)
            return files.source, model.to_local()

    def _notes(self) -> dict[str, Any]:
        """What a resumed run must find as it was, and the scaler."""
        names = ("scale", "task", "target", "format", "zero_based", "n_features", "dtype")
        scaler = None if self.scaler is None else scaler_parts(self.scaler)
        return {"options": {name: getattr(self, name) for name in names}, "scaler": scaler}

    def _scan(self, source: RowSource) -> Scanned:
        scaling = None if self.scale == "none" else ColumnScaling(self.scale)
        scanned = scan_for(
            source,
            n_components=self.params.get("n_components"),
            memory_limit=self.params.get("memory_limit"),
            random_state=self.seed,
            hold=self.store is None,
            observe=None if scaling is None else scaling.observe,
        )
        if scaling is None:
            return scanned
        self.scaler = scaling.finish(scanned.summary.n_features)
        return scanned.transformed(self.scaler.transform)

    def _learn_online(self, source: RowSource) -> Any:
        task = self.task
        if task == "auto":
            task = "regression" if "epsilon" in self.params else "classification"
        model = self._model(task)
        classes = None
        if self.classes is not None:
            classes = np.array([parse_value(label) for label in self.classes.split(",")])
        self.display = Display(None, regression=task == "regression")
        with self.display.shown() as watch:
            return learn_online(model, source, classes=classes, watch=watch)

    # The end ------------------------------------------------------------------------------------

    def _save(self, model: Any, source: RowSource) -> Path:
        stem = re.sub(r"[*?\[\]!]", "", Path(self.data).name.split(".")[0]).rstrip("-_") or "model"
        path = Path(self.output or f"{stem}.asset")
        told = {"data": source.name, "rows": None if self.summary is None else self.summary.n_rows}
        columns = getattr(source, "columns", None)
        told["target"] = self.target if columns is None else columns.target
        save(model, path, provenance=told)
        return path

    def _tell(self, estimator: Any, path: Path, seconds: float, scores: Scores | None) -> None:
        lines = model_lines(self.scaler, estimator)
        lines += [["seconds", f"{seconds:.2f}"], ["saved in", str(path)]]
        if scores is not None:
            lines += [[f"test {name}", value] for name, value in score_lines(scores)]
        show("trained", ["", ""], lines)

    def _write_report(
        self, model: Any, source: RowSource, path: Path, seconds: float, scores: Scores | None
    ) -> None:
        from asset_svm.cli.report import training_page

        where = self.test or self.data
        if scores is None and source.rereadable:
            again = rows_for(model, self.data, target=self.target, **self._reading)
            scores = score_rows(model, again)
        page = training_page(model, self.summary, self.display.records, scores, seconds, path, where)
        assert self.report is not None
        page.write(self.report)
        print(f"report: {self.report}")
