"""scikit-learn's own checks on every public estimator, in several configurations.

Two checks are expected to fail, with the reasons below, and are skipped of races, where they are a
matter of chance; any other failure is a bug. ``max_iter`` is small because the checks' data are: a few
dozen epochs fit them.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetOutlierDetector,
    AssetQuantileRegressorCV,
    AssetRegressor,
    AssetRegressorCV,
    FourierMap,
    NystroemMap,
)
from asset_svm.search.auto import search as searches

SHORT_RACE = 0.05
"""Nominal seconds of a race whose candidates are few; races of their usual length are slow."""
STOCHASTIC = (
    "the method is stochastic: a weight of k and k copies of a row pose the same problem, and draw "
    "other rows; equality is tested at the exact optimum and in the mean over seeds"
)
UP_TO_ROTATION = (
    "a copy of a row can be drawn as a landmark of its own, and the features are defined up to a "
    "rotation; the kernel that they approximate is the same"
)
BY_FOLDS = (
    "copies of rows make other folds, by which a race may choose another model: whether weights and "
    "copies agree is chance"
)
ON_WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)

ESTIMATORS = [
    AssetClassifier(max_iter=30),
    AssetRegressor(max_iter=30, approximation="fourier", n_components=50),
    AssetClassifier(n_cells=3),
    AssetClassifierCV(Cs=[0.1, 1.0, 10.0], cv=3, search_iter=5, max_iter=30, gammas=None),
    AssetRegressorCV(
        Cs=[0.1, 1.0, 10.0], cv=3, search_iter=5, max_iter=30, gammas=None, epsilons=[0.01, 0.1]
    ),
    AssetClassifierCV(),
    AssetRegressorCV(),
    AssetQuantileRegressorCV(
        quantiles=0.5, Cs=[0.1, 1.0, 10.0], cv=3, search_iter=5, max_iter=30, gammas=None
    ),
    AssetOutlierDetector(max_iter=30),
    NystroemMap(),
    FourierMap(n_components=50),
]
"""Every public estimator, and every way that rows take through one."""

OTHERS = [
    AssetRegressor(n_cells="auto"),
    AssetClassifier(max_iter=30, step="robust"),
    AssetClassifier(max_iter=30, step="strong"),
    AssetClassifier(max_iter=30, multi_class="ovo"),
    AssetClassifier(max_iter=30, approximation="fourier", n_components=50),
    AssetRegressor(max_iter=30),
    AssetClassifier(max_iter=30, landmarks="kmeans"),
    AssetClassifier(max_iter=30, landmarks="margin", n_components="auto"),
    AssetRegressor(max_iter=30, landmarks="rpcholesky"),
    AssetRegressor(max_iter=30, landmarks="margin"),
    AssetClassifierCV(Cs=[0.1, 1.0, 10.0], cv=3, search_iter=5, max_iter=30, gammas=[0.1, 1.0]),
    AssetClassifierCV(Cs=[0.1, 1.0, 10.0], cv=0.4, n_cells=3, gammas=None),
    NystroemMap(landmarks="kmeans"),
    NystroemMap(landmarks="leverage"),
    FourierMap(n_components=50, fourier="qmc"),
    FourierMap(n_components=50, fourier="hadamard"),
    AssetOutlierDetector(max_iter=30, approximation="fourier", n_components=50),
    AssetClassifierCV(),
    AssetRegressorCV(),
]
"""What the checks see only the numbers of: steps, landmarks, frequencies; and races of usual length."""


def expected_failures(estimator):
    """The checks that cannot pass, with the reason."""
    if isinstance(estimator, FourierMap):
        return {}
    reason = UP_TO_ROTATION if isinstance(estimator, NystroemMap) else STOCHASTIC
    return dict.fromkeys(ON_WEIGHTS, reason)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # checks set max_iter, whatever it is
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_pass(estimator, check, monkeypatch):
    # Without it the array-API check skips itself; it uses numpy's namespace, for which scipy need
    # not have been imported with it.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    name, races = getattr(check, "func", check).__name__, getattr(estimator, "Cs", None) == "auto"
    if races and name in ON_WEIGHTS:
        pytest.skip(BY_FOLDS)
    if races:
        monkeypatch.setattr(searches, "LEAST_WORK", SHORT_RACE)
        monkeypatch.setattr(searches, "MOST_WORK", SHORT_RACE)
    check(estimator)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # checks set max_iter, whatever it is
@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    name, races = getattr(check, "func", check).__name__, getattr(estimator, "Cs", None) == "auto"
    if races and name in ON_WEIGHTS:
        pytest.skip(BY_FOLDS)
    check(estimator)
