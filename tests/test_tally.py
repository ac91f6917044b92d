"""The tally of ``make test``: what counts as a run, and that it goes on where it was stopped."""

import json
import shutil
import subprocess
import sys

import pytest

import tally
from processes import HUNG

if shutil.which("git") is None or shutil.which("make") is None:
    pytest.skip("needs git and make", allow_module_level=True)

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_well"/>
<testcase classname="tests.test_a" name="test_left"><skipped/></testcase>
{}
</testsuite></testsuites>"""
FAILED = '<testcase classname="tests.test_a" name="test_ill"><failure/></testcase>'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose ``make test`` does what the file ``does`` beside it says."""
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "does").write_text("true")
    (tmp_path / "well.xml").write_text(REPORT.format(""))
    (tmp_path / "ill.xml").write_text(REPORT.format(FAILED))
    (root / "Makefile").write_text(f"setup:\n\ttrue\ntest:\n\tsh {tmp_path}/does\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "A project"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run(["git", *identity, *command], cwd=root, check=True)
    write = 'cp {}/{} "${{PYTEST_ADDOPTS#--junitxml=}}"'
    does = {
        "well": write.format(tmp_path, "well.xml"),
        "ill": write.format(tmp_path, "ill.xml") + "\nexit 1",
        "killed": "kill -9 $$",
        "killed late": write.format(tmp_path, "well.xml") + "\nkill -9 $PPID",
    }

    def run(what, *arguments):
        (tmp_path / "does").write_text(does[what])
        return tally.main([*arguments, "--tally", str(tmp_path / "tally.jsonl")], root)

    def lines():
        return [json.loads(line) for line in (tmp_path / "tally.jsonl").read_text().splitlines()]

    return root, run, lines


def test_runs_are_counted_until_there_are_enough(project, capsys):
    _, run, lines = project
    assert run("well", "--fresh", "1", "--here", "2", "--busy", "1") == 0
    assert [line["kind"] for line in lines()] == ["fresh", "here", "here"]
    for line in lines():
        assert (line["passed"], line["failed"], line["skipped"]) == (1, 0, 1)
        assert line["exit"] == 0 and line["busy"] == 1 and line["whole"]
    assert "here, 1 busy beside it: 2 of 2 passed" in capsys.readouterr().out
    assert run("well", "--fresh", "1", "--here", "3", "--busy", "1") == 0
    assert len(lines()) == 4
    assert run("well", "--here", "1") == 0
    assert lines()[-1]["busy"] == 0 and len(lines()) == 5


def test_a_run_that_fails_is_told(project, capsys):
    _, run, lines = project
    assert run("ill", "--here", "1") == 1
    assert lines()[0]["failing"] == ["tests.test_a::test_ill"]
    out = capsys.readouterr().out
    assert "0 of 1 passed" in out and "failed 1 times: tests.test_a::test_ill" in out
    assert run("well", "--here", "2") == 1 and "1 of 2 passed" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["killed", "killed late"])
def test_a_run_that_was_killed_is_not_counted(project, capsys, how):
    _, run, lines = project
    assert run(how, "--here", "1") == 1
    assert len(lines()) == 6 and not any(line["whole"] for line in lines())
    assert run("well", "--here", "1") == 0
    assert "1 of 1 passed" in capsys.readouterr().out


def test_a_tally_is_of_a_commit(project, capsys):
    root, run, _ = project
    (root / "new").write_text("")
    assert run("well", "--here", "1") == 2
    assert "commit them" in capsys.readouterr().err


def test_busy_processes_end_with_whoever_began_them():
    code = f"import sys\nsys.path.insert(0, {str(tally.ROOT / 'tests')!r})\nimport os, tally\n"
    code += "with tally.busy(1):\n    os.kill(os.getpid(), 9)\n"
    # The pipe is the busy process's too: it ends when that does.
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=HUNG, check=False
    )
    assert done.returncode == -9
