"""Records of kernels, landmarks, feature maps and metrics.

n is the number of columns of the rows, s that of landmarks, d that of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asset_svm.features import (
    FeatureMap,
    FourierFeatures,
    HadamardFeatures,
    Metric,
    NystroemFeatures,
)
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.features.relevance import Learnt, Relevance
from asset_svm.kernels import NAMES, Kernel
from asset_svm.storage.fields import INTEGERS, Fields

COSINES: dict[str, type[Any]] = {"fourier": FourierFeatures, "hadamard": HadamardFeatures}


def kernel(f: Fields) -> Kernel:
    """The record of a kernel, which must have a name."""
    name = f.text("name", NAMES)
    if not isinstance(name, str):
        raise ValueError(
            f"kernel={name!r} is a function, and a model file holds no code; a model with a callable "
            "kernel cannot be saved."
        )
    return Kernel(name, f.number("gamma"), f.number("degree"), f.number("coef0"))


def source(f: Fields, n: int) -> Any:
    """What decisions are sums of: landmarks with their kernel, or features."""
    kind = f.kind({"landmarks": KernelBasis, **COSINES})
    if kind != "landmarks":
        return _cosines(f, kind, n)
    own, landmarks = f.record("kernel", kernel), f.rows("landmarks", n, of="components")
    f.check(landmarks.shape[0], "has no row", "landmarks")
    return KernelBasis(own, landmarks, wide=f.flag("wide"))


def feature_map(f: Fields, n: int | None = None) -> FeatureMap:
    """What training sees; ``n`` is None where there may be any number of columns."""
    kind = f.kind({"nystroem": NystroemFeatures, **COSINES})
    if kind != "nystroem":
        return _cosines(f, kind, n, centred=True)
    own, landmarks = f.record("kernel", kernel), f.rows("landmarks", n, of="components")
    s, wide = landmarks.shape[0], f.flag("wide")
    projection = f.array("projection", (s, None))
    d = projection.shape[1]
    f.check(1 <= d <= s, f"has {d} columns for {s} landmarks", "projection")
    centre = f.maybe(f.array, "centre", (s,))
    eigenvalues = f.maybe(f.array, "eigenvalues", (d,))
    threshold = f.number("threshold", 0.0)
    trace_error: Any = f.maybe(f.number, "trace_error", finite=False)
    rows = f.maybe(f.array, "rows", (s,), INTEGERS, low=0, of="indices")
    return NystroemFeatures(
        own, landmarks, projection, rows, eigenvalues, threshold, trace_error, centre=centre, wide=wide
    )


def _cosines(f: Fields, kind: str, n: int | None, *, centred: bool = False) -> Any:
    if kind == "fourier":
        frequencies = f.array("frequencies", (n, None))
        phases, count = f.array("phases", (None,)), frequencies.shape[1]
        why = f"has {count} columns for {len(phases)} features"
        f.check(1 <= count <= len(phases), why, "frequencies")
        centre = f.maybe(f.array, "centre", (len(phases),)) if centred else None
        return FourierFeatures(phases, frequencies, centre=centre)
    signs = f.array("signs", (None, 3, None), ("i1",))
    scales, columns = f.array("scales", (None,)), f.integer("columns", 1, of="n_columns")
    phases = f.array("phases", (None,))
    (blocks, _, p), count, d = signs.shape, len(scales), len(phases)
    is_power = p >= 1 and p & (p - 1) == 0
    fits = is_power and columns <= p and columns == (n or columns)
    f.check(fits, f"has blocks of {p} for {columns} columns", "signs")
    fits = is_power and 1 <= count <= d and blocks == -(-count // p)
    f.check(fits, f"has {blocks} blocks of {p} for {count} of {d} features", "signs")
    f.check(np.isin(signs, (-1, 1)).all(), "has something else than 1 and -1", "signs")
    centre = f.maybe(f.array, "centre", (d,)) if centred else None
    return HadamardFeatures(phases, signs, scales, columns, centre=centre)


def metric(f: Fields, d: int | None) -> Metric:
    """The change of basis in which steps are taken."""
    scale = f.array("scale", (None,))
    directions = f.maybe(f.array, "directions", (d, len(scale)))
    fits = directions is not None or len(scale) == (d or len(scale))
    f.check(fits, f"has {len(scale)} entries for {d} features", "scale")
    f.check(len(scale) and (scale > 0.0).all(), "has an entry that is not positive", "scale")
    return Metric(scale, directions, f.number("rest", 0.0))


def learnt(f: Fields, n: int | None) -> Learnt:
    """The learnt relevance of n columns."""
    importances = f.array("importances", (n,))
    found = f.maybe(f.record, "relevance", _relevance, len(importances))
    history = f.each("history", "mapping")
    asked, name = f.text("asked", ("columns", "directions", "auto")), f.text("kernel", NAMES)
    return Learnt(found, importances, history, asked, name)


def _relevance(f: Fields, n: int) -> Relevance:
    """The linear map of n columns."""
    kind = f.text("shape", ("columns", "directions"))
    weights = f.array("weights", (n,) if kind == "columns" else (None, n))
    f.check(weights.shape[0], "has no row", "weights")
    return Relevance(weights, f.maybe(f.array, "shift", (n,)), f.number("spread", 0.0))
