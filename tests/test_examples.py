"""Examples run: those of public docstrings, and of pages and the README where lines have a prompt."""

import doctest
import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import asset_svm

ROOT = Path(__file__).parents[1]
PROMPTED = re.compile(r"^```pycon\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in PAGES if PROMPTED.search(page.read_text())]
NEEDS = {"RelevanceDisplay": "matplotlib", "open_rows": "pyarrow", "RawOptions": "pyarrow"}
NEEDS |= {"save": "safetensors", "load": "safetensors"}
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ERRORS = {"DataError", "ModelFileError", "NonFiniteError"}


def run(test):
    """The failures of a doctest, as it would print them."""
    said = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries


def examples_of(thing, name):
    """The doctest of a docstring."""
    return doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {}, name, None, None)


@pytest.mark.parametrize("name", sorted(set(asset_svm.__all__) - ERRORS))
def test_every_public_thing_has_an_example_that_runs(name):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    if name == "RelevanceDisplay":
        import matplotlib

        matplotlib.use("agg")
    run(examples_of(getattr(asset_svm, name), name))


@pytest.mark.dask
@pytest.mark.parametrize("kind", ["Classifier", "Regressor", "QuantileRegressor"])
@pytest.mark.parametrize("name", ["DaskAsset{}", "DaskAsset{}CV"])
def test_an_estimator_of_a_cluster_has_an_example_that_runs(name, kind):
    pytest.importorskip("distributed")
    name = name.format(kind)
    run(examples_of(getattr(importlib.import_module("asset_svm.dask"), name), name))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_examples_of_a_page_run(page):
    text = "\n".join(PROMPTED.findall(page.read_text()))
    run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))


def test_the_ten_lines_of_the_readme_run():
    block = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.S | re.M)[1]
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["model"].score(names["X_test"], names["y_test"]) > 0.9


def test_public_things_are_listed_in_the_api_reference():
    reference = (ROOT / "docs" / "api" / "index.rst").read_text()
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", reference, flags=re.M)[1:]
    listed = {
        module: set(re.findall(r"^   (\w+)$", part, flags=re.M))
        for module, part in zip(parts[::2], parts[1::2], strict=True)
    }
    assert set(asset_svm.__all__) <= listed["asset_svm"]
    for name in ("dask", "datasets", "export", "runtime"):
        if name != "dask" or find_spec("distributed") is not None:
            there = set(importlib.import_module(f"asset_svm.{name}").__all__)
            assert there <= listed[f"asset_svm.{name}"] | listed["asset_svm"], name


def test_commands_are_listed_where_they_are_looked_for():
    typer = pytest.importorskip("typer")
    from asset_svm.cli.main import app

    names = set(typer.main.get_command(app).commands)
    reference = (ROOT / "docs" / "api" / "command.md").read_text()
    assert set(re.findall(r"^## asset (\w+)$", reference, flags=re.M)) == names
    assert set(re.findall(r"^```\{asset-options\} (\w+)$", reference, flags=re.M)) == names
    table = (ROOT / "docs" / "files.md").read_text()
    assert set(re.findall(r"^\| `asset (\w+)", table, flags=re.M)) == names
