# Two commands are all a newcomer needs: `make demo` and `make test`. Both set up what they use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_ARGUMENTS ?=

.PHONY: demo test check bench docs pages setup-demo setup-test clean

demo: setup-demo
	$(BIN)/train-ledger demo $(DEMO_ARGUMENTS)

test: setup-test check
	sh tools/run_tests.sh $(BIN)

check: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup-test
	$(BIN)/zensical build --strict

# What stands in docs/ is written from the code; a test holds each page current.
pages: setup-test
	for tool in tools/*_page.py; do $(BIN)/python $$tool || exit 1; done
	$(BIN)/train-ledger deploy --out deploy --force

bench: setup-test
	$(BIN)/python bench/log_latency.py
	OMP_NUM_THREADS=1 $(BIN)/torchrun --standalone --nproc-per-node 4 bench/demo_cost.py
	$(BIN)/python bench/hang_dumps.py

setup-demo: $(VENV)/.demo
setup-test: $(VENV)/.test

$(VENV)/.venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "train-ledger needs Python 3.11 or newer; say which with: make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml tools/system_packages.sh $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,test]'
	sh tools/system_packages.sh
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
