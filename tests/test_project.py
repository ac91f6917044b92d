"""The project: its version everywhere, what its distributions hold, the command without its extra."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from datetime import date
from importlib import metadata, util
from pathlib import Path

import pytest
from packaging.version import Version

import asset_svm

ROOT = Path(__file__).parents[1]
NAMED = ["src/asset_svm/version.py", "CITATION.cff", "CHANGELOG.md", "tools/version.py"]


def tool(name):
    spec = util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    sys.modules[spec.name] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


version, contents = tool("version"), tool("contents")


@pytest.fixture
def scratch(tmp_path):
    """The files that name the version, at a place of their own and at 0.2.0.dev0."""
    for name in NAMED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / NAMED[0]).write_text('"""Where."""\n\n__version__ = "0.2.0.dev0"\n')
    citation = tmp_path / "CITATION.cff"
    said = re.sub(
        r"^(version: ).*(\ndate-released: .*)?$", r"\g<1>0.2.0.dev0", citation.read_text(), flags=re.M
    )
    citation.write_text(said)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"
    )
    return tmp_path


def moved(folder, *arguments):
    return subprocess.run(
        [sys.executable, folder / "tools/version.py", *arguments], capture_output=True, text=True
    )


# The version --------------------------------------------------------------------------------------


def test_the_version_is_the_same_wherever_it_stands():
    tree = version.Tree.read(ROOT)
    assert tree.faults() == []
    assert tree.version == asset_svm.__version__ == metadata.version("asset-svm")


def test_a_release_is_one_command(scratch):
    assert moved(scratch).stdout == "0.2.0.dev0\n"
    done = moved(scratch, "0.2.0")
    assert done.returncode == 0 and done.stdout.startswith("0.2.0.dev0 -> 0.2.0")
    tree = version.Tree.read(scratch)
    assert tree.version == tree.cited == "0.2.0" and tree.faults() == []
    assert tree.releases == {"0.2.0": tree.date_cited} and date.fromisoformat(tree.date_cited)
    assert tree.unreleased == "" and tree.changelog.endswith("### Added\n\n- A thing.\n")
    assert moved(scratch, "0.3.0.dev0").returncode == 0
    after = version.Tree.read(scratch)
    assert after.version == after.cited == "0.3.0.dev0" and after.faults() == []
    assert after.date_cited is None and after.changelog == tree.changelog


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("0.1.9", "V=0.1.9 is not later than 0.2.0.dev0"),
        ("0.2.0.dev0", "is not later than"),
        ("0.2", "V=0.2 is no version; give three numbers"),
        ("0.2.0rc1", "is no version"),
        ("v0.2.0", "is no version"),
    ],
)
def test_a_version_that_cannot_be_changes_nothing(scratch, wanted, said):
    before = version.Tree.read(scratch)
    done = moved(scratch, wanted)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert version.Tree.read(scratch) == before


def test_a_release_needs_something_to_say(scratch):
    (scratch / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n")
    done = moved(scratch, "0.2.0")
    assert done.returncode == 2 and "has nothing unreleased" in done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CITATION.cff", "version: 0.2.0", "version: 0.1.0", "CITATION.cff says version 0.1.0"),
        ("CHANGELOG.md", "## [0.2.0] - ", "## [0.1.9] - ", "is a release, and not the newest"),
        ("CITATION.cff", "date-released: 2", "date-released: 1", "CITATION.cff says released 1"),
    ],
)
def test_what_disagrees_is_told(scratch, name, old, new, said):
    assert moved(scratch, "0.2.0").returncode == 0
    text = (scratch / name).read_text()
    assert old in text
    (scratch / name).write_text(text.replace(old, new))
    done = moved(scratch)
    assert done.returncode == 1 and said in done.stderr


def test_versions_have_the_order_of_pythons():
    names = ["0.1.0", "0.1.9", "0.1.10", "0.2.0.dev0", "0.2.0.dev10", "0.2.0", "1.0.0.dev1", "10.0.0"]
    assert sorted(reversed(names), key=version.key) == sorted(names, key=Version) == names


# Distributions --------------------------------------------------------------------------------------

FILES = {"LICENSE", "Makefile", "src/asset_svm/__init__.py", "src/asset_svm/backends/cuda/vectors.cu"}
NOTES = [f"asset_svm-1.dist-info/licenses/{name}" for name in contents.LICENCES]


def wheel_of(path, names):
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(name, "")
    return path


def test_a_wheel_that_lacks_a_file_or_has_one_too_many_is_told(tmp_path):
    whole = ["asset_svm/__init__.py", "asset_svm/backends/cuda/vectors.cu", *NOTES]
    assert contents.faults_of_wheel(wheel_of(tmp_path / "whole.whl", whole), FILES) == []
    without = wheel_of(tmp_path / "cut.whl", [*NOTES[:1], whole[0], "asset_svm/left.pyc"])
    faults = contents.faults_of_wheel(without, FILES)
    assert faults[:2] == [
        "lacks asset_svm/backends/cuda/vectors.cu",
        "should not have asset_svm/left.pyc",
    ]
    assert len(faults) == 3 and faults[2].startswith("lacks the licence ")


def test_a_source_distribution_that_lacks_a_test_is_told(tmp_path):
    path = tmp_path / "source.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*FILES - {"Makefile"}, "PKG-INFO", "src/asset_svm.egg-info/SOURCES.txt", "junk"]:
            archive.addfile(tarfile.TarInfo(f"asset_svm-1/{name}"), io.BytesIO())
    assert contents.faults_of_source(path, FILES) == ["lacks Makefile", "should not have junk"]


def test_what_is_embedded_has_its_licence_beside_it():
    notice = (ROOT / "src/asset_svm/datasets/NOTICE.txt").read_text()
    embedded = [path.name for path in (ROOT / "src/asset_svm/datasets").glob("*.bz2")]
    assert sorted(embedded) == ["a9a.bz2", "a9a.t.bz2"] and all(name in notice for name in embedded)
    assert metadata.metadata("asset-svm")["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0"


# The command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lacking", ["typer", "typer.main"])
def test_without_its_extra_the_command_says_which_one_it_needs(lacking):
    program = f"import sys; sys.modules[{lacking!r}] = None; from asset_svm.cli.entry import run; run()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"asset: The command needs {lacking}, which is not installed; "
        'run: pip install "asset-svm[cli]"\n'
    )


def test_a_fault_of_ours_is_not_taken_for_a_missing_extra():
    program = (
        "import sys; sys.modules['asset_svm.cli.options'] = None; "
        "from asset_svm.cli.entry import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stderr
