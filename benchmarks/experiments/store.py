"""The results of a run: JSON lines, one record a line, added as soon as it is there.

A run that was interrupted leaves at most half a line at the end; it is dropped when the file is read,
and that run is repeated. So is a run that failed, or that was stopped at a smaller limit than now.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from experiments.base import Record


class Store:
    """The records of a file, and adding to it."""

    def __init__(self, path: Path):
        self.path = path
        self.records: list[Record] = []
        if path.exists():
            self.records = _read(path)
        self._known = {record["key"]: place for place, record in enumerate(self.records)}

    def has(self, key: str, limit: float | None = None) -> bool:
        """Whether this was run, did not fail, and was not stopped before ``limit``, the one of now."""
        if key not in self._known:
            return False
        result = self.records[self._known[key]]["result"]
        if "stopped" in result:
            return limit is not None and limit <= result["stopped"]
        return "failed" not in result

    def add(self, record: Record) -> None:
        """Write a record; it is on the disk when this returns. The last one of a key counts."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if file.tell() and not _ends_a_line(self.path):
                file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        place = self._known.get(record["key"])
        if place is None:
            self._known[record["key"]] = len(self.records)
            self.records.append(record)
        else:
            self.records[place] = record

    def done(self, experiment: str = "") -> list[Record]:
        """The records of runs that did not fail."""
        return [
            record
            for record in self.records
            if "failed" not in record["result"] and experiment in ("", record["experiment"])
        ]


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _read(path: Path) -> list[Record]:
    found: dict[str, Any] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:  # half a line, or the end
            continue
        found[record["key"]] = record
    return list(found.values())
