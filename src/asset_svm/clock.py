"""The one clock that the library reads: for deadlines, and for the seconds that records tell.

Whoever reads it calls ``clock.now()``, so that another clock can be put in its place: one that counts
the looks at it says where a time limit is noticed, however busy the machine is.
"""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since some moment; the difference of two readings is time that has passed."""
    return time.perf_counter()
