"""What ``asset train`` and ``asset tune`` share: rows from a file, a model to another, a report."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from asset_svm.cli.columns import ARRAYS, FOR_TABLES, TABLES, ColumnOptions, advice_of, column_lines
from asset_svm.cli.options import Interrupted, UsageError, parse_params, parse_size
from asset_svm.cli.output_scores import Scores
from asset_svm.cli.outputs import check_output
from asset_svm.cli.progress import Display, Interrupt
from asset_svm.cli.scaling import KINDS, ColumnScaling
from asset_svm.cli.scoring import (
    ScaledModel,
    names_of_outputs,
    rows_for,
    same_target,
    score_rows,
)
from asset_svm.cli.tables import score_lines, show
from asset_svm.cli.tasks import ONE_CLASS, TASKS, found_task
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.data.opening import find_format, open_rows
from asset_svm.data.scan import Scanned, Summary
from asset_svm.data.source import Block, RowSource
from asset_svm.encoding.summary import TableSummary
from asset_svm.estimators import (
    AssetClassifier,
    AssetOutlierDetector,
    AssetQuantileRegressor,
    AssetRegressor,
    TableEncoder,
)
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.estimators.encoded import encode_rows
from asset_svm.estimators.files import held_bytes, scan_for
from asset_svm.estimators.inside import in_units, settings_of, task_of
from asset_svm.families.labels import check_targets, labelled
from asset_svm.pages import Page
from asset_svm.persistence import save

Estimator = AssetClassifier | AssetRegressor | AssetQuantileRegressor | AssetOutlierDetector


@dataclass
class Run:
    """The options of a command that learns, as they are written."""

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
    categorical: str | None
    numeric: str | None
    drop: str | None
    missing: str | None
    decimal: str | None
    encoding: str | None
    numbers: str | None
    probability: bool
    resumable: bool
    memory: str | None
    time_limit: str | None
    seed: int
    jobs: int | None
    report: str | None
    verbose: bool
    interrupt: Interrupt = field(init=False)

    # Options ------------------------------------------------------------------------------------

    def _check_files(self) -> None:
        """Check the options about rows and files, and take ``params`` from those of the estimator."""
        if self.task not in TASKS:
            raise UsageError(f"--task {self.task}: choose one of {', '.join(TASKS)}.")
        if self.scale not in KINDS:
            raise UsageError(f"--scale {self.scale}: choose one of {', '.join(KINDS)}.")
        names = ColumnOptions.__dataclass_fields__
        self.columns = ColumnOptions(**{name: getattr(self, name) for name in names})
        if not self.raw:
            self.columns.check_none(FOR_TABLES, but="numbers" if self.encodes_arrays else "")
        elif self.n_features is not None:
            raise UsageError("--n-features is for svmlight rows; tables name their columns.")
        if self.dtype not in ("float32", "float64"):
            raise UsageError(f"--dtype {self.dtype}: choose float32 or float64.")
        if self.probability and self.task == "regression":
            raise UsageError("--probability is for classification.")
        if not 0 <= self.seed < 2**32:
            raise UsageError(f"--seed {self.seed}: must be from 0 to {2**32 - 1}.")
        if self.n_features is not None and self.n_features < 1:
            raise UsageError(f"--n-features {self.n_features}: must be above 0.")
        read = {"DATA": None if self.data == STANDARD_INPUT else self.data, "--test": self.test}
        check_output("-o", str(self._path), read)
        check_output("--report", self.report, {**read, "the model (-o)": str(self._path)})
        if self.test is not None and not Path(self.test).exists():
            raise FileNotFoundError(f"{self.test} does not exist.")
        if self.test is not None and (self.target or "").endswith(".npy"):
            raise UsageError(
                f"--test {self.test}: its targets are not those of {self.target}; train without "
                f"--test, then run: asset evaluate MODEL {self.test} --target FILE."
            )
        self.scaler: BaseEstimator | None = None
        self.encoder: TableEncoder | None = None
        self.summary: Summary | None = None
        self.params = parse_params(self.parameters)
        self.params |= {"random_state": self.seed, "n_jobs": self.jobs, "verbose": int(self.verbose)}
        if self.memory is not None:
            # Half for mapped rows; rows themselves, their copies and the libraries have the rest.
            self.params["memory_limit"] = parse_size(self.memory) // 2

    def _log(self) -> None:
        if self.verbose:
            logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        else:
            logging.basicConfig(level=logging.WARNING, format="asset: %(message)s", stream=sys.stderr)

    @property
    def raw(self) -> bool:
        """Whether the rows are those of a table as it is, to be encoded."""
        return self.scale == "auto" and self._kind in TABLES

    @property
    def encodes_arrays(self) -> bool:
        """Whether the rows are arrays of numbers that shall be encoded, as a race may do with them."""
        return self.numbers is not None and self.scale == "auto" and self._kind in ARRAYS

    @property
    def _kind(self) -> str:
        """The format of the rows."""
        return self.format or ("svmlight" if self.data == STANDARD_INPUT else find_format(self.data))

    @property
    def without_targets(self) -> bool:
        """Whether rows are learnt from without any targets."""
        return False

    def _table_encoder(self) -> TableEncoder:
        """What makes numbers of the columns; those of arrays are float32, as in Python."""
        return self.columns.encoder(np.dtype(self.dtype if self.raw else np.float32))

    @property
    def _reading(self) -> dict[str, Any]:
        return {"format": self.format, "zero_based": self.zero_based, "dtype": np.dtype(self.dtype)}

    # Rows ---------------------------------------------------------------------------------------

    def _open(self) -> RowSource:
        """The rows of the file."""
        source = open_rows(self.data, **self._opening)
        self._note(source)
        return source.unlabelled() if self.without_targets else source

    @property
    def _opening(self) -> dict[str, Any]:
        """How the file of the rows is opened."""
        raw = self.columns.reading() if self.raw else None
        found = {"target": self.target, "n_features": self.n_features, "raw": raw, **self._reading}
        return {**found, "targets": False} if self.without_targets else found

    def _note(self, source: RowSource) -> None:
        """Keep what is to be told of the rows, and look at the header of those of ``--test``."""
        width = source.n_features
        if self.n_features is not None and width is not None and width != self.n_features:
            raise UsageError(f"--n-features {self.n_features}: {source.name} has {width} features.")
        columns = getattr(source, "columns", None)
        self.told: dict[str, Any] = {
            "data": source.name,
            "format": self.format or find_format(self.data),
            "target": self.target if columns is None else columns.target,
            **self.columns.told,
        }
        if self.test is not None:  # what is wrong with its header is wrong before the training too
            features = source.feature_names if self.raw else None
            options = {"target": self._test_target, "features": features, "raw": self._opening["raw"]}
            open_rows(self.test, targets=not self.without_targets, **options, **self._reading)

    @property
    def _test_target(self) -> str | None:
        return same_target(self.told, self.test or "", self.format)

    def _scan(self, source: RowSource, *, fingerprint: bool = False) -> Scanned:
        scaling = None if self.scale in ("none", "auto") else ColumnScaling(self.scale)
        scanned = scan_for(
            source,
            **self._sampling,
            memory_limit=self.params.get("memory_limit"),
            random_state=self.seed,
            fingerprint=fingerprint,
            observe=None if scaling is None else scaling.observe,
            too_large=self._check_stream,
        )
        if scaling is None:
            return scanned
        self.scaler = scaling.finish(scanned.summary.n_features)
        return scanned.transformed(self.scaler.transform)

    def _scan_on_cluster(self, client: Any) -> Any:
        """The files of the rows, which workers have read once."""
        from asset_svm.dask.files import RowFiles

        files = RowFiles(self.data, **self._opening)
        self._note(files.source)
        scaling = None if self.scale in ("none", "auto") else ColumnScaling(self.scale)
        self.summary, scaling = files.scan(client, scaling)
        if scaling is not None:
            self.scaler = scaling.finish(self.summary.n_features)
        return files

    def _collections(self, files: Any, *, numeric: bool) -> tuple[Any, Any]:
        """X and y of files that workers have read once, as they will learn from them."""
        assert self.summary is not None
        check_targets(self.summary.targets, numeric=numeric)
        return files.collections(self.summary, None if self.scaler is None else self.scaler.transform)

    def _encoded(
        self, scanned: Scanned, model: Estimator, *, means: bool, room: int | None = None
    ) -> Scanned:
        """The rows that are made of a table, with a word on its columns.

        They are held where they take at most ``room``, by default what the limit of memory says.
        """
        if scanned.summary.table is None:
            return scanned
        self._advise(scanned.summary.table)
        self.encoder = self._table_encoder()
        room = held_bytes(self.params.get("memory_limit")) if room is None else room
        task = task_of(model, settings_of(model))
        scanned = encode_rows(
            self.encoder, scanned, task, room, means=means, in_units=partial(in_units, model)
        )
        self._tell_columns(self.encoder)
        return scanned

    def _advise(self, table: TableSummary) -> None:
        """Warn of columns that are hardly meant to be what they look like."""
        for sentence in advice_of(table):
            warnings.warn(sentence, stacklevel=2)

    def _tell_columns(self, encoder: TableEncoder) -> None:
        """Say what became of the columns of a table."""
        for line in column_lines(encoder.encoding_.notes):
            print(f"asset: {line}", file=sys.stderr)

    @property
    def _sampling(self) -> dict[str, Any]:
        """What the samples of a scan are for."""
        return {name: self.params.get(name) for name in ("n_components", "n_cells", "relevance")}

    def _check_stream(self) -> None:
        """Refuse what cannot be done with rows that do not fit in memory."""
        raise NotImplementedError

    def _found_task(self) -> str:
        """What is to be learnt, by the targets where it is not said."""
        assert self.summary is not None
        if self.without_targets:
            return ONE_CLASS
        return found_task(self.task, self.summary.targets, probability=self.probability)

    # The model ----------------------------------------------------------------------------------

    def _calibrated(self, estimator: Estimator, held: Block | None) -> ScaledModel:
        """The model, with probabilities if they are asked for and Ctrl-C does not come in between."""
        if not self.probability or self.interrupt.asked:
            return ScaledModel(estimator, self.scaler)
        assert self.summary is not None and held is not None
        assert isinstance(estimator, AssetClassifier)
        rows = labelled(held, self.summary, numeric=False)
        whole = estimator.n_cells is not None  # there is no part of a fit of cells
        second = Display(regression=False, what="calibrating", at_once=whole)
        calibrated = CalibratedClassifier(estimator)
        try:
            with second.shown() as watch:
                calibrated.fit(rows.X, rows.y, watch=watch)
        except KeyboardInterrupt:
            if not whole:  # asked for a second time
                raise
            second.interrupt.asked = True
        self.interrupt = second.interrupt
        return ScaledModel(estimator if self.interrupt.asked else calibrated, self.scaler)

    @property
    def _path(self) -> Path:
        """The file that the model goes to."""
        stem = "" if self.data == STANDARD_INPUT else Path(self.data).resolve().name.split(".")[0]
        stem = re.sub(r"[*?\[\]!]", "", stem).rstrip("-_")  # of a pattern
        return Path(self.output or f"{stem or 'model'}.asset")

    def _scores(self, model: ScaledModel, data: str, target: str | None) -> Scores:
        """The scores of a model on the rows of a file."""
        options = {**self._reading, "target": target, "targets": not self.without_targets}
        rows = rows_for(model, data, self.told, **options)
        return score_rows(model, rows, names_of_outputs(model, self.told))

    def _end(
        self,
        done: str,
        source: RowSource,
        model: ScaledModel,
        lines: list[list[str]],
        page: Callable[..., Page],
        so_far: str,
        where: str = "",
        command: str = "",
        **found: Any,
    ) -> None:
        """Save the model, tell what was done, and write the report; raise after Ctrl-C.

        ``lines`` tell of the model, ``page`` makes the report of scores, the path and the rows scored,
        ``so_far`` and ``where`` say what a run that was cut leaves, ``command`` what makes the model
        again, ``found`` goes into the provenance.
        """
        told = {**self.told, "rows": getattr(self.summary, "n_rows", None), **found}
        save(model.whole, self._path, resumable=self.resumable, provenance=told)
        scores = None if self.test is None else self._scores(model, self.test, self._test_target)
        lines = [*lines, ["saved in", str(self._path)]]
        if scores is not None:
            lines += [[f"test {name}", value] for name, value in score_lines(scores)]
        show(done, lines)
        if command:  # below the table, which would break it into pieces
            print(command)
        if self.report is not None:
            if scores is None and source.rereadable:
                scores = self._scores(model, self.data, self.target)
            page(scores, self._path, self.test or self.data).write(self.report)
            print(f"report: {self.report}")
        if self.interrupt.asked:
            lacking = self.probability and not isinstance(model.estimator, CalibratedClassifier)
            what = f"{so_far}, without probabilities," if lacking else so_far
            raise Interrupted(f"interrupted; {what} is in {self._path}{where}.")
