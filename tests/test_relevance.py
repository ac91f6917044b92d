"""Learnt relevance: which columns and directions matter, in every kind of fit, never without gain."""

import logging
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, NystroemMap
from asset_svm.families.epochs import Epochs
from asset_svm.families.observing import FitCallbacks
from asset_svm.families.relevance import choice, family, quick, rounds, wrapping
from asset_svm.families.rows import Rows
from asset_svm.features.relevance import Moments, Relevance, column_moments, leading_directions
from asset_svm.settings import Settings
from small_problems import frozen

RNG = np.random.default_rng(0)
X = frozen(RNG.normal(size=(1500, 6)))
Y = frozen(np.sin(2.0 * X[:, 1]) + 0.5 * X[:, 4])
LABELS = frozen((np.sin(2.0 * X[:, 1]) > 0.5 * X[:, 4]).astype(int))
THREE = frozen(np.digitize(np.sin(2.0 * X[:, 1]) + 0.5 * X[:, 4], [-0.4, 0.4]))
ROUND = frozen(np.linalg.norm(X, axis=1) + RNG.normal(size=len(X)))
"""The same in all directions, so that nothing is to be learnt."""
NEW = frozen(np.random.default_rng(1).normal(size=(800, 6)))
NEW_Y = frozen(np.sin(2.0 * NEW[:, 1]) + 0.5 * NEW[:, 4])
COMMON = dict(C=10.0, n_components=100, max_iter=3, random_state=0)
CELLS = dict(C=10.0, n_cells=3, random_state=0)
FOURIER = dict(COMMON, approximation="fourier")


def with_slow(quick, *others):
    """Cases, of which the others say the same once more."""
    return [*quick, *(pytest.param(*case, marks=pytest.mark.slow) for case in others)]


@pytest.fixture(autouse=True)
def quicker(monkeypatch, request):
    """Quick fits of few landmarks, enough for six columns; slow tests have those of the library."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(quick, "LANDMARKS", 128)
        monkeypatch.setattr(quick, "QUICK", Epochs(least=3, steps=10_000))


SHAPES_AND_MODELS = with_slow(
    [("directions", COMMON), ("columns", CELLS)], ("columns", COMMON), ("directions", CELLS)
)


def regressor(relevance="columns", **parameters):
    return AssetRegressor(relevance=relevance, **{"epsilon": 0.02, **COMMON, **parameters})


def error(model, rows=NEW, y=NEW_Y):
    return float(np.sqrt(np.mean((model.predict(rows) - y) ** 2)))


# What is learnt -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", with_slow(["rbf", "laplacian"], ("exponential",), ("matern32",), ("matern52",))
)
def test_columns_that_matter_are_found_and_the_error_falls(kernel):
    plain, model = regressor(None, kernel=kernel).fit(X, Y), regressor(kernel=kernel).fit(X, Y)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    assert model.feature_importances_[[1, 4]].sum() > 0.9
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert error(model) < 0.6 * error(plain)


@pytest.mark.parametrize("kernel", with_slow(["exponential"], ("rbf",), ("matern32",), ("matern52",)))
def test_a_direction_that_is_no_column_is_found(kernel):
    direction = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0]) / np.sqrt(6.0)
    y, new = np.sin(3.0 * X @ direction), np.sin(3.0 * NEW @ direction)
    columns, model = (regressor(kind, kernel=kernel).fit(X, y) for kind in ("columns", "directions"))
    leading = model.relevance_[0] / np.linalg.norm(model.relevance_[0])
    assert abs(leading @ direction) > 0.99
    assert error(model, y=new) < 0.4 * error(columns, y=new)


def test_auto_takes_the_shape_that_held_out_rows_ask_for():
    direction = np.ones(6) / np.sqrt(6.0)
    found = regressor("auto").fit(X, np.sin(3.0 * X @ direction))
    assert found.relevance_.ndim == 2
    (chosen,) = (record for record in found.relevance_history_ if record["chosen"])
    scores = [record["validation_score"] for record in found.relevance_history_]
    assert chosen["shape"] == "directions"
    assert chosen["validation_score"] == max(scores)


@pytest.mark.parametrize(
    ("parameters", "seed"), [(COMMON, 3), (COMMON, np.random.RandomState(3)), (CELLS, 3)]
)
def test_auto_without_gain_is_bitwise_the_model_without_relevance(parameters, seed):
    y = ROUND
    parameters = {**parameters, "random_state": seed}
    plain = clone(AssetRegressor(**parameters)).fit(X, y)
    model = clone(AssetRegressor(relevance="auto", **parameters)).fit(X, y)
    assert model.relevance_ is None
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.objective_ == plain.objective_
    (chosen,) = (record for record in model.relevance_history_ if record["chosen"])
    assert chosen["shape"] is None
    assert len(model.relevance_history_) > 1


def test_auto_draws_nothing_from_numpys_own_state():
    models = []
    for relevance in (None, "auto"):
        np.random.seed(5)  # noqa: NPY002 - which is what random_state=None draws from
        models.append(regressor(relevance, random_state=None).fit(X, ROUND))
    assert models[1].relevance_ is None
    np.testing.assert_array_equal(models[0].predict(NEW), models[1].predict(NEW))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_noise_is_seldom_taken_for_relevance(kind):
    # Two standard errors: once in 40 times by chance; 4 of 30 or more have a probability below 1 %.
    taken = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(400, 8)) * np.linspace(0.5, 2.0, 8), rng.normal(size=400)
        y = y if kind is AssetRegressor else (y > 0).astype(int)
        model = kind(relevance="auto", n_components=50, max_iter=2, random_state=seed).fit(rows, y)
        taken += model.relevance_ is not None
    assert taken < 4


def test_auto_scales_columns_of_very_unequal_units():
    rows, new = X * [1.0, 1e-3, 1.0, 1e4, 1.0, 1.0], NEW * [1.0, 1e-3, 1.0, 1e4, 1.0, 1.0]
    model = regressor("auto").fit(rows, Y)
    assert model.relevance_ is not None
    assert error(model, new) < 0.5 * error(regressor(None).fit(rows, Y), new)


@pytest.mark.parametrize(
    ("kernel", "shape"),
    with_slow(
        [("laplacian", "columns"), ("rbf", "directions")],
        ("rbf", "columns"),
        ("exponential", "columns"),
        ("exponential", "directions"),
    ),
)
def test_units_of_columns_do_not_matter(kernel, shape):
    units = 10.0 ** np.array([0.0, 3.0, -4.0, 2.0, -1.0, 5.0])
    offsets = np.array([0.0, 5.0, -3.0, 0.0, 2.0, 1.0])
    y = Y + 0.2 * np.random.default_rng(7).normal(
        size=len(Y)
    )  # else rounds go on until rounding chooses
    one = regressor(shape, kernel=kernel).fit(X + offsets, y)
    other = regressor(shape, kernel=kernel).fit((X + offsets) * units, y)
    np.testing.assert_allclose(
        other.predict((NEW + offsets) * units), one.predict(NEW + offsets), rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(other.feature_importances_, one.feature_importances_, atol=1e-6)


def test_gamma_keeps_its_meaning_since_rows_keep_their_spread():
    for kernel, shape in (("rbf", "directions"), ("exponential", "columns"), ("laplacian", "columns")):
        model = regressor(shape, kernel=kernel).fit(X, Y)
        T = model.relevance_ if shape == "directions" else np.diag(model.relevance_)
        deviations = [rows.std(axis=0) for rows in (X, X @ T.T)]
        power = 1.0 if kernel == "laplacian" else 2.0
        before, after = ((deviation**power).sum() for deviation in deviations)
        assert after == pytest.approx(before, rel=0.05)  # a part of the rows tells it
        expected = 1.0 / before if kernel != "exponential" else before**-0.5
        assert model.gamma_ == pytest.approx(expected, rel=0.05)


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_what_is_learnt_hangs_on_neither_gamma_nor_c_nor_epsilon_nor_units_of_targets():
    one = regressor("columns").fit(X, Y)
    other = regressor("columns", gamma=3.0, C=0.1, epsilon=9.0).fit(X, 1e3 * Y - 7.0)
    np.testing.assert_allclose(one.relevance_, other.relevance_, rtol=1e-6)


@pytest.mark.parametrize("relevance", with_slow(["auto"], ("columns",), ("directions",)))
def test_targets_at_random_have_held_out_scores_of_a_constant(relevance):
    rng = np.random.default_rng(5)
    y = rng.permutation(np.sign(Y))
    model = AssetClassifier(relevance=relevance, **COMMON).fit(X, y)
    constant = max(np.mean(y == 1), np.mean(y == -1))
    deviation = np.sqrt(constant * (1 - constant) / (0.25 * len(y)))
    scores = [record["validation_score"] for record in model.relevance_history_]
    assert max(scores) < constant + 2.0 * deviation + 1.0 / (0.25 * len(y))
    if relevance == "auto":
        assert model.relevance_ is None


def test_the_rows_that_judge_are_seen_by_no_quick_fit(monkeypatch):
    seen, original = [], quick.trial

    def spying(settings, backend, phi, rows, *others):
        seen.append(rows.index)
        return original(settings, backend, phi, rows, *others)

    monkeypatch.setattr(quick, "trial", spying)
    judged, fit = [], quick.Judged.fit
    monkeypatch.setattr(
        quick.Judged, "fit", lambda self, *args: judged.append(self.judging.index) or fit(self, *args)
    )
    regressor("auto").fit(X, Y)
    assert len(seen) == len(judged) > 3
    for one, other in zip(seen, judged, strict=True):
        assert not set(one) & set(other)
        assert len(other) >= 300


@pytest.mark.parametrize(
    "parameters",
    with_slow(
        [dict(early_stopping=True, n_components="auto")],
        (dict(early_stopping=True),),
        (dict(n_components="auto"),),
    ),
)
@pytest.mark.parametrize("seed", [None, *with_slow([], (0,), (np.random.RandomState(3),))])
def test_rows_that_judge_the_model_behind_are_not_learnt_from(parameters, seed, monkeypatch):
    learnt, original = [], family.learn_relevance
    np.random.seed(7)  # noqa: NPY002 - which is what random_state=None draws from

    def spying_on_rows(settings, task, rows, seed):
        learnt.append(rows.index)
        return original(settings, task, rows, seed)

    monkeypatch.setattr(family, "learn_relevance", spying_on_rows)
    held, split = [], asset_svm.tasks.Regression.split

    def spying(self, y, fraction, seed):
        kept, out = split(self, y, fraction, seed)
        held.append((kept, out))
        return kept, out

    monkeypatch.setattr(asset_svm.tasks.Regression, "split", spying)
    regressor("columns", **{**COMMON, **parameters, "max_iter": 2, "random_state": seed}).fit(X, Y)
    index = np.arange(len(Y))
    for kept, out in held[: len(parameters)]:
        assert not set(learnt[0]) & set(index[out])
        index = index[kept]
    np.testing.assert_array_equal(learnt[0], index)


def test_rounds_go_on_while_they_gain_and_the_best_is_taken():
    model = regressor("columns").fit(X, Y)
    records = [record for record in model.relevance_history_ if record["round"] > 0]
    losses = [record["validation_loss"] for record in records]
    assert [record["chosen"] for record in records] == [loss == min(losses) for loss in losses]
    by_round: dict[int, list[float]] = {}
    for record in records:
        by_round.setdefault(record["round"], []).append(record["validation_loss"])
    best = [min(found) for found in by_round.values()]
    assert list(by_round) == list(range(1, len(by_round) + 1))
    assert best[:-1] == sorted(best[:-1], reverse=True)
    # One that is no better is tried with a narrower kernel, and is the last.
    assert len(best) == rounds.MOST_ROUNDS or (best[-1] >= best[-2] and len(by_round[len(best)]) == 2)


def test_rounds_do_not_stick_at_a_bandwidth_that_is_too_wide(monkeypatch):
    monkeypatch.setattr(rounds, "MOST_FACTORS", 0)  # that of the first fit, whatever it is
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1.0, 1.0, size=(1200, 3))
    model = regressor("columns").fit(rows, np.sin(15.0 * rows[:, 0]))
    (chosen,) = (record for record in model.relevance_history_ if record["chosen"])
    assert model.relevance_history_[0]["bandwidth"] == 1.0
    assert chosen["bandwidth"] < 1.0
    assert chosen["validation_score"] > 0.99


def test_cells_go_on_from_the_map_of_quick_fits_in_rounds_of_their_own():
    model = AssetRegressor(relevance="columns", epsilon=0.02, **CELLS).fit(X, Y)
    records = model.relevance_history_
    in_cells = [record["cells"] for record in records]
    assert in_cells == sorted(in_cells) and 0 < sum(in_cells) < len(records)
    (chosen,) = (record for record in records if record["chosen"])
    losses = [record["validation_loss"] for record in records if record["cells"]]
    assert chosen["cells"] and chosen["validation_loss"] == min(losses)


def test_few_rows_have_standardised_columns_and_no_more():
    rows = X[:30] * [1.0, 100.0, 1.0, 1.0, 0.01, 1.0]
    model = regressor("columns", n_components=30).fit(rows, Y[:30])
    assert model.relevance_history_ == []
    scale = model.relevance_ * rows.std(axis=0)
    np.testing.assert_allclose(scale, scale[0])
    for count in (30, 200):  # too few to judge by
        few = AssetRegressor(relevance="auto", n_components=30, random_state=0)
        assert few.fit(X[:count], Y[:count]).relevance_ is None


def test_a_column_of_one_value_counts_nothing():
    rows = np.c_[X, np.full(len(X), 7.0)]
    model = regressor("directions").fit(rows, Y)
    assert model.feature_importances_[-1] == 0.0
    np.testing.assert_array_equal(model.relevance_[:, -1], 0.0)
    np.testing.assert_array_equal(model.predict(rows), model.predict(np.c_[X, np.zeros(len(X))]))


def test_constant_targets_leave_columns_standardised():
    model = regressor("columns").fit(X, np.full(len(X), 3.0))
    assert np.isfinite(model.relevance_).all()
    np.testing.assert_allclose(model.predict(NEW), 3.0)


# In every kind of fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "parameters"),
    with_slow(
        [(LABELS, FOURIER), (THREE, CELLS)],
        (LABELS, COMMON),
        (LABELS, CELLS),
        (THREE, COMMON),
        (THREE, FOURIER),
    ),
)
def test_classes_are_learnt_on_one_map_in_cells_and_by_fourier_features(y, parameters):
    plain, model = (AssetClassifier(relevance=r, **parameters).fit(X, y) for r in (None, "columns"))
    truth = NEW_Y if y is THREE else np.sin(2.0 * NEW[:, 1]) - 0.5 * NEW[:, 4]
    classes = np.digitize(truth, [-0.4, 0.4]) if y is THREE else (truth > 0).astype(int)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    assert 1.0 - model.score(NEW, classes) < 0.7 * (1.0 - plain.score(NEW, classes))


def test_the_tree_of_cells_grows_on_mapped_rows():
    model = AssetRegressor(relevance="columns", n_cells=8, random_state=0).fit(X, Y)
    centres = model.cells_[0].partition.root.centres
    spreads = centres.std(axis=0)
    assert spreads[[1, 4]].min() > 5.0 * np.delete(spreads, [1, 4]).max()


def test_sparse_rows_stay_sparse_and_learn_what_dense_ones_do():
    rows = sp.csr_matrix(np.where(RNG.random(X.shape) < 0.5, X, 0.0))
    y = np.sin(2.0 * rows[:, [1]].toarray().ravel()) + 0.5 * rows[:, [4]].toarray().ravel()
    model, dense = regressor().fit(rows, y), regressor().fit(rows.toarray(), y)
    assert sp.issparse(model.components_)
    np.testing.assert_allclose(model.feature_importances_, dense.feature_importances_, atol=0.02)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    turned = regressor("directions").fit(rows, y)
    assert not sp.issparse(turned.components_)
    np.testing.assert_allclose(turned.predict(rows), turned.predict(rows.toarray()), atol=1e-9)


@pytest.mark.parametrize(
    ("relevance", "more"),
    with_slow(
        [("columns", dict(kernel="laplacian")), ("directions", CELLS)],
        ("columns", dict(kernel="exponential")),
        ("columns", CELLS),
        ("directions", dict(kernel="matern32")),
        ("auto", {}),
    ),
)
def test_dense_and_sparse_rows_are_the_same_to_any_model(relevance, more):
    rows, new = X + 5.0, NEW[:200] + 5.0
    for train, there in ((rows, sp.csr_matrix(new)), (sp.csr_matrix(rows), new)):
        parameters = more if "n_cells" in more else {**COMMON, **more}
        model = AssetRegressor(relevance=relevance, epsilon=0.02, **parameters).fit(train, Y)
        assert model.relevance_ is not None
        other = new if sp.issparse(there) else sp.csr_matrix(new)
        np.testing.assert_allclose(model.predict(there), model.predict(other), atol=1e-8)
        np.testing.assert_allclose(model.gradients(there), model.gradients(other), atol=1e-7)


def test_a_model_goes_on_with_rows_of_the_other_kind():
    rows, sparse = X + 5.0, sp.csr_matrix(X + 5.0)
    one, other = (regressor().fit(rows[:900], Y[:900]) for _ in range(2))
    one.partial_fit(rows[900:], Y[900:])
    other.partial_fit(sparse[900:], Y[900:])
    np.testing.assert_allclose(one.predict(NEW + 5.0), other.predict(NEW + 5.0), atol=1e-6)
    given = [regressor(landmarks=kind[:80], n_components=80).fit(rows, Y) for kind in (rows, sparse)]
    np.testing.assert_allclose(*(model.predict(NEW + 5.0) for model in given), atol=1e-6)


def test_weights_of_zero_are_no_rows_and_weights_count():
    weight = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    model = regressor().fit(X, Y, sample_weight=weight)
    without = regressor().fit(X[kept], Y[kept])
    np.testing.assert_array_equal(model.relevance_, without.relevance_)
    np.testing.assert_array_equal(model.predict(NEW), without.predict(NEW))
    # Where column 0 matters to half of the rows, it matters by their weight.
    y, half = np.where(np.arange(len(Y)) % 2, Y, np.sin(2.0 * X[:, 0])), np.arange(len(Y)) % 2
    shares = [
        regressor().fit(X, y, sample_weight=np.where(half, 1.0, w)).feature_importances_[0]
        for w in (0.05, 20.0)
    ]
    assert shares[1] > 2.0 * shares[0]


def test_class_weights_reach_the_quick_fits():
    model = AssetClassifier(relevance="columns", class_weight={0: 1.0, 1: 5.0}, **COMMON).fit(X, LABELS)
    same = AssetClassifier(relevance="columns", **COMMON)
    same.fit(X, LABELS, sample_weight=np.where(LABELS == 1, 5.0, 1.0))
    np.testing.assert_allclose(model.relevance_, same.relevance_, rtol=1e-6)


@pytest.mark.parametrize(
    "parameters",
    with_slow(
        [dict(step="strong"), dict(early_stopping=True, landmarks="margin")],
        (dict(step="robust"),),
        (dict(fit_intercept=False),),
        (dict(landmarks="kmeans"),),
    ),
)
def test_other_parameters_are_those_of_the_model_behind(parameters):
    model = regressor(**{**COMMON, "max_iter": 20, **parameters}).fit(X, Y)
    assert error(model) < 0.5 * np.std(NEW_Y)


def test_landmarks_of_ones_own_are_mapped():
    model = regressor(landmarks=X[:80], n_components=80).fit(X, Y)
    np.testing.assert_allclose(model.components_, X[:80] * model.relevance_, atol=1e-9)
    with pytest.raises(ValueError, match="landmarks have 5 features, and X has 6"):
        regressor(landmarks=X[:80, :5], n_components=80).fit(X, Y)


def test_a_stream_settles_the_map_by_its_first_batches_and_goes_on():
    model = AssetRegressor(relevance="columns", C=10.0, epsilon=0.02, n_components=300, random_state=0)
    maps = []
    for start in range(0, 1500, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
        maps.append(model.relevance_)
    settled = [np.array_equal(one, maps[-1]) for one in maps]
    assert settled.index(True) * 100 <= 400 and all(settled[4:])
    assert not np.array_equal(maps[0], maps[-1])
    assert error(model) < 0.35


def test_partial_fit_goes_on_from_a_fit():
    model = regressor().fit(X[:1000], Y[:1000])
    before, relevance = model.predict(NEW), model.relevance_
    model.partial_fit(X[1000:], Y[1000:])
    np.testing.assert_array_equal(model.relevance_, relevance)
    assert not np.array_equal(model.predict(NEW), before)


def test_warm_start_keeps_the_map_as_long_as_it_is_asked_for():
    model = regressor(warm_start=True).fit(X[:1000], Y[:1000])
    first = model.relevance_
    model.fit(X, Y)
    np.testing.assert_array_equal(model.relevance_, first)
    assert model.t_ > 3 * len(Y)
    model.set_params(kernel="exponential").fit(X, Y)
    assert not np.array_equal(model.relevance_, first)
    assert model.set_params(relevance=None).fit(X, Y).t_ == 3 * len(Y)
    assert not hasattr(model, "relevance_")


@pytest.mark.parametrize(("relevance", "parameters"), SHAPES_AND_MODELS)
def test_the_model_does_not_hang_on_the_number_of_threads(relevance, parameters):
    rows, y = np.tile(X, (2, 1)).astype(np.float32), np.tile(Y, 2)
    models = [
        AssetRegressor(relevance=relevance, n_jobs=jobs, **parameters).fit(rows, y)
        for jobs in (1, 2, 5)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.relevance_, models[0].relevance_)
        np.testing.assert_array_equal(model.predict(NEW), models[0].predict(NEW))


def test_a_time_limit_leaves_one_round(monkeypatch):
    now = iter(range(10**9))
    monkeypatch.setattr("asset_svm.clock.now", lambda: float(next(now)))
    model = regressor("columns", time_limit=3.0).fit(X, Y)
    assert [record["round"] for record in model.relevance_history_] == [0, 1]
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}


def test_one_line_of_the_log_says_what_was_found(caplog):
    with caplog.at_level(logging.INFO, "asset_svm"):
        regressor("auto").fit(X, Y)
    (line,) = (record.message for record in caplog.records if "relevance" in record.message)
    assert "columns, round" in line or "directions, round" in line


# What a model is good for ---------------------------------------------------------------------------


FORMULAS = {
    "rbf": rbf_kernel,
    "laplacian": laplacian_kernel,
    "exponential": lambda A, B, gamma: Matern(1.0 / gamma, nu=0.5)(A, B),
}


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [(kernel, "columns") for kernel in sorted(FORMULAS)]
    + [("rbf", "directions"), ("exponential", "directions")],
)
def test_decisions_are_kernel_values_of_mapped_rows_with_components(kernel, shape):
    model = regressor(shape, kernel=kernel).fit(X + 3.0, Y)
    T = model.relevance_ if shape == "directions" else np.diag(model.relevance_)
    K = FORMULAS[kernel]((NEW + 3.0) @ T.T, model.components_, gamma=model.gamma_)
    expected = (K @ model.dual_coef_.T + model.intercept_).ravel()
    np.testing.assert_allclose(model.predict(NEW + 3.0), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("relevance", "parameters"), [*SHAPES_AND_MODELS, *with_slow([], ("directions", FOURIER))]
)
def test_gradients_are_in_the_units_of_the_columns(relevance, parameters):
    units = np.array([1.0, 100.0, 0.01, 1.0, 10.0, 1.0])
    model = AssetRegressor(relevance=relevance, **parameters).fit(X * units, Y)
    rows, gradients = NEW[:5] * units, model.gradients(NEW[:5] * units)
    for column in range(6):
        step = 1e-4 * units[column] * np.eye(6)[column]
        slope = (model.predict(rows + step) - model.predict(rows - step)) / (2e-4 * units[column])
        np.testing.assert_allclose(
            gradients[:, column] * units[column], slope * units[column], atol=1e-6
        )


@pytest.mark.parametrize(
    ("relevance", "parameters"), [*SHAPES_AND_MODELS, *with_slow([], ("auto", COMMON))]
)
def test_models_are_pickled_copied_and_compiled(relevance, parameters):
    model = AssetClassifier(relevance=relevance, **parameters).fit(X.astype(np.float32), THREE)
    rows = NEW.astype(np.float32)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(rows), model.decision_function(rows))
    served = model.compiled("decision_function")
    np.testing.assert_allclose(served(rows), model.decision_function(rows), atol=1e-4)
    np.testing.assert_allclose(served(rows[3]), model.decision_function(rows)[3], atol=1e-4)


@pytest.mark.parametrize(
    ("relevance", "parameters", "resumable"),
    with_slow(
        [("directions", COMMON, True), ("columns", CELLS, False), ("auto", COMMON, True)],
        ("columns", COMMON, False),
        ("columns", CELLS, True),
        ("directions", CELLS, True),
        ("auto", CELLS, True),
        ("columns", FOURIER, True),
        ("directions", FOURIER, False),
    ),
)
def test_model_files_hold_the_relevance(tmp_path, relevance, parameters, resumable):
    y = ROUND if relevance == "auto" else Y
    model = AssetRegressor(relevance=relevance, **parameters).fit(X, y)
    asset_svm.save(model, tmp_path / "model.asset", resumable=resumable)
    loaded = asset_svm.load(tmp_path / "model.asset")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.gradients(NEW[:9]), model.gradients(NEW[:9]))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    assert loaded.relevance_history_ == model.relevance_history_
    assert (loaded.relevance_ is None) == (relevance == "auto")
    if resumable:
        loaded.partial_fit(X, y)
        np.testing.assert_array_equal(loaded.predict(NEW), model.partial_fit(X, y).predict(NEW))


def test_a_stream_that_has_just_begun_goes_on_from_its_file(tmp_path):
    model = AssetRegressor(relevance="columns", n_components=400, random_state=0).partial_fit(
        X[:90], Y[:90]
    )
    asset_svm.save(model, tmp_path / "model.asset", resumable=True)
    loaded = asset_svm.load(tmp_path / "model.asset")
    for each in (model, loaded):
        each.partial_fit(X[90:300], Y[90:300])
    np.testing.assert_array_equal(loaded.relevance_, model.relevance_)
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_damaged_maps_in_files_are_told(tmp_path):
    from asset_svm.exceptions import ModelFileError
    from asset_svm.storage import container

    asset_svm.save(regressor().fit(X, Y), tmp_path / "model.asset")
    _, header, tensors = container.read_any(tmp_path / "model.asset", "model")
    name = next(name for name in tensors if name.endswith("relevance.weights"))
    for broken in (tensors[name][:-1], np.full(6, np.nan)):
        container.write(tmp_path / "bad.asset", "model", header, {**tensors, name: broken})
        with pytest.raises(ModelFileError, match=r"relevance\.weights"):
            asset_svm.load(tmp_path / "bad.asset")


def test_compact_and_certify_are_of_the_mapped_problem():
    model = regressor("directions", gamma=0.05, max_iter=30).fit(X, Y)
    small = model.compact()
    np.testing.assert_allclose(small.predict(NEW), model.predict(NEW), atol=0.02)
    assert len(small.components_) < len(model.components_)
    np.testing.assert_array_equal(small.relevance_, model.relevance_)
    objective, gap = model.certify(X, Y)
    assert objective == pytest.approx(model.objective_, rel=1e-6)
    assert 0.0 <= gap <= 0.005 * objective
    # The same problem, mapped by hand.
    again = AssetRegressor(gamma=model.gamma_, epsilon=0.02, **{**COMMON, "max_iter": 30})
    again.fit(X @ model.relevance_.T, Y)
    assert again.objective_ == pytest.approx(model.objective_, rel=0.02)


def test_exact_cells_have_mapped_support_vectors():
    model = AssetRegressor(relevance="columns", n_cells=1, C=10.0, random_state=0).fit(X[:400], Y[:400])
    mapped = X[:400][model.support_] * model.relevance_
    np.testing.assert_allclose(model.support_vectors_, mapped, atol=1e-9)


# What cannot be -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", lambda A, B: A @ B.T])
@pytest.mark.parametrize("relevance", ["columns", "auto"])
def test_kernels_of_no_distance_are_refused_by_name(kernel, relevance):
    name = repr(kernel) if isinstance(kernel, str) else "a function of your own"
    with pytest.raises(ValueError, match=f'relevance={relevance!r}.*kernel={name}.*choose "rbf"'):
        regressor(relevance, kernel=kernel).fit(X, Y)
    with pytest.raises(ValueError, match="relevance="):
        regressor(relevance, kernel=kernel).partial_fit(X, Y)


def test_what_cannot_be_is_told_with_its_reason():
    with pytest.raises(ValueError, match=r'relevance="directions" turns rows.*relevance="columns"'):
        regressor("directions", kernel="laplacian").fit(X, Y)
    with pytest.raises(ValueError, match="relevance=3 is not a known choice"):
        regressor(3).fit(X, Y)
    with pytest.raises(ValueError, match="a map of your own"):
        regressor(approximation=NystroemMap().fit(X), n_components=None).fit(X, Y)
    wide = sp.random(200, 20_000, 0.01, format="csr", random_state=0)
    with pytest.raises(MemoryError, match=r"20000 x 20000 columns, which take 12.80 GB, and 8.59 GB"):
        regressor("directions").fit(wide, Y[:200])
    long = sp.random(10_000, 500, 0.01, format="csr", random_state=0)
    with pytest.raises(
        MemoryError, match=r"10000 sparse rows of 500 columns dense, which take 40.00 MB"
    ):
        regressor("directions", memory_limit=1e7).fit(long, np.arange(10_000.0))
    with pytest.raises(MemoryError, match=r"take 0\.00 MB"):
        regressor("directions", memory_limit=100).fit(X, Y)


def test_a_fit_that_fails_leaves_the_model_of_before():
    model = regressor().fit(X, Y)
    before = model.predict(NEW)
    with pytest.raises(ValueError, match="relevance="):
        model.set_params(kernel="poly").fit(X, Y)
    np.testing.assert_array_equal(model.set_params(kernel="rbf").predict(NEW), before)


def test_a_model_without_relevance_has_no_importances():
    model = regressor(None).fit(X, Y)
    assert not hasattr(model, "feature_importances_")
    assert not hasattr(model, "relevance_")


# The parts ------------------------------------------------------------------------------------------


def test_moments_are_weighted_and_offsets_do_not_cancel():
    weight = np.random.default_rng(2).integers(1, 4, size=len(X)).astype(float)
    for rows in (X, X + 1e6, sp.csr_matrix(X), sp.csr_matrix(np.where(X > 0, X + 1e8, 0.0))):
        mean, variance = column_moments(rows, weight)
        dense = rows.toarray() if sp.issparse(rows) else rows
        copies = np.repeat(dense, weight.astype(int), axis=0)
        np.testing.assert_allclose(mean, copies.mean(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(variance, copies.var(axis=0), rtol=1e-6)
    assert column_moments(np.full((5, 2), 0.1), np.ones(5))[1].tolist() == [0.0, 0.0]


def test_directions_have_the_outer_product_that_they_are_a_root_of():
    A = np.random.default_rng(3).normal(size=(4, 6))
    T = leading_directions(A.T @ A, 0.5)
    M = A.T @ A / np.linalg.eigvalsh(A.T @ A)[-1]
    assert T.shape == (4, 6)
    np.testing.assert_allclose(T.T @ T, M, atol=1e-9)


def test_mapped_rows_are_the_same_dense_sparse_and_one_by_one():
    moments = Moments.of(X + 2.0, np.ones(len(X)), absolute=False)
    weights = np.random.default_rng(4).normal(size=(3, 6))
    some = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(len(X))
    for relevance in (moments.standard(), moments.scaled(weights, some)):
        mapped, rows = relevance(X + 2.0), X + 2.0
        T = relevance.weights if relevance.weights.ndim == 2 else np.diag(relevance.weights)
        moved = 0.0 if relevance.weights.ndim == 1 else rows.mean(axis=0)
        np.testing.assert_allclose(mapped, (rows - moved) @ T.T, atol=1e-9)
        np.testing.assert_allclose(relevance.plain(X.dtype)(rows[:3]), mapped[:3], atol=1e-12)
        np.testing.assert_allclose(relevance.unmoved(mapped), rows @ T.T, atol=1e-9)
        assert mapped.var(axis=0).sum() == pytest.approx(X.var(axis=0).sum())
        sparse = relevance(sp.csr_matrix(rows))
        sparse = sparse.toarray() if sp.issparse(sparse) else sparse
        np.testing.assert_allclose(sparse, mapped, atol=1e-9)


class Slopes:
    """A decision function of two outputs with known gradients."""

    slopes = np.array([[1.0, 0.0, 2.0], [0.0, 30.0, 0.0]])

    def __call__(self, rows):
        return rows @ self.slopes.T

    def gradients(self, rows):
        return np.tile(self.slopes, (len(rows), 1, 1))


class Halves(Slopes):
    """The same, which changes nothing where the first column is negative."""

    def gradients(self, rows):
        return (rows[:, :1, None] > 0) * super().gradients(rows)


def judged_rows(weight, y, judging_y):
    rng = np.random.default_rng(6)
    rows = [
        Rows(rng.normal(size=(len(t), 3)), t, w, w, np.arange(len(t)))
        for t, w in ((y, weight), (judging_y, np.ones(len(judging_y))))
    ]
    settings = Settings.of(AssetRegressor(relevance="columns").get_params())
    return quick.Judged(settings, asset_svm.tasks.Regression(), *rows, 0, 0)


def test_outer_products_are_of_outputs_in_units_of_their_spread_and_by_weights():
    weight = np.where(np.arange(600) < 300, 1.0, 3.0)
    judged = judged_rows(weight, np.arange(600.0), np.arange(50.0))
    judged = replace(judged, learning=replace(judged.learning, X=judged.learning.X * [1.0, 2.0, 1.0]))
    X3, share = judged.learning.X, weight / weight.sum()
    task = SimpleNamespace(n_models=2)
    judged.__dict__["targets"] = (task, judged.learning.y, judged.judging.y)
    fit = SimpleNamespace(X=X3 / judged.unit, decision=Slopes(), relevance=None, round=1)
    M = judged.outer_product(fit, full=True)
    some = quick.some_of(600, 500, np.random.default_rng([0, 12, 1]))
    by = share[some] / share[some].sum()
    decisions = Slopes()(X3[some])
    spread = np.sqrt(by @ (decisions - by @ decisions) ** 2)
    slopes = Slopes.slopes / spread[:, None] * judged.moments.deviation
    np.testing.assert_allclose(M, slopes.T @ slopes, rtol=1e-9)
    np.testing.assert_allclose(judged.outer_product(fit, full=False), np.diag(M), rtol=1e-9)
    # Where gradients differ from row to row, heavy rows count more.
    fit.decision = Halves()
    positive = by @ (X3[some][:, 0] > 0)
    np.testing.assert_allclose(judged.outer_product(fit, full=True), positive * M, rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_quick_fits_see_mapped_rows_in_units_of_their_spread(sparse):
    judged = judged_rows(np.ones(600), np.arange(600.0), np.arange(50.0))
    rows = judged.learning.X * [1e-20, 1.0, 1e25] + [0.0, 1e4, 0.0]
    rows[::2, 0] = 0.0
    given = sp.csr_matrix(rows) if sparse else rows
    judged = replace(judged, learning=replace(judged.learning, X=given), judging=judged.learning)
    T = judged.moments.scaled(np.array([1.0, 0.5, 2.0]))
    for relevance, expected in ((T, rows * T.weights), (None, rows)):
        mapped, _ = judged.mapped(relevance)
        assert mapped.dtype == np.float32
        dense = mapped.toarray() if sparse else mapped
        expected = expected / judged.unit
        # A column far from 0 is moved, which distances do not see.
        error = (dense - expected) - (dense - expected)[0]
        np.testing.assert_allclose(error, 0.0, atol=2e-3 if sparse else 1e-6)
        np.testing.assert_array_equal(dense[::2, 0], 0.0)


def rounds_of(losses, plain=None):
    """How many fits ``go_on`` makes whose losses are these."""
    made = []

    def fit(shape, number, relevance, factor, M=None):
        loss = losses[len(made)]
        made.append(number)
        rows = loss + 0.001 * np.sin(np.arange(100.0) + number)
        return SimpleNamespace(round=number, loss=loss, losses=rows, factor=factor, made_of=M)

    judged = SimpleNamespace(
        fit=fit,
        outer_product=lambda fit, full: np.ones(3),
        next_map=lambda shape, M: "map",
        choosing=np.full(100, 0.01),
    )
    first = SimpleNamespace(round=0, loss=1.0, factor=1.0, made_of=np.ones(3))
    found = choice.Choice(first)
    if plain is not None:
        found.plain = SimpleNamespace(loss=plain, losses=np.full(100, plain))
    rounds.Schedule(judged, np.inf, auto=plain is not None).go_on(found, "columns", first, 5)
    assert len(found.candidates) == len(made)
    return made


def test_rounds_end_where_they_cannot_win():
    falling = [0.9, 0.8, 0.7, 0.65, 0.62]
    assert rounds_of(falling) == [1, 2, 3, 4, 5]
    assert rounds_of(falling, plain=0.95) == [1, 2, 3, 4, 5]
    assert rounds_of(falling, plain=0.5) == [1], "far worse than rows as they are"
    # 0.76 - (0.78 - 0.76) is above 0.99 times 0.74: one more gain like the last is not enough.
    assert rounds_of([0.78, 0.76, 0.7, 0.6, 0.5], plain=0.74) == [1, 2]
    assert rounds_of([0.78, 0.74, 0.7, 0.6, 0.5], plain=0.74) == [1, 2, 3, 4, 5]
    assert rounds_of([0.9, 0.95, 0.96, 0.5, 0.5]) == [1, 2, 2], "a narrower kernel, then an end"


def test_rows_that_judge_settle_no_units():
    y = np.random.default_rng(0).normal(size=600)
    one = judged_rows(np.ones(600), y, y[:50])
    other = judged_rows(np.ones(600), y, 1e6 * y[:50])
    np.testing.assert_array_equal(one.targets[1], other.targets[1])
    assert one.targets[0].offset == other.targets[0].offset


class Scripted:
    """Rows whose quick fits have losses that are told in advance."""

    def __init__(self, losses):
        self.losses, self.asked = iter(losses), []

    def outer_product(self, fit, *, full):
        return np.ones(2)

    def next_map(self, shape, M):
        return Relevance(np.ones(2), None, 1.0)

    def fit(self, shape, number, relevance, factor, made_of=None):
        self.asked.append((number, factor))
        return made_fit(next(self.losses), round=number, factor=factor, made_of=made_of)


def made_fit(loss, losses=None, **others):
    known = dict(
        shape="columns", round=0, relevance=Relevance(np.ones(2), None, 1.0), made_of=np.ones(2),
        decision=None, X=np.ones((1, 2)), losses=np.full(9, loss) if losses is None else losses,
        loss=loss, score=0.0, error=loss, factor=1.0, cells=False, seconds=0.0,
    )  # fmt: skip
    return quick.QuickFit(**(known | others))


def test_rounds_end_by_patience_and_go_on_with_what_a_narrower_kernel_gains():
    def asked(losses, **options):
        judged = Scripted(losses)
        first = made_fit(1.0)
        found = choice.Choice(first)
        rounds.Schedule(judged, np.inf, False).go_on(found, "columns", first, 5, **options)
        return judged.asked

    assert asked([0.9, 0.8, 0.85, 0.86]) == [(1, 1.0), (2, 1.0), (3, 1.0), (3, 4.0)]
    assert asked([0.9, 0.95, 0.8, 0.7, 0.75, 0.76]) == [
        (1, 1.0), (2, 1.0), (2, 4.0), (3, 4.0), (4, 4.0), (4, 16.0),
    ]  # fmt: skip
    patient = asked([0.9, 0.95, 0.96, 0.8, 0.85, 0.86, 0.87, 0.88], patience=1)
    assert [number for number, _ in patient] == [1, 2, 2, 3, 4, 4, 5, 5]
    assert asked([0.9] * 8) == [(1, 1.0), (2, 1.0), (2, 4.0)]


def test_rows_as_they_are_are_given_the_bandwidth_of_the_best_map():
    def settled(best, loss_there):
        judged = Scripted([loss_there])
        found = choice.Choice(made_fit(1.0), plain=made_fit(0.9, shape=None))
        found.fits.append(found.plain)
        found.add(best)
        rounds.Schedule(judged, np.inf, True)._be_fair(found)
        return found.plain.loss, judged.asked

    assert settled(made_fit(0.5, factor=16.0), 0.5) == (0.5, [(0, 16.0)])
    assert settled(made_fit(0.5, factor=16.0), 1.5) == (0.9, [(0, 16.0)])
    assert settled(made_fit(0.5, factor=1.0), 0.5) == (0.9, []), "which they have had"
    assert settled(made_fit(0.95, factor=16.0), 0.5) == (0.9, []), "which would not be taken anyway"


class Shaped(Scripted):
    """The same, with losses that each shape has of its own, and rows that choose."""

    choosing = np.full(9, 1.0 / 9.0)

    def __init__(self, **losses):
        self.losses, self.asked = {shape: iter(found) for shape, found in losses.items()}, []

    def fit(self, shape, number, relevance, factor, made_of=None):
        self.asked.append((shape, number, factor))
        loss = next(self.losses[shape])
        return made_fit(loss, shape=shape, round=number, factor=factor, made_of=made_of)


def rounds_of_shapes(**losses):
    judged, first = Shaped(**losses), made_fit(1.0)
    found = choice.Choice(first)
    rounds.Schedule(judged, np.inf, True).side_by_side(found, list(losses), first)
    made = {shape: [number for each, number, _ in judged.asked if each == shape] for shape in losses}
    return made, found.best, judged.asked


def test_shapes_take_turns_and_one_that_cannot_catch_up_ends():
    # With three rounds left, 0.85 - 3 times 0.05 is no less than 0.5; below, 0.8 - 3 times 0.15 is.
    made, best, asked = rounds_of_shapes(columns=[0.9, 0.85], directions=[0.6, 0.5, 0.45, 0.44, 0.43])
    assert [shape for shape, *_ in asked[:4]] == ["columns", "directions"] * 2
    assert made == {"columns": [1, 2], "directions": [1, 2, 3, 4, 5]}
    assert best.loss == 0.43
    made, best, _ = rounds_of_shapes(
        columns=[0.95, 0.8, 0.6, 0.4, 0.2], directions=[0.6, 0.55, 0.5, 0.45, 0.45, 0.45]
    )
    assert made["columns"] == [1, 2, 3, 4, 5] and best.loss == 0.2
    # What is no better and behind is not tried with a narrower kernel; what leads is.
    made, *_ = rounds_of_shapes(columns=[0.7, 0.75], directions=[0.5, 0.6, 0.6])
    assert made == {"columns": [1, 2], "directions": [1, 2, 2]}


def test_rounds_in_cells_are_made_only_where_one_map_is_not_better():
    def found(in_cells):
        judged = Shaped(columns=in_cells)
        judged.cells, judged.moments = True, None
        before = choice.Choice(made_fit(1.0), [made_fit(1.0)])
        before.add(made_fit(0.5, round=2))
        return rounds.Schedule(judged, np.inf, False).in_cells(before), judged.asked

    kept, asked = found([0.7, 0.8, 0.9])
    assert kept.best.loss == 0.5 and len(asked) == 3 and len(kept.fits) == 5
    # The narrower kernel was far worse, and is not tried again where a round is no better.
    gone_on, asked = found([0.4, 0.5, 0.6, 0.3, 0.35, 0.36])
    assert gone_on.best.loss == 0.3
    assert asked[3:] == [("columns", number, rounds.CELL_FACTOR) for number in (3, 4, 5)]


def test_a_bandwidth_is_left_for_one_that_is_clearly_better_where_fits_are_coarse():
    def chosen(losses, **options):
        schedule = rounds.Schedule(Shaped(columns=losses), np.inf, True)
        return schedule.with_bandwidths("columns", 0, None, 1.0, **options)[0].factor

    assert chosen([1.0, 0.995, 0.999, 0.999]) == 0.25
    assert chosen([1.0, 0.995, 1.2], clearly=True) == 1.0
    assert chosen([1.0, 0.9, 0.895], clearly=True) == 0.25


def test_bandwidths_are_told_by_fewer_rows_and_landmarks(monkeypatch):
    monkeypatch.setattr(rounds, "BANDWIDTH_ROWS", 400)
    drawn, original = [], quick.draw_map

    def spying(settings, backend, rows, *others):
        drawn.append((rows.shape[0], settings.map.n_components))
        return original(settings, backend, rows, *others)

    monkeypatch.setattr(quick, "draw_map", spying)
    model = regressor("columns").fit(X, Y)
    assert len(drawn) == len(model.relevance_history_)
    coarse = [each for each in drawn if each[0] == 400]
    assert len(coarse) >= 3 and set(coarse) == {(400, 64)}
    assert set(drawn) - set(coarse) == {(1125, 128)}


def test_rows_as_they_are_stay_unless_others_are_clearly_better():
    noise = np.random.default_rng(0).normal(size=400)
    weight = np.full(400, 1.0 / 400)
    plain = made_fit(1.0, 1.0 + noise, error=0.3)
    better = made_fit(0.5, 0.5 + noise, error=0.2)
    unsure = made_fit(0.95, 0.95 + noise[::-1], error=0.2)
    slight = made_fit(0.995, 0.995 + noise, error=0.2)
    wrong = made_fit(0.5, 0.5 + noise, error=0.31)
    worth = [choice.is_worth(fit, plain, weight) for fit in (better, unsure, slight, wrong)]
    assert worth == [True, False, False, False]


def test_the_last_question_is_put_to_rows_that_no_choice_has_looked_at():
    judged = replace(judged_rows(np.ones(600), np.arange(600.0), np.arange(50.0)), last=20)
    assert (judged.choosing[:30] > 0).all() and (judged.choosing[30:] == 0).all()
    assert (judged.deciding[:30] == 0).all() and (judged.deciding[30:] > 0).all()
    assert judged.choosing.sum() == judged.deciding.sum() == pytest.approx(1.0)


def test_every_callback_is_passed_on():
    names = {name for name in vars(FitCallbacks) if not name.startswith("_")}
    assert names <= set(vars(wrapping._WrappedCallbacks))
