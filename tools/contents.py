"""Whether a wheel and a source distribution have what git tracks, and nothing else: `make dist`.

A file that the build forgets (code of the card, a style sheet, the data of the demo) is missed by users
alone, since a checkout has it.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LICENCES = {"LICENSE", "src/asset_svm/datasets/NOTICE.txt"}


def tracked() -> set[str]:
    """The files of the project, by git: those that are tracked, and new ones that are not ignored."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if found.returncode:
        raise ValueError(
            "this is no git checkout, which alone knows what belongs to the project; run it in one."
        )
    return {name for name in found.stdout.split("\0") if name and (ROOT / name).is_file()}


def faults_of_wheel(path: Path, files: set[str]) -> list[str]:
    """What the wheel lacks, or has too much of."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    notes = {name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name}
    package = {name for name in names if ".dist-info/" not in name}
    expected = {name.removeprefix("src/") for name in files if name.startswith("src/asset_svm/")}
    lacking = [f"lacks {name}" for name in sorted(expected - package)]
    surplus = [f"should not have {name}" for name in sorted(package - expected)]
    unlicensed = [
        f"lacks the licence {name}" for name in sorted(LICENCES) if f"licenses/{name}" not in notes
    ]
    return lacking + surplus + unlicensed


def faults_of_source(path: Path, files: set[str]) -> list[str]:
    """What the source distribution lacks, or has too much of; setup's own notes are expected."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    names = {name for name in names if ".egg-info/" not in name} - {"PKG-INFO", "setup.cfg"}
    lacking = [f"lacks {name}" for name in sorted(files - names)]
    return lacking + [f"should not have {name}" for name in sorted(names - files)]


def main(folder: Path) -> int:
    """Look at the one wheel and the one source distribution of a folder."""
    files = tracked()
    faults: list[str] = []
    for pattern, look in (("*.whl", faults_of_wheel), ("*.tar.gz", faults_of_source)):
        (path,) = folder.glob(pattern)
        found = look(path, files)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(found)} faults")
        faults += [f"{path.name} {fault}" for fault in found]
    print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
