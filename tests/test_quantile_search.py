"""AssetQuantileRegressorCV: grids and races of all quantiles at once, judged by the pinball loss."""

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score, make_scorer, mean_pinball_loss
from sklearn.model_selection import KFold, cross_val_score

from asset_svm import AssetQuantileRegressor, AssetQuantileRegressorCV, load, save
from asset_svm.losses import Hinge, Pinball
from asset_svm.search import racing
from asset_svm.tasks.quantiles import d2_of

QUANTILES = (0.1, 0.5, 0.9)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
SPREAD = 0.2 + 0.3 * np.abs(X[:, 1])
Y = 40.0 + np.sin(2 * X[:, 0]) + SPREAD * RNG.normal(size=400)
FOLDS = KFold(3, shuffle=True, random_state=0)


def pinball(predicted, y):
    return float(
        np.mean([mean_pinball_loss(y, predicted[:, k], alpha=q) for k, q in enumerate(QUANTILES)])
    )


@pytest.mark.parametrize("where", [{"n_components": 60}, {"n_cells": 1}])
def test_scores_of_a_grid_are_those_of_estimators_fitted_to_the_folds(where):
    """Nine models that train together, each with its own quantile, against one fit after the other."""
    given = dict(gamma=0.5, random_state=0, cv=FOLDS, **where)
    search = AssetQuantileRegressorCV(quantiles=QUANTILES, Cs=[0.3, 3.0], gammas=None, **given)
    search.fit(X, Y)
    for C, found in zip((0.3, 3.0), search.cv_results_["mean_test_score"], strict=True):
        alone = AssetQuantileRegressor(quantiles=QUANTILES, C=C, gamma=0.5, random_state=0, **where)
        assert found == pytest.approx(cross_val_score(alone, X, Y, cv=FOLDS).mean(), abs=0.02)
    same = AssetQuantileRegressor(
        quantiles=QUANTILES, gamma=0.5, random_state=0, **where, **search.best_params_
    )
    np.testing.assert_array_equal(search.predict(X), same.fit(X, Y).predict(X))
    assert search.score(X, Y) == same.score(X, Y)
    np.testing.assert_array_equal(search.coverage(X, Y), same.coverage(X, Y))


def test_a_scorer_sees_predictions_in_order():
    def judged(y, predicted):
        assert predicted.shape == (len(y), 3) and (np.diff(predicted, axis=1) >= 0.0).all()
        return -pinball(predicted, y)

    search = AssetQuantileRegressorCV(
        Cs=[1000.0], gammas=[4.0], scoring=make_scorer(judged), cv=3, n_components=80, random_state=0
    )
    assert search.fit(X, Y).best_score_ < 0.0


def test_a_race_finds_a_model_of_the_quantiles(tmp_path):
    search = AssetQuantileRegressorCV(time_limit=4, random_state=0).fit(X[:300], Y[:300])
    assert search.leaderboard_["score"].iloc[0] == pytest.approx(search.best_score_, abs=0.05)
    assert "epsilon" not in search.best_params_
    held = search.predict(X[300:])
    constant = np.broadcast_to(np.quantile(Y[:300], QUANTILES), held.shape)
    assert pinball(held, Y[300:]) < 0.7 * pinball(constant, Y[300:])
    save(search.best_estimator_, tmp_path / "m.asset")
    np.testing.assert_array_equal(load(tmp_path / "m.asset").predict(X), search.predict(X))


def test_a_race_judges_by_three_of_many_quantiles_and_the_model_has_all(monkeypatch):
    gather, judged = racing.gather, []

    def watched(learner, *given):
        judged.append(learner.quantiles)
        return gather(learner, *given)

    monkeypatch.setattr(racing, "gather", watched)
    levels = (0.05, 0.1, 0.5, 0.9, 0.95)
    search = AssetQuantileRegressorCV(
        quantiles=levels, kernel="rbf", relevance=None, n_components=50, time_limit=2, random_state=0
    )
    found = search.fit(X, Y).predict(X)
    assert found.shape == (400, 5) and (np.diff(found, axis=1) >= 0.0).all()
    assert search.best_estimator_.quantiles == levels
    assert judged == [(0.05, 0.5, 0.95)]
    assert 0.0 < search.best_score_ < d2_of(found[:, [0, 2, 4]], Y, (0.05, 0.5, 0.95), None)


def test_one_quantile_has_one_axis_and_several_targets_are_refused():
    search = AssetQuantileRegressorCV(quantiles=0.9, Cs=[1.0], gammas=[0.5], cv=2, random_state=0)
    assert search.fit(X[:60], Y[:60]).predict(X).shape == (400,)
    with pytest.raises(ValueError, match="y has 2 columns, and quantiles are those of one"):
        search.fit(X, np.column_stack([Y, Y]))
    with pytest.raises(TypeError, match=r"epsilon.*there is no tube"):
        AssetQuantileRegressorCV(epsilon=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_the_mean_of_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    y, found = rng.normal(size=51), rng.normal(size=(51, 3))
    told = [d2_pinball_score(y, found[:, k], alpha=q) for k, q in enumerate(QUANTILES)]
    assert d2_of(found, y, QUANTILES, None) == pytest.approx(np.mean(told))
    exact = np.broadcast_to(y[:, None], found.shape)
    assert d2_of(exact, y, QUANTILES, None) == 1.0
    assert np.isnan(d2_of(found[:1], y[:1], QUANTILES, None))
    assert d2_of(np.ones((4, 3)), np.ones(4), QUANTILES, None) == 1.0


def test_losses_of_some_models_are_theirs():
    assert Pinball((0.1, 0.5)).of_models(np.array([3, 0, 2])) == Pinball((0.5, 0.1, 0.1))
    assert Hinge().of_models(np.array([1, 0])) == Hinge()
