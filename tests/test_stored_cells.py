"""Cells from files larger than memory: the model of the rows in memory, and what the disk may do."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from asset_svm import AssetClassifier, AssetRegressor, DataError, open_rows
from asset_svm.data import bundles as on_disk
from asset_svm.data.array_rows import ArrayRows
from asset_svm.data.bundles import Bundles, cut_into
from asset_svm.estimators import files
from asset_svm.estimators.files import fit_rows
from asset_svm.families.cells import stored
from asset_svm.families.one_map import windows
from asset_svm.storage.checkpoint import Checkpoint

pytest.importorskip("safetensors")
X, Y = make_classification(2000, 8, n_informative=6, n_classes=3, class_sep=1.5, random_state=0)
X = X.astype(np.float32)
REAL = np.sin(X[:, 0]).astype(np.float64) * 2 + 7
SMALL = dict(n_cells=12, C=10.0, random_state=0, memory_limit=100_000)
"""Rows that are not held in memory, in some ten bundles of exact cells."""


@pytest.fixture(autouse=True)
def many_windows(monkeypatch):
    monkeypatch.setattr(stored, "WINDOW_ROWS", 300)


def decisions(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def assert_same(stored_model, plain, rows):
    np.testing.assert_array_equal(decisions(stored_model, rows), decisions(plain, rows))
    assert stored_model.lam_ == plain.lam_ and stored_model.gamma_ == plain.gamma_
    assert stored_model.objective_ == plain.objective_ and stored_model.dual_gap_ == plain.dual_gap_
    for own, part in zip(stored_model.cells_, plain.cells_, strict=True):
        np.testing.assert_array_equal(own.shares, part.shares)
        assert own.mean_weight == part.mean_weight and own.n_rows == part.n_rows
        assert [type(d) for d in own.decisions] == [type(d) for d in part.decisions]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_partitions": 2, "kernel": "exponential"},
        {"class_weight": "balanced", "fit_intercept": True},
        {"class_weight": {2: 0.0}},
        {"n_cells": 3, "n_components": 40, "max_iter": 2},  # too large for exact cells
        {"n_cells": "auto", "n_components": 40, "max_iter": 2},
    ],
)
def test_where_the_sample_has_all_rows_the_model_is_that_of_rows_in_memory(sparse, options):
    rows, options = sp.csr_matrix(X) if sparse else X, {**SMALL, **options}
    found = AssetClassifier(**options).fit(ArrayRows(rows, Y))
    assert_same(found, AssetClassifier(**options).fit(rows, Y), rows)
    assert found.score(rows, Y) > 0.6


def test_a_relevance_is_learnt_as_in_memory_where_the_sample_has_all_rows():
    options = {**SMALL, "n_cells": 4, "memory_limit": 40_000, "relevance": "columns"}
    found = AssetClassifier(**options).fit(ArrayRows(X[:600], Y[:600]))
    plain = AssetClassifier(**options).fit(X[:600], Y[:600])
    np.testing.assert_array_equal(found.relevance_, plain.relevance_)
    assert_same(found, plain, X)


@pytest.mark.parametrize("options", [{}, {"target_transform": "standard", "loss": "huber"}])
@pytest.mark.parametrize("outputs", [1, 2])
def test_numbers_are_learnt_as_in_memory(options, outputs):
    y = REAL if outputs == 1 else np.column_stack([REAL, REAL**2])
    found = AssetRegressor(**SMALL, **options).fit(ArrayRows(X, y))
    assert_same(found, AssetRegressor(**SMALL, **options).fit(X, y), X)


def test_classes_by_name_in_several_columns_are_learnt_as_in_memory():
    names = np.array(["one", "another", "a third"])[Y]
    for y in (names, np.column_stack([names, np.where(X[:, 1] > 0, "u", "v")])):
        found = AssetClassifier(**SMALL).fit(ArrayRows(X, y))
        plain = AssetClassifier(**SMALL).fit(X, y)
        np.testing.assert_array_equal(found.predict(X), plain.predict(X))
        assert found.objective_ == plain.objective_


def test_one_exact_cell_knows_its_support_vectors(monkeypatch):
    monkeypatch.setattr(files, "held_bytes", lambda limit: 0)
    options = {**SMALL, "n_cells": 1, "memory_limit": 10_000_000}
    found = AssetClassifier(**options).fit(ArrayRows(X[:500], Y[:500]))
    plain = AssetClassifier(**options).fit(X[:500], Y[:500])
    np.testing.assert_array_equal(found.support_, plain.support_)
    np.testing.assert_array_equal(found.n_support_, plain.n_support_)


def test_with_a_sample_every_row_is_still_in_its_cell_and_the_model_as_good(monkeypatch):
    """The partition is grown from a part of the rows; the shares are those of all."""
    monkeypatch.setattr(files, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(files, "SAMPLE", 20)
    found = AssetClassifier(**SMALL).fit(ArrayRows(X, Y))
    (part,) = found.cells_
    counts = np.bincount(part.partition.assign(X), minlength=part.partition.n_cells)
    np.testing.assert_allclose(part.shares, counts / len(X), rtol=1e-12)
    assert found.score(X, Y) > AssetClassifier(**SMALL).fit(X, Y).score(X, Y) - 0.02


def test_bundles_come_back_in_the_order_of_their_rows(tmp_path):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(500, 3)) * (rng.random((500, 3)) < 0.5)
    cells = rng.integers(0, 9, size=500)
    of = cut_into(np.bincount(cells, minlength=9).astype(float), 120.0)
    y = rng.normal(size=(500, 2))
    for rows in (dense, sp.csr_matrix(dense)):
        with_bundles = Bundles(tmp_path, int(of[-1]) + 1)
        for start in range(0, 500, 70):
            part = slice(start, start + 70)
            with_bundles.add(rows[part], y[part], cells[part], of[cells[part]])
        assert os.listdir(tmp_path) == [], "the file has a name"
        assert len(with_bundles.sizes) > 3 and with_bundles.sizes.max() <= 120
        for number in range(len(with_bundles.sizes)):
            index = np.flatnonzero(of[cells] == number)
            found, targets, own = with_bundles.read(number)
            difference = found - rows[index]
            assert not (difference.toarray() if sp.issparse(difference) else difference).any()
            np.testing.assert_array_equal(targets, y[index])
            np.testing.assert_array_equal(own, cells[index])
        with_bundles.close()


def test_too_little_room_on_the_disk_is_told_with_both_numbers_before_rows_are_sorted(monkeypatch):
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(on_disk.shutil, "disk_usage", lambda folder: usage._replace(free=10_000))
    model = AssetClassifier(**SMALL)
    with pytest.raises(
        OSError, match=r"take 0\.08 MB of temporary files, and 0\.01 MB are free in .+temp"
    ):
        model.fit(ArrayRows(X, Y))
    assert not hasattr(model, "cells_")


def test_a_disk_that_fills_up_on_the_way_is_named(tmp_path, monkeypatch):
    class Full(Bundles):
        def __init__(self, *where):
            super().__init__(*where)
            self.file.close()
            self.file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115

    if not os.path.exists("/dev/full"):
        pytest.skip("there is no full device")
    monkeypatch.setattr(stored, "Bundles", Full)
    with pytest.raises(OSError) as caught:
        fit_rows(AssetClassifier(**SMALL), ArrayRows(X, Y), temp_dir=tmp_path)
    assert caught.value.errno == errno.ENOSPC and str(tmp_path) in caught.value.filename


def test_a_cell_that_does_not_fit_in_memory_is_told_with_its_rows():
    alike = np.zeros_like(X)  # which no partition tells apart
    with pytest.raises(
        MemoryError, match=r"some 2000 rows, which take 0\.08 MB, and memory_limit is 0\.0"
    ):
        AssetClassifier(**{**SMALL, "memory_limit": 20_000}).fit(ArrayRows(alike, Y))


def test_too_small_a_sample_for_so_many_cells_is_told(monkeypatch):
    monkeypatch.setattr(files, "SAMPLE_ROWS", 100)
    with pytest.raises(MemoryError, match=r"set n_cells to at most \d+, or raise memory_limit"):
        AssetClassifier(**{**SMALL, "n_cells": 500, "memory_limit": 50_000}).fit(ArrayRows(X, Y))


def test_rows_that_change_between_the_passes_are_told():
    class Growing(ArrayRows):
        passes = 0

        def _read(self, order):
            self.passes += 1
            yield from super()._read(order)
            if self.passes == 2:
                yield from super()._read(order)

    with pytest.raises(DataError, match="had 2000 rows and now has 4000"):
        AssetClassifier(**SMALL).fit(Growing(X, Y))


class Stopped(Exception):  # noqa: N818
    """What ends a run in these tests."""


@pytest.mark.parametrize(
    "options",
    [
        {"n_partitions": 2, "random_state": None},
        {"relevance": "columns", "memory_limit": 40_000, "n_cells": 4},
        {"n_cells": 4, "n_components": 40, "max_iter": 2},
    ],
)
@pytest.mark.parametrize("cells", [1, 3])
def test_a_run_that_was_cut_keeps_its_cells_and_ends_in_the_same_model(
    options, cells, tmp_path, monkeypatch
):
    m = 600 if "relevance" in options else 2000
    rows, y = X[:m], Y[:m]
    options = {**SMALL, **options}
    solved = 0
    solve = stored.solve_groups

    def counted(train, numbers, progress):
        nonlocal solved
        if solved >= cells:
            raise Stopped
        solved += len(numbers)
        return solve(train, numbers, progress)

    monkeypatch.setattr(stored, "solve_groups", counted)
    begun = Checkpoint(tmp_path, every=0.0)
    with pytest.raises(Stopped):
        fit_rows(AssetClassifier(**options), ArrayRows(rows, y), checkpoint=begun)
    monkeypatch.setattr(stored, "solve_groups", solve)
    again = []

    def watch(record):
        if "solved" in record:
            again.append(record["solved"])
        return False

    resumed = Checkpoint(tmp_path, every=0.0, resume=True)
    seed = resumed.read_run().seed
    kept = len(resumed.read_cells())
    assert kept == (0 if "n_components" in options else solved), "cells that are too large: none"
    found = fit_rows(AssetClassifier(**options), ArrayRows(rows, y), checkpoint=resumed, watch=watch)
    assert max(again[:2]) >= kept, "cells that were solved are solved again"
    if options["random_state"] is None:
        monkeypatch.setattr(stored.Settings, "draw_seed", lambda self: seed)
    assert_same(found, AssetClassifier(**options).fit(rows, y), rows)
    resumed.remove()
    assert os.listdir(tmp_path) == []


def test_a_run_that_was_cut_after_its_last_cell_begins_no_pass(tmp_path, monkeypatch):
    options = {**SMALL, "n_cells": 60}  # none is too large
    begun = Checkpoint(tmp_path, every=0.0)
    found = fit_rows(AssetClassifier(**options), ArrayRows(X, Y), checkpoint=begun)
    monkeypatch.setattr(stored, "Bundles", None)
    seen = []
    again = fit_rows(
        AssetClassifier(**options),
        ArrayRows(X, Y),
        checkpoint=Checkpoint(tmp_path, resume=True),
        watch=lambda record: seen.append(record),
    )
    assert_same(again, found, X)
    assert {record["cells"] for record in seen} == {found.n_cells_}


def test_other_parameters_do_not_go_on_with_saved_cells(tmp_path):
    fit_rows(AssetClassifier(**SMALL), ArrayRows(X, Y), checkpoint=Checkpoint(tmp_path))
    other = Checkpoint(tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"C was 10\.0 and is now 5\.0"):
        fit_rows(AssetClassifier(**{**SMALL, "C": 5.0}), ArrayRows(X, Y), checkpoint=other)


def test_a_checkpoint_of_cells_in_memory_is_refused(tmp_path):
    model = AssetClassifier(n_cells=4)
    with pytest.raises(ValueError, match="n_cells=4 does not go with a checkpoint of rows that fit"):
        fit_rows(model, ArrayRows(X, Y), checkpoint=Checkpoint(tmp_path))


def test_who_asks_to_stop_while_cells_are_solved_gets_a_model_and_before_that_none():
    def watch(record):
        return "solved" in record and record["solved"] >= 0

    model = fit_rows(AssetClassifier(**SMALL), ArrayRows(X, Y), watch=watch)
    assert model.history_[-1]["stopped"] and model.score(X, Y) > 0.6
    with pytest.raises(KeyboardInterrupt):
        fit_rows(AssetClassifier(**SMALL), ArrayRows(X, Y), watch=lambda record: True)


def test_progress_tells_of_rows_and_of_the_space_they_take():
    seen = []
    fit_rows(AssetClassifier(**SMALL), ArrayRows(X, Y), watch=lambda record: seen.append(record))
    sorted_rows = [record for record in seen if "sorted" in record]
    assert sorted_rows[0]["sorted"] == 0 and sorted_rows[-1]["sorted"] == 2000
    assert {record["temporary"] for record in sorted_rows} == {2000 * (8 * 4 + 4 + 4)}
    assert seen[-1]["rows_solved"] == seen[-1]["rows"] == 2000


@pytest.mark.parametrize("what", ["changed", "replaced", "moved"])
@pytest.mark.parametrize("options", [{}, {"n_cells": None, "n_components": 40, "max_iter": 2}])
def test_a_file_that_changes_while_it_is_read_is_noticed(what, options, tmp_path, monkeypatch):
    """In the pass after the scan: as many rows, other numbers; or another file, or none."""
    path, other = tmp_path / "rows.npy", tmp_path / "other.npy"
    rows = np.column_stack([X, Y]).astype(np.float32)
    np.save(path, rows)
    monkeypatch.setattr(windows, "WINDOW_ROWS", 300)
    read, passes = ArrayRows._read, []

    def meddled(self, order):
        passes.append(order)
        yield from read(self, order)
        if len(passes) == 2 and what == "changed":
            with path.open("r+b") as file:
                file.seek(200)
                file.write(b"1234")
        elif len(passes) == 2 and what == "replaced":
            np.save(other, rows)
            other.replace(path)
        elif len(passes) == 2:
            path.rename(other)

    monkeypatch.setattr(ArrayRows, "_read", meddled)
    model = AssetClassifier(**{**SMALL, "memory_limit": 50_000, **options})
    said = "was moved or removed while it was read" if what == "moved" else "changed while it was read"
    with pytest.raises(DataError, match=rf"rows\.npy: {said}; begin again"):
        model.fit(open_rows(path))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "set --n-cells"),
        (["--n-cells", "3", "--online"], "--online sorts no rows"),
        (["--n-cells", "3", "--dask", "local"], "--dask sorts no rows"),
        (["--n-cells", "3", "--temp-dir", "nowhere"], "is not a folder"),
    ],
)
def test_a_folder_for_rows_that_are_not_sorted_is_refused(options, said, tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")
    from asset_svm.cli.main import main

    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.eye(3))
    assert main(["train", "rows.npy", "--temp-dir", ".", *options]) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_time_between_checkpoints_is_told_by_the_name_of_its_option(tmp_path, capsys):
    pytest.importorskip("typer")
    from asset_svm.cli.main import main

    np.save(tmp_path / "rows.npy", np.eye(3))
    given = ["--checkpoint", str(tmp_path / "run"), "--checkpoint-every", "soon"]
    assert main(["train", str(tmp_path / "rows.npy"), *given]) == 2
    assert "--checkpoint-every soon: is not a time" in capsys.readouterr().err
