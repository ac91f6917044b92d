"""Which device works, and rows that already lie on the card.

A tensor is known by its class; torch is imported only where ``device``, or such a tensor, asks for it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_n_features, check_array, column_or_1d

from asset_svm.estimators.kinds import check_targets

WORTH = 2e11
"""Operations of one pass of the map from which "auto" takes the card: some seconds on a core."""


def on_card(X: Any) -> bool:
    """Whether X is a torch tensor on a CUDA card."""
    return type(X).__module__.split(".")[0] == "torch" and bool(getattr(X, "is_cuda", False))


def on_host(X: Any) -> Any:
    """X, as an array where it is a tensor on the card."""
    return X.detach().cpu().numpy() if on_card(X) else X


def row_type(X: Any) -> np.dtype:
    """The numpy type of the rows of X."""
    return np.dtype(str(X.dtype).removeprefix("torch."))


def as_type(X: Any, dtype: Any) -> Any:
    """X in this type, itself where it has it."""
    if on_card(X):
        return X.double() if np.dtype(dtype) == np.float64 else X.float()
    return X.astype(dtype, copy=False)


def goes_to_card(device: str, X: Any, width: int) -> bool:
    """Whether rows X go to the card: asked to, or there already, or ("auto") worth it."""
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
    return on_card(X) or (2.0 * X.shape[0] * X.shape[1] * width >= WORTH and _has_card())


def _has_card() -> bool:
    if find_spec("torch") is None:
        return False
    from asset_svm.engines.cuda.memory import card_is_there

    return card_is_there()


def require_card() -> None:
    """Say what is missing."""
    if find_spec("torch") is None:
        raise ImportError(
            'device="cuda" needs PyTorch, which is not installed; run: pip install "asset-svm[cuda]"'
        )
    if not _has_card():
        raise RuntimeError(
            'device="cuda" needs an NVIDIA card, and PyTorch finds none (torch.cuda.is_available() '
            'is False); install a CUDA build of PyTorch and the driver, or set device="cpu".'
        )


def card_engine(memory_limit: int | None, precision: Any) -> Any:
    """The engine of the card."""
    require_card()
    from asset_svm.engines.cuda.engine import CudaEngine

    return CudaEngine(memory_limit=memory_limit, precision=precision)


def check_card_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """What ``validate_data`` checks, of a tensor on the card, without a copy to the host."""
    # Of one row of X's shape, so that the messages are scikit-learn's own.
    rows = X[:1] if X.ndim else X
    check_array(on_host(rows).astype(np.float64) * 0.0)
    if str(X.dtype) not in ("torch.float32", "torch.float64"):
        X = X.float() if X.is_floating_point() else X.double()
    if not bool(X.isfinite().all()):
        raise ValueError("Input X contains NaN or infinity; impute or drop such rows.")
    _check_n_features(estimator, X, reset=reset)
    return X.detach()


def check_card_targets(X: Any, y: Any, *, numeric: bool) -> np.ndarray:
    """Targets of rows on the card, on the host."""
    y = on_host(y)
    check_targets(y, numeric=numeric)
    y = column_or_1d(y, warn=True)
    if numeric:
        y = check_array(y, ensure_2d=False, dtype=np.float64)
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} rows and y has {len(y)}; they must be as many.")
    return np.asarray(y)
