"""The report of a run: whole, escaped, and shown by a real browser without complaint."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_classification

pytest.importorskip("typer")
pytest.importorskip("safetensors")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from asset_svm.cli.main import main
from chromium import look_at

NASTY = "<script>alert(1)</script>&\"'"
X, Y = make_classification(600, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
SMALL = ["--n-components", "30", "--max-iter", "4", "-o", "m.asset", "--report", "report.html"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(labels, name="rows.csv", column="y"):
    with open(name, "w") as file:
        file.write(f'a,b,"c{NASTY.replace(chr(34), chr(34) * 2)}",d,{column}\n')
        for row, label in zip(X.tolist(), labels, strict=True):
            file.write(",".join(map(repr, row)) + f",{label}\n")


CASES = {
    # figures: convergence, error; confusion, and for two classes decisions, ROC, calibration
    "two classes": (np.array([f"no{NASTY[:8]}", "yes"])[(Y > 0).astype(int)], [], 6, "ROC"),
    "three classes": (Y, [], 3, "Confusion"),
    "regression": (X[:, 0] + 5, [], 4, "Residuals"),
    "a stream": (Y, ["--checkpoint", "run"], 3, "Confusion"),
    "online": (Y, ["--online"], 3, "Confusion"),
    "a test file": ((Y > 0).astype(int), ["--test", "rows.csv"], 6, "ROC"),
}


@pytest.mark.parametrize(
    "case",
    ["two classes", "regression", "online"]
    + [
        pytest.param(case, marks=pytest.mark.slow)
        for case in ("three classes", "a stream", "a test file")
    ],
)
def test_a_browser_shows_every_figure_and_complains_of_nothing(here, case, capsys):
    labels, options, figures, word = CASES[case]
    write(labels)
    if "--online" in options:
        options = [*options, "--lam", "1e-3"]
        small = [part for part in SMALL if part not in ("--max-iter", "4")]
        assert main(["train", "rows.csv", *small, *options]) == 0
    else:
        assert main(["train", "rows.csv", *SMALL, *options]) == 0
    html = (here / "report.html").read_text()
    assert html.count("<figure>") == figures and word in html
    assert "<script>alert" not in html and "http" not in re.sub("http-equiv", "", html)
    for title in ("Model and settings", "Convergence", "Errors", "Machine"):
        assert title in html
    for width in (1000, 390):
        seen = look_at(here / "report.html", width)
        assert seen.console == [] and len(seen.charts) == figures
        assert all(chart["width"] > 200 and chart["height"] > 150 for chart in seen.charts)
        assert seen.page <= seen.window
