"""How long the pilot takes inside a fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asset_svm.training import plan as training


@contextmanager
def timed_pilot() -> Iterator[list[float]]:
    """A list that gains the seconds of every pilot run inside."""
    choose, spent = training.choose_step_scale, []

    def timed(*args: Any, **options: Any) -> float:
        begun = time.perf_counter()
        scale = choose(*args, **options)
        spent.append(time.perf_counter() - begun)
        return scale

    training.choose_step_scale = timed
    try:
        yield spent
    finally:
        training.choose_step_scale = choose
