"""AssetOutlierDetector: the one-class SVM beside scikit-learn's, from arrays, batches and files."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

from asset_svm import AssetOutlierDetector, TableEncoder, load, open_rows, save
from asset_svm.backends import device as devices
from asset_svm.backends.cpu import CpuBackend
from asset_svm.cli.main import main
from asset_svm.data import RealTargets, ShuffledOrder
from asset_svm.features import NystroemFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import Hinge
from asset_svm.settings import solving
from asset_svm.training.one_class import find_lam, interpolated, lower_quantile
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows

GAMMA = 0.3
NUS = (0.03, 0.1, 0.5)


def two_heaps(m=1500, seed=0):
    """Two heaps of points, of different widths."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(m // 2, 3)), 0.5 * rng.normal(size=(m - m // 2, 3)) + 2.0])


X = two_heaps()


def detector(**params):
    return AssetOutlierDetector(**{"gamma": GAMMA, "random_state": 0, **params})


def share(model, rows=X, weight=None):
    return float(np.average(model.predict(rows) == -1, weights=weight))


def exact(nu, rows=X):
    """(scores of rows, |coef|^2, rho) of libsvm's solution, whose coefficients add up to nu m."""
    model = OneClassSVM(gamma=GAMMA, nu=nu, tol=1e-8).fit(rows)
    alpha, total = model.dual_coef_[0], nu * len(rows)
    square = alpha @ rbf_kernel(model.support_vectors_, gamma=GAMMA) @ alpha
    return model.score_samples(rows) / total, square / total**2, model.offset_[0] / total


def objective(scores, square, rho, nu):
    """The objective of the one-class problem."""
    return 0.5 * nu * square - nu * rho + np.maximum(rho - scores, 0.0).mean()


def best_multiple(scores, square, rho, nu):
    """The least objective of a multiple of a model: scores here are in units of rho."""
    gain = nu * rho - np.maximum(rho - scores, 0.0).mean()
    t = gain / (nu * square)
    return objective(t * scores, t * t * square, t * rho, nu)


# The problem ------------------------------------------------------------------------------------


def one_class(coef, rho, V, nu):
    return objective(V @ coef, coef @ coef, rho, nu)


@given(st.integers(0, 2**31), st.floats(0.05, 2.0), st.floats(0.05, 2.0), st.floats(0.01, 0.99))
def test_slopes_of_the_hinge_make_a_subgradient_of_the_one_class_problem(seed, rho, other_rho, nu):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(20, 3))
    coef, other = rng.normal(size=(2, 3))
    slope = Hinge().slope(np.ones(20), V @ coef / rho)
    by_coef = nu * coef + slope @ V / 20
    by_rho = -nu - slope.mean()
    below = one_class(coef, rho, V, nu) + by_coef @ (other - coef) + by_rho * (other_rho - rho)
    assert one_class(other, other_rho, V, nu) >= below - 1e-9


@given(st.integers(0, 2**31), st.floats(0.05, 3.0), st.floats(0.01, 0.99))
def test_in_units_of_rho_it_is_a_hinge_problem(seed, rho, nu):
    rng = np.random.default_rng(seed)
    V, coef = rng.normal(size=(20, 3)), rng.normal(size=3)
    inner, lam = coef / rho, nu * rho
    hinge = 0.5 * lam * inner @ inner + Hinge().value(np.ones(20), V @ inner).mean()
    assert one_class(coef, rho, V, nu) == pytest.approx(rho * (hinge - nu))


@pytest.mark.parametrize("nu", NUS)
def test_the_share_of_an_exact_solution_is_nu(nu):
    scores, square, rho = exact(nu)
    lam = nu * rho
    found = lam * square / rho**2 + np.maximum(1.0 - scores / rho, 0.0).mean()
    assert found == pytest.approx(nu, rel=1e-4)


def rows_of(points, weight=None):
    m, kernel = len(points), Kernel("rbf", GAMMA)
    rng = np.random.default_rng(0)
    phi = NystroemFeatures.sample(points, kernel, m, rng, basis="eigen")
    metric = phi.find_metric(phi(points), None, rng)
    mapped = CpuBackend().rows(phi.in_metric(metric), points)
    weight = np.ones(m) if weight is None else weight
    targets, order = RealTargets(np.ones(m)), ShuffledOrder(m, 0)
    slope_weight = weight / weight.mean()
    return TrainingRows(mapped, targets, order, weight, slope_weight, 1.0, metric)


@pytest.mark.parametrize("nu", NUS)
def test_lam_is_nu_times_the_rho_of_the_exact_solution(nu):
    recipe = Recipe(Hinge(), (1.0,), step="metric", free_intercept=False)
    found = find_lam(CpuBackend(), recipe, rows_of(X[::3]), nu, epochs=100)
    assert found == pytest.approx(nu * exact(nu, X[::3])[2], rel=0.03)


def test_lam_is_interpolated_in_logarithms():
    shares = {lam: 3.0 * lam**0.5 for lam in (0.01, 0.02, 0.04)}
    assert interpolated(shares, 3.0 * 0.03**0.5) == pytest.approx(0.03)
    assert interpolated(shares, 3.0 * 0.05**0.5) == pytest.approx(0.05)
    assert interpolated({0.3: 0.1}, 0.5) == pytest.approx(0.3)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=40),
    st.floats(0.01, 0.99),
)
def test_the_quantile_leaves_at_most_a_share_nu_below_and_no_more_rows_would_do(rows, nu):
    scores, weight = np.array(rows, dtype=np.float64).T
    found = lower_quantile(scores, weight, nu)
    below, total = weight[scores < found].sum(), weight.sum()
    next_group = scores[scores >= found].min()
    assert below <= nu * total * (1 + 1e-9)
    assert below + weight[scores == next_group].sum() > nu * total * (1 - 1e-9)


# Beside scikit-learn ----------------------------------------------------------------------------


@pytest.mark.parametrize("nu", NUS)
def test_decisions_are_those_of_the_exact_svm_times_a_constant(nu):
    model, peer = detector(nu=nu, n_components=len(X)).fit(X), OneClassSVM(gamma=GAMMA, nu=nu).fit(X)
    new = two_heaps(seed=1)
    ours, theirs = model.decision_function(new), peer.decision_function(new)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.998
    assert (model.predict(new) == peer.predict(new)).mean() > 0.98


@pytest.mark.parametrize("nu", NUS)
def test_the_objective_is_that_of_the_exact_svm(nu):
    model = detector(nu=nu, n_components=len(X)).fit(X)
    square = float(model.map_coef_[0] @ model.map_coef_[0])
    found = best_multiple(model.score_samples(X), square, model.offset_, nu)
    least = objective(*exact(nu), nu)
    assert least < 0.0
    assert least * (1.0 + 1e-6) <= found <= least * (1.0 - 0.01)


def with_outliers(m, seed):
    rng = np.random.default_rng(seed)
    rows, strange = two_heaps(m, seed), rng.random(m) < 0.1
    rows[strange] = rng.uniform(-4.0, 5.0, size=(strange.sum(), 3))
    return rows, strange


def test_outliers_are_found_as_well_as_by_the_exact_svm_and_by_a_pipeline():
    rows, _ = with_outliers(4000, 0)
    new, strange = with_outliers(4000, 1)
    nystroem = Nystroem(gamma=GAMMA, n_components=200, random_state=0)
    models = [
        detector(n_components=200),
        OneClassSVM(gamma=GAMMA, nu=0.1),
        make_pipeline(nystroem, SGDOneClassSVM(nu=0.1, random_state=0)),
    ]
    ours, *peers = (roc_auc_score(~strange, m.fit(rows).decision_function(new)) for m in models)
    assert ours > 0.85
    assert all(abs(ours - peer) < 0.03 for peer in peers)  # landmarks drawn by another seed: 0.01


# The share outside ------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.35, 0.9])
@pytest.mark.parametrize("params", [{}, {"approximation": "fourier"}, {"step": "robust"}])
def test_a_share_nu_of_the_rows_lies_outside(nu, params):
    model = detector(nu=nu, n_components=100, max_iter=5, **params).fit(X)
    assert share(model) == pytest.approx(nu, abs=1.5 / len(X))


def test_the_share_is_one_of_weight():
    weight = np.random.default_rng(0).integers(0, 4, size=len(X)).astype(float)
    model = detector(n_components=100).fit(X, sample_weight=weight)
    assert share(model, weight=weight) == pytest.approx(0.1, abs=6 / weight.sum())
    assert abs(share(model) - 0.1) < 0.05


def test_weights_count_as_copies_do():
    weight = np.random.default_rng(0).integers(1, 4, size=300)
    rows = two_heaps(300)
    by_weight = detector(landmarks=rows, max_iter=300).fit(rows, sample_weight=weight)
    by_copies = detector(landmarks=rows, max_iter=300).fit(np.repeat(rows, weight, axis=0))
    ours, theirs = by_weight.score_samples(X), by_copies.score_samples(X)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999
    assert by_weight.lam_ == pytest.approx(by_copies.lam_, rel=0.02)


def test_sparse_rows_are_learnt_from_as_dense_ones_are():
    rows = sp.random(800, 40, 0.1, format="csr", random_state=0)
    sparse, dense = (detector(n_components=50).fit(each) for each in (rows, rows.toarray()))
    assert share(sparse, rows) == pytest.approx(0.1, abs=2e-3)
    np.testing.assert_allclose(sparse.score_samples(rows), dense.score_samples(rows), rtol=1e-6)


# The estimator ----------------------------------------------------------------------------------


def test_scores_decisions_and_predictions_belong_together():
    model = detector(n_components=80).fit(X)
    decisions = model.decision_function(X)
    np.testing.assert_allclose(model.score_samples(X) - model.offset_, decisions, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(decisions >= 0.0, 1, -1))
    by_hand = rbf_kernel(X, model.components_, gamma=GAMMA) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.score_samples(X), by_hand, rtol=1e-6)
    assert model.intercept_ == pytest.approx([-model.offset_])
    np.testing.assert_array_equal(detector(n_components=80).fit_predict(X), model.predict(X))


def test_scores_are_in_units_of_the_boundary():
    model = detector(n_components=200).fit(X)
    assert model.offset_ == pytest.approx(1.0, abs=0.02)
    assert model.score_samples([[50.0, 50.0, 50.0]]) == pytest.approx([0.0], abs=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_seed_makes_the_same_model_whatever_the_threads(n_jobs):
    one, other = (detector(n_components=80, n_jobs=jobs).fit(X) for jobs in (None, n_jobs))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_targets_are_ignored():
    model = detector(n_components=50)
    one, other = (clone(model).fit(X, y) for y in (None, np.arange(len(X))))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_it_is_pickled_compiled_and_made_compact():
    model = detector(gamma=0.01, n_components=300).fit(X)
    wanted = model.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), wanted)
    np.testing.assert_array_equal(model.compiled()(X), model.predict(X))
    np.testing.assert_allclose(model.compiled("decision_function")(X), wanted, atol=1e-9)
    assert model.compiled("score_samples")(X[0]) == pytest.approx(model.score_samples(X[:1])[0])
    small = model.compact()
    assert len(small.components_) < 300 and small.offset_ == model.offset_
    np.testing.assert_allclose(small.decision_function(X), wanted, atol=1e-3)


def test_gradients_are_those_of_decisions():
    model = detector(n_components=60).fit(X)
    row, step = X[:1], 1e-5
    slopes = [
        (model.decision_function(row + step * e) - model.decision_function(row - step * e))[0]
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(model.gradients(row)[0], np.array(slopes) / (2 * step), rtol=1e-4)


def test_a_warm_start_goes_on_from_the_model():
    model = detector(n_components=100, max_iter=2, warm_start=True).fit(X)
    first, steps = model.objective_, model.t_
    model.fit(X)
    assert model.t_ == 2 * steps
    assert model.objective_ <= first * 1.01
    assert share(model) == pytest.approx(0.1, abs=1e-3)


def test_its_gap_is_small_and_certified():
    model = detector(n_components=100).fit(X)
    found, gap = model.certify(X)
    assert found == pytest.approx(model.objective_, rel=1e-6)
    assert 0.0 <= gap < 0.01 * found


def test_a_time_limit_ends_a_fit_with_a_threshold():
    model = detector(n_components=100, time_limit=1e-6).fit(X)
    assert share(model) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "matern32"])
def test_other_kernels_have_a_share_outside_too(kernel):
    model = detector(kernel=kernel, n_components=100).fit(X + 3.0)
    assert share(model, X + 3.0) == pytest.approx(0.1, abs=1e-3)
    assert model.offset_ > 0.5


def test_rows_around_the_origin_are_told_of():
    with pytest.warns(UserWarning, match="surround the origin of kernel='linear'.*rbf"):
        detector(kernel="linear", n_components=3).fit(X - X.mean(axis=0))


def test_rows_that_a_kernel_tells_not_apart_are_told_of():
    with pytest.warns(UserWarning, match="tells no rows apart: half of the scores.*change gamma"):
        detector(gamma=1e-9, n_components=20).fit(X)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"n_cells": 4}, "one threshold holds for all rows"),
        ({"relevance": "auto"}, "no targets"),
        ({"C": 1.0}, "set nu"),
        ({"contamination": 0.1}, "set nu"),
        ({"early_stopping": True}, "set max_iter or tol"),
        ({"cache_size": 200}, "memory_limit"),
    ],
)
def test_what_it_has_not_is_answered_by_name(params, told):
    with pytest.raises(TypeError, match=f"none of AssetOutlierDetector: .*{told}"):
        AssetOutlierDetector(**params)
    with pytest.raises(ValueError, match=told):
        AssetOutlierDetector().set_params(**params)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"nu": 0.0}, "nu=0.0 is not between 0 and 1"),
        ({"nu": 1}, "nu=1 is not between 0 and 1"),
        ({"landmarks": "margin"}, "margin.*needs targets .* none here"),
        ({"n_components": "auto"}, "n_components=.auto. needs targets .* none here"),
    ],
)
def test_values_that_cannot_be_are_refused(params, told):
    with pytest.raises(ValueError, match=told):
        detector(**params).fit(X)


@pytest.mark.parametrize(
    ("name", "value"), [("nu", 0.4), ("kernel", "laplacian"), ("gamma", 3.0), ("coef0", 1.0)]
)
@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_another_problem_is_refused_by_the_next_batch_and_loses_nothing(begin, name, value):
    rows = two_heaps(400)
    model = AssetOutlierDetector(gamma=GAMMA, nu=0.1, n_components=32, random_state=0)
    getattr(model, begin)(rows)
    before, usual = model.decision_function(rows), model.get_params()[name]
    with pytest.raises(ValueError, match=f"^{name}={value!r} was set after a fit with {name}="):
        model.set_params(**{name: value}).partial_fit(rows)
    np.testing.assert_array_equal(model.decision_function(rows), before)
    model.set_params(**{name: usual}).partial_fit(rows + 1.0)
    assert not np.array_equal(model.decision_function(rows), before)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_no_rows_at_all_are_told_of(method):
    with pytest.raises(ValueError, match="X=None has no rows; pass rows"):
        getattr(AssetOutlierDetector(), method)(None)


# A batch after the other ------------------------------------------------------------------------


def streamed(size, rows=None, **params):
    rows = np.random.default_rng(3).permutation(two_heaps(4000)) if rows is None else rows
    model = detector(landmarks=X[::10], **params)
    for start in range(0, len(rows), size):
        model.partial_fit(rows[start : start + size])
    return model, rows


@pytest.mark.parametrize("size", [50, 400, 4000])
def test_a_stream_ends_near_the_fit_of_all_rows(size):
    model, rows = streamed(size)
    whole = detector(landmarks=X[::10]).fit(rows)
    assert share(model, rows) == pytest.approx(0.1, abs=0.02)
    assert np.corrcoef(model.score_samples(rows), whole.score_samples(rows))[0, 1] > 0.97


def test_the_threshold_of_a_stream_follows_its_last_rows():
    rows = two_heaps(4000)
    wide, narrow = rows[:2000], rows[2000:]
    model, _ = streamed(500)
    before = share(model, wide)
    for _ in range(5):
        for start in range(0, 2000, 500):
            model.partial_fit(narrow[start : start + 500])
    assert share(model, narrow) == pytest.approx(0.1, abs=0.03)
    assert share(model, wide) > 2.0 * before


def test_a_stream_goes_on_from_a_fit_and_from_a_file(tmp_path):
    model = detector(n_components=100).fit(X)
    save(model, tmp_path / "m.asset", resumable=True)
    again = load(tmp_path / "m.asset")
    for each in (model, again):
        each.partial_fit(two_heaps(2000, seed=5))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.offset_ == model.offset_


def test_rows_of_weight_0_are_not_learnt_from():
    model, _ = streamed(1000)
    before = model.decision_function(X)
    model.partial_fit(X + 9.0, sample_weight=np.zeros(len(X)))
    np.testing.assert_array_equal(model.decision_function(X), before)


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumable", [False, True])
def test_a_model_file_holds_the_model(tmp_path, resumable):
    model = detector(n_components=60, nu=0.2).fit(X)
    save(model, tmp_path / "m.asset", resumable=resumable)
    found = load(tmp_path / "m.asset")
    assert type(found) is AssetOutlierDetector and found.get_params() == model.get_params()
    assert found.offset_ == model.offset_ and found.lam_ == model.lam_
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(found.score_samples(X), model.score_samples(X))


def written(folder, kind, rows):
    path = folder / f"rows.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        with_label = pd.DataFrame(rows, columns=list("abc")).assign(label="some")
        with_label.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_rows_of_a_file_need_no_targets(tmp_path, kind):
    rows = X.astype(np.float32)
    source = open_rows(written(tmp_path, kind, rows), targets=False)
    rows = rows if kind == "npy" else pd.DataFrame(rows, columns=list("abc"))
    by_file, by_array = (detector(n_components=60).fit(each) for each in (source, rows))
    np.testing.assert_array_equal(by_file.decision_function(rows), by_array.decision_function(rows))


def test_files_larger_than_memory_are_read_by_windows(tmp_path):
    rows = np.random.default_rng(3).permutation(two_heaps(6000)).astype(np.float32)
    source = open_rows(written(tmp_path, "npy", rows), targets=False)
    model = detector(landmarks=X[::10], memory_limit=100_000).fit(source)
    whole = detector(landmarks=X[::10]).fit(rows)
    assert "waited" in model.history_[-1]  # records of windows
    assert share(model, rows) == pytest.approx(0.1, abs=1e-3)
    assert np.corrcoef(model.score_samples(rows), whole.score_samples(rows))[0, 1] > 0.99


# Tables -----------------------------------------------------------------------------------------


def table(m=600):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], size=m)
    number = np.where(colour == "red", 3.0, 0.0) + rng.normal(size=m)
    number[::50] = np.nan
    town = rng.choice([f"town {k}" for k in range(100)], size=m)
    return pd.DataFrame({"colour": colour, "number": number, "town": town})


@pytest.mark.parametrize("encoder", ["auto", TableEncoder()])
def test_tables_are_encoded_without_targets(encoder):
    frame = table()
    model = AssetOutlierDetector(encoder=encoder, random_state=0).fit(frame)
    np.testing.assert_array_equal(
        model.encoder_.transform(frame), TableEncoder().fit(frame).transform(frame)
    )
    assert share(model, frame) == pytest.approx(0.1, abs=2e-3)
    odd = frame[:1].assign(colour="blue", number=30.0)
    assert model.score_samples(odd)[0] < model.score_samples(frame).min() + 1e-3
    model.partial_fit(frame[:100])


# The card ---------------------------------------------------------------------------------------


@pytest.fixture
def card(monkeypatch):
    """device="cuda" on torch's CPU device, by twins of the card's kernels."""
    torch = pytest.importorskip("torch", reason="the backend of the card needs torch (extra cuda)")
    from asset_svm.backends.cuda.backend import CudaBackend
    from card import CPU, HostForm

    def backend(limit, precision):
        return CudaBackend(device=CPU, form=HostForm, memory_limit=limit)

    monkeypatch.setattr(devices, "require_card", lambda: None)
    monkeypatch.setattr(devices, "card_backend", backend)
    monkeypatch.setattr(solving, "card_backend", backend)
    return torch


def test_the_card_learns_the_same(card):
    rows = X.astype(np.float32)
    there, here = (detector(n_components=64, device=each).fit(rows) for each in ("cuda", "cpu"))
    assert there.lam_ == pytest.approx(here.lam_, rel=0.02)
    assert share(there, rows) == pytest.approx(0.1, abs=2e-3)
    assert np.corrcoef(there.score_samples(rows), here.score_samples(rows))[0, 1] > 0.999
    there.partial_fit(rows[:300])


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    written(tmp_path, "csv", X)
    written(tmp_path, "npy", X.astype(np.float32))
    return tmp_path


SMALL_MODEL = ["--n-components", "50", "-o", "m.asset"]


def train(*options):
    return main(["train", *options])


@pytest.mark.parametrize("data", ["rows.csv", "rows.npy"])
@pytest.mark.parametrize("how", [[], ["--online"], ["--memory", "100KB"]])
def test_a_detector_is_trained_and_predicts_by_commands(here, capsys, data, how):
    assert train(data, "--one-class", "--nu", "0.2", *SMALL_MODEL, *how) == 0
    told = dict(line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line)
    assert told["model"] == "AssetOutlierDetector" and told["share outside"] == "0.2"
    assert main(["predict", "m.asset", data, "--scores", "-o", "out.csv"]) == 0
    found = pd.read_csv("out.csv")
    assert list(found) == ["prediction", "score"]
    assert (found.prediction == -1).mean() == pytest.approx(
        0.2, abs=0.05 if how == ["--online"] else 0.01
    )
    np.testing.assert_array_equal(found.prediction, np.where(found.score >= 0.0, 1, -1))
    assert main(["info", "m.asset"]) == 0
    assert "threshold of scores" in capsys.readouterr().out
    assert main(["evaluate", "m.asset", data]) == 0
    outside = int((found.prediction == -1).sum())
    assert f"outside\t{outside} (" in capsys.readouterr().out


def test_the_report_shows_the_scores_and_the_threshold(here):
    pytest.importorskip("matplotlib")
    assert train("rows.csv", "--one-class", *SMALL_MODEL, "--report", "r.html") == 0
    page = (here / "r.html").read_text()
    threshold = load("m.asset").offset_
    assert f"Rows left of {threshold:.4g} lie outside." in page
    assert "Rows outside over time" in page and ">1 to 1<" not in page


def test_a_run_of_one_class_is_resumed_from_its_checkpoint(here, monkeypatch):
    options = [
        "rows.npy",
        "--one-class",
        "--n-components",
        "40",
        "--memory",
        "100KB",
        "--max-iter",
        "2",
    ]
    assert train(*options, "-o", "whole.asset") == 0
    from asset_svm.families.one_map import windows

    learnt, calls = windows.WindowFit._learn, []

    def cut(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("cut")
        return learnt(self, *args)

    kept = ["--checkpoint", "run", "--every", "0.000001s"]
    with monkeypatch.context() as patch:
        patch.setattr(windows.WindowFit, "_learn", cut)
        assert train(*options, "-o", "cut.asset", *kept) == 2
    assert train(*options, "-o", "cut.asset", *kept, "--resume") == 0
    whole, again = load("whole.asset"), load("cut.asset")
    np.testing.assert_array_equal(whole.decision_function(X), again.decision_function(X))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--nu", "0.1"], "--nu 0.1 goes with --one-class"),
        (["--one-class", "--nu", "1.5"], "nu=1.5 is not between 0 and 1"),
        (["--one-class", "--probability"], "there are no classes"),
        (["--one-class", "--task", "regression"], "has no targets"),
        (["--one-class", "--C", "3"], "--C does not go with --one-class: .*set nu"),
        (["--one-class", "--n-cells", "4"], "one threshold holds for all rows"),
        (["--one-class", "--relevance", "auto"], "no targets that rows could be judged by"),
        (["--one-class", "--epsilon", "0.1"], "no such parameter"),
        (["--one-class", "--auto"], "a race judges by them"),
    ],
)
def test_options_that_do_not_go_with_one_class_are_refused(here, capsys, options, told):
    assert train("rows.csv", *options) == 2
    assert re.search(told, capsys.readouterr().err)
