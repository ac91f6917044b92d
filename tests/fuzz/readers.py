"""What every reader makes of any bytes; and coverage-guided fuzzing of it, with atheris:

    pip install atheris; python tests/fuzz/readers.py svmlight -max_total_time=300

for svmlight, csv, packed, parquet, npy, npz or model; options are libFuzzer's. ``make soak`` draws its
mutants for the same functions, and needs no atheris.

Any bytes are rows or a ``DataError`` (a model, or a ``ModelFileError``), never another exception. Where
there is a slow parser (``reference.text_rows``) the rows are its rows, and where scikit-learn, pandas,
numpy or pyarrow read the file too they are theirs. Each function returns how it ended. The first byte
of an input settles how the file is cut into blocks, and the reference is instrumented too: the parser
of svmlight text is compiled, and tells the fuzzer nothing of its branches.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

try:
    import atheris
except ImportError:
    atheris, instrumented = None, nullcontext()
else:
    instrumented = atheris.instrument_imports(
        include=["asset_svm.data", "asset_svm.storage", "asset_svm.persistence", "reference"],
        exclude=["asset_svm.data.svmlight_parser"],
    )

sys.path.insert(0, str(Path(__file__).parents[1]))
with instrumented:
    import asset_svm.data.array_files
    import asset_svm.data.csv
    import asset_svm.data.parquet
    import asset_svm.data.source
    import asset_svm.data.svmlight
    import asset_svm.persistence
    from asset_svm import DataError, ModelFileError, open_rows
    from reference.text_rows import csv_rows, svmlight_rows

SIZES = (16, 64, 1000, 1 << 19)
"""Of a segment or block, by the first byte."""
FOLDER = Path(tempfile.mkdtemp())
GOLDEN = Path(__file__).parents[1] / "golden"


def written(name: str, content: bytes) -> Path:
    """A file of these bytes."""
    path = FOLDER / name
    path.write_bytes(content)
    return path


def read(path: Path, **options: Any) -> Any:
    """All rows in their order, or None where they were refused."""
    try:
        return open_rows(path, dtype=np.float64, **options).read()
    except DataError as error:
        said = str(error)
    assert said.strip() and "\n" not in said, said
    return None


def peer(read: Callable[[], Any]) -> Any:
    """What another library reads, or None where it refuses; how it refuses is its own affair."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except Exception:
        return None


REFUSED, ALONE, COMPARED = "refused", "read", "read as by its peer"


def svmlight(content: bytes) -> str:
    """svmlight text, also a segment at a time."""
    asset_svm.data.svmlight.SEGMENT_BYTES = SIZES[content[0] % 4]
    text = content[1:]
    path, expected = written("rows.svm", text), svmlight_rows(text)
    block = read(path)
    if expected is None:
        assert block is None, "accepted by the library alone"
        return REFUSED
    assert block is not None, "refused by the library alone"
    assert block.y.tolist() == [label for label, _ in expected]
    X = block.X
    for i, (_, row) in enumerate(expected):
        cells = slice(X.indptr[i], X.indptr[i + 1])
        assert dict(zip(X.indices[cells].tolist(), X.data[cells].tolist(), strict=True)) == row
    source = open_rows(path, dtype=np.float64)
    order = np.random.default_rng(0).permutation(source.n_segments)
    labels = [label for part in source.blocks(order) for label in part.y.tolist()]
    assert sorted(labels) == sorted(block.y.tolist())
    theirs = peer(lambda: load_svmlight_file(str(path), n_features=X.shape[1], zero_based=False))
    if theirs is None:
        return ALONE
    assert np.array_equal(theirs[1], block.y), "other targets than scikit-learn"
    assert (theirs[0] != X).nnz == 0, "other rows than scikit-learn"
    return COMPARED


def csv(content: bytes) -> str:
    """A text table with the columns a, b and y, or a header of its own."""
    asset_svm.data.csv.BLOCK_BYTES = max(SIZES[content[0] % 4], 64)
    text = content[1:] if content[0] & 4 else b"a,b,y\n" + content[1:]
    path = written("rows.csv", text)
    block = read(path, target="y")
    if block is None:
        return REFUSED
    expected = csv_rows(text.decode("utf-8-sig", "replace"), "y")
    assert expected is not None, "accepted by the library alone"
    assert block.X.tolist() == [features for _, features in expected]
    labels: list[Any] = [label for label, _ in expected]
    if block.y.dtype.kind == "f":
        labels = [float(label) for label in labels]
    assert block.y.tolist() == labels
    options = {"index_col": False, "float_precision": "round_trip", "encoding": "utf-8-sig"}
    theirs = peer(lambda: pd.read_csv(path, **options).drop(columns="y").astype(float))
    if theirs is None:
        return ALONE
    assert np.array_equal(theirs.to_numpy(), block.X), "other rows than pandas"
    return COMPARED


def packed(content: bytes) -> str:
    """Text in archives, which may be anything."""
    blocks = [read(written(f"rows.svm{suffix}", content)) for suffix in (".gz", ".bz2", ".xz")]
    return REFUSED if all(block is None for block in blocks) else ALONE


def _compare(block: Any, theirs: Any) -> str:
    """Rows against (X, y) of a peer."""
    if block is None:
        return REFUSED
    values = block.X.data if sp.issparse(block.X) else block.X
    assert np.isfinite(values).all() and len(block.y) == block.X.shape[0]
    if theirs is None:
        return ALONE
    X, y = theirs
    rows = block.X.toarray() if sp.issparse(block.X) else block.X
    assert np.array_equal(rows, np.asarray(X, dtype=np.float64)), "other rows than the peer"
    if np.asarray(y).dtype.kind in "iufb" and block.y.dtype.kind in "iufb":
        assert np.array_equal(block.y, y), "other targets than the peer"
    elif block.y.dtype.kind == "f":  # of numbers that stand as text
        assert np.array_equal(block.y, np.asarray(y).astype(np.float64)), "other targets than the peer"
    else:
        assert block.y.astype(str).tolist() == np.asarray(y).astype(str).tolist(), "other targets"
    return COMPARED


def parquet(content: bytes) -> str:
    """Bytes as a Parquet file."""
    path = written("rows.parquet", content)
    block = read(path, target="y")
    if block is None:
        return REFUSED

    def theirs() -> Any:
        frame = pd.read_parquet(path)
        return frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()

    return _compare(block, peer(theirs))


def npy(content: bytes) -> str:
    """Bytes as a matrix of numpy's."""
    path = written("rows.npy", content)
    block = read(path)
    if block is None:
        return REFUSED
    matrix = peer(lambda: np.load(path, allow_pickle=False))
    return _compare(block, None if matrix is None else (matrix[:, :-1], matrix[:, -1]))


def npz(content: bytes) -> str:
    """Bytes as an archive of arrays, dense or CSR."""
    asset_svm.data.array_files.SMALL_MEMBER = 16 << 20 if len(content) % 2 else 100
    path = written("rows.npz", content)
    block = read(path)
    if block is None:
        return REFUSED

    def theirs() -> Any:
        with np.load(path, allow_pickle=False) as arrays:
            if "X" in arrays:
                return arrays["X"], arrays["y"]
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            return sp.csr_matrix(parts, shape=arrays["shape"]).toarray(), arrays["y"]

    return _compare(block, peer(theirs))


class AnyDigest(str):
    """Is that of every file."""

    __hash__ = str.__hash__

    def __ne__(self, other: object) -> bool:
        return False


def model(content: bytes) -> str:
    """Bytes as a model file, with the digest left out of account: a fuzzer cannot guess it."""
    try:
        asset_svm.persistence.load(written("some.asset", content))
    except ModelFileError:
        return REFUSED
    return ALONE


def seeds(name: str) -> list[bytes]:
    """Inputs to begin from."""
    X = np.random.default_rng(0).normal(size=(20, 2)).round(2)
    y = (X[:, 0] > 0).astype(int)
    text = "".join(f"{label} 1:{a} 2:{b}\n" for label, (a, b) in zip(y, X, strict=True)).encode()
    table = "".join(f"{a},{b},{label}\n" for label, (a, b) in zip(y, X, strict=True)).encode()
    if name == "svmlight":
        return [
            b"\0" + text,
            b"\1-1 qid:1 3:1e-5 # x\r\n\n+1 7:.5e22",
            b"\0001 2:123456789012345678901",
        ]
    if name == "csv":
        return [b"\0" + table, b'\0051,2,yes\r\n"3",4,no', b"\4\xef\xbb\xbfa,y\n1,0\n"]
    if name == "packed":
        import bz2
        import gzip
        import lzma

        return [gzip.compress(text, mtime=0), bz2.compress(text), lzma.compress(text)]
    buffers = [io.BytesIO() for _ in range(4)]
    if name == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = pa.table({"a": X[:, 0], "n": y, "y": y.astype(str)})
        pq.write_table(columns, buffers[0])
        pq.write_table(columns, buffers[1], compression="none", use_dictionary=False)
    elif name == "npy":
        np.save(buffers[0], X)
        np.save(buffers[1], np.asfortranarray(X.astype(np.float32)))
    elif name == "npz":
        S = sp.csr_matrix(X)
        np.savez(buffers[0], X=X, y=y)
        np.savez_compressed(buffers[1], X=X, y=y.astype(str))
        parts = dict(data=S.data, indices=S.indices, indptr=S.indptr, shape=np.array(S.shape), y=y)
        np.savez(buffers[2], **parts)
        np.savez_compressed(buffers[3], **parts)
    else:
        return [path.read_bytes() for path in sorted(GOLDEN.glob("*.asset"))]
    return [buffer.getvalue() for buffer in buffers if buffer.getvalue()]


READERS: dict[str, Callable[[bytes], str]] = {
    each.__name__: each for each in (svmlight, csv, packed, parquet, npy, npz, model)
}


def main() -> None:
    """Fuzz the reader named first, from a corpus of its seeds and what is found on the way."""
    if len(sys.argv) < 2 or sys.argv[1] not in READERS:
        raise SystemExit(__doc__)
    if atheris is None:
        raise SystemExit("atheris is not installed; run: pip install atheris")
    name, options = sys.argv[1], sys.argv[2:]
    if name == "model":
        asset_svm.storage.container._digest = lambda kind, header, tensors: AnyDigest()
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for number, content in enumerate(seeds(name)):
        (corpus / f"seed{number}").write_bytes(content)
    reader = READERS[name]

    def attack(content: bytes) -> None:
        if content:
            reader(content)

    atheris.Setup([sys.argv[0], str(corpus), *options], attack)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
