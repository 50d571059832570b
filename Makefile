SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help run test check lint types bench soak clean FORCE

PY := .venv/bin/python
STAMP := .venv/.installed
BUILT := .venv/.compiled
HOT := $(addprefix src/worldline/kernel/,draws.py queue.py _queue.pxd engine.py _python.pxd) \
    $(addprefix src/worldline/spacetime/,geometry.py _geometry.pxd core.py _core.pxd)
CODE := $(wildcard src tests benchmarks examples)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s%s\n", $$1, $$2 }' Makefile
	@echo "PYTHON=... chooses the interpreter; otherwise it's the newest of 3.13, 3.12 and 3.11 that works."

run: $(BUILT)  ## run the example: a robot cell, four processes
	.venv/bin/worldline run examples/robot_cell/robot_cell.toml

# Twice, because a result that depends on the order of a set may well look right under one hash seed; and once with the
# hot modules compiled, once as plain Python. Its tests compare all four combinations themselves where it matters.
test: $(BUILT)  ## run the tests under two hash seeds, compiled and not
	PYTHONHASHSEED=0 $(PY) -m pytest -q -n 2
	PYTHONHASHSEED=1 WORLDLINE_UNCOMPILED=1 $(PY) -m pytest -q -n 2

check: lint types test  ## all that must pass before a commit

lint: $(BUILT)  ## check style and format
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)

types: $(BUILT)  ## check types
	$(PY) -m mypy

bench: $(BUILT)  ## measure the lock, federations beside HELICS and mosaik, kernel, nodes and spacetime beside SimPy
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,mpi,bench]'
	$(PY) benchmarks/lock.py
	$(PY) benchmarks/federation.py
	$(PY) benchmarks/kernel.py
	$(PY) benchmarks/nodes.py
	$(PY) benchmarks/spacetime.py

soak: $(BUILT)  ## run the long searches, without a time limit
	$(PY) -m pytest -q -m soak -n 2 --timeout 0

clean:  ## remove whatever make has made
	rm -rf .venv build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f src/worldline/{kernel,spacetime}/*.so
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# A name on PATH proves nothing: version managers leave shims there for interpreters that aren't active, and some systems
# ship Python without ensurepip. So each candidate has to show what it can do.
PROBE := import ensurepip, ssl, sys, venv; sys.exit(sys.version_info[:2] != (3, int(sys.argv[1])))
FOUND = $$(type -ap python3.$$minor python3) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor*/bin/python

# The stamp comes last, so that half an installation never counts as one.
$(STAMP): pyproject.toml Makefile
	@IFS=$$'\n'; \
	for minor in 13 12 11; do \
	    for python in $(if $(PYTHON),"$(PYTHON)",$(FOUND)); do \
	        "$$python" -c '$(PROBE)' $$minor 2>/dev/null || continue; \
	        echo "Installing into .venv with Python 3.$$minor ($$python)"; \
	        "$$python" -m venv --clear .venv && \
	        $(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,mpi]' && \
	        echo "$(PYTHON)" >$@ && touch $(BUILT); \
	        exit; \
	    done; \
	done; \
	echo "$(if $(PYTHON),$(PYTHON) is no,Neither PATH nor pyenv has a) working Python 3.11, 3.12 or 3.13 with ssl and venv;" \
	    "name one with PYTHON=..." >&2; \
	exit 1

# An editable installation doesn't notice that a module that is compiled has changed. Where it can't be compiled, it is
# used as it is.
$(BUILT): $(HOT) setup.py | $(STAMP)
	$(PY) setup.py --quiet build_ext --inplace
	@touch $@

# An environment that exists is good enough, unless another interpreter is asked for.
ifneq ($(PYTHON),)
ifneq ($(PYTHON),$(shell cat $(STAMP) 2>/dev/null))
$(STAMP): FORCE
endif
endif
