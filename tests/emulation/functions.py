"""Parts of the card's source as functions of numbers, compiled for the host."""

import ctypes
import subprocess

HEAD = """
#include <cmath>
#define __device__
#define __forceinline__ inline
using namespace std;
"""


def compile_function(folder, *texts):
    """``all(double, ..., double* out)`` of these texts, called with the length of out and numbers."""
    unit, library = folder / "functions.cpp", folder / "functions.so"
    unit.write_text("\n".join([HEAD, *texts]))
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(unit), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    function = ctypes.CDLL(str(library)).all
    function.restype = None

    def call(count, *numbers):
        out = (ctypes.c_double * count)()
        function(*(ctypes.c_double(number) for number in numbers), out)
        return tuple(out)

    return call
