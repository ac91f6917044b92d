"""Kernels: compiled by NVRTC when first needed, kept on disk, launched on PyTorch's stream.

NVRTC and the driver are called through ctypes: both are plain C libraries with a stable interface, and
every PyTorch built for CUDA brings the one and runs on the other.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch


class CompilationError(RuntimeError):
    """NVRTC or the driver refused a kernel: a defect of this library or of the installation."""


def _candidates() -> list[str]:
    """Where NVRTC may lie: known to the loader, inside PyTorch, or in NVIDIA's packages beside it."""
    major = (torch.version.cuda or "12").split(".")[0]
    pattern = "nvrtc64_*.dll" if sys.platform == "win32" else "libnvrtc.so*"
    inside = Path(torch.__file__).parent / "lib"
    beside = Path(torch.__file__).parents[1] / "nvidia"
    found = [str(path) for path in sorted(inside.glob(pattern))]
    found += [str(path) for path in sorted(beside.glob(f"*/lib/{pattern}"))]
    return [*found, f"libnvrtc.so.{major}", "libnvrtc.so"]


@cache
def _nvrtc() -> ctypes.CDLL:
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CompilationError(
        "NVRTC, the compiler library of CUDA, was not found beside PyTorch; reinstall it: "
        'pip install --force-reinstall "asset-svm[cuda]"'
    )


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _compile(source: bytes, options: list[str]) -> bytes:
    library, program, size = _nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), encoded)
    if failed:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise CompilationError(f"NVRTC refused a kernel: {log.value.decode(errors='replace')}")
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    binary = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, binary)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return binary.raw


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "asset-svm"


def _binary(source: bytes, options: list[str]) -> bytes:
    """The machine code, from disk where this source was compiled before."""
    version = (ctypes.c_int(), ctypes.c_int())
    _nvrtc().nvrtcVersion(*(ctypes.byref(part) for part in version))
    key = hashlib.sha256(source + repr((options, [part.value for part in version])).encode())
    path = _cache_folder() / f"{key.hexdigest()}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        binary = _compile(source, options)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        os.replace(file.name, path)  # another process may do the same: both wrote the same bytes
    except OSError:
        pass  # a read-only home: compile again next time
    return binary


def _check(code: int, what: str) -> None:
    if code:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(code, ctypes.byref(name))
        raise CompilationError(f"{what} failed with {(name.value or b'?').decode()}.")


def source_of(file: str, **parts: str) -> str:
    """A source file of this package, each ``#include "part"`` replaced by the text of that name.

    What is no part is a source file beside it.
    """

    def text(found: re.Match[str]) -> str:
        return parts.get(found[1]) or source_of(f"{found[1]}.cu")

    whole = files(__package__).joinpath(file).read_text()
    return re.sub(r'^#include "(\w+)"$', text, whole, flags=re.MULTILINE)


@cache
def kernel(file: str, name: str, device: int, **settings: Any) -> CompiledKernel:
    """The kernel ``name`` of a source file of this package, for a card.

    Settings in capitals are macros, others the texts that the file includes.
    """
    parts = {key: text for key, text in settings.items() if not key.isupper()}
    source = source_of(file, **parts).encode()
    major, minor = torch.cuda.get_device_capability(device)
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
    options += [f"-D{macro}={value}" for macro, value in settings.items() if macro not in parts]
    binary = _binary(source, options)
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # makes the card's context this thread's
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_driver().cuModuleLoadData(ctypes.byref(module), binary), "Loading a kernel")
        found = _driver().cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        _check(found, f"Finding the kernel {name}")
    return CompiledKernel(function, device)


@cache
def shared_memory(device: int) -> int:
    """Bytes of shared memory that a thread block of this card can have, if it asks for them."""
    largest = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    handle, found = ctypes.c_int(), ctypes.c_int()
    _check(_driver().cuDeviceGet(ctypes.byref(handle), device), "Finding the card")
    _check(
        _driver().cuDeviceGetAttribute(ctypes.byref(found), largest, handle),
        "Asking for the size of memory",
    )
    return found.value


class CompiledKernel:
    """A kernel of one card; its only argument is a structure, passed by value."""

    def __init__(self, function: ctypes.c_void_p, device: int):
        self.function, self.device = function, device

    def reserve(self, shared: int) -> None:
        """Allow launches with so many bytes of dynamic shared memory."""
        maximum = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _check(_driver().cuFuncSetAttribute(self.function, maximum, shared), "Reserving memory")

    def __call__(
        self,
        arguments: ctypes.Structure,
        grid: int,
        threads: int,
        *,
        cooperative: bool = False,
        shared: int = 0,
    ) -> None:
        """Launch on PyTorch's current stream; ``cooperative``: all blocks are there at a time."""
        stream = ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        shape = (grid, 1, 1, threads, 1, 1, shared, stream, parameters)
        driver = _driver()
        if cooperative:
            _check(driver.cuLaunchCooperativeKernel(self.function, *shape), "A launch")
        else:
            _check(driver.cuLaunchKernel(self.function, *shape, None), "A launch")


def structure(name: str, pointers: str, integers: str, reals: str, kind: Any) -> type:
    """A structure of pointers, 64-bit integers and reals of one ctypes type, in this order."""
    fields: list[tuple[str, Any]] = [(field, ctypes.c_void_p) for field in pointers.split()]
    fields += [(field, ctypes.c_int64) for field in integers.split()]
    fields += [(field, kind) for field in reals.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
