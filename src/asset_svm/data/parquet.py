"""Parquet, a file or a folder of them, read by pyarrow's threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asset_svm.arrays import Array, Matrix
from asset_svm.data.raw import BadCellError, RawOptions, target_cells
from asset_svm.data.raw_arrow import arrow_column, categorical, check_type
from asset_svm.data.several_targets import beside
from asset_svm.data.source import BLOCK_BYTES, Block, RowSource, check_targets
from asset_svm.data.tables import Columns, as_matrix, need_pyarrow
from asset_svm.data.text_targets import TextTargets
from asset_svm.encoding.table import Column, Table
from asset_svm.exceptions import DataError


class ParquetRows(RowSource):
    """Rows of Parquet files: numeric columns, or any as they came, and a target of numbers or text.

    Parameters
    ----------
    path : path
        A file, or a folder whose ``*.parquet`` files follow each other by name.
    target, features, targets, dtype, raw
        As in ``CsvRows``.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        target: str | Sequence[str] | None = None,
        features: tuple[str, ...] | None = None,
        targets: bool = True,
        dtype: npt.DTypeLike = np.float32,
        raw: RawOptions | None = None,
    ):
        need_pyarrow("Reading Parquet")
        self.path, self.name, self.dtype = Path(path), str(path), np.dtype(dtype)
        self.files = (self.path,)
        if self.path.is_dir():
            self.files = tuple(sorted(self.path.rglob("*.parquet")))
        if not self.files:
            raise DataError(f"{self.name} is a folder without *.parquet files.")
        self.n_rows, self.groups = 0, list[tuple[Path, int, int]]()  # file, its group, first row
        schemas, levels = list[Any](), set[str]()
        for file in self.files:
            with _opened(file) as parquet:
                schema = parquet.schema_arrow
                schemas.append(schema)
                if raw is not None:
                    levels |= categorical(parquet.metadata.metadata)
                if schema.names != schemas[0].names:
                    raise DataError(f"{file} has other columns than {self.files[0]}.")
                self.n_rows += parquet.metadata.num_rows
                row = 0
                for group in range(parquet.num_row_groups):
                    self.groups.append((file, group, row))
                    row += parquet.metadata.row_group(group).num_rows
        self.n_segments = len(self.groups)
        names = schemas[0].names
        if raw is not None:
            names = raw.kept(names, self.name, strict=features is None)
            raw = replace(raw, kinds={**dict.fromkeys(levels, "levels"), **raw.kinds})
        self.columns = Columns.choose(names, target, features, self.name, targets=targets)
        self.raw = raw
        for column in self.columns.features:
            if raw is None:
                _check_numeric(schemas[0].field(column), self.name)
                continue
            for file, schema in zip(self.files, schemas, strict=True):
                check_type(schema.field(column), raw, str(file))
        self.feature_names, self.n_features = self.columns.features, len(self.columns.features)

    def settle(self, kinds: Mapping[str, str]) -> None:
        """Read columns of tables as these kinds from now on."""
        if self.raw is not None:
            self.raw = replace(self.raw, kinds={**self.raw.kinds, **kinds})

    def _read(self, order: Array | None) -> Iterator[Block]:
        step = max(1, min(BLOCK_BYTES // (8 * len(self.columns.features)), 65_536))
        numbers = range(len(self.groups)) if order is None else order.tolist()
        gaps = frozenset() if self.raw is None else self.raw.gaps
        texts = {name: TextTargets(gaps) for name in self.columns.targets}
        for file, group, row in (self.groups[number] for number in numbers):
            with _opened(file) as parquet:
                batches = parquet.iter_batches(step, row_groups=[group], columns=self.columns.all)
                read = row
                for batch in _told(batches, file):
                    if not batch.num_rows:
                        continue
                    place = partial(_place, file, read)
                    y = [self._target(batch, place, name, each) for name, each in texts.items()]
                    yield Block(self._features(batch, place), beside(y) if y else None)
                    read += batch.num_rows

    def _features(self, batch: Any, place: Callable[[int], str]) -> Matrix:
        if self.raw is None:
            return as_matrix(batch, self.columns, self.dtype, place)
        columns = list[Column]()
        for name in self.columns.features:
            try:
                columns.append(arrow_column(batch.column(name), self.raw.kinds.get(name), self.raw))
            except BadCellError as fault:
                raise DataError(f"{place(fault.row)}, column {name!r}: {fault.said}.") from None
        return Table(self.columns.features, tuple(columns))

    def _target(
        self, batch: Any, place: Callable[[int], str], column: str, texts: TextTargets
    ) -> Array:
        import pyarrow as pa

        def where(i: int) -> str:
            return f"{place(i)}, column {column!r}"

        cells = batch.column(column)
        if cells.null_count:
            i = int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"{where(i)}: the target is missing; drop the row, or fill it in.")
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
            if self.raw is not None:
                cells = target_cells(cells, self.raw, where)
            return texts.of_arrow(cells, where)
        y = cells.to_numpy(zero_copy_only=False)
        if y.dtype.kind not in "biuf":
            raise DataError(
                f"{self.name}: the target {column!r} has the type {cells.type}; use numbers, truth "
                "values or text."
            )
        check_targets(y, where)
        return np.asarray(y)


def _place(file: Path, read: int, i: int) -> str:
    return f"{file}, row {read + i + 1}"


def _opened(file: Path) -> Any:
    """The file; without reading ahead of the batches, so that a large row group fits."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{file} is not a whole Parquet file ({_first_line(error)}).") from None


def _told(batches: Iterator[Any], file: Path) -> Iterator[Any]:
    """The batches; damage that pyarrow finds becomes a ``DataError``."""
    import pyarrow as pa

    try:
        yield from batches
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is damaged ({_first_line(error)}).") from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def _check_numeric(field: Any, name: str) -> None:
    import pyarrow as pa

    kind = field.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{name}: the column {field.name!r} has the type {kind}, not numbers; leave it out or "
            "encode its values as numbers."
        )
