"""The fits: every option of the library at least once, each small.

None has a ``time_limit``: what it returns hangs on the clock.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier

from recorded.problems import (
    Problem,
    cancer,
    crowd,
    diabetes,
    digits,
    four_classes,
    islands,
    two_classes,
    waves,
    waves32,
    wide_words,
    words,
    words64,
)
from recorded.ways import (
    DEFAULT,
    Fit,
    Later,
    by_hand,
    certified,
    cluster,
    cluster_file,
    command,
    compacted,
    compiled,
    file,
    fit,
    new,
    pickled,
    regression,
    saved,
    search,
    searched_components,
    stream,
    transformed,
    warm,
)


def few_digits() -> Problem:
    return digits().first(300)


def few_classes() -> Problem:
    return two_classes().first(400)


def sorted_classes() -> Problem:
    return four_classes().sorted()


def coded_classes() -> Problem:
    """For files that hold numbers alone."""
    return replace(four_classes(), y=np.unique(four_classes().y, return_inverse=True)[1])


def overlap(X: Any, Z: Any) -> np.ndarray:
    """A kernel of a user's own: 1 / (1 + |x - z|^2)."""
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    distances: np.ndarray = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    return 1.0 / (1.0 + distances)


def fitted_map() -> Any:
    given = new("NystroemMap", {"gamma": 0.3, "landmarks": "kmeans", "max_iter": DEFAULT})
    return FrozenEstimator(given.fit(two_classes().X))


PAPER: dict[str, Any] = {
    "step_scale": 1.0,
    "average": 100,
    "sampling": "uniform",
    "fit_intercept": False,
}
DEFAULTS: dict[str, Any] = {"n_components": DEFAULT, "max_iter": DEFAULT}
FOURIER: dict[str, Any] = {"approximation": "fourier", "n_components": 96}
EXACT: dict[str, Any] = {"n_components": DEFAULT, "max_iter": DEFAULT}
"""Of cells that are solved whole, which have neither landmarks nor epochs."""

ESTIMATORS = (
    fit("estimators/classifier", cancer, **DEFAULTS),
    regression("estimators/regressor", diabetes, **DEFAULTS),
    fit("estimators/two classes", two_classes),
    regression("estimators/regression", waves),
    fit("estimators/four classes", four_classes),
    fit("estimators/ten classes", digits, C=10.0),
    fit("estimators/ten classes of few rows", few_digits, **DEFAULTS),
    fit("estimators/ten classes of few rows, on two threads", few_digits, n_jobs=2, **DEFAULTS),
    fit("estimators/ten classes of few rows, in epochs", few_digits, max_iter=20),
    fit("estimators/ten classes on two threads", digits, C=10.0, n_jobs=2),
    fit("estimators/short run of many rows", crowd, n_components=256, max_iter=3),
    fit("estimators/long run of many rows", crowd, n_components=128, max_iter=12),
    fit("estimators/lam", two_classes, lam=1e-4),
    fit("estimators/small C", two_classes, C=0.01),
    fit("estimators/large C", two_classes, C=1e4),
    regression("estimators/epsilon of 0", waves, epsilon=0.0, C=10.0),
    regression("estimators/targets within epsilon", waves, epsilon=50.0),
    regression("estimators/float32", waves32, C=3.0),
    fit("estimators/rows computed anew", two_classes, memory_limit=0),
    fit("estimators/more landmarks than an eigenbasis has", crowd, n_components=2100, max_iter=1),
)
STEPS = (
    fit("steps/metric without intercept", two_classes, step="metric", fit_intercept=False),
    fit("steps/robust", two_classes, step="robust"),
    fit("steps/robust without intercept", four_classes, step="robust", fit_intercept=False),
    fit("steps/strong", two_classes, step="strong"),
    regression("steps/robust regression", waves, step="robust"),
    regression("steps/strong regression", waves32, step="strong"),
    regression("steps/metric regression without intercept", waves32, fit_intercept=False),
    fit("steps/the paper's robust", two_classes, step="robust", **PAPER),
    fit("steps/the paper's strong", four_classes, step="strong", **PAPER),
    fit("steps/the paper's with Fourier features", two_classes, step="robust", **PAPER, **FOURIER),
    fit("steps/scale", two_classes, step_scale=0.3),
    fit("steps/gradient sample", two_classes, step="robust", gradient_sample=50),
    fit("steps/intercept bound", two_classes, intercept_bound=0.5),
    fit("steps/intercept bound, robust", two_classes, step="robust", intercept_bound=2.0),
    fit("steps/last iterate", two_classes, average=None),
    fit("steps/average of a quarter", two_classes, average=0.25),
    fit("steps/average of all", four_classes, step="robust", average=1.0),
    fit("steps/average of a count", two_classes, average=500),
    fit("steps/uniform sampling", two_classes, sampling="uniform"),
    fit("steps/given order", two_classes, sampling="given"),
    fit("steps/shuffled, robust", two_classes, step="robust", sampling="shuffle"),
)
STOPPING = (
    fit("stopping/tol", two_classes, tol=0.1, max_iter=200),
    fit("stopping/tol of several classes", four_classes, tol=0.2, max_iter=100),
    fit("stopping/tol never reached", two_classes, tol=1e-6),
    regression("stopping/tol of a regression", waves, tol=0.1, max_iter=200),
    fit("stopping/tol, robust", two_classes, tol=0.3, step="robust", max_iter=60),
    fit("stopping/early", four_classes, early_stopping=True, max_iter=30, n_iter_no_change=3),
    regression(
        "stopping/early regression",
        waves,
        early_stopping=True,
        validation_fraction=0.2,
        max_iter=30,
    ),
    fit("stopping/warm start", two_classes, warm_start=True, show=partial(warm, C=10.0)),
    fit(
        "stopping/warm start, robust",
        two_classes,
        warm_start=True,
        step="robust",
        show=partial(warm, max_iter=2),
    ),
    regression(
        "stopping/warm start of a regression", waves, warm_start=True, show=partial(warm, C=5.0)
    ),
)
KERNELS = (
    fit("kernels/linear", cancer, kernel="linear"),
    fit("kernels/linear, sparse", words, kernel="linear"),
    fit("kernels/poly", two_classes, kernel="poly", degree=2, coef0=1.0),
    fit("kernels/poly, sparse", words, kernel="poly", coef0=0.5, gamma=1.0),
    fit("kernels/sigmoid", two_classes, kernel="sigmoid", gamma=0.05, coef0=-0.2),
    fit("kernels/laplacian", four_classes, kernel="laplacian"),
    regression("kernels/laplacian, sparse", words64, kernel="laplacian", gamma=0.1),
    fit("kernels/callable", few_classes, kernel=overlap),
    fit("kernels/gamma auto", four_classes, gamma="auto"),
    fit("kernels/gamma", digits, gamma=0.7),
)
MAPS = (
    fit("maps/fourier", two_classes, **FOURIER),
    fit("maps/orthogonal", two_classes, fourier="orthogonal", **FOURIER),
    fit("maps/qmc", four_classes, fourier="qmc", **FOURIER),
    fit("maps/hadamard", digits, fourier="hadamard", **FOURIER),
    fit("maps/hadamard, sparse", words, fourier="hadamard", **FOURIER),
    fit("maps/laplacian", four_classes, kernel="laplacian", **FOURIER),
    regression("maps/laplacian by qmc", waves, kernel="laplacian", fourier="qmc", **FOURIER),
    fit("maps/fourier, sparse", words, **FOURIER),
    regression("maps/fourier, strong", waves32, step="strong", **FOURIER),
    fit("maps/fourier, short run of many rows", crowd, **{**FOURIER, "n_components": 256}),
    fit("maps/rank", two_classes, rank=20),
    fit("maps/rank threshold", two_classes, rank_threshold=1e-3),
    fit("maps/the paper's threshold", two_classes, rank_rule="absolute", rank_threshold=1e-16),
    fit("maps/rank, robust", four_classes, rank=30, step="robust"),
    fit("maps/a fitted map", two_classes, approximation=Later(fitted_map), n_components=DEFAULT),
    fit(
        "maps/a map of one's own",
        two_classes,
        approximation=Later(lambda: new("FourierMap", {"fourier": "qmc", "max_iter": DEFAULT})),
        n_components=DEFAULT,
    ),
    fit("maps/components auto", few_digits, n_components="auto", show=searched_components),
    regression(
        "maps/components auto, regression", waves, n_components="auto", show=searched_components
    ),
)
LANDMARKS = (
    fit("landmarks/kmeans", digits, landmarks="kmeans"),
    fit("landmarks/kmeans, sparse", words, landmarks="kmeans"),
    fit("landmarks/rpcholesky", two_classes, landmarks="rpcholesky"),
    fit("landmarks/rpcholesky, sparse", words, landmarks="rpcholesky"),
    fit("landmarks/leverage", four_classes, landmarks="leverage"),
    fit("landmarks/leverage, weighted", two_classes, landmarks="leverage", weighted=True),
    fit("landmarks/margin", four_classes, landmarks="margin"),
    regression("landmarks/margin of a regression", waves32, landmarks="margin"),
    fit(
        "landmarks/given",
        two_classes,
        landmarks=Later(lambda: two_classes().X[5:50]),
        n_components=DEFAULT,
    ),
)
WEIGHTS = (
    fit("weights/rows", two_classes, weighted=True),
    fit("weights/rows, robust", four_classes, weighted=True, step="robust"),
    regression("weights/rows of a regression", waves, weighted=True),
    fit("weights/shuffled", two_classes, weighted=True, step="robust", sampling="shuffle"),
    fit("weights/balanced", four_classes, class_weight="balanced"),
    fit("weights/of classes, one of them 0", four_classes, class_weight={"ash": 0.0, "elm": 4.0}),
    fit("weights/heavy", two_classes, class_weight={1: 40.0, -1: 1.0}),
    fit("weights/rows and classes", words, weighted=True, class_weight="balanced"),
)
SPARSE = (
    fit("sparse/float32", words),
    regression("sparse/float64", words64),
    fit("sparse/zeros of dense rows", wide_words, n_components=150),
    fit("sparse/robust", words, step="robust"),
    fit("sparse/strong", words, step="strong"),
)
CELLS = (
    fit("cells/one", few_classes, n_cells=1, **EXACT),
    fit("cells/one with an intercept", few_classes, n_cells=1, fit_intercept=True, **EXACT),
    fit("cells/one, to a tolerance", cancer, n_cells=1, C=1e3, tol=1e-4, **EXACT),
    fit("cells/one, ill-conditioned", few_classes, n_cells=1, C=1e5, gamma=1e-3, tol=1e-3, **EXACT),
    fit(
        "cells/one, ill-conditioned, with an intercept",
        few_classes,
        n_cells=1,
        C=1e5,
        gamma=1e-3,
        tol=1e-3,
        fit_intercept=True,
        **EXACT,
    ),
    fit("cells/of one class", islands, n_cells=4, **EXACT),
    fit("cells/of one class, with an intercept", islands, n_cells=4, fit_intercept=True, **EXACT),
    fit("cells/approximate, of one class", islands, n_cells=4, memory_limit=2e4),
    fit("cells/auto", crowd, n_cells="auto", C=10.0, **EXACT),
    fit("cells/four classes", four_classes, n_cells=4, **EXACT),
    fit("cells/on two threads", four_classes, n_cells=4, n_jobs=2, **EXACT),
    fit("cells/partitions", two_classes, n_cells=5, n_partitions=3, **EXACT),
    fit("cells/ten classes of few rows", few_digits, n_cells=1, **EXACT),
    fit("cells/sparse", words, n_cells=3, **EXACT),
    fit("cells/laplacian", two_classes, n_cells=3, kernel="laplacian", **EXACT),
    fit("cells/sigmoid", few_classes, n_cells=2, kernel="sigmoid", gamma=0.3, **EXACT),
    fit("cells/weighted", two_classes, n_cells=3, weighted=True, **EXACT),
    fit("cells/balanced", four_classes, n_cells=3, class_weight="balanced", **EXACT),
    regression("cells/one of a regression", diabetes, n_cells=1, **EXACT),
    regression(
        "cells/one of a regression with an intercept", diabetes, n_cells=1, fit_intercept=True, **EXACT
    ),
    regression("cells/regression", waves, n_cells=4, C=10.0, **EXACT),
    regression("cells/callable", waves, n_cells=8, kernel=overlap, **EXACT),
    fit("cells/approximate", two_classes, n_cells=3, memory_limit=2e5),
    fit("cells/approximate, four classes", four_classes, n_cells=2, memory_limit=2e5),
    regression("cells/approximate regression", waves, n_cells=3, memory_limit=2e5),
)
RELEVANCE = (
    fit("relevance/columns", four_classes, relevance="columns"),
    fit("relevance/auto, balanced", two_classes, relevance="auto", class_weight="balanced"),
    regression("relevance/directions", waves, relevance="directions", kernel="exponential"),
    regression("relevance/cells", waves, relevance="columns", n_cells=3, kernel="laplacian", **EXACT),
    fit("relevance/sparse", words, relevance="columns", kernel="matern52"),
    stream("relevance/stream", two_classes, relevance="columns"),
)
STREAMS = (
    stream("streams/two classes", two_classes),
    stream("streams/four classes", four_classes),
    stream("streams/regression", waves, "AssetRegressor"),
    stream("streams/small beginnings", two_classes, sizes=(1, 2, 30, 100, 200, 1, 64)),
    stream("streams/robust", two_classes, step="robust"),
    stream("streams/strong", four_classes, step="strong", lam=1e-3),
    stream("streams/fourier", two_classes, **FOURIER),
    stream("streams/sparse", words),
    stream("streams/weighted", two_classes, weighted=True),
    stream("streams/regression, robust", waves32, "AssetRegressor", step="robust"),
    stream("streams/after a fit", two_classes, fitted=400),
    stream("streams/after a robust fit", waves, "AssetRegressor", fitted=400, step="robust"),
    stream("streams/averages", two_classes, average=0.25),
    stream("streams/last iterate", four_classes, average=None),
    stream("streams/cells", two_classes, n_cells=3),
    stream("streams/cells of a regression", waves, "AssetRegressor", n_cells=3),
    stream("streams/cells after a fit", two_classes, n_cells=3, fitted=400, n_components=30),
    stream("streams/cells of four classes", four_classes, n_cells=3, n_partitions=2),
)
AROUND = (
    fit("around/compiled", two_classes, show=compiled),
    fit("around/compiled, four classes", four_classes, show=compiled),
    regression("around/compiled regression", waves, show=compiled, **FOURIER),
    fit("around/compiled cells", two_classes, n_cells=3, show=compiled, **EXACT),
    fit("around/compact", four_classes, rank=25, show=compacted),
    fit("around/certify", two_classes, show=certified),
    regression("around/certify a regression", waves, show=certified),
    fit("around/saved", four_classes, show=saved, needs=("safetensors",)),
    regression("around/saved regression", waves, show=saved, needs=("safetensors",)),
    fit("around/saved cells", two_classes, n_cells=3, show=saved, needs=("safetensors",), **EXACT),
    fit("around/pickled", two_classes, show=pickled),
    fit("around/pickled cells", two_classes, n_cells=3, show=pickled, **EXACT),
    by_hand(
        "around/calibrated",
        two_classes,
        lambda: CalibratedClassifierCV(new("AssetClassifier", {}), ensemble=False, cv=3),
        keep=True,
        needs=("safetensors",),
    ),
    by_hand(
        "around/pairs of classes",
        four_classes,
        lambda: OneVsOneClassifier(new("AssetClassifier", {})),
    ),
)
TRANSFORMERS = (
    *(
        fit(
            f"transformers/{landmarks}",
            problem,
            "NystroemMap",
            landmarks=landmarks,
            max_iter=DEFAULT,
            show=transformed,
        )
        for landmarks, problem in (
            ("uniform", words),
            ("kmeans", two_classes),
            ("rpcholesky", digits),
            ("leverage", waves32),
        )
    ),
    *(
        fit(
            f"transformers/{kind}",
            digits,
            "FourierMap",
            fourier=kind,
            max_iter=DEFAULT,
            show=transformed,
        )
        for kind in ("iid", "orthogonal", "qmc", "hadamard")
    ),
)
SOLVED: dict[str, Any] = {**EXACT, "search_iter": DEFAULT}
SEARCHES = (
    search("searches/one map", two_classes, Cs=4, gammas=None, cv=3),
    search("searches/four classes", four_classes, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 0.5], cv=3),
    search("searches/gammas auto", few_classes, Cs=3, cv=2),
    search("searches/gammas beyond", cancer, Cs=[1.0, 100.0], cv=2),
    search("searches/race of gammas", crowd, Cs=[1.0, 10.0], gammas=[0.03, 0.1, 0.3, 1.0], cv=2),
    search(
        "searches/cells", two_classes, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], n_cells=3, cv=2, **SOLVED
    ),
    search("searches/one cell", few_classes, Cs=3, gammas=None, n_cells=1, cv=3, **SOLVED),
    search(
        "searches/weights, a fraction, a score",
        two_classes,
        Cs=[0.1, 1.0],
        gammas=None,
        cv=0.25,
        scoring="roc_auc",
        class_weight="balanced",
        fit_options=lambda rows: {"sample_weight": rows.weight},
    ),
    search("searches/path", two_classes, Cs=[0.1, 1.0], gammas=None, cv=2, keep_path=True, refit=False),
    search("searches/robust", four_classes, Cs=[0.1, 1.0], gammas=None, cv=2, step="robust"),
    search("searches/fourier", words, Cs=[0.1, 1.0], gammas=[0.5, 1.0], cv=2, **FOURIER),
    search("searches/regression", waves, "AssetRegressorCV", Cs=4, gammas=None, cv=3),
    search(
        "searches/epsilons",
        waves32,
        "AssetRegressorCV",
        Cs=[1.0, 10.0],
        gammas=[0.3, 1.0],
        epsilons=[0.05, 0.2],
        cv=2,
    ),
    search(
        "searches/cells of a regression",
        waves,
        "AssetRegressorCV",
        Cs=2,
        gammas=None,
        n_cells=3,
        cv=2,
        **SOLVED,
    ),
)
FILES = (
    file("files/svmlight", coded_classes, "svm"),
    file("files/npy", coded_classes, "npy"),
    file("files/parts", coded_classes, "parts.npy"),
    file("files/sparse npz", words, "npz"),
    file("files/windows of parts", coded_classes, "parts.npy", memory_limit=4e4),
    file("files/windows of sparse npz", words, "npz", memory_limit=1e5),
    file("files/windows of svmlight", words, "svm", memory_limit=1e5),
    file("files/windows of packed svmlight", words, "svm.gz", memory_limit=1e5),
    file("files/windows of npy", coded_classes, "npy", memory_limit=4e4),
    file("files/windows of npz", coded_classes, "npz", memory_limit=4e4, step="robust"),
    file("files/windows of csv", four_classes, "csv", memory_limit=4e4, needs=("pyarrow",)),
    file(
        "files/windows of sorted parquet",
        sorted_classes,
        "parquet",
        memory_limit=4e4,
        needs=("pyarrow",),
    ),
    file("files/windows of a regression", waves, "npy", "AssetRegressor", memory_limit=3e4),
    file("files/windows, strong", waves32, "svm", "AssetRegressor", memory_limit=3e4, step="strong"),
    file("files/windows, fourier", two_classes, "npy", memory_limit=3e4, **FOURIER),
)
QUICK = ("--n-components", "60", "--max-iter", "4")
COMMANDS = (
    command("commands/csv", four_classes, "csv", *QUICK, predicts=True, needs=("pyarrow",)),
    command("commands/npy", two_classes, "npy", *QUICK, "--class-weight", "-1=1,1=3"),
    command("commands/svmlight", words, "svm", *QUICK, "--class-weight", "balanced"),
    command("commands/parquet", waves, "parquet", *QUICK, "--scale", "standard", needs=("pyarrow",)),
    command("commands/float64", two_classes, "npz", *QUICK, "--dtype", "float64", "--scale", "minmax"),
    command("commands/cells", two_classes, "npy", "--n-cells", "3"),
    command("commands/checkpoint", two_classes, "npy", *QUICK, "--checkpoint", "checkpoint"),
    command(
        "commands/checkpoint of svmlight",
        words,
        "svm",
        *QUICK,
        "--checkpoint",
        "checkpoint",
        "--every",
        "0.01s",
    ),
    command("commands/windows", two_classes, "npy", *QUICK, "--memory", "30KB", predicts=True),
    command(
        "commands/windows of a regression", waves, "csv", *QUICK, "--memory", "30KB", needs=("pyarrow",)
    ),
    command("commands/online", two_classes, "svm", "--n-components", "60", "--online"),
    command("commands/probability", four_classes, "csv", *QUICK, "--probability", needs=("pyarrow",)),
    command(
        "commands/tune",
        few_classes,
        "npy",
        *QUICK,
        "--Cs",
        "3",
        "--cv",
        "2",
        "--gammas",
        "none",
        verb="tune",
    ),
    command(
        "commands/cluster",
        two_classes,
        "npy",
        *QUICK,
        "--scale",
        "standard",
        cluster=True,
        needs=("distributed",),
    ),
)
CLUSTERS = (
    cluster("clusters/one shard", two_classes, n_shards=1),
    cluster("clusters/three shards", four_classes),
    cluster("clusters/rounds", two_classes, rounds_per_epoch=3),
    cluster("clusters/sorted", sorted_classes),
    cluster("clusters/robust", two_classes, step="robust"),
    cluster("clusters/weighted", two_classes, weighted=True, class_weight="balanced"),
    cluster("clusters/sparse", words),
    cluster("clusters/frame", four_classes, frame=True),
    cluster("clusters/regression", waves, "DaskAssetRegressor", **FOURIER),
    cluster("clusters/targets within epsilon", waves, "DaskAssetRegressor", epsilon=50.0),
    cluster_file("clusters/files", coded_classes, "parts.npy"),
    cluster("clusters/cells", two_classes, n_cells=4, **EXACT),
    cluster("clusters/cells of a regression", waves, "DaskAssetRegressor", n_cells=3, **EXACT),
)
on_card = partial(fit, needs=("card",), device="cuda")
CARD = (
    on_card("card/two classes", two_classes),
    on_card("card/ten classes", digits),
    on_card("card/float16", crowd, precision="float16", n_components=256),
    on_card("card/robust", four_classes, step="robust"),
    on_card("card/strong", four_classes, step="strong"),
    on_card("card/sparse", words),
    on_card("card/fourier", two_classes, **FOURIER),
    on_card("card/hadamard", digits, fourier="hadamard", **FOURIER),
    on_card("card/kmeans", digits, landmarks="kmeans"),
    on_card("card/weighted", two_classes, weighted=True),
    on_card("card/regression", waves, "AssetRegressor"),
    on_card("card/laplacian", four_classes, kernel="laplacian"),
    on_card("card/cells", crowd, n_cells="auto", **EXACT),
    on_card("card/cells of a regression", waves, "AssetRegressor", n_cells=3, **EXACT),
)
FITS: tuple[Fit, ...] = (
    *ESTIMATORS, *STEPS, *STOPPING, *KERNELS, *MAPS, *LANDMARKS, *WEIGHTS, *SPARSE, *CELLS, *RELEVANCE,
    *STREAMS,
    *AROUND, *TRANSFORMERS, *SEARCHES, *FILES, *COMMANDS, *CLUSTERS, *CARD,
)  # fmt: skip
