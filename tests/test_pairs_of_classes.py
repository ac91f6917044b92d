"""multi_class="ovo": every two classes by a model of their rows alone, as in SVC."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_gaussian_quantiles
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from asset_svm import AssetClassifier, AssetClassifierCV, load, save
from asset_svm.cli.main import main
from asset_svm.data import OneVsRestTargets, PairTargets
from asset_svm.dual import tight_bound
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.losses import Hinge, best_intercept, scalar_excess, scalar_slope
from asset_svm.problem import CertificateSums
from asset_svm.tasks.classification import pair_votes
from asset_svm.training.recipe import Recipe

X, Y = load_digits(n_class=5, return_X_y=True)
X = X[:400] / 16.0
Y = np.array(["zero", "one", "two", "three", "four"])[Y[:400]]
OVO = {"multi_class": "ovo", "random_state": 0}
reals = st.floats(-10, 10, allow_nan=False)


# The loss of rows that a model does not see -------------------------------------------------------


@given(f=reals, other=reals)
def test_a_target_of_0_costs_nothing_and_pulls_nowhere(f, other):
    loss, nothing = Hinge(), np.zeros(1)
    assert loss.value(nothing, np.array([f])) == 0.0 == loss.slope(nothing, np.array([other]))
    assert scalar_excess(0, 0.0, 0.0, f) <= 0.0 == scalar_slope(0, 0.0, 0.0, f)
    low, high = loss.box(nothing, np.ones(1))
    assert low == high == 0.0 == loss.conjugate(nothing, np.zeros(1))


def test_rows_that_are_not_seen_change_no_intercept_and_no_bound():
    rng = np.random.default_rng(0)
    V, y, weight = rng.normal(size=(60, 4)), rng.choice([-1.0, 0.0, 1.0], 60), rng.uniform(1, 2, 60)
    seen, coef = y != 0.0, rng.normal(size=4)
    loss, f = Hinge(), V @ coef
    part = best_intercept(loss, y[seen], f[seen], weight[seen])
    assert best_intercept(loss, y, f, weight) == part
    assert best_intercept(loss, np.zeros(60), f, weight) == 0.0
    share = weight[seen].sum() / weight.sum()
    for free in (False, True):
        every = tight_bound(loss, 0.1, coef, 0.3, lambda: iter([(V, y, weight)]), free_intercept=free)
        some = tight_bound(
            loss, 0.1 / share, coef, 0.3, lambda: iter([(V[seen], y[seen], weight[seen])]),
            free_intercept=free,
        )  # fmt: skip
        np.testing.assert_allclose(every[:2], share * np.array(some[:2]), rtol=2e-3)
    objective, bound, _ = tight_bound(
        loss, 0.1, coef, 0.0, lambda: iter([(V, 0.0 * y, weight)]), free_intercept=True
    )
    assert (objective, bound) == (pytest.approx(0.05 * coef @ coef), 0.0)


@pytest.mark.parametrize("step", ["metric", "robust"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_row_that_is_stepped_over_is_a_step_all_the_same(monkeypatch, step, loss):
    """The blocked form looks at every row: decay, average and history must be those of its steps."""
    rng = np.random.default_rng(2)
    rows, y = rng.normal(size=(900, 4)), rng.integers(0, 6, 900)
    options = dict(step=step, loss=loss, gamma=0.5, n_components=40, max_iter=3, random_state=0)
    over = AssetClassifier(multi_class="ovo", **options).fit(rows, y)
    monkeypatch.setattr(Recipe, "form_for", lambda recipe, targets: "blocked")
    through = AssetClassifier(multi_class="ovo", **options).fit(rows, y)
    assert over.t_ == through.t_ == 2700
    assert not np.array_equal(over.map_coef_, through.map_coef_), "both went the same way"
    np.testing.assert_allclose(over.map_coef_, through.map_coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(over.intercept_, through.intercept_, atol=1e-9)
    for one, other in zip(over.history_, through.history_, strict=True):
        for name in ("progressive_loss", "sign_errors", "active"):
            assert one[name] == pytest.approx(other[name], rel=1e-6)


def test_many_pairs_step_by_rows_and_many_classes_by_blocks():
    codes = np.arange(40) % 20
    recipe = Recipe(Hinge(), (1.0,) * 190)
    assert recipe.form_for(PairTargets(codes, 20)) == "row"
    assert recipe.form_for(OneVsRestTargets(codes, 190)) == "blocked"


def test_errors_of_a_history_are_those_of_rows_that_a_pair_sees():
    """Classes that hang on nothing: a pair is wrong in half of the rows that it sees, as they come."""
    rng = np.random.default_rng(5)
    rows, y = rng.normal(size=(3000, 4)), rng.integers(0, 6, (3000, 2))
    ours = AssetClassifier(multi_class="ovo", gamma=1.0, n_components=100, max_iter=1, random_state=0)
    for targets in (y[:, 0], y, np.column_stack([y[:, 0], y[:, 1] > 2])):
        history = ours.fit(rows, targets).history_
        assert history[0]["sign_errors"] == pytest.approx(0.5, abs=0.03)


def test_certificates_bound_the_objective_of_pairs():
    class Rows:
        def __init__(self, V):
            self.V = V

        def exact_margins(self, coef):
            return coef @ self.V.T

        def exact_sums(self, beta):
            return np.stack([np.minimum(beta, 0) @ self.V, np.maximum(beta, 0) @ self.V])

    rng = np.random.default_rng(1)
    V, y = rng.normal(size=(50, 3)), rng.choice([-1.0, 0.0, 1.0], 50)
    exact = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-8, max_iter=100_000)
    exact.fit(V[y != 0], y[y != 0])
    coef, lam = exact.coef_, 1.0 / 50
    sums, model = CertificateSums.zeros(1, 3), (coef, np.zeros(1))
    sums.add(Hinge(), model, Rows(V), y[None], np.ones(50), np.full((1, 50), np.nan))
    found = sums.certificate(np.array([lam]), coef, free_intercept=False)
    losses = np.maximum(1 - y * (V @ coef[0]), 0.0)[y != 0].sum() / 50
    assert found.objective[0] == pytest.approx(0.5 * lam * (coef**2).sum() + losses)


def test_targets_of_pairs():
    block = PairTargets(np.array([0, 2, 1]), 3).block(np.arange(3))
    assert block.tolist() == [[-1, 0, 1], [-1, 1, 0], [0, 1, -1]]  # 0 and 1, 0 and 2, 1 and 2


# Models -------------------------------------------------------------------------------------------


def test_exact_pairs_are_those_of_svc():
    model = AssetClassifier(gamma=0.1, C=5.0, n_cells=1, fit_intercept=True, tol=1e-7, **OVO).fit(X, Y)
    svc = SVC(gamma=0.1, C=5.0, tol=1e-6, break_ties=True).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=2e-3)
    assert (model.predict(X) == svc.predict(X)).all()
    assert model.intercept_.shape == (10,)


def test_pairs_on_one_map_are_those_of_an_exact_solver():
    model = AssetClassifier(gamma=0.1, C=1.0, n_components=40, max_iter=300, **OVO).fit(X, Y)
    assert model.dual_gap_ <= 0.01 * model.objective_
    V = model.feature_map_(X)
    pairs = SVC(kernel="linear", C=1.0, tol=1e-6, break_ties=True).fit(V, Y)
    assert (model.predict(X) == pairs.predict(V)).mean() > 0.99
    near = np.abs(model.decision_function(X) - pairs.decision_function(V)) < 0.1
    assert near.mean() > 0.97  # a pair that hardly decides may vote for the other class


def test_votes_are_those_of_scikit_learn():
    decisions = np.random.default_rng(0).normal(size=(50, 6))
    pairs = OneVsOneClassifier(LinearSVC()).fit(np.eye(4), np.arange(4))
    for each, column in zip(pairs.estimators_, decisions.T, strict=True):
        each.predict = lambda V, own=column: (own > 0).astype(int)
        each.decision_function = lambda V, own=column: own
    np.testing.assert_allclose(pair_votes(decisions, 4), pairs.decision_function(np.zeros((50, 4))))


def test_two_classes_are_one_pair_to_the_bit():
    two = np.isin(Y, ["zero", "one"])
    options = {"random_state": 0, "max_iter": 5, "n_components": 50}
    plain = AssetClassifier(**options).fit(X[two], Y[two])
    pair = AssetClassifier(multi_class="ovo", **options).fit(X[two], Y[two])
    assert (plain.decision_function(X) == pair.decision_function(X)).all()


def test_nested_shells_need_pairs():
    """A class between others is hard to tell from the rest by one machine: pairs do far better."""
    rows, y = make_gaussian_quantiles(n_samples=4000, n_features=5, n_classes=4, random_state=0)
    train, test = slice(0, 3000), slice(3000, 4000)
    scores = {}
    for way in ("ovr", "ovo"):
        model = AssetClassifier(multi_class=way, random_state=0, n_components=300)
        scores[way] = model.fit(rows[train], y[train]).score(rows[test], y[test])
    svc = SVC().fit(rows[train], y[train]).score(rows[test], y[test])
    assert scores["ovo"] > scores["ovr"] + 0.03
    assert scores["ovo"] > svc - 0.02


def test_cells_streams_files_and_searches_of_pairs(tmp_path):
    cells = AssetClassifier(n_cells=4, gamma=0.1, C=10, **OVO).fit(X, Y)
    assert cells.score(X, Y) > 0.95
    model = AssetClassifier(gamma=0.1, C=10, n_components=60, **OVO)
    for part in np.array_split(np.arange(400), 2):
        model.partial_fit(X[part], Y[part], classes=np.unique(Y))
    assert model.score(X, Y) > 0.9
    for fitted in (cells, model):
        save(fitted, tmp_path / "m.asset", resumable=True)
        loaded = load(tmp_path / "m.asset")
        assert (loaded.decision_function(X) == fitted.decision_function(X)).all()
        assert (loaded.partial_fit(X, Y).predict(X) == fitted.partial_fit(X, Y).predict(X)).all()
    for n_cells in (None, 3):
        search = AssetClassifierCV(Cs=[1.0, 10.0], gammas=[0.1], cv=3, n_cells=n_cells, **OVO)
        assert search.fit(X, Y).best_score_ > 0.9
        assert search.best_estimator_.multi_class == "ovo"


def test_large_cells_of_pairs_know_all_classes(monkeypatch):
    """Cells that are not solved whole have models on maps of their own."""
    from asset_svm.solvers.cells import CellProblem

    monkeypatch.setattr(CellProblem, "largest", lambda self, limit: 50)
    model = AssetClassifier(n_cells=3, gamma=0.1, C=10, max_iter=20, n_components=40, **OVO).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_batches_go_on_in_pairs_or_not_at_all():
    ours = AssetClassifier(multi_class="ovo", n_components=30, random_state=0).fit(X, Y)
    before = ours.decision_function(X)
    with pytest.raises(ValueError, match=r"multi_class='ovr' was set after a fit .*'ovo'.*; call fit"):
        ours.set_params(multi_class="ovr").partial_fit(X[:50], Y[:50])
    np.testing.assert_array_equal(ours.decision_function(X), before)
    assert ours.set_params(multi_class="ovo").partial_fit(X[:50], Y[:50]).classes_.size == 5


def test_probabilities_of_pairs(tmp_path):
    model = AssetClassifier(gamma=0.1, C=10, n_components=60, **OVO).fit(X, Y)
    calibrated = CalibratedClassifier(model).fit(X, Y)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (calibrated.classes_[probabilities.argmax(axis=1)] == Y).mean() > 0.95
    save(calibrated, tmp_path / "c.asset")
    np.testing.assert_array_equal(load(tmp_path / "c.asset").predict_proba(X), probabilities)


def test_the_command_has_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("digits.npz", X=X, y=Y)
    train = ["train", "digits.npz", "--multi-class", "ovo", "--probability", "-o", "m.asset"]
    assert main([*train, "--C", "10"]) == 0
    assert main(["predict", "m.asset", "digits.npz", "--scores", "--probability", "-o", "p.csv"]) == 0
    header, *rows = (tmp_path / "p.csv").read_text().splitlines()
    assert len(header.split(",")) == 11 == len(rows[0].split(","))
    capsys.readouterr()
    assert main(["evaluate", "m.asset", "digits.npz"]) == 0
    assert "error" in capsys.readouterr().out
    train = ["train", "digits.npz", "--multi-class", "ovo", "--loss", "logistic", "--max-iter", "2"]
    assert main([*train, "-o", "l.asset"]) == 0
    assert main(["predict", "l.asset", "digits.npz", "--probability"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "it has pairs of classes: run asset train with --probability, or without" in told
    np.savez("reals.npz", X=X, y=X[:, 20] + 0.5)
    assert main(["train", "reals.npz", "--multi-class", "ovo"]) != 0
    assert "--multi-class is for classification" in capsys.readouterr().err


def test_other_ways_are_refused():
    with pytest.raises(ValueError, match="multi_class"):
        AssetClassifier(multi_class="crammer_singer").fit(X, Y)
