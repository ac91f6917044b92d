"""Several outputs: each as a model of its own would have it, from arrays, files and commands."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags

from asset_svm import (
    AssetClassifier,
    AssetClassifierCV,
    AssetRegressor,
    AssetRegressorCV,
    load,
    open_rows,
    save,
)
from asset_svm.cli.main import main
from asset_svm.data.several_targets import beside, by_column, columns_of
from asset_svm.data.tables import Columns
from asset_svm.estimators.calibration import CalibratedClassifier
from asset_svm.exceptions import DataError
from asset_svm.storage.checkpoint import Checkpoint
from asset_svm.tasks import Classification, Outputs, Regression

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
REALS = np.column_stack([np.sin(2 * X[:, 0]), 10 * X[:, 1] + 40, 0.1 * X[:, 2] ** 2])
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] ** 2 > 0.5]).astype(int)
CLASSES = np.column_stack([np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 1] > 0])
EXACT = {"gamma": 0.5, "n_cells": 1, "fit_intercept": True, "tol": 1e-7}
MAPPED = {"gamma": 0.5, "n_components": 60, "random_state": 0}


# Against models of one output ---------------------------------------------------------------------


def test_exact_outputs_are_those_of_svr():
    model = AssetRegressor(C=3.0, epsilon=0.05, **EXACT).fit(X, REALS)
    for own, y in zip(model.predict(X).T, REALS.T, strict=True):
        expected = SVR(gamma=0.5, C=3.0, epsilon=0.05, tol=1e-6).fit(X, y).predict(X)
        np.testing.assert_allclose(own, expected, atol=2e-3 * np.ptp(y))


def test_exact_labels_are_those_of_svc():
    model = AssetClassifier(C=3.0, **EXACT).fit(X, LABELS)
    for own, y in zip(model.decision_function(X).T, LABELS.T, strict=True):
        expected = SVC(gamma=0.5, C=3.0, tol=1e-6).fit(X, y).decision_function(X)
        np.testing.assert_allclose(own, expected, atol=5e-3)


@pytest.mark.parametrize("step", ["metric", "robust", "strong"])
def test_outputs_on_one_map_solve_the_problems_of_each(step):
    """Steps differ, since multipliers are chosen for all outputs together: objectives agree."""
    options = {**MAPPED, "step": step, "max_iter": 200, "C": 1.0}
    y = REALS / REALS.std(axis=0)
    together = AssetRegressor(**options).fit(X, y)
    alone = [AssetRegressor(**options).fit(X, own) for own in y.T]
    total = sum(model.objective_ for model in alone)
    assert together.objective_ == pytest.approx(total, rel=0.02 if step == "metric" else 0.2)
    if step == "metric":
        assert together.dual_gap_ <= 0.02 * together.objective_


def test_outputs_of_very_unequal_size_have_balls_of_their_own():
    """One y_max for all would make the steps of the small outputs far too long."""
    options = {**MAPPED, "step": "robust", "step_scale": 0.1, "max_iter": 30, "C": 10.0, "epsilon": 0.0}
    together = AssetRegressor(**options).fit(X, REALS)
    for number, y in enumerate(REALS.T):
        alone = AssetRegressor(**options).fit(X, y)
        np.testing.assert_allclose(together.predict(X)[:, number], alone.predict(X), rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"n_cells": 3}, {"landmarks": "margin", "n_components": 40}])
def test_one_column_is_one_output(options):
    model = AssetRegressor(random_state=0, **options)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = model.fit(X, REALS[:, :1]).predict(X)
    assert (column == model.fit(X, REALS[:, 0]).predict(X)).all()


def test_relevance_and_margins_look_at_all_outputs():
    noise = np.random.default_rng(1).normal(size=(300, 3))
    wide = np.hstack([X[:, :2], noise])
    y = np.column_stack([np.sin(2 * X[:, 0]), np.sin(2 * X[:, 1])])
    model = AssetRegressor(relevance="columns", random_state=0, epsilon=0.01, C=10).fit(wide, y)
    assert model.feature_importances_[:2].sum() > 0.9
    assert model.score(wide, y) > 0.9
    margin = AssetClassifier(landmarks="margin", **MAPPED).fit(X, CLASSES)
    assert margin.score(X, CLASSES) > 0.9


def test_units_are_those_of_each_output():
    y = np.exp(REALS / REALS.std(axis=0))
    model = AssetRegressor(target_transform="log", C=10, **MAPPED).fit(X, y)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    alone = AssetRegressor(target_transform="log", C=10, **MAPPED).fit(X, y[:, 1])
    np.testing.assert_allclose(model.predict(X)[:, 1], alone.predict(X), rtol=0.05)
    step = 1e-4
    moved = X + np.array([step, 0.0, 0.0])
    rise = (model.predict(moved) - model.predict(X)) / step
    np.testing.assert_allclose(model.gradients(X)[:, :, 0], rise, rtol=0.05, atol=0.02)


# Classes ------------------------------------------------------------------------------------------


def test_class_columns_have_lists_of_classes_and_of_decisions():
    y = pd.DataFrame({"k": np.array(["far", "low", "mid"])[CLASSES[:, 0]], "l": CLASSES[:, 1]})
    model = AssetClassifier(**MAPPED, C=10).fit(X, y)
    assert [each.tolist() for each in model.classes_] == [["far", "low", "mid"], [0, 1]]
    predicted = model.predict(X)
    assert predicted.shape == (300, 2) and set(predicted[:, 1]) == {0, 1}
    first, second = model.decision_function(X)
    assert first.shape == (300, 3) and second.shape == (300,)
    assert (predicted[:, 0] == model.classes_[0][first.argmax(axis=1)]).all()
    right = (predicted == y.to_numpy()).all(axis=1).mean()
    assert model.score(X, y) == right > 0.9


def test_label_indicators_have_one_decision_a_label():
    model = AssetClassifier(**MAPPED, C=10).fit(X, sp.csr_matrix(LABELS))
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict(X) == (model.decision_function(X) > 0)).all()
    assert model.score(X, LABELS) == accuracy_score(LABELS, model.predict(X)) > 0.9


def test_a_column_of_one_class_needs_no_model():
    y = np.column_stack([LABELS[:, 0], np.zeros(300, int), np.ones(300, int)])
    model = AssetClassifier(**MAPPED).fit(X, y)
    predicted, decisions = model.predict(X), model.decision_function(X)
    assert (predicted[:, 1] == 0).all() and (predicted[:, 2] == 1).all()
    assert ((decisions > 0) == predicted).all()
    assert model.map_coef_.shape[0] == 1
    with pytest.raises(ValueError, match="one class in each of its 2 columns"):
        model.fit(X, y[:, 1:])


def test_a_label_that_never_or_always_occurs_is_certain():
    y = np.column_stack([X[:, 0] > 0, np.zeros(300), np.ones(300)]).astype(int)
    ours = AssetClassifier(loss="logistic", n_components=30, random_state=0).fit(X, y)
    found = ours.predict_proba(X)
    np.testing.assert_array_equal(found[:, 1:], np.tile([0.0, 1.0], (300, 1)))
    np.testing.assert_allclose(found[:, 0], expit(ours.decision_function(X)[:, 0]), rtol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), found > 0.5)


@pytest.mark.parametrize("kind", [AssetClassifier, AssetClassifierCV])
def test_classifiers_say_that_they_take_labels(kind):
    tags = get_tags(kind())
    assert tags.classifier_tags.multi_label and tags.target_tags.multi_output
    assert get_tags(AssetRegressor()).classifier_tags is None


def test_weights_of_classes_multiply():
    y = CLASSES
    weights = [{0: 2.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 3.0}]
    given = AssetClassifier(class_weight=weights, **EXACT).fit(X, y)
    factor = np.where(y[:, 0] == 0, 2.0, 1.0) * np.where(y[:, 1] == 1, 3.0, 1.0)
    weighted = AssetClassifier(lam=given.lam_, **EXACT).fit(X, y, factor)
    for own, other in zip(given.decision_function(X), weighted.decision_function(X), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    with pytest.raises(ValueError, match="class_weight has 2 entries, and y has 3 columns"):
        given.fit(X, np.column_stack([y, y[:, 0]]))
    with pytest.raises(ValueError, match="class_weight has 2 entries, and y has 1 columns"):
        given.fit(X, y[:, 0])


def test_weights_count_as_copies_of_rows():
    count = np.random.default_rng(3).integers(0, 3, 300)
    twice = np.repeat(np.arange(300), count)
    weighted = AssetRegressor(C=1.0, **EXACT).fit(X, REALS, count)
    copied = AssetRegressor(C=1.0, **EXACT).fit(X[twice], REALS[twice])
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=2e-3, rtol=1e-3)


# A batch after the other --------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [None, 3])
def test_batches_of_several_outputs(cells):
    model = AssetClassifier(n_cells=cells, random_state=0, C=10, gamma=0.5)
    for _ in range(5):
        for part in np.array_split(np.arange(300), 3):
            model.partial_fit(X[part], CLASSES[part], classes=[[0, 1, 2], [0, 1]])
    assert model.score(X, CLASSES) > 0.8
    with pytest.raises(ValueError, match="differ from the"):
        model.partial_fit(X, CLASSES, classes=[[0, 1], [0, 1]])
    regressor = AssetRegressor(n_cells=cells, random_state=0, C=10, gamma=0.5)
    for _ in range(5):
        regressor.partial_fit(X, REALS)
    assert regressor.score(X, REALS) > 0.5


def test_batches_ask_for_the_classes_of_each_column():
    with pytest.raises(ValueError, match=r"classes=\[np.unique\(column\) for column in y.T\]"):
        AssetClassifier().partial_fit(X, CLASSES)
    classes = [np.unique(column) for column in CLASSES.T]
    assert len(AssetClassifier(random_state=0).partial_fit(X, CLASSES, classes).classes_) == 2
    with pytest.raises(ValueError, match=r"classes=np.unique\(y\)"):
        AssetClassifier().partial_fit(X, CLASSES[:, 0])


def test_other_columns_than_before_are_refused():
    with pytest.raises(ValueError, match=r"y has the shape \(300, 2\).*of 3 columns"):
        AssetRegressor(**MAPPED).fit(X, REALS).partial_fit(X, REALS[:, :2])
    with pytest.raises(ValueError, match=r"y has the shape \(300, 3\).*of 1 column;"):
        AssetRegressor(**MAPPED).fit(X, REALS[:, 0]).partial_fit(X, REALS)
    with pytest.raises(ValueError, match=r"y has the shape \(300, 2\).*of 1 column;"):
        AssetClassifier(**MAPPED).partial_fit(X, CLASSES, classes=[0, 1, 2])


def test_a_warm_start_goes_on_with_as_many_outputs_only():
    model = AssetRegressor(warm_start=True, max_iter=3, **MAPPED).fit(X, REALS)
    assert model.fit(X, REALS).t_ == 2 * 3 * 300
    assert model.fit(X, REALS[:, :2]).t_ == 3 * 300


# Searches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [None, 2])
def test_a_grid_scores_the_mean_of_all_outputs(cells):
    options = {"Cs": [1.0, 10.0], "gammas": [0.5], "cv": 3, "random_state": 0, "n_cells": cells}
    y = REALS / REALS.std(axis=0)
    usual = AssetRegressorCV(epsilons=[0.01, 0.1], **options).fit(X, y)
    named = AssetRegressorCV(epsilons=[0.01, 0.1], scoring="r2", **options).fit(X, y)
    np.testing.assert_allclose(
        usual.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"], rtol=1e-9
    )
    assert usual.best_score_ > 0.8 and usual.predict(X).shape == (300, 3)


def test_the_offsets_of_a_grid_are_those_of_each_output_and_fold():
    """Targets far from 0: scores would be far below 0 if an offset went to another output."""
    y = REALS / REALS.std(axis=0) + [0.0, 1000.0, -1000.0]
    options = {"Cs": [10.0], "gammas": [0.5], "cv": 3, "random_state": 0, "epsilons": [0.01]}
    near = AssetRegressorCV(**options).fit(X, REALS / REALS.std(axis=0)).best_score_
    assert AssetRegressorCV(**options).fit(X, y).best_score_ == pytest.approx(near, abs=0.02)
    path = AssetRegressorCV(keep_path=True, **options).fit(X, y)
    assert path.path_coefs_.shape[:3] == (3, 1, 3)


@pytest.mark.parametrize("y", [LABELS, CLASSES], ids=["labels", "classes"])
def test_grids_of_classes(y):
    options = {"Cs": [1.0, 10.0], "gammas": [0.5], "random_state": 0}
    search = AssetClassifierCV(cv=0.3, **options).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.score(X, y) > 0.9
    folds = AssetClassifierCV(cv=3, n_cells=2, **options).fit(X, y)
    assert folds.best_score_ > 0.7


def test_a_race_of_several_outputs():
    search = AssetRegressorCV(random_state=0).fit(X, REALS)
    assert search.best_score_ > 0.9 and search.predict(X).shape == (300, 3)
    with pytest.raises(ValueError, match="probability=True is for one column"):
        AssetClassifierCV(probability=True).fit(X, CLASSES)


# Model files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "y", "options"),
    [
        (AssetRegressor, REALS, {}),
        (AssetRegressor, REALS, {"target_transform": "standard", "n_cells": 3}),
        (AssetClassifier, CLASSES, {"n_cells": 3}),
        (AssetClassifier, LABELS.astype(str), {}),
    ],
)
def test_model_files(tmp_path, kind, y, options):
    model = kind(random_state=0, **options).fit(X, y)
    for resumable in (False, True):
        save(model, tmp_path / "m.asset", resumable=resumable)
        loaded = load(tmp_path / "m.asset")
        assert (loaded.predict(X) == model.predict(X)).all()
    assert (loaded.partial_fit(X, y).predict(X) == model.partial_fit(X, y).predict(X)).all()


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=list("abc"))
    words = np.array(["far", "low", "mid"])[CLASSES[:, 0]]
    frame.assign(u=REALS[:, 0], v=REALS[:, 1]).to_csv("reals.csv", index=False)
    frame.assign(k=words, l=CLASSES[:, 1]).to_csv("classes.csv", index=False)
    frame.assign(k=words, l=CLASSES[:, 1]).to_parquet("classes.parquet")
    np.save("reals.npy", np.hstack([X, REALS[:, :2]]))
    np.savez("reals.npz", X=X, y=REALS[:, :2])
    return tmp_path


def test_every_format_has_several_targets(here):
    expected = AssetRegressor(**MAPPED).fit(X.astype(np.float32), REALS[:, :2]).predict(X)
    sources = {"reals.csv": "u, v", "reals.npy": "3,-1", "reals.npz": None}
    for path, target in sources.items():
        found = open_rows(path, target=target)
        model = AssetRegressor(**MAPPED).fit(found)
        rows = pd.DataFrame(X, columns=list("abc")) if path == "reals.csv" else X
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-4)
    for path in ("classes.csv", "classes.parquet"):
        y = open_rows(path, target=("k", "l")).read().y
        assert [set(column.tolist()) for column in columns_of(y)] == [{"far", "low", "mid"}, {0, 1}]


def test_names_with_commas_and_names_that_are_not_there():
    assert Columns.choose(["a,b", "c"], "a,b", None, "t").targets == ("a,b",)
    assert Columns.choose(["a", "b", "c"], "a, b", None, "t") == Columns(("c",), ("a", "b"))
    with pytest.raises(DataError, match="no column 'd'"):
        Columns.choose(["a", "b"], "a,d", None, "t")
    with pytest.raises(DataError, match="'a' is named twice"):
        Columns.choose(["a", "b"], "a,a", None, "t")


def test_npy_columns_that_cannot_be(here):
    for target, said in (("3,3", "twice"), ("3,9", "not among them"), ("0,1,2,3,4", "not among them")):
        with pytest.raises(DataError, match=said):
            open_rows("reals.npy", target=target)


@pytest.mark.parametrize("units", [None, "standard"])
def test_rows_that_are_streamed(here, units):
    model = AssetRegressor(
        memory_limit=20_000, target_transform=units, max_iter=20, C=10, **MAPPED
    ).fit(open_rows("reals.npy", target="3,4"))
    assert "batch" not in model.history_[0] and model.score(X, REALS[:, :2]) > 0.8
    classifier = AssetClassifier(memory_limit=20_000, max_iter=20, C=10, **MAPPED)
    source = open_rows("classes.csv", target="k,l")
    frame = pd.DataFrame(X, columns=list("abc"))
    assert classifier.fit(source).score(frame, open_rows("classes.csv", target="k,l").read().y) > 0.9
    with pytest.raises(ValueError, match="class_weight multiplies"):
        classifier.set_params(class_weight="balanced").fit(source)


def test_a_streamed_run_is_resumed_to_the_same_bits(here):
    source = open_rows("reals.npy", target="3,4")
    options = {"memory_limit": 20_000, "max_iter": 4, **MAPPED}
    whole = AssetRegressor(**options)
    from asset_svm.estimators.files import fit_rows

    fit_rows(whole, source)
    seen = []
    cut = AssetRegressor(**options)
    stop = lambda record: bool(seen.append(record)) or len(seen) == 2  # noqa: E731
    fit_rows(cut, source, checkpoint=Checkpoint(here / "ck", every=0), watch=stop)
    resumed = AssetRegressor(**options)
    fit_rows(resumed, source, checkpoint=Checkpoint(here / "ck", every=0, resume=True))
    assert (resumed.predict(X) == whole.predict(X)).all()
    assert len(seen) == 2 and (cut.predict(X) != whole.predict(X)).any()


def test_targets_side_by_side_keep_their_kinds():
    mixed = beside([np.array(["a", "b"]), np.array([1.0, 2.0])])
    assert mixed.dtype == object
    assert [column.dtype.kind for column in columns_of(mixed)] == ["U", "f"]
    assert by_column(mixed, lambda column: column[::-1]).tolist() == [["b", 2.0], ["a", 1.0]]
    assert beside([np.arange(2), np.arange(2)]).dtype.kind == "i"


# Commands -----------------------------------------------------------------------------------------


def lines(capsys):
    out = capsys.readouterr().out
    return dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)


def test_commands_of_numbers(here, capsys):
    train = ["train", "reals.csv", "--target", "u,v", "-o", "m.asset", "--report", "m.html"]
    assert main([*train, "--C", "10", "--seed", "1"]) == 0
    assert lines(capsys)["outputs"] == "2"
    assert main(["evaluate", "m.asset", "reals.csv"]) == 0
    told = lines(capsys)
    assert main(["predict", "m.asset", "reals.csv", "-o", "p.csv"]) == 0
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["u", "v"]
    for name, y in zip("uv", REALS.T, strict=False):
        r2 = float(told[f"R2 of {name}"].split(",")[0])
        assert r2 == pytest.approx(r2_score(y, found[name]), abs=1e-5) and r2 > 0.8
    page = Path("m.html").read_text()
    assert "Output u." in page and "Output v." in page
    assert main(["predict", "m.asset", "reals.csv", "--scores"]) != 0


def test_commands_of_classes(here, capsys):
    train = ["train", "classes.parquet", "--target", "k,l", "-o", "m.asset", "--report", "m.html"]
    assert main([*train, "--test", "classes.csv", "--C", "10"]) == 0
    told = lines(capsys)
    assert told["classes"] == "3, 2 of each output"
    assert main(["predict", "m.asset", "classes.csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    truth = list(csv.DictReader(Path("classes.csv").read_text().splitlines()))
    wrong = [[row[name] != true[name] for name in "kl"] for row, true in zip(rows, truth, strict=True)]
    error = 100 * np.any(wrong, axis=1).mean()
    assert told["test error of any"] == f"{error:.3f} %"
    assert told["test error of k"].startswith(f"{100 * np.mean(wrong, axis=0)[0]:.3f} %")
    assert main(["predict", "m.asset", "classes.csv", "--probability"]) != 0
    assert "m.asset has 2 outputs; leave it out." in capsys.readouterr().err
    assert main(["train", "classes.csv", "--target", "k,l", "--probability"]) != 0
    assert "one column of classes" in capsys.readouterr().err
    assert main(["train", "classes.csv", "--target", "a,k"]) != 0
    assert "say --task" in capsys.readouterr().err
    assert main(["info", "m.asset"]) == 0


def test_online_and_tuned_commands(here, capsys):
    online = ["train", "classes.csv", "--target", "k,l", "--online", "-o", "o.asset", "--C", "10"]
    assert main(online) == 0
    assert main(["evaluate", "o.asset", "classes.csv"]) == 0
    assert float(lines(capsys)["error of any"].split()[0]) < 30
    assert main(["tune", "reals.npz", "--Cs", "1,10", "--gammas", "0.5", "-o", "t.asset"]) == 0
    assert main(["evaluate", "t.asset", "reals.npz"]) == 0
    assert "R2 of output_1" in lines(capsys)


# Refusals -----------------------------------------------------------------------------------------


def test_what_has_one_output_says_so():
    model = AssetClassifier(**MAPPED).fit(X, CLASSES)
    with pytest.raises(ValueError, match="this model has 2"):
        CalibratedClassifier(model).fit(X, CLASSES)


def test_the_task_of_several_outputs():
    task = Outputs((Regression(), Regression())).settled(REALS[:, :2], np.ones(300))
    np.testing.assert_allclose(task.offset, np.median(REALS[:, :2], axis=0), atol=0.2)
    assert task.classes is None and task.n_models == 2
    _, y = make_multilabel_classification(20, random_state=0)
    labels = Outputs((Classification(),) * y.shape[1]).settled(y, np.ones(20))
    blocks = labels.encode(y).targets.block(np.arange(20))
    assert (blocks == 2 * y.T - 1).all()
