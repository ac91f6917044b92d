"""``asset tune``: a file in, the best of many models out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from asset_svm.cli.again import command_of
from asset_svm.cli.checkpoints import NAMES, check_checkpoint, check_options
from asset_svm.cli.cluster import check_dask, connected
from asset_svm.cli.columns import FOR_TABLES
from asset_svm.cli.options import FOR_CLASSES, UsageError, parse_seconds
from asset_svm.cli.progress import Interrupt
from asset_svm.cli.race_progress import RaceDisplay
from asset_svm.cli.run import Run
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.search_progress import SearchDisplay, scored, shown_count, shown_value
from asset_svm.cli.tables import model_lines
from asset_svm.data.compression import STANDARD_INPUT
from asset_svm.data.scan import Scanned
from asset_svm.data.source import RowSource
from asset_svm.estimators import AssetClassifier, AssetRegressor
from asset_svm.estimators.files import check_streamed
from asset_svm.estimators.inside import encoder_of, settings_of, take_encoder
from asset_svm.families.labels import labelled
from asset_svm.pages import Page
from asset_svm.search import AssetClassifierCV, AssetRegressorCV
from asset_svm.search.all_rows import SAMPLING
from asset_svm.search.base import SearchEstimator
from asset_svm.search.inside import (
    check_parameters,
    journal_of,
    learner_of,
    learnt_rows,
    looked_rows,
    races,
    search_told,
    search_watched,
)
from asset_svm.search.journal import Journal
from asset_svm.storage.checkpoint import Checkpoint, SavedRun


@dataclass
class Tuning(Run):
    """The options of ``asset tune``, as they are written; of ``asset train --auto`` it always races."""

    always_races: bool = False
    dask: str | None = None
    checkpoint: str | None = None
    every: str = "60s"
    resume: bool = False

    def run(self) -> None:
        """Search, train the best, save, tell."""
        self._check()
        self._log()
        self.store: Checkpoint | None = None
        if self.dask is not None:
            search, source = self._search_on_cluster(self.dask)
            model = ScaledModel(search.best_estimator_, self.scaler)
            self._finish(search, source, model)
            return
        source = self._open()
        resumed = self._resumed()
        scanned = self._scan(source, fingerprint=self.store is not None and resumed is None)
        self.summary, held = scanned.summary, scanned.held
        self.looked = len(held or scanned.summary.spread or scanned.summary.sample)
        search = self._search(self._found_task())
        self.journal: Journal | None = None
        if self.store is not None:
            self.journal = journal_of(search, self.store, scanned, resumed, self.seed)
        estimator = self._raced(search, scanned) if races(search) else self._searched(search, scanned)
        if encoder_of(estimator) is None and scanned.source.feature_names is not None:
            estimator.feature_names_in_ = np.array(scanned.source.feature_names, dtype=object)
        if races(search) and self.probability:
            found = search.calibrated_
            # Once more, for the names that the estimator has got since.
            model = ScaledModel(found.calibrated(found.slope_, found.offset_), self.scaler)
        else:
            model = self._calibrated(estimator, held)
        self._finish(search, source, model)

    def _resumed(self) -> SavedRun | None:
        """The search to go on with, if one is asked for and there; opens the checkpoint."""
        if self.checkpoint is None:
            return None
        every = parse_seconds(self.every, "--checkpoint-every")
        self.store = Checkpoint(self.checkpoint, every=every, resume=self.resume)
        resumed, now = self.store.read_run(), {name: getattr(self, name) for name in NAMES}
        if resumed is not None:
            check_options(self.store, resumed, now, search=True)
            print(f"asset: going on with the search in {self.store.folder}.", file=sys.stderr)
        elif self.resume:
            print(f"asset: no search in {self.checkpoint}; beginning one.", file=sys.stderr)
        self.store.notes = {"options": now}
        return resumed

    def _finish(self, search: SearchEstimator, source: RowSource, model: ScaledModel) -> None:
        """Save the best model, and tell of it and of the search."""
        told = ""
        if races(search):
            self.command = command_of(self, search.best_params_)
            what = "the best by itself" if len(search.ensemble_) > 1 else "again"
            told = f"{what}: {self.command}"
        self._end(
            "trained" if self.always_races else "tuned",
            source,
            model,
            self._lines(search, model),
            partial(self._page, search, model),
            "the best model so far",
            "" if self.store is None else f", the checkpoint in {self.store.folder}",
            command=told,
            search_score=search.best_score_,
            search_candidates=len(scored(search)),
        )
        if self.store is not None:
            self.store.remove()

    # The search ---------------------------------------------------------------------------------

    def _raced(self, search: SearchEstimator, scanned: Scanned) -> Any:
        """The best model of a race, which takes a table as it is: what is made of it is learnt, too."""
        if scanned.summary.table is not None:
            self._advise(scanned.summary.table)
        self._watched(search, RaceDisplay(regression=is_regressor(search)), scanned)
        encoder = encoder_of(search.best_estimator_)
        if encoder is not None:
            self._tell_columns(encoder)
        return search.best_estimator_

    def _searched(self, search: SearchEstimator, scanned: Scanned) -> Any:
        """The best model of a grid."""
        display = SearchDisplay(regression=is_regressor(search))
        if scanned.held is None:
            if self.raw:
                search.set_params(encoder=self._table_encoder())
            self._watched(search, display, scanned)
            return search.best_estimator_
        # A search splits the rows itself: targets of those that judge have no part in any number.
        kind = AssetRegressor if is_regressor(search) else AssetClassifier
        self._watched(search, display, self._encoded(scanned, kind(), means=False))
        estimator = search.best_estimator_
        if self.encoder is not None:
            estimator.set_params(encoder=self._table_encoder())
            take_encoder(estimator, self.encoder)
        return estimator

    def _watched(self, search: SearchEstimator, display: SearchDisplay, scanned: Scanned) -> None:
        """Search these rows, and show how it goes."""
        assert self.summary is not None
        X: Any = scanned
        y = None
        if scanned.held is not None:
            rows = labelled(scanned.held, self.summary, numeric=is_regressor(search))
            X, y = rows.X, rows.y
        self.interrupt = display.interrupt
        with display.shown() as watch:
            if isinstance(display, RaceDisplay):
                display.begin(search.time_limit)
            search_watched(
                search,
                X,
                y,
                watch=watch,
                foreseen=display.foresee,
                refitting=display.refit,
                training=display.train,
                temp_dir=self._path.parent,
                journal=self.journal,
            )

    def _search_on_cluster(self, where: str) -> tuple[SearchEstimator, RowSource]:
        """The search, whose rows the workers of a cluster read; heats are told as they end."""
        with connected(where, self.jobs) as client:
            files = self._scan_on_cluster(client)
            search: Any = self._search(self._found_task()).set_params(client=client)
            X, y = self._collections(files, numeric=is_regressor(search))
            if self.raw:  # of a grid too, whose rows are encoded elsewhere on one machine
                search.set_params(encoder=self._table_encoder())
            search_told(search, X, y, lambda heat: print(f"asset: {heat}", file=sys.stderr))
            self.looked, self.interrupt = looked_rows(search), Interrupt()
            encoder = encoder_of(search.best_estimator_)
            if encoder is not None:
                self._tell_columns(encoder)
            return search.to_local(), files.source

    # What is told -------------------------------------------------------------------------------

    def _lines(self, search: SearchEstimator, model: ScaledModel) -> list[list[str]]:
        """What is told of a search, and of its best model."""
        best = dict(search.best_params_)
        encoder = best.pop("encoder", None)
        if encoder is not None:
            best["numbers"] = encoder.numbers
        found = {name: value for name, value in best.items() if value is not None}
        lines = [
            *([f"best {name}", shown_value(value, 6)] for name, value in found.items()),
            ["score", f"{search.best_score_:.5f}"],
            ["candidates", shown_count(search)],
            ["splits", str(search.n_splits_)],
            ["search seconds", f"{search.search_time_:.2f}"],
            ["training seconds", f"{search.refit_time_:.2f}"],
        ]
        assert self.summary is not None
        if self.looked < self.summary.n_rows:
            lines.append(["rows looked at", f"{self.looked} of {self.summary.n_rows}"])
        if races(search) and learnt_rows(search) < self.summary.n_rows:
            lines.append(["rows learnt from", f"{learnt_rows(search)} of {self.summary.n_rows}"])
        return [*lines, *model_lines(model)]

    def _page(self, search: SearchEstimator, model: ScaledModel, *scored: Any) -> Page:
        if races(search):
            from asset_svm.cli.race_report import race_page

            return race_page(search, model, self.summary, self.command, *scored)
        from asset_svm.cli.search_report import search_page

        return search_page(search, model, self.summary, *scored)

    # Options ------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_checkpoint(self.data, self.checkpoint, resume=self.resume)
        if self.dask is not None:
            self._check_cluster()
        self._check_files()
        if self.time_limit is not None:
            self.params["time_limit"] = parse_seconds(self.time_limit, "--time-limit")
        if self.params.get("gammas") is not None and "gamma" in self.params:
            raise UsageError(
                "--gamma is one value and --gammas are those to try; leave one of them out."
            )
        if "epsilons" in self.params and "epsilon" in self.params:
            raise UsageError(
                "--epsilon is one value and --epsilons are those to try; leave one of them out."
            )
        for task in ("classification", "regression") if self.task == "auto" else (self.task,):
            params = self.params
            if task == "classification" and "epsilons" in params and self.task == "auto":
                continue
            if task == "regression" and self.task == "auto" and not FOR_CLASSES.isdisjoint(params):
                continue
            search = self._search(task)
            check_parameters(search)
            self._check_kind(search)

    def _check_cluster(self) -> None:
        """Refuse options that do not go with ``--dask``."""
        check_dask()
        if self.data == STANDARD_INPUT:
            raise UsageError("--dask: workers cannot read standard input; save it to a file.")
        for option, given in (
            ("--probability", self.probability),
            ("--ensemble", self.parameters.get("ensemble")),
            ("--checkpoint", self.checkpoint is not None),
        ):
            if given:
                raise UsageError(f"{option} does not go with --dask; leave one of them out.")
        if self.encodes_arrays:
            raise UsageError(
                f"--numbers {self.numbers}: arrays are encoded in memory, which --dask does without; "
                "leave one of them out."
            )

    def _check_kind(self, search: SearchEstimator) -> None:
        """Refuse what goes with the other kind of search."""
        if races(search):
            return
        if self.always_races:  # all else that asks for a grid is no option of training with a race
            raise UsageError(
                f"--kernel {search.kernel}: no kernel that races; leave it out, or train without "
                "--auto."
            )
        if self.encodes_arrays:
            self.columns.check_none(FOR_TABLES)

    def _search(self, task: str) -> SearchEstimator:
        params = dict(self.params)
        classifier, regressor = AssetClassifierCV, AssetRegressorCV
        if self.dask is not None:
            from asset_svm import dask as on_cluster

            classifier, regressor = on_cluster.DaskAssetClassifierCV, on_cluster.DaskAssetRegressorCV
        if task == "regression":
            for name in sorted(FOR_CLASSES & params.keys()):
                raise UsageError(f"--{name.replace('_', '-')} is for classification.")
            return self._settled(regressor(**params))
        if "epsilons" in params:
            raise UsageError("--epsilons is for regression.")
        params.pop("epsilon", None)
        return self._settled(classifier(**params))

    def _settled(self, search: SearchEstimator) -> SearchEstimator:
        """The search; a race is told what becomes of columns, a grid has rows that are encoded.

        A race has probabilities of its own decisions; one model alone goes on learning.
        """
        if not races(search):
            return search
        if self.resumable:
            if self.params.get("ensemble"):
                raise UsageError(
                    "--ensemble may make a mean of several models, which does not go on learning, as "
                    "--resumable asks for; leave one of them out."
                )
            search.set_params(ensemble=False)
        if self.probability and not is_regressor(search):
            search.set_params(probability=True)
        if self.raw or self.encodes_arrays:
            return search.set_params(encoder=self._table_encoder())
        # Columns of arrays race as they are and encoded, unless somebody has said how to scale them.
        return search if self.scale == "auto" else search.set_params(encoder=None)

    @property
    def _sampling(self) -> dict[str, Any]:
        return SAMPLING | {"n_components": self.params.get("n_components")}

    def _check_stream(self) -> None:
        """Refuse what the best model cannot have where it learns from the file."""
        task = "classification" if self.task == "auto" else self.task
        search = self._search(task)
        check_streamed(settings_of(learner_of(search)))
        if self.probability and not races(search):
            raise UsageError(
                "--probability trains on folds of rows in memory, and these are too many for it; raise "
                "--memory, or leave the options of a grid out: a race has decisions of its own."
            )
