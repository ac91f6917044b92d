"""Where the candidates of a race stand: which is the best, of its shape, or near the best."""

from __future__ import annotations

from collections.abc import Iterable

from asset_svm.search.auto.judged import Judged
from asset_svm.search.auto.shapes import Shape


def ranked(found: Iterable[Judged]) -> list[Judged]:
    """The best first; of those that lose as much the simplest."""
    return sorted(found, key=lambda each: (each.loss, each.candidate.effort))


def near(found: Iterable[Judged], times: float) -> list[Judged]:
    """Those that lose at most so many times what the best does, the best first."""
    order = ranked(found)
    least = order[0].loss if order else 0.0
    return [each for each in order if each.loss <= least + (times - 1.0) * abs(least)]


def by_shape(found: Iterable[Judged]) -> list[Judged]:
    """The best of every shape, on the most rows that it was tried on, the best first."""
    best: dict[Shape, Judged] = {}
    for each in ranked(found):
        known = best.get(each.candidate.shape)
        if known is None or each.rows > known.rows:
            best[each.candidate.shape] = each
    return ranked(best.values())


def shapes(found: Iterable[Judged]) -> list[Shape]:
    """The shapes of these, that of the best first."""
    return [each.candidate.shape for each in by_shape(found)]


def best_of(found: Iterable[Judged], shape: Shape, count: int, size: int = 0) -> Judged | None:
    """The best of a shape and of one size that has learnt from so many rows."""
    alike = (
        each
        for each in found
        if each.candidate.shape == shape and each.rows == count and each.candidate.size == size
    )
    return next(iter(ranked(alike)), None)
