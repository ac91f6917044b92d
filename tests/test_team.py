"""Teams of threads, what they may take, and what n_jobs comes to."""

import os
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from asset_svm.numerics.compiling import njit
from asset_svm.threads.blas import few_threads
from asset_svm.threads.counter import take
from asset_svm.threads.granted import count_threads, grant, granted
from asset_svm.threads.team import side_by_side, together


@njit(nogil=True)
def take_all(counter, taken):
    while True:
        number = take(counter)
        if number >= taken.shape[0]:
            break
        taken[number] += 1


def test_numbers_are_taken_once_each_by_threads_of_compiled_code():
    taken = np.zeros(100_000, dtype=np.int64)
    together(lambda counter: take_all(counter, taken), 4)
    assert (taken == 1).all()


def test_a_team_returns_in_order_and_raises_what_came_first():
    with grant(3):
        assert side_by_side(lambda n: n * n, range(20)) == [n * n for n in range(20)]
        with pytest.raises(ZeroDivisionError):
            side_by_side(lambda n: 1 // (n - 7), range(20))
        assert side_by_side(lambda n: n, range(5)) == list(range(5)), "the team lives on"


def test_members_share_what_is_granted():
    with grant(6):
        assert side_by_side(lambda _: granted(), range(3)) == [2, 2, 2]
        assert side_by_side(lambda _: granted(), range(40)) == [1] * 40
        assert side_by_side(lambda _: granted(), range(4), 1) == [6] * 4
    with grant(1):
        assert side_by_side(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3


def test_teams_may_be_nested_and_stand_side_by_side():
    def square_sum(count):
        return sum(side_by_side(lambda n: n * n, range(count)))

    with grant(4):
        found = side_by_side(square_sum, range(10), 4)
    assert found == [sum(n * n for n in range(count)) for count in range(10)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_threads_of_its_own():
    with grant(3):
        side_by_side(lambda n: n, range(9))
        child = os.fork()
        if child == 0:
            os._exit(0 if side_by_side(lambda n: n, range(9)) == list(range(9)) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, 1), (5, 5), (-1, 2), (-2, 1), (-9, 1), (None, 2)])
def test_n_jobs_counts_threads_as_joblib_does(n_jobs, expected, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    monkeypatch.setattr("asset_svm.threads.granted.allowed_blas_threads", lambda: 8)
    assert count_threads(n_jobs) == expected


def test_without_n_jobs_the_limits_of_blas_are_kept(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    with threadpool_limits(2, user_api="blas"):
        assert count_threads(None) == 2
        with few_threads(0):
            assert count_threads(None) == 2, "what a fit beside this one takes for a while is no limit"
        assert count_threads(-1) == 8
    with threadpool_limits(1, user_api="blas"):
        assert count_threads(None) == 1


def test_inside_joblib_nobody_takes_more_than_a_share(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda *_: 8)
    monkeypatch.setattr("asset_svm.threads.granted.allowed_blas_threads", lambda: 8)
    counts = [joblib.delayed(count_threads)(n) for n in (None, -1, 3)]
    assert joblib.Parallel(2, backend="threading")(counts) == [1, 1, 3]
    assert joblib.Parallel(1)(counts) == [8, 8, 3]
    monkeypatch.setattr("asset_svm.threads.granted.allowed_blas_threads", lambda: 4)
    assert joblib.Parallel(2, backend="threading")(counts) == [4, 4, 3], "its share of the processors"
    if hasattr(joblib, "parallel_config"):
        with joblib.parallel_config("threading", n_jobs=3):
            assert count_threads(None) == 3


def test_processes_of_joblib_share_the_processors():
    found = joblib.Parallel(2, backend="loky")(joblib.delayed(count_threads)(None) for _ in range(2))
    assert found == [max(joblib.cpu_count() // 2, 1)] * 2


INTERRUPTED = """
import _thread, faulthandler, random, threading, time
from threadpoolctl import threadpool_info, threadpool_limits
from asset_svm.threads import team
from asset_svm.threads.granted import grant

faulthandler.dump_traceback_later(600, exit=True)
rng, over, caught = random.Random(0), False, 0

def interrupt():
    while not over:
        time.sleep(rng.uniform(0.0, 0.004))
        if armed:
            _thread.interrupt_main()

armed = False
thread = threading.Thread(target=interrupt)
with threadpool_limits(2, user_api="blas"):
    before = [each["num_threads"] for each in threadpool_info()]
    thread.start()
    turn = 0
    while caught < 60:
        turn += 1
        try:
            armed = True
            with grant(4):
                if turn % 2:
                    assert team.side_by_side(lambda n: n * n, range(8)) == [n * n for n in range(8)]
                else:
                    team.together(lambda counter: None)
            armed = False
        except KeyboardInterrupt:
            armed, caught = False, caught + 1
    try:
        over = True
        thread.join()
    except KeyboardInterrupt:
        thread.join()
    assert team.side_by_side(lambda n: n, range(8), 4) == list(range(8))
    assert [each["num_threads"] for each in threadpool_info()] == before
lost = threading.active_count() - 1 - len(team._idle)
assert 0 <= lost <= 8, lost  # one that is interrupted while it is hired sleeps on
assert threading.active_count() < 40
print("held")
"""


def test_ctrl_c_at_any_moment_neither_hangs_nor_loses_a_thread():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.stdout == "held\n", done.stderr[-2000:]


def test_nobody_starts_a_thousand_threads(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    assert count_threads(3000) == 64
    monkeypatch.setattr("joblib.cpu_count", lambda: 100)
    assert count_threads(3000) == 400
