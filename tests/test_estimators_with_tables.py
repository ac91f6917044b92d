"""Estimators that are given tables: what is encoded, what is not, and what becomes of all else."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from asset_svm import AssetClassifier, AssetRegressor, NystroemMap, TableEncoder
from asset_svm.encoding.encoding import folds_of
from asset_svm.exceptions import DataError
from asset_svm.families.observing import logger

N = 300


def classifier(**parameters):
    """A classifier of few steps."""
    return AssetClassifier(**dict(C=100.0, max_iter=10, random_state=0) | parameters)


def regressor(**parameters):
    """A regression of few steps."""
    return AssetRegressor(**dict(C=100.0, max_iter=10, random_state=0) | parameters)


def draw(n=N, seed=0):
    """A table with categories, gaps, truth values and dates, and classes that numbers alone miss."""
    rng = np.random.default_rng(seed)
    number, level = rng.normal(size=n), rng.choice(list("abc"), n)
    frame = pd.DataFrame(
        {
            "number": number,
            "level": level,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "truth": rng.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    return frame, ((number > 0.0) ^ (level == "a")).astype(int)


def plain(n=N, seed=0):
    """A frame of numbers, and classes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "k": rng.integers(0, 3, n)})
    return frame, (frame.a * frame.b > 0.0).to_numpy().astype(int)


FRAME, Y = draw()
PLAIN, CLASSES = plain()


@pytest.fixture(scope="module", autouse=True)
def no_look():
    """Few rows are not asked how numbers are best encoded, which takes fits of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asset_svm.estimators.tables.FEWEST_LOOKED_AT", 10**9)
        yield


@pytest.fixture(scope="module")
def fitted(no_look):
    """A model of the table."""
    return classifier().fit(FRAME, Y)


# What is encoded ----------------------------------------------------------------------------------


def test_a_table_is_encoded_and_new_rows_are_predicted(fitted):
    new, y = draw(500, seed=1)
    assert fitted.score(new, y) > 0.85
    assert isinstance(fitted.encoder_, TableEncoder)
    assert fitted.n_features_in_ == 5
    assert list(fitted.feature_names_in_) == list(FRAME.columns)


def test_the_log_says_that_numbers_were_scaled_too(caplog):
    with caplog.at_level("INFO", logger=logger.name):
        classifier().fit(FRAME, Y)
    said = [record.message for record in caplog.records if record.message.startswith("table: ")]
    assert "columns of X are encoded, numbers too" in said[0]
    assert any("number" in line and "standardised" in line for line in said)


@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas, lambda X: X.convert_dtypes()])
def test_a_frame_of_numbers_without_gaps_is_its_array(make):
    array = PLAIN.to_numpy(dtype=np.float64)
    expected = classifier().fit(array, CLASSES)
    model = classifier().fit(make(PLAIN), CLASSES)
    assert model.encoder_ is None
    np.testing.assert_array_equal(
        model.decision_function(make(PLAIN)), expected.decision_function(array)
    )
    assert expected.encoder_ is None


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"] * 150,
        [1.0, None] * 150,
        pd.date_range("2020", periods=N),
        pd.to_timedelta(np.arange(N), unit="h"),
        pd.array([1, None] * 150, dtype="Int64"),
        pd.Categorical([1, 2] * 150),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_with_any_other_column_is_encoded(column, library):
    frame = PLAIN.assign(other=column)
    frame = frame.astype({"other": str}) if isinstance(column, pd.Categorical) else frame
    frame = frame if library == "pandas" else pl.from_pandas(frame)
    assert classifier(max_iter=1).fit(frame, CLASSES).encoder_ is not None


def test_libraries_and_arrays_with_an_encoder_give_one_model(fitted):
    expected = fitted.decision_function(FRAME)
    polars = classifier().fit(pl.from_pandas(FRAME), Y)
    np.testing.assert_array_equal(polars.decision_function(pl.from_pandas(FRAME)), expected)
    np.testing.assert_array_equal(polars.decision_function(FRAME), expected)
    array = FRAME.to_numpy(dtype=object)
    objects = classifier(encoder=TableEncoder()).fit(array, Y)
    np.testing.assert_array_equal(objects.decision_function(array), expected)


@pytest.mark.parametrize("encoder", ["yes", 3, StopIteration])
def test_an_encoder_that_is_none_is_refused(encoder):
    with pytest.raises(ValueError, match="encoder="):
        classifier(encoder=encoder).fit(FRAME, Y)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["auto", None])
@pytest.mark.parametrize("rows", ["array", "list", "objects", "large"])
def test_gaps_in_arrays_are_an_error_that_names_the_encoder(encoder, rows):
    X = np.array([[1.0, 2.0], [np.nan, 1.0]] * (50 if rows != "large" else 150_000))
    X = {"list": X.tolist(), "objects": X.astype(object)}.get(rows, X)
    with pytest.raises(ValueError, match=r"Input X contains NaN.*encoder=TableEncoder\(\)"):
        classifier(encoder=encoder).fit(X, np.arange(len(X)) % 2)


@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas])
def test_tables_are_refused_by_name_where_no_encoder_is_wanted(make):
    with pytest.raises(ValueError, match=r"column 'gaps'.*TableEncoder"):
        classifier(encoder=None).fit(make(FRAME[["number", "gaps"]]), Y)
    with pytest.raises(ValueError, match=r"column 'level'.*TableEncoder"):
        classifier(encoder=None).fit(make(FRAME[["number", "level"]]), Y)
    with pytest.raises(ValueError, match=r"column 'day'.*TableEncoder"):
        classifier(encoder=None).fit(make(FRAME[["number", "day"]]), Y)


def test_a_map_of_rows_with_gaps_names_the_encoder_too():
    with pytest.raises(ValueError, match="NystroemMap takes none; put a TableEncoder before it"):
        NystroemMap().fit(np.array([[1.0], [np.nan]]))


@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas, lambda X: X.to_numpy()])
def test_a_gap_that_is_new_to_a_model_without_encoder_is_an_error_that_says_how_to_train(make):
    model = classifier().fit(make(PLAIN), CLASSES)
    holes = make(PLAIN.assign(b=np.nan))
    for ask in (model.predict, model.gradients, lambda X: model.certify(X, CLASSES)):
        with pytest.raises(ValueError, match=r"trained on rows without gaps; train it with encoder="):
            ask(holes)
    begun = classifier().partial_fit(make(PLAIN), CLASSES, classes=[0, 1])
    with pytest.raises(ValueError, match="trained on rows without gaps"):
        begun.partial_fit(holes, CLASSES)


def test_infinite_numbers_are_refused_always(fitted):
    endless = FRAME.assign(number=np.inf)
    with pytest.raises(DataError, match="'number' has infinite"):
        classifier().fit(endless, Y)
    with pytest.raises(DataError, match="'number' has infinite"):
        fitted.predict(endless)
    for encoder in ("auto", None, TableEncoder()):
        with pytest.raises(ValueError, match="infinit"):
            classifier(encoder=encoder).fit(PLAIN.assign(a=-np.inf), CLASSES)
        with pytest.raises(ValueError, match="infinit"):
            classifier(encoder=encoder).fit(PLAIN.assign(a=np.inf).to_numpy(), CLASSES)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(Y, np.nan, 1.0), "Input y contains NaN"),
        (np.where(Y, None, "a"), "y has no value in row"),
        (None, "y"),
        (Y[:-1], "inconsistent"),
    ],
)
def test_a_missing_target_stays_an_error(y, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(FRAME, y)
    if y is not None and y.dtype != object:
        with pytest.raises(ValueError, match=message):
            regressor().fit(FRAME, y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FRAME.assign(number=np.inf), "'number'"),
        (FRAME.assign(extra=[[1]] * N), "'extra'"),
        (FRAME.to_numpy(dtype=object), "X has"),
        (np.full((N, 2), np.nan), "TableEncoder"),
        (pd.concat([FRAME, FRAME], axis=1), "two columns named"),
        (FRAME[:0], "0 sample"),
        (FRAME.level, "X has text"),
        (pd.DataFrame({"c": ["a"] * N}), "No column of X"),
        (np.zeros(N, dtype=[("x", float), ("c", "U1")]), "records"),
        (pl.from_pandas(FRAME).lazy(), "lazy frame"),
    ],
)
def test_a_failed_fit_leaves_the_earlier_model(X, message):
    model = classifier(max_iter=2).fit(FRAME, Y)
    before, encoder = model.decision_function(FRAME), model.encoder_
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Y[: X.shape[0]] if hasattr(X, "shape") else Y)
    np.testing.assert_array_equal(model.decision_function(FRAME), before)
    assert model.encoder_ is encoder
    assert list(model.feature_names_in_) == list(FRAME.columns)


def test_a_fit_to_plain_rows_forgets_the_encoder_and_the_other_way_round():
    model = classifier(max_iter=2).fit(FRAME, Y).fit(PLAIN.to_numpy(), CLASSES)
    assert model.encoder_ is None
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert model.fit(FRAME, Y).encoder_ is not None
    assert model.n_features_in_ == 5


# Prediction ---------------------------------------------------------------------------------------


def test_columns_in_another_order_and_extra_ones_change_nothing(fitted):
    expected = fitted.decision_function(FRAME)
    np.testing.assert_array_equal(fitted.decision_function(FRAME[FRAME.columns[::-1]]), expected)
    np.testing.assert_array_equal(fitted.decision_function(FRAME.assign(extra="a")), expected)
    rows = [fitted.decision_function(FRAME[k : k + 1])[0] for k in range(5)]
    np.testing.assert_allclose(rows, expected[:5], rtol=1e-5, atol=1e-6)


def test_missing_columns_and_changed_types_are_told_by_name(fitted):
    with pytest.raises(DataError, match="'level' is missing"):
        fitted.predict(FRAME.drop(columns="level"))
    with pytest.raises(DataError, match="'number' has the text 'hello'"):
        fitted.predict(FRAME.assign(number="hello"))
    with pytest.raises(DataError, match="'day' has numbers"):
        fitted.predict(FRAME.assign(day=1.0))
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict(FRAME[:0])


def test_unknown_levels_and_new_gaps_have_a_decision(fitted):
    odd = FRAME.assign(level="never seen", number=np.nan, day=pd.NaT, truth=None)
    assert np.isfinite(fitted.decision_function(odd)).all()
    far = FRAME.assign(number=1e300)
    for numbers in ("pieces", "standard", "robust", "quantile"):
        model = classifier(encoder=TableEncoder(numbers=numbers), max_iter=2).fit(FRAME, Y)
        assert np.isfinite(model.decision_function(far)).all()


def test_truth_values_that_come_as_numbers_are_the_same(fitted):
    found = fitted.decision_function(FRAME.assign(truth=FRAME.truth.astype(float)))
    np.testing.assert_array_equal(found, fitted.decision_function(FRAME))


def test_arrays_are_taken_by_position_with_a_warning(fitted):
    array = FRAME.to_numpy(dtype=object)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = fitted.decision_function(array)
    np.testing.assert_array_equal(found, fitted.decision_function(FRAME))
    with pytest.raises(ValueError, match="X has 2 features"):
        fitted.predict(array[:, :2])


# Batches ------------------------------------------------------------------------------------------


def test_the_first_batch_settles_the_encoder():
    model = classifier()
    for start in range(0, N, 50):
        model.partial_fit(FRAME[start : start + 50], Y[start : start + 50], classes=[0, 1])
        if start == 0:
            encoder, rows = model.encoder_, model.encoder_.transform(FRAME)
    assert model.encoder_ is encoder
    np.testing.assert_array_equal(encoder.transform(FRAME), rows)
    expected = TableEncoder().fit(FRAME[:50], Y[:50]).transform(FRAME)
    np.testing.assert_array_equal(rows, expected)
    assert model.score(FRAME, Y) > 0.7


def test_a_batch_of_weight_zero_or_of_another_table_changes_nothing():
    model = classifier().partial_fit(FRAME, Y, classes=[0, 1])
    before = model.decision_function(FRAME)
    model.partial_fit(FRAME, Y, sample_weight=np.zeros(N))
    np.testing.assert_array_equal(model.decision_function(FRAME), before)
    for bad in (FRAME.drop(columns="level"), FRAME.assign(number="a"), FRAME.assign(gaps=np.inf)):
        with pytest.raises(DataError):
            model.partial_fit(bad, Y)
    np.testing.assert_array_equal(model.decision_function(FRAME), before)


def test_a_first_batch_of_one_class_is_taken():
    model = classifier().partial_fit(FRAME, np.zeros(N), classes=[0, 1]).partial_fit(FRAME, Y)
    assert model.encoder_ is not None


# Gradients and importances --------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", ["pieces", "standard", "robust", "quantile"])
@pytest.mark.parametrize("learner", [classifier, regressor])
def test_gradients_are_finite_differences_in_the_units_of_the_columns(numbers, learner):
    frame, new = (each.assign(number=1000.0 * each.number) for each in (FRAME, draw(N, seed=3)[0]))
    new = new.assign(day=new.day + pd.Timedelta(5, "h"))  # between edges
    encoder = TableEncoder(numbers=numbers, n_pieces=4, dtype=np.float64)
    model = learner(encoder=encoder).fit(frame, Y)
    decide = model.decision_function if learner is classifier else model.predict
    found = model.gradients(new)
    assert found.shape == (N, 5)
    steps = {"number": 0.01, "gaps": 1e-5, "day": pd.Timedelta(1, "min")}
    for name, step in steps.items():
        size = step / pd.Timedelta(1, "D") if name == "day" else step
        up, down = (decide(new.assign(**{name: new[name] + sign * step})) for sign in (1, -1))
        expected = (up - down) / (2.0 * size)
        there = new[name].notna().to_numpy()
        column = new.columns.get_loc(name)
        assert np.isnan(found[~there, column]).all()
        error = np.abs(found[there, column] - expected[there])
        close = error < 2e-3 * np.abs(expected[there]).max() + 1e-9
        assert close.mean() > 0.93, "all but rows at a kink"
    assert np.isnan(found[:, [1, 3]]).all(), "levels have none"


def test_gradients_of_several_classes_and_of_columns_left_out():
    y = np.arange(N) % 3
    model = classifier(max_iter=2).fit(FRAME.assign(constant=1.0), y)
    found = model.gradients(FRAME.assign(constant=1.0))
    assert found.shape == (N, 3, 6)
    assert (found[:, :, 5] == 0.0).all()


@pytest.mark.parametrize("relevance", ["columns", "directions"])
def test_importances_are_of_the_columns_of_the_user(relevance):
    frame = FRAME.assign(constant=1.0)
    model = classifier(relevance=relevance).fit(frame, Y)
    shares = model.feature_importances_
    assert shares.shape == (6,)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[5] == 0.0
    if relevance == "columns":
        assert set(np.argsort(shares)[-2:]) == {0, 1}


# All else -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": True},
        {"n_cells": 3, "max_iter": None},
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 2.0}},
        {"approximation": "fourier"},
        {"kernel": "laplacian"},
        {"landmarks": "kmeans"},
        {"relevance": "columns"},
        {"encoder": TableEncoder(numbers="robust", categorical=["truth"], drop=["day"])},
    ],
    ids=str,
)
def test_every_way_to_fit_takes_tables(parameters):
    new, y = draw(N, seed=2)
    assert classifier(**parameters).fit(FRAME, Y).score(new, y) > 0.75


def test_a_model_can_be_certified_compacted_pickled_and_cloned(fitted):
    objective, gap = fitted.certify(FRAME, Y)
    assert 0.0 <= gap <= objective
    expected = fitted.decision_function(FRAME)
    small = fitted.compact()
    assert small.encoder_ is fitted.encoder_
    np.testing.assert_allclose(small.decision_function(FRAME), expected, atol=1e-3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(FRAME), expected)
    given = TableEncoder(numbers="robust")
    model = classifier(encoder=given, max_iter=2).fit(FRAME, Y)
    assert not hasattr(given, "encoding_"), "the parameter is not fitted"
    copy = clone(model)
    assert copy.encoder is not given
    assert copy.encoder.get_params() == given.get_params()
    assert not hasattr(copy, "encoder_")


def test_compiled_takes_rows_of_numbers(fitted):
    rows = fitted.encoder_.transform(FRAME)
    np.testing.assert_array_equal(fitted.compiled()(rows), fitted.predict(FRAME))


def test_a_warm_start_goes_on_and_survives_another_table():
    model = classifier(warm_start=True, max_iter=5).fit(FRAME, Y)
    assert model.fit(FRAME, Y).score(FRAME, Y) > 0.85
    other = FRAME.assign(level="x" + FRAME.level, more=FRAME.number**2)
    assert model.fit(other, Y).score(other, Y) > 0.8
    assert model.fit(PLAIN, CLASSES).encoder_ is None
    assert model.fit(FRAME, Y).score(FRAME, Y) > 0.8


@pytest.mark.parametrize("many", [False, True])
def test_rows_of_weight_zero_are_absent(many):
    frame = FRAME.assign(c=(np.arange(N) % 70).astype(str)) if many else FRAME
    weight = np.where(np.arange(N) % 3, 1.0, 0.0)
    rare = frame.copy()
    rare.loc[weight == 0.0, "level"] = [f"only here {k}" for k in range((weight == 0.0).sum())]
    rare.loc[weight == 0.0, "number"] = 1e9
    model = classifier(max_iter=3).fit(rare, Y, sample_weight=weight)
    there = weight > 0.0
    expected = classifier(max_iter=3).fit(frame[there], Y[there])
    np.testing.assert_array_equal(model.decision_function(frame), expected.decision_function(frame))
    with pytest.raises(ValueError, match="weight"):
        model.fit(frame, Y, sample_weight=np.zeros(N))


def test_targets_of_any_kind_are_learnt():
    words = np.array(["no", "yes"])[Y]
    for y in (words, pd.Series(words), pd.Categorical(words), pl.Series(words.tolist()), Y > 0):
        model = classifier(max_iter=5).fit(FRAME, y)
        assert (np.asarray(model.predict(FRAME)) == np.asarray(y)).mean() > 0.8


def test_regressions_take_tables_and_units_of_targets():
    y = 1e6 * (FRAME.number.to_numpy() * np.where(FRAME.level == "a", -1.0, 1.0) + 5.0)
    model = regressor(target_transform="standard", max_iter=30).fit(FRAME, y)
    assert model.score(FRAME, y) > 0.8
    assert model.gradients(FRAME)[:, 0].std() > 1e5


def test_pipelines_and_searches_take_tables():
    assert make_pipeline(TableEncoder(), classifier()).fit(FRAME, Y).score(FRAME, Y) > 0.85
    assert cross_val_score(classifier(), FRAME, Y, cv=2).mean() > 0.7
    encoders = [TableEncoder(numbers="standard"), TableEncoder()]
    search = GridSearchCV(classifier(max_iter=3), {"encoder": encoders}, cv=2).fit(FRAME, Y)
    assert search.best_params_["encoder"] in encoders
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    nested = GridSearchCV(
        classifier(encoder=TableEncoder(), max_iter=3), {"encoder__numbers": ["robust", "pieces"]}, cv=2
    )
    assert nested.fit(FRAME, Y).score(FRAME, Y) > 0.7


# Target means ---------------------------------------------------------------------------------------


def many_levels(n, seed, others):
    """A column of 500 levels, and a number beside it, or not."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"c": np.char.add("l", rng.integers(0, 500, n).astype(str))})
    return frame.assign(z=rng.normal(size=n)) if others else frame


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
@pytest.mark.parametrize("others", [False, True])
def test_levels_without_meaning_give_no_skill_and_no_leak(others):
    X, new = many_levels(3000, 0, others), many_levels(3000, 1, others)
    y, unseen = (np.random.default_rng(seed).integers(0, 2, 3000) for seed in (2, 3))
    model = classifier(C=1.0, max_iter=5, n_components=100).fit(X, y)
    assert model.score(new, unseen) == pytest.approx(0.5, abs=0.04)
    rows = model.encoder_.rows(X, learning=True, whole=True)
    names = list(model.encoder_.get_feature_names_out())
    mean = rows[:, names.index("c mean 1")]
    assert abs(np.corrcoef(mean, y)[0, 1]) < 0.08
    leaky = model.encoder_.transform(X)[:, names.index("c mean 1")]
    assert np.corrcoef(leaky, y)[0, 1] > 0.3, "what the model would have seen"
    learnt = model.compiled()(rows)
    assert (learnt == y).mean() < 0.6, "training rows are as hard as new ones, nearly"


@pytest.mark.parametrize("others", [False, True])
def test_levels_with_a_meaning_are_learnt_even_where_there_is_nothing_else(others):
    X, new = many_levels(3000, 0, others), many_levels(3000, 1, others)
    likely = np.random.default_rng(2).random(500) < 0.5
    truth, told = (likely[frame.c.str[1:].astype(int)].astype(int) for frame in (X, new))
    model = classifier(max_iter=5, n_components=100).fit(X, truth)
    assert model.score(new, told) > 0.9
    assert len(np.unique(folds_of(model.encoder_.table(X), whole=True))) == 5


def test_targets_of_regressions_and_of_many_classes_have_means():
    X = many_levels(2000, 0, others=False)
    effect = np.random.default_rng(2).normal(size=500)[X.c.str[1:].astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert regressor(max_iter=20, n_components=100).fit(X, effect).score(X, effect) > 0.7
    y = np.digitize(effect, [-0.5, 0.5])
    model = classifier(max_iter=5, n_components=100).fit(X, y)
    assert len(model.encoder_.get_feature_names_out()) == 3
    assert model.score(X, y) > 0.7
