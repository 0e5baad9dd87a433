# `make test` and `make demo` need Python 3.11 or newer and nothing else: each sets up .venv by itself.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
TORCH ?= 2.13.0+cpu
VENV := .venv
BIN := $(VENV)/bin
FIGURES := $(patsubst papers/figures/%.py,docs/figures/%/.drawn,$(filter-out %/common.py,$(wildcard papers/figures/*.py)))
DRAWN_FROM := $(wildcard papers/experiments/*/results.csv papers/src/onefit_papers/published/*.csv) $(shell find src -name '*.py')
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo browser test test-papers coverage test-slow test-matrix lint format types bench readme papers docs release-check clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 14

demo: $(VENV)/.with-cli,report  ## select a model on a bundled data set, and write its report
	@mkdir -p build
	$(BIN)/onefit demo --report build/demo.html

test: $(VENV)/.with-dev  ## tests and doctests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

test-papers: $(VENV)/.papers  ## tests of the papers' experiments
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 papers/tests papers/src

coverage: $(VENV)/.with-dev  ## tests and doctests, with the lines that no test reaches
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --cov --cov-report=term

test-slow: $(VENV)/.with-dev  ## the long tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m slow

# Interpreters that are not installed are named and left out.
test-matrix:  ## tests on every Python from 3.11 to 3.14 that is installed
	@for version in 3.11 3.12 3.13 3.14; do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) PYTHON=python$$version VENV=.venv-$$version test || exit 1; \
	  else \
	    echo "python$$version is not installed: left out"; \
	  fi; \
	done

lint: $(VENV)/.with-dev  ## style and wording, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python tools/check_language.py

format: $(VENV)/.with-dev  ## mend style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.with-dev  ## static types
	$(BIN)/mypy

bench: $(VENV)/.with-dev  ## benchmarks against peers (long)
	$(BIN)/python -m benchmarks

readme: $(VENV)/.with-dev  ## table and picture of the README, from the committed benchmarks
	$(BIN)/python benchmarks/readme_table.py
	$(BIN)/python benchmarks/readme_picture.py

papers: $(VENV)/.papers  ## docs/papers.md, from the committed results of the papers
	$(BIN)/python papers/page/write.py

docs: $(VENV)/.with-docs $(FIGURES)  ## the documentation with its figures, into site/; a broken link is an error
	$(ONE_THREAD) $(BIN)/sphinx-build --quiet --fail-on-warning --fresh-env -b html docs site
	@! grep -rE --include='*.html' '<(script|link|img)[^>]*(src|href)="https?:' site || { echo "pages load files from other hosts"; exit 1; }

# The figures of a page, drawn again when the package, the script or a result that it reads changes.
docs/figures/%/.drawn: papers/figures/%.py papers/figures/common.py $(DRAWN_FROM) | $(VENV)/.with-docs
	rm -rf $(@D) && mkdir -p $(@D)
	$(ONE_THREAD) $(BIN)/python $< $(@D)
	@touch $@

release-check: $(VENV)/.with-dev  ## build sdist and wheel, install the wheel elsewhere, run demo and tests of the sdist
	$(BIN)/python tools/release_check.py

browser:  ## Debian's chromium, for the tests of the report (as root)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends chromium chromium-driver

clean:  ## everything make has made, .venv too
	rm -rf docs/figures docs/examples docs/results docs/api
	rm -rf $(VENV) .venv-3.* build dist site htmlcov .coverage .coverage.* .hypothesis
	rm -rf .pytest_cache .mypy_cache .ruff_cache
	find src tests papers -name __pycache__ -type d -prune -exec rm -rf {} +

# .venv with one of the extras of pyproject.toml; _version.py holds the version.
$(VENV)/.with-%: pyproject.toml src/onefit/_version.py | $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@# the CPU build of PyTorch, for the tests of devices; without it they are skipped
	-@[ $* != dev ] || $(BIN)/python -m pip install --quiet --retries 1 'torch==$(TORCH)' --extra-index-url https://download.pytorch.org/whl/cpu
	@touch $@

# the papers' experiments beside the package
$(VENV)/.papers: papers/pyproject.toml $(VENV)/.with-dev
	$(BIN)/python -m pip install --quiet --editable ./papers
	@touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("onefit needs Python 3.11 or newer, found " + sys.version.split()[0] + "; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@
