"""The one clock that the library reads: for deadlines, and for the seconds that records tell.

Whoever reads it calls ``clock.now()``, so that another clock can be put in its place: one that counts
the looks at it says where a time limit is noticed, however busy the machine is. It stands still while
functions are compiled, which they are once on a machine: a limit of ten seconds would else be over
before the first fit on a new one has begun.
"""

from __future__ import annotations

from asset_svm.numerics.compile_time import compile_time


def now() -> float:
    """Seconds since some moment; the difference of two readings is time that has passed."""
    return compile_time.working_time()
