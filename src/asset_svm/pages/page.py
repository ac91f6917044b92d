"""A page: a title, sections of parts, one file.

The file is whole: style, script and figures are inside, and its content security policy forbids the
browser to load anything else, so that a mistake cannot make a reader's browser call home.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from asset_svm.pages.figure import Figure
from asset_svm.pages.parts import Paragraph, markdown_text
from asset_svm.storage.atomic import replacing

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class Part(Protocol):
    """What a section is made of."""

    def html(self) -> str:
        """The part in HTML."""

    def markdown(self) -> str:
        """The part in Markdown."""


@dataclass
class Section:
    """A heading and its parts; neighbouring figures stand side by side where there is room."""

    title: str
    parts: Sequence[Part] = field(default_factory=list)


@dataclass
class Page:
    """A page; ``lead`` is the sentence under the title, ``footer`` the small print at its end."""

    title: str
    lead: str = ""
    footer: str = ""
    sections: list[Section] = field(default_factory=list)

    def add(self, section: Section) -> None:
        """Append a section."""
        self.sections.append(section)

    def html(self) -> str:
        """The whole page in HTML."""
        here = files("asset_svm.pages")
        style, script = ((here / name).read_text("utf-8") for name in ("page.css", "page.js"))
        links = "".join(
            f'<a href="#s{number}">{escape(section.title)}</a>'
            for number, section in enumerate(self.sections, 1)
        )
        contents = f"<nav>{links}</nav>" if len(self.sections) > 1 else ""
        body = "".join(
            f'<section id="s{number}"><h2>{escape(section.title)}</h2>{self._parts(number)}</section>'
            for number, section in enumerate(self.sections, 1)
        )
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        footer = f"<footer>{escape(self.footer)}</footer>" if self.footer else ""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{style}</style></head><body>"
            f"<main><h1>{escape(self.title)}</h1>{lead}{contents}{body}{footer}</main>"
            f'<div id="tip" role="status" hidden></div><script>{script}</script></body></html>\n'
        )

    def markdown(self) -> str:
        """The same in Markdown; figures are left out, their captions are not."""
        lines = [f"# {markdown_text(self.title)}"]
        if self.lead:
            lines.append(Paragraph(self.lead).markdown())
        for section in self.sections:
            lines.append(f"## {markdown_text(section.title)}")
            lines += [part.markdown() for part in section.parts]
        if self.footer:
            lines.append(Paragraph(self.footer).markdown())
        return "\n\n".join(line for line in lines if line) + "\n"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the HTML file, making its folder; a reader never sees half of it."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(self.html().encode())
        return path

    def _parts(self, number: int) -> str:
        out, inside = [], False
        for index, part in enumerate(self.sections[number - 1].parts):
            is_figure = isinstance(part, Figure)
            if is_figure != inside:
                out.append('<div class="figures">' if is_figure else "</div>")
                inside = is_figure
            # Ids must differ between the figures of a page: clip paths are found by them.
            out.append(part.html(f"f{number}-{index}-") if isinstance(part, Figure) else part.html())
        return "".join([*out, "</div>" if inside else ""])
