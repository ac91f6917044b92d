"""The weights of a mean of candidates, by greedy selection with replacement.

Caruana, Niculescu-Mizil, Crew, Ksikes, "Ensemble selection from libraries of models" (ICML 2004): the
candidate whose decisions lower the loss of the mean most is added, again and again. A mean is worth
taking where weights that one half of the rows has found gain on the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from asset_svm.arrays import Array

PICKS = 12
"""Candidates that are added; a weight is a multiple of one over it."""
MOST_MEMBERS = 4
LEAST_WEIGHT = 0.1
"""Members of less are left out."""
WORTH = 1.0
"""Standard errors that the gain of a mean must be above."""
FEWEST_ROWS = 100

Losses = Callable[[Array], Array]
"""From (rows, outputs) decisions to the loss of every row."""


def greedy_weights(decisions: Sequence[Array], losses: Losses) -> Array:
    """The weights of candidates with these decisions, which add up to 1; most are 0."""
    counts = np.zeros(len(decisions))
    total = np.zeros_like(decisions[0])
    for _ in range(PICKS):
        open_ = [
            number
            for number in range(len(decisions))
            if counts[number] or np.count_nonzero(counts) < MOST_MEMBERS
        ]
        means = [float(losses((total + decisions[k]) / (counts.sum() + 1)).mean()) for k in open_]
        best = open_[int(np.argmin(means))]
        counts[best] += 1
        total = total + decisions[best]
    weights = counts / counts.sum()
    weights[weights < LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def worthwhile_weights(
    decisions: Sequence[Array], losses_of: Callable[[Array], Losses], seed: int
) -> Array | None:
    """The weights of a mean that gains over the first candidate; None where it does not.

    ``losses_of`` makes a function of the numbers of rows.
    """
    m = len(decisions[0])
    if len(decisions) < 2 or m < FEWEST_ROWS:
        return None
    order = np.random.default_rng([seed, 23]).permutation(m)
    gains = np.empty(m)
    for chosen, judged in ((order[: m // 2], order[m // 2 :]), (order[m // 2 :], order[: m // 2])):
        weights = greedy_weights([each[chosen] for each in decisions], losses_of(chosen))
        mean = sum(w * each[judged] for w, each in zip(weights, decisions, strict=True))
        losses = losses_of(judged)
        gains[judged] = losses(decisions[0][judged]) - losses(np.asarray(mean))
    if gains.mean() <= WORTH * gains.std() / np.sqrt(m):
        return None
    weights = greedy_weights(decisions, losses_of(np.arange(m)))
    return weights if np.count_nonzero(weights) > 1 else None
