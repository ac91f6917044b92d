"""The paper's four algorithms on ADULT, beside the paper's numbers: ``python -m asset_svm.cli.demo``.

Rows, split and parameters are the paper's (Lee & Wright, Tables 2 and 3): all 48 842 rows, of which a
random 32 561 train and 8 141 test, lambda = 3.07e-8, sigma = 0.001, s = 512, no intercept. The paper
gives no number for its Fourier versions on ADULT, and stopped when its test error had matched CPNY's;
here each algorithm runs a fixed number of epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from asset_svm import clock

TRAIN, TEST = 32_561, 8_141
LAM, SIGMA, COMPONENTS, EPOCHS = 3.07e-8, 0.001, 512, 30


@dataclass(frozen=True)
class Row:
    """One algorithm, and what the paper's Table 3 (s = 512) says of it."""

    name: str
    options: dict[str, Any]
    paper_error: str = "-"
    paper_time: str = "-"


ROWS = (
    Row("ASSET_M", dict(step="robust"), "15.1 %", "23 s"),
    Row("ASSET*_M", dict(step="strong"), "15.1 %", "24 s"),
    Row("ASSET_F", dict(step="robust", approximation="fourier")),
    Row("ASSET*_F", dict(step="strong", approximation="fourier")),
    Row("step='auto'", dict(step="auto", max_iter=3)),
)


class _Advance:
    """A scikit-learn callback that moves a bar on at the end of every epoch."""

    def __init__(self, progress: Any, task: Any):
        self.progress, self.task = progress, task

    def setup(self, estimator: BaseEstimator, context: Any) -> None:
        """Nothing to prepare."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: Any) -> None:
        """Nothing to show yet."""

    def on_fit_task_end(self, estimator: BaseEstimator, context: Any) -> bool:
        """Move the bar on, where the task was an epoch."""
        if context.task_name == "epoch":
            self.progress.advance(self.task)
        return False

    def teardown(self, estimator: BaseEstimator, context: Any) -> None:
        """Nothing to clean up."""


def main(epochs: int = EPOCHS) -> None:
    """Train and score every algorithm, and print a table."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.table import Table
    except ImportError:
        raise SystemExit('The demo needs rich; run: pip install "asset-svm[cli]"') from None
    from asset_svm import AssetClassifier, load_adult

    console = Console()
    X, y, _ = load_adult()
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:TRAIN], rows[-TEST:]
    common = dict(gamma=SIGMA, lam=LAM, n_components=COMPONENTS, fit_intercept=False, random_state=0)
    with console.status("compiling (the first time only)"):
        for step in ("robust", "metric"):
            AssetClassifier(max_iter=1, n_components=8, step=step).fit(X[:64], y[:64])
    table = Table(title=f"ADULT: {TRAIN} rows train, {TEST} rows test, s = {COMPONENTS}")
    for title in ("algorithm", "epochs", "test error", "training", "paper: error", "paper: time"):
        table.add_column(title, justify="left" if title == "algorithm" else "right")
    columns = (
        TextColumn("{task.description:22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        for row in ROWS:
            options: dict[str, Any] = {"max_iter": epochs, **common, **row.options}
            task = progress.add_task(row.name, total=options["max_iter"])
            model = AssetClassifier(**options)
            if hasattr(model, "set_callbacks"):
                model.set_callbacks(_Advance(progress, task))
            begun = clock.now()
            model.fit(X[train], y[train])
            seconds = clock.now() - begun
            progress.update(task, completed=options["max_iter"])
            error = 100.0 * (1.0 - model.score(X[test], y[test]))
            table.add_row(
                row.name,
                str(model.n_iter_),
                f"{error:.1f} %",
                f"{seconds:.2f} s",
                row.paper_error,
                row.paper_time,
            )
    console.print(table)
    console.print(
        "The paper's times are of 2012, on a 2.66 GHz processor, to the first checkpoint that "
        "matched CPNY's test error."
    )


if __name__ == "__main__":
    main()
