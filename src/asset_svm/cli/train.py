"""``asset train``: a file in, a model out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from asset_svm import clock
from asset_svm.cli.checkpoints import NAMES, check_checkpoint, check_options
from asset_svm.cli.cluster import check_dask, connected
from asset_svm.cli.one_class import check_one_class, check_parameters
from asset_svm.cli.options import FOR_CLASSES, UsageError, parse_seconds, parse_value
from asset_svm.cli.progress import Display
from asset_svm.cli.run import Estimator, Run
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.tables import model_lines
from asset_svm.cli.tasks import ONE_CLASS
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.data.fingerprint import Steady
from asset_svm.data.scan import Scanned, Summary
from asset_svm.data.source import RowSource
from asset_svm.encoding.summary import TableSummary
from asset_svm.estimators import (
    AssetClassifier,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    TableEncoder,
)
from asset_svm.estimators.calibration import FOLDS
from asset_svm.estimators.files import (
    check_kept,
    check_kept_in_memory,
    check_streamed,
    fit_rows,
    learn_online,
)
from asset_svm.estimators.inside import fit_watched, settings_of, take_intervals
from asset_svm.estimators.intervals import intervals_of_rows, parted, rows_of_numbers
from asset_svm.estimators.learner import Learner
from asset_svm.pages import Page
from asset_svm.persistence import model_of, parts_of
from asset_svm.storage.checkpoint import Checkpoint
from asset_svm.tasks.regression import LOSSES as OF_NUMBERS

if TYPE_CHECKING:
    from asset_svm.dask.fitting import DaskLearner


@dataclass
class Training(Run):
    """The options of ``asset train``, as they are written."""

    online: bool
    classes: str | None
    checkpoint: str | None
    every: str
    resume: bool
    dask: str | None
    one_class: bool
    nu: float | None
    temp_dir: str | None

    @property
    def without_targets(self) -> bool:
        """Whether rows are learnt from without any targets."""
        return self.one_class

    def run(self) -> None:
        """Train, save, tell."""
        self._check()
        self._log()
        begun = clock.now()
        self.store: Checkpoint | None = None
        if self.dask is not None:
            source, model = self._fit_on_cluster(self.dask)
        else:
            source = self._open()
            model = self._learn_online(source) if self.online else self._fit(source)
        seconds, where = clock.now() - begun, ""
        lines = [*model_lines(model), ["seconds", f"{seconds:.2f}"]]
        if self.store is not None:
            where = f", the checkpoint in {self.store.folder}"
        page = partial(self._page, model, seconds)
        self._end("trained", source, model, lines, page, "the model so far", where)
        if self.store is not None:
            self.store.remove()

    def _page(self, model: ScaledModel, seconds: float, *scored: Any) -> Page:
        from asset_svm.cli.report import training_page

        return training_page(model, self.summary, self.display.records, seconds, *scored)

    # Options ------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_checkpoint(self.data, self.checkpoint, resume=self.resume)
        if self.checkpoint is not None and self.online:
            raise UsageError("--checkpoint does not go with --online, which is one pass.")
        if self.scale not in ("none", "auto") and self.online:
            raise UsageError(f"--scale {self.scale} needs a pass of its own, and --online makes one.")
        if self.classes is not None and not self.online:
            raise UsageError("--classes goes with --online; other runs find the classes themselves.")
        check_one_class(self)
        if self.dask is not None:
            self._check_cluster()
        if self.probability and (self.online or self.checkpoint is not None):
            option = "--online" if self.online else "--checkpoint"
            raise UsageError(
                f"--probability trains on folds of rows in memory, and {option} streams them; leave "
                "one of the two out."
            )
        self._check_files()
        if self.temp_dir is not None:
            self._check_sorted(self.temp_dir)
        if self.task == "auto" and "loss" in self.params:
            self.task = "regression" if self.params["loss"] in OF_NUMBERS else "classification"
        for name in ("quantiles", "intervals"):
            if name in self.params:
                self._check_numbers(name)
        if self.encodes_arrays:
            self._check_arrays()
        if self.time_limit is not None:
            limit = parse_seconds(self.time_limit, "--time-limit")
            self.params["time_limit"] = limit / (1 + FOLDS) if self.probability else limit
        # What cannot be is told before anything is read, for the task that is asked for.
        kind = "classification" if self.task == "auto" else self.task
        if self.one_class:
            kind = ONE_CLASS
            check_parameters(self.params)
        self.settings = settings_of(self._model(kind))
        if self.checkpoint is not None:
            check_kept(self.settings)

    def _check_sorted(self, folder: str) -> None:
        """Refuse a folder of temporary files where it is none, or nothing would go there."""
        for option, given in (("--online", self.online), ("--dask", self.dask is not None)):
            if given:
                raise UsageError(
                    f"--temp-dir {folder}: {option} sorts no rows into cells; leave one of them out."
                )
        if self.params.get("n_cells") is None:
            raise UsageError(
                f"--temp-dir {folder}: is for rows that are sorted into cells; set --n-cells, or leave "
                "it out."
            )
        if not Path(folder).is_dir():
            raise UsageError(f"--temp-dir {folder}: is not a folder; make it, or name another.")

    def _check_numbers(self, name: str) -> None:
        """Refuse options that do not go with ``--quantiles`` or ``--intervals``, of numbers."""
        if self.task == "classification":
            raise UsageError(f"--{name} are of numbers; leave --task classification out.")
        self.task, quantiles = "regression", name == "quantiles"
        for option, given in (
            ("--dask", not quantiles and self.dask is not None),
            ("--epsilon", quantiles and "epsilon" in self.params),
            ("--loss", quantiles and "loss" in self.params),
            ("--intervals", quantiles and "intervals" in self.params),
            ("--online", not quantiles and self.online),
            ("--checkpoint", not quantiles and self.checkpoint is not None),
        ):
            if given:
                raise UsageError(f"{option} does not go with --{name}; leave one of them out.")

    def _check_arrays(self) -> None:
        """Refuse options that do not go with ``--numbers`` of arrays."""
        for option, given in (
            ("--online", self.online),
            ("--checkpoint", self.checkpoint is not None),
            ("--dask", self.dask is not None),
        ):
            if given:
                raise UsageError(
                    f"--numbers {self.numbers}: arrays are encoded in memory, which {option} does "
                    "without; leave one of them out."
                )

    def _check_cluster(self) -> None:
        """Refuse options that do not go with ``--dask``."""
        check_dask()
        if self.data == STANDARD_INPUT:
            raise UsageError("--dask: workers cannot read standard input; save it to a file.")
        for option, given in (
            ("--online", self.online),
            ("--checkpoint", self.checkpoint is not None),
            ("--probability", self.probability),
            ("--time-limit", self.time_limit is not None),
        ):
            if given:
                raise UsageError(f"{option} does not go with --dask; leave one of them out.")

    def _check_stream(self) -> None:
        check_streamed(self.settings)
        if self.encodes_arrays:
            raise UsageError(
                f"--numbers {self.numbers}: arrays are encoded in memory, and these rows are too many "
                "for it; raise --memory, or leave --numbers out."
            )
        if self.probability:
            raise UsageError(
                "--probability trains on folds of rows in memory, and these are too many for it; raise "
                "--memory, or leave --probability out."
            )

    def _model(self, task: str) -> Estimator:
        params = dict(self.params)
        if self.raw or self.encodes_arrays:
            params["encoder"] = self._table_encoder()
        if task == ONE_CLASS:
            return AssetOutlierDetector(**params if self.nu is None else {**params, "nu": self.nu})
        classifier, regressor, of_quantiles = AssetClassifier, AssetRegressor, AssetQuantileRegressor
        if self.dask is not None:
            from asset_svm import dask as on_cluster

            classifier, regressor = on_cluster.DaskAssetClassifier, on_cluster.DaskAssetRegressor
            of_quantiles = on_cluster.DaskAssetQuantileRegressor
        if task == "regression":
            for name in sorted(FOR_CLASSES & params.keys()):
                raise UsageError(f"--{name.replace('_', '-')} is for classification.")
            if self.raw:
                params.setdefault("target_transform", "standard")
            if "quantiles" in params:
                return of_quantiles(**params)
            return regressor(**params)
        for name in ("epsilon", "target_transform", "intervals"):
            params.pop(name, None)
        return classifier(**params)

    # Learning -----------------------------------------------------------------------------------

    def _fit(self, source: RowSource) -> ScaledModel:
        if self.checkpoint is not None:
            every = parse_seconds(self.every, "--checkpoint-every")
            self.store = Checkpoint(self.checkpoint, every=every, resume=self.resume)
        saved, out = None if self.store is None else self.store.read_run(), source
        if "intervals" in self.params:
            source, out = parted(source, self.settings.validation_fraction, self.seed)
        if saved is not None and self.store is not None:
            check_options(self.store, saved, self._notes()["options"])
            scaler = self.store.notes.get("scaler")
            if scaler is not None:
                record, arrays = scaler
                found = model_of(record, arrays, self.store.run_path)
                if isinstance(found, TableEncoder):
                    self.encoder = found
                else:
                    self.scaler = found
            scanned = self._scanned_again(source, saved.summary)
            print(f"asset: going on with the run in {self.store.folder}.", file=sys.stderr)
        else:
            if self.resume:
                print(f"asset: no run in {self.checkpoint}; beginning one.", file=sys.stderr)
            scanned = self._scan(source, fingerprint=self.store is not None)
        self.summary = scanned.summary
        task, held = self._found_task(), scanned.held
        if self.store is not None and held is not None:
            try:
                check_kept_in_memory(self.settings)
            except ValueError:
                self.store.abandon()
                raise
        model = self._model(task)
        settings = self.settings = settings_of(model)
        scanned = self._encoded(scanned, model, means=True)
        if self.store is not None:
            self.store.notes = self._notes()
        with self._display(model, held=scanned.held is not None).shown() as watch:
            fit_rows(
                model,
                scanned,
                checkpoint=self.store,
                watch=watch,
                settings=settings,
                encoder=self.encoder,
                temp_dir=self._path.parent if self.temp_dir is None else self.temp_dir,
            )
        if isinstance(model, AssetRegressor) and model.intervals:
            self._add_intervals(model, source, out)
        return self._calibrated(model, held)

    def _add_intervals(self, model: AssetRegressor, learnt: RowSource, out: RowSource) -> None:
        """Give the model its intervals, from the rows kept out."""
        learnt, out = rows_of_numbers(model, learnt), rows_of_numbers(model, out)
        if self.scaler is not None:
            learnt, out = (each.transformed(self.scaler.transform) for each in (learnt, out))
        take_intervals(model, intervals_of_rows(model, learnt.blocks(), out.blocks(), self.seed))

    def _scanned_again(self, source: RowSource, summary: Summary | None) -> Scanned:
        """The rows of a run to go on with, read again where they are held in memory."""
        if summary is None:
            return self._scan(source, fingerprint=True)
        steady = Steady.of(source.files)
        if self.encoder is not None:
            rows = source.transformed(partial(self.encoder.rows, learning=True), summary.n_features)
            return Scanned(rows, summary, steady=steady)
        rows = source.narrowed(summary.n_features)
        if self.scaler is not None:
            rows = rows.transformed(self.scaler.transform)
        return Scanned(rows, summary, steady=steady)

    def _fit_on_cluster(self, where: str) -> tuple[RowSource, ScaledModel]:
        with connected(where, self.jobs) as client:
            files = self._scan_on_cluster(client)
            model: DaskLearner = self._model(self._found_task()).set_params(client=client)
            X, y = self._collections(files, numeric=is_regressor(model))

            def settled(encoder: TableEncoder, table: TableSummary) -> None:
                self._advise(table)
                self._tell_columns(encoder)

            with self._display(model).shown() as watch:
                fit_watched(model, X, y, watch=watch, settled=settled)
            return files.source, ScaledModel(model.to_local(), self.scaler)

    def _display(self, model: Learner, *, held: bool = True) -> Display:
        """Who shows a fit in epochs, or of cells.

        Cells of rows that are held in memory are solved soon, and none is of use without the others.
        """
        whole = held and getattr(model, "n_cells", None) is not None and not self.online
        self.display = Display(regression=is_regressor(model), one_class=self.one_class, at_once=whole)
        self.interrupt = self.display.interrupt
        return self.display

    def _notes(self) -> dict[str, Any]:
        """What a resumed run must find as it was, and the scaler."""
        before = self.scaler if self.encoder is None else self.encoder
        scaler = None if before is None else parts_of(before)
        options = {name: getattr(self, name) for name in (*NAMES, "one_class")}
        return {"options": options, "scaler": scaler}

    def _learn_online(self, source: RowSource) -> ScaledModel:
        task = self.task
        if self.one_class:
            task = ONE_CLASS
        elif task == "auto":
            task = "regression" if "epsilon" in self.params else "classification"
        model = self._model(task)
        classes = None
        if self.classes is not None:
            classes = np.array([parse_value(label) for label in self.classes.split(",")])
        with self._display(model).shown() as watch:
            return ScaledModel(learn_online(model, source, classes=classes, watch=watch))
