"""Pages: text is text, files are whole, and a browser shows every figure without complaint."""

import builtins
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asset_svm.pages import (
    Cell,
    Facts,
    Line,
    Page,
    Paragraph,
    Rule,
    Section,
    Table,
    bar_chart,
    heat_map,
    histogram,
    line_chart,
)
from chromium import look_at

NASTY = '</p><script>alert("1")</script>&amp; `x` <img src=http://a.org/a onerror=alert(1)> $a_1$ 猫'


class Reader(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._inside = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data):
        if "script" not in self._inside and "style" not in self._inside:
            self.text.append(data)


def charts(text=""):
    rng = np.random.default_rng(0)
    x, y = [2.0, 4.0, 8.0, 1024.0], np.array([5.0, 3.0, 2.0, 1.0])
    return [
        line_chart(
            [Line("first" + text, x, y, y - 0.5, y + 0.5), Line("second", x, y + 1, dashed=True)],
            "s" + text,
            "error",
            title="Lines" + text,
            caption="c" + text,
            x_scale="log2",
            y_scale="log",
            rules=[Rule("level" + text, 0.8)],
        ),
        heat_map([[9, 1], [2, 8]], ["a" + text, "b"], ["a", "b"], "predicted", "true", by_row=True),
        histogram({"n" + text: rng.normal(size=99), "p": [1.0, np.nan, np.inf]}, "decision", marks=[0]),
        bar_chart([60.0, 40.0, 0.0], ["a" + text, text + "猫" * 99, "c"], "share" + text, title="Bars"),
    ]


def whole_page(text=""):
    page = Page("Title" + text, "Lead" + text, "Footer" + text)
    parts = [
        Paragraph("words" + text),
        Facts({"name" + text: Cell("value" + text, "note" + text, "good")}),
        Table(["h" + text, "v"], [["r" + text, 1.23456], ["empty", None]], "caption" + text),
    ]
    page.add(Section("One" + text, parts))
    page.add(Section("Two", charts(text)))
    return page


def test_whatever_comes_in_is_shown_as_text():
    plain, nasty = Reader(whole_page().html()), Reader(whole_page(NASTY).html())
    assert {tag for tag, _ in nasty.tags} == {tag for tag, _ in plain.tags}
    for name in ("script", "p", "small", "text"):
        assert sum(tag == name for tag, _ in nasty.tags) == sum(tag == name for tag, _ in plain.tags)
    # title, h1, lead, nav, h2, words, fact (3), table (3), footer: and in the figures their words
    assert sum(NASTY in text for text in nasty.text) >= 13


@given(st.text())
def test_no_text_makes_a_tag(text):
    parts = [Paragraph(text), Table([text], [[text]], text), Facts({text: text})]
    page = Page(text, text, text, [Section(text, parts)])
    bare = Page(
        "a", "a", "a", [Section("a", [Paragraph("a"), Table(["a"], [["a"]], "a"), Facts({"a": "a"})])]
    )
    optional = {"p", "caption", "footer"}  # left out where their text is empty
    tags = [tag for tag, _ in Reader(page.html()).tags if tag not in optional]
    assert tags == [tag for tag, _ in Reader(bare.html()).tags if tag not in optional]


def test_a_page_refers_to_nothing_outside_itself():
    html = whole_page().html()
    assert "//" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    for _, attributes in Reader(html).tags:
        assert not {"src", "srcset", "data"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
    assert "default-src 'none'" in html


@pytest.mark.parametrize("letter", ["x", "W", "猫", "$", "_"])
def test_long_names_leave_room_for_bars(letter):
    """The longest bar is at least a third of the chart, and its value is inside."""
    html = bar_chart([99.9, 0.1], [letter * 200, "b"], "share").html()
    boxes = re.findall(r'<rect x="([0-9.]+)" y="[0-9.-]+" width="([0-9.]+)" [^>]*class="hit"', html)
    left, width = map(float, boxes[0])
    assert left > 0 and width > 1.15 * 4.8 * 72 / 3 and left + width <= 4.8 * 72
    assert letter * 200 in html, "the whole name is told"


def test_a_bar_needs_a_name_and_a_chart_a_bar():
    for values, names in (([1.0, 2.0], ["a"]), ([], [])):
        with pytest.raises(ValueError, match="give one name for each of at least one"):
            bar_chart(values, names, "x")
    assert "0.0" in bar_chart([0.0], ["none"], "x").html()


def test_labels_are_no_formulas_and_none_is_hidden():
    html = line_chart([Line("_hidden $x^2$", [1, 2], [3, 4])], "$", "y").html()
    shown = "".join(Reader(re.sub("<title>.*?</title>", "", html)).text)
    assert "_hidden $x^2$" in shown


def test_markdown_keeps_tables_whole():
    text = whole_page(" | `*_<b>\n#").markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "1.235" in text


def test_a_row_of_the_wrong_length_is_named():
    with pytest.raises(ValueError, match="A row has 1 values and the header 2"):
        Table(["a", "b"], [["only"]])


def test_charts_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="at least one finite value"):
        histogram({"a": [np.nan]}, "x")
    with pytest.raises(ValueError, match="at least one line"):
        line_chart([], "x", "y")
    with pytest.raises(ValueError, match="names of rows"):
        heat_map([[1.0]], ["a", "b"], ["a"], "x", "y")


def test_drawing_twice_gives_the_same_bytes():
    assert whole_page().html() == whole_page().html()


def test_writing_leaves_no_partial_file(tmp_path):
    path = whole_page().write(tmp_path / "deep" / "index.html")
    assert [entry.name for entry in path.parent.iterdir()] == ["index.html"]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r'pip install "asset-svm\[plot\]"'):
        histogram({"a": [1.0]}, "x")


def test_pages_import_neither_matplotlib_nor_scikit_learn():
    code = "import sys, asset_svm.pages; print({'matplotlib', 'sklearn', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("width", [1000, 500])
def test_a_browser_shows_every_figure_and_complains_of_nothing(tmp_path, width):
    seen = look_at(whole_page().write(tmp_path / "index.html"), width)
    assert seen.console == []
    assert len(seen.charts) == 4 and len(seen.tables) == 1
    assert all(box["width"] > 250 and box["height"] > 150 for box in seen.charts)
    assert all(0 <= box["left"] < box["right"] <= seen.window for box in seen.charts)
    assert seen.page <= seen.window, "nothing but tables scrolls sideways"
    assert seen.tip == "first\ns: 2\nerror: 5 (4.5 to 5.5)"
    assert len(set(seen.ids)) == len(seen.ids)


def test_the_browser_test_sees_an_error_and_a_call_home(tmp_path):
    page = whole_page().write(tmp_path / "index.html")
    wrong = "<script>nothing()</script><img src='http://127.0.0.1:9/a.png'></main>"
    page.write_text(page.read_text("utf-8").replace("</main>", wrong), "utf-8")
    console = "\n".join(look_at(page).console)
    assert "nothing is not defined" in console
    assert "Content Security Policy" in console
