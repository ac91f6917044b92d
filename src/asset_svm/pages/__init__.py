"""Pages that people read: one HTML file with its figures inside, and its tables as Markdown.

    page = Page("A report", "what it is about", "2026-11-15")
    page.add(Section("First", [Paragraph("..."), Table(...), line_chart(...)]))
    page.write("report/index.html")

A page needs no network: its browser is told to load nothing. It follows the reader's light or dark
theme, fits a phone, and prints. Text is always escaped. Drawing a figure needs the extra ``plot``
(matplotlib); everything else needs nothing. This folder knows no estimator: reports hand it numbers.
"""

from asset_svm.pages.charts import Line, Rule, bar_chart, heat_map, histogram, line_chart
from asset_svm.pages.figure import Figure
from asset_svm.pages.page import Page, Part, Section
from asset_svm.pages.parts import Cell, Code, Facts, Paragraph, Table, Value

__all__ = [
    "Cell",
    "Code",
    "Facts",
    "Figure",
    "Line",
    "Page",
    "Paragraph",
    "Part",
    "Rule",
    "Section",
    "Table",
    "Value",
    "bar_chart",
    "heat_map",
    "histogram",
    "line_chart",
]
