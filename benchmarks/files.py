"""Files larger than memory: how fast they are read, and what training on one takes.

python benchmarks/files.py rates            rows and bytes a second of every format
python benchmarks/files.py train [--gb 2]   `asset train` on a generated svmlight file: peak memory,
                                            time, and the part of it that learning waits for rows
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import asset_svm

FEATURES = 20
BLOCK = 50_000
SIZES = np.maximum(0.5 ** np.arange(FEATURES), 0.01)
"""Of the columns: a few tell much and many little, as after a principal component analysis."""
COMMAND = """
import sys
from pathlib import Path
from asset_svm.cli.main import main
code = main(sys.argv[1:])
status = Path("/proc/self/status")
if status.exists():
    kilobytes = int(status.read_text().split("VmHWM:")[1].split()[0])
else:  # counts what the process that started this one held, where that was more
    import resource
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("peak", kilobytes, sep="\\t")
sys.exit(code)
"""
"""``asset``, with the most memory that its process held."""


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in [-1, 1] with four decimals, and labels that no plane separates."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-0.9999, 0.9999, size=(count, FEATURES)) * SIZES, 4)
    score = np.sin(4 * X[:, 0]) + 16 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=count)
    return X, np.where(score > 0, 1, -1)


def svmlight_text(X: np.ndarray, y: np.ndarray) -> bytes:
    """The rows as text, made of columns of bytes: a hundred times as fast as formatting numbers."""
    m = len(X)
    columns = [np.where(y > 0, ord("+"), ord("-"))[:, None], np.full((m, 1), ord("1"))]
    digits = np.abs(np.rint(X * 10_000)).astype(int)
    for j in range(FEATURES):
        head = f" {j + 1}:".encode()
        columns.append(np.tile(np.frombuffer(head, np.uint8), (m, 1)))
        columns.append(np.where(X[:, j] < 0, ord("-"), ord("+"))[:, None])
        columns.append(np.tile(np.frombuffer(b"0.", np.uint8), (m, 1)))
        columns += [(digits[:, j] // 10**k % 10 + 48)[:, None] for k in (3, 2, 1, 0)]
    columns.append(np.full((m, 1), 10))
    return np.concatenate(columns, axis=1).astype(np.uint8).tobytes()


def generate(path: Path, n_bytes: float) -> int:
    """Write about so many bytes of svmlight text; returns the number of rows."""
    written = count = 0
    with path.open("wb") as file:
        while written < n_bytes:
            written += file.write(svmlight_text(*rows(BLOCK, count)))
            count += BLOCK
    return count


def rates(folder: Path, count: int = 200_000) -> None:
    """Read the same rows from every format, once for the compiler and then timed."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    X, y = rows(count, 0)
    text = svmlight_text(X, y)
    (folder / "rows.svm").write_bytes(text)
    (folder / "rows.svm.gz").write_bytes(gzip.compress(text, 6))
    (folder / "rows.svm.bz2").write_bytes(bz2.compress(text))
    (folder / "rows.svm.xz").write_bytes(lzma.compress(text, preset=1))
    table = pa.table({**{f"x{j}": X[:, j] for j in range(FEATURES)}, "y": y})
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    np.save(folder / "rows.npy", np.column_stack([X, y]).astype(np.float32))
    np.savez(folder / "rows.npz", X=X.astype(np.float32), y=y)
    S = sp.csr_matrix(X.astype(np.float32))
    parts = dict(data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    np.savez(folder / "csr.npz", **parts)
    print(f"{count} rows of {FEATURES} features, {asset_svm.__version__}")
    print("| file | MB | MB/s | rows/s |\n|---|---|---|---|")
    for path in sorted(folder.iterdir()):
        best = np.inf
        for _ in range(3):
            begun = time.perf_counter()
            found = sum(len(block) for block in asset_svm.open_rows(path).blocks())
            best = min(best, time.perf_counter() - begun)
            assert found == count
        size = path.stat().st_size / 1e6
        print(f"| {path.name} | {size:.0f} | {size / best:.0f} | {count / best:.3g} |")


def train(folder: Path, gigabytes: float, memory: str, components: int, epochs: int) -> None:
    """``asset train`` in a process of its own, with its peak memory."""
    data, model = folder / "big.svm", folder / "big.asset"
    count = generate(data, 1e9 * gigabytes)
    (folder / "test.svm").write_bytes(svmlight_text(*rows(BLOCK, 10**9)))
    command = [sys.executable, "-c", COMMAND, "train", str(data), "-o", str(model)]
    command += ["--memory", memory, "--n-components", str(components), "--max-iter", str(epochs)]
    command += ["--gamma", "2", "--C", "1", "--test", str(folder / "test.svm")]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    last = asset_svm.load(model).history_[-1]
    told = dict(line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 1)
    print(f"{data.stat().st_size / 1e9:.2f} GB, {count} rows, --memory {memory}, s = {components}")
    peak = float(told["peak"]) / 1e3
    print(f"peak memory {peak:.0f} MB, {seconds:.0f} s in all, test error {told['test error']}")
    print(
        f"{epochs} epochs after the first pass: {last['seconds']:.0f} s, of which learning waited for "
        f"rows {last['waited']:.1f} s ({100 * last['waited'] / last['seconds']:.0f} %)"
    )


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rates", "train"))
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--memory", default="400MB")
    parser.add_argument("--components", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.what == "rates":
            rates(Path(name))
        else:
            train(Path(name), options.gb, options.memory, options.components, options.epochs)


if __name__ == "__main__":
    main()
