"""The parameters and attributes that estimators have in common, written once."""

from __future__ import annotations

import inspect
import re

from asset_svm.kernels import NAMES, SPECTRAL


def choices(names: tuple[str, ...]) -> str:
    """The set of these names, as docstrings have it."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


COMMON = """\
kernel : %(kernels)s or callable, default="rbf"
    With r = |x - z|: "rbf" exp(-gamma r^2), "exponential" exp(-gamma r), "matern32"
    (1 + a) exp(-a), a = sqrt(3) gamma r, "matern52" (1 + a + a^2/3) exp(-a), a = sqrt(5) gamma r;
    "laplacian" exp(-gamma |x - z|_1); the others as in ``sklearn.svm.SVC``. A callable f(X, Z)
    returns the matrix of kernel values, dense or sparse (Nystroem only).
gamma : {"scale", "auto"} or float, default="scale"
    As in ``sklearn.svm.SVC``: 1 / (n_features X.var()), 1 / n_features, or a number. Of
    "exponential", "matern32" and "matern52" it is one over a length (scikit-learn's ``Matern`` has
    length_scale = 1 / gamma), and "scale" and "auto" are the square roots of these.
degree : float, default=3
    Of "poly".
coef0 : float, default=0.0
    Of "poly" and "sigmoid".
C : float, default=1.0
    As in SVC; lam = 1 / (C W), W the sum of the weights of the rows trained on.
lam : float, default=None
    The paper's lambda; overrides ``C``.
approximation : {"nystroem", "fourier"}, NystroemMap or FourierMap, default="nystroem"
    ASSET_M or ASSET_F; or a map of your own: fitted, it is used as it is (wrap it in
    ``sklearn.frozen.FrozenEstimator`` where the estimator is cloned); else fitted first.
n_components : int or "auto", default=None
    Landmarks s (Nystroem; all rows, with a warning, where there are fewer) or features d (Fourier).
    None: 2048, fewer landmarks where there are fewer rows. "auto": doubles 256 as long as quick
    fits predict held-out rows (``validation_fraction``) better by more than a standard error,
    within ``time_limit`` and ``memory_limit``.
landmarks : {"uniform", "kmeans", "rpcholesky", "leverage", "margin"} or array, default="uniform"
    How landmarks are chosen (Nystroem only): rows at random; centres of clusters; rows by
    randomly pivoted Cholesky or by ridge leverage scores, both of which look at the kernel; rows
    near the decision boundary, or of large residual, of a first quick fit; or points of your own.
    partial_fit takes them from its first rows: ``n_components`` of them, 256 at least.
fourier : {"iid", "orthogonal", "qmc", "hadamard"}, default="iid"
    How frequencies go together (Fourier only): independent; orthogonal in blocks; points of a
    scrambled Sobol sequence; by fast Walsh-Hadamard transforms, for rows of hundreds of dense
    features. The laplacian kernel has "iid" and "qmc".
rank : int, default=None
    Keep at most this many eigenpairs of the landmarks' kernel matrix.
rank_threshold : float, default=None
    Drop smaller eigenvalues, relative to the largest; None suits the type of the rows.
rank_rule : {"relative", "absolute"}, default="relative"
    "absolute" compares eigenvalues with ``rank_threshold`` itself (the paper: 1e-16).
relevance : {"columns", "directions", "auto"} or None, default=None
    Learn which columns matter before the fit, and train on mapped rows: a weight a column (sparse
    rows stay sparse), or any linear map of the columns, the mean outer product of the gradients of
    quick fits. They see up to 20 000 rows and targets in units of their own, and depend on none of
    gamma, C and epsilon; other rows, up to 5000, judge each round. "auto" takes the shape and the round
    that those ask for, and rows as they are unless something is clearly better: the model is then,
    bit for bit, that of None. Columns are standardised on the way, so that their units do not matter;
    mapped rows keep the total variance of rows (the sum of the standard deviations, for "laplacian"),
    so that gamma keeps its meaning, and gamma="scale" goes by that. For kernels of a distance;
    "laplacian" has no directions. partial_fit settles the map by its first rows. It takes half of
    ``time_limit`` at most, but for one round.
encoder : "auto", TableEncoder or None, default="auto"
    What makes numbers of a table. "auto": arrays, and data frames of numbers without gaps, are taken
    as they are; a frame with a category, a date or a gap is encoded by ``TableEncoder()``, its numbers
    scaled. A TableEncoder encodes whatever is given; None leaves all to the user.
n_cells : "auto", int or None, default=None
    Split the input space into about so many cells, each with models of its own ("auto": cells of
    about 1000 rows). A cell of up to 16384 rows (4096 with an intercept; fewer where the kernel
    matrix would exceed ``memory_limit``) is the exact SVM of its rows, solved to ``tol`` (None: a
    duality gap of 0.01 of the objective); a larger one has an approximation of its own.
    Without an intercept this is one SVM, whose kernel is 0 between cells. A class that is absent
    from a cell scores -1 there. For narrow kernels and much data.
n_partitions : int, default=1
    Average the decisions of so many partitions into cells, which smooths their seams.
step : {"auto", "metric", "robust", "strong"}, default="auto"
    "metric" (and "auto"): steps in the metric of the data, ten times fewer of them. "robust":
    ASSET's D_X / (D_G sqrt j). "strong": ASSET*'s 1 / (lam j), which has no intercept.
step_scale : "auto" or float, default="auto"
    Multiplies D_X in the step. "auto" tries a few on a small sample; 1.0 is the paper's.
gradient_sample : int, default=1000
    Rows from which D_G is estimated.
fit_intercept : {"auto", True, False}, default="auto"
    "auto": False for the strong step and for cells (targets of a regression are then taken from
    their median), else True. With cells, each has its own.
intercept_bound : float, default=None
    B, the largest |b|. None: a bound that holds a solution.
average : "auto", float, int or None, default="auto"
    A float r averages the last r of the steps, an int k the last k, None takes the last iterate.
    "auto": the last half; the last twentieth where the steps decay to 0 (step="metric" in fit).
sampling : {"auto", "uniform", "shuffle", "given"}, default="auto"
    With replacement (the paper's), a new order every epoch, or as the rows stand. "auto": in fit
    "shuffle" for step="metric" and "uniform" for the paper's steps; "given" in partial_fit.
max_iter : int, default=None
    Epochs. With step="metric" the steps decay to 0 over them (with tol, over stages of 1, 1, 2,
    4, ... epochs), unless early_stopping or time_limit can end the fit earlier: then they fall as
    1 / sqrt j. None: 25, more on small data (at least 100 000 steps); with step="metric" 9 of
    them, in stages of 3, 6, 16, where all others together would lower neither the objective
    nor the errors on the rows by 3 per cent, as the stages so far tell.
tol : float, default=None
    Stop when the duality gap is below tol times the objective, checked after 1, 2, 4, ... epochs
    (by the bound of ``certify`` where that costs no more time than the fit); a ConvergenceWarning
    if it never is. None: run all epochs. SVC's tol, by default 1e-3, is another measure.
early_stopping : bool, default=False
    Hold out rows, score them after every epoch, stop when the score no longer improves, and
    return the best model.
validation_fraction : float, default=0.1
    The part of the rows that early stopping holds out.
n_iter_no_change : int, default=5
    Epochs without improvement that early stopping waits for.
time_limit : float, default=None
    Seconds, without those of compiling, after which fit returns what it has; its objective_ and
    dual_gap_ are then those of a sample of rows, if not all of them were visited. The least it does,
    whatever the limit, is to draw the map (of the third order in n_components), to choose steps, and to
    learn from a block of rows.
memory_limit : float, default=None
    Bytes that the mapped rows may take; where they do not fit they are recomputed, and the model is
    the same. None: half of what is free. It bounds what a model is made of too: kernel matrices of
    cells, the components of "auto", rows of a file that are held in memory (a quarter of it). There
    None is 8 GiB, whatever is free, and what does not fit is a MemoryError.
warm_start : bool, default=False
    Go on from the last fit: the same map (gamma included), its model as the first iterate; the
    paper's steps also go on counting. Starts anew where the parameters of the map, the columns or
    the classes have changed. Not with n_cells.
random_state : int, RandomState or None, default=None
n_jobs : int, default=None
    Threads, of fit and of prediction: -1 is all processors, -2 all but one. None is as many as the
    process may use (affinity, cgroup, the limits of BLAS), its share inside joblib's workers, or what
    ``joblib.parallel_config`` says. The model is the same.
device : {"cpu", "cuda", "auto"}, default="cpu"
    Where rows are mapped and learnt from. "cuda": on an NVIDIA card (needs the extra ``cuda``); X may
    then also be a torch tensor that lies there. "auto": there, if there is one and the work is worth
    the way. Files that are read a window at a time, and batches for cells, are worked on by the CPU.
precision : {"float32", "float16"}, default="float32"
    Of float32 rows on the card. "float16" multiplies halves (11 bits) and keeps features as halves:
    faster, half the memory, decisions right to about 1e-3.
verbose : int, default=0
    Above 0: log a line an epoch (logger "asset_svm")."""

ATTRIBUTES = """\
map_coef_ : ndarray of shape (n_models, d)
    In the feature space of the map; defined up to a rotation of phi. One model for two classes
    and for regression, else one a class.
intercept_ : ndarray of shape (n_models,)
    Of decisions by ``dual_coef_``. Where the map is centred (``feature_map_.centre``: steps in the
    metric beside a free intercept) decisions by ``map_coef_`` are feature_map_(X) @ map_coef_.T +
    intercept_ + feature_map_.drift(map_coef_).
cells_ : list
    With ``n_cells``: the partitions, in place of coef_, intercept_, dual_coef_, components_ and
    feature_map_.
support_, support_vectors_, n_support_ : ndarray
    Of an exact model alone (n_cells=1, n_partitions=1, solved whole): the rows of X that are support
    vectors of any class, those rows, and how many there are of each class (of all, in a regression).
    dual_coef_, of shape (n_models, n_support), and intercept_ are there too: decisions are
    k(X, support_vectors_) @ dual_coef_.T + intercept_, as SVC's. support_ is not there after
    partial_fit.
n_cells_ : int
    The number of cells (the mean over partitions).
dual_coef_ : ndarray of shape (n_models, s)
    Nystroem only: decisions are k(X, components_) @ dual_coef_.T + intercept_.
components_ : ndarray or CSR matrix of shape (s, n_features)
    Nystroem only: the landmarks.
component_indices_ : ndarray of shape (s,) or None
    Nystroem only: the rows of X that they were; None where they are no rows, and after
    a fit that streamed its rows.
approximation_error_ : float
    Nystroem only: the relative trace error of the kernel approximation, on a sample of 256 rows.
encoder_ : TableEncoder or None
    What makes numbers of the columns, where they are encoded; n_features_in_, feature_names_in_ and
    feature_importances_ are those of the table then, and all else is of its numbers.
relevance_ : ndarray of shape (n_features,) or (r, n_features), or None
    With ``relevance``: the weights w of the columns, or the linear map T, that rows are multiplied with
    first; components_ and support_vectors_ are mapped rows, decisions k(X * w, components_) or
    k(X @ T.T, components_) @ dual_coef_.T + intercept_. None where "auto" found rows as they are.
feature_importances_ : ndarray of shape (n_features,)
    With ``relevance``: the parts of the columns in the mean squared gradient of the fit that the map
    was made of, by columns in units of their standard deviation. They add up to 1.
relevance_history_ : list of dict
    With ``relevance``: the quick fits, by shape and round (0: standardised columns; shape None: rows
    as they are), with their scores on the rows that judge, bandwidths beside the spread of the rows,
    numbers of rows and seconds; ``chosen`` marks the one that was taken.
component_search_ : list of dict
    n_components="auto" only: the trials, with their validation scores and seconds.
feature_map_ : object
    phi. It, and map_coef_ of the Nystroem map, are not there after ``load`` of a file for prediction.
n_components_ : int
    d.
lam_ : float
    The lambda of (PL).
step_scale_ : float
    The multiplier of D_X that was used.
objective_ : float
    (PL) at the returned model, summed over models; after partial_fit, on the last batch; after a
    fit that streamed its rows, on a sample of them.
dual_gap_ : float
    An upper bound of objective_ minus the optimum, likewise; NaN where cells have none (a kernel
    matrix that is not positive semi-definite).
n_iter_ : int
    Epochs, or batches; one that ``time_limit`` cut short counts.
t_ : int
    Steps.
history_ : list of dict
    A record an epoch; after partial_fit, of each of the last 32 batches; of a fit that streams, a
    record every few windows.
n_features_in_ : int
feature_names_in_ : ndarray of str"""


def _entries(text: str) -> dict[str, str]:
    """The parameters or attributes of a text, by their names."""
    parts = re.split(r"\n(?=\S)", text)
    return {part.split(" : ", 1)[0]: part for part in parts}


def document(cls: type) -> type:
    """Fill %(common)s, %(attributes)s and the names of kernels in the docstring of a class.

    One that has not all of them names each: %(gamma)s, %(n_iter_)s.
    """
    text = inspect.cleandoc(cls.__doc__ or "")
    parts = {**_entries(COMMON), **_entries(ATTRIBUTES), "common": COMMON, "attributes": ATTRIBUTES}
    parts |= {"kernels": choices(NAMES), "spectral": choices(SPECTRAL)}
    for name, part in parts.items():
        text = text.replace(f"%({name})s", part)
    cls.__doc__ = text
    return cls
