"""Two sets of results, fit by fit: what is equal, what differs and by how much, what may differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from recorded.found import Found, differing, distance
from recorded.trees import Result


@dataclass(frozen=True)
class Allowed:
    """What may differ in a fit, and why."""

    reason: str
    parts: tuple[str, ...] | None = None
    within: float = float("inf")


@dataclass(frozen=True)
class Exceptions:
    """Fits that may differ, by name."""

    allowed: Mapping[str, Allowed]

    @classmethod
    def read(cls, table: Mapping[str, Any], known: Collection[str]) -> Exceptions:
        """From the table of a file, which must name fits that there are, each with a reason."""
        allowed = {}
        for name, entry in table.items():
            if name not in known:
                raise ValueError(f"exceptions: {name!r} is no fit; see: recorded list")
            if not entry.get("reason") or set(entry) - {"reason", "parts", "within"}:
                raise ValueError(f"exceptions: {name!r} needs a reason, and may have parts and within.")
            parts = None if "parts" not in entry else tuple(entry["parts"])
            allowed[name] = Allowed(entry["reason"], parts, float(entry.get("within", "inf")))
        return cls(allowed)


@dataclass(frozen=True)
class Verdict:
    """A word for what became of a fit, whether that is well, and more where there is more to say."""

    name: str
    word: str
    well: bool
    detail: str = ""


def compare(
    old: Mapping[str, Result], new: Mapping[str, Result], exceptions: Exceptions
) -> list[Verdict]:
    """A verdict for every fit of either side."""
    return [
        _verdict(name, old.get(name), new.get(name), exceptions.allowed.get(name))
        for name in {**old, **new}
    ]


def _verdict(name: str, old: Result | None, new: Result | None, allowed: Allowed | None) -> Verdict:
    if old is None or new is None:
        return Verdict(name, "lost", False, f"only the {'new' if old is None else 'old'} side has it")
    if old.skipped or new.skipped:
        return Verdict(name, "skipped", True, f"needs {old.skipped or new.skipped}")
    if old.error or new.error:
        if allowed and not old.error:
            return Verdict(name, "excepted", True, f"{allowed.reason} ({new.error})")
        return Verdict(name, "fails", False, f"old: {old.error or 'well'}; new: {new.error or 'well'}")
    if not old.hashes or not new.hashes:
        return Verdict(name, "unknown", False, "one side has no hashes of it; record them")
    parts = differing(old.hashes, new.hashes)
    if not parts:
        return Verdict(name, "equal", True, "its exception is not needed" if allowed else "")
    sizes = _sizes(old.found(), new.found(), parts)
    detail = ", ".join(f"{part} by {sizes[part]:.1e}" if part in sizes else part for part in parts)
    if allowed is None:
        return Verdict(name, "differs", False, detail)
    others = [] if allowed.parts is None else [part for part in parts if part not in allowed.parts]
    if others or sizes.get("decisions", 0.0) > allowed.within:
        return Verdict(name, "differs", False, f"{detail}; more than its exception allows")
    return Verdict(name, "excepted", True, f"{detail}: {allowed.reason}")


def _sizes(old: Found, new: Found, parts: list[str]) -> dict[str, float]:
    """The relative sizes of differences, where both sides have the numbers."""
    if not old or not new:
        return {}
    return {part: distance(old.get(part), new.get(part)) for part in parts}
