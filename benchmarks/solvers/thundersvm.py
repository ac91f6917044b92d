"""ThunderSVM: LIBSVM's problem on many cores or a GPU; C as it is, always with a bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solvers.base import installed
from solvers.scikit_learn_svm import ScikitLearn


@dataclass(frozen=True)
class ThunderSVM(ScikitLearn):
    """SVC or SVR of ThunderSVM."""

    name: str = "ThunderSVM"

    def version(self) -> str | None:
        """Its own."""
        return installed("thundersvm", "ThunderSVM")

    def classes(self) -> tuple[Any, Any]:
        """Imported when used."""
        from thundersvm import SVC, SVR

        return SVC, SVR


SOLVERS = (ThunderSVM(),)
