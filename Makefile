# Start here: `make demo` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo demo-all reproduce-demo test test-pysimt lint format docs notebook site bench clean

help:
	@echo "make demo    train, translate and report on the generated demo corpus"
	@echo "make demo-all   the same with every algorithm"
	@echo "make reproduce-demo   several seeds, controls, comparisons and tables on the demo corpus"
	@echo "make test    run all tests"
	@echo "make test-pysimt PYSIMT=path   compare with pysimt itself"
	@echo "make bench   measure training and search"
	@echo "make lint    ruff and mypy"
	@echo "make docs    regenerate docs/options.md, the pages of results and the README's part on them"
	@echo "make notebook   run the tutorial, docs/tutorial.ipynb, and store its outputs"
	@echo "make site    build the documentation as a small static site, build/site"
	@echo "make format  format the code with ruff"

$(READY): setup.py pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python experiments/demo.py

demo-all: $(READY)
	$(BIN)/python experiments/demo.py --all

# After an interruption it resumes where it stopped; the tables are in runs/reproduce-demo.
reproduce-demo: $(READY)
	$(BIN)/python -m pysimt_sac reproduce demo --out runs/reproduce-demo --seeds 2 $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -n auto

# pysimt itself, checked out at PYSIMT, is the oracle; it needs two packages that nothing else here needs.
test-pysimt: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt editdistance pillow
	PYTHONPATH=$(PYSIMT) $(BIN)/python -m pytest tests/hosts/pysimt

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
	$(BIN)/python docs/site.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build runs data
