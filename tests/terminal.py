"""A command as a terminal sees it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

SILENCE = 60.0
"""Seconds without a word after which a command counts as hung."""


def seen_in_terminal(*arguments: str) -> str:
    """What ``asset`` with these arguments writes to a terminal of 150 columns; it must succeed."""
    leader, follower = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "asset_svm.cli.main", *arguments],
        stdout=follower,
        stderr=follower,
        stdin=follower,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "150"},
    )
    os.close(follower)
    seen = b""
    while select.select([leader], [], [], SILENCE)[0]:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert run.wait() == 0
    return seen.decode()
