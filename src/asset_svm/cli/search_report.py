"""The page about a search: every candidate, the best of them, and the errors of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asset_svm.cli.output_scores import Scores
from asset_svm.cli.report import report_page
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.search_progress import ScoreLine, score_lines_of, shown_count, shown_params
from asset_svm.data.scan import Summary
from asset_svm.pages import Facts, Line, Page, Part, Section, Table, Value, heat_map, line_chart
from asset_svm.search.base import SearchEstimator

MOST_LISTED = 10
"""The most candidates in the table of the best."""


def search_page(
    search: SearchEstimator,
    model: ScaledModel,
    summary: Summary | None,
    scores: Scores | None,
    path: Path,
    scored_on: str,
) -> Page:
    """The page about a fitted search, and the best model, trained on all rows."""
    return report_page(
        f"Search report: {path.name}",
        f"{shown_count(search)} candidates in {search.search_time_:.1f} s, the best "
        f"trained in {search.refit_time_:.1f} s",
        model,
        summary,
        scores,
        scored_on,
        before=[Section("Search", _candidates(search))],
    )


def _candidates(search: SearchEstimator) -> list[Part]:
    results = search.cv_results_
    facts: dict[str, Value] = {
        "best": shown_params(search.best_params_),
        "score": f"{search.best_score_:.5f}",
        "splits": search.n_splits_,
    }
    parts: list[Part] = [Facts(facts), _best_of(results)]
    mean, deviation = results["mean_test_score"], results["std_test_score"]
    lines = score_lines_of(results["params"], mean, deviation)
    for epsilon in dict.fromkeys(line.epsilon for line in lines):
        chosen = [line for line in lines if line.epsilon == epsilon]
        suffix = "" if epsilon is None else f", epsilon = {epsilon:.4g}"
        if len(chosen) > 1:
            parts.append(_map(chosen, suffix, search))
        parts.append(_curves(chosen, suffix))
    return parts


def _best_of(results: dict[str, Any]) -> Table:
    order = np.argsort(results["rank_test_score"], kind="stable")[:MOST_LISTED]
    names = list(results["params"][0])
    rows: list[list[Value]] = []
    for i in order[np.isfinite(results["mean_test_score"][order])]:
        found = [f"{results['params'][i][name]:.4g}" for name in names]
        scores = [f"{results[key][i]:.5f}" for key in ("mean_test_score", "std_test_score")]
        rows.append([*found, *scores, int(results["n_resources"][i])])
    return Table([*names, "score", "deviation", "rows"], rows, "The best candidates")


def _map(lines: list[ScoreLine], suffix: str, search: SearchEstimator) -> Part:
    """Scores as shades, gammas below each other; from the median up, so that the best stand out."""
    values = np.array([line.mean for line in lines])
    best = search.best_params_
    marked = None
    if lines[0].epsilon == best.get("epsilon"):
        row = [line.gamma for line in lines].index(best["gamma"])
        marked = (row, int(np.flatnonzero(lines[row].Cs == best["C"])[0]))
    return heat_map(
        values,
        [f"{line.gamma:.3g}" for line in lines],
        [f"{C:.3g}" for C in lines[0].Cs],
        "C",
        "gamma",
        title=f"Score of C and gamma{suffix}",
        caption="Shades begin at the median. Gammas that fell behind early were tried on fewer rows.",
        low=float(np.nanmedian(values)),
        marked=marked,
    )


def _curves(lines: list[ScoreLine], suffix: str) -> Part:
    curves = []
    for line in lines:
        label = "" if line.gamma is None else f"gamma = {line.gamma:.3g}"
        known = np.isfinite(line.mean)
        if known.any():
            mean, spread = line.mean[known], line.deviation[known]
            curves.append(Line(label, line.Cs[known], mean, mean - spread, mean + spread))
    caption = "The mean over the splits, and a standard deviation to either side."
    return line_chart(
        curves, "C", "score", title=f"Score over C{suffix}", caption=caption, x_scale="log"
    )
