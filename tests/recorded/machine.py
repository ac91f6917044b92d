"""The kind of machine: what the bits of a model hang on, beside the source."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "torch")


def machine() -> dict[str, str]:
    """Processor, card, matrix libraries and versions, by name."""
    import numpy  # noqa: F401  loads its matrix library
    import scipy.linalg  # noqa: F401  and another one
    from llvmlite import binding
    from threadpoolctl import threadpool_info

    found = {"machine": platform.machine(), "processor": binding.get_host_cpu_name()}
    try:
        features = binding.get_host_cpu_features()
        found["features"] = ",".join(sorted(name for name, there in features.items() if there))
    except RuntimeError:  # LLVM cannot tell of this processor
        found["features"] = "unknown"
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    found["blas"] = ", ".join(
        sorted(
            {f"{b['internal_api']} {b['version']} {b.get('architecture', '')}".strip() for b in blas}
        )
    )
    found["card"] = card()
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def card() -> str:
    """The name of the card, where torch sees one."""
    try:
        import torch
    except ImportError:
        return "none"
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
