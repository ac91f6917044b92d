"""``asset train --checkpoint``, killed at random moments and resumed: the model is always the same."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from typing import Any

from asset_svm.cli.main import main
from killed_runs import assert_same_model, begin, command, kill, small_windows, write_rows
from soak.attack import Attack, Case


class Kills(Attack):
    """A case is one kill; what comes to its end in spite of them is compared, and run again."""

    name, count = "kills", 1000

    def prepare(self) -> None:
        """The model of a run that nobody killed, and how long such a run takes."""
        write_rows()
        with small_windows():
            assert main(command("whole")) == 0
            begun = time.monotonic()
            assert os.waitpid(begin("second"), 0)[1] == 0
        self.seconds = time.monotonic() - begun
        assert_same_model("second.asset", "whole.asset")

    def session(self) -> AbstractContextManager[Any]:
        """Nine windows in a file."""
        return small_windows()

    def run(self, case: Case) -> str:
        """Run until it is killed; the last run of ten cases is let to its end."""
        name = f"run{case.number // 10}"
        finished = 0
        while True:
            child = begin(name)
            time.sleep(case.rng.uniform(0.0, 0.6 * self.seconds))
            if kill(child):
                break
            assert_same_model(f"{name}.asset", "whole.asset")
            finished += 1
        if case.number % 10 < 9:
            return "killed" if finished == 0 else "killed, after a whole run with the same model"
        assert os.waitpid(begin(name), 0)[1] == 0
        assert_same_model(f"{name}.asset", "whole.asset")
        assert not os.listdir(name), "a finished run leaves its checkpoint"
        assert not [each for each in os.listdir() if each.endswith(".tmp")], "a file of a killed run"
        return "killed, and then a whole run with the same model"
