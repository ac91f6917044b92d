"""Vowpal Wabbit's kernel SVM: online, exact kernel; bandwidth = gamma, l2 = 1/C, no bias."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.base import Fitted, OutOfTimeError, Problem, installed, signs, timed


@dataclass(frozen=True)
class VowpalWabbit:
    """``--ksvm``; classification only."""

    name: str = "Vowpal Wabbit ksvm"
    reprocess: int = 1
    exact: bool = True

    def version(self) -> str | None:
        """Its own."""
        return installed("vowpalwabbit", "Vowpal Wabbit")

    def fit(self, problem: Problem, seed: int) -> Fitted:
        """One pass in the order of the rows: a row that comes twice counts twice."""
        import vowpalwabbit

        if problem.regression:
            raise NotImplementedError("Vowpal Wabbit's kernel SVM classifies only.")
        model = vowpalwabbit.Workspace(
            f"--ksvm --kernel rbf --bandwidth {problem.gamma!r} --l2 {1.0 / problem.C!r} "
            f"--reprocess {self.reprocess} --noconstant -b 18 --quiet --random_seed {seed}"
        )
        y = signs(problem.y)
        lines = [f"{label:g} {row}" for label, row in zip(y, _lines(problem.X), strict=True)]

        def train() -> None:
            begun = time.process_time()
            for line in lines:
                model.learn(line)
                if problem.limit is not None and time.process_time() - begun > problem.limit:
                    raise OutOfTimeError(problem.limit)

        seconds, _ = timed(train)
        return Fitted(seconds, lambda X: np.array([model.predict(row) for row in _lines(X)]), len(y))


def _lines(X: Any) -> list[str]:
    """Rows in its text format."""
    rows = sp.csr_matrix(X)
    out = []
    for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False):
        pairs = zip(rows.indices[start:stop], rows.data[start:stop], strict=True)
        out.append("| " + " ".join(f"{index}:{value!s}" for index, value in pairs))
    return out


SOLVERS = (VowpalWabbit(),)
