# Everything installs into .venv, through pip and constraints.txt. `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO := .venv/.installed-demo

.PHONY: install test quick check format demo clean

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv .venv

# What a user installs: translating, training, looking inside. The rest is for tests and other formats.
$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train]'
	touch $@

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,marian,onnx,hub,tensorboard,dev]'
	touch $@ $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest

quick: $(STAMP)
	$(BIN)/python -m pytest -m 'not slow'

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(DEMO)
	$(BIN)/dragoman demo

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
