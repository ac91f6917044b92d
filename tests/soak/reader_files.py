"""Mutants of the files that readers read; ``fuzz.readers`` says what must come of any bytes.

Half of the cases change bytes of a file. They are mostly refused; the other half are files whose parts
are drawn whole (odd numbers, quotes and line ends in a text; types, orders and packings of arrays), and
are mostly read, so that there are rows to compare.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from fuzz import readers
from soak.attack import Attack, Case
from soak.mutations import mutated

NAMES = ("svmlight", "csv", "npy", "npz", "parquet", "packed")
NUMBERS = (
    *("1", "-0", "+3", ".5", "5.", "00012", "1e5", "1E-7", "1e-400", "4.9e-324", "123456789012345678"),
    *(
        "0.1",
        "2.2250738585072011e-308",
        "179769313486231570000e288",
        "9007199254740993",
        "1e22",
        "1e23",
    ),
    *("nan", "inf", "1e309", "", "0x10", "1_0", "1,5", "x", "1 2", "١"),
)
"""Numbers that are hard to read, and words that are none; the first are drawn more often."""
TYPES = (
    "?",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u8",
    "f2",
    "f4",
    "f8",
    ">f8",
    ">i4",
    "c16",
    "S3",
    "U3",
    "m8[s]",
)

TABLE_TYPES = (
    *("float64", "float32", "int8", "int64", "uint16", "bool") * 2,
    *("float16", "decimal", "string", "dictionary", "date32", "timestamp[s]"),
)
"""Of columns of a Parquet file; numbers are drawn more often."""


class Mutants(Attack):
    """A case is one file."""

    name, count, short, patience = "mutants", 1_000_000, 6000, 30.0

    def prepare(self) -> None:
        """Files to begin from."""
        readers.FOLDER = Path.cwd()
        self.seeds = {name: readers.seeds(name) for name in NAMES}
        for name, contents in self.seeds.items():
            for content in contents:  # compiles what is compiled, before there are children
                readers.READERS[name](content)

    def run(self, case: Case) -> str:
        """Change a file a little or draw one, and read it."""
        name, rng = NAMES[case.number % len(NAMES)], case.rng
        contents = self.seeds[name]
        content = contents[rng.integers(len(contents))]
        if rng.random() < 0.5 or name not in DRAWN:
            content = mutated(content, rng, contents)
        else:
            content = DRAWN[name](content, rng)
        return f"{name} {readers.READERS[name](content or bytes(1))}"


def edited_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Some numbers are others, some lines end otherwise."""
    head, lines = content[:1], content[1:].split(b"\n")
    for _ in range(rng.integers(1, 4)):
        row = int(rng.integers(len(lines)))
        line, kind = lines[row], rng.integers(8)
        if kind < 4:
            spots = [match.span() for match in re.finditer(rb"[-+.0-9e]+", line)] or [(0, 0)]
            begin, end = spots[rng.integers(len(spots))]
            number = NUMBERS[min(rng.integers(len(NUMBERS), size=2))]
            quote = '"' if rng.random() < 0.1 else ""
            line = line[:begin] + f"{quote}{number}{quote}".encode() + line[end:]
        elif kind == 4:
            line += rng.choice([b"\r", b" ", b"\t", b" # x", b"\r\r", b"\n", b","])
        elif kind == 5:
            line = rng.choice([b" ", b"\t", b"\n", b"#", b""]) + line
        elif kind == 6:
            lines.insert(int(rng.integers(len(lines))), line)
        else:
            line = line.replace(b" ", b"  \t").replace(b",", b" , ")
        lines[row] = line
    return head + b"\n".join(lines)


def drawn_array(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Numbers of some type, in some order."""
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 12)
    if rng.random() < 0.1 and values.size:
        values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -0.0, 1e308, 2.0**53 + 1])
    with np.errstate(all="ignore"):
        array = values.astype(TYPES[rng.integers(len(TYPES))])
    return np.asfortranarray(array) if rng.random() < 0.5 else array


def drawn_npy(content: bytes, rng: np.random.Generator) -> bytes:
    """A matrix."""
    shape = tuple(rng.integers(0, 6, rng.choice([0, 1, 2, 2, 2, 2, 3])))
    return _saved(np.save, drawn_array(rng, shape))


def drawn_npz(content: bytes, rng: np.random.Generator) -> bytes:
    """A matrix and its targets, or the parts of a CSR matrix, which may not fit together."""
    n, d = rng.integers(0, 6, 2)
    y = drawn_array(rng, (n + (rng.random() < 0.1),))
    save = np.savez if rng.random() < 0.5 else np.savez_compressed
    if rng.random() < 0.5:
        return _saved(save, X=drawn_array(rng, (n, d)), y=y)
    S = sp.random(n, d, 0.5, "csr", random_state=rng)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape)}
    if rng.random() < 0.5:
        name = rng.choice(list(parts))
        part = parts[name].copy()
        if part.size:
            part.flat[rng.integers(part.size)] = rng.choice([0, 1, -1, 5, 10**6])
        parts[name] = part.astype(rng.choice(["i4", "i8", "u4", "f8", part.dtype.str]))
    return _saved(save, **parts, y=y)


def drawn_parquet(content: bytes, rng: np.random.Generator) -> bytes:
    """A table of columns of some types, with a hole now and then."""
    n, columns = int(rng.integers(0, 8)), {}
    for name in ("a", "b", "y"):
        numbers = rng.integers(0, 100, n)
        kind = TABLE_TYPES[rng.integers(len(TABLE_TYPES))]
        if kind == "dictionary":
            column = pa.array(numbers.astype(str).tolist()).dictionary_encode()
        elif kind == "float16":
            column = pa.array(numbers.astype(np.float16))
        elif kind == "decimal":
            column = pa.array(numbers).cast(pa.int32()).cast(pa.decimal128(12, 2))
        elif kind in ("date32", "timestamp[s]"):
            column = pa.array(numbers.astype("M8[D]")).cast(kind)
        else:
            column = pa.array(numbers > 0 if kind == "bool" else numbers).cast(kind)
        if n and rng.random() < 0.1:
            column = pa.array([None, *column.to_pylist()[1:]], column.type)
        columns[name] = column
    buffer = io.BytesIO()
    packing = rng.choice(["none", "snappy", "gzip", "zstd"])
    pq.write_table(pa.table(columns), buffer, row_group_size=3, compression=packing)
    return buffer.getvalue()


def _saved(save: Any, *arrays: Any, **named: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


DRAWN = {
    "svmlight": edited_text,
    "csv": edited_text,
    "npy": drawn_npy,
    "npz": drawn_npz,
    "parquet": drawn_parquet,
}
