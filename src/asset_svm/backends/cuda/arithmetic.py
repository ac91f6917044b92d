"""What the profiles of kernels are made of, on tensors."""

from __future__ import annotations

from torch import Tensor


class TorchArithmetic:
    """``kernels.Arithmetic`` of torch."""

    def exp(self, t: Tensor) -> Tensor:
        """e^t."""
        return t.exp_()

    def sqrt(self, t: Tensor) -> Tensor:
        """The square root."""
        return t.sqrt_()

    def at_least(self, t: Tensor, floor: float) -> Tensor:
        """max(t, floor)."""
        return t.clamp_(min=floor)

    def tanh(self, t: Tensor) -> Tensor:
        """The hyperbolic tangent."""
        return t.tanh_()

    def power(self, t: Tensor, exponent: float) -> Tensor:
        """t^exponent."""
        return t.pow_(exponent)


TORCH = TorchArithmetic()
