"""Several outputs: a task of its own for each column of the targets, on the same rows and the same map.

Targets have the shape (rows, outputs). The models of all outputs stand one after the other, those of
the first output first, and train together; each output has an offset, units or classes of its own. A
column of classes in which there is one class only has no model, and is always given that class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asset_svm.arrays import Array
from asset_svm.data import JoinedTargets
from asset_svm.data.several_targets import beside, columns_of
from asset_svm.losses import Loss
from asset_svm.tasks.base import Constancy, Encoded, train_test_rows
from asset_svm.tasks.classification import Classification, checked_classes
from asset_svm.tasks.regression import Regression
from asset_svm.tasks.units import Units, UnitsOfColumns

Part = Classification | Regression


@dataclass(frozen=True, eq=False)
class Outputs:
    """Learning several columns of targets at once.

    Parameters
    ----------
    parts : tuple of Task
        The task of each output; all are of the same kind.
    """

    parts: tuple[Part, ...]

    @property
    def numeric(self) -> bool:
        """Whether targets are numbers, and not classes."""
        return self.parts[0].numeric

    @property
    def loss(self) -> Loss:
        """The loss of a margin and a target, the same for every output."""
        return self.parts[0].loss

    @property
    def classes(self) -> list[Array] | None:
        """The classes of each output; None where there are none, or where they are not known yet."""
        found = [part.classes for part in self.parts]
        return None if any(each is None for each in found) else found  # type: ignore[return-value]

    @property
    def offset(self) -> Array | float:
        """The numbers that are subtracted from the targets of each model."""
        return np.array([part.offset for part in self.parts]) if self.numeric else 0.0

    @property
    def offset_of_cell(self) -> Array | float:
        """The offsets."""
        return self.offset

    @property
    def in_units(self) -> bool:
        """Whether targets have units that are not the user's."""
        return any(part.in_units for part in self.parts if isinstance(part, Regression))

    @property
    def n_models(self) -> int:
        """The number K of models of all outputs."""
        return sum(part.n_models for part in self.parts)

    @property
    def is_indicator(self) -> bool:
        """Whether every output says if a label is there, by 1, or not, by 0."""
        return not self.numeric and all(np.isin(each, (0, 1)).all() for each in self.classes or ())

    @property
    def is_multilabel(self) -> bool:
        """Whether no output has more than two classes, so that one decision each says all."""
        return not self.numeric and all(len(part.known) <= 2 for part in self._classified)

    @property
    def paired(self) -> bool:
        """Whether models of some output are those of pairs of classes."""
        return any(part.paired for part in self._classified)

    @property
    def _classified(self) -> tuple[Classification, ...]:
        return tuple(part for part in self.parts if isinstance(part, Classification))

    def _each(self, change: Callable[[Part, Array], Any], y: Array) -> Outputs:
        """The task with every part changed by its column of the targets."""
        columns = columns_of(y)
        return Outputs(tuple(change(part, own) for part, own in zip(self.parts, columns, strict=True)))

    def _split(self, decisions: Array) -> Iterator[tuple[Part, Array]]:
        """Every part with its own columns of (rows, K) decisions."""
        first = 0
        for part in self.parts:
            yield part, decisions[:, first : first + part.n_models]
            first += part.n_models

    def _by_output(self, method: str, decisions: Array, y: Array) -> Array:
        """A function of the decisions and targets of each output, (outputs, rows)."""
        columns = columns_of(y)
        split = zip(self._split(decisions), columns, strict=True)
        return np.array(
            [getattr(part, method)(own, target) for (part, own), target in split if part.n_models]
        )

    def of_cell(self, *, known: bool, free_intercept: bool) -> Outputs:
        """The task of a model of one cell, which knows all classes."""
        return Outputs(
            tuple(part.of_cell(known=True, free_intercept=free_intercept) for part in self.parts)
        )

    def targets_of_cell(self, y: Array) -> Array:
        """The targets less the offsets of all cells."""
        return y - self.offset if self.numeric else y

    def with_classes(self, classes: Any) -> Outputs:
        """The task where these classes of each output are known."""
        if self.numeric:
            return self
        parts = zip(self.parts, classes, strict=True)
        return Outputs(tuple(part.with_classes(np.asarray(own)) for part, own in parts))

    def with_epsilon(self, epsilon: float) -> Outputs:
        """The task with another half-width of the tube."""
        return Outputs(tuple(part.with_epsilon(epsilon) for part in self.parts))

    def standardised(self, y: Array, weight: Array) -> tuple[Outputs, Array]:
        """The task of a quick look at these rows, and their targets in units of its own."""
        columns = zip(self.parts, columns_of(y), strict=True)
        found = [part.standardised(own, weight) for part, own in columns]
        return Outputs(tuple(part for part, _ in found)), beside([own for _, own in found])

    def settled(self, y: Array, weight: Array) -> Outputs:
        """The task of these rows; an output may have one class, but not every one."""

        def settle(part: Part, own: Array) -> Part:
            if isinstance(part, Classification):
                classes = checked_classes(own) if part.classes is None else part.classes
                return replace(part, classes=np.asarray(classes))
            return part.settled(own, weight)

        found = self._each(settle, y)
        if found.n_models == 0:
            raise ValueError(
                f"y has one class in each of its {len(self.parts)} columns; a classifier needs rows of "
                "at least 2 classes."
            )
        return found

    def encode(self, y: Array) -> Encoded:
        """The targets of all outputs, as the solver sees them."""
        columns = columns_of(y)
        each = [part.encode(own) for part, own in zip(self.parts, columns, strict=True)]
        targets, loss = JoinedTargets(tuple(one.targets for one in each)), self.loss
        if not self.numeric:
            return Encoded(targets, loss, 1.0)
        # Of an output inside the tube 0 is the solution, and any ball has it.
        y_max = np.array([one.y_max for one in each])
        y_max = np.where(y_max > loss.tube, y_max, y_max.max())
        return Encoded(targets, loss, y_max, self.offset)

    def class_weights(self, y: Array, weight: Array) -> Array | None:
        """The factor of each row's weight: the product of what its classes bring."""
        return _product(
            part.class_weights(own, weight) for part, own in zip(self.parts, columns_of(y), strict=True)
        )

    def factors(self, totals: Any) -> list[Array | None] | None:
        """The factor of each class of each output; None where all are 1."""
        if self.numeric:
            return None
        found = [part.factors(own) for part, own in zip(self.parts, totals, strict=True)]
        return None if all(each is None for each in found) else found

    def factors_of(self, factors: Any, y: Array) -> Array:
        """The product of what the classes of each row bring."""
        columns = zip(self._classified, factors, columns_of(y), strict=True)
        found = _product(
            None if own is None else part.factors_of(own, column) for part, own, column in columns
        )
        assert found is not None
        return found

    def check_stream(self) -> None:
        """Raise where some output cannot be learnt from one batch after the other."""
        for part in self.parts:
            part.check_stream()

    def predict(self, decisions: Array) -> Array:
        """The (rows, outputs) predictions."""
        return beside([part.predict(own) for part, own in self._split(decisions)])

    def decisions(self, decisions: Array) -> Any:
        """(rows, outputs) decisions where each has one; else a list of those of each output."""
        if self.numeric:
            return decisions
        found = [
            part.decisions(own) if part.n_models else _of_one_class(part, len(own))
            for part, own in self._split(decisions)
        ]
        return np.column_stack(found) if self.is_multilabel else found

    def log_probabilities(self, decisions: Array) -> Any:
        """(rows, outputs) of the second class of each, where decisions have that shape; else a list.

        The list has those of all classes of each output, (rows, classes). A label that every row has
        is certain, and so is one that none has.
        """
        split = [
            (part, own) for part, own in self._split(decisions) if isinstance(part, Classification)
        ]
        if not self.is_multilabel:
            return [part.log_probabilities(own) for part, own in split]
        return np.column_stack(
            [
                part.log_probabilities(own)[:, 1]
                if part.n_models
                else np.where(_of_one_class(part, len(own)) > 0.0, 0.0, -np.inf)
                for part, own in split
            ]
        )

    def slopes(self, decisions: Array) -> Array | None:
        """The derivatives of predictions by decisions; None where they are the same."""
        found = [part.slopes(own) for part, own in self._split(decisions)]
        return None if found[0] is None else np.hstack([each for each in found if each is not None])

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """The mean R^2 of all outputs, or the part of the rows whose classes are all right."""
        if not self.numeric:
            right = (self.predict(decisions) == y).all(axis=1)
            return float(np.average(right, weights=weight))
        columns = zip(self.parts, decisions.T, columns_of(y), strict=True)
        return float(np.mean([part.score(own, target, weight) for part, own, target in columns]))

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """The mean over outputs of what each row adds to the error."""
        return np.asarray(self._by_output("row_losses", decisions, y).mean(axis=0))

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """The mean over outputs of the same, smoothed where it jumps."""
        return np.asarray(self._by_output("soft_losses", decisions, y).mean(axis=0))

    def importance(self, decisions: Array, y: Array) -> Array:
        """How likely each row should be a landmark: by each output in units of its mean."""
        each = self._by_output("importance", decisions, y)
        usual = each.mean(axis=1, keepdims=True)
        return np.asarray((each / np.where(usual > 0.0, usual, 1.0)).sum(axis=0))

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where the decisions of some output tell no rows apart."""
        columns = zip(self._split(decisions), columns_of(y), strict=True)
        for number, ((part, own), target) in enumerate(columns):
            told = part.constancy(own, target, weight, C) if part.n_models else None
            if told is not None:
                return replace(told, seen=f"of output {number}, counted from 0, {told.seen}")
        return None

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """Split the rows at random."""
        return train_test_rows(len(y), fraction, seed)

    def count_by_class(self, y: Array) -> Array:
        """The number of all rows: they have a class of each output."""
        return np.array([len(y)])


def for_targets(task: Any, y: Array, *, first: bool = True) -> Any:
    """The task of targets of this shape; raises where it has another number of outputs already.

    ``first`` says that no targets have come before these.
    """
    count = 1 if y.ndim == 1 else y.shape[1]
    known = len(task.parts) if isinstance(task, Outputs) else 1
    begun = not first or isinstance(task, Outputs) or task.classes is not None
    if begun and known != count:
        what = f"{known} column" if known == 1 else f"{known} columns"
        raise ValueError(
            f"y has the shape {y.shape}, and this model, or the classes that were announced, have "
            f"targets of {what}; give as many columns, and to partial_fit the classes of each."
        )
    if isinstance(task, Outputs):
        return task
    return several(task, count) if y.ndim == 2 or _has_list(task) else task


def several(task: Any, count: int) -> Outputs:
    """The task of so many outputs, each as this one is; weights of classes may be those of each."""
    if not isinstance(task, Classification | Regression):
        raise ValueError(
            f"y has {count} columns, and quantiles are those of one; fit an estimator for each column."
        )
    if isinstance(task, Regression) or not _has_list(task):
        return Outputs((task,) * count)
    if len(task.class_weight) != count:
        raise ValueError(
            f"class_weight has {len(task.class_weight)} entries, and y has {count} columns; give one "
            "for each column, or one for all."
        )
    return Outputs(tuple(replace(task, class_weight=each) for each in task.class_weight))


def _has_list(task: Any) -> bool:
    return isinstance(getattr(task, "class_weight", None), list)


def units_of(task: Any) -> Units | UnitsOfColumns | None:
    """What makes targets of a task out of the user's, where these are not the same."""
    if not isinstance(task, Outputs):
        found: Units | None = getattr(task, "units", None)
        return found
    each = [part.units for part in task.parts if isinstance(part, Regression)]
    own = tuple(units for units in each if units is not None)
    return UnitsOfColumns(own) if own else None


def with_outputs(task: Any, make: Callable[[Any], Any]) -> Any:
    """``make`` of a task of one output, or of each of several."""
    return Outputs(tuple(map(make, task.parts))) if isinstance(task, Outputs) else make(task)


def _product(factors: Any) -> Array | None:
    """The product of factors, of which some may be None; None where all are."""
    found = None
    for each in factors:
        if each is not None:
            found = each if found is None else found * each
    return found


def _of_one_class(part: Part, count: int) -> Array:
    """The decisions of an output without a model: on the side of its class, where that is a label."""
    return np.full(count, 1.0 if part.classes is not None and part.classes[0] == 1 else -1.0)
