"""A disk that is really full: a small tmpfs, and a limit on the size of files."""

import shutil
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("safetensors")

import full_disk


@pytest.mark.parametrize("kind", [pytest.param("tmpfs", marks=pytest.mark.slow), "quota"])
def test_a_full_disk_loses_nothing_that_was_saved(tmp_path, kind):
    command = [sys.executable, full_disk.__file__, kind, str(tmp_path)]
    if kind == "tmpfs":
        if shutil.which("unshare") is None or shutil.which("mount") is None:
            pytest.skip("a tmpfs needs util-linux's unshare and mount")
        command = ["unshare", "-rm", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    refused = done.returncode == full_disk.REFUSED or done.stderr.startswith("unshare:")
    if refused:
        pytest.skip(f"this system makes no tmpfs without rights: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
