# Two commands from a fresh clone: `make run` and `make test`. Everything happens inside .venv.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
SCENARIO ?= scenarios/quickstart.yaml
export OMP_NUM_THREADS ?= 1

.PHONY: run test test-slow lint format bench docs clean

$(VENV)/run.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Graphwarden needs Python >= 3.11; $(PYTHON) is older (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/dev.done: $(VENV)/run.done
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: $(VENV)/run.done  ## run the quickstart on real Cora
	$(BIN)/graphwarden run $(SCENARIO)

test: $(VENV)/dev.done  ## the whole quick suite
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow'

test-slow: $(VENV)/dev.done  ## the tests that take long
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev.done  ## style, types, and which way the arrows point
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.done  ## ratios and seconds, printed
	for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(VENV)/dev.done  ## the documentation as a site in site/
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info
