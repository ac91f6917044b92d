"""Where and with what a number was measured."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from asset_svm import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=1)
def stamp(threads: int) -> dict[str, Any]:
    """Commit, processor, accelerator, threads and versions."""
    return dict(
        commit=_commit(),
        cpu=_cpu(),
        gpu=_gpu(),
        threads=threads,
        python=platform.python_version(),
        versions={"asset-svm": __version__} | {name: version(name) for name in PACKAGES},
    )


@lru_cache(maxsize=1)
def has_card() -> bool:
    """Whether PyTorch is there and finds a card."""
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _commit() -> str:
    """Short hash, with "+" where the tree has changes."""
    commit = _run("git", "rev-parse", "--short", "HEAD") or "unknown"
    return commit + ("+" if _run("git", "status", "--porcelain", "--untracked-files=no") else "")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpu() -> str:
    return _run("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").replace("\n", ", ")
