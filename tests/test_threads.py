"""The number of BLAS threads is what it was, whatever happens inside."""

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from linecache import getline
from threading import Event

import pytest
from threadpoolctl import threadpool_limits

from asset_svm.threads import blas as threads
from asset_svm.threads.blas import few_threads


def blas_threads():
    return {lib["num_threads"] for lib in threads.blas().info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has one thread")
        yield


def test_one_thread_inside_and_as_many_as_before_outside():
    with few_threads(0):
        assert blas_threads() == {1}
        with few_threads(100):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with few_threads(threads.LARGEST + 1):
        assert blas_threads() == {2}


def test_threads_enter_together():
    def enter(number):
        with few_threads(0):
            return blas_threads()

    with ThreadPoolExecutor(4) as pool:
        assert all(found == {1} for found in pool.map(enter, range(200)))
        assert blas_threads() == {2}
        with few_threads(0):
            assert blas_threads() == {1}
        assert blas_threads() == {2}, "a thread that is still there kept the limits to itself"


def test_ctrl_c_at_any_line_leaves_the_next_one_as_it_should_be():
    def interrupted_at(number):
        """Whether line ``number`` of ``few_threads`` was reached, and raised KeyboardInterrupt."""
        left = [number]

        def trace(frame, event, argument):
            if frame.f_code.co_filename != threads.__file__ or frame.f_code.co_name != "few_threads":
                return None
            # Python itself keeps Ctrl-C away from between a lock and its with.
            if event == "line" and "with _lock" not in getline(threads.__file__, frame.f_lineno):
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with few_threads(0):
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    gc.freeze()  # what is there already takes long to look through, and is nobody's frame
    number = 1
    while interrupted_at(number):
        number += 1
        gc.collect()  # the frame goes when its traceback does
        with few_threads(0):
            assert blas_threads() <= {1, 2}
        assert blas_threads() == {2}, number
        with few_threads(0):
            assert blas_threads() == {1}, number
    gc.unfreeze()
    assert number > 10, "the lines were not traced"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_while_another_thread_is_inside_is_not_held():
    """That thread is not there to leave: the child has all of BLAS's threads, and can enter."""
    inside, leave = Event(), Event()

    def stay():
        with few_threads(0):
            inside.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(stay)
        inside.wait()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                before = blas_threads()
                with few_threads(0):
                    within = blas_threads()
                code = 0 if (before, within, blas_threads()) == ({2}, {1}, {2}) else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        leave.set()
        done.result()
    assert os.waitstatus_to_exitcode(status) == 0
    assert blas_threads() == {2}
