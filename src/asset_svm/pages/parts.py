"""Text and tables, as HTML and as Markdown. Whatever comes in is text: it is escaped, never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Tone = Literal["", "good", "bad", "quiet"]
_LONG = 32  # characters of a cell that may be broken into lines


@dataclass(frozen=True)
class Cell:
    """A value of a table with a remark beside it, and a tone: "good", "bad" or "quiet"."""

    text: str
    note: str = ""
    tone: Tone = ""


Value = Cell | str | int | float | None


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``tone`` "quiet" makes it small print."""

    text: str
    tone: Tone = ""

    def html(self) -> str:
        """The part in HTML."""
        return f"<p{_tone(self.tone)}>{escape(self.text)}</p>"

    def markdown(self) -> str:
        """The part in Markdown."""
        return markdown_text(self.text)


@dataclass(frozen=True)
class Code:
    """A line to be copied, as it is; where it is long, it is broken on the screen alone."""

    text: str

    def html(self) -> str:
        """The part in HTML."""
        return f"<pre><code>{escape(self.text)}</code></pre>"

    def markdown(self) -> str:
        """The part in Markdown."""
        return f"```\n{self.text}\n```"


@dataclass(frozen=True)
class Facts:
    """Names and values, one under the other."""

    values: Mapping[str, Value]

    def html(self) -> str:
        """The part in HTML."""
        rows = (f"<dt>{escape(name)}</dt><dd>{_cell(v)}</dd>" for name, v in self.values.items())
        return f"<dl>{''.join(rows)}</dl>"

    def markdown(self) -> str:
        """The part in Markdown."""
        return "\n".join(
            f"- {markdown_text(name)}: {_markdown_cell(value)}" for name, value in self.values.items()
        )


@dataclass(frozen=True)
class Table:
    """A table; the first column names its rows, the others hold values (None: an empty cell)."""

    header: Sequence[str]
    rows: Sequence[Sequence[Value]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"A row has {len(row)} values and the header {len(self.header)}; give every row "
                    "a value (or None) for every column."
                )

    def html(self) -> str:
        """As HTML; a wide table scrolls inside its own box."""
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
        body = "".join(
            f'<tr><th scope="row">{_cell(row[0])}</th>'
            + "".join(f"<td{_width(value)}>{_cell(value)}</td>" for value in row[1:])
            + "</tr>"
            for row in self.rows
        )
        table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div class="table" tabindex="0">{table}</div>'

    def markdown(self) -> str:
        """The part in Markdown."""
        lines = [
            "| " + " | ".join(map(markdown_text, self.header)) + " |",
            "|" + "---|" * len(self.header),
        ]
        lines += ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in self.rows]
        if self.caption:
            lines = [markdown_text(self.caption), "", *lines]
        return "\n".join(lines)


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _tone(tone: Tone) -> str:
    return f' class="{escape(tone)}"' if tone else ""


def _as_cell(value: Value) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("")
    return Cell(f"{value:.4g}" if isinstance(value, float) else str(value))


def _width(value: Value) -> str:
    """Numbers stay on one line, sentences do not."""
    cell = _as_cell(value)
    return ' class="words"' if max(len(cell.text), len(cell.note)) > _LONG else ""


def _cell(value: Value) -> str:
    cell = _as_cell(value)
    text = f"<span{_tone(cell.tone)}>{escape(cell.text)}</span>" if cell.tone else escape(cell.text)
    return text + (f" <small>{escape(cell.note)}</small>" if cell.note else "")


def _markdown_cell(value: Value) -> str:
    cell = _as_cell(value)
    note = f" ({cell.note})" if cell.note else ""
    return markdown_text(cell.text + note)
