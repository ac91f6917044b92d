# The commands of the README, and what the maintainers run. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo setup test test-slow test-versions tally soak soak-minute recorded bench bench-gpu paper check format clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.runtime

$(VENV)/.paper: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[paper]"
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime  ## the four algorithms on ADULT, beside the paper's numbers
	$(BIN)/python -m asset_svm.cli.demo

setup: $(VENV)/.dev  ## what the other targets need, in .venv

test: $(VENV)/.dev  ## the suite but its slow tests; ASSET_DATA=folder adds the tests on real data
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/.dev  ## the tests that take long
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-versions:  ## a part of the suite with the oldest supported versions, and with the newest Python here
	.ci/versions

tally: $(VENV)/.dev  ## how often `make test` passes: ARGS="--fresh 3 --here 17 --busy 2"
	$(BIN)/python tests/tally.py $(ARGS)

soak: $(VENV)/.dev  ## attacks by the thousand, going on where it stopped: ARGS="mutants=100000 kills --minutes 10"
	PYTHONPATH=tests $(BIN)/python -m soak $(ARGS)

soak-minute: $(VENV)/.dev  ## a minute of each attack, from the beginning
	rm -f $(VENV)/soak-minute.jsonl
	PYTHONPATH=tests $(BIN)/python -m soak --minutes 1 --tally $(VENV)/soak-minute.jsonl

recorded: $(VENV)/.dev  ## whether two source trees train the same models, bit for bit: ARGS="compare --old ../before/src"
	PYTHONPATH=tests $(BIN)/python -m recorded $(ARGS)

bench: $(VENV)/.dev  ## times beside scikit-learn's pipelines and the machine; needs ASSET_DATA
	$(BIN)/python benchmarks/speed.py $(ARGS)

bench-gpu: $(VENV)/.dev  ## MNIST-E on an NVIDIA card; needs ASSET_DATA and a CUDA build of torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cuda,plot]"
	$(BIN)/python benchmarks/gpu.py $(ARGS)

paper: $(VENV)/.paper  ## the paper's experiments beside their peers, as paper-report/index.html; ARGS=--full for all
	$(BIN)/python benchmarks/paper.py $(ARGS)

check: $(VENV)/.dev  ## format, lint, types, import contracts
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest build dist src/*.egg-info
