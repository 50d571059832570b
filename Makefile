SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help run build browser test test-long test-plain test-bare check lint types bench coverage mutants soak lock sbom site test-dist dist extras clean FORCE

PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
STAMP := .venv/.installed
BUILT := .venv/.compiled
TOOLS := .venv/.tools
SIMPY := .venv/simpy-sdist
TYPED := $(wildcard src/worldline/*/*.pxd src/worldline/*/*/*.pxd)
HOT := src/worldline/builds.py $(TYPED) $(wildcard $(TYPED:.pxd=.py) $(TYPED:.pxd=.pyx))
COMMA := ,
SPACE := $(subst ,, )
CODE := $(wildcard src tests benchmarks examples setup.py)

# Tests start hundreds of processes, and each would compile all that it imports anew where the environment has forbidden Python
# to keep that.
export PYTHONDONTWRITEBYTECODE :=

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s%s\n", $$1, $$2 }' Makefile
	@echo "PYTHON=... chooses the interpreter; otherwise it's 3.13, 3.12, 3.11 or a newer one, the first that works."

# What was compiled before a change isn't what the change says.
run: $(STAMP)  ## run the example: a robot cell, four processes
	@$(MAKE) --question $(BUILT) 2>/dev/null || export WORLDLINE_UNCOMPILED=1; \
	.venv/bin/worldline run examples/robot_cell/robot_cell.toml && \
	if [[ $$WORLDLINE_UNCOMPILED ]]; then \
	    echo "That was plain Python. \`make build\` compiles the hot modules, a minute or two: federations become" \
	        "twice as fast, the kernel 4 to 12 times."; \
	fi

# As it is installed already: the clone itself, and not compiled again.
extras: $(STAMP)  ## add extras to .venv: make extras WITH=drake,mujoco
	@[[ "$(WITH)" ]] || { echo "Which? Say make extras WITH=drake,mujoco; README.md lists them." >&2; exit 2; }
	WORLDLINE_UNCOMPILED=1 $(PIP) --no-build-isolation --editable '.[$(WITH)]'

build: $(BUILT)  ## compile the hot modules: same digests, several times as fast

# What is fetched takes five minutes at most, and what apt said is kept: it isn't tried again before `make browser`.
NO_CHROMIUM := build/no-chromium.log
INSTALL_CHROMIUM := export DEBIAN_FRONTEND=noninteractive; timeout 60 apt-get update && \
    timeout 240 apt-get install --yes --no-install-recommends --download-only chromium && \
    apt-get install --yes --no-install-recommends --no-download chromium
browser:  ## find Chromium, which the page's tests need, or install Debian's
	@skipped="so the page's tests in a browser are skipped"; \
	found() { type -P chromium chromium-browser google-chrome | head -n 1; }; \
	if [[ $$(found) ]]; then echo "Chromium: $$(found)"; \
	elif [[ $$EUID != 0 ]] || ! type -P apt-get >/dev/null; then \
	    echo "Chromium: none here, and it takes root and apt to install it, $$skipped"; \
	elif [[ -e $(NO_CHROMIUM) && "$(MAKECMDGOALS)" != browser ]]; then \
	    echo "Chromium: none here, $$skipped; \`make browser\` tries again to install it"; \
	else \
	    mkdir -p $(dir $(NO_CHROMIUM)); \
	    if { $(INSTALL_CHROMIUM); } >$(NO_CHROMIUM) 2>&1 && [[ $$(found) ]]; then \
	        rm $(NO_CHROMIUM); echo "Chromium: installed Debian's, $$(found)"; \
	    else echo "Chromium: apt can't install it (see $(NO_CHROMIUM)), $$skipped"; fi; \
	fi

# Neighbors stay in one process as far as that goes, since they share fixtures.
PYTEST := $(PY) -m pytest -q -n 3 --dist worksteal

test: $(BUILT) $(TOOLS) $(SIMPY) browser  ## run the tests
	PYTHONHASHSEED=0 $(PYTEST) -m 'not soak and not long'

test-long: $(BUILT) $(TOOLS) $(SIMPY)  ## run those that take seconds each: whole pages, matrices of executors, long losses
	PYTHONHASHSEED=0 $(PYTEST) -m 'long and not soak' $$(grep -rl --include 'test_*.py' 'mark\.long' tests | sort)

# A result that depends on the order of a set may well look right under one hash seed, and one that depends on the build
# under one build. The tests compare all combinations themselves where it matters most.
test-plain: $(BUILT) $(TOOLS) $(SIMPY)  ## run those again where it can matter: plain Python, threads, another hash seed
	PYTHONHASHSEED=1 WORLDLINE_UNCOMPILED=1 WORLDLINE_THREADS=1 $(PYTEST) -m 'not soak and not once and not long' \
	    $(addprefix tests/,kernel simpy nodes spacetime conformance test_examples.py lock wire federation)

BARE := .venv/bare
IS_BARE := from worldline.builds import build; from worldline.federation.inprocess.strand import strand_kind; \
    assert build.startswith("plain") and strand_kind().__name__ == "ThreadStrand", (build, strand_kind())
RUN_CELL := bin/worldline run examples/robot_cell/robot_cell.toml --no-record --executor
test-bare: $(BUILT)  ## install it as if there were no compiler and no greenlet, and see that it gives the same
	rm -rf $(BARE) && $(PY) -m venv $(BARE) && mkdir $(BARE)/source
	git ls-files -z src README.md LICENSE pyproject.toml setup.py | xargs -0 cp --parents --target-directory $(BARE)/source
	CC=false $(BARE)/bin/python -m pip install --quiet --disable-pip-version-check $(BARE)/source
	$(BARE)/bin/python -c '$(IS_BARE)'
	for executor in in-process unix; do \
	    bare=$$($(BARE)/$(RUN_CELL) $$executor | grep digest) && \
	    diff <(echo "$$bare") <(.venv/$(RUN_CELL) $$executor | grep digest) || exit; \
	done

check: lint types test test-long test-plain test-bare test-dist  ## all that must pass before a commit

lint: $(TOOLS)  ## check style and format
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)

types: $(TOOLS)  ## check types
	$(PY) -m mypy

bench: $(BUILT) $(TOOLS)  ## measure everything, federations compared with HELICS and mosaik, the kernel with SimPy
	$(PIP) --editable '.[dev,mpi,drake,mujoco,zenoh,learn,bench]'
	$(PY) benchmarks/lock.py
	$(PY) benchmarks/lock_curves.py
	$(PY) benchmarks/hop.py
	$(PY) benchmarks/scaling.py
	$(PY) benchmarks/federation.py
	$(PY) benchmarks/metasim.py
	$(PY) benchmarks/world.py
	$(PY) benchmarks/kernel.py
	$(PY) benchmarks/simpy.py
	$(PY) benchmarks/nodes.py
	$(PY) benchmarks/spacetime.py
	$(PY) benchmarks/parallel.py
	$(PY) benchmarks/diff.py
	$(PY) benchmarks/ensembles.py
	$(PY) benchmarks/toolbox.py
	$(PY) benchmarks/why.py
	$(PY) benchmarks/twin.py
	$(PY) benchmarks/plot.py
	$(PY) benchmarks/watch.py

coverage: $(TOOLS)  ## run the tests of the pure rooms, and list the lines that none of them runs through
	$(PIP) coverage==7.11.0
	COVERAGE_CORE=sysmon WORLDLINE_UNCOMPILED=1 PYTHONHASHSEED=0 $(PY) -m coverage run --source src/worldline --data-file build/coverage \
	    -m pytest -q -m 'not soak and not long' $(addprefix tests/,model history lock wire recording search federation)
	$(PY) -m coverage report --data-file build/coverage --show-missing \
	    --include '$(subst $(SPACE),$(COMMA),$(foreach room,model history lock wire,src/worldline/$(room)/*))'

mutants: $(TOOLS)  ## change the lock in 100 small ways (COUNT=...), and list those that its tests don't notice
	PYTHONHASHSEED=0 $(PY) -m tests.mutants lock --count $(or $(COUNT),100) --seed $(or $(SEED),1)

soak: $(BUILT) $(TOOLS)  ## run the long searches, without a time limit
	$(PY) -m pytest -q -m soak -n 2 --timeout 0

# For all supported versions of Python and kinds of machine, with the hashes of everything they name: what running needs,
# and that with all that development needs.
COMPILE := $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade --no-header \
    --no-emit-index-url --custom-compile-command "make lock" pyproject.toml
lock: $(STAMP)  ## renew requirements*.lock, from which everything here is installed
	$(PIP) uv==0.13.7
	$(COMPILE) --extra dev --extra mpi --extra drake --extra mujoco --extra zenoh --extra learn -o requirements.lock
	$(COMPILE) --extra build --extra greenlet --no-emit-package cython --constraint requirements.lock -o requirements-run.lock

sbom: $(STAMP)  ## write sbom.json, a bill of materials (CycloneDX) of what Worldline needs to run
	$(PY) -m venv --clear .venv/sbom
	.venv/sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	.venv/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o sbom.json $(PY)

# The site says what the commands say, so it is built where Worldline is installed, too.
SITE := .venv/site
site: $(STAMP)  ## build the documentation into build/site: open build/site/index.html
	test -x $(SITE)/bin/mkdocs || { $(PY) -m venv $(SITE) && \
	    WORLDLINE_UNCOMPILED=1 $(SITE)/bin/python -m pip install --quiet --disable-pip-version-check '.[site]'; }
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --strict --site-dir build/site
	@! grep -rlE '<(script|link)[^>]* (src|href)="https?:[^"]*(js|css|shim)"' build/site --include '*.html' || \
	    { echo "These pages load something from elsewhere." >&2; exit 1; }
	@echo "open build/site/index.html"

# Each wheel is tried in an environment that has nothing else. Compiling one takes minutes of processor time, so CI tries
# the plain one alone, and that the sdist has all that the others are compiled from.
DIST := build/dist
PLAIN = $(DIST)/*-none-any.whl
MINORS := 11 12 13
EACH_PYTHON = for minor in $(MINORS); do for python in $(FOUND); do \
    "$$python" -c '$(PROBE)' "$$minor" 2>/dev/null || continue; echo "Python 3.$$minor: $$python"
test-dist: $(STAMP)  ## build sdist and plain wheel into build/dist, and try it on every Python here in a clean environment
	rm -rf $(DIST) && $(PIP) build==1.4.0
	WORLDLINE_UNCOMPILED=1 $(PY) -m build --quiet --no-isolation --skip-dependency-check --outdir $(DIST)
	diff <(git ls-files src | grep -v '/tests/' | sort) \
	    <(tar -tzf $(DIST)/*.tar.gz | sed -n 's|^[^/]*/\(src/worldline/.*[^/]\)$$|\1|p' | sort)
	$(EACH_PYTHON); .ci/try-dist "$$python" $(PLAIN) || exit; break; done; done

dist: test-dist  ## the same with compiled wheels, which takes minutes for each Python
	$(EACH_PYTHON); \
	    "$$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) $(DIST)/*.tar.gz && \
	    .ci/try-dist "$$python" $(DIST)/*-cp3$$minor-*.whl || exit; break; done; done

clean:  ## remove whatever make has made
	rm -rf .venv build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f src/worldline/*/*.so src/worldline/*/*/*.so
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# A name on PATH proves nothing: version managers leave shims there for interpreters that aren't active, and some systems
# ship Python without ensurepip. So each candidate has to show what it can do. Last come those that are too new to be
# tested: they may well do.
PROBE := import ensurepip, ssl, sys, venv; \
    sys.exit(sys.version_info < (3, 11) or sys.argv[1] not in ("", str(sys.version_info.minor)))
FOUND = $$(type -ap python3.$$minor python3) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor*/bin/python

# The stamp comes last, so that half an installation never counts as one. Most of the time goes into reading what the index
# offers of each package, so only what running needs is asked for, and it is compiled to bytecode when it is first imported.
$(STAMP): pyproject.toml requirements-run.lock Makefile
	@IFS=$$'\n'; \
	for minor in 13 12 11 ''; do \
	    for python in $(if $(PYTHON),"$(PYTHON)",$(FOUND)); do \
	        "$$python" -c '$(PROBE)' "$$minor" 2>/dev/null || continue; \
	        echo "Installing into .venv with $$("$$python" --version) ($$python)"; \
	        "$$python" -m venv --clear .venv && \
	        $(PIP) --no-compile --no-deps --require-hashes --requirement requirements-run.lock && \
	        WORLDLINE_UNCOMPILED=1 $(PIP) --no-compile --no-deps --no-build-isolation --editable . && \
	        echo "$(PYTHON)" >$@; \
	        exit; \
	    done; \
	done; \
	echo "$(if $(PYTHON),$(PYTHON) is no,Neither PATH nor pyenv has a) working Python 3.11 or newer with ssl and venv;" \
	    "name one with PYTHON=..." >&2; \
	exit 1

$(TOOLS): requirements.lock | $(STAMP)
	@echo "Installing what development needs"
	@$(PIP) --require-hashes --requirement requirements.lock
	@touch $@

# SimPy's own tests come with its sources alone. Its tests are run against ours; nothing of it is installed from here.
$(SIMPY): tests/simpy/sdist.txt | $(STAMP)
	@echo "Fetching SimPy's own tests"
	@rm -rf $@ && $(PY) -m pip download --quiet --disable-pip-version-check --no-deps --no-binary simpy --require-hashes \
	    --requirement $< --dest $@
	@tar -xzf $@/simpy-*.tar.gz -C $@ --strip-components 1
	@touch $@

# An editable installation doesn't notice that a module that is compiled has changed. Where it can't be compiled, it is
# used as it is.
$(BUILT): $(HOT) setup.py | $(STAMP)
	@echo "Compiling the hot modules, which takes two to three minutes of processor time"
	@[[ $@ -nt setup.py ]] || rm -rf build  # Cython looks at its sources alone, not at how they are to be compiled.
	@sed -n '/^cython==/,/[^\\]$$/p' requirements.lock >.venv/cython.lock
	@$(PIP) --require-hashes --requirement .venv/cython.lock
	@$(PY) setup.py --quiet build_ext --inplace
	@touch $@

# An environment that exists is good enough, unless another interpreter is asked for.
ifneq ($(PYTHON),)
ifneq ($(PYTHON),$(shell cat $(STAMP) 2>/dev/null))
$(STAMP): FORCE
endif
endif
