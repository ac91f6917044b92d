"""Kernels, landmarks and feature maps.

kernel       name, gamma, degree, coef0
source       what decisions are sums of, by its kind:
               "landmarks"   kernel, landmarks (s, n), wide
               "fourier"     frequencies (n, f), phases (d,)
               "hadamard"    signs (blocks, 3, p), scales (f,), columns, phases (d,)
expansion    source, weights (K, s or d), intercept (K,)
map          what training sees:
               "nystroem"    that of landmarks with projection (s, d), centre, eigenvalues,
                             threshold, trace_error, rows
               "fourier", "hadamard"    as above with centre
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from asset_svm.families.decision import Decision
from asset_svm.features import FourierFeatures, HadamardFeatures, NystroemFeatures
from asset_svm.features.fourier import CosineFeatures
from asset_svm.features.kernel_basis import KernelBasis
from asset_svm.kernels import NAMES, Kernel
from asset_svm.persistence.reading import INTEGERS, Record
from asset_svm.persistence.writing import Writer


def write_kernel(kernel: Kernel) -> dict[str, Any]:
    """A kernel that has a name."""
    if not isinstance(kernel.name, str):
        raise ValueError(
            f"kernel={kernel.name!r} is a function, and a model file holds no code; a model with "
            "a callable kernel cannot be saved."
        )
    numbers = {name: Writer.number(getattr(kernel, name)) for name in ("gamma", "degree", "coef0")}
    return {"name": kernel.name, **numbers}


def read_kernel(record: Record) -> Kernel:
    """A kernel."""
    return Kernel(
        record.text("name", NAMES),
        record.number("gamma"),
        record.number("degree"),
        record.number("coef0"),
    )


# What decisions are sums of -----------------------------------------------------------------------


def write_source(write: Writer, source: Any, name: str) -> dict[str, Any]:
    """Landmarks with their kernel, or features."""
    if isinstance(source, CosineFeatures):
        return _write_cosines(write, source, name)
    if not isinstance(source, KernelBasis):
        raise ValueError(f"A map of type {type(source).__name__} cannot be saved.")
    return {
        "kind": "landmarks",
        "kernel": write_kernel(source.kernel),
        "landmarks": write.rows(source.components, f"{name}.landmarks"),
        "wide": bool(source.wide),
    }


def read_source(record: Record, n_columns: int) -> Any:
    """What ``write_source`` wrote, for rows of so many columns."""
    if record.text("kind", ("landmarks", "fourier", "hadamard")) != "landmarks":
        return _read_cosines(record, n_columns)
    landmarks = record.rows("landmarks", n_columns)
    if landmarks.shape[0] == 0:
        record.refuse("has no row", "landmarks")
    return KernelBasis(read_kernel(record.record("kernel")), landmarks, wide=record.flag("wide"))


def write_expansion(write: Writer, decision: Decision, name: str) -> dict[str, Any]:
    """A decision function."""
    return {
        "source": write_source(write, decision.source, name),
        "weights": write.array(decision.weights, f"{name}.weights"),
        "intercept": write.array(decision.intercept, f"{name}.intercept"),
    }


def read_expansion(record: Record, n_columns: int, n_models: int) -> Decision:
    """A decision function with so many outputs."""
    source = read_source(record.record("source"), n_columns)
    size = len(source.phases) if isinstance(source, CosineFeatures) else source.components.shape[0]
    weights = record.array("weights", (n_models, size))
    return Decision(source, weights, record.array("intercept", (n_models,)))


# Maps ---------------------------------------------------------------------------------------------


def write_map(write: Writer, phi: Any, name: str) -> dict[str, Any]:
    """A feature map."""
    if hasattr(phi, "on_host"):  # parts of it lie on a card
        phi = phi.on_host()
    if isinstance(phi, CosineFeatures):
        written = _write_cosines(write, phi, name)
        return {**written, "centre": write.array(phi.centre, f"{name}.centre")}
    if not isinstance(phi, NystroemFeatures):
        raise ValueError(f"A map of type {type(phi).__name__} cannot be saved.")
    return {
        **write_source(write, phi, name),
        "kind": "nystroem",
        "projection": write.array(phi.projection, f"{name}.projection"),
        "centre": write.array(phi.centre, f"{name}.centre"),
        "eigenvalues": write.array(phi.eigenvalues, f"{name}.eigenvalues"),
        "threshold": write.number(phi.threshold),
        "trace_error": write.maybe(phi.trace_error),
        "rows": write.array(phi.indices, f"{name}.rows"),
    }


def read_map(record: Record, n_columns: int | None) -> Any:
    """A feature map for rows of so many columns; None: of any number."""
    if record.text("kind", ("nystroem", "fourier", "hadamard")) != "nystroem":
        phi = _read_cosines(record, n_columns)
        centre = record.maybe_array("centre", (len(phi.phases),))
        return phi if centre is None else replace(phi, centre=centre)
    landmarks = record.rows("landmarks", n_columns)
    s = landmarks.shape[0]
    projection = record.array("projection", (s, None))
    d = projection.shape[1]
    if not 1 <= d <= s:
        record.refuse(f"has {d} columns for {s} landmarks", "projection")
    return NystroemFeatures(
        read_kernel(record.record("kernel")),
        landmarks,
        projection,
        record.maybe_array("rows", (s,), INTEGERS, low=0),
        record.maybe_array("eigenvalues", (d,)),
        record.number("threshold", 0.0),
        record.maybe_number("trace_error", finite=False),
        centre=record.maybe_array("centre", (s,)),
        wide=record.flag("wide"),
    )


def _write_cosines(write: Writer, phi: CosineFeatures, name: str) -> dict[str, Any]:
    phases = write.array(phi.phases, f"{name}.phases")
    if isinstance(phi, FourierFeatures):
        frequencies = write.array(phi.frequencies, f"{name}.frequencies")
        return {"kind": "fourier", "frequencies": frequencies, "phases": phases}
    if not isinstance(phi, HadamardFeatures):
        raise ValueError(f"A map of type {type(phi).__name__} cannot be saved.")
    return {
        "kind": "hadamard",
        "signs": write.array(phi.signs, f"{name}.signs"),
        "scales": write.array(phi.scales, f"{name}.scales"),
        "columns": phi.n_columns,
        "phases": phases,
    }


def _read_cosines(record: Record, n_columns: int | None) -> FourierFeatures | HadamardFeatures:
    phases = record.array("phases", (None,))
    d = len(phases)
    if record.text("kind", ("fourier", "hadamard")) == "fourier":
        frequencies = record.array("frequencies", (n_columns, None))
        if not 1 <= frequencies.shape[1] <= d:
            record.refuse(f"has {frequencies.shape[1]} columns for {d} features", "frequencies")
        return FourierFeatures(phases, frequencies)
    scales = record.array("scales", (None,))
    signs = record.array("signs", (None, 3, None), ("i1",))
    blocks, _, p = signs.shape
    columns = record.integer("columns", 1)
    if p < 1 or p & (p - 1) or columns > p or columns != (n_columns or columns):
        record.refuse(f"has blocks of {p} for {columns} columns", "signs")
    if not 1 <= len(scales) <= d or blocks != -(-len(scales) // p):
        record.refuse(f"has {blocks} blocks of {p} for {len(scales)} of {d} features", "signs")
    if not np.isin(signs, (-1, 1)).all():
        record.refuse("has something else than 1 and -1", "signs")
    return HadamardFeatures(phases, signs, scales, columns)
