"""Patterns of files: one source, read in order or by segments; what parts of the rows tell, joined."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

pytest.importorskip("pyarrow")

from asset_svm import AssetClassifier, DataError, open_rows
from asset_svm.cli.scaling import ColumnScaling
from asset_svm.data.scan import TargetSummary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def folder(tmp_path):
    """Three parts of 300 rows, and one of none, as Parquet, CSV, svmlight and .npy."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=Y)
    for number in range(4):
        part = frame[number * 300 : (number + 1) * 300]
        part.to_parquet(tmp_path / f"part-{number}.parquet", row_group_size=100)
        part.to_csv(tmp_path / f"part-{number}.csv", index=False)
        if number == 3:
            continue
        np.save(tmp_path / f"part-{number}.npy", part.to_numpy())
        with open(tmp_path / f"part-{number}.svm", "w") as file:
            for row, label in zip(X[part.index], Y[part.index], strict=True):
                cells = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()))
                file.write(f"{label} {cells}\n")
    return tmp_path


@pytest.mark.parametrize("ending", ["parquet", "csv", "svm", "npy"])
def test_files_of_a_pattern_follow_each_other(folder, ending):
    target = {"npy": "4", "svm": None}.get(ending, "label")
    source = open_rows(str(folder / f"part-*.{ending}"), target=target)
    found = source.read()
    rows = found.X.toarray() if sp.issparse(found.X) else found.X
    np.testing.assert_allclose(rows, X, rtol=1e-6)
    np.testing.assert_array_equal(found.y, Y)
    assert len(source.files) == (3 if ending in ("svm", "npy") else 4)


@pytest.mark.parametrize("ending", ["parquet", "svm", "npy"])
def test_segments_of_all_files_come_in_any_order(folder, ending):
    target = {"npy": "4", "svm": None}.get(ending, "label")
    source = open_rows(str(folder / f"part-*.{ending}"), target=target)
    windows = list(source.windows(500, shuffle=(0,)))
    seen = np.concatenate([w.X.toarray() if sp.issparse(w.X) else w.X for w in windows])
    assert [len(w) for w in windows] == [500, 400] and not np.array_equal(seen, X)
    np.testing.assert_allclose(np.sort(seen, axis=0), np.sort(X, axis=0), rtol=1e-6)


def test_a_model_of_a_pattern_is_that_of_one_file(folder):
    settings = dict(n_components=50, max_iter=2, random_state=0)
    several = AssetClassifier(**settings).fit(open_rows(str(folder / "part-*.csv"), target="label"))
    whole = AssetClassifier(**settings).fit(X, Y)
    np.testing.assert_array_equal(several.map_coef_, whole.map_coef_)
    assert several.feature_names_in_.tolist() == list("abcd")


def test_files_that_do_not_go_together_are_told(folder):
    with pytest.raises(FileNotFoundError, match=r"none-\*.csv matches no file"):
        open_rows(str(folder / "none-*.csv"))
    pd.DataFrame({"a": [1.0], "label": [1]}).to_csv(folder / "part-5.csv", index=False)
    with pytest.raises(DataError, match=r"part-5.csv has no column 'b'"):
        open_rows(str(folder / "part-*.csv"))
    np.save(folder / "part-7.npy", np.ones((5, 3)))
    with pytest.raises(DataError, match=r"part-7.npy has 2 features and .*part-0.npy has 4"):
        open_rows(str(folder / "part-*.npy"), target="1")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder):
    (folder / "part-0.csv").rename(folder / "part[1].csv")
    assert open_rows(folder / "part[1].csv").read().X.shape == (300, 4)


def test_target_summaries_of_parts_are_those_of_all_rows():
    for y in (Y, np.array(["a", "b", "c"])[RNG.integers(0, 3, 900)], X[:, 0]):
        whole, joined = TargetSummary(), TargetSummary()
        whole.add(y, "it")
        for part in np.array_split(y, 4):
            other = TargetSummary()
            other.add(part, "it")
            joined.join(other, "it")
        joined.join(TargetSummary(), "it")
        assert whole == joined
    many, names = TargetSummary(), TargetSummary()
    many.add(np.arange(1001), "it")
    assert many.counts is None
    names.add(np.array(["a"]), "it")
    with pytest.raises(DataError, match="targets are numbers first, and names later"):
        many.join(names, "it")


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("sparse", [False, True])
def test_scalings_of_parts_are_that_of_all_rows(kind, sparse):
    rows = np.hstack([X.astype(np.float64), np.full((900, 1), 7.0), np.zeros((900, 1))])
    if sparse:
        rows[np.abs(rows) < 0.3] = 0
    joined = ColumnScaling(kind)
    for part in np.array_split(rows, 3):
        other = ColumnScaling(kind)
        other.observe(sp.csr_matrix(part) if sparse else part)
        joined.join(other)
    joined.join(ColumnScaling(kind))
    scaler = joined.finish(6)
    expected = StandardScaler(with_mean=not sparse)
    if kind == "minmax":
        expected = MaxAbsScaler() if sparse else MinMaxScaler()
    expected.fit(sp.csr_matrix(rows) if sparse else rows)
    some = sp.csr_matrix(rows[:5]) if sparse else rows[:5]
    close = scaler.transform(some) - expected.transform(some)
    assert abs(close).max() < 1e-12 and scaler.n_samples_seen_ == 900
