"""The edge of a backend: whoever evaluates phi, keeps mapped rows and runs the loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from asset_svm.arrays import Array, Matrix
from asset_svm.data import Order, Targets
from asset_svm.features import Evaluable, FeatureMap, Metric, NystroemFeatures
from asset_svm.solvers import Average, BlockRows, Cut, Driver, MappedRows, ModelAxis, SolverState
from asset_svm.solvers.driver import Form


@dataclass(frozen=True, eq=False)
class Visits:
    """What a driver steps through: rows, in which order, and how many of them at a time.

    Its fields are the parameters of ``Driver`` of the same names.
    """

    rows: MappedRows
    targets: Targets
    order: Order
    cut: Cut
    weight: Array | None = None
    form: Form = "row"
    length: int | None = None
    ahead: bool = False
    shrink_interval: int | None = None


def gather(mapped: MappedRows, rows: Array) -> Array:
    """The features of these rows."""
    V, positions = mapped.fetch(rows)
    return V[positions, : mapped.dimension]


class HeldRows(MappedRows, Protocol):
    """Some of the mapped rows, which lie in memory."""

    @property
    def mean_square(self) -> float:
        """The mean of |v|^2."""

    def margins(self, coef: Array, count: int) -> Array:
        """V coef^T of the first ``count`` rows, (K, count)."""


class Backend(Protocol):
    """Who evaluates phi and runs the loop."""

    @property
    def nystroem(self) -> type[NystroemFeatures]:
        """The class of Nystroem maps whose landmarks are factored here."""

    def rows(self, phi: Evaluable, X: Matrix) -> BlockRows:
        """The rows of X, mapped by phi."""

    def memory(self) -> int:
        """The bytes that mapped rows may take."""

    def cut(self) -> Cut:
        """The blocks of steps between two looks at a run."""

    def working(self, rows: BlockRows) -> AbstractContextManager[None]:
        """Inside, rows are mapped ahead of the loop, where the backend has threads for it."""

    def find_metric(self, phi: FeatureMap, X: Matrix, weight: Array, seed: int) -> Metric:
        """The metric of the data from a random sample of rows."""

    @property
    def hides_rows_by_model(self) -> bool:
        """Whether models that train together may each see other rows."""

    def map_all(self, rows: BlockRows) -> None:
        """Map rows ahead of time, where they are kept."""

    def held_out(self, phi: FeatureMap, X: Matrix) -> Callable[[Array], Array]:
        """A function from (K, d) coef to the (rows, K) decisions on these rows, without intercept."""

    @property
    def block_size(self) -> int:
        """The steps that are taken at a time."""

    def hold(self, mapped: BlockRows, rows: Array) -> HeldRows:
        """Some of the mapped rows, to be stepped through many times."""

    def driver(self, visits: Visits, axis: ModelAxis, state: SolverState, average: Average) -> Driver:
        """A driver of these models through rows of this backend."""
