"""Decisions of a model file: sums over landmarks and features, cells, and a relevance before them."""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.kernels.profiles import PROFILES
from asset_svm.runtime.heads import heads_of
from asset_svm.runtime.parts import (
    Constant,
    Expansions,
    Mean,
    Part,
    Partition,
    Placed,
    Relevant,
    Sums,
    Tree,
)
from asset_svm.runtime.sources import Cosines, Kernel, Landmarks
from asset_svm.storage.fields import FLOATS, INTEGERS, Fields, shown


def fitted(f: Fields, K: int, n: int) -> tuple[Part, np.dtype[np.floating]]:
    """A model on rows of n columns, behind its relevance if it has one; the type of its rows."""
    shape = None
    if f.has("relevance") and f.get("relevance") is not None:
        learnt = f.object("relevance").object("learnt")
        if learnt.get("relevance") is not None:
            shape = learnt.object("relevance")
    weights = shift = None
    if shape is not None:
        of_columns = shape.text("shape", ("columns", "directions")) == "columns"
        weights = shape.array("weights", (n,) if of_columns else (None, n))
        shift, n = shape.maybe(shape.array, "shift", (n,)), len(weights)
    record = f.object("model")
    if record.text("family", ("one map", "cells")) == "one map":
        found: Part = _sums(record, K, n)
        dtype = _type_of(found)
    else:
        found, dtype = _cells(record, K, n), np.dtype(record.text("type", ("float32", "float64")))
    return (found if weights is None else Relevant(weights, shift, found)), dtype


def _type_of(part: Part) -> np.dtype[np.floating]:
    """The type of the landmarks; float64 where there are none, which tell no type."""
    source = getattr(part, "source", None)
    return source.Z.dtype if isinstance(source, Landmarks) else np.dtype(np.float64)


def _sums(f: Fields, K: int, n: int) -> Sums:
    source = f.object("source")
    if source.text("kind", ("landmarks", "fourier", "hadamard")) == "landmarks":
        by: Landmarks | Cosines = _landmarks(source, n)
    else:
        by = _cosines(source, n)
    return Sums(by, f.array("weights", (K, by.size)), f.array("intercept", (K,)))


def _kernel(f: Fields) -> Kernel:
    name = f.text("name", tuple(PROFILES))
    return Kernel(name, f.number("gamma"), f.number("degree"), f.number("coef0"))


def _landmarks(f: Fields, n: int) -> Landmarks:
    own = _kernel(f.object("kernel"))
    if not f.is_csr("landmarks"):
        Z = f.array("landmarks", (None, n), FLOATS)
        f.check(len(Z), "has no row", "landmarks")
        return Landmarks(own, Z, None, n)
    (count, _), (data, indices, indptr) = f.csr("landmarks", n)
    f.check(count, "has no row", "landmarks")
    chosen, places = np.unique(indices, return_inverse=True)
    Z = np.zeros((count, len(chosen)), dtype=data.dtype)
    np.add.at(Z, (np.repeat(np.arange(count), np.diff(indptr)), places), data)
    return Landmarks(own, Z, chosen, n)


def _cosines(f: Fields, n: int) -> Cosines:
    phases = f.array("phases", (None,))
    if f.text("kind") == "fourier":
        frequencies = f.array("frequencies", (n, None)).T
        fits = 1 <= len(frequencies) <= len(phases)
        f.check(fits, f"has {len(frequencies)} columns for {len(phases)} features", "frequencies")
        return Cosines(np.ascontiguousarray(frequencies), phases)
    signs, scales = f.array("signs", (None, 3, None), ("i1",)), f.array("scales", (None,))
    (blocks, _, p), count, columns = signs.shape, len(scales), f.integer("columns", 1)
    fits = p >= 1 and p & (p - 1) == 0 and columns == n <= p and 1 <= count <= len(phases)
    f.check(fits and blocks == -(-count // p), f"has blocks of {p} for {n} columns", "signs")
    return Cosines(_hadamard(signs, scales, n), phases)


AT_A_TIME = 256
"""Columns whose part in the frequencies is computed at a time."""


def _hadamard(signs: Array, scales: Array, n: int) -> Array:
    """The frequencies (f, n) of H D_3 H D_2 H D_1, times scales."""
    p, found = signs.shape[2], np.empty((len(scales), n))
    for block in range(len(signs)):
        rows = slice(block * p, min((block + 1) * p, len(scales)))
        for start in range(0, n, AT_A_TIME):
            panel = np.eye(min(AT_A_TIME, n - start), p, start)
            for turn in range(3):
                panel = _transformed(panel * signs[block, turn])
            found[rows, start : start + len(panel)] = panel[:, : rows.stop - rows.start].T
    return found * scales[:, None]


def _transformed(panel: Array) -> Array:
    """Rows times the Hadamard matrix of their length."""
    m, p = panel.shape
    h = 1
    while h < p:
        pairs = panel.reshape(m, p // (2 * h), 2, h)
        both = [pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]]
        panel = np.stack(both, axis=2).reshape(m, p)
        h *= 2
    return panel


def _cells(f: Fields, K: int, n: int) -> Part:
    """The mean of partitions."""
    parts = tuple(_partition(each, K, n) for each in f.objects("partitions"))
    f.check(parts, "is empty", "partitions")
    return parts[0] if len(parts) == 1 else Mean(parts, np.full(len(parts), 1.0 / len(parts)))


def _partition(f: Fields, K: int, n: int) -> Partition:
    n_cells = f.integer("n_cells", 1)
    tree = _tree(f, n_cells, n)
    models = [_cell(each, K, n) for each in f.objects("cells")]
    f.check(len(models) == n_cells, f"has {len(models)} cells instead of {n_cells}", "cells")
    return Partition(tree, packed(models, K, n) or models)


def _tree(f: Fields, n_cells: int, n: int) -> Tree:
    """The nodes, the root first; every node but that, and every cell, is below one other."""
    centres, below, counts, met = [np.empty((0, n))], list[int](), list[int](), set[int]()
    nodes = f.objects("tree")
    for number, node in enumerate(nodes):
        own, children = node.array("centres", (None, n), FLOATS), node.each("children", "value")
        fits = children and len(children) == len(own)
        node.check(fits, f"has {len(children)} entries for {len(own)} centres", "children")
        for child in children:
            good = type(child) is int and (0 <= child < n_cells or number < -1 - child < len(nodes))
            node.check(good and child not in met, f"has {shown(child)}", "children")
            met.add(child)
        centres.append(own.astype(np.float64))
        counts.append(len(own))
        # In the file a cell has its number and a node -1 less it; here it is the other way round.
        below += [-1 - child for child in children]
    everything = len(met) == n_cells + len(nodes) - 1 if nodes else n_cells == 1
    f.check(everything, "leaves out a cell or a node", "tree")
    ends = np.array(counts, dtype=np.int64)
    return Tree(np.concatenate(centres), np.cumsum(ends) - ends, ends, np.array(below, dtype=np.int64))


def _cell(f: Fields, K: int, n: int) -> Part:
    kind = f.text("kind", ("constant", "map", "expansion"))
    if kind == "constant":
        return Constant(f.array("values", (K,)))
    if kind == "expansion":
        return _sums(f, K, n)
    heads, _ = heads_of(f.object("task"))
    own = sum(head.width for head in heads)
    inner = _sums(f.object("model"), own, n)
    known = f.maybe(f.array, "columns", (None,), INTEGERS, low=0, high=K)
    fits = own == K if known is None else own == (1 if len(known) == 2 else len(known))
    f.check(fits, f"does not fit a model of {K} decisions", "columns")
    return Placed(inner, known, K, np.broadcast_to(f.numbers("offset", K), (K,)))


def packed(models: list[Part], K: int, n: int) -> Expansions | None:
    """Cells that are sums of values of one kernel, as one; None where some cell is none."""
    plain: list[tuple[Sums | None, Array]] = []
    for model in models:
        if isinstance(model, Constant):
            plain.append((None, np.asarray(model.values, dtype=np.float64)))
        elif isinstance(model, Placed) and model.known is None:
            plain.append((model.inner, model.inner.intercept + model.offset))
        elif isinstance(model, Sums):
            plain.append((model, model.intercept))
        else:
            return None
    sources = [sums.source for sums, _ in plain if sums is not None]
    landmarks = [source for source in sources if isinstance(source, Landmarks)]
    alike = {(source.kernel, source.chosen is None) for source in landmarks}
    if not landmarks or len(landmarks) < len(sources) or len(alike) > 1:
        return None
    chosen = None
    if landmarks[0].chosen is not None:
        chosen = np.unique(np.concatenate([source.chosen for source in landmarks]))
    rows = [_in_columns(source, chosen) for source in landmarks]
    counts = [0 if sums is None else sums.source.size for sums, _ in plain]
    weights = [sums.weights.T for sums, _ in plain if sums is not None]
    return Expansions(
        Landmarks(landmarks[0].kernel, np.concatenate(rows), chosen, n),
        np.concatenate(weights).reshape(-1, K),
        np.cumsum([0, *counts]),
        np.array([intercept for _, intercept in plain]),
    )


def _in_columns(source: Landmarks, chosen: Array | None) -> Array:
    """Landmarks with more columns."""
    if chosen is None or source.chosen is None:
        return source.Z
    wide = np.zeros((len(source.Z), len(chosen)), dtype=source.Z.dtype)
    wide[:, np.searchsorted(chosen, source.chosen)] = source.Z
    return wide
