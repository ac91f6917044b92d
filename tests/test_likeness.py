"""Whether shards are alike: against plain sums, chance, and shards that are not."""

import numpy as np
import pytest

from asset_svm.backends.cpu import CpuBackend
from asset_svm.data import GivenOrder, OneVsRestTargets, RealTargets
from asset_svm.features import FourierFeatures
from asset_svm.kernels import Kernel
from asset_svm.losses import EpsilonInsensitive, Hinge
from asset_svm.training.likeness import CHANCE, LOOKED_AT, are_alike, chance
from asset_svm.training.recipe import Recipe
from asset_svm.training.rows import TrainingRows


def naive(G, group):
    """B, its mean and its standard deviation, as they are written."""
    n, groups = len(G), np.unique(group)
    centred = G - G.mean(axis=0)
    between = sum((group == g).sum() * np.sum(centred[group == g].mean(axis=0) ** 2) for g in groups)
    mean = (len(groups) - 1) * np.sum(centred**2) / (n - 1)
    inner = centred @ centred.T
    square = sum(inner[i, j] ** 2 for i in range(n) for j in range(n) if i != j)
    return (between - mean) / (np.sqrt(2 * (len(groups) - 1) * square) / (n - 1))


def test_chance_is_what_is_written():
    rng = np.random.default_rng(0)
    G, group = rng.normal(size=(60, 5)) + 1.0, rng.integers(3, size=60) * 2
    assert chance(G @ G.T, group) == pytest.approx(naive(G, group))


@pytest.mark.parametrize("groups", [2, 8, 60])
def test_random_groups_differ_by_chance_only(groups):
    """200 deals of the same rows: mean 0 and deviation 1, within twice their own errors."""
    rng = np.random.default_rng(1)
    G = rng.normal(size=(400, 30)) * np.linspace(2, 0.1, 30)
    found = [chance(G @ G.T, rng.permutation(400) % groups) for _ in range(200)]
    assert abs(np.mean(found)) < 0.2 and 0.8 < np.std(found) < 1.2
    assert np.mean(np.array(found) > CHANCE) < 0.03


def test_nothing_to_compare_is_no_difference():
    G = np.eye(6)
    assert chance(G @ G.T, np.zeros(6)) == 0.0
    assert chance(np.zeros((6, 6)), np.arange(6) % 2) == 0.0
    assert chance(np.ones((1, 1)), np.zeros(1)) == 0.0


def rows_of(X, y, loss, n_classes=2):
    rng = np.random.default_rng(3)
    phi = FourierFeatures.sample(Kernel("rbf", 0.5), X.shape[1], 60, rng)
    hinge = isinstance(loss, Hinge)
    targets = OneVsRestTargets(y.astype(np.intp), n_classes) if hinge else RealTargets(y)
    recipe = Recipe(loss, (0.01,) * targets.n_models)
    mapped = CpuBackend().rows(phi, X)
    order = GivenOrder(len(y))
    return recipe, TrainingRows(mapped, targets, order, np.ones(len(y)), None, 1.0, None)


@pytest.mark.parametrize("shards", [2, 16])
def test_sorted_rows_make_shards_that_differ_and_shuffled_ones_do_not(shards):
    rng = np.random.default_rng(0)
    m = 5 * LOOKED_AT
    X = rng.normal(size=(m, 2))
    classes = (X[:, 0] * X[:, 1] > 0).astype(float) + (X[:, 0] > 1)
    values = np.sin(2 * X[:, 0])
    shard = np.arange(m) * shards // m
    for y, loss in ((classes, Hinge()), (values, EpsilonInsensitive(0.1))):
        assert are_alike(*rows_of(X, y, loss, 3), shard)
        for key in (y, X[:, 0], np.abs(X[:, 1])):  # the last leaves the mean of X where it was
            order = np.argsort(key, kind="stable")
            assert not are_alike(*rows_of(X[order], y[order], loss, 3), shard)


def test_heavy_rows_on_one_shard_are_seen():
    """Rows of one class weigh ten times as much there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] > 0).astype(float)
    recipe, rows = rows_of(X, y, Hinge())
    shard = np.arange(2000) // 1000
    assert are_alike(recipe, rows, shard)
    rows.weight[:1000][y[:1000] == 1] = 10.0
    assert not are_alike(recipe, rows, shard)
