# The commands of this house. `make` alone lists them.
# Every target below that needs the set-up makes it first (tools/bootstrap), also on a fresh machine.

SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
# Files run beside each other, each on one worker: its tests share a server or a box. As collected:
# boxes, which take longest, come first, and the pure tests fill the gaps at the end.
BESIDE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
SHELL_FILES = $$(git grep --untracked -lE '^\#!/(usr/)?bin/(env )?(ba)?sh$$' -- . ':!*.md' ':!*.py')

.PHONY: help demo up preview down test unit postgres engine box story lint golden docs setup packages pulumi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## a private Postgres, real workers, one killed, its job rescued
	@$(BIN)/jobwarden demo $(ARGS)

up: setup pulumi ## `pulumi up` on a private Postgres: the schedules, without a cloud
	@tools/local-stack up $(ARGS)

preview: pulumi ## `pulumi preview` of that stack; fails when anything would change
	@tools/local-stack preview $(ARGS)

down: pulumi ## `pulumi destroy` of that stack, then stop its Postgres
	@tools/local-stack down $(ARGS)

test: setup ## all tests; says which tiers were skipped, and why
	@tools/bootstrap pulumi || echo 'bootstrap: the tests that need a Pulumi CLI are skipped' >&2
	@$(BIN)/pytest $(BESIDE) $(ARGS)

unit: packages ## the pure tests: seconds, no Postgres
	@$(BIN)/pytest tests/unit $(ARGS)

postgres: setup ## the tests on a private Postgres with pg_cron
	@$(BIN)/pytest tests/postgres $(ARGS)

engine: setup ## the tests of `pulumi up`, against a test account and a private Postgres
	@tools/bootstrap pulumi
	@$(BIN)/pytest tests/engine $(ARGS)

box: packages ## the tests on throwaway Debian machines; needs root (tests/box/README.md)
	@$(BIN)/pytest tests/box $(ARGS)

story: setup ## the whole service: kills, rescues and alerts, with a table of them
	@$(BIN)/pytest tests/story $(ARGS)

lint: packages ## ruff, mypy, import arrows, shellcheck, generated docs
	@tools/bootstrap managed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck $(SHELL_FILES)
	$(BIN)/python tools/docs.py --check

golden: packages ## rewrite the golden files, then look at what changed
	@$(BIN)/pytest tests/unit --write-changes $(ARGS)
	@git status --short tests/data

docs: packages ## write docs/cli.md from the commands' own help
	@$(BIN)/python tools/docs.py

setup: ## uv, the Python packages, Postgres with pg_cron
	@tools/bootstrap postgres

pulumi: ## a Pulumi CLI and its Python packages
	@tools/bootstrap pulumi

packages: ## uv and the Python packages only
	@tools/bootstrap python
