# What a developer types daily. Every target sets up .venv itself when it is missing or out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 4
CLIENTS := .venv-clients

.PHONY: help setup demo test explore lint clients bench shell reference clean

help:
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile | expand -t 18

setup: $(VENV)/.ready ## make .venv with everything that slurmk and its tests need

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slurmk needs Python 3.11 or newer; name one with PYTHON=")'
	@echo 'setting up $(VENV) (about a minute, once)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: setup ## run the main job on an embedded cluster of this machine
	@SLURMK=$(BIN)/slurmk PATH="$(CURDIR)/$(BIN):$$PATH" docs/examples/demo.sh

test: setup ## the tests; those that need a reference Slurm or Kubernetes skip where there is none
	$(BIN)/python -m pytest -n $(WORKERS) -q

explore: setup ## the unit tests with new cases of Hypothesis; make test takes the same ones each time
	HYPOTHESIS_PROFILE=new $(BIN)/python -m pytest -n $(WORKERS) -q tests/unit

lint: setup ## ruff, mypy (strict), the import contracts, and test modules of different names (pytest imports them by name)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! find tests -name 'test_*.py' -exec basename {} \; | sort | uniq -d | grep .

clients: $(CLIENTS)/.ready setup ## programs written for Slurm (tests/clients) do real work through slurmk
	SLURMK_CLIENTS=$(CURDIR)/$(CLIENTS) $(BIN)/python -m pytest -q tests/clients

$(CLIENTS)/.ready: tests/clients/requirements.txt tests/clients/nextflow/pom.xml
	@echo 'setting up $(CLIENTS) (about a minute, once)'
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
	@if command -v mvn >/dev/null; then mvn --quiet --file tests/clients/nextflow/pom.xml dependency:build-classpath \
		-Dmdep.outputFile=$(CURDIR)/$(CLIENTS)/nextflow.classpath || echo 'without nextflow'; fi
	@touch $@

bench: setup ## measure, against a reference Slurm on this machine where there is one
	$(BIN)/python -m tests.benchmarks

shell: setup ## a shell in which sbatch, squeue and the others talk to an embedded cluster
	@$(BIN)/slurmk shell || true

clean: ## remove what setup made
	rm -rf $(VENV) $(CLIENTS) build *.egg-info
