# `make` alone prints this help.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
LOCK := infra/lock/dev.lock

.DEFAULT_GOAL := help
.PHONY: help setup demo up test check contracts contracts-check bench format lock coverage-of-requirements clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make the environment (implied by the others)

$(VENV)/.ready: $(LOCK) infra/lock/bootstrap.lock infra/local/link.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { echo "The venv module is missing: apt-get install python3-venv"; exit 1; }
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r infra/lock/bootstrap.lock \
	  && VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/uv pip sync -q --require-hashes $(LOCK) \
	  || $(PY) -m pip install -q --disable-pip-version-check --require-hashes -r $(LOCK)
	@$(PY) infra/local/link.py
	@touch $@

demo: setup ## set everything up and run the demonstration
	@$(PY) -m placet.local demo

up: setup ## run the whole system until Ctrl-C, and say where to look (PORT=8080)
	@$(PY) -m placet.local up $(if $(PORT),--port $(PORT))

test: setup ## set everything up and run the tests
	@$(PY) -m pytest -n 2

check: setup ## format, lint, strict types, import rules, compose file
	@$(VENV)/bin/ruff format --check -q . && $(VENV)/bin/ruff check -q .
	@$(VENV)/bin/pyright
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

format: setup ## format the code and mend what the linter can
	@$(VENV)/bin/ruff format -q . && $(VENV)/bin/ruff check -q --fix .

contracts: setup ## generate schemas, AsyncAPI, examples and broker definitions from the code
	@$(PY) -m placet.contracts write

contracts-check: setup ## regenerate and compare; refuse an incompatible change of a released message
	@$(PY) -m placet.contracts check

bench: setup ## measure gated and ungated cycles beside the raw floor
	@$(PY) tests/bench

coverage-of-requirements: setup ## list the requirements and cases that no test names
	@$(PY) tests/requirements.py

lock: setup ## compile the pinned dependencies again
	@for name in bootstrap dev; do $(VENV)/bin/uv pip compile infra/lock/$$name.in --python-version 3.11 --universal \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o infra/lock/$$name.lock; done

clean: ## remove the environment and what tools left
	@rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
