"""``make recorded``: equal trees are found to be equal, and whatever differs is found and told."""

import json
import warnings

import numpy as np
import pytest

from recorded import __main__ as recorded
from recorded import found as parts
from recorded.comparison import Exceptions, compare
from recorded.fits import FITS
from recorded.machine import machine
from recorded.trees import Result, make_fits, read_results, results_of
from recorded.ways import Fit

QUICK = ["steps/robust", "cells/one"]


@pytest.fixture
def trees(monkeypatch):
    """Stands for processes: a tree NUMBER multiplies decisions by it, and has no strong steps."""

    def results_of(source, names, folder):
        folder.mkdir()
        found = {"decisions": np.arange(4.0) * float(str(source)), "intercept_": np.zeros(1)}
        np.savez(folder / "0.npz", **found)
        well = Result(parts.digests(found), path=folder / "0.npz")
        ill = Result({}, error="ValueError: no such step")
        return {name: ill if name == "steps/strong" else well for name in names}

    monkeypatch.setattr(recorded, "results_of", results_of)


@pytest.fixture
def exceptions(tmp_path):
    def written(text):
        (tmp_path / "exceptions.toml").write_text(text)
        return str(tmp_path / "exceptions.toml")

    return written


@pytest.mark.slow
def test_the_tree_beside_itself_is_equal(capsys):
    source = str(recorded.SOURCE)
    assert recorded.main(["compare", "--old", source, "--new", source, *QUICK]) == 0
    assert "2 fits: 2 equal" in capsys.readouterr().out


def test_trees_that_differ_are_told_with_the_size(trees, exceptions, capsys):
    asked = ["compare", "--old", "1", "--new", "1.000000001", "steps/robust", "steps/scale"]
    assert recorded.main(asked) == 1
    out = capsys.readouterr().out
    assert "differs    steps/robust: decisions by 1.0e-09\n" in out and "2 fits: 2 differs" in out
    path = exceptions('["steps/robust"]\nreason = "rounding"\nwithin = 1e-8\nparts = ["decisions"]')
    assert recorded.main([*asked[:-1], "--exceptions", path]) == 0
    assert "excepted   steps/robust: decisions by 1.0e-09: rounding" in capsys.readouterr().out
    for much in ("within = 1e-10", 'parts = ["vector"]'):
        path = exceptions(f'["steps/robust"]\nreason = "rounding"\n{much}')
        assert recorded.main([*asked[:-1], "--exceptions", path]) == 1
        assert "more than its exception allows" in capsys.readouterr().out


def test_a_fit_that_fails_is_never_well(trees, capsys, tmp_path):
    assert recorded.main(["compare", "--old", "1", "--new", "1", "steps/strong"]) == 1
    assert "old: ValueError: no such step; new: ValueError" in capsys.readouterr().out
    path = tmp_path / "hashes.json"
    assert recorded.main(["record", "--new", "1", "--hashes", str(path), "steps/strong"]) == 1
    assert not path.exists()


def test_the_errors_of_fits_are_kept_and_the_next_ones_are_made(tmp_path, monkeypatch, capsys):
    def fail(place):
        raise ValueError("no such step")

    def work(place):
        (place.folder / "file").touch(exist_ok=False)  # each has a folder of its own
        warnings.warn("quiet", stacklevel=1)
        return {"decisions": np.ones(3)}

    made = (
        Fit("a/ill", fail),
        Fit("a/well", work),
        Fit("a/too", work),
        Fit("a/no", fail, ("nowhere",)),
    )
    monkeypatch.setattr("recorded.fits.FITS", made)
    make_fits([fit.name for fit in made], tmp_path, recorded.SOURCE)
    results = read_results(tmp_path)
    assert results["a/ill"].error == "ValueError: no such step"
    assert results["a/well"].hashes == results["a/too"].hashes != {} and not results["a/well"].error
    np.testing.assert_array_equal(results["a/well"].found()["decisions"], np.ones(3))
    assert results["a/no"].skipped == "nowhere"
    with pytest.raises(RuntimeError, match="asset_svm is that of"):
        make_fits([], tmp_path, tmp_path)


def test_a_process_that_ends_early_leaves_no_fit_without_an_error(tmp_path):
    (tmp_path / "asset_svm").mkdir()
    (tmp_path / "asset_svm" / "__init__.py").write_text("raise SystemExit(7)")
    results = results_of(tmp_path, ["steps/robust"], tmp_path / "results")
    assert "ended with 7" in results["steps/robust"].error


def test_hashes_are_kept_and_a_tampered_one_is_found(trees, tmp_path, capsys):
    path = tmp_path / "hashes.json"
    asked = ["--new", "1", "--hashes", str(path), "steps/robust"]
    assert recorded.main(["record", *asked]) == 0
    assert recorded.main(["check", *asked]) == 0
    assert recorded.main(["record", *asked[:-1], "steps/scale"]) == 0  # the other one stays
    assert recorded.main(["check", *asked, "steps/scale"]) == 0
    told = json.loads(path.read_text())
    told["fits"]["steps/robust"]["intercept_"] = "0" * 16
    path.write_text(json.dumps(told))
    assert recorded.main(["check", *asked]) == 1
    assert "differs    steps/robust: intercept_\n" in capsys.readouterr().out
    del told["fits"]["steps/robust"]
    path.write_text(json.dumps(told))
    assert recorded.main(["check", *asked]) == 1
    assert "unknown    steps/robust" in capsys.readouterr().out


def test_hashes_of_another_kind_of_machine_are_not_compared(tmp_path, capsys):
    path = tmp_path / "hashes.json"
    path.write_text(json.dumps({"machine": {**machine(), "processor": "z80"}, "fits": {}}))
    assert recorded.main(["check", "--hashes", str(path)]) == recorded.OTHER_MACHINE
    out = capsys.readouterr().out
    assert "processor: z80 there" in out and "nothing was compared" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare"], "needs --old"),
        (["list", "nonsense"], "'nonsense' is neither a fit nor a group"),
        (["compare", "--old", "nowhere", "steps"], "nowhere has no folder asset_svm"),
    ],
)
def test_a_bad_command_is_told(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        recorded.main(arguments)
    assert ended.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("entry", [{}, {"reason": ""}, {"reason": "so", "part": ["vector"]}])
def test_an_exception_needs_a_fit_and_a_reason(entry):
    with pytest.raises(ValueError, match="'a' is no fit"):
        Exceptions.read({"a": {"reason": "so"}}, ["b"])
    with pytest.raises(ValueError, match="'b' needs a reason"):
        Exceptions.read({"b": entry}, ["b"])


def test_the_exceptions_of_the_project_are_of_fits_that_there_are(capsys):
    assert recorded.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [fit.name for fit in FITS]


def test_there_are_fits_of_every_kind_each_with_a_name_of_its_own():
    assert len({fit.name for fit in FITS}) == len(FITS) >= 75
    assert all("/" in fit.name for fit in FITS)


def test_a_fit_that_a_side_lost_or_skipped_is_told():
    well = Result({"decisions": "1"})
    words = {
        verdict.name: (verdict.word, verdict.well)
        for verdict in compare(
            {"lost": well, "skipped": well, "equal": well},
            {"skipped": Result({}, skipped="card"), "equal": well},
            Exceptions({}),
        )
    }
    assert words == {"lost": ("lost", False), "skipped": ("skipped", True), "equal": ("equal", True)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([1.0, -2.0], [1.0, -2.5], 0.25),
        ([0.0], [-0.0], 0.0),
        ([0.0], [1e-300], np.inf),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan], [1.0], np.inf),
        ([1.0, 2.0], [1.0], np.inf),
        (["a"], ["b"], np.inf),
    ],
)
def test_the_distance_of_two_results(old, new, expected):
    assert parts.distance(np.array(old), np.array(new)) == expected


def test_a_hash_tells_type_shape_and_the_last_bit_apart():
    one = np.ones((2, 3))
    others = [one.astype(np.float32), one.reshape(3, 2), one * np.nextafter(1.0, 2.0), -one]
    assert len({parts.digest(array) for array in [one, *others]}) == 5
    assert parts.digest(np.asfortranarray(one)) == parts.digest(one)


@pytest.mark.parametrize("renamed", [False, True])
def test_the_solvers_vector_is_found_by_either_name(renamed, monkeypatch):
    class Model:
        n_components_, dual_coef_ = 4, np.ones((1, 8))

        def __init__(self, **params):
            setattr(self, "weights_" if renamed else "coef_", np.ones((1, 4)))

        def fit(self, X, y):
            return self

        def __getattr__(self, name):
            raise AttributeError("coef_ is of kernel='linear' alone; see dual_coef_ and weights_.")

    monkeypatch.setattr("asset_svm.AssetClassifier", Model)
    parts.vector_name.cache_clear()
    try:
        assert parts.vector_name() == ("weights_" if renamed else "coef_")
    finally:
        parts.vector_name.cache_clear()
