"""Kernel values with landmarks: what decisions are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.kernels import Kernel
from asset_svm.kernels.gradients import kernel_gradients


@dataclass(frozen=True, eq=False)
class KernelBasis:
    """The function x -> k(x, components), whose values decisions are made of."""

    kernel: Kernel
    components: Matrix
    wide: bool = field(default=False, kw_only=True)
    """Whether kernel values are computed in float64 for rows of any type: what they have in common is
    so large that float32 would hold nothing else."""

    @property
    def reentrant(self) -> bool:
        """Whether threads may evaluate it side by side: unless the kernel is a callable."""
        return self.kernel.is_reentrant

    def gradients(self, weights: Array) -> Callable[[Matrix], Array]:
        """The function from rows to the (rows, K, n) gradients of sums with (K, s) weights."""
        return kernel_gradients(self.kernel, self.components, weights)

    def basis(self, dtype: npt.DTypeLike) -> Callable[[Matrix], Array]:
        """The function of a block of rows; its values are float64 where they are ``wide``."""
        return self.kernel.against(self.components, np.float64 if self.wide else dtype)
