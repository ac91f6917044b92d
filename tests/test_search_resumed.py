"""A search that is cut at any moment goes on, and ends where it would have ended: bit for bit."""

import logging
import shutil
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

pytest.importorskip("safetensors")
pytest.importorskip("typer")

from asset_svm import AssetClassifier, AssetClassifierCV, AssetRegressorCV, open_rows
from asset_svm.cli.main import main
from asset_svm.data.raw import RawOptions
from asset_svm.estimators.files import fit_rows
from asset_svm.exceptions import ModelFileError
from asset_svm.persistence import save
from asset_svm.search.auto import columns, parts, race
from asset_svm.search.auto.looks import Looks
from asset_svm.search.files import search_rows
from asset_svm.search.inside import leaderboard
from asset_svm.search.journal import Journal
from asset_svm.search.run import SearchRun
from asset_svm.storage import checkpoint as checkpoints
from asset_svm.storage.checkpoint import Checkpoint
from killed_runs import assert_same_model

ROWS = 300
NO_CLOCK = "candidate", "score", "error", "rows", "folds"
"""Columns of a leaderboard that no clock has a part in."""
GRID = {"Cs": [1.0, 10.0], "n_components": 30, "search_iter": 2, "max_iter": 2, "random_state": 0}


SOON, LATE = 1000.0, 20_000.0
"""Time limits, on a clock that counts how often it is read."""


class Killed(BaseException):
    """What a kill leaves of a process that goes on in these tests: nothing is done about it."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with towns.csv, a table with a category and gaps, and numbers.npy."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4))
    frame = pd.DataFrame(X, columns=["wind", "rain", "heat", "dust"])
    frame["town"] = rng.choice(["Rome", "Oslo", "Bern"], ROWS)
    heard = np.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0
    frame["sold"] = np.where(heard ^ (frame["town"] == "Oslo"), "yes", "no")
    frame.loc[rng.random(ROWS) < 0.05, "rain"] = np.nan
    frame.to_csv("towns.csv", index=False)
    np.save("numbers.npy", np.column_stack([X, heard]))
    return tmp_path


def towns():
    return open_rows("towns.csv", target="sold", raw=RawOptions())


def numbers():
    return open_rows("numbers.npy")


def store(*, resume=True, folder="run"):
    return Checkpoint(folder, every=1e-9, resume=resume)


def pieces(kept):
    kept.read_run()
    return kept.read_found()


def cut_after(monkeypatch, count):
    """End the process, as it were, when so much has been kept."""
    left = [count]

    def counted(method):
        def keep(self, *args):
            method(self, *args)
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        return keep

    for name in ("keep", "keep_line"):
        monkeypatch.setattr(Journal, name, counted(getattr(Journal, name)))


@contextmanager
def cutting(monkeypatch, count):
    """What runs inside is ended when so much has been kept."""
    with monkeypatch.context() as patch:
        cut_after(patch, count)
        with pytest.raises(Killed):
            yield


def cut(monkeypatch, count, search, source):
    with cutting(monkeypatch, count):
        search_rows(search, source, checkpoint=store())


def counting(monkeypatch, cls, name):
    """A list that grows with every call of a method."""
    calls, method = [], getattr(cls, name)

    def counted(*args):
        calls.append(args)
        return method(*args)

    monkeypatch.setattr(cls, name, counted)
    return calls


def assert_same_search(found, expected):
    for search, path in ((found, "found.asset"), (expected, "expected.asset")):
        save(search.best_estimator_, path)
    assert_same_model("found.asset", "expected.asset")
    assert found.best_score_ == expected.best_score_
    if not hasattr(expected, "leaderboard_"):
        return
    assert found.ensemble_ == expected.ensemble_
    one, other = leaderboard(found), leaderboard(expected)
    for name in NO_CLOCK:
        assert np.array_equal(one[name], other[name]), name


RACES = {
    "a relevance": lambda: (
        AssetClassifierCV(random_state=0, kernel="rbf", relevance="columns", ensemble=False),
        numbers(),
    ),
    "a table": lambda: (AssetClassifierCV(random_state=0, kernel="rbf"), towns()),
    "a score": lambda: (
        AssetClassifierCV(random_state=0, kernel="rbf", scoring="balanced_accuracy", relevance=None),
        towns(),
    ),
    "numbers": lambda: (AssetRegressorCV(random_state=0, kernel="exponential"), numbers()),
}
LONG = "a table", "numbers"


@pytest.mark.filterwarnings("ignore:n_components=1024 is more:UserWarning")
@pytest.mark.parametrize("folds", ["all", "others"])
@pytest.mark.parametrize(
    "kind",
    ["a relevance", "a score", *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)],
)
def test_a_race_cut_at_any_look_ends_in_the_same_model_and_makes_no_look_twice(
    here, monkeypatch, kind, folds
):
    """Also where the best are confirmed by other folds, and rows become more from stage to stage."""
    if folds == "others":
        monkeypatch.setattr(parts, "FEW_ROWS", 200)
        monkeypatch.setattr(race, "FEW", 100)
        monkeypatch.setattr(race, "MORE", 150)
        monkeypatch.setattr("asset_svm.search.auto.search.EXACT_ROWS", 0)
    lines, looks = counting(monkeypatch, Looks, "_line"), counting(monkeypatch, Journal, "keep")
    taught = counting(monkeypatch, columns, "learnt_of")
    expected = search_rows(*RACES[kind](), checkpoint=store(folder="other"))
    whole, made, learnt = len(lines), len(looks), len(taught)
    assert made > 5
    for at in sorted({1, made // 2, made} if kind in LONG else {made // 2}):
        lines.clear()
        taught.clear()
        cut(monkeypatch, at, *RACES[kind]())
        found = search_rows(*RACES[kind](), checkpoint=(kept := store()))
        assert len(lines) == whole, "a look was made again, or left out"
        assert len(taught) == learnt, "a relevance was learnt again"
        kept.remove()
        assert_same_search(found, expected)


@pytest.mark.parametrize("at", [1, 4])
def test_a_limit_counts_the_seconds_of_both_processes(here, monkeypatch, ticks, at):
    """A second passes from one reading of the clock to the next, so that nothing hangs on a machine."""
    limit = 4000.0
    given = dict(random_state=0, kernel="rbf", relevance=None, time_limit=limit, ensemble=False)
    cut(monkeypatch, at, AssetClassifierCV(**given), numbers())
    spent = pieces(store())[-1].elapsed
    assert 0.0 < spent < limit
    lines = counting(monkeypatch, Looks, "_line")
    begun = ticks.now()
    found = search_rows(AssetClassifierCV(**given), numbers(), checkpoint=store())
    here_ = ticks.now() - begun
    looks = leaderboard(found)
    assert len(looks["candidate"]) > at and len(lines) > 0
    assert spent < found.search_time_ <= limit
    assert found.search_time_ == pytest.approx(spent + here_ - found.refit_time_, abs=0.05 * limit)
    assert max(looks["at"]) <= found.search_time_


def test_looks_are_made_again_as_they_were_however_slow_the_clock_is_now(here, monkeypatch, ticks):
    """What was decided by readings of the clock is decided by the same readings."""
    given = dict(random_state=0, kernel="rbf", relevance=None, time_limit=4000.0, ensemble=False)
    cut(monkeypatch, 6, AssetClassifierCV(**given), numbers())
    again = counting(monkeypatch, Looks, "_make_again")
    ticks._seconds = count(10_000, 500)
    found = search_rows(AssetClassifierCV(**given), numbers(), checkpoint=store())
    assert len(again) == 6 and len(leaderboard(found)["candidate"]) >= 6


def test_a_search_whose_time_was_over_looks_no_more_and_trains_its_model(here, monkeypatch, ticks):
    given = dict(random_state=0, kernel="rbf", relevance=None, time_limit=4000.0, ensemble=False)
    with monkeypatch.context() as patch:
        patch.setattr("asset_svm.search.racing.train", _killed)
        with pytest.raises(Killed):
            search_rows(AssetClassifierCV(**given), numbers(), checkpoint=store())
    lines = counting(monkeypatch, Looks, "_line")
    ticks._seconds = iter(range(int(1e6), int(2e6)))  # whenever that is
    found = search_rows(AssetClassifierCV(**given), numbers(), checkpoint=store())
    assert lines == [] and found.score(*_arrays()) > 0.9


@pytest.mark.parametrize("kind", ["a relevance", "a score"])
@pytest.mark.parametrize("seen", [1, 3])
def test_a_stop_while_looks_are_gone_through_takes_effect_after_them(here, monkeypatch, kind, seen):
    """Looks that are made whatever the time find those that were made before."""
    looks = counting(monkeypatch, Journal, "keep")
    search_rows(*RACES[kind](), checkpoint=store(folder="other"))
    at = len(looks) - 1
    cut(monkeypatch, at, *RACES[kind]())
    again, told = counting(monkeypatch, Looks, "_make_again"), []

    def watch(progress):
        told.append(progress)
        return len(told) == seen

    lines = counting(monkeypatch, Looks, "_line")
    found = search_rows(*RACES[kind](), checkpoint=store(), watch=watch)
    assert len(again) == at and len(lines) <= 1, "looks were lost, or made after the stop"
    assert found.best_estimator_ is not None and len(leaderboard(found)["candidate"]) >= at
    assert sum(len(piece.looks) for piece in pieces(store())) == at


def test_an_error_in_a_look_leaves_no_relevance_of_it(here, monkeypatch):
    kind = "a relevance"
    looks = counting(monkeypatch, Journal, "keep")
    search_rows(*RACES[kind](), checkpoint=store(folder="other"))
    cut(monkeypatch, len(looks), *RACES[kind]())
    seen, tried = [], Looks._tried

    def failing(self, *args):
        seen.append(self.columns)
        if self.columns.taught:
            raise Killed
        return tried(self, *args)

    monkeypatch.setattr(Looks, "_tried", failing)
    with pytest.raises(Killed):
        search_rows(*RACES[kind](), checkpoint=store())
    assert seen[-1].taught == {}


def test_a_race_goes_on_with_other_limits(here, monkeypatch, ticks):
    """Looks are gone through with the limits that they were made with, which may be several."""

    def search(limit, jobs=1):
        given = dict(random_state=0, relevance=None, ensemble=False, n_jobs=jobs)
        return AssetClassifierCV(**given, time_limit=limit), numbers()

    def begin():
        ticks._seconds = count(0, 1)

    looks = counting(monkeypatch, Journal, "keep")
    search_rows(*search(SOON), checkpoint=store(folder="soon"))
    soon = len(looks)
    looks.clear()
    begin()
    search_rows(*search(LATE), checkpoint=store(folder="late"))
    late = len(looks)
    assert soon + 3 < late
    begin()
    cut(monkeypatch, soon - 1, *search(SOON))
    begin()
    cut(monkeypatch, 3, *search(LATE, 2))
    begin()
    again = counting(monkeypatch, Looks, "_make_again")
    looks.clear()
    found = search_rows(*search(2.0 * LATE), checkpoint=store())
    assert len(again) == soon + 2 and looks, "a look was lost, or the new limit has found none"
    assert len(leaderboard(found)["candidate"]) > soon


@pytest.mark.parametrize(("before", "now"), [(None, 60.0), (60.0, None)])
def test_work_that_is_counted_does_not_become_seconds(here, monkeypatch, before, now):
    given = dict(random_state=0, kernel="rbf", relevance=None)
    cut(monkeypatch, 1, AssetClassifierCV(**given, time_limit=before), numbers())
    with pytest.raises(ValueError, match=r"time_limit was .* without a limit counts work"):
        search_rows(AssetClassifierCV(**given, time_limit=now), numbers(), checkpoint=store())


def test_a_grid_goes_on_with_another_limit(here, monkeypatch):
    expected = search_rows(grid(), numbers())
    cut(monkeypatch, 2, grid(time_limit=1e6), numbers())
    found = search_rows(grid(n_jobs=1), numbers(), checkpoint=store())
    assert_same_search(found, expected)


# Seeds ----------------------------------------------------------------------------------------------


def hits(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


@pytest.mark.parametrize("kind", ["a race", "a grid"])
@pytest.mark.parametrize("draws", [lambda: None, lambda: np.random.RandomState(3)])
def test_a_search_without_a_seed_goes_on_with_the_one_that_it_drew(here, monkeypatch, kind, draws):
    def search(random_state):
        if kind == "a grid":
            return grid(random_state=random_state, scoring=hits)
        return AssetClassifierCV(
            kernel="rbf", relevance=None, ensemble=False, random_state=random_state, scoring=hits
        )

    cut(monkeypatch, 2, search(draws()), numbers())
    seed = store().read_run().seed
    assert seed > 0
    found = search_rows(search(draws()), numbers(), checkpoint=store())
    assert_same_search(found, search_rows(search(seed), numbers()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scoring": lambda model, X, y: 1.0}, "has no name by which a search that goes on would"),
        ({"cv": KFold(3, shuffle=True)}, "draws other folds in every process"),
        ({"cv": KFold(3, shuffle=True, random_state=np.random.RandomState(0))}, "draws other folds"),
    ],
)
def test_what_no_later_process_would_know_again_is_refused(here, monkeypatch, options, said):
    made = counting(monkeypatch, SearchRun, "_note")
    with pytest.raises(ValueError, match=said):
        search_rows(grid(**options), numbers(), checkpoint=store())
    assert made == [] and search_rows(
        grid(cv=KFold(3, shuffle=True, random_state=0)), numbers(), checkpoint=store()
    )


def test_the_checkpoint_of_a_training_is_none_of_a_search(here):
    fit_rows(AssetClassifier(n_components=30, max_iter=1), numbers(), checkpoint=store())
    with pytest.raises(ValueError, match="it is of a training, and this is a search; name another"):
        search_rows(grid(), numbers(), checkpoint=store())


def _killed(*args):
    raise Killed


def _arrays():
    rows = np.load("numbers.npy")
    return rows[:, :-1], rows[:, -1]


# Grids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"gammas": "auto"},
        {"gammas": [0.1, 1.0, 10.0], "n_components": None, "n_cells": 4, "max_iter": None},
        {"gammas": [0.1, 1.0], "landmarks": "kmeans"},
    ],
)
def test_maps_that_a_grid_has_finished_are_not_trained_again(here, monkeypatch, options):
    monkeypatch.setattr("asset_svm.search.race.FEWEST_ROWS", 60)  # rounds of more and more rows

    def search():
        return AssetClassifierCV(**(GRID | options))

    expected, noted = search_rows(search(), numbers()), counting(monkeypatch, SearchRun, "_note")
    search_rows(search(), numbers(), checkpoint=store(folder="other"))
    whole = len(noted)
    for at in sorted({1, whole // 2, whole}):
        cut(monkeypatch, at, search(), numbers())
        new = counting(monkeypatch, Journal, "keep_line")
        found = search_rows(search(), numbers(), checkpoint=(kept := store()))
        assert len(new) == whole - at
        kept.remove()
        assert_same_search(found, expected)
        assert found.gammas_ == expected.gammas_ and found.best_at_edge_ == expected.best_at_edge_
        for name in ("mean_test_score", "n_resources", "iter", "rank_test_score"):
            assert np.array_equal(found.cv_results_[name], expected.cv_results_[name], equal_nan=True)


def test_epsilons_of_a_gamma_are_searched_together_or_not_at_all(here, monkeypatch):
    def search():
        given = GRID | {"Cs": [0.01, 0.1], "epsilons": [0.01, 0.1, 0.3]}
        return AssetRegressorCV(**given, gammas=[0.1, 1.0])

    expected = search_rows(search(), numbers())
    cut(monkeypatch, 4, search(), numbers())  # the first epsilon of the second gamma
    new = counting(monkeypatch, Journal, "keep_line")
    found = search_rows(search(), numbers(), checkpoint=store())
    assert len(new) == 3
    assert_same_search(found, expected)


# What is refused, and what may go wrong -------------------------------------------------------------


def grid(**options):
    return AssetClassifierCV(**(GRID | {"gammas": [0.1, 1.0, 10.0]} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": [1.0]}, r"Cs was '\[1.0, 10.0\]' and is now '\[1.0\]'; resume with the same data"),
        ({"random_state": 1}, "random_state was 0 and is now 1"),
        ({"keep_path": True}, "keep_path=True does not go with a checkpoint"),
    ],
)
def test_other_parameters_are_refused(here, monkeypatch, options, message):
    cut(monkeypatch, 2, grid(), numbers())
    with pytest.raises(ValueError, match=message):
        search_rows(grid(**options), numbers(), checkpoint=store())


def test_other_data_are_refused_and_a_moved_file_is_none(here, monkeypatch):
    expected = search_rows(grid(), numbers())
    cut(monkeypatch, 2, grid(), numbers())
    shutil.move("numbers.npy", "moved.npy")
    found = search_rows(grid(), open_rows("moved.npy"), checkpoint=store())
    assert_same_search(found, expected)
    rows = np.load("moved.npy")
    rows[7, 0] += 1.0
    np.save("moved.npy", rows)
    with pytest.raises(ValueError, match="the data have changed; resume with the same data"):
        search_rows(grid(), open_rows("moved.npy"), checkpoint=store())


def test_the_checkpoint_of_another_kind_of_run_is_refused(here, monkeypatch):
    cut(monkeypatch, 2, grid(), numbers())
    with pytest.raises(ValueError, match="belongs to another run: epsilon was None and is now 0"):
        search_rows(AssetRegressorCV(**GRID, gammas=[0.1, 1.0, 10.0]), numbers(), checkpoint=store())
    with pytest.raises(ValueError, match="belongs to another run: it is of a search, and this is a tr"):
        fit_rows(AssetClassifier(n_components=30), numbers(), checkpoint=store())
    with pytest.raises(ValueError, match="holds the checkpoint of a run; go on with it"):
        store(resume=False)


def test_a_piece_that_is_damaged_or_missing_is_told(here, monkeypatch):
    cut(monkeypatch, 3, grid(), numbers())
    (here / "run" / "found-000000.asset").rename("first")
    with pytest.raises(ModelFileError, match="goes on after 1 looks of the search, and 0 are in"):
        search_rows(grid(), numbers(), checkpoint=store())
    content = bytearray((here / "first").read_bytes())
    (here / "run" / "found-000000.asset").write_bytes(content[:-8])
    with pytest.raises(ModelFileError, match=r"found-000000\.asset is not a whole asset-svm file"):
        search_rows(grid(), numbers(), checkpoint=store())
    content[-3] ^= 1
    (here / "run" / "found-000000.asset").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"found-000000\.asset is damaged"):
        search_rows(grid(), numbers(), checkpoint=store())


def test_a_look_that_was_not_to_be_made_is_told(here, monkeypatch):
    """As another version of the race would ask for."""
    given = dict(random_state=0, kernel="rbf", relevance=None)
    cut(monkeypatch, 3, AssetClassifierCV(**given), numbers())
    monkeypatch.setattr(race, "COSTS", (2.0, 20.0))
    with pytest.raises(ValueError, match="belongs to another search: a look in it was at"):
        search_rows(AssetClassifierCV(**given), numbers(), checkpoint=store())


def test_a_disk_that_is_full_for_a_while_loses_nothing(here, monkeypatch, caplog):
    expected, write, calls = search_rows(grid(), numbers()), checkpoints.container.write, []

    def sometimes(path, kind, *args):
        calls.append(kind)
        if kind == "found" and len(calls) < 4:
            raise OSError(28, "No space left on device", str(path))
        write(path, kind, *args)

    with caplog.at_level(logging.WARNING, "asset_svm"), monkeypatch.context() as patch:
        patch.setattr(checkpoints.container, "write", sometimes)
        found = search_rows(grid(), numbers(), checkpoint=store())
    assert "could not be written" in caplog.text
    assert_same_search(found, expected)
    assert [len(piece) for piece in pieces(store())] == [3] and calls == [
        "run",
        "found",
        "found",
        "found",
    ]


# The command ----------------------------------------------------------------------------------------

TUNE = ["tune", "towns.csv", "--target", "sold", "--kernel", "rbf", "--relevance", "none"]


def run(*options, out="m.asset", what=TUNE):
    return main([*what, "-o", out, "--checkpoint", "run", "--every", "0.000001s", *options])


def test_the_command_goes_on_after_ctrl_c_and_removes_what_it_kept(here, monkeypatch, capsys):
    assert run(out="whole.asset") == 0 and not any((here / "run").iterdir())
    with monkeypatch.context() as patch:
        watch = race.Race._try

        def interrupted(self, *args):
            found = watch(self, *args)
            self.looks.budget.stopped |= len(self.history) > 5
            return found

        patch.setattr(race.Race, "_try", interrupted)
        saved = counting(patch, Journal, "save")
        patch.setattr("asset_svm.cli.run.Run._end", _interrupted)
        assert run() == 130 and saved
    assert sorted((here / "run").glob("found-*.asset"))
    assert run() == 2
    assert "go on with it (resume=True, --resume)" in capsys.readouterr().err
    lines = counting(monkeypatch, Looks, "_line")
    assert run("--resume") == 0 and lines
    assert "going on with the search in run." in capsys.readouterr().err
    assert_same_model("m.asset", "whole.asset")
    assert not any((here / "run").iterdir())


def _interrupted(self, *args, **found):
    from asset_svm.cli.options import Interrupted

    raise Interrupted("interrupted.")


def test_training_with_a_race_goes_on_too(here, monkeypatch):
    train = ["train", "towns.csv", "--target", "sold", "--auto", *TUNE[4:]]
    assert run(out="whole.asset") == 0
    with cutting(monkeypatch, 3):
        run(what=train)
    assert run("--resume", what=train) == 0
    assert_same_model("m.asset", "whole.asset")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--resume", "--task", "regression"],
            "--task regression: the run to resume has --task auto; resume with",
        ),
        (
            ["--resume", "--numbers", "pieces"],
            "--numbers pieces: the run to resume has no --numbers; re",
        ),
        (["--resume", "--zero-based"], "--zero-based: the run to resume has no --zero-based; resume"),
        (["--resume", "--seed", "1"], "random_state was 0 and is now 1; resume with the same data"),
        (["--resume", "--dask", "local"], "--checkpoint does not go with --dask"),
    ],
)
def test_what_the_command_cannot_go_on_with_is_told(here, monkeypatch, capsys, options, said):
    if "--dask" in options:
        pytest.importorskip("distributed")
    with cutting(monkeypatch, 1):
        run()
    assert run(*options) == 2
    assert said in capsys.readouterr().err


def test_a_checkpoint_needs_a_folder_and_a_file(here, capsys):
    assert main([*TUNE, "--resume"]) == 2
    assert "--resume needs --checkpoint DIR" in capsys.readouterr().err
    assert main(["tune", "-", "--checkpoint", "run"]) == 2
    assert "standard input cannot be read again" in capsys.readouterr().err


def test_a_run_of_another_command_is_not_gone_on_with(here, monkeypatch, capsys):
    with cutting(monkeypatch, 1):
        run()
    train = ["train", "towns.csv", "--target", "sold", "--memory", "1MB", "--checkpoint", "run"]
    assert main([*train, "--resume", "-o", "m.asset"]) == 2
    assert (
        "belongs to another run: it is of a search, and this is a training" in capsys.readouterr().err
    )


@pytest.mark.parametrize("removed", [1, 2, 4])
def test_a_search_that_was_cut_while_its_checkpoint_was_removed_begins_anew(here, monkeypatch, removed):
    """What a kill leaves of a checkpoint that is removed belongs to no run."""
    search_rows(AssetClassifierCV(**GRID), numbers(), checkpoint=(kept := store()))
    expected, left, unlink = search_rows(AssetClassifierCV(**GRID), numbers()), [removed], Path.unlink
    assert len(pieces(kept)) > 3

    def unlinked(path, **options):
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlinked)
        with pytest.raises(Killed):
            kept.remove()
    assert list(here.glob("run/found-*.asset"))
    assert_same_search(search_rows(AssetClassifierCV(**GRID), numbers(), checkpoint=store()), expected)
