"""Where results go: tried before the work, named when it fails, and nothing is left of a kill."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("safetensors")

from asset_svm.cli import run as run_module
from asset_svm.cli import scoring
from asset_svm.cli.main import main
from asset_svm.cli.outputs import check_output
from asset_svm.pages import Page
from asset_svm.storage import atomic
from asset_svm.storage.atomic import replacing
from asset_svm.storage.checkpoint import Checkpoint

ROWS = "".join(f"{i % 2} 1:{i % 2 + i / 100}\n" for i in range(60))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text(ROWS)


def killed_while_writing(path):
    """What a process leaves that is killed in the middle of a file."""
    child = os.fork()
    if child == 0:
        with replacing(path) as file:
            file.write(b"half of it")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = [name for name in os.listdir() if name.endswith(".tmp")]
    assert len(left) == 1
    return Path(left[0])


def test_what_a_kill_left_is_removed_by_the_next_one_who_writes_there():
    left = killed_while_writing("m.asset")
    with replacing("other.asset") as file:
        file.write(b"other")
    assert left.exists()
    with replacing("m.asset") as file:
        assert not left.exists()
        file.write(b"whole")
    assert sorted(os.listdir()) == ["m.asset", "other.asset", "rows.svm"]
    left = killed_while_writing("m.asset")
    check_output("-o", "m.asset", {})
    assert not left.exists() and Path("m.asset").read_bytes() == b"whole"
    Path(".m.asset.12345.tmp").touch()  # the names of former versions
    check_output("-o", "m.asset", {})
    assert sorted(os.listdir()) == ["m.asset", "other.asset", "rows.svm"]


def test_a_checkpoint_removes_what_a_kill_left():
    os.mkdir("run")
    for name in (".run.asset.123.tmp", ".state.asset.0a1b2c3d.tmp"):
        Path("run", name).touch()
    Checkpoint("run")
    assert not os.listdir("run")


def test_two_who_write_one_file_do_not_remove_what_the_other_writes():
    with replacing("m") as first:
        first.write(b"first")
        with replacing("m") as second:
            second.write(b"second")
        assert Path("m").read_bytes() == b"second"
    assert Path("m").read_bytes() == b"first"
    assert sorted(os.listdir()) == ["m", "rows.svm"]


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs a folder where nobody can write")
@pytest.mark.parametrize(
    "options", [["-o", "/proc/m.asset"], ["--report", "/proc/r.html"], ["--checkpoint", "/proc"]]
)
def test_a_place_where_nothing_can_be_written_is_told_before_the_training(options, monkeypatch, capsys):
    def scan(*args, **kwargs):
        raise AssertionError("the rows were read")

    monkeypatch.setattr(run_module, "scan_for", scan)
    assert main(["train", "rows.svm", *options]) == 2
    assert "asset: /proc/" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs a folder where nobody can write")
def test_a_place_for_predictions_is_tried_before_the_model_is_loaded(monkeypatch, capsys):
    def load(path):
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(scoring, "load", load)
    assert main(["predict", "m.asset", "rows.svm", "-o", "/proc/p.csv"]) == 2
    assert "asset: /proc/p.csv: " in capsys.readouterr().err


def test_a_full_disk_is_told_with_the_name_of_the_file(monkeypatch, tmp_path):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*m\.asset'"), replacing("m.asset"):
        pass
    monkeypatch.undo()
    with pytest.raises(OSError, match=r"^\[Errno 5\] of a disk that is read$"), replacing("m"):
        raise OSError(5, "of a disk that is read")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*page\.html'"):
        Page("a page", "", "").write("page.html")
    assert os.listdir() == ["rows.svm"]


FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")


@FULL
@pytest.mark.parametrize("size", [1, 100_000], ids=["kept back", "written at once"])
def test_a_device_without_room_is_named(size):
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):  # noqa: SIM117
        with replacing("/dev/full") as file:
            file.write(b"x" * size)
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        Page("a page", "x" * size, "").write("/dev/full")


@FULL
@pytest.mark.parametrize(
    "command",
    [["train", "rows.svm", "--max-iter", "1", "-o"], ["predict", "m.asset", "rows.svm", "-o"]],
    ids=lambda c: c[0],
)
def test_a_command_names_the_device_that_has_no_room(command, capsys):
    assert main(["train", "rows.svm", "-o", "m.asset", "--max-iter", "1"]) == 0
    assert main([*command, "/dev/full"]) == 1
    assert capsys.readouterr().err.endswith("asset: /dev/full: No space left on device.\n")


@FULL
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [(["predict", "m.asset", "rows.svm"], ""), (["--help"], ""), (["--help"], "1")],
    ids=["predict", "help", "unbuffered"],
)
def test_standard_output_without_room_is_named(command, unbuffered):
    if "m.asset" in command:
        assert main(["train", "rows.svm", "-o", "m.asset", "--max-iter", "1"]) == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "asset_svm.cli.main", *command],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "asset: standard output: No space left on device.\n")


def test_standard_output_that_is_closed_is_told(monkeypatch, capsys):
    assert main(["train", "rows.svm", "-o", "m.asset", "--max-iter", "1"]) == 0
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert main(["predict", "m.asset", "rows.svm"]) == 2
    assert capsys.readouterr().err.endswith("asset: Standard output is closed; name a file with -o.\n")


LATE = """
import os, signal
from asset_svm.cli.main import run

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)

late = Late()
run()
"""


def test_ctrl_c_when_all_is_done_does_not_look_like_a_kill():
    """Python's way out, in which it takes its objects apart, catches no signal."""
    done = subprocess.run([sys.executable, "-c", LATE, "--version"], capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"asset-svm")


def test_ctrl_c_between_the_last_epoch_and_the_end_is_130(monkeypatch, capsys):
    save = run_module.save

    def interrupted(*args, **options):
        save(*args, **options)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(run_module, "save", interrupted)
    assert main(["train", "rows.svm", "-o", "m.asset", "--max-iter", "1"]) == 130
    assert "asset: interrupted" in capsys.readouterr().err


def test_files_of_others_beside_an_output_are_left_alone(tmp_path):
    theirs = tmp_path / ".m.asset.notes.tmp"
    theirs.write_text("mine")
    left = tmp_path / ".m.asset.0123abcd.tmp"
    left.write_text("half a model")
    atomic.remove_left_over(tmp_path / "m.asset")
    assert theirs.exists() and not left.exists()


@pytest.fixture
def without_locks(monkeypatch):
    """The module on a system without ``fcntl``, which renames and removes no file that is open."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = importlib.util.spec_from_file_location("without_locks", atomic.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    opened, output = [], module.NamedOutput

    def noted(*args):
        opened.append(output(*args))
        return opened[-1]

    def of_closed(method):
        def checked(self, *args):
            if not all(file.closed for file in opened):
                raise PermissionError(13, "it is open", str(self))
            return method(self, *args)

        return checked

    monkeypatch.setattr(module, "NamedOutput", noted)
    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, of_closed(getattr(Path, name)))
    return module


def test_files_are_whole_or_absent_on_a_system_without_locks(without_locks, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    path, left = folder / "m.asset", folder / ".m.asset.0123abcd.tmp"
    left.write_text("half a model")  # or one that somebody is writing
    without_locks.check_writable(path)
    assert os.listdir(folder) == [left.name]
    with without_locks.replacing(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole" and sorted(os.listdir(folder)) == [left.name, path.name]
    with pytest.raises(TypeError), without_locks.replacing(path) as file:
        file.write(b"half"[0])
    assert path.read_bytes() == b"whole" and sorted(os.listdir(folder)) == [left.name, path.name]
