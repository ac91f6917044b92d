"""The version, here and nowhere else: pyproject.toml reads it here, `make version` writes it."""

__version__ = "0.2.0.dev0"
