"""What an epoch in the metric costs beside the robust rule's, and what the pilot costs.

    ASSET_DATA=folder python benchmarks/epoch_cost.py [--sets ijcnn,adult,mnist]

Ratios of medians over alternating fits in one process. Three epochs: the mean one of a run of 25 (the
default), where rows are mapped in the first; one after the first (the median); and the first. The
pilot's time is that of the call itself.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import datasets as data
from asset_svm import AssetClassifier
from timing import timed_pilot


def main() -> None:
    """Print one line a set and map."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="ijcnn,adult,mnist")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with timed_pilot() as spent:
        compare(arguments.sets.split(","), arguments.repeats, spent)


def compare(sets: list[str], repeats: int, spent: list[float]) -> None:
    """Fit both ways, alternating; ``spent`` gains the seconds of every pilot."""
    for name in sets:
        X, y, _, _ = data.paper_split(name, 0)
        paper = data.PAPER[name]
        for approximation in ("nystroem", "fourier"):
            epochs: dict[str, list[tuple[float, ...]]] = {"robust": [], "metric": []}
            shares = []
            for seed in range(repeats):
                for step, times in epochs.items():
                    model = AssetClassifier(
                        gamma=paper.sigma, lam=paper.lam, n_components=1024, random_state=seed,
                        approximation=approximation, step=step, sampling="shuffle", max_iter=25,
                    )  # fmt: skip
                    begun = time.perf_counter()
                    model.fit(X, y)
                    whole = time.perf_counter() - begun
                    seconds = [record["seconds"] for record in model.history_]
                    times.append((seconds[-1] / 25, float(np.median(np.diff(seconds))), seconds[0]))
                    if step == "metric":
                        shares.append(spent[-1] / whole)
            ours, papers = (np.median(epochs[step], axis=0) for step in ("metric", "robust"))
            mean, later, first = ours / papers
            print(
                f"{name:8}{approximation:10} metric / robust: mean epoch {mean:.2f}, "
                f"a later one {later:.2f}, the first {first:.2f}   "
                f"pilot {100 * np.median(shares):.1f} % of the fit",
                flush=True,
            )


if __name__ == "__main__":
    main()
