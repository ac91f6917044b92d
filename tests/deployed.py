"""What runs exported models in tests: onnxruntime, and gcc with ctypes."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}
FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99", "-O2", "-shared", "-fPIC"]
DAY = np.datetime64("1970-01-01", "us")


def text(value):
    """A category as an input takes it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return "" if value is None or value != value else str(value)


def session_of(model):
    """onnxruntime with a model."""
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def column_for(kind, column):
    """A column of a frame as an input of this type takes it."""
    if kind == "tensor(string)":
        return np.array([[text(value)] for value in column], dtype=object).reshape(-1, 1)
    if kind == "tensor(int64)":
        return column.to_numpy().astype("datetime64[us]").astype(np.int64)[:, None]
    return column.to_numpy(dtype=float)[:, None]


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def run(session, rows):
    """The outputs of a session by their names."""
    inputs = session.get_inputs()
    if [each.name for each in inputs] == ["X"]:
        feeds = {"X": dense(rows).astype(TYPES[inputs[0].type])}
    else:
        feeds = {each.name: column_for(each.type, rows[each.name]) for each in inputs}
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def together(found, name):
    """An output, or all that have a number behind this name."""
    if name in found:
        return found[name]
    each = [found[f"{name}_{k}"] for k in range(len(found)) if f"{name}_{k}" in found]
    return np.column_stack(each) if name == "label" else each


# C --------------------------------------------------------------------------------------------------


def compiled(source, folder, name="model"):
    """The library that gcc makes of a source."""
    path, made = folder / f"{name}.c", folder / f"{name}.so"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["gcc", *FLAGS, str(path), "-o", str(made), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(made))


def row_type(columns):
    """The struct of a row of a table, from (name, kind) of its columns."""
    kinds = {"number": ctypes.c_double, "time": ctypes.c_double, "levels": ctypes.c_char_p}
    fields = [(f"c{k}", kinds[kind]) for k, (_, kind) in enumerate(columns)]
    return type("Row", (ctypes.Structure,), {"_fields_": fields})


def cell(kind, value):
    """A cell of a frame as a member of a row takes it."""
    if kind == "levels":
        found = text(value).encode()
        return found or None
    if kind == "time":
        return np.nan if value != value else (np.datetime64(value, "us") - DAY) / np.timedelta64(1, "s")
    return float(value)


def rows_for(rows, columns):
    """Rows as functions take them."""
    if columns is None:
        return [(ctypes.c_double * len(row))(*row) for row in dense(rows).astype(np.float64).tolist()]
    made = row_type(columns)
    return [made(*(cell(kind, rows[name].iloc[i]) for name, kind in columns)) for i in range(len(rows))]


def call(function, rows, count, of=ctypes.c_double):
    """(rows, count) results, and what was returned for each row."""
    out, codes = (of * count)(), []
    found = []
    for row in rows:
        codes.append(function(ctypes.byref(row), out))
        found.append(list(out))
    return np.array(found), codes
