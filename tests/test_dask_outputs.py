"""Several outputs and quantiles on a real cluster: what one machine learns, wherever the rows lie."""

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score, r2_score

pytest.importorskip("distributed", reason='needs the extra "dask": pip install "asset-svm[dask]"')

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client

from asset_svm import AssetClassifier, AssetQuantileRegressor, AssetRegressor, load, save
from asset_svm.cli.main import main
from asset_svm.dask import (
    DaskAssetClassifier,
    DaskAssetQuantileRegressor,
    DaskAssetRegressor,
    loading,
    read_rows,
)
from clusters import two_workers

pytestmark = pytest.mark.dask

OPTIONS = dict(n_components=40, gamma=0.5, C=10, max_iter=4, random_state=0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 3)).astype(np.float32)
REALS = np.column_stack([np.sin(X[:, 0]), 50.0 + 9.0 * X[:, 1] * X[:, 2], X.sum(axis=1)])
NAMES = np.array(["calm", "brisk", "wild"])[np.digitize(X[:, 0], [-0.4, 0.4])]
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > X[:, 2], X[:, 2] > 1]).astype(int)
MIXED = pd.DataFrame({"wind": NAMES, "side": LABELS[:, 1]})


@pytest.fixture(scope="module")
def client():
    with two_workers() as workers, Client(workers) as connected:
        yield connected


def chunked(y, size=600):
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=(size, *y.shape[1:]))


def frames(y, count=2):
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    return dd.from_pandas(rows, npartitions=count), dd.from_pandas(y, npartitions=count)


def same_model(one, other):
    return np.array_equal(one.map_coef_, other.map_coef_) and np.array_equal(
        one.intercept_, other.intercept_
    )


@pytest.mark.parametrize(
    ("plain", "there", "y", "options"),
    [
        (AssetRegressor, DaskAssetRegressor, REALS, {"target_transform": "standard"}),
        (AssetRegressor, DaskAssetRegressor, REALS, {"epsilon": 0.01}),
        (AssetClassifier, DaskAssetClassifier, LABELS, {}),
        (AssetClassifier, DaskAssetClassifier, LABELS, {"class_weight": ["balanced", {1: 3.0}, None]}),
        (AssetQuantileRegressor, DaskAssetQuantileRegressor, REALS[:, 0], {"quantiles": (0.1, 0.7)}),
    ],
)
def test_one_partition_gives_the_plain_estimator_bit_for_bit(client, plain, there, y, options):
    here = plain(**OPTIONS, **options).fit(X, y)
    model = there(**OPTIONS, **options).fit(*chunked(y, 1200))
    assert same_model(model, here)
    rows = da.from_array(X, chunks=(500, -1))
    np.testing.assert_array_equal(model.predict(rows).compute(), here.predict(X))
    assert model.score(*chunked(y)) == pytest.approx(here.score(X, y), abs=1e-12)


def test_two_partitions_learn_every_output(client):
    model = DaskAssetRegressor(**OPTIONS, target_transform="standard").fit(*chunked(REALS))
    alone = AssetRegressor(**OPTIONS, target_transform="standard").fit(X, REALS)
    assert model.n_shards_ == 2 and model.map_coef_.shape[0] == 3
    found = r2_score(REALS, model.predict(X), multioutput="raw_values")
    assert (found > r2_score(REALS, alone.predict(X), multioutput="raw_values") - 0.03).all()


def test_columns_of_classes_in_frames_keep_their_names_and_kinds(client):
    weights = ["balanced", None]
    here = AssetClassifier(**OPTIONS, class_weight=weights).fit(X, MIXED)
    model = DaskAssetClassifier(**OPTIONS, class_weight=weights).fit(*frames(MIXED))
    assert [each.tolist() for each in model.classes_] == [["brisk", "calm", "wild"], [0, 1]]
    rows, y = frames(MIXED)
    predicted = model.predict(rows).compute()
    assert isinstance(predicted, pd.DataFrame) and predicted.index.equals(rows.compute().index)
    agree = (predicted.to_numpy() == here.predict(X)).mean(axis=0)
    assert (agree > 0.95).all()
    right = (predicted.to_numpy() == MIXED.to_numpy()).all(axis=1).mean()
    assert model.score(rows, y) == pytest.approx(right) and right > 0.85
    with pytest.raises(ValueError, match=r"a list of arrays.*to_local\(\)\.decision_function"):
        model.decision_function(rows)
    assert len(model.to_local().decision_function(rows.head(5))) == 2


def test_labels_have_a_decision_each(client):
    model = DaskAssetClassifier(**OPTIONS, multi_class="ovo").fit(*chunked(LABELS))
    decisions = model.decision_function(da.from_array(X, chunks=(400, -1)))
    assert decisions.shape == (1200, 3)
    np.testing.assert_allclose(decisions.compute(), model.to_local().decision_function(X), atol=1e-5)


def test_weights_of_rows_and_of_classes_multiply_as_on_one_machine(client):
    """In one shard, which two partitions make: the weights of each are those of all outputs."""
    weight = RNG.uniform(0.5, 2.0, 1200)
    weights = ["balanced", {0: 2.0, 1: 1.0}, None]
    here = AssetClassifier(**OPTIONS, class_weight=weights).fit(X, LABELS, sample_weight=weight)
    model = DaskAssetClassifier(**OPTIONS, class_weight=weights, n_shards=1).fit(
        *chunked(LABELS), sample_weight=da.from_array(weight, chunks=600)
    )
    np.testing.assert_allclose(model.map_coef_, here.map_coef_, rtol=1e-4, atol=1e-5)
    assert model.objective_ == pytest.approx(here.objective_, rel=1e-5)


@pytest.mark.parametrize(
    ("plain", "there", "y", "options"),
    [
        (AssetRegressor, DaskAssetRegressor, REALS, {"target_transform": "standard"}),
        (AssetClassifier, DaskAssetClassifier, LABELS, {}),
        (AssetQuantileRegressor, DaskAssetQuantileRegressor, REALS[:, 0], {}),
    ],
)
def test_cells_over_workers_are_the_plain_estimators_bit_for_bit(client, plain, there, y, options):
    options = dict(n_cells=5, gamma=0.5, C=10, random_state=0) | options
    here = plain(**options).fit(X, y)
    model = there(**options).fit(*chunked(y, 500))
    np.testing.assert_array_equal(model.to_local().predict(X), here.predict(X))


def test_quantiles_of_shards_are_scored_and_covered(client, tmp_path):
    y = REALS[:, 0] + RNG.normal(size=1200)
    model = DaskAssetQuantileRegressor(quantiles=(0.1, 0.5, 0.9), **OPTIONS).fit(*chunked(y))
    found = model.predict(da.from_array(X, chunks=(500, -1))).compute()
    assert found.shape == (1200, 3) and (np.diff(found, axis=1) >= 0.0).all()
    told = np.mean([d2_pinball_score(y, found[:, k], alpha=q) for k, q in enumerate((0.1, 0.5, 0.9))])
    assert model.score(*chunked(y)) == pytest.approx(told) and told > 0.05
    covered = model.coverage(*chunked(y))
    np.testing.assert_allclose(covered, (y[:, None] <= found).mean(axis=0))
    np.testing.assert_allclose(covered, [0.1, 0.5, 0.9], atol=0.05)
    save(model, tmp_path / "m.asset")
    again = load(tmp_path / "m.asset")
    assert isinstance(again, AssetQuantileRegressor)
    np.testing.assert_array_equal(again.predict(X), found)


def test_units_are_settled_by_a_sample_and_extremes_by_all_rows(client, monkeypatch):
    monkeypatch.setattr(loading, "SAMPLE_ROWS", 300)
    far = REALS.copy()
    far[7, 1] = 1e4
    model = DaskAssetRegressor(**OPTIONS, target_transform="standard").fit(*chunked(far))
    assert len(model.to_local()._fitted.task.parts) == 3
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match='target_transform="log" needs targets above 0, and y has -'):
        DaskAssetRegressor(**OPTIONS, target_transform="log").fit(*chunked(REALS))


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (
            da.concatenate([da.zeros((600, 2), chunks=600), da.ones((600, 2), chunks=600)]),
            {"class_weight": [{0: 0.0}, None]},
            "class_weight has a weight of 0",
        ),
        (da.ones((1200, 2), chunks=(600, 2)), {}, "one class in each of its 2 columns"),
        (da.zeros((1200, 2), chunks=(600, 1)), {}, "a chunk must hold whole rows"),
        (da.full((1200, 2), np.nan, chunks=(600, 2)), {}, "In partition 0, y|NaN"),
    ],
)
def test_bad_targets_give_one_sentence(client, y, options, message):
    with pytest.raises(ValueError, match=message):
        DaskAssetClassifier(**OPTIONS, **options).fit(da.from_array(X, chunks=(600, -1)), y)


def test_partitions_with_other_numbers_of_columns_are_told(client):
    blocks = [da.zeros((600, 2), chunks=600), da.zeros((600, 3), chunks=600)]
    y = da.from_delayed(blocks[0].to_delayed().ravel()[0], (600, 2), dtype=float)
    odd = da.from_delayed(blocks[1].to_delayed().ravel()[0], (600, 2), dtype=float)
    with pytest.raises(ValueError, match=r"y have several numbers of columns, \[2, 3\]"):
        DaskAssetRegressor(**OPTIONS).fit(da.from_array(X, chunks=(600, -1)), da.concatenate([y, odd]))


def test_files_with_several_targets_are_read_by_workers(client, tmp_path):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    for part in range(2):
        rows = slice(600 * part, 600 * part + 600)
        told = table[rows].assign(
            u=REALS[rows, 0], v=REALS[rows, 2], wind=NAMES[rows], side=LABELS[rows, 1]
        )
        told.to_csv(tmp_path / f"{part}.csv", index=False)
        told.drop(columns=["wind"]).to_parquet(tmp_path / f"{part}.parquet")
    rows, y = read_rows(str(tmp_path / "*.csv"), target=("u", "v"), features=("a", "b", "c"))
    assert list(y.columns) == ["u", "v"]
    np.testing.assert_allclose(y.compute().to_numpy(), REALS[:, [0, 2]])
    model = DaskAssetRegressor(**OPTIONS).fit(rows, y)
    assert model.score(rows, y) > 0.9
    kinds = read_rows(str(tmp_path / "*.csv"), target="wind,side", features=("a", "b", "c"))
    both = DaskAssetClassifier(**OPTIONS).fit(*kinds)
    assert [each.tolist() for each in both.classes_] == [["brisk", "calm", "wild"], [0, 1]]
    np.savez(tmp_path / "m.npz", X=X, y=LABELS)
    labels = read_rows(tmp_path / "m.npz")
    assert labels[1].shape == (1200, 3) and labels[1].dtype == np.int64
    assert DaskAssetClassifier(**OPTIONS).fit(*labels).score(*labels) > 0.8


def test_the_command_trains_several_targets_and_quantiles_on_a_cluster(client, tmp_path, capsys):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(u=REALS[:, 0], v=REALS[:, 2])
    table.to_csv(tmp_path / "m.csv", index=False)
    address, file = client.scheduler.address, str(tmp_path / "m.csv")
    train = ["train", file, "--dask", address, "--n-components", "40", "--max-iter", "3", "--target"]
    assert main([*train, "u,v", "-o", str(tmp_path / "two.asset")]) == 0
    assert "outputs\t2" in capsys.readouterr().out
    quantiles = ["u", "--drop", "v", "--quantiles", "0.1,0.9", "-o", str(tmp_path / "q.asset")]
    assert main([*train, *quantiles]) == 0
    assert load(tmp_path / "two.asset").predict(table[["a", "b", "c"]]).shape == (1200, 2)
    covered = load(tmp_path / "q.asset").coverage(table[["a", "b", "c"]], table["u"])
    assert covered[0] < 0.3 and covered[1] > 0.7
