"""``asset make``: a file of made rows whose least possible error is known."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from asset_svm.cli.options import parse_count
from asset_svm.cli.tables import show
from asset_svm.datasets import make_waves, write_rows

SECONDS = 5.0
"""Between two lines of progress."""


def make_file(path: str, rows: str, noise: float, seed: int) -> None:
    """Write so many rows, and tell what they are."""
    count = parse_count(rows, "--rows")
    source = make_waves(count, noise=noise, seed=seed)
    begun = last = time.monotonic()

    def told(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS:
            last, rate = now, done / (now - begun)
            left = (count - done) / rate
            line = f"{done}/{count} rows, {rate:.0f} rows/s, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    write_rows(source, path, told=told)
    lines = [
        ["rows", f"{count}"],
        ["features", str(source.n_features)],
        ["Bayes error", f"{100 * source.bayes_error:.6g} %"],
        ["size", f"{Path(path).stat().st_size / 1e9:.3f} GB"],
    ]
    show("made", [*lines, ["seconds", f"{time.monotonic() - begun:.2f}"], ["saved in", path]])
