"""Decisions basis(X) weights^T + intercept: s kernel values (or d features), no support vector.

Basis values have the type of the rows; decisions are float64, as those of ``sklearn.svm``: targets of
10^9 and more leave float32 no digit for what the model has learnt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from asset_svm.arrays import Array
from asset_svm.backends.base import Backend
from asset_svm.backends.cpu import CpuBackend
from asset_svm.exceptions import NonFiniteError
from asset_svm.features import FeatureMap
from asset_svm.kernels.sums import KernelSums
from asset_svm.numerics.rows import weighted_sums
from asset_svm.threads.blocks import map_in_blocks


@dataclass(eq=False)
class Decision:
    """The decision function of K models.

    Parameters
    ----------
    source : object with ``basis(dtype)``
        A feature map, or a kernel with its landmarks; ``reentrant`` where threads may call it.
    weights : array of shape (K, s)
    intercept : array of shape (K,)
    """

    source: Any
    weights: np.ndarray
    intercept: np.ndarray
    alone: ClassVar[bool] = False
    """Whether the host must decide, with one thread: never, since a card has a way for any kernel."""
    _prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}

    @property
    def dtype(self) -> np.dtype:
        """The type of the landmarks, float32 where there are none."""
        components = getattr(self.source, "components", None)
        return np.dtype(np.float32) if components is None else components.dtype

    def basis(self, dtype: np.dtype) -> Any:
        """The basis for rows of this type, prepared once."""
        basis = self._prepared.get(dtype)
        if basis is None:
            basis = self._prepared[dtype] = self.source.basis(dtype)
        return basis

    def _sums(self, dtype: np.dtype) -> KernelSums | None:
        """The decisions of dense rows of this type by compiled code, prepared once, where it can."""
        key = ("sums", dtype)
        if key not in self._prepared:
            basis = self.basis(dtype)
            self._prepared[key] = KernelSums.of(basis, self.weights, self.intercept)
        found: KernelSums | None = self._prepared[key]
        return found

    def unchecked(self, dtype: np.dtype) -> Callable[[Any], np.ndarray]:
        """A function from rows of this type to (rows, K) decisions in float64, without any check."""
        basis, weights, intercept = self.basis(dtype), self.weights.T.copy(), self.intercept
        return lambda X: basis(X) @ weights + intercept

    def by(self, backend: Backend, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed where the backend works."""
        return self(X) if isinstance(backend, CpuBackend) else self.on_card(backend, X)

    def on_card(self, backend: Any, X: Any) -> np.ndarray:
        """The (rows, K) decisions, computed on a card."""
        dtype = np.dtype(np.float64 if "64" in str(X.dtype) else np.float32)
        key = (dtype, backend.precision)
        if key not in self._prepared:
            self._prepared[key] = backend.decision(self.source, self.weights, self.intercept, dtype)
        return finite(self._prepared[key](X))

    def __call__(self, X: Any) -> np.ndarray:
        """The (rows, K) decisions in float64, whatever the type of X."""
        sums = None if sp.issparse(X) else self._sums(X.dtype)
        if sums is not None:
            return finite(sums(X))
        basis, K = self.basis(X.dtype), len(self.weights)

        def decide(rows: Any) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):  # found and told below
                return weighted_sums(basis(rows), self.weights) + self.intercept

        return finite(map_in_blocks(decide, X, K, np.float64, reentrant=self.source.reentrant))

    def gradients(self, X: Any) -> np.ndarray:
        """The gradients of the decisions at the rows of X, dense or CSR, (rows, K, n) in float64."""
        key = "gradients"
        if key not in self._prepared:
            self._prepared[key] = self.source.gradients(self.weights)
        return finite_gradients(self._prepared[key](X))


def decision_of(coef: Array, intercept: Array, phi: FeatureMap, offset: float | Array) -> Decision:
    """The decision function of phi(x).coef + intercept, from the plain values of the map's basis.

    ``offset`` is what was subtracted from the targets.
    """
    intercept = np.asarray(intercept, dtype=np.float64) + offset - phi.drift(coef)
    return Decision(phi.plain, phi.decision_weights(coef), intercept)


def finite_gradients(out: np.ndarray) -> np.ndarray:
    """Gradients, none of which may be infinite or no number."""
    good = np.isfinite(out).all(axis=(1, 2))
    if not good.all():
        raise NonFiniteError(
            f"The gradient at row {int(np.argmin(good))} is not finite: its values are too large for "
            "the kernel, or it has none there; scale the columns as in training."
        )
    return out


def finite(out: np.ndarray) -> np.ndarray:
    """Decisions, none of which may be infinite or no number."""
    if not np.isfinite(out).all():
        raise NonFiniteError(
            f"The decision of row {int(np.argmin(np.isfinite(out).all(axis=1)))} is not finite: "
            "its values are too large for the kernel; scale the columns as in training."
        )
    return out
