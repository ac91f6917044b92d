"""Weights of rows and classes: a weight of k is k copies, and 0 is none."""

import numpy as np
import pytest

from asset_svm import AssetClassifier, AssetRegressor, NystroemMap
from small_problems import BINARY, REALS, THREE, WEIGHTS, X, quick


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
@pytest.mark.parametrize("sampling", ["uniform", "shuffle"])
def test_a_row_of_weight_zero_never_matters(kind, sampling):
    y = BINARY if kind is AssetClassifier else REALS
    rows, targets = np.r_[X, np.full((60, 3), 1e3)], np.r_[y, 1 - y[:60]]
    weight = np.r_[np.ones(240), np.zeros(60)]
    mixed = np.random.default_rng(1).permutation(300)
    kept = mixed[mixed < 240]
    parameters = {"sampling": sampling, "n_components": 100}
    without = quick(kind, **parameters).fit(rows[kept], targets[kept])
    model = quick(kind, **parameters).fit(rows[mixed], targets[mixed], weight[mixed])
    np.testing.assert_array_equal(model.components_, without.components_)
    np.testing.assert_array_equal(model.map_coef_, without.map_coef_)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_a_row_of_weight_zero_never_matters_to_a_stream():
    weight = np.where(np.arange(240) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    model = quick(gamma=0.5).partial_fit(X, BINARY, [0, 1], sample_weight=weight)
    model.partial_fit(X[::-1], BINARY[::-1], sample_weight=weight[::-1])
    without = quick(gamma=0.5).partial_fit(X[kept], BINARY[kept], [0, 1])
    without.partial_fit(X[kept][::-1], BINARY[kept][::-1])
    np.testing.assert_array_equal(model.map_coef_, without.map_coef_)
    assert model.t_ == without.t_


def mean_decisions(kind, epochs, **parameters):
    """The mean decision of 20 seeded runs: with weights 1 and 4, with copies, with neither.

    ``epochs`` are those of the copies; the others run as many steps.
    """
    y = BINARY if kind is AssetClassifier else REALS + np.random.default_rng(2).normal(size=240)
    weight = np.where(y > np.median(y) if kind is AssetRegressor else y == 1, 4, 1)
    copies = np.repeat(np.arange(240), weight)
    given = NystroemMap(gamma=0.5, n_components=60, random_state=0).fit(X)
    every = np.arange(240)
    means = []
    for index, weights in ((every, weight), (copies, None), (every, None)):
        model = quick(kind, approximation=given, C=0.1, **parameters)
        model.set_params(max_iter=round(epochs * len(copies) / len(index)))
        runs = []
        for seed in range(20):
            model.set_params(random_state=seed).fit(X[index], y[index], sample_weight=weights)
            runs.append(float(np.mean(model._decide(X))))
        means.append((np.mean(runs), np.var(runs, ddof=1) / len(runs)))
    return means


@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean(kind):
    """Drawn in proportion to their weights, the rows of both runs have one distribution.

    Over 20 seeds each, with as many steps, the mean decisions differ by less than two standard
    errors of their difference, and both by more than four from the unweighted mean.
    """
    weighted, repeated, plain = mean_decisions(kind, epochs=20, sampling="uniform")
    assert abs(weighted[0] - repeated[0]) < 2 * np.sqrt(weighted[1] + repeated[1])
    for run in (weighted, repeated):
        assert abs(run[0] - plain[0]) > 4 * np.sqrt(run[1] + plain[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean_by_default(kind):
    """By default uneven weights are drawn and copies shuffled: two paths to the same optimum.

    Steps that decay to 0 leave a standard error so small that the paths' remaining suboptimality
    shows in it; the mean decisions differ by less than a twentieth of what the weights change.
    """
    defaults = {"step": "auto", "step_scale": "auto", "sampling": "auto"}
    weighted, repeated, plain = mean_decisions(kind, epochs=100, **defaults)
    assert abs(weighted[0] - repeated[0]) < 0.05 * abs(repeated[0] - plain[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_a_weight_of_k_and_k_copies_agree_in_the_mean_in_the_metric(kind):
    """The same two standard errors with metric steps, both drawn uniformly."""
    options = {"step": "metric", "step_scale": "auto", "sampling": "uniform"}
    weighted, repeated, _ = mean_decisions(kind, epochs=100, **options)
    assert abs(weighted[0] - repeated[0]) < 2 * np.sqrt(weighted[1] + repeated[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AssetClassifier, AssetRegressor])
def test_weighted_slopes_end_where_copies_do(kind):
    """A shuffled order multiplies slopes by weights instead: another path to the same optimum.

    The mean decisions differ by less than a tenth of what the weights change.
    """
    weighted, repeated, plain = mean_decisions(kind, epochs=40, sampling="shuffle")
    assert abs(weighted[0] - repeated[0]) < 0.1 * abs(repeated[0] - plain[0])


def test_a_common_factor_of_the_weights_scales_c():
    doubled = quick(C=0.5).fit(X, BINARY, np.full(240, 2.0))
    np.testing.assert_allclose(doubled.map_coef_, quick(C=1.0).fit(X, BINARY).map_coef_, atol=1e-12)


def test_class_weight_multiplies_sample_weight():
    by_class = {"far": 3.0, "low": 1.0, "mid": 0.5}
    factors = np.array([by_class[label] for label in THREE])
    model = quick(gamma=0.5, class_weight=by_class).fit(X, THREE, WEIGHTS)
    by_row = quick(gamma=0.5).fit(X, THREE, WEIGHTS * factors)
    np.testing.assert_allclose(model.map_coef_, by_row.map_coef_, rtol=1e-9)
    assert model.lam_ == pytest.approx(by_row.lam_)


def test_balanced_classes_weigh_the_same():
    counts = {label: (label == THREE).sum() for label in np.unique(THREE)}
    explicit = {label: 240 / (3 * count) for label, count in counts.items()}
    balanced = quick(gamma=0.5, class_weight="balanced").fit(X, THREE)
    np.testing.assert_allclose(
        balanced.map_coef_, quick(gamma=0.5, class_weight=explicit).fit(X, THREE).map_coef_, rtol=1e-9
    )


def test_class_weight_favours_the_heavy_class():
    noisy = np.random.default_rng(0).integers(0, 2, size=240)
    for label in (0, 1):
        model = quick(class_weight={label: 20.0, 1 - label: 1.0}).fit(X, noisy)
        assert (model.predict(X) == label).mean() > 0.8
