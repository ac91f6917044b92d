"""The page about a race: scores over time, the leaderboard, the command that trains the best again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asset_svm.cli.output_scores import Scores
from asset_svm.cli.report import report_page
from asset_svm.cli.scoring import ScaledModel
from asset_svm.cli.search_progress import shown_count, shown_params
from asset_svm.data.scan import Summary
from asset_svm.pages import (
    Code,
    Facts,
    Figure,
    Line,
    Page,
    Paragraph,
    Part,
    Section,
    Table,
    Value,
    line_chart,
)
from asset_svm.search.base import SearchEstimator
from asset_svm.search.inside import leaderboard, learnt_rows

MOST_LISTED = 20
"""The most candidates of the table."""
MOST_SHAPES = 8
"""The most kinds of models that have a line: there are so many colours."""
FAR = 4.0
"""Scores that are so many times as far from the best as the middle one are left out of the chart."""
FIRST_SECOND = 0.01
"""The beginning of the time axis, which has no 0."""


def race_page(
    search: SearchEstimator,
    model: ScaledModel,
    summary: Summary | None,
    command: str,
    scores: Scores | None,
    path: Path,
    scored_on: str,
) -> Page:
    """The page about a race, and its best model."""
    return report_page(
        f"Search report: {path.name}",
        f"{shown_count(search)} candidates in {search.search_time_:.1f} s, the best "
        f"trained in {search.refit_time_:.1f} s",
        model,
        summary,
        scores,
        scored_on,
        before=[Section("Race", _race(search, summary, command))],
    )


def _race(search: SearchEstimator, summary: Summary | None, command: str) -> list[Part]:
    best = dict(search.best_params_)
    encoder = best.pop("encoder", None)
    if encoder is not None:
        best["numbers"] = encoder.numbers
    facts: dict[str, Value] = {
        "best": shown_params({name: value for name, value in best.items() if value is not None}),
        "score": f"{search.best_score_:.5f}",
        "splits": search.n_splits_,
    }
    told, parts = "This command trains the best model again:", list[Part]()
    if len(search.ensemble_) > 1:
        told = "The model is a mean of several. This command trains the best candidate by itself:"
        rows: list[list[Value]] = [[name, f"{weight:.3f}"] for name, weight in search.ensemble_]
        parts.append(Table(["candidate", "weight"], rows, "The models of the mean"))
    if summary is not None and learnt_rows(search) < summary.n_rows:
        facts["rows learnt from"] = f"{learnt_rows(search)} of {summary.n_rows}: time was short"
        told = f"{told[:-1]}, on all rows:"
    parts += [Paragraph(told), Code(command), _over_time(search), _listed(search)]
    return [Facts(facts), *parts]


def _listed(search: SearchEstimator) -> Table:
    board = leaderboard(search)
    rows: list[list[Value]] = []
    for number in range(min(MOST_LISTED, len(board["candidate"]))):
        numbers = (f"{board[name][number]:.5f}" for name in ("score", "error"))
        seconds = f"{board['at'][number]:.2f}"
        rows.append([board["candidate"][number], *numbers, board["rows"][number], seconds])
    return Table(["candidate", "score", "± error", "rows", "at second"], rows, "The best candidates")


def _over_time(search: SearchEstimator) -> Figure:
    """The best score of every look, a line a kind of model, and what would have been taken when."""
    results, board = search.cv_results_, leaderboard(search)
    places = np.asarray(results["rank_test_score"]) - 1
    at = np.maximum(np.asarray(board["at"], float)[places], FIRST_SECOND)
    score, rows = np.asarray(results["mean_test_score"], float), np.asarray(results["n_resources"])
    low = lowest_shown(score)
    shapes: dict[tuple[Any, ...], list[int]] = {}
    for number in np.argsort(places).tolist():  # the best first
        shapes.setdefault(shape_of(results["params"][number]), []).append(number)
    lines, left_out = [], bool((score < low).any())
    for shape in list(shapes)[:MOST_SHAPES]:
        x, y = best_of_looks(at[shapes[shape]], score[shapes[shape]])
        if (y >= low).any():
            lines.append(Line(", ".join(shape), x[y >= low], y[y >= low]))
    x, y = best_so_far(at, score, rows)
    lines.append(Line("what is best so far", x, np.maximum(y, low), steps=True))
    caption = "The best is one of those that have learnt from the most rows so far."
    if len(shapes) > MOST_SHAPES:
        caption += f" The first {MOST_SHAPES} of {len(shapes)} kinds of models have a line."
    if left_out:
        caption += " Scores far below the others are left out."
    return line_chart(
        lines, "seconds", "score", title="Score over time", caption=caption, x_scale="log"
    )


def shape_of(params: dict[str, Any]) -> tuple[str, ...]:
    """The kind of a candidate's model: kernel, relevance, family, encoding."""
    relevance = () if params["relevance"] is None else (str(params["relevance"]),)
    family = "cells" if params["cells"] else "one map"
    encoding = "as given" if params["encoding"] == "given" else str(params["encoding"])
    return (str(params["kernel"]), *relevance, family, encoding)


def best_of_looks(at: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moments of looks, in order, and the best score of each: one look tries several Cs."""
    moments = np.unique(at)
    return moments, np.array([np.nanmax(score[at == moment], initial=-np.inf) for moment in moments])


def best_so_far(at: np.ndarray, score: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moments of looks, and the best score of those on the most rows until then."""
    moments, best = np.unique(at), []
    for moment in moments:
        seen = at <= moment
        most = seen & (rows == rows[seen].max())
        best.append(np.nanmax(score[most], initial=-np.inf))
    return moments, np.array(best)


def lowest_shown(score: np.ndarray) -> float:
    """The lowest score of the chart: one bad model must not press all others into a line."""
    known = score[np.isfinite(score)]
    best = float(known.max())
    return best - FAR * max(best - float(np.median(known)), 1e-12)
