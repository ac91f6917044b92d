"""The text of C: numbers, literals, arrays that a file has once, helping functions, statements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asset_svm.kernels.formula import Argument

MOST_NUMBERS = 2_000_000
"""Numbers of a file: of as many text has some 40 MB."""
PER_LINE = 8
TERMS = {
    Argument.SQUARED_DISTANCE: ("squares", "(x[{k}] - z[{k}]) * (x[{k}] - z[{k}])"),
    Argument.ABSOLUTE_DISTANCE: ("sizes", "fabs(x[{k}] - z[{k}])"),
    Argument.PRODUCT: ("products", "x[{k}] * z[{k}]"),
}


def _sum_of(name: str, term: str, type_: str) -> str:
    """A function that adds up terms of a row and a landmark: four sums at a time do not wait."""
    four = " ".join(
        f"{total} += {term.format(k=place)};"
        for total, place in zip("abcd", ("k", "k + 1", "k + 2", "k + 3"), strict=True)
    )
    return f"""static double {name}(const double *x, const {type_} *z, long count)
{{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    const long whole = count - count % 4;
    long k;
    for (k = 0; k < whole; k += 4) {{
        {four.replace("; ", f";{chr(10)}        ")}
    }}
    for (k = whole; k < count; k++) a += {term.format(k="k")};
    return (a + b) + (c + d);
}}
"""


HELPERS = {
    **{
        f"asset_{name}_{type_}": _sum_of(f"asset_{name}_{type_}", term, type_)
        for name, term in TERMS.values()
        for type_ in ("float", "double")
    },
    "asset_expit": """static double asset_expit(double x)
{
    const double small = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : small) / (1.0 + small);
}
""",
    "asset_interpolated": """static double asset_interpolated(
    double x, const double *places, const double *y, long count)
{
    double slope;
    long low = 0, high = count - 1;
    if (isnan(x)) return x;
    if (x <= places[0]) return y[0];
    if (x >= places[high]) return y[high];
    while (high - low > 1) {
        const long middle = (low + high) / 2;
        if (places[middle] <= x) low = middle; else high = middle;
    }
    slope = (y[high] - y[low]) / (places[high] - places[low]);
    return y[low] + (x - places[low]) * slope;
}
""",
    "asset_level": """static long asset_level(const char *text, const char *const *names, long count)
{
    long k;
    if (text == NULL || text[0] == '\\0') return -1;
    for (k = 0; k < count; k++)
        if (strcmp(text, names[k]) == 0) return k;
    return count;
}
""",
}  # fmt: skip


def real(value: float) -> str:
    """A number as C has it."""
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def quoted(text: str) -> str:
    """Text as a literal of C, in UTF-8."""
    plain = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return f'"{"".join(plain)}"'


@dataclass
class Statement:
    """Lines that fill one array, by others."""

    out: str
    uses: set[str]
    lines: list[str]


class Block:
    """Statements one after the other."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def needed(self, wanted: set[str]) -> list[Statement]:
        """The statements by which some arrays come about."""
        wanted, found = set(wanted), []
        for each in reversed(self.statements):
            if each.out in wanted:
                found.append(each)
                wanted |= each.uses
        return found[::-1]

    def lines(self, wanted: set[str]) -> tuple[list[str], set[str]]:
        """The lines by which some arrays come about, and all arrays in them."""
        kept = self.needed(wanted)
        uses = set[str]().union(*(each.uses for each in kept), wanted)
        return [line for each in kept for line in each.lines], uses


@dataclass
class Tables:
    """What a file has beside its functions: arrays of numbers and of text, and helpers."""

    lines: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    n_numbers: int = 0
    known: dict[Any, str] = field(default_factory=dict)

    def add(self, key: Any, type_: str, texts: list[str]) -> str:
        """The name of an array, which is kept once."""
        if key not in self.known:
            self.n_numbers += len(texts)
            if self.n_numbers > MOST_NUMBERS:
                raise ValueError(
                    f"The model has more than {MOST_NUMBERS:,} numbers, too many for a C file; export "
                    "it to ONNX, or use fewer landmarks."
                )
            name = self.known[key] = f"asset_table_{len(self.known)}"
            rows = [
                ", ".join(texts[start : start + PER_LINE]) for start in range(0, len(texts), PER_LINE)
            ]
            body = ",\n    ".join(rows)
            self.lines.append(f"static const {type_}{name}[{len(texts)}] = {{\n    {body}\n}};\n")
        return self.known[key]


def short(value: np.float32) -> str:
    """A float32 with as many digits as tell it from others."""
    text = str(value)
    return text if any(mark in text for mark in ".en") else f"{text}.0"
