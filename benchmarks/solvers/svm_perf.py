"""SVM-Perf 3.0, the paper's cutting planes: CPNY (Nystroem basis) and CPSP (its own basis).

-c is C m / 100 = 1 / (100 lam), as its loss is in per cent of the rows; bias off (--b 0); -l 2 is the
error rate. CPNY needs --i 0 beside --t 1, and takes every (m/s)-th line for its basis: the order of
the lines, shuffled by the seed, makes it a random one.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.base import Fitted, Problem
from solvers.programs import banner, run_program
from solvers.svm_light import MODEL_START


@dataclass(frozen=True)
class SVMPerf:
    """The program ``svm_perf_learn``; ``options`` choose the method."""

    name: str
    options: str
    tol: float = 0.1
    exact: bool = False

    def version(self) -> str | None:
        """As it prints it."""
        found = banner("svm_perf_learn", r"(V\d+\.\d+)")
        return f"SVM-Perf {found}" if found else None

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """Train."""
        c = problem.C * len(problem.y) / 100.0
        options = f"-v 1 -l 2 {self.options} --k {problem.s} -t 2 -g {problem.gamma!r} -c {c!r}"
        options += f" -e {self.tol!r} --b 0"
        return run_program(
            problem,
            seed,
            lambda train, model: ["svm_perf_learn", *options.split(), train, model],
            MODEL_START,
        )


SOLVERS = (SVMPerf("CPNY", "-w 3 --i 0 --t 1"), SVMPerf("CPSP", "-w 9 --i 2"))
