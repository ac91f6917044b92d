"""C that is written by computing with it: ``Operations`` whose values are arrays of one row.

Every operation is a statement that fills an array; those whose array nobody reads are left out in the
end, so that a compiler has nothing to warn of. Sums over landmarks and features are loops, in which the
profile of the kernel is written by the kernel's own function, for a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.export.c_text import TERMS, Block, Statement, Tables, quoted, real, short
from asset_svm.export.columns import Traced
from asset_svm.kernels.formula import Argument
from asset_svm.runtime.parts import Expansions, Sums, Tree
from asset_svm.runtime.sources import Cosines, Kernel, Landmarks

TYPES = {"f": "double", "i": "long", "b": "int"}


class Cells:
    """An array of C: the values of one row.

    Parameters
    ----------
    code : CodeOperations
    name : str
    width : int
    kind : {"f", "i", "b"}
        Numbers, integers or truth values.
    """

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: CodeOperations, name: str, width: int, kind: str = "f") -> None:
        self.code, self.name, self.width, self.kind = code, name, width, kind

    def at(self, index: str) -> str:
        """One of its values."""
        return f"{self.name}[{'0' if self.width == 1 else index}]"

    def _with(self, form: str, other: Any, kind: str = "") -> Cells:
        return self.code.each(form, [self, other], kind or self.kind)

    def __add__(self, other: Any) -> Cells:
        return self._with("{0} + {1}", other)

    def __radd__(self, other: Any) -> Cells:
        return self._with("{1} + {0}", other)

    def __sub__(self, other: Any) -> Cells:
        return self._with("{0} - {1}", other)

    def __rsub__(self, other: Any) -> Cells:
        return self._with("{1} - {0}", other)

    def __mul__(self, other: Any) -> Cells:
        return self._with("{0} * {1}", other)

    def __rmul__(self, other: Any) -> Cells:
        return self._with("{1} * {0}", other)

    def __truediv__(self, other: Any) -> Cells:
        return self._with("{0} / {1}", other)

    def __pow__(self, other: float) -> Cells:
        return self._with("pow({0}, {1})", float(other))

    def __neg__(self) -> Cells:
        return self.code.each("-{0}", [self], self.kind)

    def __gt__(self, other: Any) -> Cells:
        return self._with("{0} > {1}", other, "b")

    def __ge__(self, other: Any) -> Cells:
        return self._with("{0} >= {1}", other, "b")

    def __lt__(self, other: Any) -> Cells:
        return self._with("{0} < {1}", other, "b")

    def __eq__(self, other: Any) -> Cells:  # type: ignore[override]
        return self._with("{0} == {1}", other, "b")

    def __and__(self, other: Any) -> Cells:
        return self._with("{0} && {1}", other, "b")


class CodeOperations(Traced):
    """The statements of a function.

    Parameters
    ----------
    tables : Tables
        Those of the file.
    prefix : str
        Of the names of arrays.
    """

    def __init__(self, tables: Tables, prefix: str = "v") -> None:
        self.tables, self.prefix, self.n_names = tables, prefix, 0
        self.block = Block()

    # Statements ---------------------------------------------------------------------------------

    def constant(self, array: Array) -> str:
        """The name of an array of numbers, which keep their type."""
        array = np.ascontiguousarray(array)
        if array.dtype.kind in "iu":
            texts, type_ = [str(each) for each in array.ravel().tolist()], "long "
        elif array.dtype == np.float32:
            texts = [f"{short(each)}f" for each in array.ravel()]
            type_ = "float "
        else:
            texts, type_ = [real(each) for each in array.ravel().tolist()], "double "
        return self.tables.add((array.dtype.str, array.shape, array.tobytes()), type_, texts)

    def texts(self, names: tuple[str, ...]) -> str:
        """The name of an array of texts."""
        return self.tables.add(names, "char *const ", [quoted(each) for each in names])

    def helper(self, name: str) -> str:
        """A function of ``HELPERS``, which the file has then."""
        self.tables.helpers.add(name)
        return name

    def fill(
        self, width: int, kind: str, uses: Sequence[Cells], lines: Callable[[str], list[str]]
    ) -> Cells:
        """A new array, which these lines fill."""
        self.n_names += 1
        name = f"{self.prefix}{self.n_names}"
        found = [f"{TYPES[kind]} {name}[{width}];", *lines(name)]
        self.block.statements.append(Statement(name, {each.name for each in uses}, found))
        return Cells(self, name, width, kind)

    def each(self, form: str, values: Sequence[Any], kind: str) -> Cells:
        """A formula of the entries of arrays and numbers."""
        arrays = [each for each in values if isinstance(each, Cells)]
        kinds = [each.kind for each in arrays]
        given = "i" if "i" in kinds else "f"
        names = [self._operand(each, given) for each in values]
        width = max(name[1] for name in names)

        def at(index: str) -> str:
            entries = (f"{name}[{'0' if own == 1 else index}]" if own else name for name, own in names)
            return form.format(*entries)

        if width == 1:
            return self.fill(1, kind, arrays, lambda out: [f"{out}[0] = {at('0')};"])
        return self.fill(
            width,
            kind,
            arrays,
            lambda out: [f"for (long i = 0; i < {width}; i++) {out}[i] = {at('i')};"],
        )

    def _operand(self, value: Any, kind: str) -> tuple[str, int]:
        """The name of an operand and its width; a number has none."""
        if isinstance(value, Cells):
            return value.name, value.width
        array = np.asarray(value, dtype=np.int64 if kind == "i" else np.float64).ravel()
        if array.size == 1:
            text = str(int(array[0])) if kind == "i" else real(array[0])
            return f"({text})" if text.startswith("-") else text, 0
        return self.constant(array), array.size

    # As numpy has them --------------------------------------------------------------------------

    def exp(self, x: Cells, out: Any = None) -> Cells:
        """e^x."""
        return self.each("exp({0})", [x], "f")

    def sqrt(self, x: Cells, out: Any = None) -> Cells:
        """The root."""
        return self.each("sqrt({0})", [x], "f")

    def tanh(self, x: Cells, out: Any = None) -> Cells:
        """The hyperbolic tangent."""
        return self.each("tanh({0})", [x], "f")

    def cos(self, x: Cells, out: Any = None) -> Cells:
        """The cosine."""
        return self.each("cos({0})", [x], "f")

    def sin(self, x: Cells) -> Cells:
        """The sine."""
        return self.each("sin({0})", [x], "f")

    def clip(self, x: Cells, low: Any, high: Any, out: Any = None) -> Cells:
        """x, not below low and not above high; what is no number stays so."""
        found = x if low is None else self.each("{0} < {1} ? {1} : {0}", [x, low], x.kind)
        return found if high is None else self.each("{0} > {1} ? {1} : {0}", [found, high], x.kind)

    def abs(self, x: Cells) -> Cells:
        """|x|."""
        return self.each("fabs({0})", [x], "f")

    def expit(self, x: Cells) -> Cells:
        """1 / (1 + exp(-x))."""
        return self.each(self.helper("asset_expit") + "({0})", [x], "f")

    def log(self, x: Cells) -> Cells:
        """The logarithm."""
        return self.each("log({0})", [x], "f")

    def isnan(self, x: Cells) -> Cells:
        """Whether x is no number."""
        return self.each("isnan({0})", [x], "b")

    def where(self, condition: Cells, x: Any, y: Any) -> Cells:
        """x where the condition holds, else y."""
        kind = next((each.kind for each in (x, y) if isinstance(each, Cells)), "f")
        return self.each("{0} ? {1} : {2}", [condition, x, y], kind)

    def number(self, x: Cells) -> Cells:
        """Truth values or integers as numbers."""
        return self.each("(double){0}", [x], "f")

    def integer(self, x: Cells) -> Cells:
        """Truth values as integers."""
        return self.each("(long){0}", [x], "i")

    def full(self, like: Cells, row: Array) -> Cells:
        """These values."""
        row = np.asarray(row).ravel()
        kind = "i" if row.dtype.kind == "i" else "f"
        name = self.constant(row)
        width = row.size
        return self.fill(
            width, kind, [], lambda out: [f"for (long i = 0; i < {width}; i++) {out}[i] = {name}[i];"]
        )

    def columns(self, x: Cells, which: Array) -> Cells:
        """Columns by their numbers."""
        which = np.asarray(which, dtype=np.int64)
        count = len(which)
        if count == 1:
            return self.fill(1, x.kind, [x], lambda out: [f"{out}[0] = {x.at(str(which[0]))};"])
        places = self.constant(which)
        return self.fill(
            count, x.kind, [x],
            lambda out: [f"for (long i = 0; i < {count}; i++) {out}[i] = {x.name}[{places}[i]];"],
        )  # fmt: skip

    def beside(self, values: Sequence[Cells]) -> Cells:
        """Values one after the other."""
        if len(values) == 1:
            return values[0]

        def lines(out: str) -> list[str]:
            found, at = [], 0
            for each in values:
                if each.width == 1:
                    found.append(f"{out}[{at}] = {each.name}[0];")
                else:
                    found.append(
                        f"for (long i = 0; i < {each.width}; i++) {out}[{at} + i] = {each.name}[i];"
                    )
                at += each.width
            return found

        return self.fill(sum(each.width for each in values), values[0].kind, values, lines)

    def total(self, x: Cells) -> Cells:
        """The sum."""
        step = f"for (long i = 0; i < {x.width}; i++)"
        return self.fill(
            1, "f", [x], lambda out: [f"{out}[0] = 0.0;", f"{step} {out}[0] += {x.name}[i];"]
        )

    def _extreme(self, x: Cells, sign: str) -> Cells:
        step = f"for (long i = 1; i < {x.width}; i++)"
        return self.fill(
            1, "f", [x],
            lambda out: [
                f"{out}[0] = {x.name}[0];",
                f"{step} if ({x.name}[i] {sign} {out}[0]) {out}[0] = {x.name}[i];",
            ],
        )  # fmt: skip

    def largest(self, x: Cells) -> Cells:
        """The largest."""
        return self._extreme(x, ">")

    def smallest(self, x: Cells) -> Cells:
        """The smallest."""
        return self._extreme(x, "<")

    def argmax(self, x: Cells) -> Cells:
        """Where the largest is."""
        step = f"for (long i = 1; i < {x.width}; i++)"
        return self.fill(
            1, "i", [x],
            lambda out: [
                f"{out}[0] = 0;", f"{step} if ({x.name}[i] > {x.name}[{out}[0]]) {out}[0] = i;",
            ],
        )  # fmt: skip

    def in_order(self, x: Cells) -> Cells:
        """The values from the smallest on."""
        return self.fill(
            x.width, "f", [x],
            lambda out: [
                f"for (long i = 0; i < {x.width}; i++) {{",
                "    long k = i;",
                f"    for (; k > 0 && {out}[k - 1] > {x.name}[i]; k--) {out}[k] = {out}[k - 1];",
                f"    {out}[k] = {x.name}[i];",
                "}",
            ],
        )  # fmt: skip

    def product(self, x: Cells, Z: Array) -> Cells:
        """Z x."""
        Z = np.asarray(Z)
        s, n = Z.shape
        by = self.constant(Z)
        entry = self._summed(Argument.PRODUCT, x.name, by, Z.dtype, n, "i")
        return self.fill(
            s, "f", [x], lambda out: [f"for (long i = 0; i < {s}; i++) {out}[i] = {entry};"]
        )

    def _summed(
        self, argument: Argument, x: str, Z: str, dtype: np.dtype[Any], count: int, number: str
    ) -> str:
        """The sum over columns of a row and a row of a matrix, by its number."""
        type_ = "float" if dtype == np.float32 else "double"
        function = self.helper(f"asset_{TERMS[argument][0]}_{type_}")
        return f"{function}({x}, {Z} + {count} * {number}, {count})"

    def absolute_distances(self, x: Cells, Z: Array) -> Cells:
        """Kernel values with all landmarks at once are never written: ``sums`` is a loop."""
        raise NotImplementedError

    def interpolated(self, x: Cells, places: Array, values: Array) -> Cells:
        """The piecewise linear function."""
        name = self.helper("asset_interpolated")
        one, other = self.constant(places), self.constant(np.asarray(values, dtype=np.float64))
        return self.each(f"{name}({{0}}, {one}, {other}, {len(places)})", [x], "f")

    # Steps --------------------------------------------------------------------------------------

    def marked(self, found: Cells, x: Cells) -> Cells:
        """Decisions that are no numbers where the row is not finite."""
        step = f"for (long i = 0; i < {x.width}; i++)"
        bad = self.fill(
            1, "b", [x],
            lambda out: [f"{out}[0] = 0;", f"{step} if (!isfinite({x.name}[i])) {out}[0] = 1;"],
        )  # fmt: skip
        return self.where(bad, np.nan, found)

    def lookup(self, codes: Cells, table: Array) -> Cells:
        """The row of a table that has this number."""
        width, name = table.shape[1], self.constant(np.asarray(table, dtype=np.float64))
        return self.fill(
            width, "f", [codes],
            lambda out: [
                f"for (long i = 0; i < {width}; i++) {out}[i] = {name}[{width} * {codes.name}[0] + i];"
            ],
        )  # fmt: skip

    def rounded(self, x: Cells, dtype: np.dtype[Any]) -> Cells:
        """Numbers as a type holds them."""
        return x if dtype == np.float64 else self.each("(double)(float){0}", [x], "f")

    # Decisions ----------------------------------------------------------------------------------

    def sums(self, x: Cells, each: Sums) -> Cells:
        """Weighted sums of kernel values or features, a landmark or frequency after the other."""
        K, source = each.width, each.source
        begun = self.constant(np.asarray(each.intercept, dtype=np.float64))
        weights = self.constant(np.asarray(each.weights, dtype=np.float64).T)

        def lines(out: str) -> list[str]:
            add = f"for (long k = 0; k < {K}; k++) {out}[k] += {weights}[{K} * j + k] * value;"
            loop = (
                self._over_landmarks(x, source, "0", str(source.size), add)
                if isinstance(source, Landmarks)
                else self._over_cosines(x, source, add)
            )
            return [f"for (long k = 0; k < {K}; k++) {out}[k] = {begun}[k];", *loop]

        return self.fill(K, "f", [x], lines)

    def _over_cosines(self, x: Cells, source: Cosines, add: str) -> list[str]:
        """A loop over frequencies, and over the features that share each."""
        f, n = source.frequencies.shape
        by, phases = self.constant(source.frequencies), self.constant(source.phases)
        angle = self._summed(Argument.PRODUCT, x.name, by, source.frequencies.dtype, n, "q")
        return [
            f"for (long q = 0; q < {f}; q++) {{",
            f"    const double angle = {angle};",
            f"    for (long j = q; j < {source.size}; j += {f}) {{",
            f"        const double value = {real(source.amplitude)} * cos(angle + {phases}[j]);",
            f"        {add}",
            "    }",
            "}",
        ]

    def _over_landmarks(self, x: Cells, source: Landmarks, first: str, end: str, add: str) -> list[str]:
        """A loop over some landmarks, in which ``add`` is done with the j-th value."""
        before, value = self._kernel_value(x, source)
        loop = [f"for (long j = {first}; j < {end}; j++) {{", *value, f"    {add}", "}"]
        return ["{", *(f"    {line}" for line in [*before, *loop]), "}"] if before else loop

    def _kernel_value(self, x: Cells, source: Landmarks) -> tuple[list[str], list[str]]:
        """Lines before a loop over landmarks, and those that compute the value of the j-th."""
        argument, count = source.kernel.profile.argument, source.Z.shape[1]
        before, begun, row = list[str](), "", x.name
        if source.chosen is not None:
            listed, row = self.constant(source.chosen.astype(np.int64)), "chosen"
            before = [
                f"double chosen[{count}];",
                f"for (long k = 0; k < {count}; k++) chosen[k] = {x.name}[{listed}[k]];",
            ]
            others = np.setdiff1d(np.arange(source.n), source.chosen)
            if argument is not Argument.PRODUCT and len(others):
                entry = f"{x.name}[{self.constant(others)}[k]]"
                size = (
                    f"fabs({entry})" if argument is Argument.ABSOLUTE_DISTANCE else f"{entry} * {entry}"
                )
                begun = " + beyond"
                before += [
                    "double beyond = 0.0;",
                    f"for (long k = 0; k < {len(others)}; k++) beyond += {size};",
                ]
        Z = self.constant(source.Z)
        total = self._summed(argument, row, Z, source.Z.dtype, count, "j")
        return before, [
            f"    const double t = {total}{begun};",
            *(f"    {line}" for line in self._profile(source.kernel)),
        ]

    def _profile(self, kernel: Kernel) -> list[str]:
        """Lines that compute ``value`` from t, by the profile itself."""
        inner = CodeOperations(self.tables, "p")
        t = Cells(inner, "scaled", 1)
        found = kernel.values(inner, t)
        lines, _ = inner.block.lines({found.name})
        return [
            f"double scaled[1] = {{{real(kernel.factor)} * t}};", *lines,
            f"const double value = {found.name}[0];",
        ]  # fmt: skip

    def cell(self, x: Cells, tree: Tree) -> Cells:
        """The cell: down the tree by the nearest centre."""
        if len(tree.first) == 0:
            return self.full(x, np.zeros(1, dtype=np.int64))
        n = tree.centres.shape[1]
        first, counts, below, half = (
            self.constant(each) for each in (tree.first, tree.counts, tree.below, tree.half)
        )
        centres = self.constant(tree.centres)
        near = self._summed(Argument.PRODUCT, x.name, centres, tree.centres.dtype, n, "c")
        return self.fill(
            1, "i", [x],
            lambda out: [
                f"{out}[0] = 0;",
                f"while ({out}[0] >= 0) {{",
                "    double least = INFINITY;",
                f"    const long begin = {first}[{out}[0]], end = begin + {counts}[{out}[0]];",
                "    long nearest = begin;",
                "    for (long c = begin; c < end; c++) {",
                f"        const double score = {half}[c] - {near};",
                "        if (score < least) { least = score; nearest = c; }",
                "    }",
                f"    {out}[0] = {below}[nearest];",
                "}",
                f"{out}[0] = -1 - {out}[0];",
            ],
        )  # fmt: skip

    def expansions(self, x: Cells, cells: Cells, each: Expansions) -> Cells:
        """The expansion of the cell: a loop over its landmarks."""
        K, cell = each.width, f"{cells.name}[0]"
        first, weights, begun = (
            self.constant(part) for part in (each.first.astype(np.int64), each.weights, each.intercept)
        )

        def lines(out: str) -> list[str]:
            add = f"for (long k = 0; k < {K}; k++) {out}[k] += {weights}[{K} * j + k] * value;"
            ends = f"{first}[{cell}]", f"{first}[{cell} + 1]"
            return [
                f"for (long k = 0; k < {K}; k++) {out}[k] = {begun}[{K} * {cell} + k];",
                *self._over_landmarks(x, each.landmarks, *ends, add),
            ]

        return self.fill(K, "f", [x, cells], lines)

    def by_cell(
        self, x: Cells, cells: Cells, functions: Sequence[Callable[[Cells], Cells]], width: int
    ) -> Cells:
        """The function of the cell."""
        uses, cases, outer = {x.name, cells.name}, [], self.block
        for cell, function in enumerate(functions):
            self.block = Block()
            found = function(x)
            lines, used = self.block.lines({found.name})
            uses |= used
            cases.append((cell, lines, found))
        self.block = outer

        def lines_of(out: str) -> list[str]:
            found = [f"switch ({cells.name}[0]) {{"]
            for cell, lines, value in cases:
                last = cell == len(cases) - 1
                found += [
                    "default: {" if last else f"case {cell}: {{", *(f"    {line}" for line in lines),
                    f"    for (long i = 0; i < {width}; i++) {out}[i] = {value.at('i')};",
                    "    break;", "}",
                ]  # fmt: skip
            return [*found, "}"]

        made = self.fill(width, "f", [x, cells], lines_of)
        self.block.statements[-1].uses |= uses
        return made
