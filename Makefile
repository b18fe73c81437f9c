# Everything starts here: `make demo` and `make test` set up all they need.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test lint format clean

help:
	@echo "make demo    train, translate and report on the generated demo corpus"
	@echo "make test    run all tests"
	@echo "make lint    ruff and mypy"
	@echo "make format  rewrite the code as ruff likes it"

$(READY): setup.py pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/pysimt-sac prepare demo --out data/demo
	$(BIN)/pysimt train -C experiments/demo_mle.conf
	$(BIN)/pysimt translate -s test,test_ood -f bs -o runs/demo_mle/out runs/demo_mle/*.best.bleu.ckpt
	$(BIN)/pysimt-sac report runs/demo_mle --out runs/report.html

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build runs data
