"""Made rows of any number: their Bayes error, their places, files of them, and ``asset make``."""

import numpy as np
import pytest

from asset_svm import open_rows
from asset_svm.datasets import make_waves, write_rows
from asset_svm.datasets import waves as made

typer = pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from asset_svm.cli.main import main  # noqa: E402


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_the_best_classifier_errs_as_often_as_is_said(noise):
    source = make_waves(200_000, noise=noise, seed=3)
    rows = source.read()
    best = np.where(made.wave_function(rows.X.astype(np.float64)) > 0, 1, -1)
    error = np.mean(best != rows.y)
    assert source.bayes_error == noise
    # Four standard deviations, and the few rows whose sign is lost to rounding.
    assert abs(error - noise) < 4 * np.sqrt(noise * (1 - noise) / 200_000) + 2e-5
    # Nothing else tells which labels are wrong: not the size of f, nor any column.
    wrong = (best != rows.y).astype(float)
    seen = np.column_stack([np.abs(made.wave_function(rows.X)), rows.X])
    if noise:
        correlated = np.corrcoef(wrong, seen.T)[0, 1:]
        assert np.abs(correlated).max() < 5 / np.sqrt(200_000)


def test_a_row_is_a_function_of_its_place_and_seed():
    few, many = make_waves(1000).read(), make_waves(100_000).read()
    np.testing.assert_array_equal(few.X, many.X[:1000])
    np.testing.assert_array_equal(few.y, many.y[:1000])
    other = make_waves(1000, seed=1).read()
    assert not (other.X == few.X).any()
    source = make_waves(100_000)
    backwards = list(source.blocks(np.arange(source.n_segments)[::-1]))
    np.testing.assert_array_equal(np.concatenate([b.X for b in backwards[::-1]]), many.X)


def test_rows_are_of_the_sizes_that_are_said():
    X = make_waves(50_000).read().X
    assert X.dtype == np.float32 and X.shape[1] == 20
    np.testing.assert_allclose(np.abs(X).max(axis=0), made.SIZES, rtol=1e-3)
    np.testing.assert_allclose(X.std(axis=0), made.SIZES / np.sqrt(3), rtol=0.02)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.npy"])
def test_files_of_them_have_the_same_rows(name, tmp_path, capsys):
    path = tmp_path / name
    assert main(["make", str(path), "--rows", "4e4", "--seed", "5", "--noise", "0.1"]) == 0
    told = capsys.readouterr().out
    assert "rows\t40000" in told and "Bayes error\t10 %" in told
    target = {"target": "y"} if name.endswith("parquet") else {}
    found, rows = open_rows(path, **target).read(), make_waves(40_000, seed=5, noise=0.1).read()
    np.testing.assert_array_equal(found.X, rows.X)
    np.testing.assert_array_equal(found.y, rows.y)
    if name.endswith("npy"):
        assert np.load(path).shape == (40_000, 21)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rows.csv"], "rows are written as .parquet or .npy"),
        (["rows.npy", "--rows", "many"], "--rows many: is not a number of rows"),
        (["rows.npy", "--rows", "0"], "--rows 0: must be a whole number"),
        (["rows.npy", "--rows", "1.5"], "--rows 1.5: must be a whole number"),
        (["rows.npy", "--noise", "0.5"], "noise=0.5: the share of wrong labels"),
    ],
)
def test_what_cannot_be_made_is_told_and_leaves_nothing(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["make", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_writing_that_fails_leaves_no_part_of_a_file(tmp_path):
    class Broken(made.WaveRows):
        def _block(self, number):
            if number:
                raise RuntimeError("broken")
            return super()._block(number)

    for name in ("rows.npy", "rows.parquet"):
        with pytest.raises(RuntimeError, match="broken"):
            write_rows(Broken(100_000, 0.05, 0), tmp_path / name)
    assert not list(tmp_path.iterdir())
