"""When a fit ends, and who is told on the way: tol, early stopping, time limits, callbacks."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from asset_svm import AssetClassifier, AssetRegressor
from asset_svm.training.stopping import Look, Stopping
from small_problems import BINARY, REALS, THREE, X, quick

# Stopping ----------------------------------------------------------------------------------------


def test_early_stopping_returns_the_best_model():
    """The last iterates of a long step are noisy: the best epoch is not the last.

    An iterate does not depend on how many epochs follow it, so that a run that ends with the best
    epoch returns the same model.
    """
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(240) < 0.25, 1 - BINARY, BINARY)
    parameters = {"early_stopping": True, "average": None, "step_scale": 1.0, "C": 100}
    parameters |= {"validation_fraction": 0.3, "n_iter_no_change": 4}
    model = quick(max_iter=50, **parameters).fit(X, noisy)
    scores = [record["validation_score"] for record in model.history_]
    best = int(np.argmax(scores)) + 1
    assert model.n_iter_ == len(scores) == best + 4 < 50
    shorter = quick(max_iter=best, **parameters).fit(X, noisy)
    np.testing.assert_array_equal(model.map_coef_, shorter.map_coef_)
    np.testing.assert_array_equal(model.intercept_, shorter.intercept_)
    assert shorter.history_[-1]["validation_score"] == max(scores)


def test_early_stopping_scores_a_regression_by_r2():
    model = quick(AssetRegressor, early_stopping=True, max_iter=50, n_iter_no_change=3)
    model.fit(X, REALS)
    scores = [record["validation_score"] for record in model.history_]
    assert len(scores) == model.n_iter_
    assert model.score(X, REALS) == pytest.approx(max(scores), abs=0.2)
    assert max(scores) <= 1.0


def test_a_time_limit_ends_an_endless_fit(ticks):
    model = AssetClassifier(max_iter=10**9, time_limit=100.0, random_state=0, step_scale=1.0)
    model.fit(X, BINARY)
    assert 1 <= model.n_iter_ < 10**9
    assert 100 < ticks.looks < 110 and model.t_ > 10 * len(X)
    assert model.score(X, BINARY) > 0.9


@pytest.mark.parametrize(("amount", "errors", "end"), [(2, 0, 9), (40, 0, 25), (2, 2, 9), (2, 40, 25)])
def test_a_default_run_ends_when_little_is_left_to_gain(amount, errors, end):
    """Objectives of 1 + amount / t after t epochs, or errors: 25 epochs gain 0.07 amount beyond 9."""
    stopping, done, looks = Stopping(25, flat=0.14, least_steps=100), 0, []
    while done < 25:
        done += stopping.stage(done)
        looks.append(Look(done, 1.0 + amount / done, 1.0 + errors / done))
        if len(looks) > 1 and stopping.is_flat(looks[-2], looks[-1], 50):
            break
    assert done == end


def test_a_run_that_is_short_or_rises_is_not_flat():
    stopping = Stopping(25, flat=0.03, least_steps=100)
    same, risen = Look(9, 1.0, 0.1), Look(9, 5.0, 0.1)
    assert stopping.is_flat(Look(3, 1.0, 0.1), same, 12)
    assert not stopping.is_flat(Look(3, 1.0, 0.1), same, 11), "99 steps are too few"
    assert not stopping.is_flat(Look(3, 1.0, 0.1), risen, 12)
    assert stopping.is_flat(Look(3, 0.0, 0.0), Look(9, 0.0, 0.0), 12), "nothing is left"


def test_default_epochs_end_early_on_many_rows_and_never_those_asked_for():
    rng, few = np.random.default_rng(0), {"n_components": 30, "random_state": 0}
    rows = rng.normal(size=(40_000, 3)).astype(np.float32)
    y = rows[:, 0] + 0.5 * rng.normal(size=len(rows)) > 0
    fits = [AssetClassifier(**few, n_jobs=n).fit(rows, y) for n in (1, 2)]
    assert [model.n_iter_ for model in fits] == [9, 9]
    np.testing.assert_array_equal(fits[0].map_coef_, fits[1].map_coef_)
    looks = [each["epoch"] for each in fits[0].history_ if "sampled_objective" in each]
    assert looks == [3, 9]
    long = AssetClassifier(**few, max_iter=25).fit(rows, y)
    assert long.n_iter_ == 25
    assert fits[0].objective_ <= 1.02 * long.objective_
    assert AssetClassifier(**few).fit(rows[:4000], y[:4000]).n_iter_ == 25, "too few steps to judge"


@pytest.mark.parametrize("average", [0.5, 50, None])
def test_a_time_limit_can_end_an_epoch_and_still_gives_a_model(average):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 3))
    y = rows[:, 0] > 0
    model = quick(time_limit=1e-9, n_components=20, average=average).fit(rows, y)
    assert 1 <= model.t_ < 6000
    assert model.n_iter_ == 1
    assert model.score(rows, y) > 0.8


@pytest.mark.parametrize("step", ["auto", "robust"])
def test_epochs_that_a_time_limit_left_out_are_not_counted(step):
    """Of few rows hundreds of epochs are run between two records; the clock ends the first block."""
    model = quick(step=step, max_iter=40_000, time_limit=1e-9).fit(X, BINARY)
    assert len(X) < model.t_ < 200 * len(X)
    assert model.n_iter_ == model.history_[-1]["epoch"] == math.ceil(model.t_ / len(X))


def test_tol_stops_as_soon_as_the_gap_is_small():
    model = quick(tol=0.3, max_iter=4096).fit(X, BINARY)
    assert model.n_iter_ < 4096
    assert model.n_iter_ & (model.n_iter_ - 1) == 0  # checked after 1, 2, 4, ... epochs
    assert model.dual_gap_ <= 0.3 * model.objective_
    assert model.history_[-1]["dual_gap"] == pytest.approx(model.dual_gap_)
    finer = quick(tol=0.1, max_iter=4096).fit(X, BINARY)
    assert finer.n_iter_ > model.n_iter_


@pytest.mark.parametrize("kind", [list, np.array])
def test_rows_without_weight_are_nothing_to_learn_from_and_nothing_new(kind):
    zero = kind([0.0] * len(X))
    none = r"at least one non-zero|Every row has weight 0"  # the words of scikit-learn, or ours
    with pytest.raises(ValueError, match=none):
        quick().fit(X, BINARY, sample_weight=zero)
    with pytest.raises(ValueError, match=none):
        quick().partial_fit(X, BINARY, classes=np.unique(BINARY), sample_weight=zero)
    model = quick().partial_fit(X, BINARY, classes=np.unique(BINARY))
    before = model.map_coef_.copy(), model.t_
    model.partial_fit(X, BINARY, sample_weight=zero)
    np.testing.assert_array_equal(model.map_coef_, before[0])
    assert model.t_ == before[1]
    with pytest.raises(ValueError, match=r"shape|1D"):
        quick().fit(X, BINARY, sample_weight=np.zeros((len(X), 2)))


def test_a_tol_that_is_not_reached_warns_and_gives_a_model():
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-09; raise max_iter or tol \(SVC's") as caught:
        model = quick(tol=1e-9, max_iter=3).fit(X, BINARY)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 3
    assert model.dual_gap_ > 1e-9 * model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(tol=None, max_iter=3).fit(X, BINARY)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    model = quick(warm_start=True, max_iter=2, average=None).fit(X, BINARY)
    phi, first = model.feature_map_, model.objective_
    objectives = [first]
    for fits in range(2, 12):
        model.fit(X, BINARY)
        assert model.feature_map_ is phi
        assert model.t_ == fits * 2 * 240
        objectives.append(model.objective_)
    assert min(objectives[5:]) < first
    cold = quick(max_iter=2, average=None).fit(X, BINARY)
    assert cold.objective_ == first
    assert cold.t_ == 480


@pytest.mark.filterwarnings("ignore:The model tells no rows apart")
def test_a_warm_start_uses_the_new_c():
    model = quick(warm_start=True, max_iter=50, C=0.001).fit(X, BINARY)
    model.set_params(C=100).fit(X, BINARY)
    assert model.lam_ == pytest.approx(1 / (100 * 240))
    assert model.score(X, BINARY) > 0.9


@pytest.mark.parametrize(
    "change", [{"gamma": 2.0}, {"n_components": 10}, {"kernel": "laplacian"}], ids=str
)
def test_a_warm_start_begins_anew_with_another_map(change):
    model = quick(warm_start=True).fit(X, BINARY).set_params(**change).fit(X, BINARY)
    np.testing.assert_array_equal(model.map_coef_, quick(**change).fit(X, BINARY).map_coef_)
    assert model.t_ == 2400


def test_a_warm_start_begins_anew_with_other_columns_or_classes():
    model = quick(warm_start=True).fit(X, BINARY)
    np.testing.assert_array_equal(model.fit(X, THREE).map_coef_, quick().fit(X, THREE).map_coef_)
    model.fit(X[:, :2], THREE)
    np.testing.assert_array_equal(model.map_coef_, quick().fit(X[:, :2], THREE).map_coef_)


# Callbacks ---------------------------------------------------------------------------------------


class Watcher:
    """Counts tasks, scores every epoch, and may stop or fail at one."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.begun, self.ended, self.scores, self.torn_down = [], [], [], 0

    def setup(self, estimator, context):
        self.max_subtasks = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if context.task_name != "epoch":
            return False
        self.scores.append(fitted_estimator.score(X, y))
        if len(self.scores) == self.fail_at:
            raise RuntimeError("the callback failed")
        return len(self.scores) == self.stop_at


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback")


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_callbacks_see_every_epoch_and_a_model_that_predicts(callbacks, kind):
    watcher = Watcher()
    y = THREE if kind is AssetClassifier else REALS
    model = quick(kind, max_iter=6, average=None).set_callbacks(watcher).fit(X, y)
    assert watcher.begun.count("epoch") == watcher.ended.count("epoch") == 6 == watcher.max_subtasks
    assert watcher.begun[0] == watcher.ended[-1] == "fit"
    assert watcher.scores[-1] == model.score(X, y)
    assert watcher.torn_down == 1
    plain = quick(kind, max_iter=6, average=None).fit(X, y)
    np.testing.assert_array_equal(model.map_coef_, plain.map_coef_)


def test_a_callback_that_asks_to_stop_stops_the_fit(callbacks):
    watcher = Watcher(stop_at=3)
    model = quick(max_iter=50).set_callbacks(watcher).fit(X, BINARY)
    assert model.n_iter_ == 3 == len(watcher.scores)
    assert watcher.ended[-1] == "fit"
    assert watcher.torn_down == 1
    assert model.t_ == 720


def test_a_callback_that_fails_leaves_the_old_model(callbacks):
    model = quick().fit(X, BINARY)
    before = model.decision_function(X)
    watcher = Watcher(fail_at=2)
    with pytest.raises(RuntimeError, match="the callback failed"):
        model.set_callbacks(watcher).fit(X[:, :2], THREE)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.classes_.tolist() == [0, 1]
    assert watcher.torn_down == 1


def test_the_progress_bar_of_scikit_learn_works(callbacks, capsys):
    pytest.importorskip("rich")
    bar = callbacks.ProgressBar()
    model = quick(max_iter=5).set_callbacks(bar).fit(X, BINARY)
    assert model.n_iter_ == 5
    assert "AssetClassifier" in capsys.readouterr().out


def test_the_score_monitor_of_scikit_learn_works(callbacks):
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    quick(max_iter=5).set_callbacks(monitor).fit(X, BINARY)
    (log,) = monitor.get_logs() if isinstance(monitor.get_logs(), list) else [monitor.get_logs()]
    assert len(log.data) >= 5


def test_a_pickle_of_a_model_with_callbacks_predicts(callbacks):
    model = quick(max_iter=2).set_callbacks(Watcher()).fit(X, BINARY)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
