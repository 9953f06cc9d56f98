# make demo: two models trained on this machine; make test: all four frameworks, linters, type checker and tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
export TF_CPP_MIN_LOG_LEVEL := 3
export ONEDNN_JIT_PROFILE := 0

.PHONY: demo test test-all names lint bench scoreboard browser versions release conformance clean

# make demo: on what is installed; make demo BACKENDS=all installs all four; BACKENDS="numpy jax": on those.
demo: $(VENV)/$(if $(filter all,$(BACKENDS)),all,core)
	@$(BIN)/python examples/demo.py $(BACKENDS)

# Hollow tests and unexpected passes fail the run, as failures do.
PROVEN := --scoreboard --scoreboard-fail-on hollow,xpassed
BOARD := $(BIN)/isomorph scoreboard

test: lint browser
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(PROVEN)

test-all: lint browser
	ISOMORPH_XLA=full $(BIN)/python -m pytest -n 2 --dist worksteal $(PROVEN)

# What looks at names: that each is documented, shown, and tested everywhere; quick, for who adds one.
NAMES := tests/test_examples.py tests/test_architecture.py tests/core/test_public_names.py \
	tests/typing/test_typing.py::test_what_returns_any_has_a_reason \
	tests/core/test_compiled_eager.py::test_every_name_is_drawn \
	tests/backends/test_four_of_a_kind.py::test_every_name_was_drawn \
	tests/borders/test_borders_theirs.py::test_every_name_is_drawn
names: lint
	$(BIN)/python -m pytest -m "not slow" $(NAMES)

# Run all but the slow tests, then say in docs/scoreboard what became of every cell of the seed tables.
scoreboard: $(VENV)/test browser
	$(BOARD) import seeds
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(PROVEN); status=$$?; \
	$(BOARD) render md -o docs/scoreboard --readme README.md && \
	$(BOARD) render html -o docs/scoreboard && $(BOARD) render badge -o docs/scoreboard && \
	($(BOARD) diff 0 latest || test $$? -eq 1) && exit $$status

# The page is tested in a real browser: Debian's, where there is apt and none is installed.
browser:
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || \
	(apt-get update -qq && apt-get install -y -qq chromium >/dev/null)

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/bench
	@$(BIN)/python -m benchmarks

# The core suite with the oldest, the pinned and the newest version of each framework.
versions: $(VENV)/versions
	$(BIN)/nox

# Wheel and source archive, each installed in empty environments and tried there.
release: $(VENV)/versions
	rm -rf dist && $(BIN)/python -m build --quiet
	$(BIN)/nox -s release

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

$(VENV)/all: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo,all]' && touch $@

$(VENV)/test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[test]' && touch $@

$(VENV)/bench: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[bench]' && touch $@

$(VENV)/versions: $(BIN)/python pyproject.toml
	$(PIP) -e '.[versions]' && touch $@

$(VENV)/conformance: $(VENV)/test
	$(PIP) ndindex pytest-json-report && touch $@
