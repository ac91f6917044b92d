"""scikit-learn-intelex: the same estimators on Intel's oneDAL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solvers.base import installed
from solvers.scikit_learn_svm import ScikitLearn


@dataclass(frozen=True)
class Intelex(ScikitLearn):
    """SVC or SVR of scikit-learn-intelex."""

    name: str = "SVC / SVR (intelex)"

    def version(self) -> str | None:
        """Its own."""
        return installed("scikit-learn-intelex")

    def classes(self) -> tuple[Any, Any]:
        """Imported when used: the package logs as soon as it is imported."""
        from sklearnex.svm import SVC, SVR

        return SVC, SVR


SOLVERS = (Intelex(),)
