"""The samplers: definitions, identities of randomly pivoted Cholesky, weights, seeds, sparse rows."""

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score

from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressor, NystroemMap
from asset_svm.families.one_map.maps import draw_map
from asset_svm.features import NystroemFeatures
from asset_svm.features import clusters as clusters_module
from asset_svm.features.clusters import nearest_centres
from asset_svm.features.diagnostics import trace_error
from asset_svm.features.landmarks import SAMPLERS, ScoredRows, kmeans_landmarks, rpcholesky_landmarks
from asset_svm.features.landmarks.leverage import leverage_scores
from asset_svm.features.landmarks.rpcholesky import cholesky_pivots
from asset_svm.features.landmarks.scored import draw_by_scores
from asset_svm.kernels import Kernel
from asset_svm.settings import Settings

METHODS = list(SAMPLERS)


def rng(seed=0):
    return np.random.default_rng(seed)


def clusters(m=600, n=3, seed=0):
    """Nine rows of ten in one small cluster, the others far apart."""
    draw = rng(seed)
    X = draw.normal(size=(m, n))
    return np.where(draw.random(m)[:, None] < 0.9, 0.1 * X, 5.0 * X)


def residual(K, pivots):
    """K minus its Nystroem approximation, by the formula."""
    C = K[:, pivots]
    return K - C @ np.linalg.pinv(K[np.ix_(pivots, pivots)], rcond=1e-12) @ C.T


# Every sampler ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_landmarks_are_determined_by_the_seed_and_keep_the_type_of_the_rows(method, dtype):
    X = clusters().astype(dtype)
    kernel = Kernel("rbf", 0.5)
    one, two, other = (SAMPLERS[method](X, kernel, 20, rng(seed), None) for seed in (3, 3, 4))
    assert one.points.dtype == dtype
    assert one.points.shape == (20, 3)
    np.testing.assert_array_equal(one.points, two.points)
    assert not np.array_equal(one.points, other.points)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_are_as_good_as_absent(method):
    X = clusters()
    weight = (np.arange(len(X)) % 3 != 0).astype(float)
    X[weight == 0] += 100.0
    for seed in range(5):
        found = SAMPLERS[method](X, Kernel("rbf", 0.5), 50, rng(seed), weight)
        assert found.points.max() < 50.0
        if found.indices is not None:
            assert weight[found.indices].all()


@pytest.mark.parametrize("method", [m for m in METHODS if m != "kmeans"])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "linear", "sigmoid", "callable"])
def test_rows_chosen_are_distinct_whatever_the_kernel(method, name):
    """Also beyond the rank of the kernel matrix: "linear" has rank 3."""
    X = np.vstack([clusters(200), clusters(200)])  # every row twice
    kernel = Kernel((lambda A, B: A @ B.T) if name == "callable" else name, 0.5, 2, 1.0)
    found = SAMPLERS[method](X, kernel, 150, rng(), None)
    assert len(np.unique(found.indices)) == 150
    np.testing.assert_array_equal(found.points, X[found.indices])


@pytest.mark.parametrize("method", METHODS)
def test_all_rows_as_landmarks_reproduce_the_kernel(method):
    X = rng().normal(size=(60, 4))
    kernel = Kernel("rbf", 0.5)
    phi = NystroemFeatures.sample(X, kernel, 60, rng(), sampler=SAMPLERS[method])
    V, K = phi(X), kernel(X, X)
    assert np.linalg.norm(K - V @ V.T) < 1e-5 * np.linalg.norm(K)
    assert phi.trace_error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_give_landmarks_that_are_rows(method):
    X = sp.random(300, 40, density=0.2, random_state=0, format="csr")
    found = SAMPLERS[method](X, Kernel("rbf", 0.5), 30, rng(), None)
    assert sp.issparse(found.points)
    assert len(np.unique(found.indices)) == 30
    np.testing.assert_array_equal(found.points.toarray(), X[found.indices].toarray())


@pytest.mark.parametrize("method", METHODS)
def test_only_a_sample_is_looked_at_where_there_are_many_rows(method, monkeypatch):
    """The landmarks of the same call on many rows: still right, and none is weightless."""
    from asset_svm.features.landmarks import base

    monkeypatch.setattr(base, "FEWEST_ROWS", 100)
    X = clusters(5000)
    found = SAMPLERS[method](X, Kernel("rbf", 0.5), 20, rng(), None)
    assert found.points.shape == (20, 3)
    if found.indices is not None:
        np.testing.assert_array_equal(found.points, X[found.indices])


@pytest.mark.parametrize("method", ["kmeans", "rpcholesky", "leverage"])
def test_spread_out_landmarks_approximate_an_uneven_kernel_better_than_uniform_ones(method):
    """Nine of ten rows are alike: uniform landmarks go there, and the others remain unexplained."""
    X, kernel = clusters(2000), Kernel("rbf", 0.05)

    def error(name):
        draws = (
            NystroemFeatures.sample(X, kernel, 40, rng(s), sampler=SAMPLERS[name]) for s in range(5)
        )
        return np.mean([trace_error(phi, kernel.diagonal, X) for phi in draws])

    assert error(method) < 0.8 * error("uniform")


# Randomly pivoted Cholesky ------------------------------------------------------------------------


@given(
    seed=st.integers(0, 1000),
    candidates=st.sampled_from([1, 5, 40]),
    gamma=st.floats(0.01, 2.0),
    count=st.integers(1, 30),
)
def test_the_residual_diagonal_is_that_of_the_nystroem_approximation(seed, candidates, gamma, count):
    X, kernel = rng(seed).normal(size=(80, 3)), Kernel("rbf", gamma)
    pivots, d = cholesky_pivots(X, kernel, count, rng(seed), candidates)
    assert len(set(pivots.tolist())) == len(pivots) <= count
    exact = residual(kernel(X, X), pivots).diagonal()
    np.testing.assert_allclose(d, exact, atol=1e-8)
    assert d.sum() == pytest.approx(np.trace(residual(kernel(X, X), pivots)), abs=1e-6)


def test_more_pivots_never_leave_more_of_the_trace():
    X, kernel = clusters(300), Kernel("rbf", 0.5)
    traces = [cholesky_pivots(X, kernel, s, rng(0), 1)[1].sum() for s in (1, 5, 20, 60)]
    assert traces == sorted(traces, reverse=True)


def test_rejection_keeps_the_distribution_of_the_pivots():
    """The second pivot follows the residual diagonal left by the first, for blocks of any size.

    1500 draws of two pivots from 6 rows; each of the 30 pairs within five standard errors of its
    probability d_i / tr K times R_jj / tr R.
    """
    X, kernel = rng(5).normal(size=(6, 2)), Kernel("poly", 1.0, 2, 0.5)
    K = kernel(X, X)
    expected = np.zeros((6, 6))
    for i in range(6):
        left = np.maximum(residual(K, [i]).diagonal(), 0.0)
        expected[i] = K[i, i] / np.trace(K) * left / left.sum()
    draws = 1500
    for candidates in (1, 8):
        counts = np.zeros((6, 6))
        for seed in range(draws):
            # count=9 lets a block have 8 candidates; the first two pivots are looked at
            i, j = cholesky_pivots(X, kernel, 9, rng(seed), candidates)[0][:2]
            counts[i, j] += 1
        spread = np.sqrt(expected * (1 - expected) / draws)
        assert (np.abs(counts / draws - expected) <= 5 * spread + 1e-12).all()


def test_pivots_end_at_the_rank_of_the_kernel():
    X = rng().normal(size=(50, 3))
    pivots, d = cholesky_pivots(X, Kernel("linear"), 20, rng())
    assert len(pivots) == 3
    assert not d.any()
    assert len(rpcholesky_landmarks(X, Kernel("linear"), 20, rng()).indices) == 20


def test_a_kernel_that_is_zero_gets_landmarks_at_random():
    X = np.zeros((30, 2))
    assert len(rpcholesky_landmarks(X, Kernel("linear"), 10, rng()).indices) == 10


# k-means ------------------------------------------------------------------------------------------


def test_centres_are_means_of_their_rows():
    """Of well separated clusters, once the passes have converged."""
    draw = rng()
    X = np.vstack([draw.normal(size=(100, 2)) + c for c in ([0, 0], [50, 0], [0, 50])])
    for seed in range(3):
        centres = kmeans_landmarks(X, Kernel("rbf"), 12, rng(seed)).points
        labels = nearest_centres(X, centres)
        for k in np.unique(labels):
            # passes end when fewer than 2 % of the rows change their centre
            assert np.linalg.norm(centres[k] - X[labels == k].mean(axis=0)) < 0.5


def test_nearest_centres_are_nearest():
    X, centres = rng(0).normal(size=(1500, 5)), rng(1).normal(size=(40, 5))
    distances = ((X[:, None, :] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest_centres(X, centres), distances.argmin(axis=1))


def test_passes_lower_the_distance_of_rows_to_their_centres(monkeypatch):
    X = rng().normal(size=(2000, 4))
    distances = []
    for passes in (1, 2, 8):
        monkeypatch.setattr(clusters_module, "MOST_PASSES", passes)
        centres = kmeans_landmarks(X, Kernel("rbf"), 30, rng(0)).points
        distances.append(((X - centres[nearest_centres(X, centres)]) ** 2).sum())
    assert distances == sorted(distances, reverse=True)
    assert distances[2] < 0.9 * distances[0]


def test_centres_survive_columns_of_any_size():
    X = rng().normal(size=(300, 3)).astype(np.float32) * np.float32(1e30) + np.float32(1e31)
    assert np.isfinite(kmeans_landmarks(X, Kernel("rbf"), 20, rng()).points).all()


def test_dense_centres_of_sparse_rows_must_fit_in_memory():
    X = sp.csr_matrix((300, 5_000_000))
    with pytest.raises(ValueError, match='landmarks="kmeans" with 200 centres of 5000000 features'):
        kmeans_landmarks(X, Kernel("rbf"), 200, rng())


# Scores -------------------------------------------------------------------------------------------


def test_leverage_scores_are_those_of_the_definition():
    """All rows as pilots: the estimate is the score itself, of the rho that makes the sum 20."""
    X, kernel = clusters(150), Kernel("rbf", 0.3)
    found, K = leverage_scores(X, kernel, 20, X), kernel(X, X)
    assert found.sum() == pytest.approx(20.0, rel=1e-6)
    low, high = 1e-12, 1e6
    for _ in range(200):
        rho = np.sqrt(low * high)
        exact = np.linalg.solve(K + rho * np.eye(150), K).diagonal()
        low, high = (rho, high) if exact.sum() > 20 else (low, rho)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-6)


def test_draws_follow_the_scores():
    scores = np.array([0.0, 1.0, 2.0, 5.0])
    first = np.bincount([draw_by_scores(scores, 1, rng(s))[0] for s in range(4000)], minlength=4) / 4000
    # Standard errors of at most 0.008: four of them.
    np.testing.assert_allclose(first, scores / 8, atol=0.032)
    assert set(draw_by_scores(scores, 3, rng()).tolist()) == {1, 2, 3}
    assert len(set(draw_by_scores(np.zeros(10), 4, rng()).tolist())) == 4


def test_scored_rows_never_have_weight_zero():
    X, weight = clusters(50), (np.arange(50) % 2).astype(float)
    found = ScoredRows(np.where(weight > 0, 0.0, 1.0))(X, Kernel("rbf"), 25, rng(), weight)
    assert weight[found.indices].all()


# The estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, "margin"])
def test_estimators_learn_with_every_kind_of_landmarks(method, blobs, waves):
    X, y = blobs
    settings = {"landmarks": method, "n_components": 40, "random_state": 0}
    model = AssetClassifier(gamma=0.5, **settings).fit(X, y)
    assert model.score(X, y) > 0.84
    assert 0.0 <= model.approximation_error_ < 0.2
    again = AssetClassifier(gamma=0.5, **settings).fit(X, y)
    np.testing.assert_array_equal(model.map_coef_, again.map_coef_)
    if method == "kmeans":
        assert model.component_indices_ is None
    else:
        np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    X, y = waves
    assert AssetRegressor(C=10, gamma=0.5, **settings).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("method", [*METHODS, "margin"])
def test_partial_fit_takes_landmarks_from_its_first_batch(method, blobs):
    X, y = blobs
    model = AssetClassifier(landmarks=method, n_components=20, random_state=0)
    model.partial_fit(X[:300], y[:300], classes=[-1, 1])
    chosen = model.components_.copy()
    for start in range(300, 600, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(model.components_, chosen)
    if model.component_indices_ is not None:
        np.testing.assert_array_equal(chosen, X[model.component_indices_])
        assert model.component_indices_.max() < 300
    assert model.score(X, y) > 0.8


def test_margin_landmarks_work_on_a_first_batch_of_one_class(blobs):
    X, y = blobs
    model = AssetClassifier(landmarks="margin", n_components=20, random_state=0)
    model.partial_fit(X[y == 1], y[y == 1], classes=[-1, 1])
    assert len(model.component_indices_) == 20


def test_margin_landmarks_lie_near_the_boundary(blobs):
    """Nearer in the mean than uniform ones; the best boundary of the blobs is x1 + x2 = 0."""
    X, y = blobs

    def distance(method):
        fits = (
            AssetClassifier(landmarks=method, n_components=60, random_state=s).fit(X, y)
            for s in range(4)
        )
        return np.mean([np.abs(fit.components_.sum(axis=1)).mean() for fit in fits])

    assert distance("margin") < 0.8 * distance("uniform")


def test_margin_landmarks_of_a_regression_lie_where_a_first_fit_errs():
    """A step at 0 that few landmarks cannot follow: most landmarks come to lie around it."""
    X = rng().uniform(-3, 3, size=(2000, 1))
    y = np.sign(X[:, 0])

    def share(method):
        model = AssetRegressor(
            landmarks=method, gamma=1.0, epsilon=0.01, n_components=100, random_state=0
        ).fit(X, y)
        return np.mean(np.abs(model.components_) < 0.5)

    assert share("margin") > 2 * share("uniform")


@pytest.mark.parametrize("method", [*METHODS, "margin"])
def test_weightless_rows_never_become_landmarks_of_an_estimator(method, blobs):
    X, y = blobs
    weight = (np.arange(600) % 2).astype(float)
    model = AssetClassifier(landmarks=method, n_components=50, max_iter=2, random_state=0)
    model.fit(np.where(weight[:, None] > 0, X, X + 1e3), y, sample_weight=weight)
    assert model.components_.max() < 500
    if model.component_indices_ is not None:
        assert (model.component_indices_ % 2 == 1).all()


@pytest.mark.parametrize("kind", [AssetClassifier, NystroemMap])
@pytest.mark.parametrize("sparse", [False, True])
def test_landmarks_of_the_users_own_are_taken_as_they_are(kind, sparse, blobs):
    X, y = blobs
    points = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, -1.0]])
    model = kind(landmarks=sp.csr_matrix(points) if sparse else points, random_state=0).fit(X, y)
    given_back = model.components_.toarray() if sparse else model.components_
    np.testing.assert_array_equal(given_back, points)
    assert model.component_indices_ is None
    assert kind(landmarks=points.tolist(), n_components=3).fit(X, y).components_.shape == (3, 2)
    points[:] = 7.0  # a copy was taken
    assert not (given_back == 7.0).any()


def test_warm_start_knows_whether_the_given_landmarks_are_the_same(blobs):
    X, y = blobs
    model = AssetClassifier(landmarks=X[:20].copy(), warm_start=True, random_state=0).fit(X, y)
    steps = model.t_
    assert model.set_params(landmarks=X[:20].copy()).fit(X, y).t_ == 2 * steps
    assert model.set_params(landmarks=X[5:25].copy()).fit(X, y).t_ == steps


def test_given_landmarks_are_checked(blobs):
    X, y = blobs
    for kind in (AssetClassifier, NystroemMap):
        with pytest.raises(ValueError, match="landmarks have 3 features, and X has 2"):
            kind(landmarks=np.ones((4, 3))).fit(X, y)
        with pytest.raises(
            ValueError, match="n_components=5 is not the number of the given landmarks, 4"
        ):
            kind(landmarks=np.ones((4, 2)), n_components=5).fit(X, y)
        with pytest.raises(ValueError, match="landmarks contains NaN"):
            kind(landmarks=np.full((4, 2), np.nan)).fit(X, y)
    with pytest.raises(ValueError, match='landmarks="margin" needs targets'):
        NystroemMap(landmarks="margin").fit(X)


def test_the_trace_error_falls_with_the_number_of_landmarks(blobs):
    X, _ = blobs
    errors = [
        NystroemMap(n_components=s, random_state=0).fit(X).approximation_error_
        for s in (5, 20, 80, 600)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(0.0, abs=1e-6)


def test_margin_landmarks_without_rows_to_fit_first_are_refused(blobs):
    X, _ = blobs
    settings = Settings.of(AssetClassifier(landmarks="margin").get_params())
    with pytest.raises(ValueError, match='landmarks="margin" needs a first fit'):
        draw_map(settings, settings.host(), X, None, 0)


FOLDED = {
    "cross-validation": lambda X, y: cross_val_score(AssetClassifier(n_components=90), X, y),
    "early stopping": lambda X, y: AssetClassifier(n_components=95, early_stopping=True).fit(X, y),
    "calibration": lambda X, y: CalibratedClassifierCV(AssetClassifier(n_components=90)).fit(X, y),
    "a grid": lambda X, y: GridSearchCV(AssetClassifier(n_components=90), {"C": [1.0]}).fit(X, y),
    "a search": lambda X, y: AssetClassifierCV(n_components=120, Cs=[1.0], gammas=[0.5, 1.0]).fit(X, y),
    "no refit": lambda X, y: AssetClassifierCV(n_components=120, Cs=[1.0], refit=False).fit(X, y),
}


@pytest.mark.parametrize(("name", "warnings"), [*zip(FOLDED, [5, 1, 5, 5, 1, 1], strict=True)])
def test_folds_of_fewer_rows_than_landmarks_are_told_of_once_a_fit(name, warnings, blobs):
    X, y = blobs[0][:100], blobs[1][:100]
    with catch_warnings(record=True) as told:
        simplefilter("always")
        FOLDED[name](X, y)
    assert [str(w.message)[:12] for w in told] == ["n_components"] * warnings


def test_fewer_landmarks_than_asked_for_are_those_that_there_are(blobs):
    X, y = blobs[0][:80], blobs[1][:80]
    settings = dict(random_state=0, gamma=0.5)
    with pytest.warns(UserWarning, match="n_components=90 is more than the 80 rows"):
        model = AssetClassifier(n_components=90, **settings).fit(X, y)
    exact = AssetClassifier(n_components=80, **settings).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), exact.decision_function(X))


def test_the_fourier_map_has_no_such_limit(blobs):
    model = AssetClassifier(approximation="fourier", n_components=200).fit(blobs[0][:80], blobs[1][:80])
    assert model.n_components_ == 200
