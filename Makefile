# Everything here needs python3.11 (with venv) and make, and nothing else: no root, no servers.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first interpreter that is new enough and can make a venv. `make up PYTHON=/path/to/python` overrules it.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

VENV ?= .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run-ready
DEV := $(VENV)/.dev-ready
# Not npm's own mark: the package's build leaves that too, without what the checks need.
WEB := web/node_modules/.dev-ready
WEB_SOURCES := $(shell find web -name node_modules -prune -o -type f -print)

SEEDS ?= 200
MINUTES ?= 1
PYTEST_ARGS ?=

.PHONY: help up demo storyboard test cover conformance check format sim chaos bench docs site console browser screenshot wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  SEEDS=$(SEEDS) for sim, MINUTES=$(MINUTES) for chaos, PYTEST_ARGS='-k name' for test"

up: $(RUN) ## start PostgreSQL, the engine and a worker with the bundled examples; Ctrl-C stops it
	@echo "starting PostgreSQL, the engine, the API, the console and a worker: about 2 seconds"
	@$(BIN)/windlass up

demo: $(RUN) ## the same without a terminal: run the example recipe to its end, print its output, stop
	@echo "running an example job to its end on a private PostgreSQL: about 5 seconds"
	@$(BIN)/windlass demo

storyboard: $(RUN) ## work that a provider does: one that loses webhooks, here, and who brought each answer
	@$(BIN)/python -m windlass.testing.storyboard

test: $(DEV) ## every test, on real PostgreSQL, and the branch coverage of the core
ifeq ($(strip $(PYTEST_ARGS)),)
	@echo "running every test on real PostgreSQL: about 10 minutes on two free cores, more on busy ones"
	@$(MAKE) --no-print-directory cover
	$(BIN)/python -m pytest --ignore=tests/core --ignore=tests/pure
else
	$(BIN)/python -m pytest $(PYTEST_ARGS)
endif

cover: $(DEV) ## the core's tests alone: every branch of it must be taken
	$(BIN)/python -m pytest tests/core tests/pure -q --cov --cov-report=term --cov-fail-under=100

conformance: $(DEV) ## the tests that show a requirement: how many of each family pass, and what has none
	$(BIN)/python -m pytest -q -p tests.conformance.plugin $(PYTEST_ARGS)

check: $(DEV) ## ruff, strict types, import contracts, tidy; no database
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/tidy -q -n 0

format: $(DEV) ## let ruff fix and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

sim: $(DEV) ## the engine on virtual time under faults: make sim SEEDS=1000
	$(BIN)/python -m windlass.testing.sim --seeds $(SEEDS)

chaos: $(DEV) ## real processes under SIGKILL and SIGSTOP: make chaos MINUTES=5
	$(BIN)/python -m windlass.testing.chaos --minutes $(MINUTES)

bench: $(DEV) ## Windlass and its peers side by side, as a table and as JSON
	$(BIN)/python bench/run.py

docs: $(DEV) ## write what is generated again: pages (states, CLI, settings, errors), and the client that blocks
	$(BIN)/python scripts/unasync.py
	$(BIN)/python docs/make.py

site: $(RUN) ## build the documentation as a site into build/site; `make up` serves it under /docs
	@$(BIN)/python -c 'import zensical' 2>/dev/null || $(SITE_TOOLS)
	@$(BIN)/python docs/site/site_build.py

wheel: $(DEV) ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet $(UNISOLATED) --wheel-dir dist .

console: $(RUN) $(WEB) ## the console's types, style, unit tests and weight; needs Node 20.19
	cd web && npm run --silent check

browser: $(RUN) $(WEB) ## the console in a real browser, against a real server; needs Node 20.19 and chromium
	cd web && npm run --silent e2e

screenshot: $(RUN) $(WEB) ## the README's picture of the console, from the running demo; needs Node 20.19 and chromium
	cd web && npm run --silent picture

clean: ## remove .venv and everything that was built; data of `make up` stays
	rm -rf $(VENV) dist build web/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage

# ---------------------------------------------------------------- the environment
# A stamp is newer than the pins it was made from, so a second run installs nothing.

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed (Debian: python3-venv)"; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# Every file that is downloaded has its hash in requirements/. The build is not isolated: it would download its own.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --require-hashes
UNISOLATED := --no-deps --no-build-isolation
# The site is built beside the console, whose build waits for the network and the disk.
SITE_TOOLS := $(LOCKED) --only-binary zensical -r requirements/site.txt
HAS_NODE := import runpy, sys; sys.exit(not runpy.run_path("src/windlass/app/console_build.py")["has_node"]())

$(RUN): $(addprefix requirements/,build.txt run.txt node.txt site.txt) pyproject.toml hatch_build.py $(WEB_SOURCES) | $(BIN)/python
	@echo "installing what Windlass needs to run: about a minute, once"
	@$(LOCKED) -r requirements/build.txt -r requirements/run.txt
	@$(BIN)/python -c '$(HAS_NODE)' || $(LOCKED) -r requirements/node.txt || echo "no Node: the console is the lite page"
	@echo "building Windlass, its console and its documentation"
	@{ test "$${WINDLASS_DOCS:-auto}" = skip || { $(SITE_TOOLS) && $(BIN)/python docs/site/site_build.py >/dev/null; }; } & \
	site=$$!; WINDLASS_DOCS=skip $(INSTALL) $(UNISOLATED) -e .; \
	wait $$site || { echo "no documentation site: /docs says so"; test "$${WINDLASS_DOCS:-auto}" != require; }
	@touch $@

$(DEV): requirements/dev.txt $(RUN) | $(BIN)/python
	@echo "installing what its tests and checks need"
	@$(LOCKED) -r requirements/dev.txt
	@touch $@

$(WEB): web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@
