# From a bare clone, with Python and make and nothing else:
#
#   make demo   check and trace the programs under fixtures/
#   make test   the whole test suite
#
# PYTHON picks the interpreter, VENV the folder of its environment, WORKERS how many processes run the tests.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
STATIC_VENV ?= .venv-static-$(notdir $(PYTHON))
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint docs site static-test clean

demo: $(VENV)/installed
	@echo '$$ dtlint check --no-cache fixtures/demo'
	@$(VENV)/bin/dtlint check --no-cache fixtures/demo; code=$$?; echo "(exit code $$code)"; test $$code -eq 1
	@echo
	@echo '$$ dtlint trace fixtures/train/transformer_mask.py'
	@$(VENV)/bin/dtlint trace fixtures/train/transformer_mask.py; code=$$?; echo "(exit code $$code)"; test $$code -le 1

test: $(VENV)/installed
	$(VENV)/bin/python -m pytest --numprocesses $(WORKERS)

lint: $(VENV)/installed
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

# Regenerates the parts and pictures of the documentation that tests compare.
docs: $(VENV)/installed
	$(VENV)/bin/python tests/readme.py docs/*.md
	$(VENV)/bin/python tests/pictures.py

# The documentation as a site, under build/site.
site: $(VENV)/installed
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[docs]'
	$(VENV)/bin/python -m mkdocs build --strict --quiet

# What needs torch skips itself where torch is missing.
static-test: $(STATIC_VENV)/installed
	$(STATIC_VENV)/bin/python -m pytest --numprocesses $(WORKERS)

# The stamps are newer than what they were installed from, so that a second make installs nothing.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[dev]'
	@touch $@

$(STATIC_VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(STATIC_VENV)
	$(STATIC_VENV)/bin/python $(PIP_INSTALL) --editable '.[test]'
	@touch $@

clean:
	rm -rf $(VENV) .venv-static-* build dist .dtlint_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
