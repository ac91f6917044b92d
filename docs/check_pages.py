"""Look at a built site in Chromium: width, contrast and other rules of axe, requests, search.

python docs/check_pages.py FOLDER [--all] [--pictures FOLDER]

Needs Chromium (or Chrome) and node with npm, which brings axe-core and puppeteer-core into
``build/browser`` at the first run; says what is missing. The site is served on this machine alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent / "build" / "browser"
PACKAGES = ["axe-core@4", "puppeteer-core@24"]
PAGES = [
    *("index.html", "start.html", "guide.html", "tables.html", "cells.html", "searching.html"),
    *("files.html", "theory.html", "benchmarks.html", "migration.html", "changelog.html"),
    *("api/index.html", "api/command.html", "api/generated/asset_svm.AssetClassifier.html"),
    *("gallery/index.html", "gallery/first/plot_boundaries.html", "search.html"),
    "gallery/deploy/plot_server.html",
]
VARIANTS = [
    dict(name=f"{device}-{theme}", theme=theme, width=width, height=height)
    for device, width, height in (("desktop", 1280, 900), ("phone", 390, 844))
    for theme in ("light", "dark")
]


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line on each."""

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file, or as much of it as a browser that goes on to the next page still takes."""
        with suppress(ConnectionError):
            super().copyfile(source, outputfile)


def program(*names: str) -> str:
    """The first of these programs that is here."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise SystemExit(
        f"docs-check needs {names[0]}, which is not here; install it by your system's packages "
        f"(Debian: apt install {names[0]}), and run it again."
    )


def main() -> None:
    """Serve the site, and let node look at it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="every page, not one of each kind")
    parser.add_argument("--pictures", type=Path, help="where screenshots go")
    given = parser.parse_args()
    if not (given.folder / "index.html").exists():
        raise SystemExit(f"{given.folder} has no site; run: make docs")
    chromium = program("chromium", "chromium-browser", "google-chrome", "chrome")
    node, npm = program("node", "nodejs"), program("npm")
    if not all((MODULES / "node_modules" / name.split("@")[0]).exists() for name in PACKAGES):
        MODULES.mkdir(parents=True, exist_ok=True)
        (MODULES / "package.json").write_text("{}")
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        if subprocess.run(command, cwd=MODULES, check=False).returncode:
            raise SystemExit(f"npm could not install {' and '.join(PACKAGES)}; see what it said above.")
    pages = PAGES
    if given.all:
        files = sorted(given.folder.rglob("*.html"))
        pages = [str(f.relative_to(given.folder)) for f in files if "_static" not in f.parts]
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(given.folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    settings = {
        "address": f"http://127.0.0.1:{server.server_port}/",
        "pages": pages,
        "variants": VARIANTS,
        "chromium": chromium,
        "modules": str(MODULES),
        "pictures": str(given.pictures.resolve()) if given.pictures else None,
        "query": "landmarks",
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_text(json.dumps(settings))
        done = subprocess.run([node, str(HERE / "check_pages.mjs"), str(path)], check=False)
    server.shutdown()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
