"""``asset tune``: a file in, the best of many models out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from asset_svm.cli.options import Interrupted, UsageError, parse_seconds
from asset_svm.cli.run import Run
from asset_svm.cli.scores import Scores
from asset_svm.cli.search_progress import SearchDisplay, scored, shown_count
from asset_svm.cli.tables import model_lines, score_lines, show
from asset_svm.data.source import RowSource
from asset_svm.families.labels import labelled
from asset_svm.search import AssetClassifierCV, AssetRegressorCV


@dataclass
class Tuning(Run):
    """The options of a search, as written."""

    def run(self) -> None:
        """Search, train the best, save, tell."""
        self._check()
        self._log()
        source = self._open()
        scanned = self._scan(source)
        self.summary = scanned.summary
        search, held = self._search(self._found_task()), scanned.held
        assert held is not None  # else _check_stream has told so
        rows = labelled(held, self.summary, numeric=is_regressor(search))
        display = SearchDisplay()
        with display.shown() as watch:
            search.fit_watched(
                rows.X, rows.y, None, watch=watch, foreseen=display.foresee, refitting=display.refit
            )
        estimator = search.best_estimator_
        names = scanned.source.feature_names
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator = self._calibrated(estimator, held, display.interrupt)
        model = self._whole(estimator)
        told = {
            "search_score": search.best_score_,
            "search_candidates": len(scored(search)),
        }
        path = self._save(model, **told)
        scores = self._test_scores(model)
        self._tell(search, estimator, path, scores)
        if self.report is not None:
            self._write_report(search, model, source, path, scores)
        if display.interrupt.asked:
            what = "the best model so far" + (", without probabilities," if self.probability else "")
            raise Interrupted(f"interrupted; {what} is in {path}.")

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
            self._search(task).check_parameters()

    def _search(self, task: str) -> Any:
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

    def _tell(self, search: Any, estimator: Any, path: Path, scores: Scores | None) -> None:
        lines = [[f"best {name}", f"{value:.6g}"] for name, value in search.best_params_.items()]
        lines += [
            ["score", f"{search.best_score_:.5f}"],
            ["candidates", shown_count(search)],
            ["splits", str(search.n_splits_)],
            ["search seconds", f"{search.search_time_:.2f}"],
            ["training seconds", f"{search.refit_time_:.2f}"],
            *model_lines(self.scaler, estimator),
            ["saved in", str(path)],
        ]
        if scores is not None:
            lines += [[f"test {name}", value] for name, value in score_lines(scores)]
        show("tuned", ["", ""], lines)

    def _write_report(
        self, search: Any, model: Any, source: RowSource, path: Path, scores: Scores | None
    ) -> None:
        from asset_svm.cli.search_report import search_page

        where = self.test or self.data
        if scores is None:
            scores = self._training_scores(model, source)
        assert self.report is not None and self.summary is not None
        search_page(search, model, self.summary, scores, path, where).write(self.report)
        print(f"report: {self.report}")
