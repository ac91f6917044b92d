"""The experiments of the paper, one file each: tasks to run, and a section of the page.

A new experiment is a new file, and its name in ``ALL``, in the order of the page.
"""

from __future__ import annotations

from typing import cast

from experiments import claims, figure1, figure2, rates, regression, subset, table2, table3, verdict
from experiments.base import FULL, QUICK, Experiment, Record, Scale, Task

__all__ = ["ALL", "FULL", "QUICK", "Experiment", "Record", "Scale", "Task"]

ALL: dict[str, Experiment] = {
    module.name: cast(Experiment, module)
    for module in (verdict, table2, figure1, table3, subset, figure2, claims, rates, regression)
}
