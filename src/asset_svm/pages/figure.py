"""A figure: a drawing of matplotlib as inline SVG that takes its colours from the page.

matplotlib draws with stand-in colours (``INK``, ``GRID``, ``series(i)``); in the SVG they become
``currentColor`` and the page's CSS variables, so that one drawing serves light, dark and print.
Text stays text. Over the points lie invisible marks that carry their values (``Hit``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from asset_svm.pages.parts import markdown_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GRID, N_SERIES = "#010203", "#010204", 8
WIDTH, HEIGHT = 4.8, 3.4  # inches: text of 10 points is still 10 pixels on a phone

LONGEST = 40  # letters of a label

_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
}


def series(index: int) -> str:
    """The stand-in of the colour of series ``index``; after eight they begin again."""
    return f"#02030{index % N_SERIES}"


def plain(text: str, longest: int = LONGEST) -> str:
    """Text that matplotlib shows as it is (no formulas, no hidden labels), cut where it is long."""
    text = " ".join(text.split())
    if _letters(text) > longest:
        text = text[: longest - 1]
        while _letters(text) > longest - 1:
            text = text[:-1]
        text += "…"
    return ("\u200a" if text.startswith("_") else "") + text.replace("$", r"\$")


def _letters(text: str) -> int:
    """How many letters the text is wide; one of Chinese, Japanese or Korean is two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


@dataclass(frozen=True)
class Hit:
    """A place that shows ``tip``: in data coordinates, a point, or a box where it has a far corner."""

    x: float
    y: float
    tip: str
    corner: tuple[float, float] | None = None


@dataclass(frozen=True)
class Figure:
    """A drawing with its title and caption."""

    svg: str
    title: str = ""
    caption: str = ""

    def html(self, prefix: str = "") -> str:
        """As HTML; ``prefix`` goes before its ids, which must differ within a page."""
        svg = re.sub(r'\bid="', f'id="{prefix}', self.svg)
        svg = re.sub(r'(url\(|href=")#', rf"\g<1>#{prefix}", svg)
        title = f"<h3>{escape(self.title)}</h3>" if self.title else ""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure>{title}{svg}{caption}</figure>"

    def markdown(self) -> str:
        """The words of the figure, without the drawing."""
        return markdown_text(": ".join(text for text in (self.title, self.caption) if text))


def draw(
    paint: Callable[[Axes], Sequence[Hit]],
    *,
    title: str = "",
    caption: str = "",
    size: tuple[float, float] = (WIDTH, HEIGHT),
) -> Figure:
    """What ``paint`` draws on axes of ``size`` inches, with the marks that it returns."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Drawing
    except ImportError as error:
        raise ImportError(
            'A figure needs matplotlib, which is not installed; run: pip install "asset-svm[plot]"'
        ) from error
    with matplotlib.rc_context({**_RC, "svg.hashsalt": title}), warnings.catch_warnings():
        # The reader's browser has the fonts that matplotlib misses; here only widths are guessed.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        drawing = Drawing(figsize=size, dpi=72, layout="constrained")
        FigureCanvasSVG(drawing)
        axes = drawing.add_subplot()
        hits = paint(axes)
        text = StringIO()
        drawing.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        marks = "".join(_mark(hit, axes, 72 * size[1]) for hit in hits)
    return Figure(_inline(text.getvalue(), marks, title or caption), title, caption)


def _mark(hit: Hit, axes: Axes, height: float) -> str:
    x, y = axes.transData.transform((hit.x, hit.y))
    if hit.corner is None:
        shape = f'circle cx="{x:.1f}" cy="{height - y:.1f}" r="7"'
        name = "circle"
    else:
        far_x, far_y = axes.transData.transform(hit.corner)
        left, top = min(x, far_x), height - max(y, far_y)
        shape = f'rect x="{left:.1f}" y="{top:.1f}"'
        shape += f' width="{abs(far_x - x):.1f}" height="{abs(far_y - y):.1f}"'
        name = "rect"
    return f'<{shape} class="hit" tabindex="0"><title>{escape(hit.tip)}</title></{name}>'


def _inline(text: str, marks: str, label: str) -> str:
    """The drawing as an element of an HTML page: no prologue, namespaces, metadata or own style."""
    found = re.search(r'viewBox="([^"]+)"[^>]*>(.*)</svg>', text, re.DOTALL)
    if found is None:
        raise RuntimeError("matplotlib wrote an SVG without a viewBox.")
    box, inside = found.groups()
    inside = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL
    )
    inside = inside.replace("xlink:href=", "href=")
    inside = inside.replace(INK, "currentColor").replace(GRID, "var(--line)")
    for index in range(N_SERIES):
        inside = inside.replace(series(index), f"var(--series-{index})")
    inside = re.sub(r"\s*\n\s*", " ", inside)
    start = f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escape(label)}">'
    return f"{start}{inside}{marks}</svg>"
