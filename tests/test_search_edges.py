"""Searches whose best value lies at the edge of what was to be tried, or far beyond it."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from asset_svm import AssetClassifierCV, AssetRegressorCV, NystroemMap
from asset_svm.search import run
from asset_svm.search.grid import AUTO_FACTORS, MOST_BEYOND, Grid, target_unit
from asset_svm.search.results import Line, Table

EDGE = r"The best C, 1e\+04, is the largest that was tried; give larger Cs\."


def waves(m=1200, periods=40, seed=0):
    """Classes that change far more often than rows are apart: gamma must be large."""
    X = np.random.default_rng(seed).uniform(size=(m, 1))
    return X, (np.sin(2 * np.pi * periods * X[:, 0]) > 0).astype(int)


def crowd(m=1200, seed=0):
    """Three rows of four in one place, and a target that the others decide: gamma must be small."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2)) * np.where(np.arange(m) % 4, 0.02, 1.0)[:, None]
    return X, X[:, 0] + np.sin(2 * X[:, 1])


def small(kind, **options):
    settings = {"Cs": [1.0, 100.0], "gammas": "auto", "cv": 0.3, "n_components": 200, "random_state": 0}
    return kind(**{**settings, **options})


def is_ladder(gammas):
    return np.allclose(np.diff(np.log(gammas)), np.log(4.0))


@pytest.mark.parametrize(("kind", "rows"), [(AssetClassifierCV, waves), (AssetRegressorCV, crowd)])
def test_auto_finds_a_gamma_far_outside(kind, rows):
    X, y = rows()
    search = small(kind).fit(X, y)
    place = search.gammas_.index(search.best_params_["gamma"])
    beyond = len(search.gammas_) - len(AUTO_FACTORS)
    assert 2 <= beyond <= MOST_BEYOND and is_ladder(search.gammas_)
    assert 0 < place < len(search.gammas_) - 1 and "gamma" not in search.best_at_edge_
    own = search.gammas_[beyond:] if kind is AssetRegressorCV else search.gammas_[: len(AUTO_FACTORS)]
    inside = small(kind, gammas=own).fit(X, y)
    assert search.best_score_ > inside.best_score_ + 0.05
    assert "gamma" in inside.best_at_edge_ and inside.gammas_ == own
    assert len(search.cv_results_["params"]) == 2 * len(search.gammas_)
    named = [params["gamma"] for params in search.cv_results_["params"][::2]]
    assert named == list(search.gammas_)
    where = np.isin(search.cv_results_["param_gamma"], own)
    scores = search.cv_results_["mean_test_score"][where]
    np.testing.assert_array_equal(scores, inside.cv_results_["mean_test_score"])
    assert search.best_estimator_.gamma == search.best_params_["gamma"]


def test_the_refit_after_an_extension_is_the_estimator_itself():
    X, y = crowd()
    search = small(AssetRegressorCV).fit(X.astype(np.float32), y)
    best = search.best_estimator_
    again = type(best)(**best.get_params()).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(best.map_coef_, again.map_coef_)


def test_a_best_inside_costs_no_other_map():
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    seen = []
    search = small(AssetClassifierCV)
    search._fit_watched(X, y, None, watch=lambda progress: seen.append((progress.done, progress.total)))
    assert len(search.gammas_) == len(AUTO_FACTORS)
    assert seen == [(done, len(AUTO_FACTORS)) for done in range(1, len(AUTO_FACTORS) + 1)]


def test_scores_that_do_not_change_lead_nowhere():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (np.arange(300) % 50 == 0).astype(int)
    search = small(AssetClassifierCV, Cs=[1e-6], cv=3).fit(X, y)
    assert np.ptp(search.cv_results_["mean_test_score"]) == 0.0
    assert len(search.gammas_) == len(AUTO_FACTORS) and search.best_at_edge_ == {}


def test_where_the_best_is_still_the_last_a_warning_tells(monkeypatch):
    monkeypatch.setattr(run, "MOST_BEYOND", 1)
    X, y = waves()
    with pytest.warns(ConvergenceWarning, match=r'is the largest that gammas="auto" came to; give'):
        search = small(AssetClassifierCV, refit=False).fit(X, y)
    assert search.best_at_edge_["gamma"] == "largest" and len(search.gammas_) == 7


def test_who_asks_to_stop_is_led_nowhere():
    X, y = waves()
    search = small(AssetClassifierCV)
    search._fit_watched(X, y, None, watch=lambda progress: progress.done == 6)
    assert len(search.gammas_) == 6 and search.best_at_edge_["gamma"] == "largest"


def test_the_race_goes_beyond_on_the_rows_of_its_round():
    X, y = waves(m=9000)
    search = small(AssetClassifierCV, Cs=[100.0], n_components=150, refit=False).fit(X, y)
    results = search.cv_results_
    assert len(search.gammas_) > 6 and is_ladder(search.gammas_)
    assert set(results["n_resources"]) == {3000, 9000}
    # Both finalists came to the race in its first round; one more may have come in its last.
    assert not results["iter"][:6].any() and sum(results["iter"] == 1) in (2, 3)
    assert results["iter"][search.best_index_] == 1


def table(scores, rounds=None, **values):
    """With these scores, of shape (gammas, epsilons, Cs)."""
    scores = np.asarray(scores, dtype=float)
    grid = Grid(np.asarray(values["Cs"], dtype=float), values.get("gammas"), values.get("epsilons"))
    lines = {
        (g, e): Line(scores[g, e][:, None], 0 if rounds is None else rounds[g], 10, 0.0, 0.0)
        for g in range(scores.shape[0])
        for e in range(scores.shape[1])
        if np.isfinite(scores[g, e]).any()
    }
    return Table(grid, 1, lines)


def test_edges_are_of_what_was_tried_and_can_be():
    nan, four = np.nan, (0.1, 0.2, 0.3, 0.4)

    def of_gamma(*scores, rounds=None):
        gammas = tuple(np.linspace(0.1, 1.0, len(scores)))
        return table([[[s]] for s in scores], rounds, Cs=[1.0], gammas=gammas).edges()

    assert of_gamma(*four) == {"gamma": "largest"}
    assert of_gamma(*four[::-1]) == {"gamma": "smallest"}
    assert of_gamma(0.1, 0.4, 0.2) == {} == of_gamma(0.1, 0.2)
    assert of_gamma(0.1, 0.2, 0.3, nan, nan) == {} == of_gamma(nan, nan, nan, 0.3, 0.4)
    assert of_gamma(0.4, 0.4, 0.1) == {}
    # A neighbour that fell out of the race was worse, whatever its score on fewer rows.
    assert of_gamma(0.1, 0.9, 0.8, rounds=[0, 0, 1]) == {"gamma": "largest"}
    assert table([[four]], Cs=[1, 2, 3, 4]).edges() == {"C": "largest"}
    assert table([[[s] for s in four[::-1]]], Cs=[1], epsilons=(0.0, 0.1, 0.2, 0.3)).edges() == {}
    assert table([[[s] for s in four]], Cs=[1], epsilons=(0.0, 0.1, 0.2, 0.3)).edges() == {
        "epsilon": "largest"
    }


@pytest.mark.parametrize("Cs", [3, [0.01, 10.0, 10000.0]])
def test_a_best_C_at_the_edge_is_told_of_whoever_chose_the_values(Cs, caplog):
    X, y = waves(periods=3)
    search = small(AssetClassifierCV, Cs=Cs, gammas=[10.0], cv=3, refit=False)
    told = pytest.warns(ConvergenceWarning, match=EDGE) if Cs == 3 else nullcontext()
    with told:
        search.fit(X, y)
    assert search.best_at_edge_ == {"C": "largest"}
    assert [re.fullmatch(EDGE, said) is not None for said in caplog.messages] == [True] * (Cs != 3)


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ({}, True),
        ({"gamma": 2.0}, False),
        ({"gammas": None}, False),
        ({"kernel": "linear"}, False),
        ({"approximation": NystroemMap(gamma=1.0)}, False),
    ],
)
def test_gammas_are_searched_unless_there_is_one_already(options, searched):
    X, y = crowd(m=120)
    y = (y > 0).astype(int)
    found = AssetClassifierCV(Cs=[1.0], cv=2, search_iter=1, refit=False, **options).fit(X, y)
    assert ("gamma" in found.best_params_) is searched


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_the_grid_of_Cs_goes_with_the_targets(scale):
    """House prices: with Cs up to 10^4 the best was at the edge, far below what can be had."""
    X, y = crowd(m=200)
    options = dict(Cs=4, gammas=[1.0], cv=3, epsilon=0.01 * scale, random_state=0, refit=False)
    one = AssetRegressorCV(**{**options, "epsilon": 0.01}).fit(X, y)
    found = AssetRegressorCV(**options).fit(X, scale * y)
    np.testing.assert_allclose(found.Cs_, scale * one.Cs_)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"], atol=0.02
    )
    assert AssetRegressorCV(**{**options, "Cs": [1.0]}).fit(X, scale * y).Cs_ == [1.0]


def test_the_unit_of_C_is_robust_and_always_there():
    y = np.random.default_rng(0).normal(scale=300.0, size=1000)
    assert target_unit(y) == target_unit(np.append(y, 1e12)) == 100.0
    assert target_unit(np.zeros(10)) == 1.0
    assert target_unit(np.array([0.0] * 90 + [50.0] * 10)) == 10.0
