"""What a user does first, with an installed package: run by `make test-dist` in an empty folder."""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
from importlib.metadata import metadata, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import asset_svm


def moons() -> tuple[Any, Any]:
    """Two thousand rows, and their classes."""
    from sklearn.datasets import make_moons

    return make_moons(2000, noise=0.2, random_state=0)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command that the package installs, run to its end."""
    program = Path(sysconfig.get_path("scripts")) / "asset"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def without_extras() -> None:
    """Train, predict and go on; what needs an extra says which."""
    X, y = moons()
    model = asset_svm.AssetClassifier(gamma=1.0, C=100, n_components=64, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.isfinite(model.decision_function(X)).all()
    assert asset_svm.AssetClassifier(n_cells=4, random_state=0).fit(X, y).score(X, y) > 0.95
    stream = asset_svm.AssetClassifier(gamma=1.0, n_components=64, random_state=0)
    for part in np.array_split(np.arange(2000), 4):
        stream.partial_fit(X[part], y[part], classes=[0, 1])
    assert stream.score(X, y) > 0.9
    assert asset_svm.load_adult()[0].shape == (48842, 123)
    told = ""
    try:
        asset_svm.save(model, "model.asset")
    except ImportError as error:
        told = str(error)
    assert "pip install" in told, "save() needs an extra; was one there?"
    ended = command("--help")
    assert ended.returncode == 2, ended
    assert "pip install" in ended.stderr, ended


def with_extras() -> None:
    """Save, load and the command."""
    X, y = moons()
    model = asset_svm.AssetClassifier(gamma=1.0, C=100, n_components=64, random_state=0).fit(X, y)
    asset_svm.save(model, "model.asset")
    loaded = asset_svm.load("model.asset")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert "train" in command("--help").stdout
    assert asset_svm.__version__ in command("--version").stdout
    table = np.column_stack([y, X])
    np.savetxt("moons.csv", table, delimiter=",", header="y,a,b", comments="")
    trained = command(
        "train", "moons.csv", "--target", "y", "--output", "moons.asset", "--report", "moons.html"
    )
    assert trained.returncode == 0, trained.stderr
    assert Path("moons.html").stat().st_size > 10_000
    predicted = command("predict", "moons.asset", "moons.csv", "--output", "answers.csv")
    assert predicted.returncode == 0, predicted.stderr
    lines = Path("answers.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2000, lines[:3]
    exported = command("export", "moons.asset", "moons.c")
    assert exported.returncode == 0, exported.stderr
    assert "int moons_predict(" in Path("moons.c").read_text(encoding="utf-8")


def served() -> None:
    """Predict with the files that ``with_extras`` has left, where nothing can train."""
    from asset_svm import runtime

    for name in ("numba", "scipy", "sklearn"):
        assert find_spec(name) is None, f"{name} is here"
    answers = Path("answers.csv").read_text(encoding="utf-8").splitlines()
    table = np.loadtxt("moons.csv", delimiter=",", skiprows=1)
    found = runtime.load("moons.asset").predict({"a": table[:, 1], "b": table[:, 2]})
    told = np.array(answers, dtype=float)
    assert np.mean(found.astype(float) == told) > 0.999


def main() -> None:
    """Look at what is installed, then use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--extras", action="store_true", help="the extras cli, files and plot are there"
    )
    parser.add_argument(
        "--served", action="store_true", help="numpy and safetensors are there, and nothing else"
    )
    options = parser.parse_args()
    assert not Path(asset_svm.__file__).is_relative_to(Path(__file__).parents[1] / "src")
    assert version("asset-svm") == asset_svm.__version__
    assert "CC-BY-4.0" in metadata("asset-svm")["License-Expression"]
    assert files("asset_svm").joinpath("py.typed").is_file()
    assert "CC BY 4.0" in files("asset_svm").joinpath("datasets/NOTICE.txt").read_text()
    if options.served:
        served()
    else:
        (with_extras if options.extras else without_extras)()
    how = " with extras" * options.extras + " without what it requires" * options.served
    print(f"asset-svm {asset_svm.__version__}, Python {sys.version.split()[0]}: works{how}")


if __name__ == "__main__":
    main()
