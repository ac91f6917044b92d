"""What a cell of text is: a number, a missing value, a number in a notation that is not read, a name.

Blanks around it count for nothing, in features as in targets. Numbers have digits, a point and an
exponent; any other notation is ambiguous (is 1,234 one or a thousand?), and no name of a class.
"""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["number", "missing", "foreign", "name"]
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
BLANKS = " \t"
"""What may stand around a cell; a control character is a slip."""
MISSING = frozenset(
    (
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    )
)  # fmt: skip
"""The texts that pandas takes for missing values."""
_AROUND = r"[%\u2030$\u00a2-\u00a5\u20a0-\u20cf\s]*"  # per cent, per mille, currencies, spaces
_SPACES = r"\s'\u2019"
_DIGITS = (
    rf"(?:[0-9]+|[0-9]{{1,3}}(?:[,{_SPACES}][0-9]{{3}})+)(?:\.[0-9]*)?"  # 1,234.5 or 1 234.5
    rf"|(?:[0-9]+|[0-9]{{1,3}}(?:[.{_SPACES}][0-9]{{3}})+),[0-9]*"  # 1.234,5 or 12,5
    r"|[.,][0-9]+"
)
_FOREIGN = re.compile(rf"{_AROUND}[+\-\u2212]?{_AROUND}(?:{_DIGITS})(?:[eE][+-]?[0-9]+)?{_AROUND}")
LONGEST_NUMBER = 100
"""Characters of a number in whatever notation."""
FOREIGN = (
    "is no number in the notation that is read; write numbers with a decimal point alone, as 1234.5"
)
SHOWN = 40
"""Characters of a cell that a message shows."""


def kind_of(text: str) -> Kind:
    """The kind of a text without the blanks around it."""
    if NUMBER.fullmatch(text):
        return "number"
    if text in MISSING or not text.strip():
        return "missing"
    return "foreign" if len(text) <= LONGEST_NUMBER and _FOREIGN.fullmatch(text) else "name"


def shown(text: str) -> str:
    """The text, quoted and shortened, for a message."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
