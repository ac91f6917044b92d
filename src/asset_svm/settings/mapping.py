"""The parameters of a kernel and of its approximation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import joblib

from asset_svm.arrays import Array
from asset_svm.backends.device import on_host
from asset_svm.features.frequencies import DRAWS
from asset_svm.kernels import Kernel, formula_type, scale_gamma
from asset_svm.settings import checks as check
from asset_svm.settings.landmarks import check_landmarks

DEFAULT_COMPONENTS = 2048
FOURIER_KINDS = (*DRAWS, "hadamard")


@dataclass(frozen=True, eq=False)
class MapSettings:
    """The parameters that a feature map depends on, under the names that users know.

    Parameters
    ----------
    kernel : str or callable
    gamma : float, "scale" or "auto"
    degree, coef0 : float
    n_components : int, "auto" or None
        None: 2048, or fewer where there are fewer rows.
    landmarks : str or matrix of points
    fourier : str
    rank, rank_threshold, rank_rule
        Which eigenpairs of the landmarks' kernel matrix are kept.
    """

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    degree: float = 3
    coef0: float = 0.0
    n_components: int | Literal["auto"] | None = None
    landmarks: Any = "uniform"
    fourier: str = "iid"
    rank: int | None = None
    rank_threshold: float | None = None
    rank_rule: Literal["relative", "absolute"] = "relative"

    @classmethod
    def of(cls, params: Mapping[str, Any], *, supervised: bool) -> MapSettings:
        """Settings from parameters, which are checked; those that are not given have their defaults."""
        own = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        found = cls(**own)
        check.check_kernel(found.kernel, found.gamma, found.degree, found.coef0)
        auto = isinstance(found.n_components, str) and found.n_components == "auto"
        if auto and not supervised:
            raise ValueError(
                'n_components="auto" needs targets to judge numbers of components by, and there are '
                "none here; set n_components to an integer or None."
            )
        if not auto:
            check.check_count("n_components", found.n_components, optional=True)
        check_landmarks(found.landmarks, found.n_components, supervised=supervised)
        check.check_choice("fourier", found.fourier, FOURIER_KINDS)
        check.check_choice("rank_rule", found.rank_rule, ("relative", "absolute"))
        check.check_count("rank", found.rank, optional=True)
        check.check_not_negative("rank_threshold", found.rank_threshold, optional=True)
        if found.rank_rule == "absolute" and found.rank_threshold is None:
            raise ValueError(
                'rank_rule="absolute" needs a threshold, and rank_threshold=None gives none; '
                "set rank_threshold, for example to the paper's 1e-16."
            )
        return found

    def kernel_for(self, X: Any, weight: Array | None) -> Kernel:
        """The kernel with its gamma as a number, for rows of these weights."""
        gamma, formula = self.gamma, formula_type(self.kernel)
        if gamma == "auto":
            gamma = formula.gamma_of(float(X.shape[1]))
        elif gamma == "scale":
            gamma = scale_gamma(on_host(X), weight, formula)
        return Kernel(self.kernel, float(gamma), self.degree, float(self.coef0))

    @property
    def by_margin(self) -> bool:
        """Whether landmarks lie where a first fit has its boundary."""
        return isinstance(self.landmarks, str) and self.landmarks == "margin"

    @property
    def number(self) -> int | None:
        """The number of components, where it is given."""
        count: Any = self.n_components
        return int(count) if check.is_integer(count) else None

    @property
    def key(self) -> tuple[Any, ...]:
        """What two maps have in common that are drawn alike; arrays have no equality of their own."""
        names = [name for name in self.__dataclass_fields__ if name != "landmarks"]
        return (*(getattr(self, name) for name in names), joblib.hash(self.landmarks))


def resolve_components(n_components: int | None) -> int:
    """``n_components``, by default 2048: rows whose features do not fit in memory are mapped anew."""
    return DEFAULT_COMPONENTS if n_components is None else int(n_components)
