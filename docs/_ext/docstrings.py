"""Docstrings are written to be read in a terminal; this makes reStructuredText of what is not.

A name with an underscore at its end is code and no link, bars are absolute values and no substitutions,
and stars are products or ASSET*, unless they are doubled.
"""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`_?)")
HEADER = re.compile(r"^[\w*]+(, [\w*]+)*( : |$)")
NAME = re.compile(r"(?<![\w`.])([A-Za-z]\w*_)(?![\w`])")


def plain(text: str) -> str:
    """What is outside of literals, with nothing in it that reStructuredText would take for markup."""
    text = text.replace("|", r"\|")
    text = re.sub(r"(?<!\*)\*(?!\*)", r"\*", text)
    return NAME.sub(r"``\1``", text)


def rewrite(line: str) -> str:
    """A line of a docstring."""
    return "".join(part if k % 2 else plain(part) for k, part in enumerate(LITERAL.split(line)))


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """All lines but names of parameters, headings, and code."""
    if not name.startswith("asset_svm"):
        return
    code = None  # the indentation above which lines are code
    for k, line in enumerate(lines):
        width = len(line) - len(line.lstrip())
        if code is not None and line.strip() and width <= code:
            code = None
        if code is not None or line.lstrip().startswith((">>>", "...")):
            continue
        header = HEADER.match(line)
        start = header.end() if header else 0
        lines[k] = line[:start] + rewrite(line[start:])
        if line.rstrip().endswith("::"):
            code = width


def setup(app: Any) -> dict[str, bool]:
    """Before numpydoc reads them."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
