VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: install demo test lint format bench clean

install: $(READY)

$(READY): pyproject.toml requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -e '.[dev]'
	touch $@

demo: $(READY)          ## train for "maximize tnr where recall >= 95%", print the answer, write run/
	$(BIN)/python examples/breast_cancer.py --out run

test: $(READY) lint     ## lint, types, every test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)         ## the speed ratios, from one run each
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.step_cost

clean:
	rm -rf $(VENV) run dist build .pytest_cache .mypy_cache .ruff_cache
