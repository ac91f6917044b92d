"""Tables read as they came: the cells are those that pandas reads, and bad ones are told."""

import datetime as dt
import io
import tracemalloc
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asset_svm.data.csv as csv_module
import asset_svm.data.raw_csv as raw_csv
from asset_svm import DataError, open_rows
from asset_svm.data.compression import Piece
from asset_svm.data.csv_pieces import Fault
from asset_svm.data.raw import RawOptions, looks_like_separated
from asset_svm.data.scan import scan
from asset_svm.data.tables import Columns
from asset_svm.encoding.table import NO_LEVEL, TIME, Levels, gaps, kind_of

FUZZ = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
RAW = RawOptions()
WORDS = ["red", "Grün", "naïve, with comma", 'says "so"', "two\nlines", "007", "日本", "none", "x;y"]


def write(folder, name, content, encoding="utf-8"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def read(path, **options):
    options = {"raw": RAW, **options}
    return open_rows(path, **options).read()


def said_of(path, **options):
    with pytest.raises(DataError) as error:
        read(path, **options)
    return str(error.value)


def cells(column):
    """The values of a column, None for gaps."""
    if isinstance(column, Levels):
        return [None if code == NO_LEVEL else column.names[code] for code in column.codes]
    return [None if gap else v for v, gap in zip(column.tolist(), gaps(column), strict=True)]


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)

    def holes(values):
        return pd.Series(values).where(rng.random(n) > 0.15)

    days = np.datetime64("1999-12-30") + rng.integers(0, 500, n)
    return pd.DataFrame(
        {
            "number": holes(rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)),
            "count": rng.integers(-5, 5, n),
            "word": holes(np.array(WORDS, dtype=object)[rng.integers(0, len(WORDS), n)]),
            "day": holes(days.astype("datetime64[us]")),
            "moment": days.astype("datetime64[us]")
            + rng.integers(1, 10**12, n).astype("timedelta64[us]"),
            "truth": rng.random(n) < 0.5,
            "empty": np.full(n, np.nan),
            "y": np.array(["yes", "no"])[rng.integers(0, 2, n)],
        }
    )


def check_same(table, frame):
    """Whether a table has the cells of a frame that pandas read itself."""
    for name, column in zip(table.names, table.columns, strict=True):
        series = frame[name]
        assert np.array_equal(gaps(column), series.isna()), name
        if kind_of(column) == "number":
            assert np.array_equal(column, series.astype(float), equal_nan=True), name
        elif kind_of(column) == "time":
            assert column.dtype == TIME
            assert np.array_equal(column, series.to_numpy("datetime64[us]"), equal_nan=True), name
        else:
            texts = [str(v).lower() if isinstance(v, bool) else v.strip() for v in series.dropna()]
            assert [cell for cell in cells(column) if cell is not None] == texts, name


# Against pandas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [300, 100_000])
@pytest.mark.parametrize(
    "layout",
    [
        {"sep": ","},
        {"sep": ";"},
        {"sep": "|"},
        {"sep": "\t"},
        {"sep": ";", "decimal": ","},
        {"sep": ",", "decimal": ","},
        {"sep": ",", "encoding": "utf-16"},
        {"sep": ",", "encoding": "utf-32-be"},
        {"sep": ";", "encoding": "utf-8-sig", "lineterminator": "\r\n"},
    ],
    ids=str,
)
def test_a_text_table_is_what_pandas_reads(tmp_path, monkeypatch, layout, size):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    path = tmp_path / "a.csv"
    mixed().to_csv(path, index=False, **layout)
    reading = {key: value for key, value in layout.items() if key != "lineterminator"}
    expected = pd.read_csv(path, parse_dates=["day", "moment"], dtype={"word": "str"}, **reading)
    options = {key: value for key, value in reading.items() if key != "sep"}
    block = read(path, raw=RawOptions(kinds={"word": "levels"}, **options))
    check_same(block.X, expected)
    kinds = [kind_of(column) for column in block.X.columns]
    assert kinds == ["number", "number", "levels", "time", "time", "levels", "number"]
    assert block.y.tolist() == expected["y"].tolist()
    assert set(block.X.column("truth").names) == {"true", "false"}


def test_a_parquet_table_is_the_frame(tmp_path):
    frame = mixed()
    frame["category"] = frame["word"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=70)
    block = read(tmp_path / "a.parquet", target="y")
    check_same(block.X, frame)
    assert kind_of(block.X.column("empty")) == "number"
    assert block.y.tolist() == frame["y"].tolist()


def test_latin_1_is_read_with_its_encoding_and_told_without(tmp_path):
    path = write(tmp_path, "a.csv", "größe,y\nmäßig,1\nklein,0\n", "latin-1")
    assert cells(read(path, raw=RawOptions(encoding="latin-1")).X.column("größe")) == ["mäßig", "klein"]
    assert "line 1: the bytes are not text in utf-8; say in which encoding" in said_of(path)
    path = write(tmp_path, "b.csv", b"a,b,y\n1,x,0\n\n2,\xe9t\xe9,1\n")
    assert "b.csv, row 2, column 'b': the bytes are not text in utf-8" in said_of(path)
    assert "--encoding latin-1" in said_of(path)


def test_bytes_that_are_no_utf_16_are_told_with_their_row(tmp_path):
    text = "a,y\nx,1\n\ud800,0\nz,1\n".encode("utf-16", "surrogatepass")
    path = write(tmp_path, "a.csv", text)
    assert "row 2, column 'a': the bytes are not text in utf-16" in said_of(
        path, raw=RawOptions(encoding="utf-16")
    )
    path = write(tmp_path, "b.csv", "a,y\nx,1\n".encode("utf-16")[:-1])
    assert "not text in utf-16" in said_of(path, raw=RawOptions(encoding="utf-16"))


def test_encodings_of_several_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("asset_svm.data.transcoding.BUFFER", 7)
    text = "名,y\n" + "".join(f"東京{i},{i % 2}\n" for i in range(50))
    for encoding in ("shift_jis", "gb18030", "utf-16-le", "utf-7", "euc-jp", "iso2022_jp"):
        path = write(tmp_path, "a.csv", text, encoding)
        raw = RawOptions(encoding=encoding)
        assert cells(read(path, raw=raw).X.columns[0]) == [f"東京{i}" for i in range(50)]
    path = write(tmp_path, "b.csv", b"a,y\nx,1\nx\x81\x20,0\n")
    assert "row 2, column 'a': the bytes are not" in said_of(path, raw=RawOptions(encoding="shift_jis"))


def test_other_encodings_take_no_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 1 << 16)
    path = write(tmp_path, "a.csv", "a,y\n" + "one,1\ntwo,0\n" * 400_000, "utf-16")
    source = open_rows(path, raw=RawOptions(encoding="utf-16"))
    next(source.blocks())
    tracemalloc.start()
    try:
        assert sum(map(len, source.blocks())) == 800_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size


# What columns are ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (["1", " 2 ", "", "NA", "nA", "+3e2", "?"], "number", [1, 2, None, None, None, 300, None]),
        (["1", "none"], "levels", ["1", "none"]),
        (["007", "a "], "levels", ["007", "a"]),
        (["", " ", "n/a"], "number", [None] * 3),
        (["True", "FALSE", "true"], "levels", ["true", "false", "true"]),
        (["1", "1,234"], "levels", ["1", "1,234"]),
        (["2024-02-29", "2024-02-29 10:30", "2024-02-29T00:00:05.25"], "time",
         [*(dt.datetime(2024, 2, 29, *rest) for rest in [(), (10, 30), (0, 0, 5, 250_000)])]),
        (["2024-02-29T10:30Z", "NaN", "2024-02-29 10:30:00+02:00"], "time",
         [dt.datetime(2024, 2, 29, 10, 30), None, dt.datetime(2024, 2, 29, 8, 30)]),
        (["2024-02-29 10:30:00.123456789"], "time", [dt.datetime(2024, 2, 29, 10, 30, 0, 123_456)]),
        (["2023-02-29", "2024-02-29"], "levels", ["2023-02-29", "2024-02-29"]),
        (["2024-02-29", "soon"], "levels", ["2024-02-29", "soon"]),
        (["12", "2024-02-29"], "levels", ["12", "2024-02-29"]),
        (["0x10", "1_0"], "levels", ["0x10", "1_0"]),
        (["red", "inf"], "levels", ["red", "inf"]),
    ],
)  # fmt: skip
def test_what_cells_make_of_a_column(tmp_path, column, kind, expected):
    rows = "".join(f'"{cell}",{i % 2}\n' for i, cell in enumerate(column))
    found = read(write(tmp_path, "a.csv", "a,y\n" + rows)).X.column("a")
    assert (kind_of(found), cells(found)) == (kind, expected)


def test_decimal_commas_and_points_between_thousands(tmp_path):
    path = write(tmp_path, "a.csv", "a;b;y\n1,5;1.5;1,25\n1.234,5;2;-3\n-1.234.567;3,0e1;1.000\n")
    block = read(path, raw=RawOptions(decimal=","))
    assert block.X.column("a").tolist() == [1.5, 1234.5, -1234567]
    assert cells(block.X.column("b")) == ["1.5", "2", "3,0e1"]
    assert block.y.tolist() == [1.25, -3, 1000]
    write(tmp_path, "a.csv", "a;y\n1,5;0,5\n2;1.5\n")
    said = said_of(path, raw=RawOptions(decimal=","))
    assert "row 2, column 'y': '1.5' is no number with a decimal comma" in said
    said = said_of(path, raw=RawOptions(kinds={"a": "number"}))
    assert "row 1, column 'a': '1,5' is not a number with a decimal point; say --decimal ," in said


@pytest.mark.parametrize(
    ("names", "separated"),
    [
        (["1,234", "17"], True),
        (["1,234,567.25", "-12"], True),
        (["12,5"], True),
        (["12", "13"], False),
        (["1,234", "red"], False),
        (["1,2,3"], False),
        ([], False),
    ],
)
def test_levels_that_are_numbers_with_commas(names, separated):
    assert looks_like_separated(names) is separated


def test_kinds_that_are_told(tmp_path):
    text = "zip,when,n,y\n007,2024-01-01,1,0\n 12 ,?,x,1\n"
    path = write(tmp_path, "a.csv", text)
    raw = RawOptions(kinds={"zip": "levels", "when": "time", "n": "levels"})
    table = read(path, raw=raw).X
    assert [kind_of(column) for column in table.columns] == ["levels", "time", "levels"]
    assert cells(table.column("zip")) == ["007", "12"]
    for name, kind, said in [
        (
            "n",
            "number",
            "row 2, column 'n': 'x' is not a number; name it as missing with --missing, or",
        ),
        ("zip", "time", "row 1, column 'zip': '007' is not a date or time such as"),
    ]:
        said_here = said_of(path, raw=RawOptions(kinds={name: kind}))
        assert said in said_here and "--categorical" in said_here
    table = read(path, raw=RawOptions(missing=("X",), kinds={"n": "number"})).X
    assert cells(table.column("n")) == [1.0, None]
    assert cells(table.column("when")) == ["2024-01-01", "?"]


def test_a_number_may_stand_for_a_gap(tmp_path):
    path = write(tmp_path, "a.csv", "a,y\n-999,0\n-999.0,1\n5,1\n")
    assert cells(read(path, raw=RawOptions(missing=("-999",))).X.columns[0]) == [None, None, 5]
    pq.write_table(pa.table({"a": [-999, 5], "y": [0, 1]}), tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", raw=RawOptions(missing=("-999",)))
    assert cells(found.X.columns[0]) == [None, 5]
    path = write(tmp_path, "b.csv", "a;y\n1000,0;0\n1;1\n")
    assert cells(read(path, raw=RawOptions(("1.000",), ",")).X.columns[0]) == [None, 1]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
@pytest.mark.parametrize("kinds", [{}, {"a": "number"}])
def test_what_is_not_finite_is_refused_with_its_place(tmp_path, monkeypatch, cell, kinds):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 40)
    path = write(tmp_path, "a.csv", "a,y\n" + "1.5,0\n" * 50 + f"{cell},1\n2.5,1\n")
    said = said_of(path, raw=RawOptions(kinds=kinds))
    assert "row 51, column 'a'" in said and "inf is not a finite number" in said


# Pieces and files of different kinds --------------------------------------------------------------


@pytest.mark.parametrize("size", [16, 64, 1000, 100_000])
def test_pieces_may_be_of_different_kinds(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    a = ["1"] * 40 + [""] * 40 + ["x"] * 40 + ["2"] * 40
    b = [""] * 40 + ["2024-01-01"] * 40 + [" NA "] * 40 + ["2024-01-02"] * 40
    text = "a,b,y\n" + "".join(f"{i},{j},{k % 2}\n" for k, (i, j) in enumerate(zip(a, b, strict=True)))
    path = write(tmp_path, "a.csv", text)
    table = read(path).X
    assert cells(table.column("a")) == [cell or None for cell in a]
    raw = RawOptions(kinds={"b": "time"})
    days = [None if "-" not in cell else dt.datetime.fromisoformat(cell) for cell in b]
    assert cells(read(path, raw=raw).X.column("b")) == days
    again = open_rows(path, raw=raw)
    windows = list(again.windows(33, shuffle=(1,)))
    assert sum(map(len, windows)) == 160
    assert sorted(filter(None, (c for w in windows for c in cells(w.X.column("b"))))) == sorted(
        filter(None, days)
    )


ODD = ["1", "-0.5", " 2", "NA", " n/a ", "nan", "", "inf", "x", "True", "1e999", "+7", "1\u00a0", "1,5"]
ODD += [
    "2024-01-01",
    "2024-01-01T10:00Z",
    " 2024-01-02",
    "2024-13-01",
    "2024-01-01 10:00",
    "1.234",
    "-999",
]


@given(
    st.lists(st.lists(st.sampled_from(ODD), min_size=1, max_size=4), min_size=2, max_size=8),
    st.sampled_from([None, "number", "time", "levels"]),
    st.sampled_from([RAW, RawOptions(missing=("-999", "X")), RawOptions(decimal=",")]),
)
@settings(FUZZ, max_examples=300)
def test_what_a_piece_holds_is_no_matter_of_others(monkeypatch, column, kind, options):
    """Columns are tried as what they were before; the result is that of the piece alone."""
    options = replace(options, kinds={} if kind is None else {"a": kind})

    def parser():
        return raw_csv.RawPieces(["a", "b"], Columns(("a",), ()), ",", options)

    def outcome(parsed):
        if isinstance(parsed, Fault):
            return parsed
        found = parsed[0].table.columns[0]
        return kind_of(found), cells(found)

    practised = parser()
    monkeypatch.setattr(raw_csv, "GLANCE_BYTES", 10)
    for part in column:
        piece = Piece("".join(f'"{cell}",0\n' for cell in part).encode())
        slow = parser()
        slow.texts = {"a"}  # nothing is tried
        assert outcome(practised(piece)) == outcome(slow(piece)) == outcome(parser()(piece))


def test_dates_before_a_word_are_the_levels_that_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 40)
    column = ["2024-01-01", "2024-01-01 10:30:00"] * 20 + ["soon", "2024-01-01"]
    path = write(tmp_path, "a.csv", "a,y\n" + "".join(f"{c},{i % 2}\n" for i, c in enumerate(column)))
    kinds = {kind_of(block.X.columns[0]) for block in open_rows(path, raw=RAW).blocks()}
    assert kinds == {"time", "levels"}
    assert cells(read(path).X.columns[0]) == column


def test_files_of_a_pattern_may_be_of_different_kinds(tmp_path):
    write(tmp_path, "p-1.csv", "a,b,y\n1,u,0\n2,v,1\n")
    write(tmp_path, "p-2.csv", "b;y;a\nw;1;x\nu;0;2\n")
    source = open_rows(str(tmp_path / "p-*.csv"), raw=RAW)
    block = source.read()
    assert cells(block.X.column("a")) == ["1", "2", "x", "2"]
    assert cells(block.X.column("b")) == ["u", "v", "w", "u"]
    assert block.y.tolist() == [0, 1, 1, 0]


def test_a_sample_holds_no_names_but_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 4000)
    path = write(tmp_path, "a.csv", "a,y\n" + "".join(f"id-{i},{i % 2}\n" for i in range(5000)))
    found = scan(open_rows(path, raw=RAW), sample_rows=50, hold_bytes=1 << 30, seed=0)
    sample = found.summary.sample.X.column("a")
    assert len(sample) == 50 and len(sample.names) <= 100
    assert cells(found.held.X.column("a")) == [f"id-{i}" for i in range(5000)]
    small = scan(open_rows(path, raw=RAW), sample_rows=50, hold_bytes=1000, seed=0)
    assert small.held is None and cells(small.summary.sample.X.column("a")) == cells(sample)


def test_text_on_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO("a;y\nx;1\n;0\n".encode("utf-16")))
    monkeypatch.setattr("sys.stdin", stream)
    block = read("-", format="csv", raw=RawOptions(encoding="utf-16"))
    assert cells(block.X.column("a")) == ["x", None]


# Which columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_features_in_the_order_of_a_model(tmp_path, ending):
    frame = mixed(50)
    path = tmp_path / f"a.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    features = ("word", "number", "day")
    block = read(path, features=features, targets=False)
    assert block.X.names == features and block.y is None
    check_same(block.X, frame)
    assert "has no column 'height'; its columns are 'number'" in said_of(path, features=("height",))
    block = read(path, target="y", raw=RawOptions(drop=("word", "empty", "truth")))
    assert block.X.names == ("number", "count", "day", "moment")
    for raw in (RawOptions(drop=("wrod",)), RawOptions(kinds={"wrod": "levels"})):
        assert "has no column 'wrod', which an option names" in said_of(path, raw=raw)
    assert read(path, features=features, raw=RawOptions(drop=("wrod",)), targets=False).X.shape == (
        50,
        3,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,a,y\n1,2,3,4\n", "has two columns named 'a'"),
        ("a,y\n1,0\n2\n", "row 2: 1 cells where the header has 2"),
        ("a,y\n1,0\n2,3,4\n", "row 2: 3 cells where the header has 2"),
        ('a,y\n1,0\n"x,1\n', "row 2, column 'a': the quote that opens this cell is never closed"),
        ("a,y\nx,0\nz,\n", "row 2, column 'y': the target is missing ('')"),
        ("a,y\nx,yes\nz,?\n", "row 2, column 'y': the target is missing ('?')"),
        ("a,y\nx,1\nz,NA\n", "row 2, column 'y': the target is missing ('NA')"),
        ("a;b,c;y\n1,2\n", "2 columns where commas separate them, and 3 where semicolons do"),
        ("a;b\n1;2\n", "say which is the target"),
        ("1;2\n1;2\n", "the header has numbers only"),
        ("", "a header with the names of the columns is missing"),
        ("a,y\n", "has no rows"),
    ],
)
def test_bad_tables_are_told(tmp_path, text, said):
    assert said in said_of(write(tmp_path, "a.csv", text))


def test_a_quoted_name_is_no_row_of_names(tmp_path):
    path = write(tmp_path, "a.csv", '"a;b|c"\nx\n')
    assert read(path, targets=False).X.names == ("a;b|c",)
    path = write(tmp_path, "a.tsv", "a\nx,y\nz\n")
    assert cells(read(path, targets=False).X.columns[0]) == ["x,y", "z"]


@pytest.mark.parametrize("name", ["a.svm", "a.npy"])
def test_other_formats_are_not_raw(tmp_path, name):
    path = write(tmp_path, name, b"1 1:1\n")
    with pytest.raises(ValueError, match="only csv, tsv, parquet are read as they came"):
        open_rows(path, raw=RAW)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decimal": ";"}, "decimal=';' is not known"),
        ({"encoding": "klingon"}, "encoding='klingon' is not known"),
        ({"encoding": "rot13"}, "encoding='rot13' is not known"),
        ({"kinds": {"a": "text"}}, "'a' cannot be 'text'; choose one of number, levels, time"),
    ],
)
def test_options_that_cannot_be(options, said):
    with pytest.raises(ValueError, match=said):
        RawOptions(**options)


# Parquet ------------------------------------------------------------------------------------------


DAY, NOON = dt.date(2024, 5, 6), dt.datetime(2024, 5, 6, 12)
TYPES = {
    "int": (pa.array([1, None, 3], pa.int16()), "number", [1, None, 3]),
    "uint": (pa.array([2**63, None], pa.uint64()), "number", [2.0**63, None]),
    "half": (pa.array([0.5, None, float("nan")], pa.float16()), "number", [0.5, None, None]),
    "decimal": (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), "number", [1.25, None]),
    "bool": (pa.array([True, None, False]), "levels", ["true", None, "false"]),
    "text": (pa.array(["a ", None, "", "N/A", "007"]), "levels", ["a", None, None, None, "007"]),
    "view": (pa.array(["a", None], pa.string_view()), "levels", ["a", None]),
    "wide": (pa.array([Decimal("1.25"), None], pa.decimal256(50, 2)), "number", [1.25, None]),
    "large": (pa.array(["a", None], pa.large_string()), "levels", ["a", None]),
    "words": (pa.array(["a", None, "a"]).dictionary_encode(), "levels", ["a", None, "a"]),
    "codes": (pa.array([3, None, 7]).dictionary_encode(), "levels", ["3", None, "7"]),
    "date": (pa.array([DAY, None]), "time", [dt.datetime(2024, 5, 6), None]),
    "ns": (pa.array([NOON, None], pa.timestamp("ns")), "time", [NOON, None]),
    "s": (pa.array([NOON, None], pa.timestamp("s")), "time", [NOON, None]),
    "zone": (
        pa.array([NOON.replace(tzinfo=dt.UTC), None], pa.timestamp("us", "Asia/Tokyo")),
        "time",
        [NOON, None],
    ),
    "clock": (pa.array([dt.time(1, 0, 2, 500_000), None], pa.time64("us")), "number", [3602.5, None]),
    "clock32": (pa.array([dt.time(1), None], pa.time32("ms")), "number", [3600, None]),
    "span": (pa.array([dt.timedelta(minutes=1), None], pa.duration("ms")), "number", [60, None]),
    "null": (pa.nulls(2), "number", [None, None]),
}


def parquet(folder, array):
    path = folder / "a.parquet"
    pq.write_table(pa.table({"a": array, "y": list(range(len(array)))}), path)
    return path


@pytest.mark.parametrize("name", TYPES)
def test_types_of_parquet(tmp_path, name):
    array, kind, expected = TYPES[name]
    path = parquet(tmp_path, array)
    found = read(path).X.column("a")
    assert (kind_of(found), cells(found)) == (kind, expected)
    levels = read(path, raw=RawOptions(kinds={"a": "levels"})).X.column("a")
    assert kind_of(levels) == "levels" and cells(levels).count(None) == expected.count(None)


@pytest.mark.parametrize(
    "array",
    [pa.array([[1], [2]]), pa.array([{"u": 1}, None]), pa.array([b"x", b"y"])],
    ids=["list", "struct", "binary"],
)
def test_nested_columns_can_be_dropped(tmp_path, array):
    path = parquet(tmp_path, array)
    assert "column 'a' has the type" in said_of(path) and "--drop a" in said_of(path)
    table = pa.table({"a": array, "b": [1, 2], "y": [0, 1]})
    pq.write_table(table, path)
    assert read(path, raw=RawOptions(drop=("a",))).X.names == ("b",)


def test_kinds_that_are_told_of_parquet(tmp_path):
    path = parquet(tmp_path, pa.array(["1.5", None, "2", "?"]).dictionary_encode())
    number = RawOptions(kinds={"a": "number"})
    assert cells(read(path, raw=number).X.column("a")) == [1.5, None, 2, None]
    parquet(tmp_path, pa.array(["2024-05-06", ""]))
    found = read(path, raw=RawOptions(kinds={"a": "time"})).X.column("a")
    assert cells(found) == [dt.datetime(2024, 5, 6), None]
    parquet(tmp_path, pa.array([True, None]))
    assert cells(read(path, raw=number).X.column("a")) == [1, None]
    parquet(tmp_path, pa.array([1.0, 2.5]))
    assert cells(read(path, raw=RawOptions(kinds={"a": "levels"})).X.column("a")) == ["1", "2.5"]
    assert "cannot be read as times" in said_of(path, raw=RawOptions(kinds={"a": "time"}))
    parquet(tmp_path, pa.array(["1", "x"]))
    assert "row 2, column 'a': 'x' is not a number; name it as missing" in said_of(path, raw=number)
    parquet(tmp_path, pa.array([1.0, float("inf")]))
    assert "row 2, column 'a': inf is not a finite number" in said_of(path)
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": ["yes", None]}), path)
    assert "row 2, column 'y': the target is missing" in said_of(path)
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": ["yes", "?"]}), path)
    assert "row 2, column 'y': the target is missing ('?')" in said_of(path)


# Any cells ----------------------------------------------------------------------------------------


TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\"',;| "), max_size=8
)
CELLS = st.one_of(
    st.none(),
    TEXTS,
    st.sampled_from(["NA", "true", "007", "1e5", "2024-01-01", "nan", "1,5"]),
    st.integers(-99, 99).map(str),
)


@given(st.lists(CELLS, min_size=1, max_size=30), st.sampled_from([20, 100, 10_000]), st.booleans())
@FUZZ
def test_any_cells_come_back_as_levels(tmp_path, column, size, utf16):
    encoding = "utf-16" if utf16 else "utf-8"
    quoted = ['"{}"'.format((cell or "").replace('"', '""')) for cell in column]
    text = "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(quoted))
    path = write(tmp_path, "a.csv", text, encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "BLOCK_BYTES", size)
        raw = RawOptions(kinds={"a": "levels"}, encoding=encoding)
        found = cells(read(path, raw=raw).X.column("a"))
    assert found == [
        None if (cell or "").strip().lower() in raw.gaps else cell.strip() for cell in column
    ]


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    st.sampled_from([20, 100, 10_000]),
    st.sampled_from([".", ","]),
)
@FUZZ
def test_any_numbers_come_back(tmp_path, column, size, decimal):
    shown = ["NA" if value is None else repr(value).replace(".", decimal) for value in column]
    text = "a;y\n" + "".join(f"{cell};{i % 2}\n" for i, cell in enumerate(shown))
    path = write(tmp_path, "a.csv", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "BLOCK_BYTES", size)
        found = read(path, raw=RawOptions(decimal=decimal)).X.column("a")
    assert cells(found) == column


@given(
    st.binary(max_size=60) | st.text('ab1,;|"\n\r é.-\0', max_size=60).map(str.encode),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "shift_jis"]),
    st.sampled_from(["", "a,b,y\n", "a;y\n"]),
    st.sampled_from([8, 10_000]),
)
@settings(FUZZ, max_examples=300)
def test_any_bytes_are_a_table_or_an_error(tmp_path, content, encoding, header, size):
    path = write(tmp_path, "a.csv", header.encode(encoding) + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "BLOCK_BYTES", size)
        try:
            block = read(path, raw=RawOptions(encoding=encoding))
        except DataError:
            return
    assert len(block) and all(len(column) == len(block) for column in block.X.columns)
