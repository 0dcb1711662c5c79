# `make search` and `make test` are all that a newcomer needs; both set everything up on first use.
# Every recipe calls .venv/bin/python by its relative path, so the folder may have blanks in its name.
SHELL := /bin/bash
PYTHON_VENV := .venv/bin/python
ARGS ?=
# By file, because the tests of a file share what takes long to make.
ALL_PROCESSORS := --numprocesses=auto --dist=loadfile --durations=20
# Slow tests mostly wait, for servers that hang and for processes that are killed.
WAITING := --numprocesses=6 --dist=worksteal --durations=20

.PHONY: search test coverage test-opt-in lint types docs site wheel sbom model lock clean

search: .venv/installed  ## search the shipped rules with the embedded model
	@$(PYTHON_VENV) cli.py search $(ARGS)

test: .venv/installed lint types  ## tests on all processors, lint and type checks; the slowest are listed
	@$(PYTHON_VENV) -m pytest $(ALL_PROCESSORS) $(ARGS)

# Measuring branches more than doubles the time of the tests.
coverage: .venv/installed lint types  ## as `make test`, with the branches that the tests take
	@$(PYTHON_VENV) -m pytest $(ALL_PROCESSORS) --cov --cov-report=term $(ARGS)

test-opt-in: .venv/opt-in  ## tests that need more: a pretrained model, an English parser, a browser, real servers on loopback, other people's evaluation programs, Ray, other databases, hundreds of simulated seeds, and what starts hundreds of processes
	@$(PYTHON_VENV) -m pytest -m "smollm2 or browser or servers or harness or cluster or databases or simulation" $(ARGS)
	@$(PYTHON_VENV) -m pytest -m slow $(WAITING) $(ARGS)

lint: .venv/installed
	@$(PYTHON_VENV) -m ruff check .
	@$(PYTHON_VENV) -m ruff format --check .

types: .venv/installed
	@$(PYTHON_VENV) -m mypy

docs: .venv/installed  ## write the generated pages again
	@$(PYTHON_VENV) -m hapax.grammar.writing.language_page > docs/language.md
	@$(PYTHON_VENV) -m scripts.commands_page > docs/commands.md

site: .venv/installed  ## build the pages into build/site, to be read without a network
	@$(PYTHON_VENV) -m sphinx -q -W --keep-going -b html -c docs . build/site $(ARGS)
	@echo "written: build/site/docs/index.html"

wheel: .venv/installed  ## build the wheel of the last commit, the same bytes each time
	@scripts/wheel.sh

sbom: .venv/installed  ## write what is installed as a CycloneDX bill of materials
	@scripts/sbom.sh

model: .venv/installed  ## train the embedded model anew (about an hour on two cores)
	@$(PYTHON_VENV) -m tools.embedded.train --out llm_oracle/embedded/model $(ARGS)

lock:  ## resolve the ranges in pyproject.toml anew and write requirements.lock
	@scripts/lock.sh

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache

.venv/installed: pyproject.toml requirements.lock scripts/set_up.sh
	@scripts/set_up.sh

.venv/opt-in: .venv/installed
	@scripts/set_up.sh opt-in
