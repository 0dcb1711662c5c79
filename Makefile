# `make search` and `make test` are all that a newcomer needs; both set everything up on first use.
# Every recipe calls .venv/bin/python by its relative path, so the folder may have blanks in its name.
SHELL := /bin/bash
PYTHON_VENV := .venv/bin/python
ARGS ?=

.PHONY: search test test-opt-in lint types docs model card clean

search: .venv/installed  ## search the shipped rules with the embedded model
	@$(PYTHON_VENV) cli.py search $(ARGS)

test: .venv/installed lint types  ## tests with coverage, lint and type checks
	@$(PYTHON_VENV) -m pytest --cov --cov-report=term $(ARGS)

test-opt-in: .venv/opt-in  ## tests that need more: real servers on loopback, other people's evaluation programs, Ray
	@$(PYTHON_VENV) -m pytest -m "servers or harness or cluster" $(ARGS)

lint: .venv/installed
	@$(PYTHON_VENV) -m ruff check .
	@$(PYTHON_VENV) -m ruff format --check .

types: .venv/installed
	@$(PYTHON_VENV) -m mypy

docs: .venv/installed  ## write the generated pages again
	@$(PYTHON_VENV) -m grammar.reference > docs/language.md
	@$(PYTHON_VENV) -m scripts.commands_page > docs/commands.md

model: .venv/installed  ## train the embedded model anew (about an hour on two cores)
	@$(PYTHON_VENV) -m llm_oracle.embedded.train $(ARGS)

card: .venv/installed  ## measure the embedded model and write its card
	@$(PYTHON_VENV) -m evaluation.embedded_card $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache

.venv/installed: pyproject.toml scripts/set_up.sh
	@scripts/set_up.sh

.venv/opt-in: .venv/installed
	@scripts/set_up.sh opt-in
