# A fresh clone needs two commands: make demo and make test. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint format bench install model

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

model: $(INSTALLED)
	$(BIN)/draftboard fetch smollm2-135m

demo: model
	$(BIN)/draftboard demo

# Tests of the real model skip, with a reason, where it could not be fetched. Each of the processes computes with one
# thread; make test PROCESSES=4 uses more.
PROCESSES ?= 2
test: $(INSTALLED)
	-@$(BIN)/draftboard fetch smollm2-135m
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(PROCESSES)

# mypy does not see an editable install with moved folders, so it is shown the packages as they are installed.
lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@rm -rf build/typed && mkdir -p build/typed
	@cp -rs $(CURDIR)/harness build/typed/draftboard
	@for room in methods suites leaderboards; do cp -rs $(CURDIR)/$$room build/typed/draftboard/$$room; done
	cd build/typed && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p draftboard

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# make bench OPTIONS=--benchmark-json=bench.json
bench: model
	$(BIN)/python -m pytest tests/benchmarks --benchmark-enable --benchmark-only -q $(OPTIONS)
