"""kill -9 at any moment, and a resumed run ends in bitwise the same model.

The run is a child process, forked so that it need not import and compile again, and really killed.
"""

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("safetensors")

import asset_svm
from asset_svm.cli.main import main
from asset_svm.storage import atomic, container
from killed_runs import assert_same_model, begin, command, kill, small_windows, write_rows


@pytest.fixture(scope="module", autouse=True)
def seconds(tmp_path_factory):
    """A file of nine windows, and the model of a run that nobody killed."""
    with pytest.MonkeyPatch.context() as patch, small_windows():
        patch.chdir(tmp_path_factory.mktemp("kill"))
        write_rows()
        for whole in ("whole", "cells-whole", "search-whole", "search-grid-whole"):
            assert main(command(whole)) == 0  # here: children find everything compiled
        begun = time.perf_counter()
        assert os.waitpid(begin("second"), 0)[1] == 0
        assert_same_model("second.asset", "whole.asset")
        yield time.perf_counter() - begun


@pytest.mark.parametrize("prefix", ["", "cells-", "search-", "search-grid-"])
@pytest.mark.parametrize("kills_asked", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_run_killed_at_any_moment_resumes_bitwise(seconds, kills_asked, prefix):
    rng = np.random.default_rng(0)
    kills = finished = 0
    while kills < kills_asked:
        name = f"{prefix}run{kills_asked}-{finished}"
        child = begin(name)
        time.sleep(rng.uniform(0.0, 0.6 * seconds))
        if kill(child):
            kills += 1
            continue
        finished += 1
        assert_same_model(f"{name}.asset", f"{prefix}whole.asset")
    name = f"{prefix}run{kills_asked}-{finished}"
    assert os.waitpid(begin(name), 0)[1] == 0
    assert_same_model(f"{name}.asset", f"{prefix}whole.asset")
    assert not os.listdir(name), "a finished run leaves its checkpoint"
    model = asset_svm.load(f"{prefix}whole.asset").steps[-1][1]
    if prefix.startswith("search"):
        return
    assert (model.n_cells_ > 20 and len(model.history_) == 2) if prefix else model.t_ == 10_000


class Slow:
    """A file that pauses when half of its content is on the disk."""

    def __init__(self, file, pause):
        self.file, self.pause = file, pause

    def write(self, content):
        half = len(content) // 2
        self.file.write(content[:half])
        self.file.flush()
        self.pause()
        self.file.write(content[half:])


@pytest.mark.parametrize("moment", ["half written", "written", "renamed"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_kill_while_a_checkpoint_is_written_loses_nothing(moment, count):
    """The first file written is the run's, later ones are states."""
    name = f"{moment}{count}"
    reading, writing = os.pipe()

    def prepare():
        left = [count]

        def pause():
            left[0] -= 1
            if left[0] == 0:
                os.write(writing, b"now")
                signal.pause()

        sync, replace = os.fsync, atomic.Path.replace
        if moment == "half written":
            whole = atomic.replacing

            @contextmanager
            def slow(path):
                with whole(path) as file:
                    yield Slow(file, pause)

            container.replacing = slow
        elif moment == "written":

            def slow_sync(handle):
                pause()
                sync(handle)

            atomic.os.fsync = slow_sync
            left[0] = 2 * count - 1  # a file and its folder each
        else:

            def slow_replace(self, target):
                moved = replace(self, target)
                pause()
                return moved

            atomic.Path.replace = slow_replace

    child = begin(name, prepare)
    os.close(writing)  # so that a child which ends too early is the end of the pipe
    reached = os.read(reading, 3)
    os.close(reading)
    assert kill(child) and reached == b"now"
    assert os.waitpid(begin(name), 0)[1] == 0
    assert_same_model(f"{name}.asset", "whole.asset")
