"""The charts: lines with bands, heat maps, histograms, bars. Plain numbers in, a ``Figure`` out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from asset_svm.pages.figure import GRID, HEIGHT, INK, WIDTH, Figure, Hit, draw, plain, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scale = Literal["linear", "log", "log2"]
Numbers = Sequence[float] | np.ndarray

_MARKERS = "osD^vP*X"
_READABLE, _SMALLEST = 7.5, 6.0  # points of text in a cell: below, fewer digits, and none
_NAME = 20  # letters of a bar's name: more of them leave too little for the bar
_HALF = 26  # letters of a legend's label that takes half of the width
_LOWEST = 2.4  # inches of a chart of few bars
_MARKED = 40  # points of a line; with more of them the line alone is drawn


@dataclass(frozen=True)
class Line:
    """A line of a chart; ``low`` and ``high`` bound the band around it, ``dashed`` sets it apart.

    ``steps`` keeps every value until the next: it is drawn in ink, without marks.
    """

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    dashed: bool = False
    steps: bool = False


@dataclass(frozen=True)
class Rule:
    """A level to compare with, drawn across the chart."""

    label: str
    y: float


def line_chart(
    lines: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    title: str = "",
    caption: str = "",
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    rules: Sequence[Rule] = (),
    whole_x: bool = False,
) -> Figure:
    """Lines over one x axis, with bands, and levels to compare with; ``whole_x`` counts things."""
    if not lines and not rules:
        raise ValueError("A line chart needs at least one line or level.")
    labels = [line.label for line in lines if line.label] + [rule.label for rule in rules]
    # Two long labels side by side would be wider than the chart.
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= _HALF else 1

    def paint(axes: Axes) -> list[Hit]:
        hits = []
        for index, line in enumerate(lines):
            x, y = np.asarray(line.x, float), np.asarray(line.y, float)
            few = len(x) <= _MARKED and not line.steps
            axes.plot(
                x,
                y,
                color=INK if line.steps else series(index),
                drawstyle="steps-post" if line.steps else "default",
                label=plain(line.label) or None,
                linewidth=1.6,
                linestyle="--" if line.dashed else "-",
                marker=_MARKERS[index % len(_MARKERS)] if few else "",
                markersize=4,
            )
            if line.low is not None and line.high is not None:
                low, high = np.asarray(line.low, float), np.asarray(line.high, float)
                axes.fill_between(x, low, high, color=series(index), alpha=0.18, linewidth=0)
            if few:
                hits += _tips(line, x, y, x_label, y_label)
        for index, rule in enumerate(rules):
            style = (0, (1 + 3 * (index % 3), 2))
            axes.axhline(rule.y, color=INK, linewidth=1, linestyle=style, label=plain(rule.label))
        _scale(axes, "x", x_scale)
        _scale(axes, "y", y_scale)
        if whole_x:
            from matplotlib.ticker import MaxNLocator

            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel=plain(x_label), ylabel=plain(y_label))
        if labels:
            axes.figure.legend(loc="outside lower center", ncols=columns)
        return hits

    size = (WIDTH, HEIGHT + 0.2 * math.ceil(len(labels) / columns))
    return draw(paint, title=title, caption=caption, size=size)


def heat_map(
    values: Sequence[Sequence[float]] | np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    x_label: str,
    y_label: str,
    *,
    title: str = "",
    caption: str = "",
    by_row: bool = False,
    low: float = 0.0,
    marked: tuple[int, int] | None = None,
) -> Figure:
    """A matrix as shades.

    ``by_row`` shades each row by its own sum (a confusion matrix). Shades begin at ``low``. The cell
    ``marked`` has a frame; one of NaN is empty.
    """
    table = np.asarray(values, float)
    if table.shape != (len(rows), len(columns)):
        raise ValueError(
            f"values has the shape {table.shape}, and there are {len(rows)} names of rows and "
            f"{len(columns)} of columns; give one name for each."
        )
    above = np.maximum(table - low, 0.0) if low else table
    total = above.sum(axis=1, keepdims=True) if by_row else np.nanmax(np.abs(above), initial=0.0)
    share = np.nan_to_num(above / np.where(total == 0, 1, total))
    texts, size = _fitting(table)

    def paint(axes: Axes) -> list[Hit]:
        from matplotlib.patches import Rectangle

        hits = []
        for (i, j), value in np.ndenumerate(table):
            shade = 0.6 * min(abs(float(share[i, j])), 1.0)
            place = (j - 0.5, i - 0.5)
            axes.add_patch(Rectangle(place, 1, 1, facecolor=series(0), alpha=shade, linewidth=0))
            tip = f"{y_label}: {rows[i]}\n{x_label}: {columns[j]}\n{value:.4g}"
            if by_row:
                tip += f" ({100 * share[i, j]:.1f} % of the row)"
            if np.isnan(value):
                continue
            hits.append(Hit(*place, tip, (j + 0.5, i + 0.5)))
            if size >= _SMALLEST:
                axes.text(j, i, texts[i][j], ha="center", va="center", fontsize=size)
            if marked == (i, j):
                axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=INK, linewidth=1.6))
        every_row, every_column = (math.ceil(n / 20) for n in table.shape)
        upright = [plain(name) for name in columns[::every_column]]
        axes.set_xticks(range(0, len(columns), every_column), upright)
        axes.set_yticks(range(0, len(rows), every_row), [plain(name) for name in rows[::every_row]])
        if max(map(len, columns), default=0) > 4:
            axes.tick_params(axis="x", rotation=45)
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        axes.set(xlabel=plain(x_label), ylabel=plain(y_label))
        axes.grid(False)
        return hits

    return draw(paint, title=title, caption=caption, size=(WIDTH, WIDTH * 0.9))


def _fitting(table: np.ndarray) -> tuple[list[list[str]], float]:
    """The numbers of a matrix as text, and the size at which they fit in its cells."""
    whole = bool((table == np.rint(table)).all())
    size, texts = 0.0, list[list[str]]()
    for style in (".0f",) if whole else (".4g", ".3g"):
        texts = [[f"{value:{style}}" for value in row] for row in table]
        longest = max((len(text) for row in texts for text in row), default=1)
        # Text is some 0.6 of its size wide; the axes take three quarters of the width.
        size = min(9.0, 72 * 0.75 * WIDTH / (0.7 * longest * max(table.shape[1], 1)))
        if size >= _READABLE:
            break
    return texts, size


def histogram(
    groups: Mapping[str, Numbers],
    x_label: str,
    *,
    bins: int = 40,
    title: str = "",
    caption: str = "",
    marks: Sequence[float] = (),
) -> Figure:
    """Counts of the finite values of each group over common bins; ``marks`` are upright lines."""
    finite = {name: _finite(values) for name, values in groups.items()}
    everything = np.concatenate(list(finite.values())) if finite else np.empty(0)
    if not len(everything):
        raise ValueError("A histogram needs at least one finite value.")
    edges = np.histogram_bin_edges(everything, bins)

    def paint(axes: Axes) -> list[Hit]:
        hits = []
        for index, (name, values) in enumerate(finite.items()):
            counts, _ = np.histogram(values, edges)
            axes.stairs(counts, edges, fill=True, color=series(index), alpha=0.35, label=plain(name))
            axes.stairs(counts, edges, color=series(index), linewidth=1.2)
            for left, right, count in zip(edges, edges[1:], counts, strict=False):
                if count:
                    tip = f"{name}\n{left:.4g} to {right:.4g}: {count}"
                    hits.append(Hit(float(left), 0.0, tip, (float(right), float(count))))
        for place in marks:
            axes.axvline(place, color=INK, linewidth=1, linestyle="--")
        axes.set(xlabel=plain(x_label), ylabel="count", ylim=(0, None))
        if len(finite) > 1:
            axes.figure.legend(loc="outside lower center", ncols=2)
        return hits

    return draw(paint, title=title, caption=caption)


def bar_chart(
    values: Numbers,
    names: Sequence[str],
    x_label: str,
    *,
    title: str = "",
    caption: str = "",
    style: str = ".1f",
) -> Figure:
    """Bars of values that are not negative, one under the other, each with its name and its value.

    Long names are cut; where a bar is pointed at, they are whole.
    """
    lengths = np.asarray(values, float)
    if not len(lengths) or lengths.shape != (len(names),):
        raise ValueError(
            f"values has the shape {lengths.shape}, and there are {len(names)} names; give one name "
            "for each of at least one value."
        )

    def paint(axes: Axes) -> list[Hit]:
        places = range(len(lengths))
        axes.barh(places, lengths, height=0.7, color=series(0), linewidth=0)
        hits, longest = [], max(float(np.nanmax(lengths)), 0.0) or 1.0
        for place, (name, length) in enumerate(zip(names, lengths.tolist(), strict=True)):
            text = f"{length:{style}}"
            axes.text(length + 0.015 * longest, place, text, va="center", fontsize=9)
            # As wide as the axes, so that a short bar is found too.
            tip = f"{name}\n{x_label}: {text}"
            hits.append(Hit(0.0, place - 0.5, tip, (1.15 * longest, place + 0.5)))
        axes.set_yticks(places, [plain(name, _NAME) for name in names])
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(0.0, 1.15 * longest), ylim=(len(lengths) - 0.5, -0.5), xlabel=plain(x_label))
        axes.grid(False, axis="y")
        return hits

    size = (WIDTH, max(0.23 * len(lengths) + 0.7, _LOWEST))
    return draw(paint, title=title, caption=caption, size=size)


def _finite(values: Numbers) -> np.ndarray:
    array = np.asarray(values, float).ravel()
    return array[np.isfinite(array)]


def _tips(line: Line, x: np.ndarray, y: np.ndarray, x_label: str, y_label: str) -> list[Hit]:
    hits = []
    for index, (at, value) in enumerate(zip(x, y, strict=True)):
        if not (np.isfinite(at) and np.isfinite(value)):
            continue
        tip = f"{line.label}\n" if line.label else ""
        tip += f"{x_label}: {at:.5g}\n{y_label}: {value:.4g}"
        if line.low is not None and line.high is not None:
            tip += f" ({float(line.low[index]):.4g} to {float(line.high[index]):.4g})"
        hits.append(Hit(float(at), float(value), tip))
    return hits


def _scale(axes: Axes, which: Literal["x", "y"], scale: Scale) -> None:
    if scale == "linear":
        return
    setter = axes.set_xscale if which == "x" else axes.set_yscale
    setter("log", base=2 if scale == "log2" else 10)
    axis = axes.xaxis if which == "x" else axes.yaxis
    if scale == "log2":
        from matplotlib.ticker import ScalarFormatter

        axis.set_major_formatter(ScalarFormatter())
    axes.grid(True, axis=which, which="major", color=GRID)
