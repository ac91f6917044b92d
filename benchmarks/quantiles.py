"""Quantiles beside boosted trees: what nine of them cost and are worth, their order, and intervals.

    ASSET_DATA=folder python benchmarks/quantiles.py [--parts time,loss,order,intervals] [--sets ...]

- time: nine quantiles against one ``AssetRegressor`` with the same map or cells, the medians of
  alternating runs; and nine fits of HistGradientBoostingRegressor(loss="quantile").
- loss: the mean pinball loss of nine quantiles on test rows. Ours have the settings that a race of
  ``AssetRegressorCV`` finds on the training rows, theirs the best of ``THEIRS`` by validation rows,
  which choose our C, too; both learn from the training rows alone.
- order: how many rows have quantiles that cross, and the loss of models as they are, in order (what
  ``predict`` does), and with each quantile at least the one below it.
- intervals: the coverage of 90 % intervals over simulations of 1000 rows, noise growing with a column.

60 % of the rows train, 20 % validate, 20 % test; targets are in units of the standard deviation of the
training rows. Results go to a JSON file with commit, CPU, threads and versions.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

import datasets as data
from asset_svm import AssetQuantileRegressor, AssetRegressor, AssetRegressorCV, TableEncoder
from speed import stamp

LEVELS = tuple(k / 10 for k in range(1, 10))
FEW = (0.1, 0.5, 0.9)
"""The quantiles by which settings are chosen."""
TIMES_C = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Times the C of the race, which is for |y - f|: the pinball loss of 1/2 is half of that."""
THEIRS: list[dict[str, Any]] = [
    {"learning_rate": rate, "max_iter": trees, "max_leaf_nodes": leaves}
    for rate, trees, leaves in ((0.1, 100, 31), (0.1, 200, 63), (0.1, 200, 127))
]
SIMULATIONS = 100
RACE = 30.0
"""Seconds of a race."""


@cache
def rows(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(X, y) to train, validate and test, y in units of the training rows."""
    dataset = data.SETS[name]
    X, y = dataset.read()
    parts = dataset.parts(len(y), 0)
    mean, spread = y[parts[0]].mean(), y[parts[0]].std()
    return [(X[part], (y[part] - mean) / spread) for part in parts]


def loss(predicted: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> float:
    """The mean pinball loss over the quantiles."""
    each = [mean_pinball_loss(y, f, alpha=q) for q, f in zip(levels, predicted.T, strict=True)]
    return float(np.mean(each))


def ours(levels: Sequence[float], X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    """A model of ours."""
    return AssetQuantileRegressor(quantiles=levels, **{"random_state": 0, **settings}).fit(X, y)


def trees(levels: Sequence[float], X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    """The function from rows to quantiles of as many boosted trees."""
    fits = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0, **settings).fit(X, y)
        for q in levels
    ]
    return lambda rows: np.column_stack([fit.predict(rows) for fit in fits])


@cache
def chosen(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of ours and of theirs that validation rows are best with."""
    train, held, _ = rows(name)
    race = AssetRegressorCV(time_limit=RACE, refit=False, random_state=0).fit(*train)
    settings = {each: value for each, value in race.best_params_.items() if each != "epsilon"}
    print(f"  {name}: {settings}", flush=True)
    candidates = [settings | {"C": times * settings["C"]} for times in TIMES_C]

    def value(fit: Callable[..., Any], settings: dict[str, Any]) -> float:
        model = fit(FEW, *train, **settings)
        predict = model if callable(model) else model.predict
        found = loss(predict(held[0]), held[1], FEW)
        print(f"  {name}: {settings} {found:.5f}", flush=True)
        return found

    best = min(candidates, key=lambda each: value(ours, each))
    return best, min(THEIRS, key=lambda each: value(trees, each))


def seconds(run: Callable[[], Any]) -> float:
    """The seconds of a run."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def time_part(name: str, repeats: int) -> list[dict[str, Any]]:
    """What nine quantiles cost."""
    (X, y), (own, other) = rows(name)[0], chosen(name)
    plain = TableEncoder(numbers="standard")
    on_map = {"gamma": "scale", "C": 10.0, "n_components": 1024, "encoder": plain}
    found = []
    for what, settings in (("map", on_map), ("chosen", own)):
        runs = [
            lambda settings=settings: AssetRegressor(**{"random_state": 0, **settings}).fit(X, y),
            lambda settings=settings: ours(LEVELS, X, y, **settings),
        ]
        for run in runs:
            run()
        times = np.median([[seconds(run) for run in runs] for _ in range(repeats)], axis=0)
        found.append(
            dict(part="time", set=name, what=what, **settings, one=times[0], nine=times[1],
                 ratio=times[1] / times[0])
        )  # fmt: skip
    found[-1]["trees"] = seconds(lambda: trees(LEVELS, X, y, **other))
    return found


def loss_part(name: str, repeats: int) -> list[dict[str, Any]]:
    """What they are worth."""
    del repeats
    (train, _, (X, y)), (own, other) = rows(name), chosen(name)
    model = ours(LEVELS, *train, **own)
    theirs = trees(LEVELS, *train, **other)(X)
    return [
        dict(
            part="loss", set=name, settings=own, others=other,
            ours=loss(model.predict(X), y, LEVELS), trees=loss(theirs, y, LEVELS),
            trees_in_order=loss(np.sort(theirs, axis=1), y, LEVELS),
            coverage=[round(float(each), 4) for each in model.coverage(X, y)],
        )
    ]  # fmt: skip


def order_part(name: str, repeats: int) -> list[dict[str, Any]]:
    """How often they cross, and what can be done about it."""
    del repeats
    (train, _, (X, y)), own = rows(name), chosen(name)[0]
    raw = ours(LEVELS, *train, **own)._decide(X)
    return [
        dict(
            part="order", set=name, crossing=float((np.diff(raw, axis=1) < 0.0).any(axis=1).mean()),
            as_they_are=loss(raw, y, LEVELS), in_order=loss(np.sort(raw, axis=1), y, LEVELS),
            at_least_the_one_below=loss(np.maximum.accumulate(raw, axis=1), y, LEVELS),
        )
    ]  # fmt: skip


def simulated(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose noise grows with a column."""
    X = rng.uniform(0.0, 6.0, (n, 2))
    return X, np.sin(X[:, 0]) + (0.1 + 0.1 * X[:, 1]) * rng.normal(size=n)


def intervals_part() -> list[dict[str, Any]]:
    """The coverage of intervals over simulations."""
    rng, found = np.random.default_rng(0), []
    for seed in range(SIMULATIONS):
        (X, y), (new, wanted) = simulated(1000, rng), simulated(2000, rng)
        model = AssetRegressor(
            C=10.0, intervals=True, validation_fraction=0.2, n_components=100, random_state=seed
        )
        low, high = model.fit(X, y).predict_interval(new, 0.9).T
        found.append([np.mean((low <= wanted) & (wanted <= high)), np.mean(high - low)])
    shares, widths = np.array(found).T
    return [
        dict(
            part="intervals", simulations=SIMULATIONS, coverage=float(shares.mean()),
            error=float(shares.std(ddof=1) / SIMULATIONS**0.5), width=float(widths.mean()),
        )
    ]  # fmt: skip


PARTS = {"time": time_part, "loss": loss_part, "order": order_part}


def main() -> None:
    """Print the lines, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="time,loss,order,intervals")
    parser.add_argument("--sets", default="cal_housing,protein")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", default="quantiles.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[dict[str, Any]] = []
    for part in options.parts.split(","):
        names = [None] if part == "intervals" else options.sets.split(",")
        for name in names:
            found = intervals_part() if name is None else PARTS[part](name, options.repeats)
            for line in found:
                print(line, flush=True)
            lines += found
    told = {"machine": stamp(2), "lines": lines}
    Path(options.output).write_text(json.dumps(told, indent=1, default=str))


if __name__ == "__main__":
    main()
