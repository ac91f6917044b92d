"""Fits from row sources: as arrays where they fit, else windows; checkpoints resume bitwise."""

import io
import logging
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from asset_svm import AssetClassifier, AssetRegressor, DataError, ModelFileError, open_rows
from asset_svm.data import fingerprint
from asset_svm.data.array_rows import ArrayRows
from asset_svm.data.scan import scan
from asset_svm.estimators import files
from asset_svm.estimators.files import fit_rows
from asset_svm.families.one_map import windows
from asset_svm.families.one_map.mixing import Mixing
from asset_svm.storage import atomic, container
from asset_svm.storage.checkpoint import Checkpoint

pytest.importorskip("safetensors")
X, Y = make_classification(3000, 8, n_informative=6, n_classes=3, class_sep=2.0, random_state=0)
X = X.astype(np.float32)
REAL = np.sin(X[:, 0]) * 2 + 7
COMMON = dict(n_components=60, max_iter=2, random_state=0)
STREAMED = {**COMMON, "memory_limit": 1000}
"""Of rows that do not fit in memory."""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(windows, "WINDOW_ROWS", 700)
    monkeypatch.setattr(files, "SAMPLE_ROWS", 500)


def streamed(model, source, **options):
    """The fit of a source that does not fit in memory."""
    return fit_rows(model.set_params(memory_limit=1000), source, **options)


def write_svm(path, rows, y):
    with path.open("w") as file:
        for label, row in zip(y, rows, strict=True):
            cells = " ".join(f"{j + 1}:{value:.7g}" for j, value in enumerate(row) if value)
            file.write(f"{label} {cells}\n")
    return path


def test_rows_that_fit_in_memory_train_as_arrays_do(tmp_path):
    path = write_svm(tmp_path / "a.svm", X, Y)
    rows = open_rows(path).read()
    expected = AssetClassifier(**COMMON).fit(rows.X, rows.y.astype(int))
    found = AssetClassifier(**COMMON).fit(open_rows(path))
    assert np.array_equal(found.map_coef_, expected.map_coef_)
    assert found.classes_.tolist() == [0, 1, 2] and found.classes_.dtype == np.int64


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"approximation": "fourier"}, {"step": "strong"}])
def test_a_streamed_fit_comes_close_to_that_of_arrays(sparse, options):
    rows = sp.csr_matrix(X) if sparse else X
    options = {**COMMON, "max_iter": 5, **options}
    arrays = AssetClassifier(**options).fit(rows, Y)
    stream = streamed(AssetClassifier(**options), ArrayRows(rows, Y))
    assert stream.lam_ == arrays.lam_ and stream.t_ == arrays.t_ == 15_000
    assert stream.score(rows, Y) > arrays.score(rows, Y) - 0.02
    # Of the same problem, up to the landmarks: within 15 % of the objective.
    assert stream.certify(rows, Y)[0] < 1.15 * arrays.certify(rows, Y)[0]


def test_a_streamed_regression_keeps_its_offset():
    options = dict(C=10, **{**COMMON, "max_iter": 10, "n_components": 300})
    model = streamed(AssetRegressor(**options), ArrayRows(X, REAL))
    arrays = AssetRegressor(**options).fit(X, REAL)
    assert model.score(X, REAL) > arrays.score(X, REAL) - 0.05
    assert abs(model.predict(X).mean() - REAL.mean()) < 0.3


def test_learning_goes_on_after_a_streamed_fit():
    model = streamed(AssetClassifier(**COMMON), ArrayRows(X, Y))
    before = model.t_
    model.partial_fit(X[:300], Y[:300])
    assert model.t_ == before + 300 and model.score(X, Y) > 0.7


def test_what_is_known_of_most_targets_goes_with_the_model_of_a_file():
    """Large outliers would make an intercept's set, and later steps, far too large."""
    outliers = REAL.copy()
    outliers[::300] = 1e6
    stream = streamed(AssetRegressor(**COMMON), ArrayRows(X, outliers))
    arrays = AssetRegressor(**COMMON).fit(X, outliers)
    assert stream._fitted.session.bulk == pytest.approx(arrays._fitted.session.bulk, rel=0.2)


def test_a_streamed_model_that_is_worse_than_none_is_told_of():
    model = AssetClassifier(**COMMON, step="robust", step_scale=1e6, C=1e6)
    with pytest.warns(ConvergenceWarning, match="is far above that of coef = 0"):
        streamed(model, ArrayRows(X, Y))


def test_weights_of_classes_count_over_the_whole_file():
    rare = np.where(X[:, 0] > 1.8, 1, 0)
    options = dict(class_weight="balanced", **COMMON)
    stream = streamed(AssetClassifier(**options), ArrayRows(X, rare))
    arrays = AssetClassifier(**options).fit(X, rare)
    assert np.isclose(stream.lam_, arrays.lam_)
    recall = [(m.predict(X)[rare == 1] == 1).mean() for m in (stream, arrays)]
    assert recall[0] > recall[1] - 0.1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(sampling="uniform"), 'sampling=.uniform. needs all rows in memory'),
        (dict(early_stopping=True), "early_stopping=True needs all rows"),
        (dict(tol=0.1), "tol=0.1 needs all rows"),
        (dict(warm_start=True), "warm_start=True needs all rows"),
        (dict(landmarks="margin"), "landmarks='margin' needs all rows"),
        (dict(n_components="auto"), r"set n_components to a number, or raise memory_limit"),
    ],
)  # fmt: skip
def test_what_a_stream_cannot_do_is_told_and_leaves_nothing(options, said):
    model = AssetClassifier(**COMMON).set_params(**options)
    with pytest.raises(ValueError, match=said):
        streamed(model, ArrayRows(X, Y))
    assert not hasattr(model, "map_coef_")


def test_what_a_checkpoint_does_not_go_with_is_told_before_anything_is_read(tmp_path):
    class Unread(ArrayRows):
        def _read(self, order):
            raise AssertionError("the rows were read")

    model = AssetClassifier(**COMMON, early_stopping=True)
    with pytest.raises(
        ValueError, match=r"early_stopping=True does not go with a checkpoint: .+; leave"
    ):
        fit_rows(model, Unread(X, Y), checkpoint=Checkpoint(tmp_path))


def test_rows_that_turn_out_too_many_are_told_at_once():
    class Endless(ArrayRows):
        def _read(self, order):
            while True:
                yield from super()._read(order)

    model = AssetClassifier(**COMMON, memory_limit=10_000, tol=0.1)
    with pytest.raises(ValueError, match=r"tol=0.1 needs .*; set max_iter .*, or raise memory_limit"):
        model.fit(Endless(X, Y))


def test_targets_that_do_not_suit_the_task_are_told():
    with pytest.raises(DataError, match="use AssetRegressor"):
        AssetClassifier(**COMMON).fit(ArrayRows(X, REAL))
    with pytest.raises(DataError, match="regression needs numbers"):
        AssetRegressor(**COMMON).fit(ArrayRows(X, np.array(["a", "b", "c"])[Y]))
    with pytest.raises(ValueError, match="leave y and sample_weight out"):
        AssetClassifier().fit(ArrayRows(X, Y), Y)


def test_a_stream_that_is_too_long_to_hold_and_cannot_be_reread_is_told(monkeypatch):
    text = "".join(f"{i % 2} 1:{i}\n" for i in range(2000)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(DataError, match="learn online"):
        AssetClassifier(memory_limit=1000).fit(open_rows("-"))


def test_names_of_columns_become_names_of_features(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    rows = "".join(f"{a},{b},{'xy'[int(a > 0)]}\n" for a, b in X[:500, :2].tolist())
    path.write_text("left,right,y\n" + rows)
    for limit in (None, 1000):
        model = AssetClassifier(memory_limit=limit, **COMMON).fit(open_rows(path, target="y"))
        assert model.feature_names_in_.tolist() == ["left", "right"]
        assert model.classes_.tolist() == ["x", "y"]
        assert not hasattr(model.fit(ArrayRows(X, Y)), "feature_names_in_")


def test_the_watcher_sees_progress_and_can_end_the_run():
    seen = []

    def watch(record):
        seen.append(record)
        return len(seen) == 3

    model = streamed(AssetClassifier(**COMMON), ArrayRows(X, Y), watch=watch)
    assert len(seen) == 3 and model.t_ == seen[-1]["steps"] < len(Y)
    assert seen[-1]["progressive_error"] < seen[0]["progressive_error"]
    arrays = []
    fit_rows(AssetClassifier(**COMMON), ArrayRows(X, Y), watch=arrays.append)
    assert [record["epoch"] for record in arrays] == [1, 2]


def test_a_time_limit_ends_a_stream(ticks):
    options = {**COMMON, "max_iter": 1000}
    model = streamed(AssetClassifier(time_limit=200.0, **options), ArrayRows(X, Y))
    assert 0 < model.t_ < 200 * len(Y) and model.score(X, Y) > 0.6


def test_the_sample_of_a_scan_is_uniform_and_does_not_depend_on_blocks():
    m = 20_000
    source = ArrayRows(np.arange(m, dtype=float)[:, None], np.arange(m) % 2)
    first = scan(source, sample_rows=1000, hold_bytes=0, seed=1).summary
    source.step = 77
    source.n_segments = -(-m // 77)
    second = scan(source, sample_rows=1000, hold_bytes=0, seed=1).summary
    assert np.array_equal(first.sample.X, second.sample.X) and first.n_rows == m
    values = first.sample.X.ravel()
    assert len(set(values.tolist())) == 1000
    # Six standard errors of the mean of 1000 of them.
    assert abs(values.mean() - m / 2) < 6 * m / 12**0.5 / 1000**0.5


# Checkpoints ------------------------------------------------------------------------------------

CASES = {
    "metric": (AssetClassifier, {}, X, Y),
    "sparse": (AssetClassifier, {}, sp.csr_matrix(X), Y),
    "two classes": (AssetClassifier, {"class_weight": {1: 3.0}}, X, (Y == 1).astype(int)),
    "fourier": (AssetClassifier, {"approximation": "fourier"}, X, Y),
    "robust": (AssetClassifier, {"step": "robust", "average": 100}, X, Y),
    "strong": (AssetClassifier, {"step": "strong", "average": None}, X, Y),
    "given order": (AssetClassifier, {"sampling": "given", "average": 0.3}, X, Y),
    "regression": (AssetRegressor, {}, X, REAL),
}
IN_MEMORY = {
    "steps in the metric": (AssetClassifier, {}, Y),
    "several stages": (AssetClassifier, {"tol": 1e-9}, Y),
    "drawn rows": (AssetClassifier, {"sampling": "uniform", "step": "robust", "average": 50}, Y),
    "a number of components that is found": (AssetRegressor, {"n_components": "auto"}, REAL),
    "no seed": (AssetRegressor, {"random_state": None, "step": "strong"}, REAL),
}


@pytest.mark.filterwarnings("ignore:The duality gap")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if "found" in case else []) for case in IN_MEMORY],
)
def test_a_run_in_memory_that_was_cut_resumes_bitwise_as_if_there_was_no_checkpoint(tmp_path, case):
    cls, options, y = IN_MEMORY[case]
    options = {**COMMON, "max_iter": 6, **options}
    source, saved = ArrayRows(X[:900], y[:900]), {}
    for cut in (1, 3, 5):
        folder, seen = tmp_path / f"cut{cut}", []

        def stop(record, cut=cut, seen=seen):
            seen.append(record)
            return len(seen) == cut

        fit_rows(cls(**options), source, checkpoint=Checkpoint(folder), watch=stop)
        seed = container.read(folder / "run.asset", "run")[0]["seed"]
        resumed = fit_rows(
            cls(**options),
            source,
            checkpoint=Checkpoint(folder, resume=True),
            watch=lambda record: False,
        )
        same = {} if options["random_state"] is not None else {"random_state": Drawn(seed)}
        plain = cls(**{**options, **same})
        plain._fit_watched(X[:900], y[:900], None, watch=lambda record: False)
        for name in ("map_coef_", "intercept_", "objective_", "dual_gap_", "t_", "n_iter_"):
            np.testing.assert_array_equal(getattr(resumed, name), getattr(plain, name), err_msg=name)
        assert len(resumed.history_) == len(plain.history_) == 6
        saved[cut] = seed
    assert len(set(saved.values())) == (1 if options["random_state"] is not None else 3)


class Drawn(np.random.RandomState):
    """Draws one number, whatever it is asked for."""

    def __init__(self, number):
        super().__init__(0)
        self.number = number

    def randint(self, *args, **options):
        return self.number


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_cut_anywhere_resumes_bitwise(tmp_path, case):
    cls, options, rows, y = CASES[case]
    source = ArrayRows(rows, y)
    options = {**STREAMED, **options}
    whole = fit_rows(cls(**options), source, checkpoint=Checkpoint(tmp_path / "whole", every=1e9))
    for cut in (1, 4, 5, 7, 9) if case == "metric" else (4, 7):
        folder, seen = tmp_path / f"cut{cut}", []

        def stop(record, cut=cut, seen=seen):
            seen.append(record)
            return len(seen) == cut

        fit_rows(cls(**options), source, checkpoint=Checkpoint(folder), watch=stop)
        resumed = fit_rows(cls(**options), source, checkpoint=Checkpoint(folder, resume=True))
        assert np.array_equal(resumed.map_coef_, whole.map_coef_)
        assert np.array_equal(resumed.intercept_, whole.intercept_)
        assert (resumed.t_, resumed.objective_) == (whole.t_, whole.objective_)
        assert len(resumed.history_) == len(whole.history_)
        for model in (resumed, whole):
            assert np.isfinite(model.dual_gap_)


def test_a_checkpoint_is_not_overwritten_and_belongs_to_one_run(tmp_path):
    path = write_svm(tmp_path / "a.svm", X, Y)
    folder = tmp_path / "run"
    fit_rows(
        AssetClassifier(**COMMON), open_rows(path), checkpoint=Checkpoint(folder), watch=lambda r: True
    )
    with pytest.raises(ValueError, match="holds the checkpoint of a run; go on with it"):
        Checkpoint(folder)
    other = AssetClassifier(**{**COMMON, "max_iter": 3})
    with pytest.raises(ValueError, match="another run: max_iter was 2 and is now 3"):
        fit_rows(other, open_rows(path), checkpoint=Checkpoint(folder, resume=True))
    path.write_text(path.read_text() + "1 1:0.5\n")
    with pytest.raises(ValueError, match="another run: the data have changed"):
        fit_rows(AssetClassifier(**COMMON), open_rows(path), checkpoint=Checkpoint(folder, resume=True))
    Checkpoint(folder, resume=True).remove()
    Checkpoint(folder)


def started(path, folder):
    """A run that was stopped after its first window, and how to go on with it."""
    common = {**STREAMED, "n_components": 20}
    fit_rows(
        AssetClassifier(**common), open_rows(path), checkpoint=Checkpoint(folder), watch=lambda r: True
    )
    return lambda: fit_rows(
        AssetClassifier(**common), open_rows(path), checkpoint=Checkpoint(folder, resume=True)
    )


@pytest.mark.parametrize("kind", ["svm", "csv", "npy", "labels"])
def test_a_label_that_changes_in_the_middle_of_a_file_is_found(tmp_path, kind):
    many = np.tile(X, (10, 1))  # more than what both ends tell
    path = tmp_path / f"rows.{kind.replace('labels', 'npz')}"
    options, changed = {}, path
    if kind == "svm":
        write_svm(path, many, np.tile(Y, 10))
    elif kind == "csv":
        pytest.importorskip("pyarrow")
        rows = zip(np.tile(Y, 10).tolist(), many.tolist(), strict=True)
        path.write_text(
            "y,a,b\n" + "".join(f"{label},{row[0]:.6f},{row[1]:.6f}\n" for label, row in rows)
        )
    elif kind == "npy":
        np.save(path, np.column_stack([many, np.tile(Y, 10)]))
    else:
        changed = tmp_path / "labels.npy"
        np.save(changed, np.tile(Y, 50))
        np.savez(path, X=np.tile(X, (50, 1))[:, :2])
        options["target"] = str(changed)

    def fit(**more):
        return fit_rows(AssetClassifier(**COMMON), open_rows(path, **options), **more)

    fit(checkpoint=Checkpoint(tmp_path / "run"), watch=lambda record: True)
    content = bytearray(changed.read_bytes())
    if kind in ("svm", "csv"):
        place = content.index(b"\n", len(content) // 2) + 1
        content[place] = ord("1") if content[place] != ord("1") else ord("2")
    else:
        content[len(content) // 2] ^= 1
    changed.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="another run: the data have changed"):
        fit(checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_a_file_that_did_not_change_is_not_read_to_find_that_out(tmp_path, monkeypatch):
    path = write_svm(tmp_path / "a.svm", X, Y)
    go_on = started(path, tmp_path / "run")
    made = []
    monkeypatch.setattr(fingerprint.hashlib, "blake2b", lambda **options: made.append(options))
    go_on()
    assert not made
    monkeypatch.undo()
    monkeypatch.setattr(windows, "WINDOW_ROWS", 700)
    monkeypatch.setattr(files, "SAMPLE_ROWS", 500)
    path.write_bytes(path.read_bytes())  # another time, the same bytes
    os.utime(path, ns=(1, 1))
    go_on()


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path):
    path = write_svm(tmp_path / "a.svm", X, Y)

    def change():
        os.utime(path, ns=(1, 1))
        return False

    with pytest.raises(DataError, match="changed while it was read"):
        fingerprint.Fingerprint.of([path], change)


def test_a_checkpoint_of_an_older_version_is_told(tmp_path):
    path = write_svm(tmp_path / "a.svm", X, Y)
    started(path, tmp_path / "run")
    run = tmp_path / "run" / "run.asset"
    header, tensors = container.read(run, "run")
    container.write(run, "run", header, tensors, version=1)
    with pytest.raises(ModelFileError, match=r"of an older asset-svm.*; remove the folder"):
        Checkpoint(tmp_path / "run", resume=True).read_run()


def test_a_full_disk_costs_a_checkpoint_and_nothing_that_was_saved(tmp_path, monkeypatch, caplog):
    source, folder = ArrayRows(X, Y), tmp_path / "run"
    whole = fit_rows(AssetClassifier(**STREAMED), source, checkpoint=Checkpoint(tmp_path / "w"))
    saved, failures = [], []
    sync = atomic.os.fsync

    def full(handle):
        if len(saved) >= 3:
            failures.append(handle)
            raise OSError(28, "No space left on device")
        saved.append(handle)
        sync(handle)

    def stop(record):
        return len(failures) == 2

    monkeypatch.setattr(atomic.os, "fsync", full)
    with caplog.at_level(logging.WARNING, "asset_svm"):
        fit_rows(
            AssetClassifier(**STREAMED), source, checkpoint=Checkpoint(folder, every=0), watch=stop
        )
    assert "No space left on device" in caplog.text
    assert sorted(path.name for path in folder.iterdir()) == ["run.asset", "state.asset"]
    monkeypatch.undo()
    monkeypatch.setattr(windows, "WINDOW_ROWS", 700)
    monkeypatch.setattr(files, "SAMPLE_ROWS", 500)
    resumed = fit_rows(AssetClassifier(**STREAMED), source, checkpoint=Checkpoint(folder, resume=True))
    assert np.array_equal(resumed.map_coef_, whole.map_coef_)


def test_a_state_of_another_run_does_not_count(tmp_path):
    source = ArrayRows(X, Y)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, seed in ((first, 0), (second, 1)):
        options = {**STREAMED, "random_state": seed}
        fit_rows(
            AssetClassifier(**options), source, checkpoint=Checkpoint(folder), watch=lambda r: True
        )
    (first / "state.asset").write_bytes((second / "state.asset").read_bytes())
    resumed = fit_rows(AssetClassifier(**STREAMED), source, checkpoint=Checkpoint(first, resume=True))
    whole = fit_rows(AssetClassifier(**STREAMED), source, checkpoint=Checkpoint(tmp_path / "w"))
    assert np.array_equal(resumed.map_coef_, whole.map_coef_)


def test_scikit_learns_callbacks_see_the_epochs_of_a_stream():
    model = AssetClassifier(memory_limit=1000, **COMMON)
    if not hasattr(model, "set_callbacks"):
        pytest.skip("scikit-learn before 1.9 has no callbacks")
    ended = []

    class Count:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            ended.append(context.task_name)
            return False

        def teardown(self, estimator, context):
            pass

    model.set_callbacks(Count()).fit(ArrayRows(X, Y))
    assert ended.count("epoch") == 2


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_rows_that_come_sorted_by_target_are_told_of(kind, tmp_path):
    X, y = make_moons(3000, noise=0.25, random_state=0)
    if kind == "regressor":
        y = y + X[:, 0]
    make = AssetClassifier if kind == "classifier" else AssetRegressor
    options = dict(n_components=50, memory_limit=1e5, max_iter=2, random_state=0)
    for name, order in (("mixed", np.arange(3000)), ("sorted", np.argsort(y, kind="stable"))):
        path = tmp_path / f"{name}.svm"
        np.savetxt(path, np.column_stack([y, X])[order], fmt="%.9g 1:%.9g 2:%.9g")
        source = open_rows(path)
        if name == "mixed":
            make(**options).fit(source)
            continue
        with pytest.warns(
            ConvergenceWarning, match=r"sorted\.svm come sorted .* shuffle the rows"
        ) as told:
            make(**options).fit(source)
        assert len(told) == 1


def test_the_mixing_of_windows_is_the_correlation_ratio():
    rng = np.random.default_rng(0)
    windows = [rng.normal(loc=k, size=(1, 50 + 10 * k)) for k in range(4)]
    mixing = Mixing()
    for window in windows:
        mixing.add(window)
    y = np.concatenate(windows, axis=1)
    within = sum(window.size * window.var() for window in windows)
    assert mixing.ratio == pytest.approx(1.0 - within / (y.size * y.var()))
