"""Every reader: accepted rows are those of a slow parser, and bad input is told where it stands."""

import bz2
import gzip
import io
import lzma
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asset_svm.data.svmlight as svmlight_module
from asset_svm import DataError, open_rows
from asset_svm.data import compression
from asset_svm.data.ahead import ahead
from asset_svm.data.array_rows import ArrayRows
from asset_svm.data.source import Block
from reference.text_rows import csv_rows, svmlight_rows

FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FOUND = Path(__file__).parent / "fuzz" / "found"
GOOD = b"1 1:0.5 3:-2e1\n-1 2:3 # a comment\n\n+1\n"


def write(folder, name, content):
    path = Path(folder) / name
    path.write_bytes(content)
    return path


def dense(block, width):
    X = sp.csr_matrix((block.X.data, block.X.indices, block.X.indptr), (len(block), width))
    return X.toarray()


def read64(path, **options):
    return open_rows(path, dtype=np.float64, **options).read()


# svmlight ---------------------------------------------------------------------------------------


def check_svmlight(path, text):
    expected = svmlight_rows(text)
    try:
        block = read64(path)
    except DataError:
        assert expected is None
        return
    assert expected is not None
    assert block.y.tolist() == [label for label, _ in expected]
    found = [
        dict(zip(block.X[i].indices.tolist(), block.X[i].data.tolist(), strict=True))
        for i in range(len(block))
    ]
    assert found == [row for _, row in expected]


def test_svmlight_text_is_read_as_it_stands(tmp_path):
    block = read64(write(tmp_path, "a.svm", GOOD))
    assert block.y.tolist() == [1.0, -1.0, 1.0]
    assert dense(block, 3).tolist() == [[0.5, 0, -20], [0, 3, 0], [0, 0, 0]]


@given(st.binary(max_size=200))
@FUZZ
def test_any_bytes_are_rows_or_an_error(tmp_path, text):
    check_svmlight(write(tmp_path, "fuzz.svm", text), text)


ODD_TOKENS = """
1 -1 +1 1:2 2:1e-5 3:.5 3:5. 0:1 2:1e400 2:nan qid:3 4:0.1234567890123456789 7:1e22 8:4.9e-324 #
5:123456789012345678901e-30 99999999999:1 3: :3 3 1:1:1 3:1e 3:- 1,2 é 2:1_0 9:0x1
"""
tokens = st.one_of(
    st.sampled_from([*ODD_TOKENS.split(), "\r", "\t", "\x00"]),
    st.floats(allow_nan=False, width=64).map(lambda v: f"6:{v!r}"),
    st.text(alphabet="0123456789:.eE+-# \r", max_size=12),
)


@given(st.lists(st.lists(tokens, max_size=5).map(" ".join), max_size=6), st.booleans())
@FUZZ
def test_almost_good_lines_are_rows_or_an_error(tmp_path, lines, newline):
    text = ("\n".join(lines) + ("\n" if newline else "")).encode()
    check_svmlight(write(tmp_path, "fuzz.svm", text), text)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20), st.data())
@FUZZ
def test_numbers_are_the_nearest_to_their_text(tmp_path, values, data):
    spell = data.draw(st.sampled_from(["{!r}", "{:.3e}", "{:.17g}", "{:.25e}", "{:f}"]))
    text = "".join(f"0 1:{spell.format(v)}\n" for v in values).encode()
    X = read64(write(tmp_path, "n.svm", text)).X
    assert X.data.tolist() == [float(spell.format(v)) for v in values]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"1 1:1\n1 0:2\n", r"line 2: feature index 0 .*zero_based"),
        (b"1 1:1\n\n1 9:2 7:1\n", r"line 3: the index of '7:1' does not follow"),
        (b"1 9:2 9:1\n", r"line 1: the index of '9:1' does not follow"),
        (b"1 1:nan\n", r"line 1: the value of '1:nan' is not a number"),
        (b"1 1:1\n2 1:1e39\n", r"line 2: a value is too large for float32"),
        (b"1 1:1\n1e999 1:1\n", r"line 2: the label is too large"),
        (b"1 1:1\nspam 1:1\n", r"line 2: the label 'spam' is not a number"),
        (b"1 1:1\n1 x:1\n", r"line 2: 'x:1' has no whole number before"),
        (b"1 1:1\n1 7\n", r"line 2: '7' is not an index:value pair"),
        (b"\x89PNG\r\n\x1a\n", r"line 1: the label '.*' is not a number \(is this svmlight text"),
        (b"", r"has no rows"),
        (b"# nothing\n\n", r"has no rows"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, said):
    path = write(tmp_path, "bad.svm", text)
    with pytest.raises(DataError, match=re.escape(str(path)) + ".*" + said):
        open_rows(path).read()


def test_the_line_of_an_error_counts_over_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight_module, "SEGMENT_BYTES", 64)
    good = b"".join(b"%d 1:%d 2:0.5\n" % (i % 2, i) for i in range(500))
    path = write(tmp_path, "long.svm", good + b"1 2:1 1:1\n" + good)
    with pytest.raises(DataError, match="line 501: "):
        open_rows(path).read()
    path = write(tmp_path, "wide.svm", good + b"1 5:1\n")
    with pytest.raises(DataError, match=r"line 501: .*beyond the 4 features"):
        open_rows(path, n_features=4).read()
    rows = open_rows(write(tmp_path, "good.svm", good), dtype=np.float64).read()
    assert rows.X[:, 0].toarray().ravel().tolist() == list(range(500))


def test_a_line_without_end_is_an_error_not_all_of_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight_module, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(compression, "LONGEST_LINE", 10_000)
    with pytest.raises(DataError, match="line of more than"):
        open_rows(write(tmp_path, "endless.svm", b"1 " * 50_000)).read()


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compressed_text_reads_as_plain_text_and_a_cut_one_is_told(tmp_path, suffix, pack):
    rng = np.random.default_rng(0)
    text = b"".join(b"1 1:%.6f 2:%.6f\n" % tuple(pair) for pair in rng.normal(size=(5000, 2)))
    packed = pack.compress(text)
    whole = open_rows(write(tmp_path, "rows.svm" + suffix, packed)).read()
    plain = open_rows(write(tmp_path, "rows.svm", text)).read()
    assert (whole.X != plain.X).nnz == 0
    for cut in (3, len(packed) // 2, len(packed) - 5):
        with pytest.raises(DataError, match=r"is cut|not a whole"):
            open_rows(write(tmp_path, "cut.svm" + suffix, packed[:cut])).read()
    with pytest.raises(DataError, match="not a whole"):
        open_rows(write(tmp_path, "not.svm" + suffix, b"plain text is no archive")).read()
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    with pytest.raises(DataError):
        open_rows(write(tmp_path, "damaged.svm" + suffix, bytes(damaged))).read()


def test_indices_may_count_from_zero(tmp_path):
    path = write(tmp_path, "zero.svm", b"1 0:1 2:3\n")
    assert dense(open_rows(path, zero_based=True).read(), 3).tolist() == [[1, 0, 3]]


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 80), st.booleans())
@FUZZ
def test_segments_in_any_order_hold_every_row_once(tmp_path, lengths, size, newline):
    lines = [f"{i} 1:1" + "0" * length for i, length in enumerate(lengths)]
    text = "\n".join(lines) + ("\n" if newline else "")
    path = write(tmp_path, "s.svm", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight_module, "SEGMENT_BYTES", size)
        source = open_rows(path, dtype=np.float64)
        assert source.n_segments == -(-len(text) // size)
        order = np.random.default_rng(0).permutation(source.n_segments)
        if not lines:
            return
        labels = np.concatenate([block.y for block in source.blocks(order)])
    assert sorted(labels.tolist()) == list(range(len(lines)))


# CSV --------------------------------------------------------------------------------------------


def check_csv(path, text):
    expected = csv_rows(text, "y")
    try:
        block = read64(path, target="y")
    except DataError:
        return
    assert expected is not None
    assert block.X.tolist() == [features for _, features in expected]
    labels = [label for label, _ in expected]
    if block.y.dtype.kind == "f":
        labels = [float(label) for label in labels]
    assert block.y.tolist() == labels


cells = st.one_of(
    st.sampled_from(
        ["1", "-2.5", "1e3", "", "nan", "inf", "x", " 4 ", "+1", '"5"', "1e400", "NA", '"']
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(alphabet='0123456789.eE+-,"\r\n\té', max_size=8),
)


@given(st.lists(st.lists(cells, min_size=3, max_size=3).map(",".join), min_size=1, max_size=5))
@FUZZ
def test_csv_text_is_rows_or_an_error(tmp_path, lines):
    text = "a,b,y\n" + "\n".join(lines) + "\n"
    check_csv(write(tmp_path, "fuzz.csv", text.encode()), text)


@given(st.binary(max_size=120))
@FUZZ
def test_any_bytes_as_csv_are_rows_or_an_error(tmp_path, content):
    try:
        block = read64(write(tmp_path, "fuzz.csv", content), target="y")
    except DataError:
        return
    assert np.isfinite(block.X).all() and len(block.y) == len(block.X)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a,b,y\n1,2,0\n3,oops,1\n", r"row 2, column 'b': 'oops' is not a number"),
        (b"a,b,y\n1,2,0\n3,1\n", r"row 2: 2 cells where the header has 3"),
        (b"a,b,y\n1,2,0\n3,,1\n", r"row 2, column 'b': the value is missing"),
        (b"a,b,y\n1,2,0\n3,nan,1\n", r"row 2, column 'b'"),
        (b"a,b,y\n1,2,0\n3,1e99,1\n", r"row 2, column 'b': 1e\+99 is not a finite float32"),
        (b"a,a,y\n1,2,0\n", r"two columns named 'a'"),
        (b"a,b,z\n1,2,0\n", r"no column 'y'; its columns are 'a', 'b', 'z'"),
        (b"1,2,3\n1,2,0\n", r"line 1: the header has numbers only"),
        (b"a,b,y\n", r"has no rows"),
        (b"", r"line 1: a header .* is missing"),
        (b"a,b\rc,y\n1,2,3\n", r"line 1: the header is not CSV"),
        (b"a,b,y\n1,2,no\n1,2,no\x00\n", r"row 2, column 'y': .* has a NUL character"),
        (b"\xff\xfe,b,y\n1,2,3\n", r"line 1: the header is not UTF-8"),
    ],
)
def test_a_bad_cell_is_named(tmp_path, text, said):
    path = write(tmp_path, "bad.csv", text)
    with pytest.raises(DataError, match=re.escape(str(path)) + ".*" + said):
        open_rows(path, target="y").read()


def test_labels_that_change_type_half_way_are_told(tmp_path, monkeypatch):
    import asset_svm.data.csv as csv_module

    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 2000)
    numbers = "".join(f"{i},{i % 2}\n" for i in range(1000))
    path = write(tmp_path, "mixed.csv", ("a,y\n" + numbers + "5,maybe\n" + numbers).encode())
    with pytest.raises(DataError, match="row 1001, column 'y': the target 'maybe' is no number"):
        open_rows(path, target="y").read()


def test_csv_with_names_crlf_quotes_and_tabs(tmp_path):
    text = '\ufeff"a","b",class\r\n1,2,yes\r\n"3",4,no'
    block = open_rows(write(tmp_path, "a.csv", text.encode())).read()
    assert block.X.tolist() == [[1, 2], [3, 4]] and block.y.tolist() == ["yes", "no"]
    source = open_rows(write(tmp_path, "a.tsv.gz", gzip.compress(b"u\ty\n1\t5\n2\t6\n")))
    assert source.feature_names == ("u",) and source.read().y.tolist() == [5.0, 6.0]


# Parquet and NumPy ------------------------------------------------------------------------------


def test_parquet_files_folders_and_their_faults(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"a": [1.0, 2.0], "n": [3, 4], "ok": [True, False], "y": ["p", "q"]})
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_rows(tmp_path / "t.parquet", target="y")
    block = source.read()
    assert (source.n_rows, source.feature_names) == (2, ("a", "n", "ok"))
    assert block.X.tolist() == [[1, 3, 1], [2, 4, 0]] and block.y.tolist() == ["p", "q"]
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        pq.write_table(table, folder / f"{part}.parquet")
    assert len(open_rows(folder, target="y").read()) == 6
    with pytest.raises(DataError, match="column 'y' has the type string"):
        open_rows(tmp_path / "t.parquet", target="a")
    pq.write_table(pa.table({"a": [1.0, None], "y": [0, 1]}), tmp_path / "null.parquet")
    with pytest.raises(DataError, match="row 2, column 'a': the value is missing"):
        open_rows(tmp_path / "null.parquet", target="y").read()
    pq.write_table(pa.table({"a": [1.0, 1.0], "y": [0, None]}), tmp_path / "none.parquet")
    with pytest.raises(DataError, match="row 2, column 'y': the target is missing"):
        open_rows(tmp_path / "none.parquet", target="y").read()
    content = (tmp_path / "t.parquet").read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        with pytest.raises(DataError, match="not a whole Parquet"):
            open_rows(write(tmp_path, "cut.parquet", content[:cut]), target="y")


@pytest.mark.parametrize("separator", ["\f", "\v", "\xa0", ":", ","])
def test_an_entry_is_not_taken_for_a_part_of_the_qid(tmp_path, separator):
    path = write(tmp_path, "q.svm", f"1 qid:1 3:1\n-1 qid:1{separator}3:1e-5\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"q\.svm, line 2: the value of .* is not a number"):
        open_rows(path).read()


@pytest.mark.parametrize("blank", ["\x1c", "\x1e", "\x85", "\u2003"])
def test_a_target_with_a_control_character_is_no_number(tmp_path, blank):
    """Python and arrow take these for white space; in the other columns they are refused."""
    text = f"a,y\n1,0\n2,1{blank}\n"
    with pytest.raises(DataError, match=r"row 2, column 'y': the target .* is no number"):
        open_rows(write(tmp_path, "t.csv", text.encode()), target="y").read()


@pytest.mark.parametrize("path", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_fuzzing_found_stays_mended(path):
    """Files on which a reader once failed otherwise than by an error of ours (``fuzz/readers.py``)."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(DataError) as caught:
        open_rows(path, target="y").read()
    assert "\n" not in str(caught.value)


@given(st.integers(0, 10**6), st.integers(1, 255))
@settings(FUZZ, max_examples=100)
def test_a_damaged_parquet_or_npz_is_rows_or_an_error(tmp_path, place, flip):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X = np.random.default_rng(0).normal(size=(300, 2))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] > 0}), buffer)
    packed = io.BytesIO()
    np.savez_compressed(packed, X=X, y=X[:, 0] > 0)
    plain = io.BytesIO()
    np.save(plain, X)
    for name, content in (("d.parquet", buffer), ("d.npz", packed), ("d.npy", plain)):
        damaged = bytearray(content.getvalue())
        damaged[place % len(damaged)] ^= flip
        path = write(tmp_path, name, bytes(damaged))
        try:
            block = open_rows(path, target=None if name == "d.npy" else "y").read()
        except DataError:
            continue
        assert np.isfinite(block.X).all() and len(block.X) == len(block.y)


def test_numpy_files_are_mapped_and_read(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 3, size=100)
    np.save(tmp_path / "m.npy", np.column_stack([X, y]))
    source = open_rows(tmp_path / "m.npy", dtype=np.float64)
    assert isinstance(source.X, np.memmap)
    assert np.array_equal(source.read().X, X) and np.array_equal(source.read().y, y)
    first = open_rows(tmp_path / "m.npy", target="0", dtype=np.float64).read()
    assert np.array_equal(first.y, X[:, 0]) and first.X.shape == (100, 3)
    np.savez(tmp_path / "m.npz", X=X, y=y)
    source = open_rows(tmp_path / "m.npz", dtype=np.float64)
    assert isinstance(source.X, np.memmap) and np.array_equal(source.read().X, X)
    np.savez_compressed(tmp_path / "c.npz", X=X, y=y)
    assert np.array_equal(open_rows(tmp_path / "c.npz", dtype=np.float64).read().X, X)
    S = sp.random(50, 20, 0.2, "csr", random_state=0)
    sp.save_npz(tmp_path / "s.npz", S)
    np.save(tmp_path / "labels.npy", np.arange(50))
    block = open_rows(tmp_path / "s.npz", target=str(tmp_path / "labels.npy"), dtype=np.float64).read()
    assert (block.X != S).nnz == 0 and block.y.tolist() == list(range(50))
    with pytest.raises(DataError, match="no array y"):
        open_rows(tmp_path / "s.npz")


def test_numpy_files_with_faults(tmp_path):
    X = np.ones((5, 3))
    X[3, 1] = np.inf
    np.save(tmp_path / "inf.npy", X)
    with pytest.raises(DataError, match=r"row 3, column 1: inf is not a finite"):
        open_rows(tmp_path / "inf.npy").read()
    np.save(tmp_path / "o.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"not a whole .npy file of numbers"):
        open_rows(tmp_path / "o.npy")
    np.savez(tmp_path / "o.npz", X=np.array([[{}]], dtype=object), y=np.zeros(1))
    with pytest.raises(DataError, match="cannot be read"):
        open_rows(tmp_path / "o.npz")
    parts = dict(data=np.ones(2), indptr=np.array([0, 2]), shape=np.array([1, 3]), y=np.zeros(1))
    np.savez(tmp_path / "bad.npz", indices=np.array([0, 7]), **parts)
    with pytest.raises(DataError, match="not a CSR matrix"):
        open_rows(tmp_path / "bad.npz")


@pytest.mark.parametrize("kind", ["npy", "npz", "csr", "parquet", "svm"])
def test_a_shuffled_pass_over_a_sorted_file_mixes_all_of_it(tmp_path, kind, monkeypatch):
    m, size = 4000, 500
    X = np.column_stack([np.arange(m), np.ones(m)])
    y = np.arange(m)
    path = tmp_path / f"rows.{kind.replace('csr', 'npz')}"
    if kind == "npy":
        np.save(path, np.column_stack([X, y]))
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    elif kind == "csr":
        S = sp.csr_matrix(X)
        np.savez(path, data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=50)
    else:
        path.write_text("".join(f"{i} 1:{i} 2:1\n" for i in range(m)))
    import asset_svm.data.source as source_module

    monkeypatch.setattr(source_module, "SEGMENT_BYTES", 800)
    monkeypatch.setattr(svmlight_module, "SEGMENT_BYTES", 800)
    source = open_rows(path, dtype=np.float64)
    windows = list(source.windows(size, shuffle=(0,)))
    assert sorted(np.concatenate([w.y for w in windows]).tolist()) == list(range(m))
    for window in windows:
        # The mean of 500 of 4000 rows in 10 or more segments: within 6 standard errors of the middle.
        assert abs(window.y.mean() - m / 2) < 6 * (m / 12**0.5) / 10**0.5
        rows = window.X.toarray() if sp.issparse(window.X) else window.X
        assert np.array_equal(rows[:, 0], window.y)


# The interface ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 60), st.booleans())
@settings(max_examples=50, deadline=None)
def test_windows_hold_every_row_once_however_blocks_are_cut(size, m, sparse):
    X = np.arange(2.0 * m).reshape(m, 2)
    source = ArrayRows(sp.csr_matrix(X) if sparse else X, np.arange(m), dtype=np.float64)
    windows = list(source.windows(size))
    assert [len(w) for w in windows[:-1]] == [size] * (len(windows) - 1)
    assert np.concatenate([w.y for w in windows]).tolist() == list(range(m))
    shuffled = list(source.windows(size, shuffle=(1, 2)))
    assert sorted(np.concatenate([w.y for w in shuffled]).tolist()) == list(range(m))
    for plain, mixed in zip(windows, shuffled, strict=True):
        assert sorted(plain.y.tolist()) == sorted(mixed.y.tolist())
        rows = mixed.X.toarray() if sparse else mixed.X
        assert np.array_equal(rows, X[mixed.y])
    assert source.n_segments == 1
    again = list(source.windows(size, shuffle=(1, 2), skip=1))
    assert [w.y.tolist() for w in again] == [w.y.tolist() for w in shuffled[1:]]


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    source = open_rows("-")
    assert not source.rereadable and len(source.read()) == 3
    with pytest.raises(DataError, match="only once"):
        source.read()


def test_reading_ahead_ends_when_nobody_listens_and_hands_errors_over():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    before = set(threading.enumerate())
    items = ahead(endless())
    assert next(items) == 1
    items.close()
    assert closed.is_set() and set(threading.enumerate()) <= before

    def failing():
        yield 1
        raise KeyError("x")

    items = ahead(failing())
    assert next(items) == 1
    with pytest.raises(KeyError):
        next(items)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(format="xls"), "choose one of svmlight"),
        (dict(dtype=np.int32), "use float32 or float64"),
        (dict(target="y"), "begin with their target"),
    ],
)
def test_bad_options_of_open_rows(tmp_path, options, said):
    with pytest.raises(ValueError, match=said):
        open_rows(write(tmp_path, "a.svm", GOOD), **options)


def test_a_missing_file_is_told():
    with pytest.raises(FileNotFoundError, match=r"no-such-file.svm does not exist"):
        open_rows("no-such-file.svm")


def test_blocks_of_different_widths_are_joined():
    parts = [Block(sp.csr_matrix(np.ones((2, n))), np.zeros(2)) for n in (3, 1, 5)]
    assert Block.joined(parts).X.shape == (6, 5)


def test_large_compressed_arrays_are_mapped_from_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("asset_svm.data.array_files.SMALL_MEMBER", 1000)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 7)).astype(np.float32), rng.integers(2, size=500)
    for order in "CF":
        np.savez_compressed(tmp_path / "packed.npz", X=np.asarray(X, order=order), y=y)
        source = open_rows(tmp_path / "packed.npz")
        blocks = list(source.windows(200))
        np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    whole = (tmp_path / "packed.npz").read_bytes()
    (tmp_path / "packed.npz").write_bytes(whole.replace(whole[200:240], bytes(40)))
    with pytest.raises(DataError, match="cannot be read"):
        open_rows(tmp_path / "packed.npz")


def test_a_column_of_targets_may_be_an_integer_and_where_columns_have_names_is_told(tmp_path):
    numbers = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "m.npy", numbers)
    for target in (1, np.int64(1), [1]):
        np.testing.assert_array_equal(
            open_rows(tmp_path / "m.npy", target=target).read().y, [1, 4, 7, 10]
        )
    (tmp_path / "m.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="has no column '1'; its columns are 'a', 'b'"):
        open_rows(tmp_path / "m.csv", target=1).read()
