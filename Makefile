PYTHON ?= python3
# A virtual environment of Windows has its programs in another folder.
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Two processes, each with one thread for BLAS: more would wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
REPRODUCTION := reproduction/tests reproduction/src
# How long each test took; scripts/durations.py makes tests/durations.md of it.
REPORT := --junitxml=.pytest_cache

# Empty is unset: processes that tests start would otherwise compile the whole package, each again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo paper test test-all test-deep check format benchmark bench-peers docs docs-serve dist test-dist test-bounds clean

demo: .venv/.demo
	$(BIN)/nngp demo

# The paper's tables and figures on scikit-learn's digits, and a report of them, in the folder
# reproduced; PAPER="all --dataset mnist" takes another data set, and days.
PAPER ?= all --dataset digits --budget 20m
paper: .venv/.paper
	$(BIN)/nngp-paper reproduce $(PAPER) --store reproduced/runs.db -o reproduced

# Most of what JAX compiles for tests runs once, so little is done to make it fast; the slow tests
# have it as users do.
test: check
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(PYTEST) $(REPORT)/default.xml

test-all: test docs
	$(PYTEST) $(REPORT)/slow.xml -m "slow and not deep"
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(PYTEST) $(REPORT)/reproduction.xml $(REPRODUCTION)
	$(PYTEST) $(REPORT)/reproduction-slow.xml -m "slow and not deep" $(REPRODUCTION)

# Long tests of a single subject, not part of continuous integration. Whoever changes a subject runs
# its deep tests: make test-deep ONLY="tests/covariance"
test-deep: .venv/.dev
	$(PYTEST) -m deep $(ONLY)
ifndef ONLY
	$(PYTEST) -m deep $(REPRODUCTION)
endif

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: .venv/.dev
	$(BIN)/python benchmarks/kernel.py --out benchmarks/results/kernel.json
	$(BIN)/python benchmarks/lookup.py --out benchmarks/results/lookup.json
	$(BIN)/python benchmarks/inference.py --out benchmarks/results/inference.json

# Each library in an environment of its own; a quarter of an hour on a machine with nothing else to do.
bench-peers: .venv/.dev
	$(BIN)/python benchmarks/peers.py run
	$(BIN)/python benchmarks/peers.py draw
	$(BIN)/python benchmarks/peers.py table

# Two pages at a time, each with one thread for BLAS.
docs: .venv/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -j 2 -W --keep-going -q docs docs/_build/html
	$(BIN)/python scripts/check_links.py docs/_build/html

docs-serve: docs
	$(BIN)/python -m http.server --directory docs/_build/html --bind 127.0.0.1 8000

# Wheel and sdist, in dist/. test-dist installs each into an empty environment and uses it there.
dist: .venv/.dev
	rm -rf dist
	$(BIN)/python -m build -q

test-dist: dist
	$(BIN)/python scripts/check_dist.py dist

# Each Python, both ends of the dependency bounds. BOUNDS="--quick --python 3.13" takes less.
test-bounds: .venv/.dev
	$(BIN)/python scripts/bounds.py $(BOUNDS)

.venv/.created:
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: .venv/.created pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[cli,plots]"
	@touch $@

.venv/.paper: .venv/.created pyproject.toml reproduction/pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[cli,finite,plots,progress]" -e reproduction
	@touch $@

.venv/.dev: .venv/.created pyproject.toml reproduction/pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[dev]" -e reproduction
	@touch $@ .venv/.demo .venv/.paper

clean:
	rm -rf .venv demo reproduced .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis docs/_build dist .bounds
