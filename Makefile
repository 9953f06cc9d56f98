# make demo: the core on this machine's Python; make test: all four frameworks, linters, type checker and tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
export TF_CPP_MIN_LOG_LEVEL := 3
export ONEDNN_JIT_PROFILE := 0

.PHONY: demo test test-all lint bench conformance clean

demo: $(VENV)/core
	@$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/bench
	@$(BIN)/python -m benchmarks

conformance: $(VENV)/conformance
	@test -n "$(SUITE)" || (echo "make conformance SUITE=path/to/array-api-tests (a checkout with its submodule)"; exit 2)
	$(BIN)/python conformance/run.py numpy jax tensorflow torch --suite "$(SUITE)"

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per set of packages, made anew when the requirements change.
$(VENV)/core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]' && touch $@

$(VENV)/test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[test]' && touch $@

$(VENV)/bench: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[bench]' && touch $@

$(VENV)/conformance: $(VENV)/test
	$(PIP) ndindex pytest-json-report && touch $@
