# make demo: two models trained on this machine; make test: all four frameworks, linters, type checker and a sample
# of the tests. CONTRIBUTING.md says what the other test targets run, and how long they take.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
SCOREBOARD := -e './pytest-scoreboard[import]'
export TF_CPP_MIN_LOG_LEVEL := 3
export ONEDNN_JIT_PROFILE := 0
unexport PYTHONDONTWRITEBYTECODE  # without it, every process compiles every file again
export SCOREBOARD_ARTIFACTS ?= $(CURDIR)/.scoreboard/screenshots

.PHONY: demo test alone test-full test-all test-changed times names lint docs docs-serve bench scoreboard browser versions release conformance clean

# make demo uses the frameworks that are installed; BACKENDS=all installs all four; BACKENDS="numpy jax" chooses.
demo: $(VENV)/$(if $(filter all,$(BACKENDS)),all,core)
	@$(BIN)/python examples/demo.py $(BACKENDS)

# Hollow tests (no assertion ran) and unexpected passes fail the run, as failures do.
PROVEN := --scoreboard --scoreboard-fail-on hollow,xpassed
BOARD := $(BIN)/scoreboard

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

TOGETHER := $(MAKE) --no-print-directory -j2 lint alone

# The sample that SEED draws: a number, or today. 30 seeds in a row draw every test.
SEED ?= $(or $(ISOMORPH_SEED),0)
test: $(VENV)/test browser
	@$(TOGETHER)
	ISOMORPH_SEED=$(patsubst today,$$(($$(date +%s) / 86400)),$(SEED)) $(PYTEST) --quick $(PROVEN)

# The tests of the scoreboard, a distribution of its own, in an environment with pytest and what it needs.
alone: $(VENV)/scoreboard/done
	cd pytest-scoreboard && ../$(VENV)/scoreboard/bin/python -m pytest

# All but the full grids: as a whole, on one backend (BACKEND=torch; none: tests without a backend), or one of several
# parts that take the same time (PART=2/6). Parts of one commit are one run on the board.
SHARE := $(and $(BACKEND)$(PART),--scoreboard-run-key "full $(shell git describe --always --dirty 2>/dev/null)" \
	$(addprefix --backend=,$(BACKEND)) $(addprefix --part=,$(PART)))
test-full: $(VENV)/test browser
	@$(TOGETHER)
	$(PYTEST) -m "not slow" $(PROVEN) $(SHARE)

# The full grids too, with another seed each time.
test-all: $(VENV)/test browser
	@$(TOGETHER)
	ISOMORPH_SEED=$${ISOMORPH_SEED:-$$(date +%s)} ISOMORPH_XLA=full $(PYTEST) $(PROVEN)
	$(BIN)/python tests/backends/edge_facts.py

# Bring the times of the newest run on the board into tests/times.json; make test draws its sample by them.
times: $(VENV)/test
	$(BOARD) slowest --run latest --json - | $(BIN)/python tests/sampling.py

# The tests that a change can reach: one that is not committed, or else the last commit, or all since BASE=main.
test-changed: $(VENV)/test
	@$(BIN)/python tests/reach.py $(BASE)
	@$(MAKE) --no-print-directory lint browser
	$(PYTEST) -m "not slow" --changed=$(BASE) \
	--scoreboard=.scoreboard/changed.db --scoreboard-fail-on hollow,xpassed || test $$? -eq 5  # 5: no test

# Quick tests for a new public name: that it is documented, exported, and tested on every backend.
NAMES := tests/test_examples.py::test_every_public_name_has_an_example_or_a_reason \
	tests/test_examples.py::test_an_example_alone tests/test_architecture.py tests/promises/test_public_names.py \
	tests/docs/test_api_pages.py \
	tests/typing/test_typing.py::test_what_returns_any_has_a_reason \
	tests/backends/test_four_of_a_kind.py::test_every_name_was_drawn
names: lint
	$(BIN)/python -m pytest -m "not slow" $(NAMES)

# Run all but the slow tests, then write the results to docs/scoreboard and compare them with the seed tables.
scoreboard: $(VENV)/test browser
	$(BOARD) import seeds
	$(PYTEST) -m "not slow" $(PROVEN); status=$$?; \
	$(BOARD) render md -o docs/scoreboard --readme README.md --readme docs/scoreboard.md && \
	$(BOARD) render html -o docs/scoreboard && $(BOARD) render badge -o docs/scoreboard && \
	($(BOARD) diff 0 latest || test $$? -eq 1) && exit $$status

# The page is tested in a real browser. If there is none, install Debian's where apt is available.
browser:
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || \
	(apt-get update -qq && apt-get install -y -qq chromium >/dev/null)

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Build the site into site/, with its generated pages. Warnings are errors. site/index.html opens without a server.
docs: $(VENV)/docs
	$(BIN)/python -m docs_build
	$(BIN)/zensical build --strict --clean

# The site on http://localhost:8000, built again when a page changes.
docs-serve: $(VENV)/docs
	$(BIN)/python -m docs_build
	$(BIN)/zensical serve

bench: $(VENV)/bench
	@$(BIN)/python -m benchmarks

# Run the core suite with the oldest, the pinned and the newest version of each framework.
versions: $(VENV)/versions
	$(BIN)/nox

# Build the wheels and the source archives of both distributions, install each in empty environments, and test it there.
release: $(VENV)/versions
	rm -rf dist && $(BIN)/python -m build --quiet
	$(BIN)/python -m build --quiet --outdir dist pytest-scoreboard
	$(BIN)/nox -s release scoreboard

# SUITE is a checkout of array-api-tests with its submodule, AUTOGRAD one of HIPS/autograd. Without one, its part is
# skipped.
conformance: $(VENV)/conformance
	@test -n "$(SUITE)$(AUTOGRAD)" || (echo "make conformance SUITE=path/to/array-api-tests AUTOGRAD=path/to/autograd"; exit 2)
	@test -n "$(SUITE)" || echo "array-api-tests: skipped, SUITE= is not given"
	@test -z "$(SUITE)" || $(BIN)/python conformance/run.py numpy jax tensorflow torch --suite "$(SUITE)"
	@test -n "$(AUTOGRAD)" || echo "HIPS autograd: skipped, AUTOGRAD= is not given"
	@test -z "$(AUTOGRAD)" || $(BIN)/python conformance/hips/run.py tests --checkout "$(AUTOGRAD)"
	@test -z "$(AUTOGRAD)" || $(BIN)/python conformance/hips/run.py examples --checkout "$(AUTOGRAD)"

clean:
	rm -rf $(VENV) build dist site .cache docs/api .programs .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp file per set of packages; it is made again when the requirements change.
$(VENV)/core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]' && touch $@

$(VENV)/all: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo,all]' && touch $@

$(VENV)/test: $(BIN)/python pyproject.toml constraints.txt
	@start=$$(date +%s); $(PIP) $(SCOREBOARD) -e '.[test]' && touch $@ && echo "installation: $$(($$(date +%s) - start)) s"

$(VENV)/scoreboard/done: pytest-scoreboard/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)/scoreboard
	$(subst $(BIN),$(VENV)/scoreboard/bin,$(PIP)) -e ./pytest-scoreboard && touch $@

$(VENV)/docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[docs]' && touch $@

$(VENV)/bench: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) $(SCOREBOARD) -e '.[bench]' && touch $@

$(VENV)/versions: $(BIN)/python pyproject.toml
	$(PIP) -e '.[versions]' && touch $@

$(VENV)/conformance: $(VENV)/test
	$(PIP) ndindex pytest-json-report matplotlib xarray && touch $@
