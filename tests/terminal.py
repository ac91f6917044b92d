"""A command as a terminal sees it."""

from __future__ import annotations

import os
import select
import sys

import pytest

from processes import HUNG, running


def seen_in_terminal(*arguments: str) -> str:
    """What ``asset`` with these arguments writes to a terminal of 150 columns; it must succeed."""
    pty = pytest.importorskip("pty")  # Windows has none
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "asset_svm.cli.main", *arguments]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "150"}
    pipes = dict(stdout=follower, stderr=follower, stdin=follower)
    seen = b""
    try:
        with running(command, env=environment, **pipes) as run:
            os.close(follower)
            while select.select([leader], [], [], HUNG)[0]:
                try:
                    part = os.read(leader, 4096)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                seen += part
            assert run.wait(HUNG) == 0
    finally:
        os.close(leader)
    return seen.decode()
