"""Kernel values within many cells at once: batched products of small matrices.

Everything here is (cells, rows, columns): row i of cell c against landmark j of the same cell, as many
rows, and landmarks, in each. Products are plain ones of the rows' own type: cells are small, and what
is done with the values takes longer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asset_svm.backends.cuda.products import cut
from asset_svm.kernels import Argument, Kernel


def kernel_values(kernel: Kernel, X: Tensor, Z: Tensor, shift: Tensor) -> Tensor:
    """k(X, Z), of shape (cells, rows of X, rows of Z).

    Parameters
    ----------
    X, Z : tensors of shape (cells, rows, n)
    shift : tensor of shape (cells, 1, n)
        Some place near the rows of each cell: squared distances are computed from there (as in
        ``kernels``), where less of them cancels.
    """
    formula: Any = kernel.formula
    if kernel.argument is Argument.SQUARED_DISTANCE:
        factor = float(formula.rate**0.5)
        A, B = (X - shift).mul_(factor), (Z - shift).mul_(factor)
        values = torch.bmm(A, B.transpose(1, 2)).mul_(2)
        left, right = _squared_norms(A)[:, :, None], _squared_norms(B)[:, None, :]
        return formula.profile(cut(values.sub_(left).sub_(right), left, right, formula), torch)
    if kernel.argument is Argument.ABSOLUTE_DISTANCE:
        return formula.profile(torch.cdist(X, Z, p=1).mul_(formula.factor), torch)
    return formula.values(torch.bmm(X, Z.transpose(1, 2)), torch)


def _squared_norms(X: Tensor) -> Tensor:
    return X.square().sum(dim=2, dtype=torch.float64).to(X.dtype)
