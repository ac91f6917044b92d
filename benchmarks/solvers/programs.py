"""Programs of others, found on the PATH: files in, a text model out, which is evaluated here."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel

from solvers.base import Fitted, OutOfTimeError, Problem, signs

_ROWS = 1024  # of the test set at a time


def run_program(
    problem: Problem, seed: int, command: Callable[[str, str], list[str]], model_start: bytes
) -> Fitted:
    """Train by ``command(training file, model file)`` and read the model.

    The rows are shuffled by the seed: these programs take theirs from the order of the file. Seconds
    are those that the program prints ("Runtime in cpu-seconds"), else its CPU time as a whole.
    ``model_start`` is how the line before the model's vectors ends.
    """
    if problem.regression:
        raise NotImplementedError("These programs are asked for classification only.")
    order = np.random.default_rng(seed).permutation(len(problem.y))
    with tempfile.TemporaryDirectory() as folder:
        train, model = f"{folder}/train", f"{folder}/model"
        dump_svmlight_file(problem.X[order], signs(problem.y)[order], train, zero_based=False)
        before = _cpu_seconds()
        done = subprocess.run(
            command(train, model), capture_output=True, encoding="latin-1", check=False,
            stdin=subprocess.DEVNULL,
            preexec_fn=None if problem.limit is None else partial(_limit_cpu, ceil(problem.limit)),
        )  # fmt: skip
        spent = _cpu_seconds() - before
        ended = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        if problem.limit is not None and ended and spent >= problem.limit - 1.0:
            raise OutOfTimeError(problem.limit)
        if done.returncode or not Path(model).exists():
            words = (done.stderr or done.stdout).strip()[-300:]
            raise RuntimeError(f"{command(train, model)[0]} failed: {words}")
        coefficients, vectors, bias = read_model(Path(model), model_start, problem.X.shape[1])
    told = re.search(r"Runtime in cpu-seconds: *([0-9.]+)", done.stdout)
    seconds = float(told[1]) if told else spent

    def decide(X: Any) -> np.ndarray:
        parts = [
            rbf_kernel(X[i : i + _ROWS], vectors, gamma=problem.gamma) @ coefficients
            for i in range(0, X.shape[0], _ROWS)
        ]
        return np.concatenate(parts) + bias

    return Fitted(seconds, decide, len(coefficients), bias)


def _cpu_seconds() -> float:
    """Of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _limit_cpu(seconds: int) -> None:
    """The system ends this process after so many CPU seconds, by SIGXCPU, or SIGKILL a second later."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def read_model(path: Path, start: bytes, n_features: int) -> tuple[np.ndarray, Any, float]:
    """(coefficients, vectors, bias) of a model in the format of SVM-Light or LIBSVM."""
    head, found, body = path.read_bytes().partition(start)
    if not found:
        raise RuntimeError(f"{path} is no model: no line ends in {start!r}.")
    words = head + start
    threshold = re.search(rb"([-+0-9.eE]+) # threshold b", words) or re.search(
        rb"rho ([-+0-9.eE]+)", words
    )
    lines = re.sub(rb"\s*#[^\n]*", b"", body)
    with tempfile.NamedTemporaryFile() as file:
        file.write(lines)
        file.flush()
        X, coefficients = load_svmlight_file(file.name, n_features=n_features, zero_based=False)
    bias = -float(threshold[1]) if threshold else 0.0
    return coefficients, sp.csr_matrix(X) if X.shape[1] > 10_000 else X.toarray(), bias


def on_path(*programs: str) -> bool:
    """Whether all of them can be run."""
    return all(shutil.which(program) for program in programs)


def banner(program: str, pattern: str) -> str | None:
    """The version that a program prints with its help; None where it is not on the PATH."""
    if not on_path(program):
        return None
    done = subprocess.run(
        [program], capture_output=True, encoding="latin-1", check=False, input="\n\n\n"
    )
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "version unknown"
