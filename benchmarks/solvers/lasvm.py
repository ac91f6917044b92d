"""LASVM: online SMO, one pass; C as it is, bias off (-b 0). Its time is that of the whole program."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.base import Fitted, Problem
from solvers.programs import on_path, run_program


@dataclass(frozen=True)
class LASVM:
    """The program ``la_svm``; ``finish`` adds its finishing step."""

    name: str = "LASVM"
    finish: bool = False
    tol: float = 1e-3
    exact: bool = True

    def version(self) -> str | None:
        """It prints none."""
        return "LASVM" if on_path("la_svm") else None

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        options = f"-o {int(self.finish)} -p 1 -s 0 -t 2 -g {problem.gamma!r} -c {problem.C!r} -b 0"
        options += f" -m 1000 -e {self.tol!r}"
        return run_program(
            problem,
            seed,
            lambda train, model: ["la_svm", *options.split(), train, model],
            b"\nSV\n",
        )


SOLVERS = (LASVM(),)
