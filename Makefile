# The two set-ups of README.md. Safe to repeat: what is installed already is not installed again.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test docs clean
# An environment of which only a part was made is none.
.DELETE_ON_ERROR:

help:
	@echo "make demo   install into $(VENV), analyse a sentence, draw contexts of a word: 2 minutes, then 15 seconds"
	@echo "make test   install what tests need, run them on all cores: 4 minutes"
	@echo "make docs   install what the site needs, build it in site/: 2 minutes"
	@echo "make clean  remove $(VENV)"

demo: $(VENV)/installed-plot
	$(BIN)/python -m spacy elmo demo --output bank.png

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/installed-%: setup.cfg pyproject.toml constraints.txt models/en_elmo_web/meta.json | $(BIN)/python
	@echo "Installing spacy-elmo[$*] and what it needs into $(VENV) ..."
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[$*]"
	$(BIN)/python -m pip install --quiet ./models/en_elmo_web
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV)
