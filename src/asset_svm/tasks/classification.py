"""Classes, separated one from the rest, or in pairs, by the hinge loss, or another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.utils.multiclass import check_classification_targets

from asset_svm.arrays import Array
from asset_svm.data import OneVsRestTargets, PairTargets, Targets
from asset_svm.losses import Hinge, Logistic, Loss, SquaredHinge
from asset_svm.settings import checks as check
from asset_svm.tasks.base import Constancy, Encoded, train_test_rows

LOSSES: dict[str, type[Any]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
}
"""The losses, by the parameter ``loss``."""
MULTI_CLASS = ("ovr", "ovo")
"""How more than two classes are separated."""
MANY_ROWS, FEW_ROWS = 1 << 14, 1 << 10
"""Of more rows than the first, the second tell which classes there are, unless another comes up."""

FEWEST_OTHERS = 0.1
"""A part of the weight of training rows: where fewer are of other classes, one for all may be right."""
FEW_ODD, LITTLE_GAIN = 0.05, 0.1
"""A model tells no rows apart where it gives another class to fewer rows than this, and makes nearly
all of the errors that it would make with one class for all."""
BOUNDARY = 0.1
"""Distances, in margins, that count as on the decision boundary: of rows at 1, a tenth as many become
landmarks. Fewer of those is worse (MNIST, s = 512: 4.2 % where exp(-2 distance) draws)."""


@dataclass(frozen=True, eq=False)
class Classification:
    """Learning classes.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        A list of them, one an output, before it is known that there are several.
    classes : array, optional
        Sorted; None where they are those of the first rows.
    loss_name : {"hinge", "squared_hinge", "logistic"}
    multi_class : {"ovr", "ovo"}
        Whether more than two classes are separated one from the rest, or every two of them.
    """

    class_weight: Any = None
    classes: Array | None = None
    loss_name: str = "hinge"
    multi_class: str = "ovr"
    numeric: ClassVar[bool] = False
    offset: ClassVar[float] = 0.0
    offset_of_cell: ClassVar[float] = 0.0

    @classmethod
    def of(
        cls,
        class_weight: Any,
        classes: Array | None = None,
        loss: str = "hinge",
        multi_class: str = "ovr",
    ) -> Classification:
        """The task of the parameters, which are checked."""
        check.check_choice("loss", loss, LOSSES)
        check.check_choice("multi_class", multi_class, MULTI_CLASS)
        if isinstance(class_weight, list):  # one an output
            for each in class_weight:
                cls.of(each)
        elif isinstance(class_weight, dict):
            for label, value in class_weight.items():
                check.check_not_negative(f"class_weight[{label!r}]", value)
        elif class_weight is not None:
            check.check_choice("class_weight", class_weight, (None, "balanced"))
        return cls(class_weight, classes, loss, multi_class)

    @property
    def loss(self) -> Loss:
        """The hinge loss, or the one that was asked for."""
        found: Loss = LOSSES[self.loss_name]()
        return found

    @property
    def known(self) -> Array:
        """The classes of a settled task."""
        assert self.classes is not None
        return self.classes

    @property
    def n_models(self) -> int:
        """One model for two classes, else one a class or pair of them; none for one class."""
        count = len(self.known)
        if self.paired:
            return count * (count - 1) // 2
        return count if count > 2 else count - 1

    @property
    def paired(self) -> bool:
        """Whether models are those of pairs of classes."""
        return self.multi_class == "ovo" and len(self.known) > 2

    def by_class(self, decisions: Array) -> Array:
        """(rows, K) decisions as one a class, or one for two classes, from which the largest wins."""
        return pair_votes(decisions, len(self.known)) if self.paired else decisions

    def of_cell(self, *, known: bool, free_intercept: bool) -> Classification:
        """The same task, of rows that have the weights of their classes.

        Of pairs all classes are known: a pair that is not there has decisions of 0.
        """
        known = known or self.paired
        return replace(self, class_weight=None, classes=self.classes if known else None)

    def targets_of_cell(self, y: Array) -> Array:
        """Return the classes themselves."""
        return y

    def with_classes(self, classes: Array) -> Classification:
        """The task where these classes are known."""
        return replace(self, classes=np.asarray(classes))

    def with_epsilon(self, epsilon: float) -> Classification:
        """Raise: there is no tube around classes."""
        raise ValueError(f"epsilon={epsilon!r} is for regression; leave it out.")

    def standardised(self, y: Array, weight: Array) -> tuple[Classification, Array]:
        """The task of rows that have the weights of their classes."""
        return replace(self, class_weight=None), y

    def settled(self, y: Array, weight: Array) -> Classification:
        """The task with the classes of these rows, where they are not known yet."""
        classes = checked_classes(y)
        if self.classes is not None:
            classes = np.asarray(self.classes)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class ({classes.tolist()[0]!r}); a classifier needs rows of at least "
                "2 classes."
            )
        return replace(self, classes=classes)

    def encode(self, y: Array) -> Encoded:
        """One target a class, 1 for its rows and -1 for others, or a pair; two classes have one."""
        classes = self.known
        codes, unseen = _codes(y, classes)
        if unseen.any():
            check_classification_targets(y)
            raise ValueError(
                f"y has the class {np.unique(y[unseen]).tolist()[0]!r}, which is not among the "
                f"announced {classes.tolist()}; pass all classes to the first call of partial_fit."
            )
        kind = PairTargets if self.paired else OneVsRestTargets
        targets: Targets = kind(codes, len(classes))
        return Encoded(targets, self.loss, 1.0, labels=tuple(classes.tolist()))

    def class_weights(self, y: Array, weight: Array) -> Array | None:
        """The factor of each row's weight that its class brings."""
        if self.class_weight is None:
            return None
        codes = np.searchsorted(self.known, y)
        totals = np.bincount(codes, weights=weight, minlength=len(self.known))
        factors = self.factors(totals)
        return None if factors is None else factors[codes]

    def factors(self, totals: Array) -> Array | None:
        """The factor of each class, from the weights of their rows; None where all are 1."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.known.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight={self.class_weight} names {unknown[0]!r}, which is not among the "
                    f"classes {self.known.tolist()} of the rows of positive weight; leave it out."
                )
            per_class = [self.class_weight.get(label, 1.0) for label in self.known.tolist()]
            return np.array(per_class, dtype=np.float64)
        # Of the weighted rows, so that a weight of k counts as k rows.
        present = np.where(totals > 0, totals, np.inf)
        return np.asarray(totals.sum() / (np.count_nonzero(totals) * present))

    def factors_of(self, factors: Array, y: Array) -> Array:
        """What the class of each row multiplies its weight by."""
        return np.asarray(factors[np.searchsorted(self.known, y)])

    def check_stream(self) -> None:
        """Raise where the weights of classes hang on rows that have not come yet."""
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs the numbers of rows of all classes, and partial_fit '
                "sees one batch at a time; pass a dict of weights."
            )

    def predict(self, decisions: Array) -> Array:
        """Return the classes with the largest decisions."""
        return np.asarray(self.known[winner(self.by_class(decisions))])

    def decisions(self, decisions: Array) -> Array:
        """Return one decision a row for two classes, else one a class."""
        return decisions.ravel() if len(self.known) == 2 else self.by_class(decisions)

    def log_probabilities(self, decisions: Array) -> Array:
        """(rows, classes) from decisions that are logarithms of odds; of one class 0."""
        if len(self.known) == 1:
            return np.zeros((len(decisions), 1))
        decisions = decisions.astype(np.float64)
        if decisions.shape[1] == 1:
            return np.asarray(log_expit(np.hstack([-decisions, decisions])))
        each = log_expit(decisions)  # far from all classes their probabilities themselves are all 0
        return np.asarray(each - logsumexp(each, axis=1, keepdims=True))

    def slopes(self, decisions: Array) -> Array | None:
        """Return None: decisions are what a user sees."""
        return None

    def score(self, decisions: Array, y: Array, weight: Array | None) -> float:
        """Return the accuracy."""
        return float(np.average(self.predict(decisions) == y, weights=weight))

    def row_losses(self, decisions: Array, y: Array) -> Array:
        """Return 1 for rows of another class than predicted, else 0."""
        return (self.predict(decisions) != y).astype(np.float64)

    def soft_losses(self, decisions: Array, y: Array) -> Array:
        """Return 0 beyond the right margin, 1 beyond the wrong one, and a straight line between them.

        The margin of a row is its decision, times -1 for the first of two classes; of more, half of
        what its own decision is above the largest of the others.
        """
        codes, decisions = np.searchsorted(self.known, y), self.by_class(decisions)
        if decisions.shape[1] == 1:
            margins = np.where(codes == 1, decisions[:, 0], -decisions[:, 0])
        else:
            rows = np.arange(len(decisions))
            others = decisions.copy()
            others[rows, codes] = -np.inf
            margins = 0.5 * (decisions[rows, codes] - others.max(axis=1))
        return np.asarray(np.clip(0.5 * (1.0 - margins), 0.0, 1.0))

    def importance(self, decisions: Array, y: Array) -> Array:
        """Return numbers that are high for rows near the boundary."""
        decisions = self.by_class(decisions)
        if decisions.shape[1] == 1:
            distance = np.abs(decisions[:, 0])
        else:  # between the two classes that the row could be of
            second, first = np.partition(decisions, -2, axis=1)[:, -2:].T
            distance = 0.5 * (first - second)
        return np.asarray(1.0 / (BOUNDARY + distance))

    def constancy(self, decisions: Array, y: Array, weight: Array, C: float | None) -> Constancy | None:
        """What is to be said where nearly all rows are given one class, and many are of others."""
        found = winner(self.by_class(decisions))
        usual = np.bincount(found).argmax()
        label, share = self.known[usual], weight / weight.sum()
        odd, others = float(share[found != usual].sum()), float(share[y != label].sum())
        wrong = float(share[self.known[found] != y].sum())
        if odd > FEW_ODD or others < FEWEST_OTHERS or wrong < (1.0 - LITTLE_GAIN) * others:
            return None
        seen = (
            f"{'all' if odd == 0.0 else 'nearly all'} of {len(y)} training rows are given the class "
            f"{label!s}, and {100 * others:.2g} % of them are of others"
        )
        return Constancy(seen, [], ["raise C", "choose another gamma"])

    def split(self, y: Array, fraction: float, seed: int) -> tuple[Array, Array]:
        """Split the rows; those of every class are in both parts, where each has two or more."""
        counts = np.unique(y, return_counts=True)[1]
        return train_test_rows(len(y), fraction, seed, y if counts.min() >= 2 else None)

    def count_by_class(self, y: Array) -> Array:
        """Return the number of rows of each class."""
        return np.bincount(np.searchsorted(self.known, y), minlength=len(self.known))


def checked_classes(y: Array) -> Array:
    """The classes of these rows; raises where y are none.

    Many rows are not sorted: a few tell what classes there are, unless another comes up.
    """
    if len(y) <= MANY_ROWS:
        check_classification_targets(y)
        return np.unique(y)
    classes = np.unique(y[:: len(y) // FEW_ROWS])
    if _codes(y, classes)[1].any():
        classes = np.unique(y)
    # The same values, and rows enough for them.
    check_classification_targets(np.tile(classes, 3) if 3 * len(classes) < len(y) else y)
    return classes


def _codes(y: Array, classes: Array) -> tuple[Array, Array]:
    """The number of each row's class, and whether it is none of these."""
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:  # numbers and text have no order
        return np.zeros(len(y), dtype=np.intp), np.ones(len(y), dtype=bool)
    return codes, np.asarray(classes[codes] != y)


def shares_of(each: Array) -> Array:
    """(rows, classes) probabilities from those of each class against the rest, (rows, K)."""
    if each.shape[1] == 1:
        return np.hstack([1.0 - each, each])
    total = each.sum(axis=1, keepdims=True)
    return np.divide(each, total, out=np.full_like(each, 1.0 / each.shape[1]), where=total > 0.0)


def pair_votes(decisions: Array, n_classes: int) -> Array:
    """The (rows, n_classes) votes of pairs of classes, with what breaks ties among them.

    A pair votes for one of its classes. The sum of the decisions for a class, by which those of as many
    votes are told apart, adds less than a third of a vote.
    """
    votes, sums = np.zeros((2, len(decisions), n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        wins = decisions[:, k] > 0
        votes[:, second] += wins
        votes[:, first] += ~wins
        sums[:, second] += decisions[:, k]
        sums[:, first] -= decisions[:, k]
    return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))


def winner(decisions: Array) -> Array:
    """The number of the class with the largest decision, from (rows, outputs)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.intp)
    if decisions.shape[1] == 0:  # of one class
        return np.zeros(len(decisions), dtype=np.intp)
    return np.asarray(decisions.argmax(axis=1))
