"""What columns are in parts of a table, before anything else is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from asset_svm.encoding.table import Table, gaps, kind_of


@dataclass(eq=False)
class ColumnKinds:
    """The kinds that columns had in parts of a table, each where it had a value.

    Parameters
    ----------
    seen : dict
        The kinds of each column, in the order of the columns; of no table yet where it is empty.
    """

    seen: dict[str, set[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.seen)

    @property
    def mixed(self) -> tuple[str, ...]:
        """Columns of several kinds, which are of levels, everywhere."""
        return tuple(name for name, kinds in self.seen.items() if len(kinds) > 1)

    @property
    def settled(self) -> dict[str, str]:
        """What every column is that has a value somewhere."""
        kinds = {name: next(iter(kinds)) for name, kinds in self.seen.items() if kinds}
        return kinds | dict.fromkeys(self.mixed, "levels")

    def observe(self, table: Table) -> None:
        """Take rows into account."""
        for name, column in zip(table.names, table.columns, strict=True):
            kinds = self.seen.setdefault(name, set())
            if not gaps(column).all():
                kinds.add(kind_of(column))

    def join(self, other: ColumnKinds) -> None:
        """Take what was seen of other rows into account."""
        for name, kinds in other.seen.items():
            self.seen[name] = self.seen.get(name, set()) | kinds
