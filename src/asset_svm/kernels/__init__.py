"""Kernels k(x, z) against a fixed set of landmarks, in blocks of dense or CSR rows.

    profiles    what every named kernel is a function of, and that function, for numbers of any kind
    kernel      ``Kernel``, a name with its numbers: what everybody else asks
    formula     what a formula of a kernel supplies, and what it is a function of
    table       the formulas by their names
    products, distances, absolute, own     how formulas of x.z, |x - z|^2, |x - z|_1 and of rows
                themselves become values
    gaussian, matern    the Gaussian kernel, and those of Matern; the other formulas lie beside what
                they are functions of
    loops       kernel matrices of few rows, by compiled code alone
    sums        sums of kernel values with landmarks, likewise
    gradients   the gradients of such sums, for every kernel that has a name
    landmarks, scale    landmarks prepared for products; gamma="scale"

A new kernel is a file like ``gaussian`` and an entry of ``table``; of ``loops`` too, where it has one.

Conventions that bind the code here:

- Names, ``gamma``, ``degree`` and ``coef0`` mean what they mean in ``sklearn.svm.SVC``; ``laplacian``
  is exp(-gamma |x - z|_1), and gamma of ``exponential``, ``matern32`` and ``matern52`` is one over a
  length, so that "scale" and "auto" are the roots of SVC's (``Formula.gamma_of``). A callable takes
  two matrices and returns the matrix of kernel values, dense or sparse.
- Columns in which all landmarks are 0 are left out of products; where dense rows are moved, those in
  which no two landmarks differ.
- CSR rows are never made dense. What is left of landmarks is, up to ``DENSE_LANDMARK_BYTES``: a nonzero
  of x then costs one contiguous row of length s.

Names are imported when they are first used: ``runtime`` takes the profiles, and no compiled code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asset_svm.kernels.formula import Argument, BlockFunction, Formula, SpectralDensity
    from asset_svm.kernels.kernel import Kernel
    from asset_svm.kernels.landmarks import DENSE_LANDMARK_BYTES
    from asset_svm.kernels.scale import scale_gamma, squared_norms
    from asset_svm.kernels.table import FORMULAS, NAMES, SPECTRAL, WITH_GAMMA, formula_type

__all__ = [
    "DENSE_LANDMARK_BYTES",
    "FORMULAS",
    "NAMES",
    "SPECTRAL",
    "WITH_GAMMA",
    "Argument",
    "BlockFunction",
    "Formula",
    "Kernel",
    "SpectralDensity",
    "formula_type",
    "scale_gamma",
    "squared_norms",
]

_HOMES = {
    "DENSE_LANDMARK_BYTES": "landmarks",
    "FORMULAS": "table",
    "NAMES": "table",
    "SPECTRAL": "table",
    "WITH_GAMMA": "table",
    "Argument": "formula",
    "BlockFunction": "formula",
    "Formula": "formula",
    "Kernel": "kernel",
    "SpectralDensity": "formula",
    "formula_type": "table",
    "scale_gamma": "scale",
    "squared_norms": "scale",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
