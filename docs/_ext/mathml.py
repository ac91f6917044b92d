"""Formulas as MathML, made by the build: a reader needs no script, no font and no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """A formula by itself, which scrolls where it is wider than a phone."""
    formula = convert(node.astext(), display="block")
    self.body.append(
        f'<div class="formula" tabindex="0" role="group" aria-label="Formula">{formula}</div>\n'
    )
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
