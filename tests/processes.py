"""Processes of tests: ended, and their pipes closed, whatever happens to the test that began them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

HUNG = 300.0
"""Seconds after which a process that should have ended counts as hung; none comes near it."""


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process, which is not there any more afterwards."""
    with subprocess.Popen(command, **options) as process:  # which waits, and closes the pipes
        try:
            yield process
        finally:
            process.kill()
