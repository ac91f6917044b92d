"""Where the program ``asset`` begins, which is installed even where its extra, ``cli``, is not."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command, or say in one sentence what it lacks."""
    try:
        from asset_svm.cli.main import run as run_command
    except ModuleNotFoundError as error:
        if (error.name or "asset_svm").partition(".")[0] == "asset_svm":
            raise
        print(
            f"asset: The command needs {error.name}, which is not installed; "
            'run: pip install "asset-svm[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    run_command()
