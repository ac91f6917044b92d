"""ThunderSVM: LIBSVM's problem on many cores or a GPU; C as it is, always with a bias."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from solvers.base import installed
from solvers.scikit_learn_svm import ScikitLearn


@cache
def _loads() -> bool:
    try:
        import_module("thundersvm")
    except (ImportError, OSError):
        return False
    return True


@dataclass(frozen=True)
class ThunderSVM(ScikitLearn):
    """SVC or SVR of ThunderSVM."""

    name: str = "ThunderSVM"

    def version(self) -> str | None:
        """Its own; None too where it is there and its library does not load (it asks for CUDA 9)."""
        return installed("thundersvm", "ThunderSVM") if _loads() else None

    def classes(self) -> tuple[Any, Any]:
        """Imported when used."""
        from thundersvm import SVC, SVR

        return SVC, SVR


SOLVERS = (ThunderSVM(),)
