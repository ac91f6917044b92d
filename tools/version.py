"""Read the version, or write it where it stands: `make version`, `make version V=0.2.0`.

src/asset_svm/version.py has the version; CITATION.cff repeats it, and CHANGELOG.md gives a release its
section. A release, such as 0.2.0, dates what was unreleased. A version in work, such as 0.3.0.dev0, is
what the tree is between releases.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNRELEASED = "## [Unreleased]\n"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:\.dev(0|[1-9]\d*))?")


@dataclass(frozen=True)
class Tree:
    """The texts of a source tree that name its version."""

    source: str
    citation: str
    changelog: str

    @classmethod
    def read(cls, root: Path) -> Tree:
        """The texts of a folder."""
        return cls(*(path.read_text(encoding="utf-8") for path in _paths(root)))

    def write(self, root: Path) -> None:
        """Put them back."""
        for path, text in zip(_paths(root), (self.source, self.citation, self.changelog), strict=True):
            path.write_text(text, encoding="utf-8", newline="\n")

    @property
    def version(self) -> str:
        """The version of the source."""
        return _one(r'^__version__ = "(.+)"$', self.source, "src/asset_svm/version.py")

    @property
    def cited(self) -> str:
        """The version in CITATION.cff."""
        return _one(r"^version: (\S+)$", self.citation, "CITATION.cff")

    @property
    def date_cited(self) -> str | None:
        """The date of the release in CITATION.cff; None in between."""
        found = re.search(r"^date-released: (\S+)$", self.citation, re.M)
        return found[1] if found else None

    @property
    def releases(self) -> dict[str, str]:
        """Dates by version, the newest first, as CHANGELOG.md has them."""
        return dict(re.findall(r"^## \[([^]]+)\] - (\S+)$", self.changelog, re.M))

    @property
    def unreleased(self) -> str:
        """What CHANGELOG.md says of what no release has."""
        _, found, rest = self.changelog.partition(UNRELEASED)
        if not found:
            raise ValueError(
                f"CHANGELOG.md has no line {UNRELEASED.strip()!r}; write one above its newest section."
            )
        return re.split(r"^## ", rest, maxsplit=1, flags=re.M)[0].strip()

    def moved(self, version: str, today: date) -> Tree:
        """The same texts at a later version."""
        new, old = key(version), key(self.version)
        if new <= old:
            raise ValueError(
                f"V={version} is not later than {self.version}, what the tree is; give a later one."
            )
        release = VERSION.fullmatch(version)[4] is None
        dated = (
            f"version: {version}\ndate-released: {today.isoformat()}"
            if release
            else f"version: {version}"
        )
        return Tree(
            source=self.source.replace(f'"{self.version}"', f'"{version}"'),
            citation=re.sub(
                r"^version: \S+(\ndate-released: \S+)?$", dated, self.citation, count=1, flags=re.M
            ),
            changelog=self._released(version, today) if release else self.changelog,
        )

    def _released(self, version: str, today: date) -> str:
        """The changelog, in which what was unreleased is this version's."""
        if not self.unreleased:
            raise ValueError(
                f"CHANGELOG.md has nothing unreleased; say there what V={version} changes."
            )
        return self.changelog.replace(
            UNRELEASED, f"{UNRELEASED}\n## [{version}] - {today.isoformat()}\n", 1
        )

    def faults(self) -> list[str]:
        """What disagrees, a sentence each."""
        found = []
        if self.cited != self.version:
            found.append(f"CITATION.cff says version {self.cited}, and the source {self.version}.")
        if (dated := self.releases.get(self.version)) != self.date_cited:
            found.append(f"CITATION.cff says released {self.date_cited}, and CHANGELOG.md {dated}.")
        if (
            VERSION.fullmatch(self.version)[4] is None
            and next(iter(self.releases), None) != self.version
        ):
            found.append(f"{self.version} is a release, and not the newest of CHANGELOG.md.")
        return found


def key(version: str) -> tuple[float, ...]:
    """What versions are ordered by: 0.2.0.dev0 is before 0.2.0."""
    found = VERSION.fullmatch(version)
    if not found:
        raise ValueError(
            f"V={version} is no version; give three numbers, V=0.2.0, or a beginning, V=0.3.0.dev0."
        )
    *numbers, dev = found.groups()
    return (*map(float, numbers), float("inf") if dev is None else float(dev))


def _paths(root: Path) -> list[Path]:
    return [root / "src/asset_svm/version.py", root / "CITATION.cff", root / "CHANGELOG.md"]


def _one(pattern: str, text: str, name: str) -> str:
    found = re.findall(pattern, text, re.M)
    if len(found) != 1:
        raise ValueError(f"{name} has {len(found)} lines like {pattern}, and needs one.")
    return str(found[0])


def main(arguments: list[str]) -> int:
    """Print the version, or move to another one."""
    try:
        tree = Tree.read(ROOT)
        if arguments:
            before, tree = tree.version, tree.moved(arguments[0], datetime.now(UTC).date())
            tree.write(ROOT)
            print(f"{before} -> {tree.version}; see `git diff`, and RELEASING.md for what is next")
        else:
            print(tree.version)
    except ValueError as error:
        print(f"version: {error}", file=sys.stderr)
        return 2
    for fault in tree.faults():
        print(f"version: {fault}", file=sys.stderr)
    return 1 if tree.faults() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
