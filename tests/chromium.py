"""A page as a headless Chromium sees it: its console, and where its elements are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

_PROBE = """<script>
const boxes = (selector) => [...document.querySelectorAll(selector)].map((element) => {
  const box = element.getBoundingClientRect();
  return {width: box.width, height: box.height, left: box.left, right: box.right};
});
const first = document.querySelector(".hit");
if (first) first.dispatchEvent(new PointerEvent("pointerenter"));
document.body.dataset.seen = JSON.stringify({
  charts: boxes("figure svg"), tables: boxes("table"), tip: document.getElementById("tip").textContent,
  page: document.documentElement.scrollWidth, window: innerWidth,
  ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
});
</script></body>"""


@dataclass(frozen=True)
class Seen:
    """What the browser reported."""

    console: list[str]
    charts: list[dict[str, float]]
    tables: list[dict[str, float]]
    tip: str
    page: float
    window: float
    ids: list[str]


def look_at(page: Path, width: int = 1000) -> Seen:
    """Open the page in a window of this width; skips the test where no Chromium is installed."""
    program = (
        shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    if program is None:
        pytest.skip("no Chromium on the PATH")
    probed = page.with_name("probed.html")
    probed.write_text(page.read_text("utf-8").replace("</body>", _PROBE), "utf-8")
    # --user-data-dir keeps parallel tests apart; as root Chromium runs only without its sandbox.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    options += [f"--window-size={width},900", f"--user-data-dir={page.parent / 'profile'}"]
    done = subprocess.run(
        [program, *options, probed.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    report = json.loads(unescape(found[1])) if found else {}
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    if not report:
        raise AssertionError(f"The page was not read; the browser says:\n{done.stderr[-2000:]}")
    return Seen(console, **report)
