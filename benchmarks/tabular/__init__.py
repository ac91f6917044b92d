"""The methods of ``tables.py``: one small file each, which defines ``METHODS``.

Every method is given the same rows (``Rows``) and threads, chooses its settings by validation rows
alone, trains on training and validation rows together, and is scored on test rows once. A new peer is
a new file in this folder. One that is not installed says in ``missing()`` how to get it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tabular.base import Method, Rows

__all__ = ["METHODS", "Method", "Rows"]

_PARTS = {"base", "encoding", "page", "report", "staged"}

METHODS: dict[str, Method] = {
    method.name: method
    for module in iter_modules(__path__)
    if module.name not in _PARTS
    for method in import_module(f"tabular.{module.name}").METHODS
}
"""All methods, by name."""
