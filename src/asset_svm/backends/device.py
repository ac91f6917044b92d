"""Which device works, and rows that already lie on the card.

A tensor is known by its class; torch is imported only where ``device``, or such a tensor, asks for it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Matrix

if TYPE_CHECKING:
    from asset_svm.backends.cuda.backend import CudaBackend
    from asset_svm.backends.cuda.products import Precision

WORTH = 2e11
"""A map of so many operations is worth the card where device="auto": some seconds on a core."""


def on_card(X: Any) -> bool:
    """Whether X is a torch tensor on a CUDA card."""
    return type(X).__module__.split(".")[0] == "torch" and bool(getattr(X, "is_cuda", False))


def on_host(X: Any) -> Any:
    """X, as an array where it is a tensor on the card."""
    return X.detach().cpu().numpy() if on_card(X) else X


def row_type(X: Matrix) -> np.dtype[Any]:
    """The numpy type of the rows of X."""
    return np.dtype(str(X.dtype).removeprefix("torch."))


def as_type(X: Matrix, dtype: npt.DTypeLike) -> Matrix:
    """X in this type; X itself where it has that already."""
    if on_card(X):
        return X.double() if np.dtype(dtype) == np.float64 else X.float()
    return X.astype(dtype, copy=False)


def goes_to_card(device: str, X: Matrix, width: int, n_rows: int | None = None) -> bool:
    """Whether rows X go to the card: asked to, or there already, or ("auto") worth it.

    ``n_rows`` is the number of all rows, where X is a sample of them.
    """
    if device == "cpu":
        if on_card(X):
            raise ValueError(
                'device="cpu" cannot work on X, a tensor on a CUDA card; set device="cuda", or pass '
                "X.cpu()."
            )
        return False
    if device == "cuda":
        require_card()
        return True
    m = X.shape[0] if n_rows is None else n_rows
    return on_card(X) or (2.0 * m * X.shape[1] * width >= WORTH and _has_card())


def _has_card() -> bool:
    if find_spec("torch") is None:
        return False
    from asset_svm.backends.cuda.memory import card_is_there

    return card_is_there()


def require_card() -> None:
    """Raise where there is no card to work on, and say what is missing."""
    if find_spec("torch") is None:
        raise ImportError(
            'device="cuda" needs PyTorch, which is not installed; run: pip install "asset-svm[cuda]"'
        )
    if not _has_card():
        raise RuntimeError(
            'device="cuda" needs an NVIDIA card, and PyTorch finds none (torch.cuda.is_available() '
            'is False); install a CUDA build of PyTorch and the driver, or set device="cpu".'
        )


def card_backend(memory_limit: int | None, precision: Precision) -> CudaBackend:
    """The backend of the card."""
    require_card()
    from asset_svm.backends.cuda.backend import CudaBackend

    return CudaBackend(memory_limit=memory_limit, precision=precision)
