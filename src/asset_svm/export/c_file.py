"""A model as one file of C99, which needs ``math.h``, ``stddef.h`` and ``string.h`` alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import asset_svm
from asset_svm.export.c_text import HELPERS, Tables, quoted, real
from asset_svm.export.code import Cells, CodeOperations
from asset_svm.export.describing import (
    check_one_table,
    description_of,
    label_array,
    table_columns,
    unlike,
)
from asset_svm.runtime.description import Description
from asset_svm.runtime.links import OfClasses, split
from asset_svm.storage.atomic import replacing

SECONDS = 86_400.0
KEYWORDS = frozenset(
    (
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
        "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict",
        "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union",
        "unsigned", "void", "volatile", "while",
        # Those of C23, and of compilers without -std=c99.
        "alignas", "alignof", "bool", "constexpr", "false", "nullptr", "static_assert", "thread_local",
        "true", "typeof", "typeof_unqual", "asm",
        # Macros of the three headers, and those that compilers have without -std=c99.
        "NULL", "NAN", "INFINITY", "HUGE_VAL", "HUGE_VALF", "HUGE_VALL", "FP_INFINITE", "FP_NAN",
        "FP_NORMAL", "FP_SUBNORMAL", "FP_ZERO", "FP_ILOGB0", "FP_ILOGBNAN", "FP_FAST_FMA",
        "MATH_ERRNO", "MATH_ERREXCEPT", "math_errhandling", "MAXFLOAT", "M_E", "M_PI", "M_LN2",
        "M_LN10", "M_LOG2E", "M_LOG10E", "M_PI_2", "M_PI_4", "M_1_PI", "M_2_PI", "M_2_SQRTPI",
        "M_SQRT2", "M_SQRT1_2", "linux", "unix", "i386",
    )
)  # fmt: skip
MOST_IN_DOUBLE = 2**53 - 1
"""The integers up to which a ``double`` tells every one from the next."""
MEMBERS = {"number": "double ", "time": "double ", "levels": "const char *"}
SAID = {
    "number": "a number; NAN for a gap",
    "time": "a time: seconds since 1970 in UTC; NAN for a gap",
    "levels": 'text in UTF-8, a whole number without ".0"; NULL or "" for a gap',
}


class RowColumns:
    """The columns of a table as members of a struct ``row``."""

    def __init__(
        self, code: CodeOperations, columns: list[tuple[str, str]], members: list[str]
    ) -> None:
        self.code = code
        self.kinds = dict(columns)
        self.members = {name: member for (name, _), member in zip(columns, members, strict=True)}

    def numbers(self, name: str) -> Cells:
        """The number, or a time in days."""
        entry = f"row->{self.members[name]}"
        entry = f"{entry} / {SECONDS}" if self.kinds[name] == "time" else entry
        return self.code.fill(1, "f", [], lambda out: [f"{out}[0] = {entry};"])

    def codes(self, name: str, levels: tuple[str, ...]) -> Cells:
        """The number of the level."""
        by, listed = self.code.helper("asset_level"), self.code.texts(levels)
        entry = f"{by}(row->{self.members[name]}, {listed}, {len(levels)})"
        return self.code.fill(1, "i", [], lambda out: [f"{out}[0] = {entry};"])


def to_c(
    model: Any, path: str | Path | None = None, *, name: str | None = None, coverage: float = 0.9
) -> str:
    """A model as one file of C99 without dependencies.

    Parameters
    ----------
    model : estimator, model of ``asset_svm.runtime``, or path
        What ``asset_svm.save`` takes, or the file that it has written.
    path : path, optional
        Where the file goes, whole or not at all.
    name : str, optional
        What names of functions begin with; by default the name of the file, else ``model``.
    coverage : float, default=0.9
        Of the intervals of a regression that has them.

    Returns
    -------
    source : str
        Its head says which functions there are and how they are called.

    Raises
    ------
    ValueError
        The model has more than two million numbers, or a part that has no way in C.
    """
    description = description_of(model)
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must be between 0 and 1; 0.9 is usual.")
    if name is None:
        name = "model" if path is None else Path(path).stem
    name = identifier(name)
    if name.startswith("_"):  # names of functions that begin so do too
        name = f"model{name}"
    source = _File(description, name, coverage).text()
    if path is not None:
        with replacing(path) as file:
            file.write(source.encode())
    return source


def identifier(name: str, taken: Sequence[str] = ()) -> str:
    """A name of C that is like this one, and none of those taken."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    if re.match("_[A-Z_]", plain):  # such names belong to compilers, and some are keywords
        plain = f"own{plain}"
    return unlike(f"{plain}_" if plain in KEYWORDS else plain, taken)


def comment(text: str) -> str:
    """Text as it may stand in a comment."""
    plain = "".join(each if each.isprintable() else "?" for each in text[:60])
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")


class _File:
    """The parts of a file: what is declared, tables, and functions."""

    def __init__(self, description: Description, name: str, coverage: float) -> None:
        self.description, self.name, self.coverage = description, name, coverage
        self.tables = Tables()
        self.declared: list[str] = []
        self.functions: list[str] = []
        encoding = check_one_table(description)
        self.columns = None if encoding is None else table_columns(encoding)
        self.members: list[str] = []
        for column, _ in self.columns or ():
            self.members.append(identifier(column, self.members))
        count = description.n_columns
        self.argument = f"const double x[{count}]" if encoding is None else f"const {name}_row *row"
        self.passed = "x" if encoding is None else "row"

    def text(self) -> str:
        """The file."""
        self._write_row()
        if self.description.kind.endswith("regressor"):
            self._write_regressor()
        else:
            self._write_classifier()
        helpers = [HELPERS[name] for name in HELPERS if name in self.tables.helpers]
        parts = [
            self._head(), "#include <math.h>\n#include <stddef.h>\n#include <string.h>\n",
            "\n".join(self.declared), *self.tables.lines, *helpers, *self.functions,
        ]  # fmt: skip
        return "\n".join(parts)

    def _head(self) -> str:
        kind, name = self.description.kind, self.name
        lines = [
            f"A {kind} of asset-svm {asset_svm.__version__}, as C99 without dependencies.",
            "",
            "Every function takes one row, writes its results where the second argument points, and",
            "returns 0, or 1 where the row has a number that is not finite, or one too large for the",
            "kernel: results are then NAN, and class numbers -1. Threads may call them at once; link",
            "with -lm.",
            "",
        ]
        if self.columns is None:
            lines += [f"A row is {self.description.n_columns} numbers."]
            for number, column in enumerate(self.description.names or ()):
                lines.append(f"    x[{number}]    {comment(column)}")
        else:
            lines += [f"A row is a {name}_row, with these columns:"]
            for (column, of), member in zip(self.columns, self.members, strict=True):
                lines.append(f"    {member}    {comment(column)}: {SAID[of]}")
        return "/* " + "\n * ".join(lines).replace(" * \n", " *\n") + "\n */\n"

    def _write_row(self) -> None:
        if self.columns is None:
            return
        lines = [
            f"    {MEMBERS[kind]}{member};"
            for (_, kind), member in zip(self.columns, self.members, strict=True)
        ]
        self.declared.append("typedef struct {\n" + "\n".join(lines) + f"\n}} {self.name}_row;\n")

    def _input(self, code: CodeOperations) -> Any:
        if self.columns is None:
            return Cells(code, "x", self.description.n_columns)
        return RowColumns(code, self.columns, self.members)

    def _function(
        self,
        what: str,
        said: str,
        count: int,
        results: Callable[[CodeOperations, Any], Cells],
    ) -> None:
        """Declare and define a function that writes ``count`` numbers."""
        code = CodeOperations(self.tables)
        found = results(code, self._input(code))
        assert found.width == count
        lines, _ = code.block.lines({found.name})
        type_, none = ("int", "-1") if found.kind == "i" else ("double", "NAN")
        signature = f"int {self.name}_{what}({self.argument}, {type_} out[{count}])"
        self.declared.append(f"/* {said} */\n{signature};\n")
        body = [f"    {line}" for line in lines]
        raw = next((line for line in lines if "asset_raw" in line), None)
        assert raw is not None
        self.functions.append(
            "\n".join(
                [
                    f"{signature}", "{", *body,
                    f"    for (long i = 0; i < {count}; i++) out[i] = "
                    f"asset_bad ? {none} : ({type_}){found.at('i')};",
                    "    return asset_bad;", "}", "",
                ]
            )
        )  # fmt: skip

    def _raw(self, code: CodeOperations) -> Cells:
        """The decisions, from the function that all others call."""
        K = self.description.decide.width
        found = code.fill(
            K, "f", [],
            lambda out: [f"const int asset_bad = asset_raw({self.passed}, {out});"],
        )  # fmt: skip
        return found

    def _write_raw(self) -> None:
        """The function that decides."""
        code = CodeOperations(self.tables)
        found = self.description.raw(code, self._input(code))
        lines, _ = code.block.lines({found.name})
        K = self.description.decide.width
        self.functions.append(
            "\n".join(
                [
                    f"static int asset_raw({self.argument}, double out[{K}])", "{",
                    "    int bad = 0;", *(f"    {line}" for line in lines),
                    f"    for (long i = 0; i < {K}; i++) {{",
                    f"        out[i] = {found.at('i')};",
                    "        if (!isfinite(out[i])) bad = 1;", "    }", "    return bad;", "}", "",
                ]
            )
        )  # fmt: skip

    def _write_regressor(self) -> None:
        description, by = self.description, self.description.heads
        self._write_raw()
        width = sum(head.width for head in by)

        def values(code: CodeOperations, row: Any) -> Cells:
            heads = split(code, by, self._raw(code))
            return code.beside([head.values(code, own) for head, own in heads])  # type: ignore[union-attr]

        self._function("predict", f"The {width} prediction{'s' * (width > 1)} of a row.", width, values)
        if description.intervals is not None:
            intervals = description.intervals

            def ends(code: CodeOperations, row: Any) -> Cells:
                raw = self._raw(code)
                reach = intervals.widths(code, description.rows(code, row))
                reach = reach * intervals.factor(self.coverage)
                both = code.beside([raw - reach, raw + reach])
                found: Cells = by[0].values(code, both)  # type: ignore[union-attr]
                return found

            said = f"The ends of an interval that holds the target with probability {self.coverage:g}."
            self._function("interval", said, 2, ends)

    def _write_classifier(self) -> None:
        heads: Sequence[OfClasses] = self.description.heads  # type: ignore[assignment]
        self._write_raw()
        several = self.description.several
        for number, head in enumerate(heads):
            self._declare_classes(head, f"_{number}" if several else "")
        count = len(heads)

        def codes(code: CodeOperations, row: Any) -> Cells:
            found = split(code, heads, self._raw(code))
            return code.beside([head.codes(code, own) for head, own in found])  # type: ignore[union-attr]

        of = f"{self.name}_classes{'_0, ...' if several else ''}"
        self._function("predict", f"The number of the class of a row, in {of}.", count, codes)
        if all(head.has_decisions for head in heads):
            widths = [len(head.classes) if len(head.classes) > 2 else 1 for head in heads]

            def decisions(code: CodeOperations, row: Any) -> Cells:
                found = split(code, heads, self._raw(code))
                return code.beside([head.decisions(code, own) for head, own in found])  # type: ignore[union-attr]

            self._function("decisions", _layout("decision", widths), sum(widths), decisions)
        if all(head.has_probabilities for head in heads):
            counts = [len(head.classes) for head in heads]

            def probabilities(code: CodeOperations, row: Any) -> Cells:
                found = split(code, heads, self._raw(code))
                return code.beside([head.probabilities(code, own) for head, own in found])  # type: ignore[union-attr]

            self._function("probabilities", _layout("probability", counts), sum(counts), probabilities)

    def _declare_classes(self, head: OfClasses, suffix: str) -> None:
        """The array of classes of an output, with external linkage."""
        classes = label_array(head.classes, MOST_IN_DOUBLE)
        if classes.dtype.kind == "U":
            type_, texts = "const char *const ", [quoted(each) for each in classes.tolist()]
        else:
            type_, texts = "const double ", [real(each) for each in classes.tolist()]
        name = f"{type_}{self.name}_classes{suffix}[{len(texts)}]"
        self.declared.append(f"extern {name};\n")
        self.functions.append(f"{name} = {{{', '.join(texts)}}};\n")


def _layout(what: str, widths: Sequence[int]) -> str:
    """What a function writes."""
    if len(widths) > 1:
        sizes = ", ".join(map(str, widths))
        return f"Of each output, one after the other ({sizes}), its {what}s."
    if widths[0] == 1:
        return f"The {what} of a row: above 0 it is of the second class."
    return f"The {what} of each of the {widths[0]} classes."
