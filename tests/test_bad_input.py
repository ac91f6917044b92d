"""Bad input is a clear error at fit and leaves nothing half-fitted; odd input works.

The house's sentence for a bad parameter is ``name=value why; advice.``. What scikit-learn's own
validation refuses (NaN, shapes) keeps scikit-learn's words.
"""

import re
import warnings
from decimal import Decimal
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetRegressor,
    FourierMap,
    NonFiniteError,
    NystroemMap,
    kernels,
    open_rows,
)
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.kernels import own

# Extreme numbers and three epochs: a model far from its optimum is told of, and is not the point.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The objective .* is far above:sklearn.exceptions.ConvergenceWarning"
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
LABELS = (X[:, 0] > 0).astype(int)
REALS = np.sin(X[:, 0]) + X[:, 1]
OTHER_X = RNG.normal(size=(30, 5))  # other columns: a failed fit must not change n_features_in_
OTHER_LABELS = np.arange(30) % 3
OTHER_REALS = OTHER_X[:, 0]

NAN, INF = float("nan"), float("inf")
SHARED = {
    "kernel": ["precomputed", "gauss", None, 3],
    "gamma": [0, -1.0, NAN, INF, "big", None, True],
    "degree": [-1, NAN, "2"],
    "coef0": [NAN, INF, "a", None],
    "C": [0, -1, NAN, INF, "1", None, True, 10**400],
    "lam": [0, -1e-3, NAN, INF, "small"],
    "approximation": ["nystrom", None, 3, StandardScaler(), NystroemMap],
    "n_components": [0, -1, 2.5, "10", True],
    "landmarks": ["kmean", None, 3, [1.0, 2.0]],
    "fourier": ["sobol", None, 1],
    "rank": [0, 1.5],
    "rank_threshold": [-1e-9, NAN, "x"],
    "rank_rule": ["abs", None],
    "step": ["sgd", None, 1],
    "step_scale": [0, -1.0, NAN, "big", None, np.zeros(3)],
    "gradient_sample": [0, 1.5, None],
    "fit_intercept": ["yes", None, 1],
    "intercept_bound": [0, -1.0, NAN],
    "average": [0, -5, 0.0, 1.5, -0.5, NAN, "half", True, np.zeros(3)],
    "sampling": ["random", None],
    "max_iter": [0, -1, 2.5, "10", True],
    "tol": [0, -1e-3, NAN, "x"],
    "early_stopping": ["yes", None, 1],
    "validation_fraction": [0, 1, -0.1, 1.5, NAN, "x"],
    "n_iter_no_change": [0, 1.5, None],
    "time_limit": [0, -1.0, NAN, "1s"],
    "memory_limit": [-1, NAN, "1GB"],
    "warm_start": [None, "yes", 1],
    "verbose": [-1, "yes", np.zeros(3)],
}
MAP_PARAMETERS = ("kernel", "gamma", "n_components")
LANDMARK_PARAMETERS = ("degree", "coef0", "landmarks", "rank", "rank_threshold", "rank_rule")


def cases(parameters):
    return [
        pytest.param(name, value, id=f"{name}={value!r}"[:40])
        for name, values in parameters.items()
        for value in values
    ]


def kinds():
    """(estimator with a short fit, its first data, other data of other columns)."""
    short = {"max_iter": 3, "random_state": 0}
    return {
        "classifier": (AssetClassifier(**short), (X, LABELS), (OTHER_X, OTHER_LABELS)),
        "regressor": (AssetRegressor(**short), (X, REALS), (OTHER_X, OTHER_REALS)),
        "nystroem": (NystroemMap(random_state=0), (X,), (OTHER_X,)),
        "fourier": (FourierMap(n_components=20, random_state=0), (X,), (OTHER_X,)),
    }


KINDS = list(kinds())
ESTIMATORS = ["classifier", "regressor"]


def outputs(estimator, rows=X):
    for method in ("decision_function", "predict", "transform"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(rows)
    raise AssertionError("no output")


def refuses(kind, bad_fit, errors=ValueError, **parameters):
    """The message of ``bad_fit(estimator)``, tried on a fresh estimator and on a fitted one.

    Both must be afterwards what they were before.
    """
    fresh, first, _ = kinds()[kind]
    fresh.set_params(**parameters)
    before = dict(vars(fresh))
    with pytest.raises(errors) as caught:
        bad_fit(fresh)
    assert vars(fresh) == before, "the failed fit left something behind"
    with pytest.raises(NotFittedError):
        outputs(fresh)

    fitted, _, _ = kinds()[kind]
    fitted.fit(*first)
    expected, attributes = outputs(fitted), set(vars(fitted))
    fitted.set_params(**parameters)
    with pytest.raises(errors):
        bad_fit(fitted)
    assert set(vars(fitted)) == attributes, "the failed fit left something behind"
    assert fitted.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(outputs(fitted), expected)
    return str(caught.value)


def fit_other(kind):
    """A bad fit on data of other columns and classes."""
    return lambda estimator: estimator.fit(*kinds()[kind][2])


def in_house_shape(message, name):
    return re.fullmatch(rf"{name}=.+; .+\.", message, re.DOTALL) is not None


# Parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), cases(SHARED))
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_bad_parameter_is_refused_in_the_house_sentence(kind, name, value):
    message = refuses(kind, fit_other(kind), **{name: value})
    assert in_house_shape(message, name), message


@pytest.mark.parametrize(
    ("name", "value"),
    cases({k: SHARED[k] for k in ("C", "lam", "gamma", "average", "step", "n_components")}),
)
def test_partial_fit_refuses_a_bad_parameter_as_fit_does(name, value):
    message = refuses("classifier", lambda e: e.partial_fit(X, LABELS, classes=[0, 1]), **{name: value})
    assert in_house_shape(message, name), message


@pytest.mark.parametrize(
    ("name", "value"), cases({k: SHARED[k] for k in MAP_PARAMETERS + LANDMARK_PARAMETERS})
)
def test_the_nystroem_map_refuses_a_bad_parameter(name, value):
    message = refuses("nystroem", fit_other("nystroem"), **{name: value})
    assert in_house_shape(message, name), message


@pytest.mark.parametrize(("name", "value"), cases({k: SHARED[k] for k in (*MAP_PARAMETERS, "fourier")}))
def test_the_fourier_map_refuses_a_bad_parameter(name, value):
    message = refuses("fourier", fit_other("fourier"), **{name: value})
    assert in_house_shape(message, name), message


@pytest.mark.parametrize("epsilon", [-0.1, NAN, INF, "x", None])
def test_a_bad_epsilon_is_refused(epsilon):
    assert in_house_shape(refuses("regressor", fit_other("regressor"), epsilon=epsilon), "epsilon")


@pytest.mark.parametrize(
    "class_weight",
    ["equal", {0: -1.0, 1: 1.0, 2: 1.0}, {0: NAN, 1: 1.0, 2: 1.0}, {7: 1.0}, [1, 2], 2.0],
    ids=str,
)
def test_a_bad_class_weight_is_refused_by_its_name(class_weight):
    message = refuses("classifier", fit_other("classifier"), class_weight=class_weight)
    assert "class_weight" in message, message


def test_a_class_weight_for_a_class_whose_rows_all_weigh_0_says_so():
    weight = (OTHER_LABELS != 2).astype(float)
    with pytest.raises(ValueError, match=r"names 2, .*classes \[0, 1\] of the rows of positive weight"):
        AssetClassifier(class_weight={2: 3.0}).fit(OTHER_X, OTHER_LABELS, sample_weight=weight)


@pytest.mark.parametrize(("counts", "least"), [((1, 0), 1), ((2, 2), 2)], ids=str)
def test_too_few_rows_to_hold_any_out_are_told_of(counts, least):
    """Where rows of weight 0 leave too few, by the names of our parameters, not of scikit-learn's."""
    places = np.concatenate([np.flatnonzero(k == OTHER_LABELS)[:n] for k, n in enumerate(counts)])
    weight = np.isin(np.arange(len(OTHER_LABELS)), places).astype(float)
    model = AssetClassifier() if least > 1 else AssetRegressor()
    with pytest.raises(ValueError) as caught:
        model.set_params(early_stopping=True).fit(OTHER_X, OTHER_LABELS, sample_weight=weight)
    assert in_house_shape(str(caught.value), "validation_fraction"), caught.value
    assert f"may be less than {least};" in str(caught.value)


@pytest.mark.parametrize("n_jobs", [0, "two"])
def test_a_bad_n_jobs_is_refused(n_jobs):
    assert "n_jobs" in refuses("classifier", fit_other("classifier"), n_jobs=n_jobs)


def test_a_bad_random_state_is_refused():
    refuses("classifier", fit_other("classifier"), random_state="dice")


@pytest.mark.parametrize("kind", ["classifier", "regressor", "nystroem"])
def test_more_landmarks_than_rows_is_told_of_once_and_only_when_asked_for(kind):
    estimator, _, other = kinds()[kind]
    assert estimator.fit(*other).components_.shape[0] == 30
    message = r"^n_components=31 is more than the 30 rows .*; set n_components to at most 30\.$"
    with pytest.warns(UserWarning, match=message) as told:
        estimator.set_params(n_components=31).fit(*other)
    assert len(told) == 1
    assert estimator.components_.shape[0] == 30


def test_rows_of_weight_zero_are_no_landmarks():
    weight = np.r_[np.zeros(10), np.ones(20)]
    for estimator in (AssetClassifier(n_components=21), NystroemMap(n_components=21)):
        with pytest.warns(UserWarning, match="^n_components=21 is more than the 20 rows") as told:
            estimator.fit(OTHER_X, OTHER_LABELS, sample_weight=weight)
        assert len(told) == 1
        assert np.array_equal(estimator.component_indices_, np.arange(10, 30))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_strong_step_refuses_an_intercept(kind):
    message = refuses(kind, fit_other(kind), step="strong", fit_intercept=True)
    assert in_house_shape(message, "step"), message
    assert "fit_intercept=True" in message


def test_the_absolute_rank_rule_needs_a_threshold():
    for kind in ("classifier", "nystroem"):
        message = refuses(kind, fit_other(kind), rank_rule="absolute", rank_threshold=None)
        assert in_house_shape(message, "rank_rule"), message


def test_a_stream_refuses_uniform_sampling():
    message = refuses(
        "classifier", lambda e: e.partial_fit(X, LABELS, classes=[0, 1]), sampling="uniform"
    )
    assert in_house_shape(message, "sampling"), message
    message = refuses("regressor", lambda e: e.partial_fit(X, REALS), sampling="uniform")
    assert in_house_shape(message, "sampling"), message


def test_a_bound_beyond_the_integers_of_a_machine_is_a_number():
    model = AssetClassifier(fit_intercept=True, max_iter=3, random_state=0, intercept_bound=10**30)
    decisions = model.fit(X, LABELS).decision_function(X)
    model.set_params(intercept_bound=1e30).fit(X, LABELS)
    np.testing.assert_array_equal(decisions, model.decision_function(X))


def dot(A, B):
    return A @ B.T


@pytest.mark.parametrize("kernel", ["poly", "sigmoid", "linear", pytest.param(dot, id="callable")])
def test_fourier_features_refuse_a_kernel_without_a_spectral_density(kernel):
    for kind in ESTIMATORS:
        message = refuses(kind, fit_other(kind), kernel=kernel, approximation="fourier")
        assert in_house_shape(message, "(approximation|kernel)"), message
    message = refuses("fourier", fit_other("fourier"), kernel=kernel)
    assert in_house_shape(message, "kernel"), message  # a map has no parameter "approximation"


def test_a_given_map_of_other_columns_is_refused():
    given = NystroemMap().fit(X)
    message = refuses("classifier", fit_other("classifier"), approximation=given)
    assert "3" in message
    assert "5" in message


@pytest.mark.parametrize("n_cells", [None, 1])
@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (lambda A, B: np.zeros((len(A), len(B))), "returned 0 for every pair of 40 rows"),
        (lambda A, B: (A @ B.T).astype(complex), "returned values of type complex128"),
        (lambda A, B: (A @ B.T).astype(str), "returned values of type <U"),
        (lambda A, B: (A @ B.T)[:, :-1], r"returned shape \(40, 39\)"),
        (
            lambda A, B: None,
            r"returned None for 40 rows and 40 landmarks; it must return the \(40, 40\)",
        ),
        (lambda A, B: "rbf", r"returned 'rbf' for 40 rows"),
        (lambda A, B: [[1.0], [1.0, 2.0]], r"returned \[\[1.0\], \[1.0, 2.0\]\] for 40 rows"),
        (lambda A, B: np.ma.masked_less(A @ B.T, 0), r"returned \d+ masked values; it must return a"),
    ],
    ids=["zeros", "complex", "text", "shape", "nothing", "a word", "ragged", "masked"],
)
def test_a_callable_kernel_that_is_none_is_refused(kernel, why, n_cells):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    with pytest.raises(ValueError, match=why):
        AssetClassifier(kernel, n_cells=n_cells).fit(X, X[:, 0] > 0)


def test_a_callable_kernel_of_rows_that_are_all_zero_is_a_kernel():
    X, y = np.zeros((40, 3)), np.repeat([0, 1], [10, 30])
    for n_cells in (None, 1):
        model = AssetClassifier(lambda A, B: A @ B.T, n_cells=n_cells, fit_intercept=True)
        assert (model.fit(X, y).predict(X) == 1).all()


@pytest.mark.parametrize("n_cells", [None, 1])
def test_a_prediction_asks_of_a_callable_kernel_what_a_fit_does(n_cells):
    returned = {"change": lambda K: K}
    model = AssetClassifier(lambda A, B: returned["change"](A @ B.T), n_cells=n_cells, random_state=0)
    model.fit(X, LABELS)
    for change, error, why in (
        (lambda K: np.ma.masked_less(K, 0), ValueError, r"masked values; it must return"),
        (lambda K: None, ValueError, "returned None for 40 rows"),
        (lambda K: K * NAN, NonFiniteError, r"^The callable kernel returned .*\(nan\); it must return"),
    ):
        returned["change"] = change
        with pytest.raises(error, match=why):
            model.predict(X)
    # Of rows that have nothing in common with landmarks it is 0 by right, were they all that is asked.
    returned["change"] = np.zeros_like
    intercept = model.cells_[0].decisions[0].intercept if n_cells else model.intercept_
    np.testing.assert_allclose(model.decision_function(X), intercept[0])


@pytest.mark.parametrize("n_cells", [None, 1])
def test_a_callable_kernel_that_returns_nan_is_told_so(n_cells):
    for value in (NAN, INF):
        model = AssetClassifier(lambda A, B, value=value: A @ B.T * value, n_cells=n_cells)
        why = rf"^The callable kernel returned values .*float64 \(-?{value}\); it must return finite"
        with pytest.raises(NonFiniteError, match=why), np.errstate(invalid="ignore"):
            model.fit(X, LABELS)


def test_a_callable_kernel_that_is_beyond_float32_is_told_so():
    values = kernels.Kernel(lambda A, B: 1e200 * dot(A, B)).against(X, np.float32)
    with pytest.raises(NonFiniteError, match=r"not finite in float32 \(-?\d.*e\+(199|200)\); it must"):
        values(X)


@pytest.mark.parametrize("n_cells", [None, 1])
def test_a_callable_kernel_may_be_sparse_as_that_of_svc(n_cells):
    rows = sp.csr_matrix(np.where(X > 0, X, 0.0))
    models = [
        AssetClassifier(kernel, n_cells=n_cells, random_state=0, fit_intercept=True).fit(rows, LABELS)
        for kernel in (dot, "linear")
    ]
    found = [model.decision_function(rows) for model in models]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    expected = SVC(kernel=dot).fit(rows, LABELS).decision_function(rows)
    if n_cells:
        np.testing.assert_allclose(found[0], expected, atol=1e-2)


@pytest.mark.parametrize("n_cells", [None, 1])
def test_a_matrix_that_a_callable_kernel_keeps_is_left_as_it_is(n_cells):
    kept = []

    def kernel(A, B):
        K = A @ B.T
        kept.append((K, K.copy()))
        return K

    AssetClassifier(kernel, n_cells=n_cells, random_state=0).fit(X, LABELS).predict(X)
    for K, before in kept:
        np.testing.assert_array_equal(K, before)


def test_a_callable_kernel_of_the_wrong_shape_is_refused():
    message = refuses("classifier", fit_other("classifier"), kernel=lambda A, B: np.ones(3))
    assert re.search(r"callable kernel returned shape \(3,\).*; .+\.$", message), message


@pytest.mark.parametrize(
    "parameters", [{"n_partitions": 2}, {"fourier": "qmc"}, {"approximation": "fourier", "rank": 3}]
)
def test_a_parameter_without_use_is_refused_wherever_rows_come_from(parameters, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] > 0).astype(int)
    name = [*parameters][-1]
    with pytest.raises(ValueError, match=f"^{name}=.* is not used by this model"):
        AssetClassifier(**parameters).partial_fit(X[:50], y[:50], classes=[0, 1])
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    for limit in (None, 30_000):
        model = AssetClassifier(n_components=20, memory_limit=limit, **parameters)
        with pytest.raises(ValueError, match=f"^{name}=.* is not used by this model"):
            model.fit(open_rows(tmp_path / "rows.npz"))
    maps = []
    search = AssetClassifierCV(n_components=20, Cs=[1.0], cv=2, **parameters)
    with pytest.raises(ValueError, match=f"^{name}=.* is not used by this model"):
        search._fit_watched(X, y, None, watch=maps.append)
    assert not maps, "told after the search"


# Data --------------------------------------------------------------------------------------------


def spoilt(value):
    rows = OTHER_X.copy()
    rows[7, 2] = value
    return rows


def damaged(make, part, value):
    """A sparse matrix one of whose arrays was changed after it was made."""
    rows = make(OTHER_X)
    getattr(rows, part)[-1] = value
    return rows


def masked():
    rows = np.ma.masked_array(OTHER_X.copy())
    rows[4, 2] = np.ma.masked
    return rows


def frame(column):
    import pandas as pd

    rows = pd.DataFrame(OTHER_X)
    rows[2] = column
    return rows


NUMBERS = (OTHER_X[:, 2] * 100).astype(int)
SILENT_ROWS = {
    "masked": masked(),
    "timedelta": NUMBERS.astype("m8[s]")[:, None] + np.zeros((30, 5), dtype="m8[s]"),
    "datetime": NUMBERS.astype("M8[s]")[:, None] + np.zeros((30, 5), dtype="m8[s]"),
    "numeric strings": OTHER_X.astype(str),
    "numeric bytes": OTHER_X.astype("S"),
    "numeric strings in a list": OTHER_X.astype(str).tolist(),
    "numeric strings among objects": np.where(np.eye(30, 5), OTHER_X.astype(str), OTHER_X.astype("O")),
    "a column beyond the last": damaged(sp.csr_matrix, "indices", 5_000_000),
    "a column before the first": damaged(sp.csr_array, "indices", -7),
    "rows beyond the entries": damaged(sp.csr_matrix, "indptr", 10**6),
    "rows that go back": damaged(sp.csr_matrix, "indptr", -5),
    "a row beyond the last": damaged(sp.csc_matrix, "indices", 5_000_000),
    "a column of pairs": damaged(sp.coo_matrix, "col", 5_000_000),
}

if find_spec("pandas") is not None:
    SILENT_ROWS |= {
        "timedelta in a frame": frame(NUMBERS.astype("m8[s]")),
        "datetime in a frame": frame(NUMBERS.astype("M8[s]")),
        "numeric strings in a frame": frame(NUMBERS.astype(str)),
    }


@pytest.mark.parametrize("rows", SILENT_ROWS.values(), ids=SILENT_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_numpy_makes_numbers_of_in_silence_is_refused(kind, rows):
    estimator, _, (_, *targets) = kinds()[kind]
    if "encoder" in estimator.get_params():
        estimator.set_params(encoder=None)  # frames would be encoded
    said = r"masked values|has times|has text|not a sound"
    with pytest.raises(ValueError, match=said):
        estimator.fit(rows, *targets)
    if kind in ESTIMATORS:
        classes = {"classes": [0, 1, 2]} if kind == "classifier" else {}
        with pytest.raises(ValueError, match=said):
            estimator.partial_fit(rows, *targets, **classes)
    estimator.fit(OTHER_X, *targets)
    with pytest.raises(ValueError, match=said):
        outputs(estimator, rows)


def test_a_mask_that_masks_nothing_is_none():
    model = AssetRegressor(max_iter=3, random_state=0)
    expected = model.fit(X, REALS).predict(X)
    found = model.fit(np.ma.masked_array(X), np.ma.masked_array(REALS)).predict(np.ma.masked_array(X))
    np.testing.assert_array_equal(found, expected)


SILENT_TARGETS = {
    "masked": np.ma.masked_array(OTHER_LABELS, OTHER_LABELS == 0),
    "datetime": OTHER_LABELS.astype("M8[D]"),
    "timedelta": OTHER_LABELS.astype("m8[D]"),
    "dates": OTHER_LABELS.astype("M8[D]").astype(object),
}


@pytest.mark.parametrize("y", SILENT_TARGETS.values(), ids=SILENT_TARGETS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_masked_targets_and_times_are_refused(kind, y):
    said = r"^(y|classes) has (\d+ masked values|times)"
    extra = {"classes": np.unique(y)} if kind == "classifier" else {}
    for bad in (lambda e: e.fit(OTHER_X, y), lambda e: e.partial_fit(OTHER_X, y, **extra)):
        assert re.search(said, refuses(kind, bad))


def without(value, kind):
    """Targets of which one is missing."""
    names = ["no", "yes", "yes"] * 10
    names[7] = value
    return {"list": list, "array": np.array, "objects": partial(np.array, dtype=object)}[kind](names)


@pytest.mark.parametrize("kind", ["list", "array", "objects"])
@pytest.mark.parametrize("value", ["", "  ", None, NAN], ids=repr)
def test_a_class_without_a_name_is_refused_with_its_row(value, kind):
    if value is NAN and kind == "array":
        pytest.skip("numpy has made the text 'nan' of it")
    y = without(value, kind)
    for bad in (
        lambda e: e.fit(OTHER_X, y),
        lambda e: e.partial_fit(OTHER_X, y, classes=["no", "yes"]),
    ):
        message = refuses("classifier", bad)
        assert message.startswith(f"y has no value in row 7, counted from 0 ({value!r}); "), message


@pytest.mark.parametrize("dtype", ["string", "category", object])
def test_a_class_that_pandas_has_not_is_refused_with_its_row(dtype):
    pd = pytest.importorskip("pandas")
    y = pd.Series(without(None, "list")).astype(dtype)
    message = refuses("classifier", lambda e: e.fit(OTHER_X, y))
    assert message.startswith("y has no value in row 7, counted from 0 ("), message


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_masked_values_are_refused_by_score(kind):
    model, (rows, y), _ = kinds()[kind]
    model.fit(rows, y)
    some = np.arange(len(y)) % 4 == 1
    with pytest.raises(ValueError, match=r"^y has 10 masked values; .+\.$"):
        model.score(rows, np.ma.masked_array(y, some))
    with pytest.raises(ValueError, match=r"^sample_weight has 10 masked values; .+\.$"):
        model.score(rows, y, np.ma.masked_array(np.ones(40), some))
    expected = accuracy_score if kind == "classifier" else r2_score
    assert model.score(rows, np.ma.masked_array(y)) == expected(y, model.predict(rows))


def test_masked_values_are_refused_by_the_score_of_a_search_and_with_probabilities():
    masked = np.ma.masked_array(LABELS, np.arange(40) % 4 == 1)
    search = AssetClassifierCV(Cs=[1.0], gammas=[1.0], cv=2, scoring="accuracy").fit(X, LABELS)
    probable = CalibratedClassifier(search.best_estimator_).fit(X, LABELS)
    for refusing in (search.score, probable.score, probable.fit):
        with pytest.raises(ValueError, match=r"^y has 10 masked values; .+\.$"):
            refusing(X, masked)


ODD_OBJECTS = {
    "text and numbers": ({7: "a"}, r"numbers \(\d\) and text \('a'\); make them of one kind, .*astype"),
    "bytes and numbers": ({7: b"a"}, r"numbers \(\d\) and bytes \(b'a'\); make them of one kind"),
    "text and NaN": (
        dict.fromkeys(range(30), "a") | {7: NAN},
        r"no value in row 7, counted from 0 \(nan\); fill",
    ),
    "None": ({7: None}, r"no value in row 7, counted from 0 \(None\); fill"),
    "a dict": ({7: {"a": 1}}, r"\{'a': 1\} in row 7, which is neither a number nor text; give"),
}


@pytest.mark.parametrize("case", ODD_OBJECTS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_objects_that_are_no_targets_are_refused(kind, case):
    changes, said = ODD_OBJECTS[case]
    y = OTHER_LABELS.astype(object)
    for row, value in changes.items():
        y[row] = value
    said = rf"^y has ({said}|text .*)" if kind == "regressor" else f"^y has {said}"
    assert re.search(said, refuses(kind, lambda e: e.fit(OTHER_X, y)))
    extra = {"classes": [0, 1, 2]} if kind == "classifier" else {}
    assert re.search(said, refuses(kind, lambda e: e.partial_fit(OTHER_X, y, **extra)))
    model, (rows, targets), _ = kinds()[kind]
    with pytest.raises(ValueError, match=said):
        model.fit(rows, targets).score(OTHER_X[:, :3], y)


def test_objects_of_one_kind_are_targets():
    names = np.array(["a", "b"], dtype=object)[LABELS]
    model = AssetClassifier(max_iter=3, random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["a", "b"] and model.score(X, names) > 0.5
    model = AssetRegressor(max_iter=3, random_state=0)
    exact = np.array([Decimal(value) for value in REALS])
    np.testing.assert_array_equal(model.fit(X, exact).predict(X), model.fit(X, REALS).predict(X))


def test_announced_classes_are_of_the_kind_of_those_that_come():
    mixed = np.array([0, "a"], dtype=object)
    message = refuses_fresh(lambda e: e.partial_fit(X, LABELS, classes=mixed))
    assert message.startswith("classes has numbers (0) and text ('a'); make them of one kind"), message
    names = np.array(["a", "b"], dtype=object)[LABELS]
    message = refuses_fresh(lambda e: e.partial_fit(X, names, classes=[0, 1]))
    assert message.startswith("y has the class 'a', which is not among the announced [0, 1]"), message


def test_text_is_a_class_and_no_number():
    assert AssetClassifier(max_iter=3).fit(X, LABELS.astype(str)).classes_.tolist() == ["0", "1"]
    message = refuses("regressor", lambda e: e.fit(OTHER_X, OTHER_REALS.astype(str)))
    assert message.startswith("y has text"), message


@pytest.mark.parametrize("kind", KINDS)
def test_masked_weights_are_refused(kind):
    weight = np.ma.masked_array(np.ones(30), np.eye(1, 30)[0])
    _, _, other = kinds()[kind]
    message = refuses(kind, lambda e: e.fit(*other, sample_weight=weight))
    assert message.startswith("sample_weight has 1 masked"), message


BAD_ROWS = {
    "NaN": spoilt(NAN),
    "inf": spoilt(INF),
    "-inf": spoilt(-INF),
    "NaN in float32": spoilt(NAN).astype(np.float32),
    "inf in sparse": sp.csr_matrix(spoilt(INF)),
    "NaN in sparse": sp.coo_array(spoilt(NAN)),
    "no rows": OTHER_X[:0],
    "no columns": OTHER_X[:, :0],
    "one dimension": OTHER_X[:, 0],
    "three dimensions": OTHER_X[:, :, None],
    "complex": OTHER_X * 1j,
    "words": np.full((30, 5), "word"),
}


@pytest.mark.parametrize("rows", BAD_ROWS.values(), ids=BAD_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_refused_at_fit(kind, rows):
    targets = tuple(t[: rows.shape[0]] for t in kinds()[kind][2][1:])
    refuses(kind, lambda e: e.fit(rows, *targets))


@pytest.mark.parametrize("rows", BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_refused_by_partial_fit(rows):
    y = OTHER_REALS[: rows.shape[0]]
    refuses("regressor", lambda e: e.partial_fit(rows, y))


@pytest.mark.parametrize("rows", [*BAD_ROWS.values(), OTHER_X], ids=[*BAD_ROWS, "other columns"])
@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_refused_at_prediction(kind, rows):
    estimator, first, _ = kinds()[kind]
    estimator.fit(*first)
    with pytest.raises(ValueError):
        outputs(estimator, rows)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    "y",
    [OTHER_LABELS[:-1], np.tile(OTHER_LABELS[:, None, None], 2), OTHER_LABELS[:0], None],
    ids=["too short", "three axes", "empty", "none"],
)
def test_targets_of_the_wrong_shape_are_refused(kind, y):
    refuses(kind, lambda e: e.fit(OTHER_X, y))
    extra = {"classes": [0, 1, 2]} if kind == "classifier" else {}
    refuses(kind, lambda e: e.partial_fit(OTHER_X, y, **extra))


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_targets_that_are_not_finite_are_refused(kind, value):
    y = OTHER_REALS.copy() if kind == "regressor" else OTHER_LABELS.astype(float)
    y[3] = value
    refuses(kind, lambda e: e.fit(OTHER_X, y))


def test_real_targets_are_no_classes():
    refuses("classifier", lambda e: e.fit(OTHER_X, OTHER_REALS))


def test_words_are_no_real_targets():
    refuses("regressor", lambda e: e.fit(OTHER_X, np.full(30, "word")))


@pytest.mark.parametrize("y", [np.zeros(30), np.full(30, "only")], ids=["number", "word"])
def test_one_class_is_refused(y):
    message = refuses("classifier", lambda e: e.fit(OTHER_X, y))
    assert re.search(r"one class.*; .+\.$", message), message
    weight = np.where(OTHER_LABELS == 1, 1.0, 0.0)
    message = refuses("classifier", lambda e: e.fit(OTHER_X, OTHER_LABELS, sample_weight=weight))
    assert re.search(r"one class.*; .+\.$", message), message


@pytest.mark.parametrize(
    "weight",
    [np.full(30, -1.0), np.r_[-1.0, np.ones(29)], np.full(30, NAN), np.zeros(30), np.ones(29)],
    ids=["negative", "one negative", "NaN", "all zero", "too short"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_weights_are_refused(kind, weight):
    _, _, other = kinds()[kind]
    refuses(kind, lambda e: e.fit(*other, sample_weight=weight))


def test_partial_fit_refuses_what_it_cannot_know():
    message = refuses_fresh(lambda e: e.partial_fit(X, LABELS))
    assert in_house_shape(message, "classes"), message
    message = refuses_fresh(lambda e: e.partial_fit(X, LABELS, classes=[0]))
    assert re.search(r"; .+\.$", message), message
    message = refuses_fresh(lambda e: e.partial_fit(X, LABELS + 1, classes=[0, 1]))
    assert re.search(r"class 2[, ].*; .+\.$", message), message


def refuses_fresh(bad):
    estimator, _, _ = kinds()["classifier"]
    before = dict(vars(estimator))
    with pytest.raises(ValueError) as caught:
        bad(estimator)
    assert vars(estimator) == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("rows", "y", "classes"),
    [
        (X, np.full(40, 5), None),
        (X, LABELS, [0, 1, 2]),
        (OTHER_X, OTHER_LABELS % 2, None),
        (spoilt(NAN)[:, :3], OTHER_LABELS % 2, None),
    ],
    ids=["unseen class", "other classes", "other columns", "NaN"],
)
def test_a_bad_later_batch_leaves_the_stream_as_it_was(rows, y, classes):
    streams = [AssetClassifier(random_state=0).partial_fit(X, LABELS, classes=[0, 1]) for _ in "ab"]
    with pytest.raises(ValueError):
        streams[0].partial_fit(rows, y, classes=classes)
    for stream in streams:
        stream.partial_fit(X[::-1], LABELS[::-1])
    np.testing.assert_array_equal(streams[0].map_coef_, streams[1].map_coef_)
    assert streams[0].t_ == streams[1].t_ == 80


@pytest.fixture
def unchecked(monkeypatch):
    """Kernels of one's own whose values nobody looks at, as nobody does at those of ours."""
    monkeypatch.setattr(
        own, "OwnValues", lambda function, Z, dtype: lambda X: function(X, Z).astype(dtype)
    )


def test_a_batch_that_fails_in_the_loop_leaves_the_stream_as_it_was(unchecked):
    poison = {"on": False}

    def kernel(A, B):
        values = dot(A, B)
        if poison["on"]:
            values[len(values) // 2 :] = NAN  # half of the steps have been taken by then
        return values

    streams = [
        AssetClassifier(kernel, random_state=0).partial_fit(X, LABELS, classes=[0, 1]) for _ in "ab"
    ]
    poison["on"] = True
    with pytest.raises(NonFiniteError, match=r"; .+\.$"):
        streams[0].partial_fit(X, LABELS)
    poison["on"] = False
    for stream in streams:
        stream.partial_fit(X[::-1], LABELS[::-1])
    np.testing.assert_array_equal(streams[0].map_coef_, streams[1].map_coef_)
    assert streams[0].t_ == streams[1].t_ == 80


def test_an_interrupted_fit_leaves_the_old_model():
    estimator = AssetClassifier(dot, max_iter=3, random_state=0).fit(X, LABELS)
    expected = estimator.decision_function(X)

    def interrupting(A, B):
        raise KeyboardInterrupt

    estimator.kernel = interrupting
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(OTHER_X, OTHER_LABELS)
    np.testing.assert_array_equal(estimator.decision_function(X), expected)
    assert estimator.classes_.tolist() == [0, 1]


# Numbers too large -------------------------------------------------------------------------------


def finite_or_refused(train, decide):
    """Train and decide: finite numbers, or one of our errors with advice; never NaN."""
    try:
        decisions = decide(train())
    except (ValueError, NonFiniteError) as error:
        message = str(error)
    else:
        message = None
        assert np.isfinite(decisions).all()
    assert message is None or re.search(r"; .+\.$", message), message


def huge(dtype, size, columns):
    rows = X.copy()
    rows[:, columns] *= size / 4
    return rows.astype(dtype)


MAPS = [
    ("nystroem", "rbf"),
    ("nystroem", "laplacian"),
    ("fourier", "rbf"),
    ("fourier", "laplacian"),
]
PRODUCTS = [("nystroem", "poly"), ("nystroem", "sigmoid"), ("nystroem", "linear")]


@pytest.mark.parametrize("columns", [slice(None), slice(2, 3)], ids=["all", "one"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("approximation", "kernel"), MAPS)
def test_columns_of_1e30_train_and_predict(approximation, kernel, dtype, columns):
    rows = huge(dtype, 1e30, columns)
    parameters = {"approximation": approximation, "n_components": 20, "max_iter": 20}
    classifier = AssetClassifier(kernel, **parameters, random_state=0).fit(rows, LABELS)
    assert np.isfinite(classifier.decision_function(rows)).all()
    regressor = AssetRegressor(kernel, **parameters, random_state=0).fit(rows, REALS)
    assert np.isfinite(regressor.predict(rows)).all()


def test_columns_of_1e30_are_learnt_from():
    """With gamma="scale" a common factor of all columns changes nothing."""
    for dtype in (np.float32, np.float64):
        model = AssetClassifier(max_iter=100, random_state=0).fit(huge(dtype, 1e30, ...), LABELS)
        assert model.score(huge(dtype, 1e30, ...), LABELS) >= 0.9


@pytest.mark.filterwarnings("ignore:The kernel matrix of the landmarks has negative")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("size", [1e30, 1e200, 1e307])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("approximation", "kernel"), MAPS + PRODUCTS)
def test_huge_columns_give_finite_decisions_or_a_clear_error(approximation, kernel, dtype, size):
    if dtype == np.float32:
        size = min(size, 1e37)
    rows = huge(dtype, size, slice(2, 3))
    parameters = {"approximation": approximation, "n_components": 20, "max_iter": 5}
    finite_or_refused(
        lambda: AssetClassifier(kernel, **parameters, random_state=0).fit(rows, LABELS),
        lambda model: model.decision_function(rows),
    )
    finite_or_refused(
        lambda: AssetRegressor(kernel, **parameters, random_state=0).partial_fit(rows, REALS),
        lambda model: model.predict(rows),
    )


@pytest.mark.filterwarnings("ignore:The duality gap")
@pytest.mark.filterwarnings("ignore:The kernel matrix of the landmarks has negative")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("approximation", "kernel"), MAPS + PRODUCTS)
def test_predicting_huge_rows_gives_finite_decisions_or_a_clear_error(approximation, kernel, dtype):
    size = 1e37 if dtype == np.float32 else 1e307
    parameters = {"approximation": approximation, "n_components": 20, "max_iter": 5}
    model = AssetRegressor(kernel, **parameters, random_state=0).fit(X.astype(dtype), REALS)
    finite_or_refused(lambda: model, lambda m: m.predict(huge(dtype, size, ...)))


def test_predicting_rows_of_1e30_with_the_default_kernel_is_silent():
    """Far from every landmark the kernel is 0, and the decision the intercept; no warning."""
    for dtype in (np.float32, np.float64):
        model = AssetRegressor(max_iter=5, random_state=0).fit(X.astype(dtype), REALS)
        decisions = model.predict(huge(dtype, 1e30, ...))
        np.testing.assert_allclose(decisions, model.intercept_[0], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e30, 1e200, 1e307])
def test_huge_targets_give_finite_predictions_or_a_clear_error(size):
    finite_or_refused(
        lambda: AssetRegressor(max_iter=5, random_state=0).fit(X, REALS * size / 4),
        lambda model: model.predict(X),
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e300, 1e307])
def test_extreme_weights_give_finite_decisions_or_a_clear_error(size):
    finite_or_refused(
        lambda: AssetClassifier(max_iter=5, random_state=0).fit(X, LABELS, np.full(40, size)),
        lambda model: model.decision_function(X),
    )


@pytest.mark.parametrize("step", ["auto", "robust", "strong"])
@pytest.mark.parametrize("C", [1e-300, 1e-30, 1e30, 1e300])
def test_extreme_c_gives_finite_decisions_or_a_clear_error(C, step):
    finite_or_refused(
        lambda: AssetClassifier(C=C, step=step, max_iter=5, random_state=0).fit(X, LABELS),
        lambda model: model.decision_function(X),
    )


@pytest.mark.parametrize("gamma", [1e-300, 1e-30, 1e30, 1e300])
def test_extreme_gamma_gives_finite_decisions_or_a_clear_error(gamma):
    for approximation in ("nystroem", "fourier"):
        model = AssetClassifier(
            gamma=gamma, approximation=approximation, n_components=20, max_iter=5, random_state=0
        )
        finite_or_refused(lambda m=model: m.fit(X, LABELS), lambda m: m.decision_function(X))


def test_a_kernel_that_returns_nan_is_an_error():
    def poisoned(A, B):
        return np.full((A.shape[0], B.shape[0]), NAN)

    refuses("classifier", fit_other("classifier"), errors=NonFiniteError, kernel=poisoned)


def test_an_iterate_that_becomes_nan_is_an_error_and_keeps_the_old_model(unchecked):
    """A kernel that is finite on the landmarks alone: only the loop can notice."""

    def late(A, B):
        values = dot(A, B)
        return values if A.shape[0] == B.shape[0] else np.full_like(values, NAN)

    message = refuses(
        "classifier", fit_other("classifier"), errors=NonFiniteError, kernel=late, n_components=10
    )
    assert message.startswith("The iterates are no longer finite"), message


# Odd input that must work ------------------------------------------------------------------------


def test_epsilon_zero_is_the_absolute_loss():
    model = AssetRegressor(epsilon=0, C=10, max_iter=500, random_state=0).fit(X, REALS)
    assert model.score(X, REALS) > 0.9


@pytest.mark.parametrize("epsilon", [0, 0.1, 10])
@pytest.mark.parametrize("value", [0.0, 3.0, -1e6])
def test_constant_targets_are_predicted(value, epsilon):
    y = np.full(40, value)
    model = AssetRegressor(epsilon=epsilon, max_iter=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(OTHER_X[:, :3]), value, atol=epsilon + 1e-9)
    online = AssetRegressor(epsilon=epsilon, random_state=0).partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_allclose(online.predict(OTHER_X[:, :3]), value, atol=epsilon + 1e-9)


def test_an_epsilon_above_every_target_gives_the_trivial_model():
    model = AssetRegressor(epsilon=100.0, random_state=0).fit(X, REALS)
    assert not model.map_coef_.any()
    assert model.objective_ == 0.0
    assert model.dual_gap_ == 0.0


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_one_feature_is_enough(approximation):
    model = AssetClassifier(approximation=approximation, n_components=20, C=100, random_state=0)
    assert model.fit(X[:, :1], LABELS).score(X[:, :1], LABELS) > 0.9


@pytest.mark.parametrize("step", ["auto", "robust", "strong"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_one_row_per_class_is_enough(n_classes, step):
    rows = 10.0 * np.eye(n_classes)
    y = np.array(list("abcde"))[:n_classes]
    model = AssetClassifier(step=step, C=100, max_iter=2000, random_state=0).fit(rows, y)
    assert model.predict(rows).tolist() == y.tolist()


def test_two_rows_are_enough_for_a_regression():
    rows, y = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
    model = AssetRegressor(C=100, max_iter=5000, random_state=0).fit(rows, y)
    np.testing.assert_allclose(model.predict(rows), y, atol=0.2)


def test_one_row_is_enough_for_a_regression():
    model = AssetRegressor(random_state=0).fit([[1.0, 2.0]], [5.0])
    np.testing.assert_allclose(model.predict([[1.0, 2.0]]), 5.0, atol=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly"])
def test_duplicate_rows_work(kernel, dtype):
    rows = np.tile(X[:10], (4, 1)).astype(dtype)
    y = np.tile(LABELS[:10], 4)
    model = AssetClassifier(kernel, C=100, random_state=0, max_iter=500).fit(rows, y)
    assert model.feature_map_.dimension <= 10
    assert np.isfinite(model.decision_function(rows)).all()
    if kernel in ("rbf", "laplacian"):
        assert model.score(rows, y) == 1.0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_rows_of_zeros_predict_the_majority(approximation, kind):
    rows, y = kind(np.zeros((40, 3))), np.arange(40) % 4 > 0
    model = AssetClassifier(approximation=approximation, n_components=10, C=10, random_state=0)
    assert model.fit(rows, y).predict(rows).all()
    target = np.where(y, 2.0, 7.0)
    regressor = AssetRegressor(approximation=approximation, n_components=10, random_state=0)
    np.testing.assert_allclose(regressor.fit(rows, target).predict(rows), 2.0, atol=0.3)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_kernel_that_is_zero_everywhere_works_as_in_svc_or_says_so(kernel):
    finite_or_refused(
        lambda: AssetClassifier(kernel, max_iter=5).fit(np.zeros((40, 3)), LABELS),
        lambda model: model.decision_function(np.zeros((40, 3))),
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_sparse_rows_that_are_empty_work(kernel):
    rows = X.copy()
    rows[::4] = 0.0
    sparse = sp.csr_matrix(rows)
    assert (np.diff(sparse.indptr) == 0).sum() == 10
    fits = [
        AssetClassifier(kernel, max_iter=5, random_state=0).fit(r, LABELS).decision_function(r)
        for r in (rows, sparse)
    ]
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-6)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16, np.longdouble])
def test_other_types_of_rows_are_converted(dtype):
    rows = np.where(X > 0, 3, 0).astype(dtype)
    model = AssetClassifier(C=100, max_iter=200, random_state=0).fit(rows, LABELS)
    assert model.score(rows, LABELS) == 1.0
    assert model.decision_function(rows).dtype == np.float64


def test_a_class_of_weight_zero_is_as_good_as_absent():
    """The same problem as without its rows, though the class stays in classes_."""
    model = AssetClassifier(class_weight={0: 0.0, 1: 1.0, 2: 1.0}, max_iter=50, random_state=0)
    model.fit(OTHER_X, OTHER_LABELS)
    assert np.isfinite(model.decision_function(OTHER_X)).all()
    assert not np.isin(model.component_indices_, np.flatnonzero(OTHER_LABELS == 0)).any()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_numbers_of_numpy_are_numbers(kind):
    """Grids made with numpy hold its scalars: each must do what Python's does."""
    estimator, first, _ = kinds()[kind]
    estimator.set_params(C=2.0, gamma=0.5, n_components=10, average=0.5)
    expected = outputs(estimator.fit(*first))
    estimator.set_params(
        kernel=np.str_("rbf"),
        approximation=np.str_("nystroem"),
        C=np.float32(2.0),
        gamma=np.float64(0.5),
        n_components=np.int64(10),
        max_iter=np.int32(3),
        average=np.float32(0.5),
        fit_intercept=np.bool_(True),
        early_stopping=np.bool_(False),
        sampling=np.str_("auto"),
        gradient_sample=np.int64(1000),
    )
    np.testing.assert_array_equal(outputs(estimator.fit(*first)), expected)


def test_bad_input_warns_of_nothing_on_its_way():
    """An error is enough: no warning of numpy comes before it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refuses("classifier", lambda e: e.fit(spoilt(NAN), OTHER_LABELS))
        refuses("regressor", lambda e: e.fit(spoilt(INF), OTHER_REALS))
    assert [str(w.message) for w in caught] == []
