"""The parameters of both searches, described once."""

from __future__ import annotations

import inspect

from asset_svm.estimators.documentation import choices
from asset_svm.kernels import NAMES

SEARCH = f"""\
kernel : "auto", {choices(NAMES)} or callable, default="auto"
    "auto": a race tries several, a grid has "rbf".
Cs : "auto", int or list of float, default="auto"
    Values of C to try in a grid; a number spreads so many from 0.01 to 10000, evenly in their
    logarithms, for regression times the power of 10 nearest to the spread of y (1.4826 times the median
    distance to the median). "auto": 10 of a grid; where nothing else of a grid is given either
    (``gammas``, ``gamma``, ``epsilons``, ``search_iter``, ``keep_path``, steps, approximation), a race
    over kernels, relevances, encodings, bandwidths, Cs, one map and cells.
gammas : list of float, "auto" or None, default="auto"
    Values of gamma to try. "auto": 1/16, 1/4, 1, 4, 16 and 64 times one over the median squared
    distance of two rows, and at most four beyond these, each 4 times the last, as long as the best of
    a round is the first or last (the square roots of all these, where gamma is one over a length:
    "exponential", "matern32", "matern52"); but ``gamma`` only where that is given, or the kernel has
    none. None: ``gamma`` only. Three or more race where there are 9000 rows or more: all are searched
    on a part of the rows, the better third on three times as many, at most two on all.
cv : int, float, splitter or iterable, default=None
    Folds (None: 5), a fraction of the rows to hold out once, a splitter of sklearn.model_selection, or
    (train, test) indices. Splitters see X and the ``groups`` of fit.
scoring : str or callable, default=None
    One score as in scikit-learn, by predictions or decisions; None: accuracy, or R^2.
refit : bool, default=True
    Whether the best candidate is trained on all rows, as ``best_estimator_``: bitwise the estimator
    searched for, with ``best_params_`` and the same other parameters, fitted by itself.
time_limit : float, default=None
    Of a race: the seconds that it takes, the final model included, but not those of compiling, once on
    a machine; None: work counted from the number of rows. Of a grid: seconds after which it ends with
    the best candidate so far, and warns; the refit comes after.
ensemble : bool, default=True
    Whether a race may end in a weighted mean of its best candidates, where that gains more than its
    standard error.
relevance : "auto", None, "columns" or "directions", default="auto"
    What a race tries; a grid learns none.
search_iter : int, default=None
    Epochs of the models of the search. None: 5, more on small data (at least 30 000 steps).
keep_path : bool, default=False
    Whether to keep the coefficients of all models of the best gamma as ``path_coefs_``.
gamma : "scale", "auto" or float, default="scale"
    Where gammas=None, or gammas="auto" and another than "scale" is given here. "scale" comes from all
    rows, not from those of a fold."""

OTHERS = """\
others
    As in the estimator searched for; ``max_iter`` and ``tol`` are those of the refit. Landmarks are
    drawn from all rows and never look at the targets: landmarks="margin" and n_components="auto" are
    errors. With ``n_cells`` the search has one partition, whatever ``n_partitions``. Rows of float64
    are searched in float32, unless a column would lose its differences, and refitted as they are."""

ATTRIBUTES = """\
best_params_ : dict
    C, and gamma and epsilon where they were searched; of a race all parameters of the best candidate.
leaderboard_ : DataFrame
    Of a race: candidate, score, its standard error, rows and seconds, the best first.
ensemble_ : list of (str, float)
    Of a race: the candidates that the final model is a mean of, and their weights.
best_score_ : float
    The mean score of the best candidate over the splits.
best_at_edge_ : dict
    "smallest" or "largest" for every parameter whose best value is the first or last of those to try:
    others beyond it may be better. Not where fewer than three were tried, or its neighbour is as good.
best_index_ : int
best_estimator_ : estimator
    Trained on all rows; with refit=True. Its ``random_state`` is that of the search, or an integer
    drawn by it.
cv_results_ : dict of arrays
    As in GridSearchCV. ``n_resources`` is the number of rows that a candidate was last tried on, and
    ``iter`` the round of the race; candidates of a later round rank before those of an earlier one.
    Models train together, and share the time equally.
scorer_ : callable
n_splits_ : int
n_iter_ : int
    Epochs of the refit.
Cs_, gammas_ : the values tried
path_coefs_ : ndarray of shape (n_splits, n_Cs, n_models, d + 1)
    With keep_path=True: the models of the best gamma (and epsilon) on ``path_map_``, intercepts last.
path_map_ : object
    The map of these.
search_time_, refit_time_ : float
    Seconds.
n_features_in_ : int
feature_names_in_ : ndarray of str"""


def document(cls: type) -> type:
    """Fill %(search)s, %(others)s and %(attributes)s in the docstring of a class."""
    text = inspect.cleandoc(cls.__doc__ or "")
    parts = (("%(search)s", SEARCH), ("%(others)s", OTHERS), ("%(attributes)s", ATTRIBUTES))
    for name, part in parts:
        text = text.replace(name, part)
    cls.__doc__ = text
    return cls
