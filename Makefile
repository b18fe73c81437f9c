# Start here: `make demo` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TIMES ?= 20
SEED := $(or $(SEED),$(shell date +%s))

VERSIONS := 3.11 3.12 3.13 3.14
PARALLEL := -n auto --dist worksteal
QUICK := $(PARALLEL) -m "not slow"

.PHONY: help demo demo-all reproduce-demo test stress test-pysimt test-versions test-oldest test-package coverage lint format docs \
  notebook site bench clean

help:
	@echo "make demo    train, translate and report on the generated demo corpus; ARGS=--rare: rare senses, ARGS=--hf: a model of transformers"
	@echo "make demo-all   the same with every algorithm"
	@echo "make reproduce-demo   several seeds, controls, comparisons and tables on the demo corpus"
	@echo "make test    run all tests"
	@echo "make stress  random kills, full disks, stopped processes, drawn files, long runs; TIMES=20 of what a test does"
	@echo "make test-versions   run the quick tests with every Python that is installed, and with the oldest libraries"
	@echo "make test-package   build the package, and try it in an empty environment; ARGS=--tests with the quick tests"
	@echo "make coverage   run all tests, and name the files that they cover least"
	@echo "make test-pysimt PYSIMT=path   compare with pysimt itself"
	@echo "make bench   measure training and search"
	@echo "make lint    ruff and mypy"
	@echo "make docs    regenerate docs/options.md, the pages of results and the README's part on them"
	@echo "make notebook   run the notebooks of docs/, and store their outputs"
	@echo "make site    build the documentation as a small static site, build/site"
	@echo "make format  format the code with ruff"

$(READY): setup.py pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python experiments/demo.py $(ARGS)

demo-all: $(READY)
	$(BIN)/python experiments/demo.py --all

# After an interruption it resumes where it stopped; the tables are in runs/reproduce-demo.
reproduce-demo: $(READY)
	$(BIN)/python -m pysimt_sac reproduce demo --out runs/reproduce-demo --seeds 2 $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest $(PARALLEL)

stress: $(READY)
	@echo "the same draws again: make stress SEED=$(SEED)"
	PYSIMT_SAC_STRESS=$(TIMES) PYSIMT_SAC_SEED=$(SEED) $(BIN)/python -m pytest $(PARALLEL) tests/stress

# pysimt itself, checked out at PYSIMT, is the oracle; it needs two packages that nothing else here needs.
test-pysimt: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt editdistance pillow
	PYTHONPATH=$(PYSIMT) $(BIN)/python -m pytest -n auto --dist loadfile tests/hosts/pysimt

# Each environment is in build/, and is kept. A Python that is not there is skipped.
test-versions: $(VERSIONS:%=test-python-%) test-oldest

test-python-%:
	@if ! command -v python$* > /dev/null; then echo "Python $* is not installed: skipped"; exit; fi; set -ex; \
	python$* -m venv build/python-$*; \
	build/python-$*/bin/pip install --quiet --disable-pip-version-check $(NEWEST) -e '.[dev]'; \
	build/python-$*/bin/python -m pytest $(QUICK)

# The lower bounds in setup.py; libraries that they do not name are as new as these allow.
test-oldest:
	mkdir -p build
	sed -nE 's/^ +"(torch|numpy|sacrebleu)>=([0-9.]+).*/\1==\2.*/p' setup.py > build/oldest.txt
	python3.11 -m venv build/oldest
	build/oldest/bin/pip install --quiet --disable-pip-version-check -c build/oldest.txt -e '.[dev]'
	build/oldest/bin/python -m pytest $(QUICK)

test-package: $(READY)
	$(BIN)/python tests/package.py $(ARGS)

coverage: $(READY)
	$(BIN)/coverage run -m pytest $(PARALLEL)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --sort=cover --skip-covered | head -25
	$(BIN)/coverage report --format=total

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python docs/generate.py

notebook: $(READY)
	$(BIN)/python docs/notebook.py

site: $(READY)
	$(BIN)/python docs/site.py $(ARGS)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build runs data
