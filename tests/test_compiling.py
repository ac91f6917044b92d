"""Compiled code that is kept on disk is that of the sources, of all of them."""

import subprocess
import sys
from types import SimpleNamespace

import numba

from asset_svm.kernels.loops import finish
from asset_svm.numerics import compile_time as compile_times
from asset_svm.numerics.compile_time import CompileTime, compile_time
from asset_svm.numerics.compiling import PACKAGE, compiled_sources

OUTER = """
import sys
from pathlib import Path
from asset_svm.numerics import compiling
compiling.PACKAGE = Path(__file__).parent
from inner import added
@compiling.njit(cache=True)
def outer(x):
    return added(x)
print(outer(1))
"""
INNER = """
from asset_svm.numerics import compiling
@compiling.njit(cache=True)
def added(x):
    return x + {number}
"""


def test_a_function_is_compiled_anew_when_one_inside_it_changes(tmp_path):
    (tmp_path / "outer.py").write_text(OUTER)
    found = []
    for number in (1, 1, 5):
        (tmp_path / "inner.py").write_text(INNER.format(number=number))
        command = [sys.executable, "-c", "import outer"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        found.append(int(done.stdout))
    assert found == [2, 2, 6]


def test_the_digest_is_of_files_with_compiled_functions_alone(tmp_path):
    (tmp_path / "one.py").write_text("@njit(cache=True)\ndef f(): pass\n")
    (tmp_path / "other.py").write_text("def g(): pass\n")
    first = compiled_sources.__wrapped__(tmp_path)
    (tmp_path / "other.py").write_text("def g(): return 1\n")
    assert compiled_sources.__wrapped__(tmp_path) == first != ""
    (tmp_path / "one.py").write_text("@njit(cache=True)\ndef f(): return 1\n")
    assert compiled_sources.__wrapped__(tmp_path) != first
    assert compiled_sources.__wrapped__(tmp_path / "nothing") == ""


def test_our_functions_have_it():
    assert compiled_sources(PACKAGE) in finish._cache._cache_file._source_stamp


# The clock -----------------------------------------------------------------------------------------


def test_the_clock_stands_still_while_functions_are_compiled(monkeypatch):
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(compile_times.time, "perf_counter", lambda: time.now)
    found = CompileTime()
    assert found.working_time() == 100.0
    found.begin()
    time.now = 103.0
    found.begin()  # another thread, or a function inside
    time.now = 104.0
    assert found.working_time() == 100.0
    found.end()
    time.now = 105.0
    found.end()
    time.now = 106.0
    assert found.working_time() == 101.0


def test_numba_tells_the_clock_of_what_it_compiles(monkeypatch):
    seen = []
    monkeypatch.setattr(compile_time, "begin", lambda: seen.append("begin"))
    monkeypatch.setattr(compile_time, "end", lambda: seen.append("end"))

    @numba.njit
    def doubled(x):
        return 2.0 * x

    assert doubled(2.0) == 4.0 and seen == ["begin", "end"]
    assert doubled(3.0) == 6.0 and len(seen) == 2
