"""Tables as they are: options about their columns, and readers and encoders of what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asset_svm.cli.options import UsageError
from asset_svm.data.raw import RawOptions, looks_like_separated
from asset_svm.encoding.encoding import Note, said
from asset_svm.encoding.plan import NUMBERS
from asset_svm.encoding.summary import TableSummary
from asset_svm.estimators import TableEncoder
from asset_svm.estimators.inside import encoder_of
from asset_svm.pages import Paragraph, Section, Table, Value

TABLES = ("csv", "tsv", "parquet")
ARRAYS = ("npy", "npz")
FOR_TABLES = "goes with csv, tsv or Parquet, and --scale auto"
KINDS = {"number": "numbers", "time": "times", "levels": "categories", "": "nothing"}
MOST_LINES = 5
"""Lines that the log has of what became of the columns."""
SOME_NAMES = 1000


@dataclass(frozen=True)
class ColumnOptions:
    """The options of a command about the columns of a table, as they are written; None is not given."""

    categorical: str | None = None
    numeric: str | None = None
    drop: str | None = None
    missing: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    numbers: str | None = None

    def check_none(self, why: str, *, but: str = "") -> None:
        """Refuse the first option that was given, ``but`` for one."""
        for name, value in vars(self).items():
            if value is not None and name != but:
                raise UsageError(f"--{name} {value}: {why}.")

    def reading(self) -> RawOptions:
        """How the file is read."""
        usual, kinds = RawOptions(), dict[str, str]()
        for names, kind in ((self.categorical, "levels"), (self.numeric, "number")):
            for name in _listed(names):
                if kinds.setdefault(name, kind) != kind:
                    raise UsageError(f"The column {name!r} is in --categorical and in --numeric.")
        missing = usual.missing if self.missing is None else ("", *_listed(self.missing))
        return RawOptions(
            missing,
            self.decimal or usual.decimal,
            self.encoding or usual.encoding,
            kinds,
            tuple(_listed(self.drop)),
        )

    def encoder(self, dtype: Any) -> TableEncoder:
        """What makes numbers of the columns."""
        if self.numbers not in (None, "auto", *NUMBERS):
            raise UsageError(f"--numbers {self.numbers}: choose one of auto, {', '.join(NUMBERS)}.")
        encoder = TableEncoder(dtype=dtype)
        return encoder if self.numbers is None else encoder.set_params(numbers=self.numbers)

    @property
    def told(self) -> dict[str, str]:
        """What prediction must know too, for the provenance of a model."""
        names = ("missing", "decimal", "encoding")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def reading_again(told: dict[str, Any], notes: tuple[Note, ...]) -> RawOptions:
    """How a file is read for a model whose provenance tells this: columns are what they were."""
    given = ColumnOptions(**{name: told.get(name) for name in ("missing", "decimal", "encoding")})
    usual = given.reading()
    kinds = {note.name: note.kind for note in notes if note.kept}
    return RawOptions(usual.missing, usual.decimal, usual.encoding, kinds)


def used_columns(notes: tuple[Note, ...]) -> tuple[str, ...]:
    """The columns that a model needs."""
    return tuple(note.name for note in notes if note.kept)


def column_lines(notes: tuple[Note, ...]) -> list[str]:
    """What was made of which columns, in a few lines."""
    lines = said(notes)
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[: MOST_LINES - 1], f"and {more + 1} more; see asset info"]


def note_lines(estimator: Any) -> list[list[str]]:
    """Every column of the tables that a model takes: its name, its kind, and what became of it."""
    encoder = encoder_of(estimator)
    notes = () if encoder is None else encoder.encoding_.notes
    return [[note.name, KINDS[note.kind], _made(note)] for note in notes]


def columns_section(estimator: Any) -> list[Section]:
    """The section of a report about the columns of a table; none for a model of numbers."""
    rows: list[list[Value]] = [list[Value](line) for line in note_lines(estimator)]
    if not rows:
        return []
    encoder = encoder_of(estimator)
    assert encoder is not None
    width = encoder.encoding_.width
    told = f"{len(rows)} columns make {width} numbers a row, on which the model lives."
    return [Section("Columns", [Paragraph(told), Table(["column", "kind", "becomes"], rows)])]


def _made(note: Note) -> str:
    return note.made if note.kept else f"left out: {note.made}"


def advice_of(summary: TableSummary) -> list[str]:
    """Sentences about columns that are hardly meant to be what they look like."""
    found = []
    for name, each in zip(summary.names, summary.columns, strict=True):
        if each.kind == "levels" and looks_like_separated(list(each.levels)[:SOME_NAMES]):
            found.append(
                f"The cells of {name!r} are numbers with commas, and were taken for levels: say "
                "--decimal , where a comma begins the decimals, or write thousands without separators."
            )
    return found


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",")]
