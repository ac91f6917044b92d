"""What axe finds fault with in pages as Sphinx, its gallery and the theme make them, mended.

Empty cells in the head of a table are cells and no heads; the pictures of the gallery have a name,
since the script that moves their links behind them leaves these without one; what opens a part of
the contents says so.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

EMPTY_HEAD = re.compile(r'<th class="head([^"]*)">(<p>\s*</p>)?</th>')
THUMBNAIL = re.compile(
    r'(sphx-glr-thumbcontainer"[^>]*>)<img alt=""( src="[^"]+" ?/?>\s*'
    r'<p><a class="reference internal") (href="[^"]+"><span class="[^"]*">(.*?)</span>)',
    re.DOTALL,
)


def named(found: re.Match[str]) -> str:
    """A picture of the gallery with a name, on it and on its link."""
    start, picture, link, text = found.groups()
    name = escape(re.sub(r"<[^>]+>", "", text), quote=True)
    return f'{start}<img alt=""{picture} aria-label="{name}" {link}'


def mend(app: Any, error: Exception | None) -> None:
    """Mend every page that was written."""
    if error is not None or app.builder.format != "html":
        return
    for file in Path(app.outdir).rglob("*.html"):
        if "_static" in file.parts:
            continue
        before = file.read_text(encoding="utf-8")
        text = EMPTY_HEAD.sub(r'<td class="head\1"></td>', before)
        text = THUMBNAIL.sub(named, text)
        text = text.replace("<summary><span", '<summary aria-label="Pages of this part"><span')
        if text != before:
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """After all pages are there."""
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True}
