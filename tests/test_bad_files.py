"""Files that look whole and are not: nothing of them gets in as rows, and memory stays bounded."""

import gzip
import io
import os
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("pyarrow")

import asset_svm.data.csv as csv_module
import asset_svm.data.svmlight as svmlight_module
from asset_svm import DataError, open_rows
from asset_svm.data import compression
from asset_svm.data.notation import MISSING


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path, **options):
    """What is said of a file whose rows cannot be read."""
    with pytest.raises(DataError) as caught:
        open_rows(path, **options).read()
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


# Lines without end --------------------------------------------------------------------------------

BEGINNINGS = {
    "digits": (".csv", b"a,b,y\n1,2,0\n", b"1"),
    "cells": (".csv", b"a,b,y\n1,2,0\n", b"1,"),
    "quoted": (".csv", b"a,b,y\n1,2,0\n1,2,", b'"no'),
    "header": (".csv", b"a,", b"b"),
    "svmlight": (".svm", b"1 1:2\n", b"1"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("case", BEGINNINGS)
def test_a_line_without_end_is_told_after_the_bytes_that_a_line_may_have(
    tmp_path, case, packed, monkeypatch
):
    suffix, good, line = BEGINNINGS[case]
    content = good + line + line[-1:] * 5_000_000
    path = write(tmp_path, "a" + suffix, content)
    if packed:
        path = write(tmp_path, f"a{suffix}.gz", gzip.compress(content, 1))
    monkeypatch.setattr(compression, "LONGEST_LINE", 1_000_000)
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 100_000)
    monkeypatch.setattr(svmlight_module, "SEGMENT_BYTES", 100_000)
    read, opened = [], compression.filled

    def counted(stream, size):
        part = opened(stream, size)
        read.append(len(part))
        return part

    monkeypatch.setattr(compression, "filled", counted)
    said = refused(path)
    assert ("quote" if case == "quoted" else "a line of more than 64 MiB") in said
    assert {"header": "line 1:", "svmlight": "line 2:"}.get(case, "row 2") in said
    assert sum(read) < 1_200_000


def test_a_line_without_end_is_told_where_segments_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "LONGEST_LINE", 10_000)
    monkeypatch.setattr(svmlight_module, "SEGMENT_BYTES", 1000)
    source = open_rows(write(tmp_path, "a.svm", b"1 1:2\n" + b"1" * 50_000))
    for segment in (0, 3):
        with pytest.raises(DataError, match="a line of more than"):
            list(source.blocks(np.array([segment])))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a,b,y\n1,2,0\n%s\n", "row 2: 3000001 cells where the header has 3"),
        (b'a,b,y\n1,2,0\n%s"x\n', "row 2, column 3000001: the quote that opens"),
        (b"a,b,y%s\n", "line 1: the header has more than 1048576 columns"),
    ],
    ids=["row", "quote", "header"],
)
def test_a_line_of_delimiters_is_not_taken_apart(tmp_path, text, said):
    path = write(tmp_path, "a.csv", text % (b"," * 3_000_000))
    refused(write(tmp_path, "small.csv", text % b",,,,"))  # what is imported and compiled on the way
    tracemalloc.start()
    try:
        assert said in refused(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * path.stat().st_size


def test_a_row_may_be_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 64)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 100)), rng.integers(0, 2, 7)
    names = ",".join([f"c{j}" for j in range(100)] + ["y"])
    rows = "".join(
        ",".join(map(repr, row)) + f",{label}\n" for row, label in zip(X.tolist(), y, strict=True)
    )
    block = open_rows(write(tmp_path, "wide.csv", f"{names}\n{rows}"), dtype=np.float64).read()
    assert np.array_equal(block.X, X) and np.array_equal(block.y, y)


# Quotes -------------------------------------------------------------------------------------------


def table(*rows):
    return (
        "a,b,y\n"
        + "".join(f"{i},0.5,{'yes' if i % 2 else 'no'}\n" for i in range(500))
        + "".join(f"{row}\n" for row in rows)
    )


@pytest.mark.parametrize("size", [64, 100_000])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (('1,2,"yes', "1,2,no", "1,2,yes"), "row 501, column 'y': the quote that opens"),
        (("1,2,no", '1,"2,yes', "1,2,yes"), "row 502, column 'b': the quote that opens"),
        (('"1,2,yes', "1,2,yes"), "row 501, column 'a': the quote that opens"),
        (('1,2,"yes', "1,2,no", '1,2,"no"'), "row 501, column 'y': the quote that opens"),
        (('1,2,"yes', "1,2,no", '1,2,no"'), "row 501, column 'y': the target .* has a line break"),
        (('1,2,"yes" or no',), "row 501, column 'y': the quote that opens"),
        (('1,2,"yes', 1000 * "1,2,no\n"), "row 501, column 'y': the quote that opens"),
    ],
)
def test_a_quote_that_is_not_closed_is_told_at_its_place(tmp_path, monkeypatch, rows, said, size):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    assert re.search(said, refused(write(tmp_path, "a.csv", table(*rows))))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 100_000])
def test_quotes_that_are_closed_read_as_scikit_learns_neighbours_read_them(tmp_path, monkeypatch, size):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    rows = [
        '1,2,"yes"', '"3","4",no', '5,6,"a ""word"" of"', '7,8,it"s', '9,"1e1" ,"x,y"', '1,2,""""""',
    ]  # fmt: skip
    text = "a,b,y\n" + "\n".join(rows) + '\n"3",4,last'
    path = write(tmp_path, "a.csv", text)
    block = open_rows(path).read()
    expected = pd.read_csv(io.StringIO(text), dtype={"y": str})
    assert block.y.tolist() == expected["y"].tolist()
    assert block.X.tolist() == expected[["a", "b"]].astype(float).to_numpy().tolist()


# Targets ------------------------------------------------------------------------------------------


def targets(*cells, before=3000):
    rows = "".join(f"{i},{i % 2}\n" for i in range(before))
    return "a,y\n" + rows + "".join(f"7,{cell}\n" for cell in cells)


@pytest.mark.parametrize("size", [500, 4 << 20])
@pytest.mark.parametrize("kind", ["numbers", "names"])
@pytest.mark.parametrize("cell", ["", " ", "NA", " NA", "nan", "NULL", '""', "#N/A", "None", "<NA>"])
def test_a_target_that_is_missing_is_no_class(tmp_path, monkeypatch, cell, kind, size):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    text = targets(cell)
    if kind == "names":
        text = text.replace(",0\n", ",no\n").replace(",1\n", ",yes\n")
    said = refused(write(tmp_path, "a.csv", text))
    assert "row 3001, column 'y': the target is missing" in said


@pytest.mark.parametrize("size", [500, 4 << 20])
@pytest.mark.parametrize("before", [1, 3000])
def test_numbers_that_turn_to_text_are_told_wherever_they_turn(tmp_path, monkeypatch, before, size):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    said = refused(write(tmp_path, "a.csv", targets("1.O", "1", before=before)))
    assert f"row {before + 1}, column 'y': the target '1.O' is no number, and others are" in said


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize(
    ("others", "slip", "kind", "size"),
    [
        (["0.5"], "12.3.4", "no number", 16),
        (["0.5"], "12.3.4", "no number", 4 << 20),
        (["yes", "no"], "3", "a number", 4 << 20),
    ],
)
def test_the_target_that_is_alone_is_the_slip_wherever_it_stands(
    tmp_path, monkeypatch, before, others, slip, kind, size
):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", size)
    cells = others * 30
    cells.insert(before, slip)
    text = "a,y\n" + "".join(f"1,{cell}\n" for cell in cells)
    said = refused(write(tmp_path, "a.csv", text))
    assert f"row {before + 1}, column 'y': the target {slip!r} is {kind}, and others" in said


FOREIGN = [
    "12,5",
    "$10",
    "3.00%",
    "3 %",
    "1,234.5",
    "1.234,5",
    "1 234",
    "1'000",
    "-5,0",
    "\u22125",
    "€5",
]


@pytest.mark.parametrize("cell", FOREIGN)
def test_a_number_in_another_notation_is_no_class(tmp_path, cell):
    text = "a,y\n" + "".join(f'{i},"{cell}"\n' for i in range(3))
    said = refused(write(tmp_path, "a.csv", text))
    assert f"row 1, column 'y': the target {cell!r} is no number in the notation that is read" in said
    said = refused(write(tmp_path, "b.csv", f'a,y\n1,0\n2,1\n"{cell}",1\n'))
    assert f"row 3, column 'a': {cell!r} is no number in the notation that is read" in said


def test_names_with_digits_are_classes(tmp_path):
    names = [
        "<=50K",
        "1.2.3",
        "3-4",
        "10 kg",
        "O1",
        "1st",
        "2020-01-05",
        "+",
        "-",
        "none",
        "12:30",
        "1/2",
    ]
    text = "a,y\n" + "".join(f"1,{name}\n" for name in names)
    assert open_rows(write(tmp_path, "a.csv", text)).read().y.tolist() == names


@pytest.mark.parametrize("blank", [" ", "\t", "  "])
def test_blanks_around_a_cell_make_no_other_class(tmp_path, blank):
    text = f"a,y\n1,{blank}yes\n2,yes\n3,no{blank}\n{blank}4{blank},no\n"
    block = open_rows(write(tmp_path, "a.csv", text)).read()
    assert block.y.tolist() == ["yes", "yes", "no", "no"] and block.X.ravel().tolist() == [1, 2, 3, 4]


def test_words_are_missing_where_pandas_takes_them_for_missing(tmp_path):
    pd = pytest.importorskip("pandas")
    words = [*MISSING, "none", "na", "Null", "-", "?", "missing"]
    theirs = pd.read_csv(io.StringIO("a,y\n" + "".join(f'1,"{word}"\n' for word in words)))["y"].isna()
    for word, missing in zip(words, theirs, strict=True):
        path = write(tmp_path, "a.csv", f'a,y\n1,yes\n2,"{word}"\n')
        if missing:
            assert "row 2, column 'y': the target is missing" in refused(path)
        else:
            assert open_rows(path).read().y.tolist() == ["yes", word]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1, 2, 0\n3, 4, 1\n5, x, 1\n", "row 3, column 'b': 'x' is not a number"),
        ("1, 2, 0\n3, NA, 1\n5, x, 1\n", "row 2, column 'b': the value is missing"),
        ("1, 2, 0\n3, None, 1\n", "row 2, column 'b': the value is missing"),
        ("1, 2, 0\n\n3, 4, 1, 5\n", "row 2: 4 cells where the header has 3"),
        ('1, 2, 0\n"3", 4\n', "row 2: 2 cells where the header has 3"),
    ],
)
def test_blanks_around_cells_do_not_move_the_blame(tmp_path, rows, said):
    assert said in refused(write(tmp_path, "a.csv", "a,b,y\n" + rows))


@pytest.mark.parametrize(
    ("name", "header", "advice"),
    [
        ("a.csv", "a;b;y", "3 where semicolons do; write the file with commas"),
        ("a.csv", "a;b,c;y", "2 columns where commas separate them, and 3 where semicolons do; write"),
        ("a.csv", "a|b|y", "3 where bars do; write the file with commas"),
        ("a.csv", "a\tb\ty", '3 where tabs do; say format="tsv" (--format tsv)'),
        ("a.tsv", "a,b,y", '3 where commas do; say format="csv" (--format csv)'),
    ],
)
def test_another_delimiter_is_told(tmp_path, name, header, advice):
    path = write(tmp_path, name, f"{header}\n1;2;0\n")
    for options in ({}, {"target": "y"}, {"features": ("a", "b"), "targets": False}):
        assert advice in refused(path, **options)
    if "," not in header:
        assert advice in refused(path, targets=False)


def test_names_of_columns_may_have_semicolons(tmp_path):
    path = write(tmp_path, "a.csv", "a;b;c,y\n1,0\n2,1\n")
    assert open_rows(path).read().X.ravel().tolist() == [1, 2]


# Targets of files that have types -----------------------------------------------------------------


def parquet(folder, labels, **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table({"a": np.arange(float(len(labels))), "y": pa.array(labels)})
    pq.write_table(rows, folder / "a.parquet", **options)
    return folder / "a.parquet"


def npz(folder, labels):
    return archive(folder, "a.npz", X=np.zeros((len(labels), 1)), y=np.array(labels))


def beside(folder, labels):
    """Targets in a file of their own."""
    np.save(folder / "y.npy", np.array(labels))
    np.save(folder / "a.npy", np.zeros((len(labels), 1)))
    return folder / "a.npy"


TYPED = {
    "parquet": (parquet, {}, "row 4, column 'y'"),
    "groups": (lambda *args: parquet(*args, row_group_size=2), {}, "row 4, column 'y'"),
    "npz": (npz, {}, "row 3 (counted from 0), target"),
    "npy": (beside, {"target": "y.npy"}, "row 3 (counted from 0), target"),
}


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["yes", "no", "yes", "NA", "no"], "the target is missing ('NA')"),
        (["yes", "no", "yes", "", "no"], "the target is missing ('')"),
        (["01", "02", "01", "O1", "02"], "the target 'O1' is no number, and others are"),
        (["yes", "no", "yes", "1", "no"], "the target '1' is a number, and others are not"),
        (["yes", "no", "yes", "12,5", "no"], "the target '12,5' is no number in the notation"),
        (["yes", "no", "yes", "no\n", "no"], "the target 'no\\n' has a line break"),
    ],
)
def test_text_targets_are_judged_alike_in_every_file(tmp_path, monkeypatch, kind, labels, said):
    monkeypatch.chdir(tmp_path)
    make, options, place = TYPED[kind]
    assert f"{place}: {said}" in refused(make(tmp_path, labels), **options)


@pytest.mark.parametrize("kind", TYPED)
def test_text_targets_are_read_alike_in_every_file(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    make, options, _ = TYPED[kind]
    assert open_rows(make(tmp_path, ["1", " 2.5", "3e1"]), **options).read().y.tolist() == [1, 2.5, 30]
    assert open_rows(make(tmp_path, ["a", " b", "a "]), **options).read().y.tolist() == ["a", "b", "a"]


def test_numbers_as_svm_files_write_them_are_numbers(tmp_path):
    path = write(tmp_path, "a.csv", "a,y\n1,+1\n2, -1 \n3,1e0\n")
    assert open_rows(path).read().y.tolist() == [1.0, -1.0, 1.0]


def test_a_text_is_no_class(tmp_path):
    path = write(tmp_path, "a.csv", f"a,y\n1,yes\n2,{'no' * 1000}\n")
    assert "row 2, column 'y': the target 'nono" in refused(path)


def test_parquet_has_no_class_without_a_name(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1.0, 2.0], "y": ["yes", " "]}), tmp_path / "a.parquet")
    said = refused(tmp_path / "a.parquet")
    assert "row 2, column 'y': the target is missing" in said


def test_one_large_index_is_told_with_its_line(tmp_path):
    path = write(tmp_path, "a.svm", "1 1:1\n-1 2:1\n1 1:1 2147483646:1\n")
    said = refused(path)
    assert "line 3: the index of '2147483646:1' is too large" in said and "n_features" in said
    source = open_rows(path, n_features=2147483646)
    assert source.read().X.shape == (3, 2147483646)


# NumPy's archives ---------------------------------------------------------------------------------


def archive(folder, name, *, packed=False, **arrays):
    path = folder / name
    (np.savez_compressed if packed else np.savez)(path, **arrays)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_any_bit_of_an_archive_that_is_flipped_is_found(tmp_path, kind, packed):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    arrays = {"X": X, "y": y}
    if kind == "sparse":
        S = sp.csr_matrix(X)
        arrays = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "y": y}
    path = archive(tmp_path, "a.npz", packed=packed, **arrays)
    expected, whole = open_rows(path, dtype=np.float64).read(), path.read_bytes()
    assert np.array_equal(expected.y, y)
    refusals = 0
    for number in range(200):
        damaged = bytearray(whole)
        bit = int(rng.integers(8 * len(whole)))
        damaged[bit // 8] ^= 1 << bit % 8
        path = write(tmp_path, f"{number}.npz", bytes(damaged))
        try:
            block = open_rows(path, dtype=np.float64).read()
        except DataError:
            refusals += 1
            continue
        # What nobody reads: dates, rights, the size of a comment.
        assert np.array_equal(block.y, expected.y)
        assert (block.X != expected.X).sum() == 0
    assert refusals > 100


def test_a_checksum_is_compared_once_and_again_after_a_change(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(100, 5))
    path = archive(tmp_path, "a.npz", X=X, y=X[:, 0] > 0)
    read, original = [], zipfile.ZipExtFile.read
    monkeypatch.setattr(
        zipfile.ZipExtFile, "read", lambda self, n=-1: read.append(n) or original(self, n)
    )
    open_rows(path)
    first = len(read)
    open_rows(path)
    assert len(read) - first < first
    damaged = bytearray(path.read_bytes())
    damaged[1000] ^= 1
    path.write_bytes(bytes(damaged))
    os.utime(path, ns=(1, 1))
    assert "cannot be read (Bad CRC-32" in refused(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [800, 40 << 20])
def test_an_array_that_is_not_as_long_as_its_header_says_is_not_unpacked(tmp_path, packed, size):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10, 10)}
    )
    path = tmp_path / "a.npz"
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("X.npy", header.getvalue() + bytes(size + 8))
        made.writestr("y.npy", header.getvalue() + bytes(size + 8))
    said = refused(path)
    assert f"(10, 10) of float64 takes 800 bytes, and there are {size + 8}" in said


def test_an_archive_that_numpy_does_not_write_is_refused(tmp_path):
    X = io.BytesIO()
    np.save(X, np.ones((10, 3)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("X.npy", X.getvalue())
        made.writestr("y.npy", X.getvalue())
    assert "only stored and deflated arrays" in refused(tmp_path / "a.npz")
