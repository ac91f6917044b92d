"""The command: what it writes, how it ends, what it says."""

import csv
import gzip
import inspect
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.metrics import confusion_matrix, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("safetensors")

import asset_svm
from asset_svm import AssetClassifier, AssetQuantileRegressor, AssetRegressor
from asset_svm.backends import device
from asset_svm.cli.main import main
from asset_svm.cli.options import ELSEWHERE, PARAMETERS, parse_seconds, parse_size
from asset_svm.cli.scores import ClassScores, RealScores, bin_of, centre_of
from asset_svm.kernels import NAMES
from processes import HUNG, running
from terminal import seen_in_terminal

X, Y = make_classification(1200, 5, n_informative=4, n_redundant=0, class_sep=1.5, random_state=0)
COMMAND = [sys.executable, "-m", "asset_svm.cli.main"]
SMALL = ["--n-components", "30", "--max-iter", "2"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    labels = np.array(["no", "yes"])[Y]
    for name, rows in (("train", slice(0, 900)), ("test", slice(900, 1200))):
        with open(f"{name}.csv", "w") as file:
            file.write("a,b,c,d,e,label\n")
            for row, label in zip(X[rows], labels[rows], strict=True):
                file.write(",".join(map(repr, row.tolist())) + f",{label}\n")
        with open(f"{name}.svm", "w") as file:
            for row, label in zip(X[rows], Y[rows], strict=True):
                cells = " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row.tolist()))
                file.write(f"{label} {cells}\n")


def lines(capsys):
    """Names and values of the tables that were printed."""
    out = capsys.readouterr().out
    return dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)


def test_train_evaluate_predict_and_info(capsys):
    assert main(["train", "train.csv", "--test", "test.csv", "-o", "m.asset", *SMALL]) == 0
    told = lines(capsys)
    error = float(told["test error"].split()[0])
    assert told["classes"] == "2: no, yes" and error < 20
    assert main(["evaluate", "m.asset", "test.csv"]) == 0
    assert float(lines(capsys)["error"].split()[0]) == error
    assert main(["predict", "m.asset", "test.csv"]) == 0
    predicted = capsys.readouterr().out.split()
    model = asset_svm.load("m.asset")
    frame = pd.DataFrame(X[900:], columns=list("abcde"))
    assert predicted == model.predict(frame).tolist()
    assert main(["predict", "m.asset", "test.csv", "--scores", "-o", "p.csv"]) == 0
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert [row["prediction"] for row in rows] == predicted
    assert all((float(row["score"]) > 0) == (row["prediction"] == "yes") for row in rows)
    assert main(["info", "m.asset"]) == 0
    told = lines(capsys)
    assert told["n_components"] == "30" and told["target"] == "label" and told["rows"] == "900"


def test_columns_are_found_by_name_and_a_target_is_not_needed_to_predict(capsys):
    main(["train", "train.csv", "-o", "m.asset", *SMALL])
    capsys.readouterr()
    main(["predict", "m.asset", "test.csv"])
    expected = capsys.readouterr().out
    rows = list(csv.DictReader(Path("test.csv").read_text().splitlines()))
    with open("moved.csv", "w") as file:
        file.write("e,extra,d,c,b,a\n")
        file.writelines(f"{r['e']},7,{r['d']},{r['c']},{r['b']},{r['a']}\n" for r in rows)
    assert main(["predict", "m.asset", "moved.csv"]) == 0
    assert capsys.readouterr().out == expected
    with open("less.csv", "w") as file:
        file.write("a,b,c,d\n1,2,3,4\n")
    assert main(["predict", "m.asset", "less.csv"]) == 2
    assert "no column 'e'" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["", "NA", "?", "12,5", "1.O", "\x00", "no\nyes", "\udcff", "7"])
def test_targets_are_not_asked_for_where_rows_are_predicted(cell, capsys):
    main(["train", "train.csv", "-o", "m.asset", *SMALL])
    capsys.readouterr()
    main(["predict", "m.asset", "test.csv"])
    expected = capsys.readouterr().out
    rows = list(csv.reader(Path("test.csv").read_text().splitlines()))
    with open("open.csv", "w", errors="surrogateescape", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [rows[0], *([*row[:-1], cell] for row in rows[1:])]
        )
    assert main(["predict", "m.asset", "open.csv"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["predict", "m.asset", "open.csv", "--target", "label"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["evaluate", "m.asset", "open.csv"]) == 2
    assert re.search(
        "column 'label': the (target|bytes)|which the model does not know", capsys.readouterr().err
    )


@pytest.mark.parametrize("ending", ["parquet", "npy", "npz", "csv"])
def test_a_model_without_names_of_columns_predicts_rows_without_targets(ending, capsys):
    main(["train", "train.svm", "-o", "m.asset", *SMALL])
    capsys.readouterr()
    np.save("bare.npy", X[900:])
    main(["predict", "m.asset", "bare.npy"])
    expected, none = capsys.readouterr().out, np.full(300, np.nan)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[900:], columns=list("abcde"))
    if ending == "npy":
        np.save("open.npy", np.column_stack([X[900:], none]))
    elif ending == "npz":
        np.savez("open.npz", X=X[900:], y=none)
    elif ending == "parquet":
        frame.assign(label=None).to_parquet("open.parquet")
    else:
        frame.to_csv("open.csv", index=False)
    assert main(["predict", "m.asset", f"open.{ending}"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["evaluate", "m.asset", f"open.{ending}"]) == 2
    assert "target" in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_a_model_of_a_table_scores_rows_of_other_formats(scale, capsys):
    labels = np.array(["no", "yes"])[Y]
    assert main(["train", "train.csv", "-o", "m.asset", *SMALL, "--scale", scale]) == 0
    errors = []
    with open("named.svm", "w") as file:
        file.writelines(
            "0 " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row)) + "\n"
            for row in X[900:].tolist()
        )
    np.savez("test.npz", X=X[900:], y=labels[900:])
    for name in ("test.csv", "test.npz"):
        capsys.readouterr()
        assert main(["evaluate", "m.asset", name]) == 0
        errors.append(lines(capsys)["error"])
    assert errors[0] == errors[1]
    assert main(["evaluate", "m.asset", "named.svm"]) == 2
    said = capsys.readouterr().err
    assert "has the class '0', which the model does not know; its classes are no, yes" in said
    predicted = []
    for name in ("test.csv", "named.svm", "test.npz"):
        assert main(["predict", "m.asset", name]) == 0
        predicted.append(capsys.readouterr().out)
    assert predicted[0] == predicted[1] == predicted[2]


def test_a_target_that_is_a_column_of_numbers_is_left_out_of_later_files(capsys):
    np.save("rows.npy", np.column_stack([Y, X])[:900])
    np.save("test.npy", np.column_stack([Y, X])[900:])
    np.save("bare.npy", X[900:])
    assert (
        main(["train", "rows.npy", "--target", "0", "--test", "test.npy", "-o", "m.asset", *SMALL]) == 0
    )
    error = lines(capsys)["test error"]
    assert main(["evaluate", "m.asset", "test.npy"]) == 0
    assert lines(capsys)["error"] == error and float(error.split()[0]) < 20
    assert main(["predict", "m.asset", "test.npy"]) == 0
    predicted = capsys.readouterr().out
    assert main(["predict", "m.asset", "bare.npy"]) == 0
    assert capsys.readouterr().out == predicted


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_scaling_is_stored_in_the_model(capsys, scale, kind):
    options = ["--scale", scale, *SMALL, "--test", f"test.{kind}"]
    assert main(["train", f"train.{kind}", "-o", "m.asset", *options]) == 0
    told = lines(capsys)
    assert float(told["test error"].split()[0]) < 20
    model = asset_svm.load("m.asset")
    factor = model.steps[0][1].scale_
    rows = X[:900].astype(np.float32)
    if kind == "csv" and scale == "standard":
        assert np.allclose(factor, rows.std(axis=0), rtol=1e-5)
    if kind == "csv" and scale == "minmax":
        assert np.allclose(factor, 1 / np.ptp(rows, axis=0), rtol=1e-5)
    if kind == "svm" and scale == "minmax":
        assert np.allclose(factor, np.abs(rows).max(axis=0), rtol=1e-5)


def test_a_scaler_is_widened_by_columns_that_come_late(monkeypatch):
    import scipy.sparse as sp
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from asset_svm.cli.scaling import ColumnScaling

    dense = sp.random(300, 9, 0.5, random_state=0).toarray()
    dense[:100, 4:] = 0
    rows = sp.csr_matrix(dense)
    for kind, whole in (("standard", StandardScaler(with_mean=False)), ("minmax", MaxAbsScaler())):
        scaling = ColumnScaling(kind)
        scaling.observe(rows[:100, :4])
        scaling.observe(rows[100:200])
        scaling.observe(rows[200:, :9])
        scaler = scaling.finish(11)
        whole.fit(rows)
        assert np.allclose(scaler.scale_[:9], whole.scale_) and scaler.scale_.shape == (11,)


@pytest.mark.parametrize("weight", ["balanced", "0=1,1=5"])
def test_weights_of_classes_go_with_probabilities(weight):
    np.savez("rows.npz", X=X[:900].astype(np.float32), y=Y[:900])
    options = ["--class-weight", weight, "--probability", "--scale", "none", "-o", "m.asset"]
    assert main(["train", "rows.npz", *SMALL, *options]) == 0
    found = asset_svm.load("m.asset")
    given = "balanced" if weight == "balanced" else {0: 1, 1: 5}
    model = AssetClassifier(n_components=30, max_iter=2, random_state=0, class_weight=given)
    theirs = CalibratedClassifierCV(model, ensemble=False, cv=StratifiedKFold(5))
    theirs.fit(X[:900].astype(np.float32), Y[:900])
    rows = X[900:].astype(np.float32)
    np.testing.assert_allclose(found.predict_proba(rows), theirs.predict_proba(rows), atol=5e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_the_largest_probability_is_what_is_predicted(n_classes, scale, capsys):
    rows, codes = make_classification(
        800, 5, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0
    )
    labels = np.array(["u", "v", "w", "x"])[codes]
    np.savez("rows.npz", X=rows[:600], y=labels[:600])
    np.savez("test.npz", X=rows[600:], y=labels[600:])
    options = ["--probability", "--scale", scale, "--test", "test.npz", "--report", "r.html"]
    assert main(["train", "rows.npz", "-o", "m.asset", *SMALL, *options]) == 0
    told = lines(capsys)
    assert "held out" in told["probabilities"]
    assert main(["predict", "m.asset", "test.npz", "--probability", "--scores"]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    names = [f"probability_{label}" for label in "uvwx"[:n_classes]]
    given = np.array([[float(row[name]) for name in names] for row in found])
    assert np.allclose(given.sum(axis=1), 1.0)
    assert ["uvwx"[k] for k in given.argmax(axis=1)] == [row["prediction"] for row in found]
    assert main(["predict", "m.asset", "test.npz"]) == 0
    assert capsys.readouterr().out.split() == [row["prediction"] for row in found]
    assert float(told["test log loss"]) == pytest.approx(log_loss(labels[600:], given), abs=1e-5)
    wrong = np.mean([row["prediction"] for row in found] != labels[600:])
    assert float(told["test error"].split()[0]) == pytest.approx(100 * wrong, abs=1e-3)
    assert main(["evaluate", "m.asset", "test.npz"]) == 0
    assert lines(capsys)["log loss"] == told["test log loss"]
    assert main(["info", "m.asset"]) == 0
    told = lines(capsys)
    assert (
        told["model"] == "AssetClassifier" and "probabilities" in told and told["n_components"] == "30"
    )
    loaded = asset_svm.load("m.asset")
    assert np.allclose(loaded.predict_proba(rows[600:].astype(np.float32)), given, atol=1e-6)


def test_regression_is_found_by_itself_and_scored(capsys):
    with open("r.csv", "w") as file:
        file.write("a,b,y\n")
        file.writelines(f"{a},{b},{a + 0.5 * b + 3}\n" for a, b in X[:, :2].tolist())
    assert main(["train", "r.csv", "--epsilon", "0.01", "--C", "10", *SMALL]) == 0
    assert lines(capsys)["model"] == "AssetRegressor"
    assert main(["evaluate", "r.asset", "r.csv"]) == 0
    told = lines(capsys)
    model = asset_svm.load("r.asset")
    y = X[:, 0] + 0.5 * X[:, 1] + 3
    predicted = model.predict(pd.DataFrame(X[:, :2], columns=["a", "b"]))
    assert float(told["R2"]) == pytest.approx(r2_score(y, predicted), abs=1e-4)
    assert float(told["MAE"]) == pytest.approx(np.abs(y - predicted).mean(), rel=1e-3)


def test_every_parameter_of_the_estimators_is_an_option():
    table = {parameter.name for parameter in PARAMETERS}
    for cls in (AssetClassifier, AssetQuantileRegressor, AssetRegressor):
        names = set(inspect.signature(cls).parameters)
        assert names <= table | set(ELSEWHERE)
    both = set(inspect.signature(AssetClassifier).parameters)
    both |= set(inspect.signature(AssetRegressor).parameters)
    both |= set(inspect.signature(AssetQuantileRegressor).parameters)
    assert table | set(ELSEWHERE) == both


def test_the_names_of_kernels_are_listed_as_the_library_has_them():
    (option,) = (parameter for parameter in PARAMETERS if parameter.name == "kernel")
    assert tuple(option.values.split("|")) == NAMES


def test_options_reach_the_estimator(capsys):
    options = [
        "--kernel",
        "laplacian",
        "--gamma",
        "0.3",
        "--average",
        "none",
        "--fit-intercept",
        "false",
    ]
    options += [
        "--early-stopping",
        "--class-weight",
        "no=2,yes=1.5",
        "--max-iter",
        "3",
        "--dtype",
        "float64",
    ]
    assert main(["train", "train.csv", "-o", "m.asset", "--n-components", "20", *options]) == 0
    model = asset_svm.load("m.asset")
    assert (model.kernel, model.gamma, model.average, model.fit_intercept) == (
        "laplacian",
        0.3,
        None,
        False,
    )
    assert model.early_stopping is True and model.class_weight == {"no": 2, "yes": 1.5}
    assert model.components_.dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "missing.svm"], "missing.svm does not exist"),
        (["train", "train.csv", "--C", "-1"], "C=-1 is not a positive number"),
        (["train", "train.csv", "--gamma", "wide"], 'gamma="wide" is neither'),
        (["train", "train.csv", "--no-such"], "No such option"),
        (["train", "train.csv", "--task", "ranking"], "--task ranking: choose one of"),
        (["train", "train.csv", "--scale", "log"], "--scale log: choose one of"),
        (["train", "train.csv", "--memory", "2XB"], "--memory 2XB"),
        (["train", "train.csv", "--time-limit", "-3s"], "--time-limit -3s"),
        (["train", "train.csv", "--target", "zz"], "no column 'zz'"),
        (["train", "train.csv", "--resume"], "--resume needs --checkpoint"),
        (["train", "train.csv", "--test", "nothing.csv"], "nothing.csv does not exist"),
        (["train", "train.csv", "-o", "no/such/m.asset"], "there is no folder"),
        (["train", "train.csv", "--class-weight", "no=2,=3"], "write LABEL=NUMBER"),
        (["train", "train.csv", "--online", "--scale", "standard"], "needs a pass of its own"),
        (["train", "-", "--checkpoint", "d"], "standard input cannot be read again"),
        (["train", "bad.svm"], "bad.svm, line 2: the value of '3:x' is not a number"),
        (
            ["train", "text.csv", "--target", "y", "--scale", "none"],
            "row 2, column 'b': 'red' is not a number",
        ),
        (
            ["train", "text.csv", "--target", "y", "--numeric", "b"],
            "row 2, column 'b': 'red' is not a number",
        ),
        (
            ["train", "text.csv", "--target", "y", "--numeric", "b", "--categorical", "a,b"],
            "'b' is in --categorical and in --numeric",
        ),
        (["train", "text.csv", "--target", "y", "--drop", "c"], "no column 'c'"),
        (["train", "text.csv", "--target", "y", "--numbers", "odd"], "--numbers odd: choose one of"),
        (["train", "train.svm", "--drop", "c"], "--drop c: goes with csv, tsv or Parquet"),
        (["train", "one.svm"], "y has one class"),
        (["predict", "train.csv", "train.csv"], "not a whole asset-svm file"),
        (["predict", "m.asset", "test.csv"], "m.asset does not exist"),
        (["nonsense"], "No such command"),
        (
            ["train", "train.csv", "--checkpoint", "d", "--n-cells", "4"],
            "n_cells=4 does not go with a checkpoint",
        ),
        (
            ["train", "train.csv", "--checkpoint", "d", "--early-stopping"],
            "early_stopping=True does not go with a checkpoint",
        ),
        (
            ["train", "train.svm", "--memory", "1kB", "--n-cells", "4"],
            "or raise memory_limit (--memory)",
        ),
        (
            ["train", "train.npz", "--target", "y.npy", "--test", "test.svm"],
            "asset evaluate MODEL test.svm",
        ),
        (
            ["train", "train.csv", "--probability", "--online"],
            "--online streams them; leave one of the",
        ),
        (["train", "train.csv", "--probability", "--checkpoint", "d"], "--checkpoint streams them"),
        (
            ["train", "train.csv", "--probability", "--memory", "1kB"],
            "these are too many for it; raise --m",
        ),
        (["train", "train.csv", "--probability", "--task", "regression"], "is for classification"),
        (
            ["train", "real.svm", "--probability"],
            "is for classification, and these targets are numbers",
        ),
        (["train", "few.svm", "--probability"], "Class 2 has one row"),
        (["train", "train.svm", "--test", "two.csv"], "has the columns 'u', 'v'"),
        (["train"], "Missing argument"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(arguments, said, capsys):
    Path("bad.svm").write_text("1 1:2\n1 3:x\n")
    Path("one.svm").write_text("1 1:2\n1 1:3\n")
    Path("real.svm").write_text("1.5 1:2\n1 1:3\n")
    Path("few.svm").write_text("1 1:2\n1 1:3\n2 1:1\n")
    Path("two.csv").write_text("u,v\n1,2\n")
    Path("text.csv").write_text("a,b,y\n1,2,0\n3,red,1\n")
    before = set(os.listdir())
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("asset: ") and told.err.count("\n") == 1
    assert said in told.err and "Traceback" not in told.err
    assert set(os.listdir()) == before


def test_a_card_that_is_not_there_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert main(["train", "train.csv", "--device", "cuda", *SMALL]) == 2
    assert "asset-svm[cuda]" in capsys.readouterr().err
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setattr(device, "_has_card", lambda: False)
    assert main(["train", "train.csv", "--device", "cuda", *SMALL]) == 2
    assert 'set device="cpu"' in capsys.readouterr().err
    assert main(["train", "train.csv", "--device", "auto", *SMALL, "-o", "m.asset"]) == 0
    assert asset_svm.load("m.asset").device == "auto"


def test_help_answers_at_once_and_imports_nothing_heavy():
    code = (
        "import sys\nfrom asset_svm.cli.main import main\nassert main(['--help']) == 0\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'pyarrow', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert len(sys.modules) < 300, len(sys.modules)"  # a tenth of a second
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_standard_input_is_learnt_in_one_pass():
    text = b"".join(Path("train.svm").read_bytes().splitlines(keepends=True) * 12)
    options = [
        "--online",
        "--n-components",
        "50",
        "--lam",
        "1e-4",
        "-o",
        "m.asset",
        "--test",
        "test.svm",
    ]
    pipe = subprocess.PIPE
    with (
        running(["gzip", "-dc"], stdin=pipe, stdout=pipe) as unzip,
        running(
            [*COMMAND, "train", "-", *options], stdin=unzip.stdout, stdout=pipe, text=True
        ) as train,
    ):
        unzip.stdout.close()
        unzip.stdin.write(gzip.compress(text))
        unzip.stdin.close()
        out = train.communicate(timeout=HUNG)[0]
        assert unzip.wait(HUNG) == 0 and train.returncode == 0
    told = dict(line.split("\t")[:2] for line in out.splitlines() if "\t" in line)
    assert told["steps"] == "10800" and float(told["test error"].split()[0]) < 20


def test_standard_input_that_fits_in_memory_trains_as_a_file_does(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("train.svm").read_bytes())))
    assert main(["train", "-", "-o", "a.asset", *SMALL]) == 0
    assert main(["train", "train.svm", "-o", "b.asset", *SMALL]) == 0
    assert np.array_equal(asset_svm.load("a.asset").dual_coef_, asset_svm.load("b.asset").dual_coef_)


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_model_goes_on_learning_where_it_was_asked_to_be_resumable(command, scale):
    options = [*SMALL, "--scale", scale, *(["--Cs", "0.1,1"] if command == "tune" else [])]
    assert main([command, "train.svm", "-o", "small.asset", *options]) == 0
    assert main([command, "train.svm", "-o", "whole.asset", *options, "--resumable"]) == 0
    small, whole = (asset_svm.load(f"{name}.asset") for name in ("small", "whole"))
    assert 2 * os.path.getsize("small.asset") < os.path.getsize("whole.asset")
    rows = np.random.default_rng(0).normal(size=(30, 5))
    np.testing.assert_array_equal(small.predict(rows), whole.predict(rows))
    small, whole = (model[-1] if scale == "standard" else model for model in (small, whole))
    with pytest.raises(ValueError, match="asset train --resumable"):
        small.partial_fit(rows, np.arange(30) % 2)
    assert whole.partial_fit(rows, np.arange(30) % 2).t_ == small.t_ + 30


def test_a_model_of_other_steps_is_told_where_it_can_predict(capsys):
    rows = np.random.default_rng(0).normal(size=(30, 5))
    model = make_pipeline(SimpleImputer(), StandardScaler(), AssetClassifier(n_components=10))
    asset_svm.save(model.fit(rows, np.arange(30) % 2), "m.asset")
    for command in (["predict", "m.asset", "test.svm"], ["evaluate", "m.asset", "test.svm"]):
        assert main(command) == 2
        assert "predict with this one in Python" in capsys.readouterr().err
    assert main(["info", "m.asset"]) == 0
    assert "model\tSimpleImputer, StandardScaler, AssetClassifier" in capsys.readouterr().out


def test_a_broken_pipe_is_no_traceback():
    main(["train", "train.svm", "-o", "m.asset", *SMALL])
    big = "".join(Path("test.svm").read_text().splitlines(keepends=True) * 300)
    Path("big.svm").write_text(big)
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with running([*COMMAND, "predict", "m.asset", "big.svm"], **pipes) as run:
        run.stdout.readline()
        run.stdout.close()
        assert b"Traceback" not in run.stderr.read()


def test_a_checkpoint_changes_no_bit_of_the_model():
    for name, options in (("plain", []), ("kept", ["--checkpoint", "run"])):
        assert main(["train", "train.svm", "-o", f"{name}.asset", *SMALL, *options]) == 0
    plain, kept = (asset_svm.load(f"{name}.asset") for name in ("plain", "kept"))
    assert plain.n_iter_ == kept.n_iter_
    np.testing.assert_array_equal(kept.components_.toarray(), plain.components_.toarray())
    np.testing.assert_array_equal(kept.dual_coef_, plain.dual_coef_)
    np.testing.assert_array_equal(kept.intercept_, plain.intercept_)


@pytest.mark.parametrize("checkpoint", [pytest.param(False, marks=pytest.mark.slow), True])
def test_ctrl_c_leaves_a_usable_model_and_says_where(checkpoint):
    options = ["--max-iter", "100000", "--n-components", "100", "-o", "m.asset"]
    options += ["--checkpoint", "run"] if checkpoint else []
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with running([*COMMAND, "train", "train.svm", *options], env=environment, **pipes) as run:
        for line in run.stderr:  # the first line of progress: it trains
            if "rows/s" in line:
                break
        run.send_signal(signal.SIGINT)
        err = run.communicate(timeout=HUNG)[1]
    assert run.returncode == 130 and "the model so far is in m.asset" in err
    assert ("the checkpoint in run" in err) == checkpoint
    assert asset_svm.load("m.asset").classes_.tolist() == [0, 1]
    assert main(["evaluate", "m.asset", "test.svm"]) == 0


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_is_one_sentence(capsys):
    assert main(["train", "train.svm", "-o", "m.asset", "--max-iter", "1", "--tol", "1e-9"]) == 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("asset: The duality gap is ") and said.endswith(
        "tol=None runs the usual epochs)."
    )


def test_ctrl_c_before_anything_is_learnt_is_one_word(monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("asset_svm.cli.run.scan_for", interrupted)
    assert main(["train", "train.svm", "-o", "m.asset"]) == 130
    assert capsys.readouterr().err == "asset: interrupted.\n" and not Path("m.asset").exists()


def test_ctrl_c_while_cells_are_calibrated_keeps_the_model_without_probabilities(monkeypatch, capsys):
    def interrupted(*args, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("asset_svm.estimators.calibration.held_out_decisions", interrupted)
    options = ["-o", "m.asset", "--n-cells", "2", "--probability"]
    assert main(["train", "train.svm", *options]) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "asset: interrupted; the model so far, without probabilities, is in m.asset."
    assert hasattr(asset_svm.load("m.asset"), "cells_")


def test_a_terminal_sees_a_bar_and_tables():
    options = ["--max-iter", "200", "--n-components", "50"]
    text = seen_in_terminal("train", "train.svm", "-o", "m.asset", *options)
    for word in ("training", "epoch", "rows/s", "objective", "trained", "saved in"):
        assert word in text


def test_a_terminal_sees_the_cells():
    options = ["--n-cells", "3", "--n-partitions", "2"]
    text = seen_in_terminal("train", "train.svm", "-o", "m.asset", *options)
    for word in ("training", "partition 2/2, 3/3 cells", "trained", "saved in"):
        assert word in text


def test_without_a_terminal_cells_are_told_of_in_lines(capsys):
    options = ["--n-cells", "3", "--probability", "-o", "m.asset"]
    assert main(["train", "train.svm", *options]) == 0
    said = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["3/3 cells", *["calibrating: 3/3 cells"] * 5]


def test_names_and_values_of_the_data_are_never_markup(capsys):
    rows = (
        Path("train.csv").read_text().replace("label", "[red]x", 1).replace(",yes\n", ",[bold]<b>yes\n")
    )
    Path("odd.csv").write_text(rows)
    assert main(["train", "odd.csv", "--target", "[red]x", "-o", "m.asset", *SMALL]) == 0
    assert "[bold]<b>yes" in capsys.readouterr().out


def test_a_model_of_cells_is_trained_saved_told_and_reported(capsys):
    options = ["--n-cells", "3", "--test", "test.svm", "-o", "m.asset", "--report", "r.html"]
    assert main(["train", "train.svm", *options]) == 0
    told = lines(capsys)
    assert told["cells"] == "3" and float(told["test error"].split()[0]) < 20
    assert main(["info", "m.asset"]) == 0 and "n_cells" in lines(capsys)
    assert "Confusion" in Path("r.html").read_text()


def test_the_demo_is_there(capsys):
    assert main(["demo", "--help"]) == 0


def test_sizes_and_times_as_people_write_them():
    assert [parse_size(text) for text in ("2GB", "1 MiB", "500", "1e3")] == [
        2 * 10**9,
        2**20,
        500,
        1000,
    ]
    assert [parse_seconds(t, "") for t in ("60s", "10m", "2h", "1.5")] == [60.0, 600.0, 7200.0, 1.5]


# Scores -----------------------------------------------------------------------------------------


def test_scores_from_blocks_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=5000)
    decisions = rng.normal(size=5000) + y
    decisions[:100] *= 1e-20
    scores = ClassScores(np.array([0, 1]))
    for part in np.array_split(np.arange(5000), 7):
        scores.add(y[part], (decisions[part] > 0).astype(int), decisions[part, None])
    assert np.array_equal(scores.confusion, confusion_matrix(y, decisions > 0))
    assert scores.auc == pytest.approx(roc_auc_score(y, decisions), abs=1e-4)
    mean, part = scores.calibration()
    assert (np.diff(mean) > 0).all() and part[0] < 0.3 < 0.7 < part[-1]
    real = RealScores(most=100)
    target = rng.normal(size=5000) + 1e6
    for rows in np.array_split(np.arange(5000), 9):
        real.add(target[rows], target[rows] + 0.1 * decisions[rows], decisions[rows])
    assert real.r2 == pytest.approx(r2_score(target, target + 0.1 * decisions), abs=1e-9)
    assert real.sample.shape == (100, 2)


def test_bins_keep_the_order_of_numbers():
    values = np.array([-np.float32(3e38), -2.5, -1e-3, -1e-30, 0.0, 1e-30, 1e-3, 2.5, 3e38])
    bins = bin_of(values)
    assert (np.diff(bins) > 0).all() and bins.min() >= 0 and bins.max() < 1 << 20
    back = centre_of(bins)[[1, 2, 6, 7]]
    assert np.allclose(back, values[[1, 2, 6, 7]], rtol=1e-3)


def test_more_than_100_names_are_no_classes_unless_told(capsys):
    Path("many.csv").write_text("a,y\n" + "".join(f"{i},name{i % 110}\n" for i in range(330)))
    assert main(["train", "many.csv", "-o", "m.asset", *SMALL]) == 2
    said = capsys.readouterr().err
    assert "more than 100 different names (name0, ...)" in said and "--task classification" in said
    assert not os.path.exists("m.asset")
    assert main(["train", "many.csv", "-o", "m.asset", "--task", "classification", *SMALL]) == 0


@pytest.mark.parametrize("task", ["auto", "classification", "regression"])
def test_numbers_in_another_notation_are_no_classes_however_few(task, capsys):
    Path("comma.tsv").write_text("a\ty\n" + "".join(f"{i}\t{i % 7},5\n" for i in range(70)))
    assert main(["train", "comma.tsv", "-o", "m.asset", "--task", task, *SMALL]) == 2
    assert "comma.tsv, row 1, column 'y': the target '0,5' is no number" in capsys.readouterr().err


def test_a_target_that_is_missing_is_told_by_the_command(capsys):
    text = Path("train.csv").read_text().replace("yes", "1").replace("no", "0")
    Path("gap.csv").write_text(text[:-2] + "\n")
    assert main(["train", "gap.csv", "-o", "m.asset", *SMALL]) == 2
    assert "gap.csv, row 900, column 'label': the target is missing" in capsys.readouterr().err


def test_export_writes_onnx_and_c(capsys):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["train", "train.csv", "--target", "label", "-o", "m.asset", *SMALL]) == 0
    capsys.readouterr()
    assert main(["export", "m.asset", "m.onnx"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "input\ta: double (rows, 1)" in told and "output\tlabel: string (rows)" in told
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    frame = pd.read_csv("test.csv")
    feeds = {each.name: frame[each.name].to_numpy()[:, None] for each in session.get_inputs()}
    model = asset_svm.load("m.asset")
    assert session.run(["label"], feeds)[0].tolist() == model.predict(frame).tolist()
    assert main(["export", "m.asset", "m.c", "--name", "shop"]) == 0
    assert "int shop_predict(const shop_row *row, int out[1]);" in Path("m.c").read_text()
    assert "function\tint shop_predict" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["m.asset", "m.pt"], "m.pt ends in neither .onnx nor .c"),
        (["none.asset", "m.c"], "none.asset does not exist"),
        (["train.csv", "m.c"], "train.csv is not a whole asset-svm file"),
        (["m.asset", "m.c", "--dtype", "float32"], "--dtype is for .onnx"),
        (["m.asset", "m.onnx", "--dtype", "int8"], "--dtype int8 is not a type of rows"),
        (["m.asset", "m.onnx", "--name", "shop"], "--name is for .c"),
        (["m.asset", "m.c", "--coverage", "0.5"], "--coverage 0.5 is for a regression"),
        (["m.asset", "nowhere/m.c"], "there is no folder nowhere"),
    ],
)
def test_exports_that_cannot_be_are_told(arguments, told, capsys):
    asset_svm.save(AssetClassifier(n_components=5, max_iter=1).fit(X, Y), "m.asset")
    assert main(["export", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("asset: ") and told in said
    assert not Path(arguments[1]).exists()


def test_export_names_the_extra_that_is_missing(capsys, monkeypatch):
    asset_svm.save(AssetClassifier(n_components=5, max_iter=1).fit(X, Y), "m.asset")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["export", "m.asset", "m.onnx"]) == 2
    assert 'pip install "asset-svm[onnx]"' in capsys.readouterr().err
    assert main(["export", "m.asset", "m.c"]) == 0
