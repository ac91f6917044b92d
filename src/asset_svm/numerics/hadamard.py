"""The fast Walsh-Hadamard transform, compiled, sixteen rows at a time.

H_1 = 1, H_2p = [[H_p, H_p], [H_p, -H_p]]: p log2 p additions instead of p^2 products. A panel holds
coordinate q of sixteen rows side by side, so that every butterfly is one vector instruction, and each
row is rounded in the same way whatever rows stand beside it.
"""

from __future__ import annotations

import numpy as np

from asset_svm.arrays import Array
from asset_svm.numerics.compiling import njit

LANES = 16


@njit(cache=True, nogil=True)
def _transform(panel: Array) -> None:
    """Panel <- H panel along its first axis, in place, two stages of butterflies at a time."""
    p, h = panel.shape[0], 1
    while 2 * h < p:
        for start in range(0, p, 4 * h):
            for q in range(start, start + h):
                for k in range(LANES):
                    a, b = panel[q, k], panel[q + h, k]
                    c, d = panel[q + 2 * h, k], panel[q + 3 * h, k]
                    panel[q, k] = (a + b) + (c + d)
                    panel[q + h, k] = (a - b) + (c - d)
                    panel[q + 2 * h, k] = (a + b) - (c + d)
                    panel[q + 3 * h, k] = (a - b) - (c - d)
        h *= 4
    if h < p:
        for q in range(h):
            for k in range(LANES):
                a, b = panel[q, k], panel[q + h, k]
                panel[q, k], panel[q + h, k] = a + b, a - b


@njit(cache=True, nogil=True)
def _signed(panel: Array, signs: Array) -> None:
    for q in range(panel.shape[0]):
        for k in range(LANES):
            panel[q, k] *= signs[q]


@njit(cache=True, nogil=True)
def _project_panel(padded: Array, panel: Array, signs: Array, scales: Array, out: Array) -> None:
    """out = scales * (H D_3 H D_2 H D_1 padded), a block of p columns after the other."""
    p, d = padded.shape[0], scales.shape[0]
    for block in range(signs.shape[0]):
        panel[:] = padded
        for turn in range(signs.shape[1]):
            _signed(panel, signs[block, turn])
            _transform(panel)
        first = block * p
        for k in range(out.shape[0]):
            for q in range(min(p, d - first)):
                out[k, first + q] = panel[q, k] * scales[first + q]


@njit(cache=True, nogil=True)
def project_dense(X: Array, signs: Array, scales: Array, out: Array) -> None:
    """The structured projection of dense rows: X of shape (B, n), n <= p, out of shape (B, d)."""
    padded = np.zeros((signs.shape[2], LANES), dtype=out.dtype)
    panel = np.empty_like(padded)
    for start in range(0, X.shape[0], LANES):
        count = min(LANES, X.shape[0] - start)
        for k in range(count):
            for q in range(X.shape[1]):
                padded[q, k] = X[start + k, q]
        _project_panel(padded, panel, signs, scales, out[start : start + count])


@njit(cache=True, nogil=True)
def project_sparse(
    indptr: Array, indices: Array, data: Array, signs: Array, scales: Array, out: Array
) -> None:
    """The structured projection of CSR rows; as ``project_dense`` does it."""
    padded = np.zeros((signs.shape[2], LANES), dtype=out.dtype)
    panel = np.empty_like(padded)
    for start in range(0, out.shape[0], LANES):
        count = min(LANES, out.shape[0] - start)
        padded[:] = 0
        for k in range(count):
            for t in range(indptr[start + k], indptr[start + k + 1]):
                padded[indices[t], k] += data[t]
        _project_panel(padded, panel, signs, scales, out[start : start + count])
