"""``--dask``: a cluster to learn on, one that runs or one of this machine's processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from asset_svm.cli.options import UsageError

LOCAL = "local"
PATIENCE = 5.0
"""Seconds for a scheduler to answer."""
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Ctrl-C reaches the workers of a terminal too: they go on, and the command decides."""


def check_dask() -> None:
    """Say which extra is missing, if it is."""
    import asset_svm.dask  # noqa: F401  says so itself


@contextmanager
def connected(where: str, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of as many worker processes of this machine."""
    from distributed import Client, LocalCluster

    if where == LOCAL:
        count = workers if workers is not None and workers > 0 else os.cpu_count()
        with (
            LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs="CRITICAL",  # what is wrong with workers is told by the command itself
                preload=[DEAF],
            ) as processes,
            Client(processes) as client,
        ):
            _tell(client)
            yield client
        return
    try:
        client = Client(where, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--dask {where}: no scheduler answers there ({_first_line(error)}); give its address, "
            "as tcp://host:8786, or local."
        ) from None
    with client:
        _tell(client)
        yield client


def _tell(client: Any) -> None:
    if find_spec("bokeh") is not None:
        print(f"asset: dashboard at {client.dashboard_link}", file=sys.stderr)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
