"""The solvers of the benchmarks: one small file each, which defines ``SOLVERS``.

Every solver is posed the same problem (``Problem``), with the mapping of parameters that its file
states; ``tests/test_peers.py`` pins each by the value of the objective. A new solver is a new file
in this folder. One that is not installed has ``version() is None``, and is shown as an empty row.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from solvers.base import Fitted, OutOfTimeError, Problem, Solver

__all__ = ["SOLVERS", "Fitted", "OutOfTimeError", "Problem", "Solver"]

_PARTS = {"base", "programs", "traces"}

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for module in iter_modules(__path__)
    if module.name not in _PARTS
    for solver in import_module(f"solvers.{module.name}").SOLVERS
}
"""All solvers, by name."""
