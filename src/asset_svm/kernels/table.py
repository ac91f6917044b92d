"""The kernels by their names: whoever lists kernels lists these."""

from __future__ import annotations

from typing import Any

from asset_svm.kernels.absolute import Laplacian
from asset_svm.kernels.formula import Formula
from asset_svm.kernels.gaussian import Gaussian
from asset_svm.kernels.matern import Exponential, Matern32, Matern52
from asset_svm.kernels.own import OwnFormula
from asset_svm.kernels.products import Linear, Polynomial, Sigmoid

FORMULAS: dict[str, type[Formula]] = {
    "rbf": Gaussian,
    "exponential": Exponential,
    "matern32": Matern32,
    "matern52": Matern52,
    "laplacian": Laplacian,
    "poly": Polynomial,
    "sigmoid": Sigmoid,
    "linear": Linear,
}
NAMES = tuple(FORMULAS)
WITH_GAMMA = tuple(name for name, formula in FORMULAS.items() if formula.has_gamma)
SPECTRAL = tuple(
    name for name, formula in FORMULAS.items() if formula(1.0, 3.0, 0.0).spectral_density is not None
)
"""The kernels that Fourier features can be drawn for."""


def formula_type(name: Any) -> type[Formula]:
    """The formula of this name, or that of a user's function."""
    if callable(name):
        return OwnFormula
    if not isinstance(name, str) or name not in FORMULAS:
        listed = ", ".join(f'"{known}"' for known in FORMULAS)
        raise ValueError(
            f"kernel={name!r} is not a known kernel; choose one of {listed}, or a callable."
        )
    return FORMULAS[name]
