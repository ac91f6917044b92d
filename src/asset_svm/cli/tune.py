"""``asset tune``: a file in, the best of many models out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from asset_svm.cli.options import UsageError, parse_seconds
from asset_svm.cli.run import Run
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.search_progress import SearchDisplay, scored, shown_count
from asset_svm.cli.tables import model_lines
from asset_svm.estimators import AssetClassifier, AssetRegressor
from asset_svm.estimators.inside import take_encoder
from asset_svm.families.labels import labelled
from asset_svm.pages import Page
from asset_svm.search import AssetClassifierCV, AssetRegressorCV
from asset_svm.search.base import SearchEstimator
from asset_svm.search.inside import check_parameters, search_watched


@dataclass
class Tuning(Run):
    """The options of ``asset tune``, as they are written."""

    def run(self) -> None:
        """Search, train the best, save, tell."""
        self._check()
        self._log()
        source = self._open()
        scanned = self._scan(source)
        self.summary, held = scanned.summary, scanned.held
        assert held is not None  # else _check_stream has told so
        search = self._search(self._found_task())
        # A search splits the rows itself: targets of those that judge have no part in any number.
        kind = AssetRegressor if is_regressor(search) else AssetClassifier
        encoded = self._encoded(scanned, kind(), means=False).held
        assert encoded is not None
        rows = labelled(encoded, self.summary, numeric=is_regressor(search))
        display = SearchDisplay()
        self.interrupt = display.interrupt
        with display.shown() as watch:
            search_watched(
                search,
                rows.X,
                rows.y,
                watch=watch,
                foreseen=display.foresee,
                refitting=display.refit,
            )
        estimator = search.best_estimator_
        names = scanned.source.feature_names
        if self.encoder is not None:
            estimator.set_params(encoder=self.columns.encoder(np.dtype(self.dtype)))
            take_encoder(estimator, self.encoder)
        elif names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        model = self._calibrated(estimator, held)
        lines = [
            *([f"best {name}", f"{value:.6g}"] for name, value in search.best_params_.items()),
            ["score", f"{search.best_score_:.5f}"],
            ["candidates", shown_count(search)],
            ["splits", str(search.n_splits_)],
            ["search seconds", f"{search.search_time_:.2f}"],
            ["training seconds", f"{search.refit_time_:.2f}"],
            *model_lines(model),
        ]
        page = partial(self._page, search, model)
        self._end(
            "tuned",
            source,
            model,
            lines,
            page,
            "the best model so far",
            search_score=search.best_score_,
            search_candidates=len(scored(search)),
        )

    def _page(self, search: SearchEstimator, model: ScaledModel, *scored: Any) -> Page:
        from asset_svm.cli.search_report import search_page

        return search_page(search, model, self.summary, *scored)

    def _check(self) -> None:
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
            if task == "regression" and "class_weight" in params and self.task == "auto":
                continue
            check_parameters(self._search(task))

    def _search(self, task: str) -> SearchEstimator:
        params = dict(self.params)
        if task == "regression":
            if "class_weight" in params:
                raise UsageError("--class-weight is for classification.")
            return AssetRegressorCV(**params)
        if "epsilons" in params:
            raise UsageError("--epsilons is for regression.")
        params.pop("epsilon", None)
        return AssetClassifierCV(**params)

    def _check_stream(self) -> None:
        raise UsageError(
            "A search needs all rows in memory, and these are too many for it; raise --memory, or tune "
            "on a part of the rows and give asset train what was found."
        )
