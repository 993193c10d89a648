VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
READY = $(VENV)/.ready
RUNS = $(VENV)/.runs

SECONDS ?= 600
BEGAN := $(shell date +%s)

.PHONY: install demo test test-all lint types style units format docs bench evidence dist fuzz coverage mutation clean

install: $(READY)

$(READY): pyproject.toml requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -e '.[dev]'
	touch $(RUNS) $@

# The demo needs a tenth of what the tests need.
$(RUNS): pyproject.toml requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -e '.[cli,sklearn]'
	touch $@

demo: $(RUNS)           ## fraud at one false alarm in a thousand, beside cross-entropy and LightGBM; writes run/
	$(BIN)/python examples/rare_events.py run $(BIN)/setpoint

PYTEST = $(BIN)/python -m pytest -n 2

test: $(READY)          ## lint, types, every unit and law, a smoke test of each door; then the house in numbers
	@$(MAKE) --no-print-directory -j 3 types style units
	-@$(BIN)/python tools/house.py --since $(BEGAN)

units: $(READY)
	$(PYTEST) --dist worksteal -m "not slow" --hypothesis-profile=quick

test-all: test          ## the same, then the slow rest: every law in full, browser, several processes, kills, fuzzing, studies
	$(PYTEST) --dist loadgroup -m "slow or hypothesis"

docs: $(READY)          ## the site, into build/site; a broken link or name is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict

lint: $(READY)          ## types and style side by side
	@$(MAKE) --no-print-directory -j 2 --output-sync types style

types: $(READY)
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/prose.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)         ## the speed ratios, from one run each
	$(BIN)/python -m benchmarks.speed.kernels
	$(BIN)/python -m benchmarks.speed.step_cost
	$(BIN)/python -m benchmarks.speed.steps

dist: $(READY)          ## the wheel and the sdist, each installed in a new environment where the README is run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'hatchling>=1.24'
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python .ci/newcomer.py dist/*.whl
	$(BIN)/python .ci/newcomer.py dist/*.tar.gz

DATA ?= ../shared/data

evidence: $(READY)      ## the studies: what is not in benchmarks/results yet, then the pages of figures; QUICK=1 in minutes
	$(BIN)/python -m benchmarks.evidence --run --data $(DATA) $(if $(QUICK),--quick)

fuzz: $(READY)          ## every public entrance with whatever comes, new cases for SECONDS; counts them
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=2.3' || echo "no atheris: bytes not guided"
	$(BIN)/python -m benchmarks.faults.fuzz --seconds $(SECONDS)

coverage: $(READY)      ## the tests, with the lines and branches of src that they reach
	$(PYTEST) --dist loadgroup --cov --cov-report=json:coverage.json --cov-report=term-missing:skip-covered
	$(BIN)/python -m benchmarks.faults.coverage coverage.json

mutation: $(READY)      ## break measure, problem and threshold on purpose: which tests notice?
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut==3.8.0'
	$(BIN)/python -m benchmarks.faults.mutation $(if $(SAMPLE),--sample $(SAMPLE))

clean:
	rm -rf $(VENV) run dist build .pytest_cache .mypy_cache .ruff_cache
