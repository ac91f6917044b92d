# The commands of the README, and what the maintainers run. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)  # with the make and the bash of Git for Windows, or of GitHub's machines
BIN := $(VENV)/Scripts
EXE := .exe
else
BIN := $(VENV)/bin
EXE :=
endif
SOURCES := src tests benchmarks examples docs tools
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED_FROM := pyproject.toml src/asset_svm/version.py

.PHONY: demo setup test test-slow test-versions test-nightly tally soak soak-minute recorded bench bench-gpu paper docs docs-quick docs-test docs-check check format dist test-dist version clean

$(BIN)/python$(EXE):
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(INSTALLED_FROM) | $(BIN)/python$(EXE)
	$(INSTALL) -e ".[cli]"
	@touch $@

$(VENV)/.dev: $(INSTALLED_FROM) | $(BIN)/python$(EXE)
	$(INSTALL) -e ".[dev]"
	@touch $@ $(VENV)/.runtime

$(VENV)/.paper: $(INSTALLED_FROM) | $(BIN)/python$(EXE)
	$(INSTALL) -e ".[paper]"
	@touch $@ $(VENV)/.runtime

$(VENV)/.release: $(INSTALLED_FROM) | $(BIN)/python$(EXE)
	$(INSTALL) -e ".[release]"
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime  ## the four algorithms on ADULT, beside the paper's numbers
	$(BIN)/python -m asset_svm.cli.demo

setup: $(VENV)/.dev  ## what the other targets need, in .venv

test: $(VENV)/.dev  ## the suite but its slow tests; ASSET_DATA=folder adds the tests on real data
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/.dev  ## the tests that take long
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-versions:  ## a part of the suite with the oldest supported versions, and with the newest Python here
	bash .ci/versions

test-nightly:  ## the same part with pre-releases of numpy, scipy, scikit-learn, numba and pandas
	PYTHON=$(PYTHON) bash .ci/versions nightly

tally: $(VENV)/.dev  ## how often `make test` passes: ARGS="--fresh 3 --here 17 --busy 2"
	$(BIN)/python tests/tally.py $(ARGS)

soak: $(VENV)/.dev  ## attacks by the thousand, going on where it stopped: ARGS="mutants=100000 kills --minutes 10"
	PYTHONPATH=tests $(BIN)/python -m soak $(ARGS)

soak-minute: $(VENV)/.dev  ## a minute or so of each attack, in which each case is the same every time
	rm -f $(VENV)/soak-minute.jsonl
	PYTHONPATH=tests $(BIN)/python -m soak --short --minutes 5 --tally $(VENV)/soak-minute.jsonl

recorded: $(VENV)/.dev  ## whether two source trees train the same models, bit for bit: ARGS="compare --old ../before/src"
	PYTHONPATH=tests $(BIN)/python -m recorded $(ARGS)

bench: $(VENV)/.dev  ## times beside scikit-learn's pipelines and the machine; needs ASSET_DATA
	$(BIN)/python benchmarks/speed.py $(ARGS)

bench-gpu: $(VENV)/.dev  ## MNIST-E on an NVIDIA card; needs ASSET_DATA and a CUDA build of torch
	$(INSTALL) -e ".[cuda,plot]"
	$(BIN)/python benchmarks/gpu.py $(ARGS)

paper: $(VENV)/.paper  ## the paper's experiments beside their peers, as paper-report/index.html; ARGS=--full for all
	$(BIN)/python benchmarks/paper.py $(ARGS)

$(VENV)/.docs: $(INSTALLED_FROM) | $(BIN)/python$(EXE)
	$(INSTALL) -e ".[docs]"
	@touch $@ $(VENV)/.runtime

SITE := build/site
docs: $(VENV)/.docs  ## the site, as build/site/index.html, with every program of the gallery run
	rm -rf $(SITE)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)
	@echo "built: $(SITE)/index.html"

docs-quick: $(VENV)/.docs  ## the site, with no more programs run than have been changed, or none: ARGS="-D plot_gallery=0"
	$(BIN)/python -m sphinx --keep-going -q -b html -d build/doctrees $(ARGS) docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)

docs-test: $(VENV)/.dev  ## the examples of docstrings, and those of the pages that have a prompt
	$(BIN)/python -m pytest -q tests/test_examples.py

docs-check: $(VENV)/.docs  ## the site in a browser: width, contrast, search; needs Chromium and npm
	$(BIN)/python docs/check_pages.py $(SITE) $(ARGS)

check: $(VENV)/.dev  ## format, lint, types, import contracts
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

dist: $(VENV)/.release  ## the source distribution and the wheel, in dist/, and what is in them
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/contents.py dist

test-dist: dist  ## the wheel, installed where nothing else is, without extras and with them
	PYTHON=$(PYTHON) bash .ci/installed

version:  ## a release: V=0.2.0; the next one's beginning: V=0.3.0.dev0
	$(PYTHON) tools/version.py $(V)

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest $(VENV)-nightly $(VENV)-installed build dist src/*.egg-info docs/gallery docs/notes docs/api/generated
	rm -f docs/changelog.md docs/code-of-conduct.md docs/contributing.md docs/releasing.md docs/security.md
