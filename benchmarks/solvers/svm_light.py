"""SVM-Light: exact, C as it is, bias off (-b 0)."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.base import Fitted, Problem
from solvers.programs import banner, run_program

MODEL_START = b"each following line is a SV (starting with alpha*y)\n"


@dataclass(frozen=True)
class SVMLight:
    """The program ``svm_learn``."""

    name: str = "SVM-Light"
    tol: float = 1e-3
    exact: bool = True

    def version(self) -> str | None:
        """As it prints it."""
        found = banner("svm_learn", r"(V\d+\.\d+)")
        return f"SVM-Light {found}" if found else None

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        options = f"-t 2 -g {problem.gamma!r} -c {problem.C!r} -b 0 -m 1000 -e {self.tol!r}"
        return run_program(
            problem,
            seed,
            lambda train, model: ["svm_learn", *options.split(), train, model],
            MODEL_START,
        )


SOLVERS = (SVMLight(),)
