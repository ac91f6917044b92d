"""TableEncoder: parameters, columns, and what is made of each.

"TableEncoder"     parameters, n_columns, column_names, output, encoding
"""

from __future__ import annotations

from typing import Any

from asset_svm.encoding.plan import NUMBERS
from asset_svm.estimators.tables import TableEncoder
from asset_svm.persistence.columns import read_columns, write_columns
from asset_svm.storage.fields import Fields, Writing
from asset_svm.storage.tables import encoding
from asset_svm.storage.writing import Writer


def write_encoder(write: Writer, encoder: TableEncoder, name: str) -> dict[str, Any]:
    """The record of a fitted encoder."""
    return {
        "kind": "TableEncoder",
        "parameters": write.mapping(encoder.get_params(deep=False), f"{name}.parameters"),
        **write_columns(encoder),
        "output": getattr(encoder, "_sklearn_output_config", {}).get("transform"),
        "numbers": encoder.numbers_,
        "encoding": Writing.of(write, encoding, f"{name}.encoding", encoder.encoding_),
    }


def read_encoder(f: Fields) -> TableEncoder:
    """The fitted encoder of its record."""
    f.text("kind", ("TableEncoder",))
    encoder = read_parameters(f.object("parameters"))
    found = f.record("encoding", encoding)
    names = f.maybe(f.each, "column_names", "text")
    fits = f.integer("n_columns", 1) == len(found.notes) and names in (None, list(found.names))
    f.check(fits, "are not those of encoding", "column_names")
    numbers = f.text("numbers", NUMBERS)
    encoder.adopt(found, named=names is not None, numbers=numbers, quiet=True)
    read_columns(f, encoder)
    output = f.maybe(f.text, "output", ("default", "pandas", "polars"))
    return encoder if output is None else encoder.set_output(transform=output)


def read_parameters(f: Fields) -> TableEncoder:
    """An encoder with these parameters."""
    encoder = TableEncoder()
    known = encoder.get_params(deep=False)
    unknown = [name for name in f.fields if name not in known]
    f.check(not unknown, "is a parameter that this asset-svm does not know", *unknown[:1])
    return encoder.set_params(**{name: f.value(name) for name in f.fields})
