"""Kernel values within many cells at once: batched products of small matrices.

Everything here is (cells, rows, columns): row i of cell c against landmark j of the same cell, as many
rows, and landmarks, in each. Products are plain ones of the rows' own type: cells are small, and what
is done with the values takes longer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from asset_svm.backends.cuda.maps import check_bases
from asset_svm.kernels import Kernel


def kernel_values(kernel: Kernel, X: Tensor, Z: Tensor, shift: Tensor) -> Tensor:
    """k(X, Z), of shape (cells, rows of X, rows of Z).

    Parameters
    ----------
    X, Z : tensors of shape (cells, rows, n)
    shift : tensor of shape (cells, 1, n)
        Some place near the rows of each cell: the Gaussian kernel is computed from there (as in
        ``kernels``), where less of it cancels.
    """
    if kernel.name == "rbf":
        factor = float(kernel.gamma**0.5)
        A, B = (X - shift).mul_(factor), (Z - shift).mul_(factor)
        values = torch.bmm(A, B.transpose(1, 2)).mul_(2)
        values.sub_(_squared_norms(A)[:, :, None]).sub_(_squared_norms(B)[:, None, :])
        return values.clamp_(max=0).exp_()
    if kernel.name == "laplacian":
        return torch.cdist(X, Z, p=1).mul_(-kernel.gamma).exp_()
    values = torch.bmm(X, Z.transpose(1, 2))
    if kernel.name != "linear":
        values.mul_(kernel.gamma).add_(kernel.coef0)
        check_bases(kernel, values)
        values = values.tanh_() if kernel.name == "sigmoid" else values.pow_(kernel.degree)
    return values


def _squared_norms(X: Tensor) -> Tensor:
    return X.square().sum(dim=2, dtype=torch.float64).to(X.dtype)
