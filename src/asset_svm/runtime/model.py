"""What ``load`` returns: models that predict as the estimators do that were saved."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from asset_svm.arrays import Array
from asset_svm.exceptions import NonFiniteError
from asset_svm.runtime.description import Description
from asset_svm.runtime.links import OfClasses, OfNumbers, OneClassOnly, Outliers, Quantiles, split
from asset_svm.runtime.operations import NumpyOperations
from asset_svm.runtime.rows import prepared

OPS = NumpyOperations()
BLOCK_NUMBERS = 1 << 22
"""Numbers that are there at a time, about: 32 MB."""
MOST_ROWS = 8192


class Model:
    """A model of a file, which predicts.

    Attributes
    ----------
    description : Description
        What it computes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where the model knows the names of columns.
    """

    methods: ClassVar[tuple[str, ...]] = ("predict",)

    def __init__(self, description: Description) -> None:
        self.description = description
        self.n_features_in_ = description.n_columns
        if description.names is not None:
            self.feature_names_in_ = np.array(description.names, dtype=object)

    def __repr__(self) -> str:
        found = self.description
        return f"<{found.kind} of {found.n_columns} columns: {', '.join(self.methods)}>"

    def predict(self, X: Any) -> Array:
        """The predictions of rows.

        Parameters
        ----------
        X : array, data frame, dict of columns, or list of dicts, one a row

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        """
        return self._predictions(self._raw(X)[0])

    def _predictions(self, raw: Array) -> Array:
        raise NotImplementedError

    def _raw(self, X: Any, *, with_rows: bool = False) -> tuple[Array, Array]:
        """(rows, K) decisions, and, if they are asked for, the half-widths of intervals for 1."""
        found, by = prepared(self.description, X), self.description
        step = int(np.clip(BLOCK_NUMBERS // max(by.breadth, 1), 16, MOST_ROWS))
        decisions, widths = [], [np.empty((0, 1))]
        with np.errstate(over="ignore", invalid="ignore"):  # found and told below
            for start in range(0, found.shape[0], step):
                some = found[start : start + step]
                rows = by.rows(OPS, some.toarray() if hasattr(some, "toarray") else some)
                decisions.append(by.decide(OPS, rows))
                if with_rows and by.intervals is not None:
                    widths.append(by.intervals.widths(OPS, rows))
        raw = np.concatenate(decisions)
        good = np.isfinite(raw).all(axis=1)
        if not good.all():
            raise NonFiniteError(
                f"The decision of row {int(np.argmin(good))} is not finite: its values are too large "
                "for the kernel; scale the columns as in training."
            )
        return raw, np.concatenate(widths)


class Classifier(Model):
    """Classes.

    Attributes
    ----------
    classes_ : ndarray, or a list of them for several outputs
        Of labels that are there (1) or not (0) their numbers.
    """

    methods: ClassVar[tuple[str, ...]] = ("predict", "decision_function")

    def __init__(self, description: Description) -> None:
        super().__init__(description)
        known = [head.classes for head in self._heads]
        indicator = all(np.isin(each, (0, 1)).all() for each in known)
        if not description.several:
            self.classes_: Any = known[0]
        else:
            self.classes_ = np.arange(len(known)) if indicator else known

    @property
    def _heads(self) -> tuple[OfClasses, ...]:
        return self.description.heads  # type: ignore[return-value]

    @property
    def _is_multilabel(self) -> bool:
        return all(len(head.classes) <= 2 for head in self._heads)

    def decision_function(self, X: Any) -> Any:
        """Decisions: (rows,) for two classes, (rows, classes) for more; of several outputs a list,
        or (rows, outputs) where each has two classes at most.
        """
        raw, _ = self._raw(X)
        heads = split(OPS, self._heads, raw)
        found = [head.decisions(OPS, own) for head, own in heads]  # type: ignore[union-attr]
        flat = [each.ravel() if each.shape[1] == 1 else each for each in found]
        if not self.description.several:
            return flat[0]
        return np.column_stack(flat) if self._is_multilabel else flat

    def _predictions(self, raw: Array) -> Array:
        heads = split(OPS, self._heads, raw)
        columns = [head.classes[head.codes(OPS, own)[:, 0]] for head, own in heads]  # type: ignore[union-attr]
        if not self.description.several:
            return np.asarray(columns[0])
        text = {column.dtype.kind in "UO" for column in columns}
        return np.column_stack([each.astype(object) for each in columns] if len(text) > 1 else columns)


class _WithProbabilities(Classifier):
    """Classes with probabilities."""

    methods: ClassVar[tuple[str, ...]] = ("predict", "decision_function", "predict_proba")

    def predict_proba(self, X: Any) -> Any:
        """Probabilities: (rows, classes); of several outputs a list, or (rows, outputs), of the second
        class of each, where each has two classes at most.
        """
        return self._of_classes(X, "probabilities", (0.0, 1.0))

    def _of_classes(self, X: Any, what: str, certain: tuple[float, float]) -> Any:
        """What heads have of every class; ``certain``: of a label that no row has, or every one."""
        raw, _ = self._raw(X)
        heads = split(OPS, self._heads, raw)
        each = [getattr(head, what)(OPS, own) for head, own in heads]
        if not self.description.several:
            return each[0]
        if not self._is_multilabel:
            return each
        return np.column_stack(
            [
                np.full(len(raw), certain[head.side > 0.0])
                if isinstance(head, OneClassOnly)
                else found[:, 1]
                for (head, _), found in zip(heads, each, strict=True)
            ]
        )


class _Logistic(_WithProbabilities):
    """Classes whose decisions are logarithms of odds."""

    methods: ClassVar[tuple[str, ...]] = (*_WithProbabilities.methods, "predict_log_proba")

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of probabilities, of the shapes of ``predict_proba``."""
        return self._of_classes(X, "log_probabilities", (-np.inf, 0.0))


class _ByProbabilities(_WithProbabilities):
    """Classes by a mean of probabilities, which has no decisions."""

    methods: ClassVar[tuple[str, ...]] = ("predict", "predict_proba")
    decision_function = property()


class Regressor(Model):
    """Numbers."""

    @property
    def _heads(self) -> tuple[OfNumbers, ...]:
        return self.description.heads  # type: ignore[return-value]

    def _predictions(self, raw: Array) -> Array:
        with np.errstate(over="ignore"):
            found = [head.values(OPS, own) for head, own in split(OPS, self._heads, raw)]  # type: ignore[union-attr]
        values = np.concatenate(found, axis=1)
        return values if self.description.several else values[:, 0]


class _WithIntervals(Regressor):
    """Numbers with intervals around them."""

    methods = ("predict", "predict_interval")

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """(rows, 2): the ends of intervals that hold y with a probability of ``coverage`` at least."""
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must be between 0 and 1; 0.9 is usual.")
        raw, widths = self._raw(X, with_rows=True)
        intervals = self.description.intervals
        assert intervals is not None
        reach = intervals.factor(coverage) * widths
        ends = np.concatenate([raw - reach, raw + reach], axis=1)
        with np.errstate(over="ignore"):
            return np.asarray(self._heads[0].values(OPS, ends))


class QuantileRegressor(Regressor):
    """Quantiles, (rows, quantiles), in order; (rows,) where one was given as a number."""

    def _predictions(self, raw: Array) -> Array:
        head = self._heads[0]
        assert isinstance(head, Quantiles)
        with np.errstate(over="ignore"):
            found = head.values(OPS, raw)
        return found.ravel() if head.alone else np.asarray(found)


class OutlierDetector(Model):
    """Rows inside (1) or outside (-1)."""

    methods = ("predict", "decision_function", "score_samples")

    @property
    def offset_(self) -> float:
        """The threshold of scores."""
        head = self.description.heads[0]
        assert isinstance(head, Outliers)
        return -head.offset

    def decision_function(self, X: Any) -> Array:
        """Scores less the threshold: negative for outliers."""
        return self._raw(X)[0].ravel()

    def score_samples(self, X: Any) -> Array:
        """How much rows are like those that were learnt from."""
        return self.decision_function(X) + self.offset_

    def _predictions(self, raw: Array) -> Array:
        return np.where(raw.ravel() >= 0.0, 1, -1)


def model_of(description: Description) -> Model:
    """The model with the methods that a description allows."""
    kind, heads = description.kind, description.heads
    if kind == "outlier detector":
        return OutlierDetector(description)
    if kind == "quantile regressor":
        return QuantileRegressor(description)
    if kind == "regressor":
        return (Regressor if description.intervals is None else _WithIntervals)(description)
    if not all(getattr(head, "has_decisions", False) for head in heads):
        return _ByProbabilities(description)
    if all(getattr(head, "has_probabilities", False) for head in heads):
        logistic = all(hasattr(head, "log_probabilities") for head in heads)
        return (_Logistic if logistic else _WithProbabilities)(description)
    return Classifier(description)
