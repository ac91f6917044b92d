"""The card's kernels, compiled for the host: one thread block of fibres at a time.

The source is the one the card runs; only its PTX instructions, and where shared memory lies, are
replaced. Slow, and exact about what lanes exchange, so that a wrong lane, a missing term or a wrong
fold is found without a card.
"""

import ctypes
import hashlib
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def compile_kernel(folder, file, kernel, **settings):
    """A kernel as a shared library; returns a function of its argument structure and the grid."""
    from asset_svm.backends.cuda.compiler import source_of  # which needs torch

    parts = {key: text for key, text in settings.items() if not key.isupper()}
    source = source_of(file, **parts)
    source = re.sub(r'asm volatile\("ld\.acquire[^;]*;[^;]*;', "seen = *run.arrived;", source)
    source = re.sub(r'asm\("cvt\.f32\.f16[^;]*;[^;]*;', "f = 0;", source)
    source = re.sub(r'asm\("cvt\.rn\.f16[^;]*;[^;]*;', "h = 0;", source)
    source = re.sub(
        r"extern __shared__ __align__\(16\) ([\w ]+) (\w+)\[\];", r"\1* \2 = (\1*)host::ring;", source
    )
    source = re.sub(
        r"__shared__ union \{(.*?)\} s;",
        r"union Memory {\1}; Memory& s = *(Memory*)host::shared;",
        source,
        flags=re.S,
    )
    defines = {"KERNEL": kernel, "ARGUMENTS": "Run"} | {
        key: settings[key] for key in settings if key not in parts
    }
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    name = "-".join([*(str(value) for value in defines.values()), digest])
    unit, library = folder / f"{name}.cpp", folder / f"{name}.so"
    texts = [(HERE / "cuda_on_host.hpp").read_text(), source, (HERE / "launch.cpp").read_text()]
    unit.write_text("\n".join(texts))
    macros = [f"-D{key}={value}" for key, value in defines.items()]
    command = [
        "g++",
        "-std=c++17",
        "-O1",
        "-w",
        "-shared",
        "-fPIC",
        *macros,
        str(unit),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library)).launch
