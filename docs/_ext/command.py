"""``asset-options``: a table of the options of a command, from the command itself."""

from __future__ import annotations

from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from asset_svm.cli.main import app as asset


def shown(option: Any) -> str:
    """The words of an option, and what follows them."""
    if option.param_type_name == "argument":
        return str(option.metavar or option.name.upper())
    words = ", ".join([*option.opts, *option.secondary_opts])
    return words if option.is_flag else f"{words} {option.metavar}"


class Options(SphinxDirective):
    """The arguments and options of ``asset NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A definition list, in the order of ``--help``."""
        commands = typer.main.get_command(asset).commands  # type: ignore[attr-defined]
        command = commands[self.arguments[0]]
        about = nodes.paragraph(
            text=(command.help or "").split("\f")[0].split("\n\n")[0].replace("\n", " ")
        )
        entries = nodes.definition_list(classes=["options"])
        for option in command.params:
            if getattr(option, "hidden", False):
                continue
            words = shown(option)
            term = nodes.term("", "", nodes.literal(text=words))
            text = getattr(option, "help", None) or ""
            item = nodes.definition_list_item(
                "", term, nodes.definition("", nodes.paragraph(text=text))
            )
            entries += item
        return [about, entries]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("asset-options", Options)
    return {"parallel_read_safe": True}
