"""LASVM: online SMO, one pass and a finishing step; C as it is. Its time is that of the whole program.

Both the bias and the finishing step are its defaults. Its switch against the bias (-b 0) is said to be
experimental, and leaves it far from the optimum: on 4000 rows of ADULT at half the dual objective, 21 %
of errors in place of 15 %. Without the finishing step (-o 0) it has 59 % there.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.base import Fitted, Problem
from solvers.programs import on_path, run_program


@dataclass(frozen=True)
class LASVM:
    """The program ``la_svm``."""

    name: str = "LASVM"
    tol: float = 1e-3
    exact: bool = True

    def version(self) -> str | None:
        """It prints none."""
        return "LASVM" if on_path("la_svm") else None

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        options = f"-o 1 -p 1 -s 0 -t 2 -g {problem.gamma!r} -c {problem.C!r} -b 1 -m 1000"
        options += f" -e {self.tol!r}"
        return run_program(
            problem,
            seed,
            lambda train, model: ["la_svm", *options.split(), train, model],
            b"\nSV\n",
        )


SOLVERS = (LASVM(),)
